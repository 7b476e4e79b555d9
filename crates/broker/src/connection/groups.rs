//! The APIs of the group coordinator.

use bytes::BytesMut;
use strandline_wire::{
    ApiKey, KafkaString, RequestHeader, delete_groups, describe_groups, find_coordinator,
    heartbeat, join_group, leave_group, list_groups, offset_commit, offset_delete, offset_fetch,
    sync_group,
};

use super::{Connection, Disconnect, decode, reply};
use crate::Reply;
use crate::api::{self, Caller};

/// Whether [`Connection::answer_of_groups`] answers it.
pub(super) const fn is_of_groups(key: ApiKey) -> bool {
    matches!(
        key,
        ApiKey::OffsetCommit
            | ApiKey::OffsetFetch
            | ApiKey::FindCoordinator
            | ApiKey::JoinGroup
            | ApiKey::Heartbeat
            | ApiKey::LeaveGroup
            | ApiKey::SyncGroup
            | ApiKey::DescribeGroups
            | ApiKey::ListGroups
            | ApiKey::DeleteGroups
            | ApiKey::OffsetDelete
    )
}

impl Connection {
    pub(super) async fn answer_of_groups(
        &self,
        header: &RequestHeader,
        body: BytesMut,
    ) -> Result<Reply, Disconnect> {
        let broker = &self.broker;
        let (api, id, version) = (header.api, header.correlation_id, header.api.version());
        let client_id = header.client_id.as_ref().map_or("", KafkaString::as_str);
        let caller = Caller { client_id, host: self.peer.remote.ip() };
        let replied = match api.key() {
            ApiKey::OffsetCommit => {
                let request: offset_commit::Request = decode(body, api)?;
                reply(broker, api, id, &api::offset_commit::handle(broker, request, version).await)
            }
            ApiKey::OffsetFetch => {
                let request: offset_fetch::Request = decode(body, api)?;
                reply(broker, api, id, &api::offset_fetch::handle(broker, request, version).await)
            }
            ApiKey::FindCoordinator => {
                let request: find_coordinator::Request = decode(body, api)?;
                let found = api::find_coordinator::handle(broker, &self.peer, request, version);
                reply(broker, api, id, &found.await)
            }
            ApiKey::JoinGroup => {
                let request: join_group::Request = decode(body, api)?;
                reply(
                    broker,
                    api,
                    id,
                    &api::join_group::handle(broker, caller, request, version).await,
                )
            }
            ApiKey::Heartbeat => {
                let request: heartbeat::Request = decode(body, api)?;
                reply(broker, api, id, &api::heartbeat::handle(broker, &request).await)
            }
            ApiKey::LeaveGroup => {
                let request: leave_group::Request = decode(body, api)?;
                reply(broker, api, id, &api::leave_group::handle(broker, &request, version).await)
            }
            ApiKey::SyncGroup => {
                let request: sync_group::Request = decode(body, api)?;
                reply(broker, api, id, &api::sync_group::handle(broker, &request, version).await)
            }
            ApiKey::DescribeGroups => {
                let request: describe_groups::Request = decode(body, api)?;
                reply(
                    broker,
                    api,
                    id,
                    &api::describe_groups::handle(broker, &request, version).await,
                )
            }
            ApiKey::ListGroups => {
                let request: list_groups::Request = decode(body, api)?;
                reply(broker, api, id, &api::list_groups::handle(broker, &request).await)
            }
            ApiKey::DeleteGroups => {
                let request: delete_groups::Request = decode(body, api)?;
                reply(broker, api, id, &api::delete_groups::handle(broker, request).await)
            }
            ApiKey::OffsetDelete => {
                let request: offset_delete::Request = decode(body, api)?;
                reply(broker, api, id, &api::offset_delete::handle(broker, request).await)
            }
            key => unreachable!("{key} is no API of groups"),
        };
        Ok(replied?)
    }
}
