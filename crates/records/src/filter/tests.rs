use proptest::prelude::*;
use strandline_model::{LeaderEpoch, OffsetDelta, ProducerEpoch, ProducerId, Sequence};

use super::*;
use crate::{Attributes, BatchBuilder, Header, NewRecord, ProducerStamp, SealedBatches, batches};

const LIMIT: ByteCount = ByteCount::mib(1);
const CODECS: [Codec; 5] = [
    Codec::None,
    Codec::Gzip { level: 1 },
    Codec::Snappy,
    Codec::Lz4 { level: 1 },
    Codec::Zstd { level: 1 },
];

/// What a record is, whatever its batch: offset, timestamp, key, value, headers.
type Content = (i64, Option<i64>, Option<Vec<u8>>, Option<Vec<u8>>, usize);

fn contents(bytes: &[u8]) -> Vec<Content> {
    let batch = BatchView::exactly(bytes).unwrap();
    let block = batch.decompressed(LIMIT).unwrap();
    let of = |record: Record<'_>| {
        (
            batch.offset_of(&record).unwrap().get(),
            batch.timestamp_of(&record).map(Timestamp::as_millis),
            record.key.map(<[u8]>::to_vec),
            record.value.map(<[u8]>::to_vec),
            record.headers.iter().count(),
        )
    };
    records(&block, batch.records_count()).map(|record| of(record.unwrap())).collect()
}

const STAMP: ProducerStamp = ProducerStamp {
    id: ProducerId::new(7),
    epoch: ProducerEpoch::ZERO,
    base_sequence: Sequence::from_wire(40),
};

/// Key, value and time of a record.
type Made<'a> = (&'a [u8], Option<&'a [u8]>, Option<i64>);

