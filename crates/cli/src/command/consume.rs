//! `strandline consume`: records of topics to stdout.
//!
//! Reads partitions directly, without a group. A range with an end is read up to the end that it
//! had when the command began, and the command ends; without an end it goes on as records come.

use std::time::{Duration, SystemTime};

use clap::Args;
use strandline_client::{Client, ClientError, ConsumedRecord, OffsetAt, SizeLimits};
use strandline_model::{OffsetPoint, OffsetSpec};
use strandline_wire::ErrorCode;
use tokio::time::{Instant, sleep};

use super::place::{Borders, offset_or_time};
use super::target::Target;
use crate::console;
use crate::failure::Failure;
use crate::format::{OutputFormat, PlacedRecord, counted};
use crate::progress::Progress;
use crate::remark::Remark;

/// How long a partition may be refused with an error that may pass, before the command fails with it.
const REFUSED_MAX: Duration = Duration::from_secs(30);
/// Before a partition that was refused is asked for again.
const REFUSED_PAUSE: Duration = Duration::from_millis(300);

/// What a person at a terminal sees first when no range is given.
const LAST_RECORDS: u64 = 10;

/// Prints records.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  strandline consume demo\n  strandline consume demo -o @-1h:end -f \
                        '%p:%o %k=%v\\n'\n  strandline consume demo -o start -n 100 -f json"
)]
pub(crate) struct Consume {
    /// The topics.
    #[arg(required = true, value_name = "TOPIC")]
    topics: Vec<String>,
    /// Where to begin and end: start, end, 47, +2, -3, 5:9, :end, @2026-01-15, @-1h, @-1h:-10m
    /// [default: the last 10 and then what comes on a terminal, else everything there is].
    #[arg(short, long, allow_hyphen_values = true)]
    offset: Option<OffsetSpec>,
    /// Ends after so many records.
    #[arg(short, long)]
    num: Option<u64>,
    /// Only these partitions.
    #[arg(short, long, value_delimiter = ',')]
    partitions: Vec<i32>,
    /// text, json, value, raw, or a template of %t %p %o %d %k %v %h
    /// [default: text on a terminal, else json].
    #[arg(short, long)]
    format: Option<OutputFormat>,
    /// Goes on as records come, whatever the range's end.
    #[arg(short = 'F', long)]
    follow: bool,
    /// Says nothing but errors.
    #[arg(short, long)]
    quiet: bool,
}

/// Where a partition is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Cursor {
    partition: i32,
    next: i64,
    /// The partition's borders when the command began.
    borders: Borders,
    /// `None` goes on for ever.
    until: Option<i64>,
    /// Since when the broker refuses it.
    refused_since: Option<Instant>,
}

impl Cursor {
    fn is_done(&self) -> bool {
        self.until.is_some_and(|until| self.next >= until)
    }
}

/// What a run did.
struct Printer {
    format: OutputFormat,
    /// How words beside the records are printed.
    words: super::OutputFormat,
    limit: u64,
    printed: u64,
    progress: Progress,
    /// Whether to say, once, that the end was reached and the command waits there.
    tells_of_waiting: bool,
}

impl Consume {
    /// Errors and remarks are JSON when that was asked for, not where it is the default.
    pub(super) fn error_format(&self) -> super::OutputFormat {
        match self.format {
            Some(OutputFormat::Json) => super::OutputFormat::Json,
            _ => super::OutputFormat::Text,
        }
    }

    pub(super) async fn run(self, target: &Target) -> Result<(), Failure> {
        let format = self.format.clone().unwrap_or_else(|| {
            if console::stdout_is_terminal() { OutputFormat::Text } else { OutputFormat::Json }
        });
        let range = self.range();
        let mut client = target.connect().await?;
        let mut reads = Vec::new();
        for topic in &self.topics {
            match self.cursors(&mut client, topic, range).await {
                Ok(cursors) => reads.push((topic.as_str(), cursors)),
                Err(error) => return Err(target.explain_topic(&mut client, topic, &error).await),
            }
        }
        let partitions: usize = reads.iter().map(|(_, cursors)| cursors.len()).sum();
        let mut printer = Printer {
            format,
            words: self.error_format(),
            limit: self.num.unwrap_or(u64::MAX),
            printed: 0,
            progress: self.progress(&reads),
            tells_of_waiting: range.until.is_none() && !self.quiet,
        };
        self.read_all(target, &mut client, &mut reads, &mut printer).await?;
        let Printer { printed, limit, progress, .. } = printer;
        drop(progress);
        if !self.quiet {
            let was_limit = printed == limit;
            let (code, why) = if was_limit {
                ("limit_reached", "as many as asked for")
            } else {
                ("end_reached", "end reached")
            };
            let records = counted(printed, "record");
            let partitions = counted(partitions as u64, "partition");
            let message = format!("{records} from {partitions}, {why}");
            Remark::note(code, message).say(self.error_format());
        }
        Ok(())
    }

