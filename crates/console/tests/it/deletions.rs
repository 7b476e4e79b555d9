//! Deleted topics that still have bytes: what is told, what can be done, and by whom.

use strandline_console::{Deletion, DeletionChange, DeletionChanged, DeletionRefused, Scope};
use strandline_model::Timestamp;

use crate::{Answer, Running};

pub(crate) fn pending() -> Deletion {
    Deletion {
        id: "AbC".to_owned(),
        topic: "orders".to_owned(),
        engine: "file".to_owned(),
        state: "backing_off",
        deleted_at: Timestamp::from_millis(1_700_000_000_500),
        client_id: "admin-1".to_owned(),
        address: "10.0.0.7:5".to_owned(),
        grace_until: Timestamp::from_millis(1_700_000_060_500),
        can_undelete: false,
        partitions: 3,
        partitions_left: 1,
        bytes: 300,
        freed_bytes: 100,
        left_bytes: 200,
        failures: 2,
        last_error: Some("no \"room\"".to_owned()),
        last_error_at: Some(Timestamp::from_millis(1_700_000_061_000)),
        next_step_at: None,
    }
}

/// Tells back what was asked, or refuses ids by their name.
pub(crate) fn changed(change: DeletionChange) -> Result<DeletionChanged, DeletionRefused> {
    match change {
        DeletionChange::PauseAll | DeletionChange::ResumeAll => {
            Ok(DeletionChanged::Pending(vec![pending()]))
        }
        DeletionChange::Undelete { id, name } => {
            Ok(DeletionChanged::Undeleted(format!("{id} as {name:?}")))
        }
        DeletionChange::Pause(id) if id == "gone" => Ok(DeletionChanged::Pending(Vec::new())),
        DeletionChange::Retry(id) => Err(match id.as_str() {
            "unknown" => DeletionRefused::Unknown("why".to_owned()),
            "invalid" => DeletionRefused::Invalid("why".to_owned()),
            "conflict" => DeletionRefused::Conflict("why".to_owned()),
            _ => DeletionRefused::Unavailable("why".to_owned()),
        }),
        DeletionChange::Pause(id) | DeletionChange::Resume(id) | DeletionChange::Purge(id) => {
            Ok(DeletionChanged::Pending(vec![Deletion { id, ..pending() }]))
        }
    }
}

async fn post(console: &Running, path: &str, headers: &str) -> Answer {
    let head = format!("POST {path} HTTP/1.1\r\nconnection: close\r\n{headers}\r\n");
    console.send(&head).await
}

const HERE: &str = "host: localhost:9644\r\n";

#[tokio::test]
async fn all_that_is_known_is_told() {
    let console = Running::start(Scope::Everything, 8).await;
    let one = concat!(
        r#"{"id":"AbC","topic":"orders","engine":"file","state":"backing_off","#,
        r#""deleted_at":"2023-11-14T22:13:20.5Z","client_id":"admin-1","address":"10.0.0.7:5","#,
        r#""grace_until":"2023-11-14T22:14:20.5Z","can_undelete":false,"partitions":3,"#,
        r#""partitions_left":1,"bytes":300,"freed_bytes":100,"left_bytes":200,"failures":2,"#,
        r#""last_error":"no \"room\"","last_error_at":"2023-11-14T22:14:21Z","next_step_at":null}"#,
    );
    assert_eq!(console.get("/v1/deletions").await.body, format!("[{one}]"));
    assert_eq!(console.get("/v1/deletions/AbC").await.body, one);
    let unknown = console.get("/v1/deletions/abc").await;
    assert_eq!((unknown.code, unknown.body.contains("abc")), (404, true));
    let metrics = console.get("/metrics").await.body;
    for line in [
        "strandline_deletion_pending_items{kind=\"topic\",state=\"grace\"} 2",
        "strandline_deletion_pending_bytes{kind=\"topic\",state=\"grace\"} 300",
        "strandline_deletion_oldest_pending_seconds 1.5",
        "strandline_deletion_freed_bytes_total 70",
        "strandline_deletion_failures_total 4",
    ] {
        assert!(metrics.lines().any(|each| each == line), "{line}\n{metrics}");
    }
    console.stop().await;
}

#[tokio::test]
async fn what_is_asked_for_is_done_and_what_makes_no_sense_is_refused() {
    let console = Running::start(Scope::Everything, 8).await;
    for (path, code, body) in [
        ("/v1/deletions/pause", 200, "[{\"id\":\"AbC\""),
        ("/v1/deletions/resume", 200, "[{\"id\":\"AbC\""),
        ("/v1/deletions/X/pause", 200, "{\"id\":\"X\""),
        ("/v1/deletions/X/resume", 200, "{\"id\":\"X\""),
        ("/v1/deletions/X/purge", 200, "{\"id\":\"X\""),
        ("/v1/deletions/gone/pause", 200, "null"),
        ("/v1/deletions/X/undelete", 200, "{\"topic\":\"X as None\"}"),
        ("/v1/deletions/X/undelete?as=a%20b", 200, r#"{"topic":"X as Some(\"a b\")"}"#),
        ("/v1/deletions/unknown/retry", 404, "{\"error\":\"why\"}"),
        ("/v1/deletions/invalid/retry", 400, "{\"error\":\"why\"}"),
        ("/v1/deletions/conflict/retry", 409, "{\"error\":\"why\"}"),
        ("/v1/deletions/other/retry", 503, "{\"error\":\"why\"}"),
        ("/v1/deletions/X/undelete?as=a&as=b", 400, "{\"error\":\"unknown parameter as, as"),
        ("/v1/deletions/X/pause?as=a", 400, "{\"error\":\"unknown parameter as"),
        ("/v1/deletions/pause?x=1", 400, "{\"error\":\"unknown parameter x"),
        ("/v1/deletions/X/burn", 404, "{\"error\":\"burn is nothing"),
        ("/v1/deletions/X", 404, "{\"error\":\"X is nothing"),
        ("/v1/deletions", 405, ""),
    ] {
        let answer = post(&console, path, HERE).await;
        assert_eq!(answer.code, code, "{path}: {answer:?}");
        assert!(answer.body.starts_with(body), "{path}: {answer:?}");
    }
    let head = format!("GET /v1/deletions/X/pause HTTP/1.1\r\nconnection: close\r\n{HERE}\r\n");
    assert_eq!(console.send(&head).await.code, 405, "asking changes nothing");
    console.stop().await;
}

#[tokio::test]
async fn a_page_of_another_site_changes_nothing() {
    let console = Running::start(Scope::Everything, 8).await;
    let path = "/v1/deletions/X/purge";
    let mine = format!("{HERE}origin: http://localhost:9644\r\n");
    assert_eq!(post(&console, path, &mine).await.code, 200);
    let other = format!("{HERE}origin: https://evil.example\r\n");
    for headers in [other.as_str(), "host: evil.example\r\n", ""] {
        let answer = post(&console, path, headers).await;
        // HTTP itself wants a host.
        assert!([400, 403].contains(&answer.code), "{headers}: {answer:?}");
    }
    assert_eq!(post(&console, "/v1/deletions/pause", &other).await.code, 403);
    console.stop().await;
}

#[tokio::test]
async fn beyond_loopback_nothing_is_told_and_nothing_done() {
    let console = Running::start(Scope::HealthOnly, 8).await;
    assert_eq!(console.get("/v1/deletions").await.code, 404);
    assert_eq!(post(&console, "/v1/deletions/X/purge", HERE).await.code, 404);
    console.stop().await;
}
