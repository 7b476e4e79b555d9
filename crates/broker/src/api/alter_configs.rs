//! AlterConfigs: v0–v2. Superseded by IncrementalAlterConfigs: what is not named is forgotten.

use std::sync::Arc;

use strandline_wire::alter_configs::{
    AlterConfigsResource, AlterConfigsResourceResponse, AlterableConfig, Request, Response,
};

use super::{
    BROKER_LOGGER_RESOURCE, Refusal, altered_twice, code_and_message, config_resource,
    key_altered_twice, refuse_nulls, repeated,
};
use crate::configs::{Change, ConfigResource, Texts};
use crate::{Broker, error_code};

/// Changes each resource in a commit of its own.
pub(crate) async fn handle(broker: &Arc<Broker>, request: Request) -> Response {
    let named =
        |resource: &AlterConfigsResource| (resource.resource_type, resource.resource_name.clone());
    let repeated = repeated(request.resources.iter().map(named));
    let mut responses = Vec::with_capacity(request.resources.len());
    for resource in request.resources {
        let altered = if repeated.contains(&named(&resource)) {
            altered_twice()
        } else {
            replace(broker, &resource, request.validate_only).await
        };
        responses.push(answer(resource, altered));
    }
    Response { responses, ..Response::default() }
}

async fn replace(
    broker: &Arc<Broker>,
    resource: &AlterConfigsResource,
    validate_only: bool,
) -> Result<(), Refusal> {
    let change = Change::Replace(texts(&resource.configs)?);
    let named = match config_resource(resource.resource_type, &resource.resource_name) {
        // Loggers came later than this request (KIP-412).
        ConfigResource::BrokerLogger(name) => ConfigResource::Unknown(BROKER_LOGGER_RESOURCE, name),
        named => named,
    };
    broker
        .alter_configs(named, change, validate_only)
        .await
        .map_err(|error| (error_code::alter_configs(&error), error.to_string()))
}

fn texts(configs: &[AlterableConfig]) -> Result<Texts, Refusal> {
    let mut texts = Texts::new();
    for config in configs {
        let value = config.value.as_ref().map(|value| value.as_str().to_owned());
        if texts.insert(config.name.as_str().to_owned(), value.unwrap_or_default()).is_some() {
            return key_altered_twice();
        }
    }
    let nulls = configs.iter().filter(|config| config.value.is_none());
    refuse_nulls(nulls.map(|config| config.name.as_str()))?;
    Ok(texts)
}

fn answer(
    resource: AlterConfigsResource,
    altered: Result<(), Refusal>,
) -> AlterConfigsResourceResponse {
    let (error_code, error_message) = code_and_message(altered);
    AlterConfigsResourceResponse {
        error_code,
        error_message,
        resource_type: resource.resource_type,
        resource_name: resource.resource_name,
        ..AlterConfigsResourceResponse::default()
    }
}
