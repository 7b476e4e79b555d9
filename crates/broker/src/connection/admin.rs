//! The requests with which tools look after a broker.

use bytes::BytesMut;
use strandline_wire::{
    Api, ApiKey, alter_configs, incremental_alter_configs, list_config_resources,
};

use super::{Connection, Disconnect, decode, reply};
use crate::{Reply, api};

impl Connection {
    /// Answers a request of an API that only tools use.
    pub(super) async fn administer(
        &self,
        api: Api,
        id: i32,
        body: BytesMut,
    ) -> Result<Reply, Disconnect> {
        let broker = &self.broker;
        let version = api.version();
        let replied = match api.key() {
            ApiKey::AlterConfigs => {
                let request: alter_configs::Request = decode(body, api)?;
                reply(api, id, &api::alter_configs::handle(broker, request).await)
            }
            ApiKey::IncrementalAlterConfigs => {
                let request: incremental_alter_configs::Request = decode(body, api)?;
                reply(api, id, &api::incremental_alter_configs::handle(broker, request).await)
            }
            ApiKey::ListConfigResources => {
                let request: list_config_resources::Request = decode(body, api)?;
                reply(api, id, &api::list_config_resources::handle(broker, &request, version))
            }
            other => unreachable!("{other} is answered elsewhere"),
        };
        Ok(replied?)
    }
}
