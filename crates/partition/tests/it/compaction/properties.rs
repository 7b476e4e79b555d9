//! What holds of every pass over every log.

use std::collections::BTreeMap;

use proptest::prelude::*;
use strandline_model::Timestamp;
use strandline_records::Compression;

use super::model::{Draft, Log, Read, view};

/// Something that happens to a log.
#[derive(Clone, Debug)]
enum Event {
    Append(Draft),
    /// Compact all but so many of the last batches, with memory for so many keys, about.
    Compact {
        but_last: usize,
        keys: u64,
    },
    Wait(i64),
}

fn draft(keyless: bool, transactional: bool) -> impl Strategy<Value = Draft> {
    let key = (0..5_u8).prop_map(Some);
    let key = if keyless { prop::option::weighted(0.9, 0..5_u8).boxed() } else { key.boxed() };
    let records = prop::collection::vec((key, prop::option::weighted(0.7, any::<u8>())), 1..5);
    let compression = prop_oneof![Just(Compression::None), Just(Compression::Lz4)];
    (records, prop::option::of(0..3_i64), compression, prop::bool::weighted(0.3)).prop_map(
        move |(records, producer, compression, in_transaction)| Draft {
            records,
            producer,
            compression,
            transactional: transactional && in_transaction,
        },
    )
}

fn events(keyless: bool, transactional: bool) -> impl Strategy<Value = Vec<Event>> {
    let event = prop_oneof![
        6 => draft(keyless, transactional).prop_map(Event::Append),
        3 => (0..4_usize, 1..12_u64).prop_map(|(but_last, keys)| Event::Compact { but_last, keys }),
        1 => (1..3000_i64).prop_map(Event::Wait),
    ];
    prop::collection::vec(event, 1..40)
}

const RETENTION_MS: u64 = 1000;
const SLOT: u64 = 24;

/// Where a pass over all but the last `but_last` batches ends.
fn upto(log: &Log, but_last: usize) -> i64 {
    let ends = log.ends();
    let count = ends.len().saturating_sub(but_last);
    ends[..count].last().map_or(0, |end| end.get())
}

