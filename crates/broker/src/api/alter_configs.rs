//! AlterConfigs: v0–v2. Superseded by IncrementalAlterConfigs: what is not named is forgotten.

use std::sync::Arc;

use strandline_wire::ErrorCode;
use strandline_wire::alter_configs::{
    AlterConfigsResource, AlterConfigsResourceResponse, AlterableConfig, Request, Response,
};

use super::{BROKER_LOGGER_RESOURCE, config_resource, repeated, text};
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
            let message = "Each resource must appear at most once.".to_owned();
            Err((ErrorCode::INVALID_REQUEST, message))
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
) -> Result<(), (ErrorCode, String)> {
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

fn texts(configs: &[AlterableConfig]) -> Result<Texts, (ErrorCode, String)> {
    let invalid = |message: String| Err((ErrorCode::INVALID_REQUEST, message));
    let mut texts = Texts::new();
    for config in configs {
        let value = config.value.as_ref().map(|value| value.as_str().to_owned());
        if texts.insert(config.name.as_str().to_owned(), value.unwrap_or_default()).is_some() {
            return invalid("Error due to duplicate config keys".to_owned());
        }
    }
    let nulls = configs.iter().filter(|config| config.value.is_none());
    let nulls: Vec<&str> = nulls.map(|config| config.name.as_str()).collect();
    if nulls.is_empty() {
        Ok(texts)
    } else {
        invalid(format!("Null value not supported for : {}", nulls.join(", ")))
    }
}

fn answer(
    resource: AlterConfigsResource,
    altered: Result<(), (ErrorCode, String)>,
) -> AlterConfigsResourceResponse {
    let (code, message) = match altered {
        Ok(()) => (ErrorCode::NONE, None),
        Err((code, message)) => (code, Some(text(message))),
    };
    AlterConfigsResourceResponse {
        error_code: code.get(),
        error_message: message,
        resource_type: resource.resource_type,
        resource_name: resource.resource_name,
        ..AlterConfigsResourceResponse::default()
    }
}
