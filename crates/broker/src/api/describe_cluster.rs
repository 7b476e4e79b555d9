//! DescribeCluster: v0–v2. v1 endpoint type (KIP-919); v2 fenced brokers.

use strandline_wire::ErrorCode;
use strandline_wire::describe_cluster::{DescribeClusterBroker, Request, Response};

use super::metadata::CLUSTER_OPERATIONS;
use super::{OPERATIONS_NOT_ASKED, text};
use crate::{Broker, Peer};

/// The endpoint type of brokers; 2 is that of controllers, which do not listen for clients here.
const BROKERS: i8 = 1;
const CONTROLLERS: i8 = 2;

/// Describes the one broker that there is.
pub(crate) fn handle(broker: &Broker, peer: &Peer, request: &Request) -> Response {
    if request.endpoint_type != BROKERS {
        let (code, message) = if request.endpoint_type == CONTROLLERS {
            let message = "The request was sent to an endpoint of type BROKER, but we wanted an endpoint \
                           of type CONTROLLER";
            (ErrorCode::MISMATCHED_ENDPOINT_TYPE, message.to_owned())
        } else {
            let message = format!("Unsupported endpoint type {}", request.endpoint_type);
            (ErrorCode::UNSUPPORTED_ENDPOINT_TYPE, message)
        };
        return Response {
            error_code: code.get(),
            error_message: Some(text(message)),
            // As Kafka: the kind of this endpoint, not the one that was asked for.
            endpoint_type: BROKERS,
            ..Response::default()
        };
    }
    let endpoint = broker.endpoint_for(peer);
    Response {
        endpoint_type: BROKERS,
        cluster_id: text(broker.cluster_id()),
        controller_id: broker.node_id().get(),
        brokers: vec![DescribeClusterBroker {
            broker_id: broker.node_id().get(),
            host: text(endpoint.host),
            port: i32::from(endpoint.port),
            rack: broker.rack().map(text),
            ..DescribeClusterBroker::default()
        }],
        cluster_authorized_operations: if request.include_cluster_authorized_operations {
            CLUSTER_OPERATIONS
        } else {
            OPERATIONS_NOT_ASKED
        },
        ..Response::default()
    }
}
