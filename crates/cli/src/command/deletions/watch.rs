//! Follows pending deletions until there are none.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::Value;
use tokio::time::sleep;

use super::{list, pending};
use crate::command::OutputFormat;
use crate::command::target::Target;
use crate::console;
use crate::failure::Failure;

/// From one look to the next.
const PAUSE: Duration = Duration::from_millis(500);

/// Follows what is pending, of which `all` was printed already.
pub(super) async fn until_nothing_is_pending(
    target: &Target,
    mut all: Vec<Value>,
    format: OutputFormat,
) -> Result<(), Failure> {
    let bar = (format == OutputFormat::Text && console::stderr_is_terminal()).then(bar);
    let mut seen = Seen::default();
    while !all.is_empty() {
        seen.look(&all);
        if let Some(bar) = &bar {
            bar.set_length(seen.bytes);
            bar.set_position(seen.freed(&all));
            bar.set_message(message(&all));
        }
        sleep(PAUSE).await;
        let now = pending(target).await?;
        // Spans move all the time: only what is said beside them counts as a change.
        if bar.is_none() && changed(&all, &now) {
            list::print(&now, format);
        }
        all = now;
    }
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    if format == OutputFormat::Text {
        console::say("nothing is pending");
    }
    Ok(())
}

/// What was there since the beginning: a deletion that is done is not told any more.
#[derive(Debug, Default)]
struct Seen {
    ids: std::collections::BTreeSet<String>,
    bytes: u64,
}

impl Seen {
    fn look(&mut self, all: &[Value]) {
        for one in all {
            if self.ids.insert(one["id"].as_str().unwrap_or("").to_owned()) {
                self.bytes += one["bytes"].as_u64().unwrap_or(0);
            }
        }
    }

    fn freed(&self, all: &[Value]) -> u64 {
        let left: u64 = all.iter().filter_map(|one| one["left_bytes"].as_u64()).sum();
        self.bytes.saturating_sub(left)
    }
}

fn bar() -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
    let style = ProgressStyle::with_template(
        "{wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}  {msg}",
    );
    bar.set_style(style.expect("the template is one"));
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

/// `3 pending: 1 grace, 2 running`.
fn message(all: &[Value]) -> String {
    let mut states: std::collections::BTreeMap<&str, usize> = std::collections::BTreeMap::new();
    for one in all {
        *states.entry(one["state"].as_str().unwrap_or("")).or_default() += 1;
    }
    let states: Vec<String> =
        states.iter().map(|(state, count)| format!("{count} {state}")).collect();
    format!("{} pending: {}", all.len(), states.join(", "))
}

fn changed(before: &[Value], now: &[Value]) -> bool {
    let told = |all: &[Value]| -> Vec<Value> {
        let fields = ["id", "state", "freed_bytes", "failures", "partitions_left"];
        let one = |one: &Value| fields.iter().map(|field| one[*field].clone()).collect();
        all.iter().map(one).collect()
    };
    told(before) != told(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(id: &str, state: &str, bytes: u64, left: u64) -> Value {
        serde_json::json!({
            "id": id, "state": state, "bytes": bytes, "left_bytes": left,
            "freed_bytes": bytes - left,
        })
    }

    #[test]
    fn progress_counts_what_is_not_told_any_more() {
        let mut seen = Seen::default();
        let first = [one("A", "running", 100, 60), one("B", "grace", 50, 50)];
        seen.look(&first);
        assert_eq!((seen.bytes, seen.freed(&first)), (150, 40));
        assert_eq!(message(&first), "2 pending: 1 grace, 1 running");
        let then = [one("B", "grace", 50, 50), one("C", "grace", 10, 10)];
        seen.look(&then);
        assert_eq!((seen.bytes, seen.freed(&then)), (160, 100));
    }

    #[test]
    fn a_list_is_shown_again_when_something_happened() {
        let before = [one("A", "running", 100, 60)];
        assert!(!changed(&before, &before));
        assert!(changed(&before, &[one("A", "running", 100, 40)]));
        assert!(changed(&before, &[one("A", "paused", 100, 60)]));
        assert!(changed(&before, &[]));
    }
}
