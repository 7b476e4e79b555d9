//! `strandline segment dump`: what stands in `.log` files, read offline.
//!
//! The files of the file engine and of Apache Kafka are the same bytes, so this reads both. A batch
//! at a time is in memory, however large the file.

use std::fs::File;
use std::io::{self, BufReader, Read};

use clap::{Args, Subcommand};
use strandline_model::ByteCount;
use strandline_records::{BatchView, Compression, HEADER_BYTES, Record, records};

use super::OutputFormat;
use crate::console;
use crate::failure::{Exit, Failure};
use crate::progress::Progress;

/// The bytes before the length that a batch's length does not count.
const LENGTH_ENDS_AT: usize = 12;
/// A batch that claims more is damage, not data.
const BATCH_BYTES_MAX: usize = 1 << 30;
/// How much a batch may grow when it is decompressed.
const DECOMPRESSED_MAX: ByteCount = ByteCount::gib(1);

/// Reads segment files.
#[derive(Debug, Subcommand)]
pub(crate) enum Segment {
    Dump(Dump),
}

/// Prints the batches of .log files and checks them.
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  strandline segment dump --records 00000000000000000000.log")]
pub(crate) struct Dump {
    /// The files.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<String>,
    /// Also prints the records.
    #[arg(long)]
    records: bool,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    format: OutputFormat,
}

/// Damage: where, and what is wrong.
#[derive(Debug, PartialEq, Eq)]
struct Damage {
    position: u64,
    why: String,
}

impl Segment {
    pub(super) fn format(&self) -> OutputFormat {
        match self {
            Self::Dump(dump) => dump.format,
        }
    }

    pub(super) fn run(self) -> Result<(), Failure> {
        match self {
            Self::Dump(dump) => dump.run(),
        }
    }
}

impl Dump {
    fn run(self) -> Result<(), Failure> {
        let mut damaged = Vec::new();
        for path in &self.files {
            if self.format == OutputFormat::Text && self.files.len() > 1 {
                console::line(path);
            }
            let unreadable = |error: io::Error| {
                Failure::new(Exit::Failed, "unreadable", format!("cannot read {path}: {error}"))
            };
            let file = File::open(path).map_err(unreadable)?;
            let size = file.metadata().map_err(unreadable)?.len();
            let mut input = BufReader::with_capacity(1 << 16, file);
            let progress = Progress::beside_data("reading", Some(size));
            let print = |position, batch: &BatchView<'_>| {
                self.print(position, batch)?;
                progress.advance(batch.bytes().len() as u64);
                Ok(())
            };
            if let Some(damage) = walk(&mut input, size, print).map_err(unreadable)? {
                damaged.push(format!("{path}: {} at byte {}", damage.why, damage.position));
            }
        }
        match damaged.as_slice() {
            [] => Ok(()),
            faults => Err(Failure::new(Exit::Unsatisfied, "damaged", faults.join("\nerror: "))),
        }
    }

    fn print(&self, position: u64, batch: &BatchView<'_>) -> Result<(), String> {
        let mut lines = vec![match self.format {
            OutputFormat::Text => batch_text(position, batch),
            OutputFormat::Json => batch_json(position, batch).to_string(),
        }];
        if self.records {
            let bytes = batch.decompressed(DECOMPRESSED_MAX).map_err(|error| error.to_string())?;
            for record in records(&bytes, batch.records_count()) {
                let record = record.map_err(|error| error.to_string())?;
                lines.push(match self.format {
                    OutputFormat::Text => record_text(batch, &record),
                    OutputFormat::Json => record_json(batch, &record).to_string(),
                });
            }
        }
        console::line(&lines.join("\n"));
        Ok(())
    }
}

