//! `strandline topic offsets`.

use clap::Args;
use strandline_client::{Client, ClientError, FoundOffset, OffsetAt, OffsetQuestion};
use strandline_model::OffsetPoint;
use strandline_wire::ErrorCode;

use crate::command::names::Names;
use crate::command::place::{Borders, borders, offsets_at, point};
use crate::command::target::{Target, unknown_topic};
use crate::command::{OutputFormat, finish};
use crate::console;
use crate::failure::Failure;
use crate::format::moment;
use crate::table::{Align, Table};

/// Shows where partitions begin and end, the newest record, and where a time lies.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  strandline topic offsets orders\n  strandline topic offsets orders \
                  --at @-1h --format json"
)]
pub(crate) struct Offsets {
    #[command(flatten)]
    names: Names,
    /// Also the offset of a place: @2026-01-15, @-1h, -3, ...
    #[arg(long, value_name = "PLACE", value_parser = point, allow_hyphen_values = true)]
    at: Option<OffsetPoint>,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: OutputFormat,
}

/// A partition with what was found.
struct Found {
    topic: String,
    partition: i32,
    borders: Borders,
    /// The record with the newest timestamp: its offset and its time.
    newest: Option<(i64, i64)>,
    at: Option<i64>,
}

impl Offsets {
    pub(super) async fn run(self, target: &Target) -> Result<(), Failure> {
        let mut client = target.connect().await?;
        let names = self.names.topics(target, &mut client).await?;
        let cluster = client.cluster(None).await.map_err(|error| target.explain(&error))?;
        let mut failures = Vec::new();
        let mut found = Vec::new();
        for name in &names {
            let Some(topic) = cluster.topics.iter().find(|topic| topic.name == *name) else {
                let known = cluster.topics.iter().map(|topic| topic.name.as_str());
                failures.push(unknown_topic(name, known));
                continue;
            };
            let partitions = topic.partitions.iter();
            let partitions: Vec<(String, i32)> =
                partitions.map(|partition| (name.clone(), partition.index)).collect();
            let (all, errors) = self.find(&mut client, &partitions).await;
            found.extend(all);
            failures.extend(errors.iter().map(|error| target.explain(error)));
        }
        self.show(&found);
        finish(failures, self.format)
    }

    /// What is known of each partition, and what could not be found out.
    async fn find(
        &self,
        client: &mut Client,
        partitions: &[(String, i32)],
    ) -> (Vec<Found>, Vec<ClientError>) {
        let (mut all, mut errors) = (Vec::new(), Vec::new());
        let mut open = Vec::new();
        for (place, borders) in partitions.iter().zip(borders(client, partitions).await) {
            match borders {
                Ok(borders) => open.push((place.clone(), borders)),
                Err(error) => errors.push(error),
            }
        }
        let newest: Vec<OffsetQuestion> = open
            .iter()
            .map(|((topic, partition), _)| OffsetQuestion {
                topic: topic.clone(),
                partition: *partition,
                at: OffsetAt::MaxTimestamp,
            })
            .collect();
        let newest = client.offsets(&newest).await;
        let at = match self.at {
            Some(place) => offsets_at(client, &open, place).await.into_iter().map(Some).collect(),
            None => open.iter().map(|_| None).collect::<Vec<_>>(),
        };
        for ((((topic, partition), borders), newest), at) in open.into_iter().zip(newest).zip(at) {
            let newest = newest_record(newest).unwrap_or_else(|error| {
                errors.push(error);
                None
            });
            let at = at.transpose().unwrap_or_else(|error| {
                errors.push(error);
                None
            });
            // The last hundred of ten begin at the start.
            let at = at.map(|at| match self.at {
                Some(OffsetPoint::BeforeEnd(_)) => at.max(borders.start),
                _ => at,
            });
            all.push(Found { topic, partition, borders, newest, at });
        }
        // One trouble of a partition is told once, however many questions met it.
        errors.dedup_by_key(|error| error.to_string());
        (all, errors)
    }

    fn show(&self, found: &[Found]) {
        match self.format {
            OutputFormat::Text => {
                console::data(table(found, self.at.is_some()).render().as_bytes());
            }
            OutputFormat::Json => {
                let found: Vec<_> = found.iter().map(|one| json(one, self.at.is_some())).collect();
                console::line(&serde_json::Value::from(found).to_string());
            }
        }
    }
}

/// The offset and the time of the newest record; `None` where there is none, or where the broker is
/// older than the question (Kafka 3.0).
fn newest_record(
    answer: Result<FoundOffset, ClientError>,
) -> Result<Option<(i64, i64)>, ClientError> {
    let unasked = [ErrorCode::UNSUPPORTED_VERSION, ErrorCode::UNSUPPORTED_FOR_MESSAGE_FORMAT];
    match answer {
        Ok(newest) => Ok((newest.offset >= 0).then_some((newest.offset, newest.timestamp))),
        Err(ClientError::Unsupported { .. }) => Ok(None),
        Err(error) if error.code().is_some_and(|code| unasked.contains(&code)) => Ok(None),
        Err(error) => Err(error),
    }
}

fn table(found: &[Found], with_at: bool) -> Table {
    let mut columns = vec![
        ("TOPIC", Align::Left),
        ("PARTITION", Align::Right),
        ("LOG-START-OFFSET", Align::Right),
        ("HIGH-WATERMARK", Align::Right),
        ("RECORDS", Align::Right),
        ("NEWEST-OFFSET", Align::Right),
        ("NEWEST-TIME", Align::Left),
    ];
    if with_at {
        columns.push(("AT", Align::Right));
    }
    let mut table = Table::new(&columns);
    for one in found {
        let mut row = vec![
            one.topic.clone(),
            one.partition.to_string(),
            one.borders.start.to_string(),
            one.borders.end.to_string(),
            (one.borders.end - one.borders.start).to_string(),
            one.newest.map(|(offset, _)| offset.to_string()).unwrap_or_default(),
            one.newest.and_then(|(_, time)| moment(time)).unwrap_or_default(),
        ];
        if with_at {
            row.push(one.at.map(|at| at.to_string()).unwrap_or_default());
        }
        table.row(row);
    }
    table
}

fn json(one: &Found, with_at: bool) -> serde_json::Value {
    let mut object = serde_json::json!({
        "topic": one.topic,
        "partition": one.partition,
        "log_start_offset": one.borders.start,
        "high_watermark": one.borders.end,
        "newest_offset": one.newest.map(|(offset, _)| offset),
        "newest_timestamp": one.newest.and_then(|(_, time)| moment(time)),
    });
    if with_at {
        object["at_offset"] = one.at.into();
    }
    object
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_went_wrong_with_the_newest_record_is_no_absence_of_it() {
        let found = |offset| Ok(FoundOffset { offset, timestamp: 7 });
        let refused =
            |code| Err(ClientError::Broker { subject: "t-0".to_owned(), code, message: None });
        assert!(matches!(newest_record(found(3)), Ok(Some((3, 7)))));
        assert!(matches!(newest_record(found(-1)), Ok(None)), "an empty partition");
        assert!(matches!(newest_record(refused(ErrorCode::UNSUPPORTED_VERSION)), Ok(None)));
        let failed = newest_record(refused(ErrorCode::KAFKA_STORAGE_ERROR));
        assert!(failed.is_err_and(|error| error.code() == Some(ErrorCode::KAFKA_STORAGE_ERROR)));
    }
}
