//! Health: two questions, each answered by a status code, in words on request.

use axum::Json;
use axum::extract::Query;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use crate::Check;

/// What may stand behind the question mark.
#[derive(Debug, serde::Deserialize)]
pub(crate) struct Ask {
    /// Present with any value or none: every check in the answer.
    verbose: Option<String>,
    /// Only the check of this name.
    check: Option<String>,
}

#[derive(serde::Serialize)]
struct Verbose {
    status: &'static str,
    checks: Vec<Check>,
}

/// The words for good and bad.
pub(crate) struct Words {
    good: &'static str,
    bad: &'static str,
}

pub(crate) const LIVENESS: Words = Words { good: "alive", bad: "not_alive" };
pub(crate) const READINESS: Words = Words { good: "ready", bad: "not_ready" };

/// 200 when all that was asked for holds, else 503; 404 when there is no check of that name.
pub(crate) fn answer(words: &Words, mut checks: Vec<Check>, Query(ask): Query<Ask>) -> Response {
    if let Some(name) = &ask.check {
        let names = checks.iter().map(|check| check.name).collect::<Vec<_>>().join(", ");
        checks.retain(|check| check.name == name);
        if checks.is_empty() {
            let text = format!("no such check. known: {names}\n");
            return (StatusCode::NOT_FOUND, text).into_response();
        }
    }
    let good = checks.iter().all(|check| check.ok);
    let code = if good { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let status = if good { words.good } else { words.bad };
    if ask.verbose.is_some() {
        return (code, Json(Verbose { status, checks })).into_response();
    }
    let failing = checks.iter().filter(|check| !check.ok).map(|check| check.name);
    let failing = failing.collect::<Vec<_>>().join(", ");
    let text = if good { format!("{status}\n") } else { format!("{status}: {failing}\n") };
    (code, text).into_response()
}