/// Hands every batch to `print`, up to the end or the first damage.
fn walk(
    input: &mut impl Read,
    size: u64,
    mut print: impl FnMut(u64, &BatchView<'_>) -> Result<(), String>,
) -> io::Result<Option<Damage>> {
    let mut position = 0;
    while position < size {
        let left = size - position;
        let damage = |why: &str| Ok(Some(Damage { position, why: why.to_owned() }));
        if left < LENGTH_ENDS_AT as u64 {
            return damage("a batch is cut short");
        }
        let mut bytes = vec![0; LENGTH_ENDS_AT];
        input.read_exact(&mut bytes)?;
        let length = i32::from_be_bytes(bytes[8..].try_into().expect("four bytes"));
        let whole = usize::try_from(length).ok().map(|length| length + LENGTH_ENDS_AT);
        let whole = match whole {
            Some(whole) if (HEADER_BYTES..=BATCH_BYTES_MAX).contains(&whole) => whole,
            Some(_) | None => return damage(&format!("a batch claims {length} bytes")),
        };
        if whole as u64 > left {
            return damage("a batch is cut short");
        }
        bytes.resize(whole, 0);
        input.read_exact(&mut bytes[LENGTH_ENDS_AT..])?;
        let checked = BatchView::exactly(&bytes)
            .and_then(|batch| batch.check_crc().map(|()| batch))
            .map_err(|error| error.to_string());
        match checked.and_then(|batch| print(position, &batch)) {
            Ok(()) => position += whole as u64,
            Err(why) => return damage(&why),
        }
    }
    Ok(None)
}

fn batch_text(position: u64, batch: &BatchView<'_>) -> String {
    let attributes = batch.attributes();
    let mut line = format!(
        "position {position}  base_offset {}  last_offset {}  count {}  size {}  codec {}",
        batch.raw_base_offset(),
        last_offset(batch),
        batch.records_count(),
        batch.bytes().len(),
        codec(batch),
    );
    line += &format!("  leader_epoch {}", epoch(batch));
    if let Some(time) = batch.max_timestamp() {
        line += &format!("  max_timestamp {time}");
    }
    if let Some(producer) = batch.producer() {
        line += &format!("  producer {} epoch {}", producer.id, producer.epoch);
        if let Some(sequence) = producer.base_sequence {
            line += &format!("  sequence {sequence}");
        }
    }
    if attributes.is_transactional() {
        line += "  transactional";
    }
    if attributes.is_control() {
        line += "  control";
    }
    line
}

fn batch_json(position: u64, batch: &BatchView<'_>) -> serde_json::Value {
    serde_json::json!({
        "position": position,
        "base_offset": batch.raw_base_offset(),
        "last_offset": last_offset(batch),
        "records_count": batch.records_count(),
        "size_bytes": batch.bytes().len(),
        "codec": codec(batch),
        "leader_epoch": epoch(batch),
        "max_timestamp": batch.max_timestamp().map(strandline_model::Timestamp::as_millis),
        "producer_id": batch.producer().map(|producer| producer.id.get()),
        "producer_epoch": batch.producer().map(|producer| producer.epoch.get()),
        "base_sequence": batch
            .producer()
            .and_then(|producer| producer.base_sequence)
            .map(strandline_model::Sequence::get),
        "transactional": batch.attributes().is_transactional(),
        "control": batch.attributes().is_control(),
    })
}

fn last_offset(batch: &BatchView<'_>) -> i64 {
    batch.raw_base_offset().saturating_add(i64::from(batch.last_offset_delta()))
}

fn epoch(batch: &BatchView<'_>) -> i32 {
    batch.leader_epoch().map_or(-1, strandline_model::LeaderEpoch::get)
}

fn codec(batch: &BatchView<'_>) -> &'static str {
    match batch.attributes().compression() {
        Some(Compression::None) => "none",
        Some(Compression::Gzip) => "gzip",
        Some(Compression::Snappy) => "snappy",
        Some(Compression::Lz4) => "lz4",
        Some(Compression::Zstd) => "zstd",
        None => "unknown",
    }
}

fn record_text(batch: &BatchView<'_>, record: &Record<'_>) -> String {
    let shown = |bytes: Option<&[u8]>| {
        bytes.map_or("-".to_owned(), |bytes| format!("\"{}\"", bytes.escape_ascii()))
    };
    let offset = batch.offset_of(record).map_or(-1, strandline_model::Offset::get);
    let timestamp = batch.timestamp_of(record).map_or(-1, strandline_model::Timestamp::as_millis);
    let mut line =
        format!("  {offset}  {timestamp}  {}  {}", shown(record.key), shown(record.value));
    for header in record.headers {
        line += &format!("  {}:{}", header.key.escape_ascii(), shown(header.value));
    }
    line
}

fn record_json(batch: &BatchView<'_>, record: &Record<'_>) -> serde_json::Value {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let header = |header: strandline_records::Header<'_>| {
        serde_json::json!([text(header.key), header.value.map(text)])
    };
    serde_json::json!({
        "offset": batch.offset_of(record).map(strandline_model::Offset::get),
        "timestamp": batch.timestamp_of(record).map(strandline_model::Timestamp::as_millis),
        "key": record.key.map(text),
        "value": record.value.map(text),
        "headers": record.headers.iter().map(header).collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use strandline_model::Offset;
    use strandline_records::{BatchBuilder, NewRecord};

    use super::*;

    fn segment() -> Vec<u8> {
        let mut bytes = Vec::new();
        for base_offset in [0, 2] {
            let mut builder = BatchBuilder::new().base_offset(Offset::new(base_offset));
            for value in [b"one".as_slice(), b"two"] {
                builder.push(NewRecord { value: Some(value), ..NewRecord::default() });
            }
            bytes.extend_from_slice(&builder.build());
        }
        bytes
    }

    fn walked(bytes: &[u8]) -> (Vec<(u64, i64)>, Option<Damage>) {
        let mut seen = Vec::new();
        let damage = walk(&mut &bytes[..], bytes.len() as u64, |position, batch| {
            seen.push((position, batch.raw_base_offset()));
            Ok(())
        });
        (seen, damage.expect("memory can be read"))
    }

    #[test]
    fn every_batch_is_seen_with_its_position() {
        let bytes = segment();
        let half = bytes.len() as u64 / 2;
        assert_eq!(walked(&bytes), (vec![(0, 0), (half, 2)], None));
        assert_eq!(walked(&[]), (Vec::new(), None));
    }

    #[test]
    fn damage_is_told_with_its_position_and_never_panics() {
        let bytes = segment();
        let half = bytes.len() / 2;
        for cut in half + 1..bytes.len() {
            let (seen, damage) = walked(&bytes[..cut]);
            assert_eq!(seen, [(0, 0)]);
            assert_eq!(damage.expect("cut short").position, half as u64);
        }
        for index in 0..bytes.len() {
            let mut flipped = bytes.clone();
            flipped[index] ^= 0x55;
            // What lies outside the checksum (offset, epoch) may change unseen; nothing may panic.
            let _ = walked(&flipped);
        }
        let mut flipped = bytes.clone();
        flipped[half + 70] ^= 1;
        assert!(walked(&flipped).1.expect("a wrong checksum").why.contains("crc"));
    }
}
