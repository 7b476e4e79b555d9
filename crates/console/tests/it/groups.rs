//! Why a group rebalanced last.

use strandline_console::{Group, LastRebalance, Scope};
use strandline_model::Timestamp;

use crate::Running;

/// What the status of the tests knows of `name`.
pub(crate) fn group(name: &str) -> Result<Option<Group>, String> {
    let group = |last_rebalance| Group {
        cluster_id: "the-cluster".to_owned(),
        group: name.to_owned(),
        state: "Stable",
        generation: 8,
        last_rebalance,
    };
    match name {
        "calm" => Ok(Some(group(None))),
        "bill/ing" => Ok(Some(group(Some(LastRebalance {
            reason: "member_left",
            at: Timestamp::from_millis(1_700_000_000_500),
            generation: 7,
            member_id: Some("app-1-x".to_owned()),
            instance_id: None,
            client_id: Some("app-1".to_owned()),
            host: Some("10.0.0.7".to_owned()),
            client_reason: Some("poll timeout".to_owned()),
        })))),
        "slow" => Err("the coordinator is not available".to_owned()),
        _ => Ok(None),
    }
}

#[tokio::test]
async fn a_group_is_told_of_with_why_it_rebalanced_last() {
    let console = Running::start(Scope::Everything, 8).await;
    let answer = console.get("/v1/groups/bill%2Fing").await;
    assert_eq!(answer.code, 200);
    assert_eq!(
        answer.body,
        concat!(
            r#"{"cluster_id":"the-cluster","group":"bill/ing","state":"Stable","generation":8,"#,
            r#""last_rebalance":{"reason":"member_left","at":"2023-11-14T22:13:20.5Z","#,
            r#""generation":7,"member_id":"app-1-x","instance_id":null,"client_id":"app-1","#,
            r#""host":"10.0.0.7","client_reason":"poll timeout"}}"#,
        )
    );
    let answer = console.get("/v1/groups/calm").await;
    assert!(answer.body.ends_with(r#""last_rebalance":null}"#), "{answer:?}");
    let answer = console.get("/v1/groups/none").await;
    assert_eq!((answer.code, &*answer.body), (404, r#"{"error":"group none does not exist"}"#));
    assert_eq!(console.get("/v1/groups/slow").await.code, 503);
    console.stop().await;
}

#[tokio::test]
async fn beyond_loopback_nobody_learns_of_groups() {
    let console = Running::start(Scope::HealthOnly, 8).await;
    assert_eq!(console.get("/v1/groups/calm").await.code, 404);
    console.stop().await;
}
