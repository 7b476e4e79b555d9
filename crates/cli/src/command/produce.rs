//! `strandline produce`: stdin to a topic.
//!
//! A thread reads records, the command sends whatever has arrived as one batch for each partition:
//! a person's line goes at once, a file goes in large batches.

use std::collections::BTreeMap;
use std::io::{self, BufReader};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use clap::Args;
use strandline_client::{Acks, ClientError, Producer, ProducerSettings};
use strandline_model::Timestamp;
use strandline_records::{Codec, Compression, Header, NewRecord};
use tokio::sync::mpsc;

use super::partitioner;
use super::target::Target;
use crate::console;
use crate::failure::{Exit, Failure};
use crate::format::{InputFormat, InputRecord, counted};
use crate::progress::Progress;

/// Records that may wait between the reader and the network.
const QUEUE_RECORDS_MAX: usize = 4096;
/// A batch is sent before it grows past this, so that it fits the usual `max.message.bytes`.
const BATCH_BYTES_MAX: usize = 900_000;
/// Times that a batch is sent when the broker can't be reached or asks to try again.
const ATTEMPTS_MAX: u32 = 5;
/// Between two of them.
const ATTEMPT_PAUSE: Duration = Duration::from_millis(300);

/// Appends records from standard input.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  echo hello | strandline produce demo\n  strandline produce demo -f \
                        '%k=%v\\n' < pairs.txt\n  strandline consume demo -f json | strandline \
                        produce -f json copy"
)]
pub(crate) struct Produce {
    /// The topic; may be left out when the input names it.
    topic: Option<String>,
    /// How the input looks: text (a value on each line), json, raw (one value), or a template of
    /// %t %p %d %k %v.
    #[arg(short, long, default_value = "text")]
    format: InputFormat,
    /// The key of every record that has none.
    #[arg(short, long)]
    key: Option<String>,
    /// A header for every record.
    #[arg(short = 'H', long = "header", value_name = "NAME:VALUE")]
    headers: Vec<String>,
    /// The partition; else that of the input, else by key, else in turn.
    #[arg(short, long, value_parser = clap::value_parser!(i32).range(0..))]
    partition: Option<i32>,
    /// What batches are compressed with.
    #[arg(short = 'z', long, value_enum, default_value_t)]
    compression: CodecName,
    /// What an append waits for.
    #[arg(long, value_enum, default_value_t)]
    acks: AcksName,
    /// Produces records without a value where the value is empty: they delete their key.
    #[arg(short = 'Z', long)]
    tombstone: bool,
    /// Says nothing but errors.
    #[arg(short, long)]
    quiet: bool,
}

#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
enum CodecName {
    #[default]
    None,
    Gzip,
    Snappy,
    Lz4,
    Zstd,
}

#[derive(Clone, Copy, Debug, Default, clap::ValueEnum)]
enum AcksName {
    Leader,
    #[default]
    All,
}

/// What goes to one partition next.
type Batch = Vec<InputRecord>;

/// What a run did.
#[derive(Default)]
struct Tally {
    records: u64,
    bytes: u64,
    failed: u64,
}

/// Where records go.
struct Router<'a> {
    producer: Producer<'a>,
    /// Partitions of each topic that was produced to; `None` for one that the next append creates.
    counts: BTreeMap<String, Option<u32>>,
    /// The partition of the next batch without keys.
    turn: u32,
    progress: Progress,
}

