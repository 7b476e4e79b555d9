//! `/v1/deletions`: deleted topics whose bytes are not all gone, and what people do about them.
//!
//! # Invariants
//! - What changes something is asked for by POST, from this machine and not by another site's page.
//!   (`same_origin.rs`)
//! - What is asked for stands in the path and behind the question mark: no body is read.

use std::sync::Arc;

use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router, middleware};
use serde::Serialize;
use strandline_model::Timestamp;

use crate::clients::{rfc_3339, rfc_3339_if_any};
use crate::{Status, same_origin};

/// The parameter of an undelete that names the topic anew.
const AS: &str = "as";

/// A pending deletion as it is served. Field names are part of the API.
#[derive(Clone, Debug, Serialize)]
pub struct Deletion {
    /// The topic's identity, as Kafka writes it.
    pub id: String,
    /// What the topic was called.
    pub topic: String,
    /// The engine that keeps its bytes.
    pub engine: String,
    /// `grace`, `queued`, `running`, `backing_off` or `paused`.
    pub state: &'static str,
    /// When it was deleted.
    #[serde(serialize_with = "rfc_3339")]
    pub deleted_at: Timestamp,
    /// What the client calls itself that deleted it; empty when that is not known.
    pub client_id: String,
    /// The address of that client; empty when it is not known.
    pub address: String,
    /// When the grace ends, or ended.
    #[serde(serialize_with = "rfc_3339")]
    pub grace_until: Timestamp,
    /// Whether the topic can be brought back.
    pub can_undelete: bool,
    /// Its partitions.
    pub partitions: u32,
    /// Those that may have something left.
    pub partitions_left: u32,
    /// Bytes of its batches when it was deleted.
    pub bytes: u64,
    /// Bytes that were freed so far.
    pub freed_bytes: u64,
    /// Bytes that are not.
    pub left_bytes: u64,
    /// Steps that failed since one did not.
    pub failures: u32,
    /// The last failure since the broker started.
    pub last_error: Option<String>,
    /// When that was.
    #[serde(serialize_with = "rfc_3339_if_any")]
    pub last_error_at: Option<Timestamp>,
    /// When the next step comes, as far as time decides it.
    #[serde(serialize_with = "rfc_3339_if_any")]
    pub next_step_at: Option<Timestamp>,
}

/// What somebody asks to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeletionChange {
    /// No deletion goes on.
    PauseAll,
    /// Those go on that are not paused themselves.
    ResumeAll,
    /// This one does not go on.
    Pause(String),
    /// This one goes on.
    Resume(String),
    /// The pause after a failure ends.
    Retry(String),
    /// The grace ends.
    Purge(String),
    /// The topic comes back.
    Undelete {
        /// Which one.
        id: String,
        /// What it is to be called; as it was, for `None`.
        name: Option<String>,
    },
}

/// What came of it.
#[derive(Clone, Debug)]
pub enum DeletionChanged {
    /// These are pending now.
    Pending(Vec<Deletion>),
    /// The topic is there again, under this name.
    Undeleted(String),
}

/// Why nothing came of it, in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeletionRefused {
    /// Nothing is pending under that id.
    Unknown(String),
    /// It makes no sense, whatever the state.
    Invalid(String),
    /// It can't be done as things are.
    Conflict(String),
    /// It can't be done now.
    Unavailable(String),
}

#[derive(Serialize)]
struct Problem {
    error: String,
}

#[derive(Serialize)]
struct Undeleted {
    topic: String,
}

pub(crate) fn routes() -> Router<Arc<dyn Status>> {
    let changes = Router::new()
        .route("/v1/deletions/{id}", post(change_all))
        .route("/v1/deletions/{id}/{action}", post(change_one))
        .route_layer(middleware::from_fn(same_origin::only));
    Router::new()
        .route("/v1/deletions", get(list))
        .route("/v1/deletions/{id}", get(show))
        .merge(changes)
}

async fn list(State(status): State<Arc<dyn Status>>) -> Json<Vec<Deletion>> {
    Json(status.deletions())
}

async fn show(State(status): State<Arc<dyn Status>>, Path(id): Path<String>) -> Response {
    match status.deletions().into_iter().find(|one| one.id == id) {
        Some(deletion) => Json(deletion).into_response(),
        None => refused(DeletionRefused::Unknown(format!("no deletion of {id} is pending"))),
    }
}

/// What stands behind the question mark, in order; a name may come twice.
type Asked = Query<Vec<(String, String)>>;

async fn change_all(
    State(status): State<Arc<dyn Status>>,
    Path(action): Path<String>,
    Query(asked): Asked,
) -> Response {
    let change = match (action.as_str(), asked.as_slice()) {
        ("pause", []) => DeletionChange::PauseAll,
        ("resume", []) => DeletionChange::ResumeAll,
        ("pause" | "resume", _) => return no_parameter(&asked),
        (other, _) => {
            let why = format!("{other} is nothing that is done to all: pause or resume");
            return refused(DeletionRefused::Unknown(why));
        }
    };
    answer(status.change_deletion(change).await, Several::Yes)
}

async fn change_one(
    State(status): State<Arc<dyn Status>>,
    Path((id, action)): Path<(String, String)>,
    Query(asked): Asked,
) -> Response {
    let change = match (action.as_str(), asked.as_slice()) {
        ("undelete", []) => DeletionChange::Undelete { id, name: None },
        ("undelete", [(key, name)]) if key == AS => {
            DeletionChange::Undelete { id, name: Some(name.clone()) }
        }
        ("pause", []) => DeletionChange::Pause(id),
        ("resume", []) => DeletionChange::Resume(id),
        ("retry", []) => DeletionChange::Retry(id),
        ("purge", []) => DeletionChange::Purge(id),
        ("undelete" | "pause" | "resume" | "retry" | "purge", _) => return no_parameter(&asked),
        (other, _) => {
            let known = "pause, resume, retry, purge, undelete";
            let why = format!("{other} is nothing that is done to a deletion: {known}");
            return refused(DeletionRefused::Unknown(why));
        }
    };
    answer(status.change_deletion(change).await, Several::No)
}

/// Whether a change is of several deletions.
#[derive(Clone, Copy)]
enum Several {
    Yes,
    No,
}

fn answer(changed: Result<DeletionChanged, DeletionRefused>, several: Several) -> Response {
    match (changed, several) {
        (Ok(DeletionChanged::Undeleted(topic)), _) => Json(Undeleted { topic }).into_response(),
        (Ok(DeletionChanged::Pending(all)), Several::Yes) => Json(all).into_response(),
        // Null when nothing is left of it meanwhile.
        (Ok(DeletionChanged::Pending(all)), Several::No) => {
            Json(all.into_iter().next()).into_response()
        }
        (Err(why), _) => refused(why),
    }
}

fn no_parameter(asked: &[(String, String)]) -> Response {
    let names: Vec<&str> = asked.iter().map(|(name, _)| name.as_str()).collect();
    let why = format!("unknown parameter {}; known: {AS}, once, of undelete", names.join(", "));
    refused(DeletionRefused::Invalid(why))
}

fn refused(why: DeletionRefused) -> Response {
    let (code, error) = match why {
        DeletionRefused::Unknown(error) => (StatusCode::NOT_FOUND, error),
        DeletionRefused::Invalid(error) => (StatusCode::BAD_REQUEST, error),
        DeletionRefused::Conflict(error) => (StatusCode::CONFLICT, error),
        DeletionRefused::Unavailable(error) => (StatusCode::SERVICE_UNAVAILABLE, error),
    };
    (code, Json(Problem { error })).into_response()
}
