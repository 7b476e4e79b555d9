//! `strandline cluster health`.

use std::time::Duration;

use clap::Args;
use serde_json::Value;
use tokio::time::{Instant, sleep};

use crate::command::OutputFormat;
use crate::command::target::Target;
use crate::console;
use crate::failure::{Exit, Failure};
use crate::http;
use crate::remark::Remark;
use crate::table::{Align, Table};

/// Between two questions while waiting.
const PAUSE: Duration = Duration::from_millis(200);
/// Between two lines on how far the broker is.
const TOLD_EVERY: Duration = Duration::from_secs(2);

/// Says whether a Strandline broker is ready for work, and which check fails.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  strandline cluster health\n  strandline cluster health --wait 30 \
                  --http-url http://localhost:9644\n\nExit code 4: it is not ready; 3: it was not \
                  reached."
)]
pub(crate) struct Health {
    /// Waits so many seconds for it to become ready, and tells on stderr how far it is.
    #[arg(long, value_name = "SECONDS")]
    wait: Option<u64>,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: OutputFormat,
}

impl Health {
    pub(super) async fn run(self, target: &Target) -> Result<(), Failure> {
        let base = target.http();
        let deadline = Instant::now() + Duration::from_secs(self.wait.unwrap_or(0));
        let mut tell_at = Instant::now() + TOLD_EVERY;
        loop {
            let answer = http::ask(&base, "/readyz?verbose").await;
            let ready = answer.as_ref().is_ok_and(|(status, _)| status.is_success());
            if !ready && Instant::now() < deadline {
                if Instant::now() >= tell_at {
                    tell_at = Instant::now() + TOLD_EVERY;
                    let why = answer.as_ref().map_or_else(
                        |failure| failure.message.clone(),
                        |(_, answer)| why_not(answer),
                    );
                    Remark::note("waiting", format!("waiting: {why}")).say(self.format);
                }
                sleep(PAUSE).await;
                continue;
            }
            let (_, answer) = answer?;
            self.show(&answer);
            return if ready { Ok(()) } else { Err(not_ready(&answer)) };
        }
    }

    fn show(&self, answer: &Value) {
        match self.format {
            OutputFormat::Json => console::line(&answer.to_string()),
            OutputFormat::Text => console::data(table(answer).render().as_bytes()),
        }
    }
}

fn checks(answer: &Value) -> &[Value] {
    answer["checks"].as_array().map_or(&[], Vec::as_slice)
}

fn table(answer: &Value) -> Table {
    let mut table =
        Table::new(&[("CHECK", Align::Left), ("OK", Align::Left), ("DETAIL", Align::Left)]);
    for check in checks(answer) {
        let text = |field: &str| check[field].as_str().unwrap_or("").to_owned();
        let ok = if check["ok"] == true { "yes" } else { "no" };
        table.row([text("name"), ok.to_owned(), text("detail")]);
    }
    table
}

/// What fails, with what is known of it.
fn why_not(answer: &Value) -> String {
    let failing = checks(answer).iter().filter(|check| check["ok"] != true);
    let text = |check: &Value, field: &str| check[field].as_str().unwrap_or("").to_owned();
    let each = failing.map(|check| format!("{} {}", text(check, "name"), text(check, "detail")));
    each.collect::<Vec<_>>().join(", ")
}

fn not_ready(answer: &Value) -> Failure {
    let failing = checks(answer).iter().filter(|check| check["ok"] != true);
    let names: Vec<&str> = failing.filter_map(|check| check["name"].as_str()).collect();
    let message = format!("the broker is not ready: {}", names.join(", "));
    Failure::new(Exit::Unsatisfied, "not_ready", message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_failing_checks_are_named() {
        let answer = serde_json::json!({"status": "not_ready", "checks": [
            {"name": "recovery", "ok": false, "detail": "under way"},
            {"name": "listeners", "ok": false, "detail": "not yet"},
            {"name": "disk", "ok": true, "detail": "above its floor"},
        ]});
        let failure = not_ready(&answer);
        assert_eq!((failure.exit, failure.code.as_ref()), (Exit::Unsatisfied, "not_ready"));
        assert_eq!(failure.message, "the broker is not ready: recovery, listeners");
        assert_eq!(why_not(&answer), "recovery under way, listeners not yet");
        let text = table(&answer).render();
        assert!(text.contains("recovery   no   under way"), "{text}");
    }
}