impl Produce {
    pub(super) async fn run(self, target: &Target) -> Result<(), Failure> {
        let headers =
            self.headers.iter().map(|text| header(text)).collect::<Result<Vec<_>, _>>()?;
        let mut client = target.connect().await?;
        let settings = ProducerSettings {
            acks: self.acks.into(),
            idempotent: matches!(self.acks, AcksName::All),
            codec: self.compression.into(),
        };
        let producer = Producer::start(&mut client, settings).await;
        let producer = producer.map_err(|error| target.explain(&error))?;
        let progress = if self.quiet {
            Progress::start("producing", 0)
        } else {
            Progress::beside_data("produced", None)
        };
        let turn = std::process::id();
        let mut router = Router { producer, counts: BTreeMap::new(), turn, progress };
        let mut records = read_stdin(self.format.clone());
        let begun = Instant::now();
        let mut tally = Tally::default();
        while let Some(first) = records.recv().await {
            let mut batches: BTreeMap<(String, i32), Batch> = BTreeMap::new();
            let mut waiting_bytes = 0;
            let mut next = Some(first);
            while let Some(read) = next {
                let record = match read {
                    Read::Record(record) => self.completed(record, &headers),
                    Read::Malformed { number, why } => {
                        let words = format!("error: record {number} of the input: {why}");
                        router.progress.say(&words);
                        tally.failed += 1;
                        next = records.try_recv().ok();
                        continue;
                    }
                    Read::Broken(error) => {
                        return Err(Failure::new(
                            Exit::Failed,
                            "input_unreadable",
                            format!("cannot read standard input: {error}"),
                        ));
                    }
                };
                let topic = self.topic.clone().or_else(|| record.topic.clone());
                let topic = topic.ok_or_else(|| {
                    Failure::usage("no topic: neither the command nor the input names one")
                        .hint("strandline produce TOPIC")
                })?;
                let partition = if let Some(named) = self.partition.or(record.partition) {
                    named
                } else {
                    let chosen = router.choose(&topic, record.key.as_deref()).await;
                    chosen.map_err(|error| target.explain(&error))?
                };
                waiting_bytes += size(&record);
                batches.entry((topic, partition)).or_default().push(record);
                next = if waiting_bytes < BATCH_BYTES_MAX { records.try_recv().ok() } else { None };
            }
            router.next_round();
            for ((topic, partition), batch) in batches {
                self.send(&mut router, target, (&topic, partition), &batch, &mut tally).await?;
            }
        }
        drop(router);
        self.finish(&tally, begun.elapsed())
    }

    /// The record with what the command line says about all of them.
    fn completed(&self, mut record: InputRecord, headers: &[(Vec<u8>, Vec<u8>)]) -> InputRecord {
        if record.key.is_none() {
            record.key = self.key.clone().map(String::into_bytes);
        }
        if self.tombstone && record.value.as_ref().is_some_and(Vec::is_empty) {
            record.value = None;
        }
        let added = headers.iter().map(|(name, value)| (name.clone(), Some(value.clone())));
        record.headers.extend(added);
        record.timestamp = record.timestamp.or_else(|| Some(now_ms()));
        record
    }

    async fn send(
        &self,
        router: &mut Router<'_>,
        target: &Target,
        (topic, partition): (&str, i32),
        batch: &Batch,
        tally: &mut Tally,
    ) -> Result<(), Failure> {
        let mut attempt = 1;
        let outcome = loop {
            match router.append(topic, partition, batch).await {
                Err(error) if attempt < ATTEMPTS_MAX && is_worth_another_try(&error) => {
                    attempt += 1;
                    tokio::time::sleep(ATTEMPT_PAUSE).await;
                }
                outcome => break outcome,
            }
        };
        let count = batch.len() as u64;
        match outcome {
            Ok(base_offset) => {
                tally.records += count;
                router.progress.advance(count);
                tally.bytes += batch.iter().map(|record| size(record) as u64).sum::<u64>();
                if console::stdout_is_terminal() && !self.quiet {
                    for index in 0..batch.len() as u64 {
                        let offset = base_offset.saturating_add_unsigned(index);
                        console::line(&format!("{topic}-{partition}@{offset}"));
                    }
                }
                Ok(())
            }
            Err(error) => {
                let failure = target.explain_topic(router.producer.client(), topic, &error).await;
                if failure.exit != Exit::Failed {
                    return Err(failure);
                }
                tally.failed += count;
                router.progress.say(&failure.to_string());
                Ok(())
            }
        }
    }

    fn finish(&self, tally: &Tally, took: Duration) -> Result<(), Failure> {
        let Tally { records, bytes, failed } = tally;
        if *failed > 0 {
            let message =
                format!("{} not produced, {records} produced", counted(*failed, "record"));
            return Err(Failure::new(Exit::Failed, "records_failed", message));
        }
        if !self.quiet && !console::stdout_is_terminal() {
            let seconds = took.as_secs_f64();
            console::say(&format!(
                "{}, {bytes} bytes, {seconds:.1} s",
                counted(*records, "record")
            ));
        }
        Ok(())
    }
}

