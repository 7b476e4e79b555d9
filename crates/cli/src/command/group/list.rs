//! `strandline group list`.

use clap::Args;
use strandline_client::{Client, ListedGroup};

use super::called;
use super::lag::{self, Totals};
use crate::command::target::Target;
use crate::command::{OutputFormat, finish};
use crate::console;
use crate::failure::Failure;
use crate::format::span;
use crate::progress::Progress;
use crate::table::{Align, Table};

/// The states that groups of any type have.
const STATES: [&str; 8] = [
    "Empty",
    "PreparingRebalance",
    "CompletingRebalance",
    "Assigning",
    "Reconciling",
    "Stable",
    "NotReady",
    "Dead",
];

/// Lists groups.
#[derive(Debug, Args)]
#[command(
    visible_alias = "ls",
    after_help = "Examples:\n  strandline group list\n  strandline group list --lag --state Stable"
)]
pub(crate) struct List {
    /// Also tells how far each is behind, in records and in time: some requests for each group.
    #[arg(long)]
    lag: bool,
    /// Only groups in this state: Empty, Stable, PreparingRebalance, ...
    #[arg(long, value_name = "STATE", ignore_case = true, hide_possible_values = true,
          value_parser = STATES)]
    state: Option<String>,
    /// Only groups of this type: classic, consumer, share, streams.
    #[arg(long = "type", value_name = "TYPE", ignore_case = true, hide_possible_values = true,
          value_parser = ["classic", "consumer", "share", "streams"])]
    kind: Option<String>,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: OutputFormat,
}

impl List {
    pub(super) async fn run(self, target: &Target) -> Result<(), Failure> {
        let mut client = target.connect().await?;
        let mut groups = client.list_groups().await.map_err(|error| target.explain(&error))?;
        let is = |wanted: &Option<String>, value: &str| {
            wanted.as_ref().is_none_or(|wanted| wanted.eq_ignore_ascii_case(value))
        };
        groups.retain(|group| is(&self.state, &group.state) && is(&self.kind, &group.kind));
        let mut failures = Vec::new();
        let lags = if self.lag {
            Some(lags(target, &mut client, &groups, &mut failures).await?)
        } else {
            None
        };
        match self.format {
            OutputFormat::Text => {
                console::data(table(&groups, lags.as_deref()).render().as_bytes());
            }
            OutputFormat::Json => {
                let groups: Vec<_> = groups
                    .iter()
                    .enumerate()
                    .map(|(index, group)| json(group, lags.as_ref().map(|lags| &lags[index])))
                    .collect();
                console::line(&serde_json::Value::from(groups).to_string());
            }
        }
        finish(failures, self.format)
    }
}

async fn lags(
    target: &Target,
    client: &mut Client,
    groups: &[ListedGroup],
    failures: &mut Vec<Failure>,
) -> Result<Vec<Totals>, Failure> {
    let progress = Progress::start("reading lags", groups.len());
    let mut lags = Vec::new();
    for group in groups {
        // Other kinds do not commit offsets as consumers do.
        let totals = if matches!(group.kind.as_str(), "" | "classic" | "consumer") {
            let offsets = lag::of_group(client, &group.id, &[], true).await;
            let offsets = offsets.map_err(|error| target.explain(&error))?;
            let troubles = offsets.iter().filter_map(|one| one.trouble.as_ref());
            failures.extend(troubles.map(|error| target.explain(error)));
            lag::totals(&offsets)
        } else {
            Totals::default()
        };
        lags.push(totals);
        progress.step();
    }
    Ok(lags)
}

fn table(groups: &[ListedGroup], lags: Option<&[Totals]>) -> Table {
    let mut columns = vec![
        ("GROUP", Align::Left),
        ("TYPE", Align::Left),
        ("PROTOCOL", Align::Left),
        ("STATE", Align::Left),
    ];
    if lags.is_some() {
        columns.extend([("LAG", Align::Right), ("TIME-LAG", Align::Right)]);
    }
    let mut table = Table::new(&columns);
    for (index, group) in groups.iter().enumerate() {
        let mut row = vec![
            called(&group.id).to_owned(),
            group.kind.clone(),
            group.protocol_type.clone(),
            group.state.clone(),
        ];
        if let Some(lags) = lags {
            row.push(lags[index].records.map(|lag| lag.to_string()).unwrap_or_default());
            row.push(lags[index].ms.map(span).unwrap_or_default());
        }
        table.row(row);
    }
    table
}

fn json(group: &ListedGroup, lag: Option<&Totals>) -> serde_json::Value {
    let mut object = serde_json::json!({
        "group": group.id,
        "type": group.kind,
        "protocol_type": group.protocol_type,
        "state": group.state,
    });
    if let Some(lag) = lag {
        object["lag_records"] = lag.records.into();
        object["lag_ms"] = lag.ms.into();
    }
    object
}
