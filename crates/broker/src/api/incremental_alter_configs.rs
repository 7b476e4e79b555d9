//! IncrementalAlterConfigs: v0–v1 (KIP-339).

use std::collections::BTreeSet;
use std::sync::Arc;

use strandline_model::config::{AlterOp, Alteration};
use strandline_wire::ErrorCode;
use strandline_wire::incremental_alter_configs::{
    AlterConfigsResource, AlterConfigsResourceResponse, AlterableConfig, Request, Response,
};

use super::{
    BROKER_LOGGER_RESOURCE, BROKER_RESOURCE, Refusal, altered_twice, code_and_message,
    config_resource, key_altered_twice, refuse_nulls, repeated,
};
use crate::configs::Change;
use crate::{Broker, error_code};

const SET: i8 = 0;
const DELETE: i8 = 1;
const APPEND: i8 = 2;
const SUBTRACT: i8 = 3;

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
            alter(broker, &resource, request.validate_only).await
        };
        responses.push(answer(resource, altered));
    }
    Response { responses, ..Response::default() }
}

async fn alter(
    broker: &Arc<Broker>,
    resource: &AlterConfigsResource,
    validate_only: bool,
) -> Result<(), Refusal> {
    let change = Change::Incremental(alterations(resource)?);
    let named = config_resource(resource.resource_type, &resource.resource_name);
    broker
        .alter_configs(named, change, validate_only)
        .await
        .map_err(|error| (error_code::alter_configs(&error), error.to_string()))
}

fn alterations(resource: &AlterConfigsResource) -> Result<Vec<Alteration>, Refusal> {
    let configs = &resource.configs;
    let mut names = BTreeSet::new();
    if !configs.iter().all(|config| names.insert(config.name.as_str())) {
        return key_altered_twice();
    }
    let lacks_value =
        |config: &&AlterableConfig| config.config_operation != DELETE && config.value.is_none();
    refuse_nulls(configs.iter().filter(lacks_value).map(|config| config.name.as_str()))?;
    let mut alterations = Vec::with_capacity(configs.len());
    for config in configs {
        let value = config.value.as_ref().map(|value| value.as_str().to_owned());
        let value = value.unwrap_or_default();
        let op = match config.config_operation {
            SET => AlterOp::Set(value),
            DELETE => AlterOp::Delete,
            APPEND => AlterOp::Append(value),
            SUBTRACT => AlterOp::Subtract(value),
            other => {
                // As Kafka: its controller fails on what its brokers refuse.
                let by_broker = [BROKER_RESOURCE, BROKER_LOGGER_RESOURCE];
                let code = if by_broker.contains(&resource.resource_type) {
                    ErrorCode::INVALID_REQUEST
                } else {
                    ErrorCode::UNKNOWN_SERVER_ERROR
                };
                return Err((code, format!("Unknown operations type {other}")));
            }
        };
        alterations.push(Alteration { name: config.name.as_str().to_owned(), op });
    }
    Ok(alterations)
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