impl Router<'_> {
    /// The partition of a record that names none.
    async fn choose(&mut self, topic: &str, key: Option<&[u8]>) -> Result<i32, ClientError> {
        let count = if let Some(count) = self.counts.get(topic) {
            *count
        } else {
            let cluster = self.producer.client().cluster(Some(&[topic])).await?;
            let found = cluster.topics.first().map_or(0, |topic| topic.partitions.len());
            let count = u32::try_from(found).ok().filter(|count| *count > 0);
            self.counts.insert(topic.to_owned(), count);
            count
        };
        // Partition 0 exists in every topic.
        let count = count.unwrap_or(1);
        let partition = match key {
            Some(key) => partitioner::of_key(key, count),
            None => self.turn % count,
        };
        Ok(i32::try_from(partition).unwrap_or(0))
    }

    /// Batches without keys take turns; what was unknown in this round is asked for again.
    fn next_round(&mut self) {
        self.turn = self.turn.wrapping_add(1);
        self.counts.retain(|_, count| count.is_some());
    }

    async fn append(
        &mut self,
        topic: &str,
        partition: i32,
        batch: &Batch,
    ) -> Result<i64, ClientError> {
        let headers: Vec<Vec<Header<'_>>> = batch.iter().map(borrowed_headers).collect();
        let records: Vec<NewRecord<'_>> = batch
            .iter()
            .zip(&headers)
            .map(|(record, headers)| NewRecord {
                timestamp: record.timestamp.and_then(Timestamp::from_wire),
                key: record.key.as_deref(),
                value: record.value.as_deref(),
                headers,
            })
            .collect();
        self.producer.send(topic, partition, &records).await.map(|appended| appended.base_offset)
    }
}

/// What the reader found.
enum Read {
    Record(InputRecord),
    Malformed { number: u64, why: String },
    Broken(io::Error),
}

/// Reads standard input in a thread of its own: reading blocks and can't be cancelled.
fn read_stdin(format: InputFormat) -> mpsc::Receiver<Read> {
    let (sender, receiver) = mpsc::channel(QUEUE_RECORDS_MAX);
    std::thread::spawn(move || {
        let mut input = BufReader::with_capacity(1 << 16, io::stdin());
        for number in 1.. {
            let read = match format.read(&mut input) {
                Ok(Some(Ok(record))) => Read::Record(record),
                Ok(Some(Err(why))) => Read::Malformed { number, why },
                Ok(None) => return,
                Err(error) => {
                    // The command ends with the error, or has ended before.
                    let _ = sender.blocking_send(Read::Broken(error));
                    return;
                }
            };
            if sender.blocking_send(read).is_err() {
                return;
            }
        }
    });
    receiver
}

/// Whether the same batch may go through in a moment. Its sequence numbers keep it from being
/// appended twice.
fn is_worth_another_try(error: &ClientError) -> bool {
    match error {
        ClientError::Timeout { .. }
        | ClientError::Broken { .. }
        | ClientError::Unreachable { .. } => true,
        ClientError::Broker { code, .. } => code.is_retriable(),
        ClientError::Address(_)
        | ClientError::Garbled { .. }
        | ClientError::Unsupported { .. }
        | ClientError::Request(_)
        | ClientError::Records { .. } => false,
    }
}

fn header(text: &str) -> Result<(Vec<u8>, Vec<u8>), Failure> {
    let (name, value) =
        text.split_once(':').ok_or_else(|| Failure::usage(format!("-H {text}: not NAME:VALUE")))?;
    Ok((name.as_bytes().to_vec(), value.as_bytes().to_vec()))
}

fn borrowed_headers(record: &InputRecord) -> Vec<Header<'_>> {
    let headers = record.headers.iter();
    headers.map(|(key, value)| Header { key, value: value.as_deref() }).collect()
}

/// About what a record adds to a batch.
fn size(record: &InputRecord) -> usize {
    const OVERHEAD: usize = 24;
    let length = |bytes: &Option<Vec<u8>>| bytes.as_ref().map_or(0, Vec::len);
    let headers: usize =
        record.headers.iter().map(|(name, value)| name.len() + length(value) + 4).sum();
    OVERHEAD + length(&record.key) + length(&record.value) + headers
}

fn now_ms() -> i64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX)
}

impl From<CodecName> for Codec {
    fn from(name: CodecName) -> Self {
        Self::at_default_level(match name {
            CodecName::None => Compression::None,
            CodecName::Gzip => Compression::Gzip,
            CodecName::Snappy => Compression::Snappy,
            CodecName::Lz4 => Compression::Lz4,
            CodecName::Zstd => Compression::Zstd,
        })
    }
}

impl From<AcksName> for Acks {
    fn from(name: AcksName) -> Self {
        match name {
            AcksName::Leader => Self::Leader,
            AcksName::All => Self::All,
        }
    }
}
