//! `/v1/groups/{name}`: what Kafka's protocol does not tell of a group: why it rebalanced last.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use strandline_model::Timestamp;

use crate::Status;
use crate::clients::rfc_3339;

/// A group at one moment, as it is served. Field names are part of the API.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Group {
    /// Whose it is: the id that Kafka's Metadata tells of the cluster.
    pub cluster_id: String,
    /// Its name.
    pub group: String,
    /// Kafka's name of its state.
    pub state: &'static str,
    /// Its generation, or the last one that it had.
    pub generation: i32,
    /// Why it left its last generation; null when it never did.
    pub last_rebalance: Option<LastRebalance>,
}

/// Why a group left its last generation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct LastRebalance {
    /// What happened: `member_left`, `session_expired`, …
    pub reason: &'static str,
    /// When.
    #[serde(serialize_with = "rfc_3339")]
    pub at: Timestamp,
    /// The generation that was left.
    pub generation: i32,
    /// Of whom it is told, the first of several; null where it is about the group.
    pub member_id: Option<String>,
    /// The `group.instance.id` of a static member.
    pub instance_id: Option<String>,
    /// How the member's client calls itself.
    pub client_id: Option<String>,
    /// The address of that client.
    pub host: Option<String>,
    /// What the client said about it; null when it said nothing.
    pub client_reason: Option<String>,
}

/// A group, when it is known; why it can't be told now otherwise, in words.
pub type FoundGroup<'a> = Pin<Box<dyn Future<Output = Result<Option<Group>, String>> + Send + 'a>>;

#[derive(Serialize)]
struct Problem {
    error: String,
}

pub(crate) async fn show(
    State(status): State<Arc<dyn Status>>,
    Path(name): Path<String>,
) -> Response {
    let (code, error) = match status.group(&name).await {
        Ok(Some(group)) => return Json(group).into_response(),
        Ok(None) => (StatusCode::NOT_FOUND, format!("group {name} does not exist")),
        Err(error) => (StatusCode::SERVICE_UNAVAILABLE, error),
    };
    (code, Json(Problem { error })).into_response()
}
