//! `strandline deletions show`.

use clap::Args;
use serde_json::Value;

use super::{find, pending};
use crate::command::OutputFormat;
use crate::command::target::Target;
use crate::console;
use crate::failure::Failure;
use crate::format::{between, now};
use crate::table::{Align, Table};

/// Shows all that is known of one deletion: who deleted the topic, how far it is, what failed last.
#[derive(Debug, Args)]
#[command(
    visible_alias = "info",
    after_help = "Examples:\n  strandline deletions show orders\n  strandline deletions show \
                  2nQv8sJPTEm1sWmLDt0zSg --format json\n\nAsks a Strandline broker's HTTP side \
                  (--http-url)."
)]
pub(crate) struct Show {
    /// Its id, or the topic's name where that says enough.
    #[arg(value_name = "ID")]
    id: String,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: OutputFormat,
}

impl Show {
    pub(super) async fn run(self, target: &Target) -> Result<(), Failure> {
        let all = pending(target).await?;
        let one = find(&all, &self.id)?;
        match self.format {
            OutputFormat::Json => console::line(&one.to_string()),
            OutputFormat::Text => {
                console::data(table(one, &now()).render().as_bytes());
                if one["can_undelete"] == true {
                    let id = one["id"].as_str().unwrap_or("");
                    console::say(&format!("bring it back: strandline topic undelete {id}"));
                }
            }
        }
        Ok(())
    }
}

fn table(one: &Value, now: &Value) -> Table {
    let mut table = Table::new(&[("FIELD", Align::Left), ("VALUE", Align::Left)]);
    let text = |field: &str| one[field].as_str().unwrap_or("").to_owned();
    let number = |field: &str| one[field].as_u64().map_or(String::new(), |it| it.to_string());
    let ago = |field: &str| match between(&one[field], now) {
        Some(span) => format!("{} ({span} ago)", text(field)),
        None => String::new(),
    };
    let ahead = |field: &str| match between(now, &one[field]) {
        Some(span) => format!("{} (in {span})", text(field)),
        None => String::new(),
    };
    let by = match (text("client_id"), text("address")) {
        (client, address) if address.is_empty() => client,
        (client, address) => format!("{client} at {address}").trim_start().to_owned(),
    };
    let of = |part: &str, whole: &str| format!("{} of {}", number(part), number(whole));
    for (field, value) in [
        ("id", text("id")),
        ("topic", text("topic")),
        ("engine", text("engine")),
        ("state", text("state")),
        ("deleted at", ago("deleted_at")),
        ("deleted by", by),
        ("grace until", text("grace_until")),
        ("can be undeleted", if one["can_undelete"] == true { "yes" } else { "no" }.to_owned()),
        ("bytes freed", of("freed_bytes", "bytes")),
        ("partitions left", of("partitions_left", "partitions")),
        ("next step at", ahead("next_step_at")),
        ("failures in a row", number("failures")),
        ("last error", text("last_error")),
        ("last error at", ago("last_error_at")),
    ] {
        table.row([field.to_owned(), value]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_that_is_known_is_shown() {
        let one = serde_json::json!({
            "id": "A", "topic": "orders", "engine": "file", "state": "grace", "bytes": 300,
            "freed_bytes": 16, "deleted_at": "2026-11-30T12:00:00Z", "client_id": "admin",
            "address": "10.0.0.7:5", "grace_until": "2026-11-30T12:01:00Z", "can_undelete": true,
            "next_step_at": "2026-11-30T12:01:00Z", "failures": 0, "last_error": null,
            "partitions": 3, "partitions_left": 2, "last_error_at": null,
        });
        let text = table(&one, &"2026-11-30T12:00:20Z".into()).render();
        for line in [
            "deleted at         2026-11-30T12:00:00Z (20s ago)",
            "deleted by         admin at 10.0.0.7:5",
            "can be undeleted   yes",
            "bytes freed        16 of 300",
            "partitions left    2 of 3",
            "next step at       2026-11-30T12:01:00Z (in 40s)",
            "last error         -",
        ] {
            assert!(text.lines().any(|each| each == line), "{line}\n{text}");
        }
    }
}
