//! DeleteGroups: v0–v2.

use std::collections::BTreeSet;
use std::sync::Arc;

use strandline_wire::ErrorCode;
use strandline_wire::delete_groups::{DeletableGroupResult, Request, Response};

use super::shared;
use crate::{Broker, error_code};

/// Deletes each group that is empty, with all its positions.
pub(crate) async fn handle(broker: &Broker, request: Request) -> Response {
    let mut seen = BTreeSet::new();
    let mut results = Vec::with_capacity(request.groups_names.len());
    for group_id in request.groups_names {
        let group = shared(&group_id);
        // Answered once, however often it is named.
        if !seen.insert(Arc::clone(&group)) {
            continue;
        }
        let code = match broker.groups().delete(&group).await {
            Ok(Ok(())) => ErrorCode::NONE,
            Ok(Err(error)) => error_code::group(error),
            Err(unavailable) => error_code::unavailable(unavailable),
        };
        let error_code = code.get();
        results.push(DeletableGroupResult { group_id, error_code, ..Default::default() });
    }
    Response { results, ..Response::default() }
}