    /// How far it is: in offsets up to the end, or in records where there is no end, or an end
    /// before it.
    fn progress(&self, reads: &[(&str, Vec<Cursor>)]) -> Progress {
        if self.quiet {
            return Progress::start("reading", 0);
        }
        let cursors = reads.iter().flat_map(|(_, cursors)| cursors);
        let left = |cursor: &Cursor| Some(cursor.until?.saturating_sub(cursor.next).max(0));
        let left: Option<i64> = cursors.map(left).sum();
        let left = left.and_then(|left| u64::try_from(left).ok());
        let steps = match (left, self.num) {
            (Some(left), Some(most)) => Some(left.min(most)),
            (left, most) => left.or(most),
        };
        Progress::beside_data("reading", steps)
    }

    fn range(&self) -> OffsetSpec {
        let range = self.offset.unwrap_or_else(|| {
            if console::stdout_is_terminal() {
                if !self.quiet {
                    let message = format!(
                        "reading from the last {LAST_RECORDS} of each partition; -o start for all"
                    );
                    Remark::note("last_records", message).say(self.error_format());
                }
                OffsetSpec { from: OffsetPoint::BeforeEnd(LAST_RECORDS), until: None }
            } else {
                OffsetSpec { from: OffsetPoint::Start, until: Some(OffsetPoint::End) }
            }
        });
        OffsetSpec { until: range.until.filter(|_| !self.follow), ..range }
    }

    async fn cursors(
        &self,
        client: &mut Client,
        topic: &str,
        range: OffsetSpec,
    ) -> Result<Vec<Cursor>, ClientError> {
        let cluster = client.cluster(Some(&[topic])).await?;
        let found = cluster.topics.into_iter().next();
        let unknown =
            |code| ClientError::Broker { subject: format!("topic {topic}"), code, message: None };
        let found = found.ok_or_else(|| unknown(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION))?;
        if !found.error.is_none() {
            return Err(unknown(found.error));
        }
        let exists = |index: &&i32| found.partitions.iter().any(|one| one.index == **index);
        if let Some(missing) = self.partitions.iter().find(|index| !exists(index)) {
            return Err(ClientError::Broker {
                subject: format!("{topic}-{missing}"),
                code: ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
                message: Some(format!(
                    "the topic has {}",
                    counted(found.partitions.len() as u64, "partition")
                )),
            });
        }
        let mut cursors = Vec::new();
        let wanted = |index: i32| self.partitions.is_empty() || self.partitions.contains(&index);
        for partition in found.partitions.iter().filter(|partition| wanted(partition.index)) {
            cursors.push(cursor(client, topic, partition.index, range).await?);
        }
        Ok(cursors)
    }

    /// Reads round after round until every cursor is done or enough was printed.
    async fn read_all(
        &self,
        target: &Target,
        client: &mut Client,
        reads: &mut [(&str, Vec<Cursor>)],
        printer: &mut Printer,
    ) -> Result<(), Failure> {
        // With several topics each waits its share, so that none holds the others up.
        let mut limits = SizeLimits::new();
        limits.max_wait_ms /= i32::try_from(reads.len()).unwrap_or(i32::MAX).max(1);
        while printer.printed < printer.limit
            && reads.iter().flat_map(|(_, cursors)| cursors).any(|cursor| !cursor.is_done())
        {
            printer.tell_of_waiting(reads);
            for (topic, cursors) in reads.iter_mut() {
                let outcome = read_once(client, topic, cursors, limits, printer).await;
                if let Err(error) = outcome {
                    return Err(target.explain_topic(client, topic, &error).await);
                }
            }
        }
        Ok(())
    }
}

/// Fetches once from each partition of a topic that is not done, and prints what came.
async fn read_once(
    client: &mut Client,
    topic: &str,
    cursors: &mut [Cursor],
    limits: SizeLimits,
    printer: &mut Printer,
) -> Result<(), ClientError> {
    let positions: Vec<(i32, i64)> = cursors
        .iter()
        .filter(|cursor| !cursor.is_done())
        .map(|cursor| (cursor.partition, cursor.next))
        .collect();
    if positions.is_empty() {
        return Ok(());
    }
    for fetched in client.fetch_partitions(topic, &positions, limits).await? {
        let wanted = |cursor: &&mut Cursor| cursor.partition == fetched.partition;
        let Some(cursor) = cursors.iter_mut().find(wanted) else { continue };
        let batches = match fetched.result {
            Ok(batches) => batches,
            Err(error) if error.code() == Some(ErrorCode::OFFSET_OUT_OF_RANGE) => {
                let start =
                    client.offset(topic, cursor.partition, OffsetAt::Earliest).await?.offset;
                if start <= cursor.next {
                    return Err(error);
                }
                let message = format!(
                    "{topic}-{}: records {} to {start} are gone, going on at {start}",
                    cursor.partition, cursor.next
                );
                let warning = Remark::warning("records_gone", message);
                printer.progress.say(&warning.shown(printer.words));
                cursor.next = start;
                continue;
            }
            // Its leader moved, which the next round learns; or its storage has a fault, which may last.
            Err(error) if error.code().is_some_and(ErrorCode::is_retriable) => {
                let since = *cursor.refused_since.get_or_insert_with(|| {
                    let at = cursor.next;
                    let message = format!("{error} at offset {at}, trying again");
                    let warning = Remark::warning("refused", message);
                    printer.progress.say(&warning.shown(printer.words));
                    Instant::now()
                });
                if since.elapsed() >= REFUSED_MAX {
                    return Err(error);
                }
                sleep(REFUSED_PAUSE).await;
                continue;
            }
            Err(error) => return Err(error),
        };
        cursor.refused_since = None;
        let (records, next) = batches.records()?;
        let until = cursor.until.unwrap_or(i64::MAX);
        let within = records.iter().take_while(|record| record.offset < until);
        printer.print(topic, cursor.partition, within);
        cursor.next = next;
        if printer.printed >= printer.limit {
            return Ok(());
        }
    }
    Ok(())
}

