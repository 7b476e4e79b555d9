//! Why a group rebalanced last: what a Strandline broker tells over HTTP, and Kafka's protocol has no
//! words for.

use std::time::Duration;

use hyper::StatusCode;
use serde_json::Value;
use strandline_client::Client;
use tokio::time::timeout;

use crate::command::target::Target;
use crate::format::between;
use crate::http;

/// A broker that takes longer is not asked again.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(2);

/// Asks the broker at the HTTP address, as long as it answers and is of the cluster that is talked to.
pub(super) struct Rebalances {
    base: String,
    /// `None`: nobody is asked any more.
    cluster_id: Option<String>,
}

impl Rebalances {
    /// Of the cluster that `client` talks to.
    pub(super) async fn of(target: &Target, client: &mut Client) -> Self {
        // Without an id nothing is shown: what comes by Kafka's protocol is shown all the same.
        let cluster_id = client.cluster(Some(&[])).await.ok().and_then(|cluster| cluster.id);
        Self { base: target.http(), cluster_id }
    }

    /// Why the group left its last generation; null when that is not known.
    pub(super) async fn last(&mut self, group: &str) -> Value {
        let Some(cluster_id) = &self.cluster_id else { return Value::Null };
        let path = format!("/v1/groups/{}", http::escaped(group));
        match timeout(ANSWER_TIME_MAX, http::ask(&self.base, &path)).await {
            Ok(Ok((StatusCode::OK, mut answer))) if answer["cluster_id"] == **cluster_id => {
                answer["last_rebalance"].take()
            }
            // It is gone meanwhile, or its coordinator does not answer now.
            Ok(Ok((StatusCode::NOT_FOUND | StatusCode::SERVICE_UNAVAILABLE, _))) => Value::Null,
            // Nobody is there, it is another program, or a broker of another cluster.
            Ok(_) | Err(_) => {
                self.cluster_id = None;
                Value::Null
            }
        }
    }
}

/// A line for people; `None` when nothing is known.
pub(super) fn line(rebalance: &Value, now: &Value) -> Option<String> {
    let text = |field: &str| rebalance[field].as_str();
    let mut line = format!("last rebalance  {}", text("reason")?);
    if let Some(span) = between(&rebalance["at"], now) {
        line += &format!("  {span} ago");
    }
    if let Some(generation) = rebalance["generation"].as_i64() {
        line += &format!("  generation {generation}");
    }
    for (label, field) in [
        ("member", "member_id"),
        ("instance", "instance_id"),
        ("client", "client_id"),
        ("host", "host"),
    ] {
        if let Some(value) = text(field) {
            line += &format!("  {label} {value}");
        }
    }
    if let Some(said) = text("client_reason") {
        line += &format!("  \"{said}\"");
    }
    Some(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_what_is_known() {
        let now = Value::from("1970-01-01T00:01:06Z");
        let rebalance = serde_json::json!({
            "reason": "member_left", "at": "1970-01-01T00:00:01Z", "generation": 7,
            "member_id": "app-1-x", "instance_id": null, "client_id": "app-1",
            "host": "10.0.0.7", "client_reason": "poll timeout",
        });
        assert_eq!(
            line(&rebalance, &now).as_deref(),
            Some(
                "last rebalance  member_left  1m5s ago  generation 7  member app-1-x  client app-1  \
                 host 10.0.0.7  \"poll timeout\""
            )
        );
        let of_group = serde_json::json!({"reason": "group_too_large", "member_id": null});
        assert_eq!(line(&of_group, &now).as_deref(), Some("last rebalance  group_too_large"));
        assert_eq!(line(&Value::Null, &now), None);
    }

    #[tokio::test]
    async fn a_broker_that_is_not_there_is_asked_once() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let base = format!("http://{}", listener.local_addr().expect("bound"));
        drop(listener);
        let mut rebalances = Rebalances { base, cluster_id: Some("c".to_owned()) };
        assert_eq!(rebalances.last("g").await, Value::Null);
        assert_eq!(rebalances.cluster_id, None);
    }
}
