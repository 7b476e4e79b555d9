//! Pending deletions as a broker tells them over HTTP, and which of them is meant.

use hyper::StatusCode;
use serde_json::Value;

use crate::command::target::Target;
use crate::failure::{Exit, Failure};
use crate::http::{self, escaped};

const PATH: &str = "/v1/deletions";

/// All of them.
pub(crate) async fn pending(target: &Target) -> Result<Vec<Value>, Failure> {
    match http::get_json(&target.http(), PATH).await? {
        Value::Array(all) => Ok(all),
        _ => {
            Err(Failure::new(Exit::Failed, "not_strandline", "the answer is no list of deletions"))
        }
    }
}

/// The one of this id, or of this name where only one topic of that name was deleted.
pub(crate) fn find<'a>(all: &'a [Value], meant: &str) -> Result<&'a Value, Failure> {
    if let Some(one) = all.iter().find(|one| one["id"] == meant) {
        return Ok(one);
    }
    let named: Vec<&Value> = all.iter().filter(|one| one["topic"] == meant).collect();
    match named.as_slice() {
        [one] => Ok(one),
        [] => Err(Failure::new(
            Exit::Failed,
            "unknown_deletion",
            format!("no deletion of {meant} is pending"),
        )
        .hint("all of them: strandline deletions list")),
        several => {
            let ids: Vec<&str> = several.iter().filter_map(|one| one["id"].as_str()).collect();
            let message = format!("{} topics named {meant} were deleted", several.len());
            Err(Failure::usage(message).hint(format!("name one by its id: {}", ids.join(", "))))
        }
    }
}

/// Asks for something to be done to one, or to all where there is no id.
pub(crate) async fn act(target: &Target, id: Option<&str>, action: &str) -> Result<Value, Failure> {
    let path = match id {
        Some(id) => format!("{PATH}/{}/{action}", escaped(id)),
        None => format!("{PATH}/{action}"),
    };
    let base = target.http();
    let (status, answer) = http::post(&base, &path).await?;
    let Some(said) = answer["error"].as_str() else {
        return if status == StatusCode::OK {
            Ok(answer)
        } else {
            Err(http::other_answer(&base, &path, &format!("with {status}")))
        };
    };
    Err(match status {
        StatusCode::NOT_FOUND => Failure::new(Exit::Failed, "unknown_deletion", said)
            .hint("all of them: strandline deletions list"),
        StatusCode::BAD_REQUEST => Failure::usage(said),
        StatusCode::FORBIDDEN => Failure::new(Exit::Failed, "forbidden", said)
            .hint("name the broker's HTTP side by localhost: --http-url http://localhost:PORT"),
        StatusCode::SERVICE_UNAVAILABLE => Failure::new(Exit::Unreachable, "not_ready", said),
        _ => Failure::new(Exit::Failed, "refused", said),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deletion_is_meant_by_its_id_or_by_a_name_that_only_it_has() {
        let all = serde_json::json!([
            {"id": "A", "topic": "orders"},
            {"id": "B", "topic": "clicks"},
            {"id": "C", "topic": "clicks"},
            // A topic may be called like an id: ids come first.
            {"id": "D", "topic": "A"},
        ]);
        let all = all.as_array().expect("an array");
        let found = |meant: &str| find(all, meant).map(|one| one["id"].clone());
        assert_eq!(found("A"), Ok("A".into()));
        assert_eq!(found("orders"), Ok("A".into()));
        let several = found("clicks").expect_err("two are called so");
        assert_eq!(
            (several.exit, several.hints),
            (Exit::Usage, vec!["name one by its id: B, C".to_owned()])
        );
        assert_eq!(found("a").expect_err("none is").exit, Exit::Failed);
    }
}
