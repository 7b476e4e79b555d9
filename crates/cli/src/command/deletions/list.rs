//! `strandline deletions list`.

use clap::Args;
use serde_json::Value;

use super::{pending, watch};
use crate::command::OutputFormat;
use crate::command::target::Target;
use crate::console;
use crate::failure::Failure;
use crate::format::{between, counted, now};
use crate::table::{Align, Table};

/// Lists deleted topics whose bytes are not all gone: what waits, until when, and how far it is.
#[derive(Debug, Args)]
#[command(
    visible_alias = "ls",
    after_help = "Examples:\n  strandline deletions list\n  strandline deletions list --watch\n  \
                  strandline deletions list --format json\n\nSTATE is grace, queued, running, \
                  backing_off or paused; strandline explain STATE says what it means. Asks a \
                  Strandline broker's HTTP side (--http-url)."
)]
pub(crate) struct List {
    /// Follows them until nothing is pending: a bar on a terminal, else the list whenever it changes.
    #[arg(short, long)]
    watch: bool,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: OutputFormat,
}

impl List {
    pub(super) async fn run(self, target: &Target) -> Result<(), Failure> {
        let all = pending(target).await?;
        print(&all, self.format);
        if self.watch {
            return watch::until_nothing_is_pending(target, all, self.format).await;
        }
        if self.format == OutputFormat::Text {
            for line in notes(&all) {
                console::say(&line);
            }
        }
        Ok(())
    }
}

/// The list, as data.
pub(super) fn print(all: &[Value], format: OutputFormat) {
    match format {
        OutputFormat::Json => console::line(&Value::from(all).to_string()),
        OutputFormat::Text => console::data(table(all, &now()).render().as_bytes()),
    }
}

/// What the table has no room for.
pub(super) fn notes(all: &[Value]) -> Vec<String> {
    let failed = all.iter().filter(|one| one["state"] == "backing_off");
    let mut notes: Vec<String> = failed
        .map(|one| {
            let text = |field: &str| one[field].as_str().unwrap_or("").to_owned();
            format!("{} ({}): {}", text("topic"), text("id"), text("last_error"))
        })
        .collect();
    let left = |all: &mut dyn Iterator<Item = &Value>| {
        all.filter_map(|one| one["left_bytes"].as_u64()).sum::<u64>()
    };
    let summary = format!(
        "{} pending, {} left",
        counted(all.len() as u64, "deletion"),
        counted(left(&mut all.iter()), "byte"),
    );
    notes.push(summary);
    notes
}

fn table(all: &[Value], now: &Value) -> Table {
    let mut table = Table::new(&[
        ("ID", Align::Left),
        ("TOPIC", Align::Left),
        ("STATE", Align::Left),
        ("DELETED", Align::Right),
        ("BYTES", Align::Right),
        ("FREED", Align::Right),
        ("NEXT", Align::Left),
        ("FAILURES", Align::Right),
        ("BY", Align::Left),
    ]);
    let number = |one: &Value, field: &str| {
        one[field].as_u64().map(|number| number.to_string()).unwrap_or_default()
    };
    for one in all {
        let text = |field: &str| one[field].as_str().unwrap_or("").to_owned();
        let next = between(now, &one["next_step_at"]).map(|span| format!("in {span}"));
        table.row([
            text("id"),
            text("topic"),
            text("state"),
            between(&one["deleted_at"], now).unwrap_or_default(),
            number(one, "bytes"),
            number(one, "freed_bytes"),
            next.unwrap_or_default(),
            number(one, "failures"),
            text("client_id"),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_is_told_with_when_and_why() {
        let all = serde_json::json!([
            {
                "id": "A", "topic": "orders", "state": "grace", "bytes": 300, "freed_bytes": 0,
                "left_bytes": 300, "deleted_at": "2026-11-30T12:00:00Z",
                "next_step_at": "2026-11-30T12:01:00Z", "failures": 0, "client_id": "admin",
            },
            {
                "id": "B", "topic": "clicks", "state": "backing_off", "bytes": 90, "freed_bytes": 50,
                "left_bytes": 40, "deleted_at": "2026-11-30T11:00:00Z",
                "next_step_at": null, "failures": 3, "client_id": "", "last_error": "disk is gone",
            },
        ]);
        let all = all.as_array().expect("an array");
        let text = table(all, &"2026-11-30T12:00:20Z".into()).render();
        let rows: Vec<Vec<&str>> =
            text.lines().skip(1).map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(
            rows,
            [
                vec!["A", "orders", "grace", "20s", "300", "0", "in", "40s", "0", "admin"],
                vec!["B", "clicks", "backing_off", "1h", "90", "50", "-", "3", "-"],
            ]
        );
        assert_eq!(notes(all), ["clicks (B): disk is gone", "2 deletions pending, 340 bytes left"]);
        assert_eq!(notes(&[]), ["0 deletions pending, 0 bytes left"]);
    }
}