/// Records `key`, `value` and time, at offset 100, of producer 7 and epoch 3 of the leader.
fn batch(codec: Codec, of: &[Made<'_>]) -> Bytes {
    let mut builder = BatchBuilder::new().producer(STAMP);
    let headers = [Header { key: b"h", value: None }];
    for (key, value, millis) in of {
        let timestamp = millis.map(Timestamp::from_millis);
        builder.push(NewRecord { timestamp, key: Some(key), value: *value, headers: &headers });
    }
    let bytes = builder.build_compressed(codec);
    let (at, epoch) = (Offset::new(100), LeaderEpoch::new(3));
    SealedBatches::seal(bytes, at, epoch, TimestampType::CreateTime, Timestamp::from_millis(0))
        .into_bytes()
}

const fn rules(when_empty: WhenEmpty, horizon: Option<i64>) -> FilterRules {
    let delete_horizon = match horizon {
        Some(millis) => Some(Timestamp::from_millis(millis)),
        None => None,
    };
    FilterRules { when_empty, delete_horizon, decompressed_bytes_max: LIMIT }
}

/// What stands where the batch stood.
fn written<'a>(before: &'a [u8], filtered: &'a Filtered) -> Option<&'a [u8]> {
    match &filtered.outcome {
        FilterOutcome::Same => Some(before),
        FilterOutcome::Changed(bytes) => Some(bytes),
        FilterOutcome::Gone => None,
    }
}

proptest! {
    #[test]
    fn what_stays_is_as_it_was_and_the_batch_spans_what_it_spanned(
        of in prop::collection::vec(
            (0..9_u8, any::<Option<u8>>(), prop::option::of(0..1_i64 << 41), any::<bool>()), 1..12),
        codec in prop::sample::select(&CODECS[..]),
        horizons in prop::collection::vec(prop::option::of(0..1_i64 << 41), 1..4),
    ) {
        let keys: Vec<_> = of.iter().map(|(key, ..)| [*key]).collect();
        let values: Vec<_> = of.iter().map(|(_, value, ..)| value.map(|value| [value])).collect();
        let input: Vec<_> = of.iter().zip(&keys).zip(&values)
            .map(|((one, key), value)| (&key[..], value.as_ref().map(|v| &v[..]), one.2))
            .collect();
        let before = batch(codec, &input);
        let mut expected = contents(&before);
        let stays: Vec<_> = of.iter().map(|one| one.3).collect();
        let stays = |offset: i64| stays.get(usize::try_from(offset - 100).unwrap()) == Some(&true);
        let mut now = before.clone();
        // Again and again: what is to go is gone the first time.
        for (round, horizon) in horizons.into_iter().enumerate() {
            let view = BatchView::exactly(&now).unwrap();
            let rules = rules(WhenEmpty::KeepHeader, horizon);
            let filtered = view.filtered(&rules, |offset, _| stays(offset.get())).unwrap();
            expected.retain(|one| stays(one.0));
            let after = Bytes::copy_from_slice(written(&now, &filtered).unwrap());
            let next = BatchView::exactly(&after).unwrap();
            prop_assert_eq!(next.check_crc(), Ok(()));
            prop_assert_eq!(contents(&after), expected.clone());
            prop_assert_eq!(filtered.kept as usize, expected.len());
            prop_assert_eq!(filtered.removed as usize, contents(&now).len() - expected.len());
            prop_assert_eq!(next.base_offset(), view.base_offset());
            prop_assert_eq!(next.next_offset(), view.next_offset());
            prop_assert_eq!(next.producer(), Some(STAMP));
            prop_assert_eq!(next.leader_epoch(), view.leader_epoch());
            if !expected.is_empty() {
                prop_assert_eq!(next.attributes().compression(), view.attributes().compression());
            }
            let newest = expected.iter().filter_map(|one| one.1).max();
            prop_assert_eq!(next.max_timestamp().map(Timestamp::as_millis), newest);
            let has_tombstone = expected.iter().any(|one| one.3.is_none());
            prop_assert_eq!(filtered.delete_horizon, next.delete_horizon().filter(|_| has_tombstone));
            if has_tombstone && view.delete_horizon().is_some() {
                prop_assert_eq!(next.delete_horizon(), view.delete_horizon(), "the first stays");
            } else if has_tombstone {
                prop_assert_eq!(next.delete_horizon().map(Timestamp::as_millis), horizon);
            }
            if round > 0 && (horizon.is_none() || view.delete_horizon().is_some()) {
                prop_assert_eq!(&filtered.outcome, &FilterOutcome::Same);
            }
            now = after;
        }
    }
}

#[test]
fn a_batch_that_loses_nothing_is_left_as_it_is() {
    for codec in CODECS {
        let before = batch(codec, &[(b"a", Some(b"1"), Some(5)), (b"b", Some(b"2"), None)]);
        let view = BatchView::exactly(&before).unwrap();
        let filtered = view.filtered(&rules(WhenEmpty::Drop, Some(9)), |_, _| true).unwrap();
        let same =
            Filtered { outcome: FilterOutcome::Same, kept: 2, removed: 0, delete_horizon: None };
        assert_eq!(filtered, same, "{codec:?}");
    }
}

#[test]
fn an_emptied_batch_goes_or_leaves_its_header() {
    let before = batch(Codec::Zstd { level: 1 }, &[(b"a", None, Some(5)), (b"b", None, Some(6))]);
    let view = BatchView::exactly(&before).unwrap();
    let gone = view.filtered(&rules(WhenEmpty::Drop, Some(9)), |_, _| false).unwrap();
    assert_eq!(gone.outcome, FilterOutcome::Gone);
    let kept = view.filtered(&rules(WhenEmpty::KeepHeader, Some(9)), |_, _| false).unwrap();
    let header = written(&before, &kept).unwrap();
    assert_eq!(header.len(), HEADER_BYTES);
    let empty = BatchView::exactly(header).unwrap();
    assert_eq!((empty.records_count(), empty.max_timestamp()), (0, None));
    assert_eq!(empty.attributes(), Attributes::PLAIN);
    assert_eq!(empty.producer(), Some(STAMP));
    assert_eq!(empty.next_offset(), Some(Offset::new(102)));
    // It lasts as long as it is wanted.
    let again = empty.filtered(&rules(WhenEmpty::KeepHeader, None), |_, _| true).unwrap();
    assert_eq!(again.outcome, FilterOutcome::Same);
    let at_last = empty.filtered(&rules(WhenEmpty::Drop, None), |_, _| true).unwrap();
    assert_eq!(at_last.outcome, FilterOutcome::Gone);
    assert_eq!(batches(header).count(), 1);
}

#[test]
fn append_time_stays_the_time_of_all_records() {
    let mut builder = BatchBuilder::new();
    for value in [Some(&b"1"[..]), None] {
        let timestamp = Some(Timestamp::from_millis(5));
        builder.push(NewRecord { key: Some(b"k"), value, timestamp, headers: &[] });
    }
    let (at, now) = (Offset::new(100), Timestamp::from_millis(1000));
    let epoch = LeaderEpoch::ZERO;
    let sealed = SealedBatches::seal(builder.build(), at, epoch, TimestampType::LogAppendTime, now);
    let view = BatchView::exactly(sealed.bytes()).unwrap();
    let last = at + OffsetDelta::new(1);
    let filtered =
        view.filtered(&rules(WhenEmpty::Drop, Some(5000)), |offset, _| offset == last).unwrap();
    let after = written(sealed.bytes(), &filtered).unwrap();
    assert_eq!(contents(after), [(101, Some(1000), Some(b"k".to_vec()), None, 0)]);
    assert_eq!(filtered.delete_horizon, Some(Timestamp::from_millis(5000)));
}

#[test]
fn records_that_are_broken_are_an_error() {
    let mut bytes = batch(Codec::None, &[(b"a", Some(b"1"), None)]).to_vec();
    bytes.truncate(bytes.len() - 2);
    let length = i32::try_from(bytes.len() - LENGTH_OVERHEAD).unwrap();
    write_field(&mut bytes, BATCH_LENGTH, length.to_be_bytes());
    let view = BatchView::exactly(&bytes).unwrap();
    view.filtered(&rules(WhenEmpty::Drop, None), |_, _| true).unwrap_err();
}

/// Notes what it is told and asked.
#[derive(Default)]
struct Asked {
    expected: Vec<i32>,
    asked: Vec<i32>,
}

impl Keep for &mut Asked {
    fn expect(&mut self, records: &[Record<'_>]) {
        assert_eq!(self.expected, self.asked, "all that was told before was asked about");
        self.expected.extend(records.iter().map(|record| record.offset_delta));
    }

    fn keeps(&mut self, _: Offset, record: &Record<'_>) -> bool {
        self.asked.push(record.offset_delta);
        assert_eq!(self.expected.get(self.asked.len() - 1), Some(&record.offset_delta));
        record.offset_delta % 2 == 0
    }
}

#[test]
fn every_record_is_told_of_before_it_is_asked_about() {
    for count in [1, 31, 32, 33, 100] {
        let records: Vec<Made<'_>> =
            (0..count).map(|_| (&b"k"[..], Some(&b"v"[..]), None)).collect();
        let bytes = batch(CODECS[0], &records);
        let view = BatchView::exactly(&bytes).unwrap();
        let mut asked = Asked::default();
        let filtered = view.filtered_by(&rules(WhenEmpty::Drop, None), &mut asked).unwrap();
        assert_eq!(asked.asked, (0..count).collect::<Vec<_>>());
        assert_eq!((filtered.kept + filtered.removed).cast_signed(), count);
    }
}
