//! ListPartitionReassignments: v0 (KIP-455). Nothing ever moves: there is one broker.

use strandline_wire::list_partition_reassignments::Response;

/// Lists nothing.
pub(crate) fn handle() -> Response {
    Response::default()
}