/// A tombstone stays for its time, from the pass on that left it and knew of it.
fn check_tombstones(
    before: &[Read],
    after: &[Read],
    cleaned_at: &mut BTreeMap<i64, i64>,
    clean_end: i64,
    now: i64,
) {
    for read in before.iter().filter(|read| read.value.is_none()) {
        let is_there = after.iter().any(|one| one.offset == read.offset);
        let newest = before.iter().rfind(|one| one.key == read.key).map(|one| one.offset);
        let since = cleaned_at.get(&read.offset).copied().unwrap_or(now);
        if newest == Some(read.offset) && now < since + i64::try_from(RETENTION_MS).unwrap() {
            assert!(is_there, "{read:?} is gone too early");
        }
        if is_there && read.offset < clean_end {
            cleaned_at.entry(read.offset).or_insert(now);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

    #[test]
    fn a_pass_loses_nothing_that_a_reader_of_the_newest_values_needs(events in events(false, false)) {
        let (mut log, mut now) = (Log::default(), 10_000);
        let mut appended: BTreeMap<i64, Read> = BTreeMap::new();
        // When a tombstone was first left by a pass that knew of it.
        let mut cleaned_at: BTreeMap<i64, i64> = BTreeMap::new();
        for event in events {
            let table = log.table();
            match event {
                Event::Append(draft) => {
                    log.append(&draft, now);
                    appended.extend(log.read().into_iter().map(|read| (read.offset, read)));
                    continue;
                }
                Event::Wait(millis) => {
                    now += millis;
                    continue;
                }
                Event::Compact { but_last, keys } => {
                    let upto = upto(&log, but_last);
                    let before = log.read();
                    let clean_end = log.clean_end;
                    let pass = log.compact(upto, keys * SLOT, now, RETENTION_MS);
                    let after = log.read();
                    prop_assert!(log.clean_end > clean_end || log.clean_end.get() >= upto, "a pass gets on");
                    prop_assert_eq!(before.len() - after.len(), pass.removed as usize);
                    // Of each key below what was noted one record is left, the newest.
                    let mut newest = BTreeMap::new();
                    for read in after.iter().filter(|read| read.offset < log.clean_end.get()) {
                        let earlier = newest.insert(read.key, read.offset);
                        prop_assert_eq!(earlier, None, "key {:?} is there twice", read.key);
                    }
                    check_tombstones(&before, &after, &mut cleaned_at, log.clean_end.get(), now);
                    // Once more changes nothing.
                    if pass.upto.get() == upto {
                        let mut again = log.clone();
                        let second = again.compact(upto, keys * SLOT, now, RETENTION_MS);
                        prop_assert_eq!(second.changed, 0);
                        prop_assert_eq!(&again.batches, &log.batches);
                    }
                }
            }
            prop_assert_eq!(log.table(), table);
            for read in log.read() {
                prop_assert_eq!(appended.get(&read.offset), Some(&read), "what stays is as it was");
            }
            for (id, end) in &log.producers {
                let is_last = |bytes| view(bytes).producer().is_some_and(|stamp| stamp.id == *id)
                    && view(bytes).next_offset() == Some(*end);
                prop_assert!(log.batches.iter().any(|bytes| is_last(bytes)), "producer {}", id);
            }
            prop_assert_eq!(log.ends().last().map(|end| end.get()), Some(log.end).filter(|end| *end > 0));
        }
        // When nothing comes any more, passes come to an end: values are left, one of each key.
        let table = log.table();
        for _ in 0..60 {
            now += 2 * i64::try_from(RETENTION_MS).unwrap();
            log.compact(log.end, 4 * SLOT, now, RETENTION_MS);
        }
        let left: Vec<_> = log.read().into_iter().map(|read| (read.key.unwrap(), read.value)).collect();
        prop_assert_eq!(left.len(), table.len(), "no tombstone, nothing twice");
        prop_assert_eq!(log.table(), table);
    }

    #[test]
    fn transactions_and_records_without_keys_supersede_nothing(events in events(true, true)) {
        let (mut log, mut now) = (Log::default(), 10_000);
        for event in events {
            match event {
                Event::Append(draft) => log.append(&draft, now),
                Event::Wait(millis) => now += millis,
                Event::Compact { but_last, keys } => {
                    let upto = upto(&log, but_last);
                    // Whatever subset of the transactions was aborted: a reader that skips those
                    // finds the same values as before.
                    let of = |log: &Log, aborted: &dyn Fn(usize) -> bool| {
                        let committed = Log { batches: log.batches.iter()
                            .filter(|bytes| {
                                let end = view(bytes).next_offset().unwrap().get();
                                !view(bytes).attributes().is_transactional()
                                    || !aborted(usize::try_from(end).unwrap())
                            }).cloned().collect(), ..Log::default() };
                        committed.table()
                    };
                    let aborted: [&dyn Fn(usize) -> bool; 4] =
                        [&|_| true, &|_| false, &|end| end % 2 == 0, &|end| end % 3 == 0];
                    let before = aborted.map(|aborted| of(&log, aborted));
                    log.compact(upto, keys * SLOT, now, RETENTION_MS);
                    prop_assert_eq!(aborted.map(|aborted| of(&log, aborted)), before);
                }
            }
        }
    }
}

#[test]
fn a_tombstone_is_found_by_its_value_and_goes_with_what_it_deleted() {
    let of = |records: &[(u8, Option<u8>)]| Draft {
        records: records.iter().map(|(key, value)| (Some(*key), *value)).collect(),
        producer: None,
        compression: Compression::None,
        transactional: false,
    };
    let mut log = Log::default();
    log.append(&of(&[(1, Some(10)), (2, Some(20))]), 0);
    log.append(&of(&[(1, None)]), 0);
    log.append(&of(&[(3, Some(30))]), 0);
    let left = |log: &Log| log.read().iter().map(|read| read.offset).collect::<Vec<_>>();
    let pass = log.compact(4, 1000, 5_000, RETENTION_MS);
    assert_eq!(left(&log), [1, 2, 3], "the old value goes at once");
    assert_eq!(pass.delete_horizon, Some(Timestamp::from_millis(6_000)));
    log.compact(4, 1000, 5_999, RETENTION_MS);
    assert_eq!(left(&log), [1, 2, 3]);
    let pass = log.compact(4, 1000, 6_000, RETENTION_MS);
    assert_eq!((left(&log), pass.delete_horizon), (vec![1, 3], None));
}

#[test]
fn what_can_not_be_read_stays_and_supersedes_nothing() {
    let draft = Draft {
        records: vec![(Some(1), Some(1)), (Some(1), Some(2))],
        producer: None,
        compression: Compression::Lz4,
        transactional: false,
    };
    let mut log = Log::default();
    log.append(&draft, 0);
    let good = log.batches[0].clone();
    log.append(&draft, 0);
    // As a producer may send it to a topic that was not compacted then: a good checksum over another
    // codec's bytes.
    let mut bad = log.batches[1].to_vec();
    bad[22] = 1;
    let crc = strandline_records::crc32c(&bad[21..]);
    bad[17..21].copy_from_slice(&crc.to_be_bytes());
    let bad = bytes::Bytes::from(bad);
    view(&bad).decompressed(strandline_model::ByteCount::mib(1)).unwrap_err();
    let (map, producers) = (
        strandline_partition::compaction::OffsetMap::new(
            9,
            strandline_model::ByteCount::kib(1),
            0.9,
            7,
        ),
        BTreeMap::new(),
    );
    let cleaning = strandline_partition::compaction::Cleaning {
        map: &map,
        noted_end: strandline_model::Offset::new(4),
        upto: strandline_model::Offset::new(4),
        producers: &producers,
        now: Timestamp::from_millis(0),
        latest: Timestamp::from_millis(0),
        delete_retention_ms: 0,
        decompressed_bytes_max: strandline_model::ByteCount::mib(1),
    };
    let cleaned = cleaning.clean(&view(&bad));
    assert!(cleaned.is_unreadable && cleaned.removed == 0);
    assert_eq!(cleaned.outcome, strandline_records::FilterOutcome::Same);
    assert!(!cleaning.clean(&view(&good)).is_unreadable);
}