/// What to say to somebody who sees no records; `None` while there are some.
fn waiting(cursors: &[Cursor]) -> Option<String> {
    if cursors.iter().any(|cursor| cursor.next < cursor.borders.end) {
        return None;
    }
    let before = |cursor: &Cursor| cursor.borders.end.abs_diff(cursor.borders.start);
    let before = cursors.iter().map(before).fold(0, u64::saturating_add);
    let partitions = counted(cursors.len() as u64, "partition");
    let records = counted(before, "record");
    Some(format!("waiting at the end of {partitions} ({records} before); -o start reads them"))
}

impl Printer {
    fn tell_of_waiting(&mut self, reads: &[(&str, Vec<Cursor>)]) {
        if self.tells_of_waiting {
            let cursors: Vec<Cursor> =
                reads.iter().flat_map(|(_, cursors)| cursors).copied().collect();
            if let Some(words) = waiting(&cursors) {
                self.progress.say(&Remark::note("waiting", words).shown(self.words));
                self.tells_of_waiting = false;
            }
        }
    }

    fn print<'a>(
        &mut self,
        topic: &str,
        partition: i32,
        records: impl Iterator<Item = &'a ConsumedRecord>,
    ) {
        let mut out = Vec::new();
        let before = self.printed;
        for record in records {
            if self.printed >= self.limit {
                break;
            }
            let placed = PlacedRecord {
                topic,
                partition,
                offset: record.offset,
                timestamp: record.timestamp,
                key: record.key.as_deref(),
                value: record.value.as_deref(),
                headers: &record.headers,
            };
            self.format.write(&placed, self.printed, &mut out);
            self.printed += 1;
        }
        console::data(&out);
        self.progress.advance(self.printed - before);
    }
}

async fn cursor(
    client: &mut Client,
    topic: &str,
    partition: i32,
    range: OffsetSpec,
) -> Result<Cursor, ClientError> {
    let start = client.offset(topic, partition, OffsetAt::Earliest).await?.offset;
    let end = client.offset(topic, partition, OffsetAt::Latest).await?.offset;
    let borders = Borders { start, end };
    let next = offset_of(client, topic, partition, range.from, borders).await?;
    let until = match range.until {
        None => None,
        // Beyond the end there is nothing to wait for: a range with an end ends.
        Some(point) => Some(offset_of(client, topic, partition, point, borders).await?.min(end)),
    };
    Ok(Cursor { partition, next: next.max(start), borders, until, refused_since: None })
}

async fn offset_of(
    client: &mut Client,
    topic: &str,
    partition: i32,
    point: OffsetPoint,
    borders: Borders,
) -> Result<i64, ClientError> {
    let time = match offset_or_time(point, borders, SystemTime::now()) {
        Ok(offset) => return Ok(offset),
        Err(time) => time,
    };
    let found = client.offset(topic, partition, OffsetAt::Time(time)).await?.offset;
    // No record is that young.
    Ok(if found < 0 { borders.end } else { found })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_done_at_its_end() {
        let borders = Borders { start: 0, end: 5 };
        let cursor =
            |next, until| Cursor { partition: 0, next, borders, until, refused_since: None };
        assert!(cursor(5, Some(5)).is_done());
        assert!(!cursor(4, Some(5)).is_done());
        assert!(!cursor(i64::MAX, None).is_done());
    }

    #[test]
    fn who_sees_nothing_is_told_what_lies_before() {
        let cursor = |next, start, end| {
            let borders = Borders { start, end };
            Cursor { partition: 0, next, borders, until: None, refused_since: None }
        };
        assert_eq!(waiting(&[cursor(9, 5, 9), cursor(6, 0, 7)]), None, "a record is to come");
        assert_eq!(
            waiting(&[cursor(9, 5, 9), cursor(7, 0, 7)]).as_deref(),
            Some("waiting at the end of 2 partitions (11 records before); -o start reads them")
        );
    }
}
