//! ListConfigResources: v0–v1. v0 lists subscriptions to the metrics of clients (KIP-714), v1 what the
//! client asks for (KIP-1142).

use strandline_wire::ErrorCode;
use strandline_wire::list_config_resources::{ConfigResource, Request, Response};

use super::{
    BROKER_LOGGER_RESOURCE, BROKER_RESOURCE, CLIENT_METRICS_RESOURCE, GROUP_RESOURCE,
    TOPIC_RESOURCE, text,
};
use crate::Broker;

/// Every type.
const ALL: [i8; 5] = [
    TOPIC_RESOURCE,
    BROKER_LOGGER_RESOURCE,
    BROKER_RESOURCE,
    CLIENT_METRICS_RESOURCE,
    GROUP_RESOURCE,
];

/// Lists topics and brokers, and of the rest what has something set.
pub(crate) fn handle(broker: &Broker, request: &Request, version: i16) -> Response {
    let known: &[i8] = if version == 0 { &[CLIENT_METRICS_RESOURCE] } else { &ALL };
    if request.resource_types.iter().any(|kind| !known.contains(kind)) {
        return Response {
            error_code: ErrorCode::UNSUPPORTED_VERSION.get(),
            ..Response::default()
        };
    }
    let is_wanted =
        |kind: &&i8| request.resource_types.is_empty() || request.resource_types.contains(kind);
    let of_kind = |kind: &i8| {
        let resource = |name: String| ConfigResource {
            resource_name: text(name),
            resource_type: *kind,
            ..ConfigResource::default()
        };
        names(broker, *kind).into_iter().map(resource).collect::<Vec<_>>()
    };
    let config_resources = known.iter().filter(is_wanted).flat_map(of_kind).collect();
    Response { config_resources, ..Response::default() }
}

fn names(broker: &Broker, kind: i8) -> Vec<String> {
    match kind {
        TOPIC_RESOURCE => {
            broker.registry().all().iter().map(|topic| topic.name().to_string()).collect()
        }
        BROKER_RESOURCE | BROKER_LOGGER_RESOURCE => vec![broker.node_id().to_string()],
        CLIENT_METRICS_RESOURCE => broker.configs().client_metrics(),
        GROUP_RESOURCE => broker.configs().groups(),
        _ => Vec::new(),
    }
}
