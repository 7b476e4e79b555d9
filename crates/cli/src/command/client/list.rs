//! `strandline client list`.

use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use serde_json::Value;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use crate::command::OutputFormat;
use crate::command::target::Target;
use crate::console;
use crate::failure::{Exit, Failure};
use crate::format::{counted, span};
use crate::http;
use crate::table::{Align, Table};

/// Shows who is connected to a Strandline broker: with which library, and what address it was told.
#[derive(Debug, Args)]
#[command(
    visible_alias = "ls",
    after_help = "Examples:\n  strandline client list\n  strandline client list --http-url \
                  http://localhost:9644 --format json\n\nSTATE is connected; or stranded for a \
                  client that asks for addresses again and again and never goes to one of them."
)]
pub(crate) struct List {
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: OutputFormat,
}

impl List {
    pub(super) async fn run(self, target: &Target) -> Result<(), Failure> {
        let answer = http::get_json(&target.http(), "/v1/clients").await?;
        match self.format {
            OutputFormat::Json => console::line(&answer.to_string()),
            OutputFormat::Text => {
                let clients = answer.as_array().ok_or_else(|| {
                    Failure::new(Exit::Failed, "not_strandline", "the answer is no list of clients")
                })?;
                console::data(table(clients, SystemTime::now()).render().as_bytes());
                let stranded = |client: &&Value| client["stranded"] == true;
                let stranded = clients.iter().filter(stranded).count();
                if stranded > 0 {
                    let clients = counted(stranded as u64, "client");
                    console::say(&format!(
                        "{clients} stranded: the address under TOLD does not work where the client \
                         is; see  strandline explain advertised.listeners"
                    ));
                }
            }
        }
        Ok(())
    }
}

fn table(clients: &[Value], now: SystemTime) -> Table {
    let mut table = Table::new(&[
        ("CLIENT-ID", Align::Left),
        ("SOFTWARE", Align::Left),
        ("VERSION", Align::Left),
        ("ADDRESS", Align::Left),
        ("TOLD", Align::Left),
        ("CONNECTED", Align::Right),
        ("REQUESTS", Align::Right),
        ("LAST", Align::Left),
        ("STATE", Align::Left),
    ]);
    let text = |client: &Value, field: &str| client[field].as_str().unwrap_or("").to_owned();
    for client in clients {
        let connected = client["connected_at"].as_str().and_then(|time| since(time, now));
        table.row([
            text(client, "client_id"),
            text(client, "software_name"),
            text(client, "software_version"),
            text(client, "address"),
            text(client, "told"),
            connected.map(span).unwrap_or_default(),
            client["requests"].as_u64().map(|count| count.to_string()).unwrap_or_default(),
            text(client, "last_request"),
            state(client).to_owned(),
        ]);
    }
    table
}

fn state(client: &Value) -> &'static str {
    match (client["connected"] == true, client["stranded"] == true) {
        (true, false) => "connected",
        (true, true) => "stranded",
        (false, true) => "stranded,gone",
        (false, false) => "gone",
    }
}

/// Milliseconds from an RFC 3339 time until now.
fn since(time: &str, now: SystemTime) -> Option<u64> {
    let then = OffsetDateTime::parse(time, &Rfc3339).ok()?.unix_timestamp_nanos() / 1_000_000;
    let now = i128::try_from(now.duration_since(UNIX_EPOCH).ok()?.as_millis()).ok()?;
    u64::try_from((now - then).max(0)).ok()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn clients_are_rows() {
        let clients = serde_json::json!([{
            "client_id": "app-1",
            "software_name": "librdkafka",
            "software_version": "2.0.2",
            "address": "10.0.0.7:5",
            "told": "kafka:9092",
            "connected_at": "1970-01-01T00:00:01Z",
            "requests": 12,
            "last_request": "Metadata",
            "connected": true,
            "stranded": true,
        }]);
        let clients = clients.as_array().expect("an array");
        let text = table(clients, UNIX_EPOCH + Duration::from_secs(66)).render();
        let row = text.lines().nth(1).expect("a row");
        let words: Vec<&str> = row.split_whitespace().collect();
        let expected = [
            "app-1",
            "librdkafka",
            "2.0.2",
            "10.0.0.7:5",
            "kafka:9092",
            "1m5s",
            "12",
            "Metadata",
            "stranded",
        ];
        assert_eq!(words, expected);
    }
}
