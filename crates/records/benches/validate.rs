//! What it costs to validate a produced batch, per batch and per record.
//!
//! `cargo bench -p strandline-records`: the best of many rounds, since noise only adds.
#![expect(clippy::print_stdout, reason = "a bench reports to whoever runs it")]

use std::hint::black_box;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use strandline_model::{ByteCount, Timestamp};
use strandline_records::{
    BatchBuilder, BatchView, Header, NewRecord, ProduceRules, TargetCompression, TimestampType,
    records, validate,
};

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);
const ROUNDS: u32 = 300;

fn main() {
    println!("{:<34} {:>12} {:>10} {:>10} {:>10}", "", "bytes", "crc", "iterate", "validate");
    for (records_count, value_bytes, headers) in
        [(100, 100, 0), (10_000, 100, 0), (1000, 1024, 0), (10_000, 100, 2), (1, 100, 0)]
    {
        report(records_count, value_bytes, headers);
    }
}

fn report(records_count: u32, value_bytes: usize, headers: usize) {
    let batch = batch(records_count, value_bytes, headers);
    let rules = rules();
    let view = BatchView::exactly(&batch).expect("a built batch is one batch");
    let crc = best(|| view.check_crc().expect("a built batch is right"));
    let iterate = best(|| {
        for record in records(view.records_bytes(), view.records_count()) {
            black_box(record.expect("a built record is right"));
        }
    });
    // The copy is not the validation's: only the time after it counts.
    let validate = (0..ROUNDS)
        .map(|_| {
            let bytes = batch.clone();
            let start = Instant::now();
            let valid = validate(black_box(bytes), &rules, NOW);
            let took = start.elapsed();
            black_box(valid).expect("a built batch is valid");
            took
        })
        .min()
        .expect("there are rounds");
    let name = format!("{records_count} × {value_bytes} B, {headers} headers");
    let each =
        |took: Duration| format!("{:.2} ns", took.as_secs_f64() * 1e9 / f64::from(records_count));
    let bytes = batch.len();
    println!(
        "{name:<34} {bytes:>12} {:>10} {:>10} {:>10}",
        each(crc),
        each(iterate),
        each(validate)
    );
}

fn best(mut work: impl FnMut()) -> Duration {
    (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            work();
            start.elapsed()
        })
        .min()
        .expect("there are rounds")
}

fn batch(records_count: u32, value_bytes: usize, headers: usize) -> BytesMut {
    let value = vec![b'x'; value_bytes];
    let headers = vec![Header { key: b"trace", value: Some(b"0123456789abcdef") }; headers];
    let mut builder = BatchBuilder::new();
    for index in 0..records_count {
        builder.push(NewRecord {
            timestamp: Some(NOW.plus_millis(i64::from(index / 100))),
            value: Some(&value),
            headers: &headers,
            ..NewRecord::default()
        });
    }
    builder.build()
}

const fn rules() -> ProduceRules {
    ProduceRules {
        max_message_bytes: ByteCount::mib(16),
        segment_bytes: ByteCount::gib(1),
        timestamp_type: TimestampType::CreateTime,
        timestamp_before_max_ms: i64::MAX,
        timestamp_after_max_ms: 3_600_000,
        requires_keys: false,
        compression: TargetCompression::Producer,
        validate_compressed: false,
        decompressed_bytes_max: ByteCount::mib(64),
    }
}
