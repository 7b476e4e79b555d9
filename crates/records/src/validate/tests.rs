use strandline_model::{ProducerEpoch, ProducerId, Sequence};

use super::*;
use crate::batch::{
    ATTRIBUTES, BASE_OFFSET, BASE_SEQUENCE, BASE_TIMESTAMP, LAST_OFFSET_DELTA, MAX_TIMESTAMP,
    PRODUCER_EPOCH, PRODUCER_ID, RECORDS_COUNT, write_crc, write_field,
};
use crate::{BatchBuilder, HEADER_BYTES, NewRecord, RecordError, records};

mod hostile;
mod rewritten;

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);
const HOUR_MS: i64 = 3_600_000;
const CODECS: [Codec; 5] = [
    Codec::None,
    Codec::Gzip { level: -1 },
    Codec::Snappy,
    Codec::Lz4 { level: 9 },
    Codec::Zstd { level: 3 },
];

/// The defaults of a topic.
fn rules() -> ProduceRules {
    ProduceRules {
        max_message_bytes: ByteCount::new(1_048_588),
        segment_bytes: ByteCount::gib(1),
        timestamp_type: TimestampType::CreateTime,
        timestamp_before_max_ms: i64::MAX,
        timestamp_after_max_ms: HOUR_MS,
        requires_keys: false,
        compression: TargetCompression::Producer,
        validate_compressed: false,
        decompressed_bytes_max: ByteCount::mib(8),
    }
}

/// A record with key `k`, `millis` after [`NOW`].
fn record(millis: i64) -> NewRecord<'static> {
    let timestamp = Some(NOW.plus_millis(millis));
    NewRecord { timestamp, key: Some(b"k"), value: Some(b"some value"), headers: &[] }
}

fn keyless(millis: i64) -> NewRecord<'static> {
    NewRecord { key: None, ..record(millis) }
}

fn batch_of(all: &[NewRecord<'_>]) -> BytesMut {
    let mut builder = BatchBuilder::new();
    for record in all {
        builder.push(*record);
    }
    builder.build()
}

fn good() -> BytesMut {
    batch_of(&[record(0), record(1)])
}

/// A good batch with a field changed and the checksum right.
fn with<const N: usize>(at: usize, field: [u8; N]) -> BytesMut {
    changed(good(), at, field)
}

fn changed<const N: usize>(mut bytes: BytesMut, at: usize, field: [u8; N]) -> BytesMut {
    write_field(&mut bytes, at, field);
    write_crc(&mut bytes);
    bytes
}

fn compressed(bytes: &BytesMut, codec: Codec) -> BytesMut {
    let batch = BatchView::exactly(bytes).unwrap();
    let mut out = rewrite::with_records(&batch, batch.records_bytes(), codec).unwrap();
    let attributes = batch.attributes().with_compression(codec.compression());
    rewrite::header(&mut out, attributes, batch.raw_max_timestamp());
    out
}

/// A batch that says it has `count` records, which `block` may or may not be.
fn with_block(count: i32, block: &[u8], codec: Codec) -> BytesMut {
    let good = good();
    let mut bytes =
        rewrite::with_records(&BatchView::exactly(&good).unwrap(), block, codec).unwrap();
    write_field(&mut bytes, RECORDS_COUNT, count.to_be_bytes());
    write_field(&mut bytes, LAST_OFFSET_DELTA, (count - 1).to_be_bytes());
    let attributes = Attributes::PLAIN.with_compression(codec.compression());
    rewrite::header(&mut bytes, attributes, NOW.as_millis());
    bytes
}

fn refused(bytes: BytesMut) -> InvalidBatch {
    validate(bytes, &rules(), NOW).unwrap_err()
}

fn valid(bytes: BytesMut, rules: &ProduceRules) -> BytesMut {
    let batch = validate(bytes, rules, NOW).unwrap();
    assert_eq!(batch.view().check_crc(), Ok(()));
    assert_eq!(batch.view().records_count().cast_unsigned(), batch.records_count());
    BytesMut::from(batch.bytes())
}

fn header_fault(fault: HeaderFault) -> InvalidBatch {
    InvalidBatch::Header(fault)
}

fn broken(index: i32, error: RecordError) -> InvalidBatch {
    InvalidBatch::Content(ContentError::Record { index, error })
}

#[test]
fn a_good_batch_stays_as_it_came() {
    for codec in CODECS {
        let bytes = compressed(&good(), codec);
        for validate_compressed in [false, true] {
            let rules = ProduceRules { validate_compressed, ..rules() };
            assert_eq!(valid(bytes.clone(), &rules), bytes, "{codec:?}");
        }
    }
}

#[test]
fn a_good_batch_is_not_copied() {
    for timestamp_type in [TimestampType::CreateTime, TimestampType::LogAppendTime] {
        let bytes = good();
        let place = bytes.as_ptr();
        let rules = ProduceRules { timestamp_type, ..rules() };
        let batch = validate(bytes, &rules, NOW).unwrap();
        let sealed = batch.seal(Offset::new(1), LeaderEpoch::ZERO, NOW);
        assert_eq!(sealed.bytes().as_ptr(), place, "{timestamp_type:?}");
    }
}

/// The memory of a batch is part of what its frame was received into, of which others hold a part.
#[test]
fn a_batch_that_found_no_room_is_copied_only_for_another_place() {
    let epoch = LeaderEpoch::new(3);
    let later = Timestamp::from_millis(NOW.as_millis() + 7);
    let mut frame = good();
    frame.extend_from_slice(b"others");
    let bytes = frame.split_to(frame.len() - 6);
    let place = bytes.as_ptr();
    let seal = |batch: ValidBatch, offset, epoch| batch.seal(Offset::new(offset), epoch, later);

    let first = validate(bytes, &rules(), NOW).unwrap().seal(Offset::new(5), epoch, NOW);
    let held = first.bytes().clone();
    let again = seal(ValidBatch::unseal(first), 5, epoch);
    assert_eq!(again.bytes().as_ptr(), place, "the place is the same");
    assert_eq!((again.base_offset(), again.appended_at()), (Offset::new(5), later));

    for (offset, epoch) in [(6, epoch), (5, LeaderEpoch::new(4))] {
        let batch = ValidBatch::unseal(again.clone());
        assert_eq!((batch.records_count(), batch.size()), (2, ByteCount::of(&held)));
        let other = seal(batch, offset, epoch);
        assert_ne!(other.bytes().as_ptr(), place);
        let view = other.iter().next().unwrap();
        assert_eq!(
            (view.base_offset(), view.leader_epoch()),
            (Some(Offset::new(offset)), Some(epoch))
        );
        assert_eq!((other.base_offset(), view.check_crc()), (Offset::new(offset), Ok(())));
    }
    assert_eq!(BatchView::exactly(&held).unwrap().base_offset(), Some(Offset::new(5)));
    assert_eq!(frame.as_ref(), b"others");
}

#[test]
fn append_time_is_written_again_for_a_batch_that_found_no_room() {
    let rules = ProduceRules { timestamp_type: TimestampType::LogAppendTime, ..rules() };
    let first = validate(good(), &rules, NOW).unwrap().seal(Offset::ZERO, LeaderEpoch::ZERO, NOW);
    let later = Timestamp::from_millis(NOW.as_millis() + 7);
    let again = ValidBatch::unseal(first).seal(Offset::ZERO, LeaderEpoch::ZERO, later);
    assert_eq!(again.max_timestamp(), Some(later));
    assert_eq!(again.iter().next().unwrap().check_crc(), Ok(()));
}

/// Each row was asked of Apache Kafka 4.4; where we answer otherwise the row says so.
#[test]
fn framing_is_exactly_one_batch() {
    let magic = |magic: i8| {
        let mut bytes = good();
        write_field(&mut bytes, MAGIC, magic.to_be_bytes());
        bytes
    };
    let length = |length: i32| {
        let mut bytes = good();
        write_field(&mut bytes, BATCH_LENGTH, length.to_be_bytes());
        bytes
    };
    let then = |tail: &[u8]| BytesMut::from(&[&good()[..], tail].concat()[..]);
    let first = |count: usize| BytesMut::from(good().get(..count).unwrap());
    let corrupt = |error| Err(InvalidBatch::Corrupt(error));
    let headless = |length: i32| {
        let mut bytes = first(52);
        write_field(&mut bytes, BATCH_LENGTH, length.to_be_bytes());
        bytes
    };
    let cut_short = BatchError::CutShort { have: 52, need: HEADER_BYTES };
    let whole = good().len();
    let cases: [(&str, BytesMut, Result<(), InvalidBatch>); 17] = [
        ("nothing", BytesMut::new(), Err(InvalidBatch::NoBatch)),
        ("16 bytes", first(16), Err(InvalidBatch::NoBatch)),
        ("half a header", first(40), Err(InvalidBatch::NoBatch)),
        ("all but a byte", first(whole - 1), Err(InvalidBatch::NoBatch)),
        ("length beyond the end", length(1_000_000_000), Err(InvalidBatch::NoBatch)),
        ("length 13", length(13), corrupt(BatchError::Length(13))),
        ("length −1", length(-1), corrupt(BatchError::Length(-1))),
        ("length below a header", headless(40), corrupt(cut_short)),
        ("magic 0", magic(0), Err(InvalidBatch::OldFormat { magic: 0 })),
        ("magic 1", magic(1), Err(InvalidBatch::OldFormat { magic: 1 })),
        ("magic 3", magic(3), corrupt(BatchError::Magic(3))),
        ("magic −1", magic(-1), corrupt(BatchError::Magic(-1))),
        ("two batches", then(&good()), Err(InvalidBatch::SeveralBatches)),
        ("then zeros", then(&[0; 20]), corrupt(BatchError::Length(0))),
        ("then magic 9", then(&magic(9)), corrupt(BatchError::Magic(9))),
        ("then some bytes", then(b"12345"), Ok(())),
        ("then part of a batch", then(&first(60)), Ok(())),
    ];
    for (what, bytes, verdict) in cases {
        let outcome = validate(bytes, &rules(), NOW);
        assert_eq!(outcome.map(|batch| assert_eq!(batch.bytes(), good())), verdict, "{what}");
    }
}

#[test]
fn headers_are_checked_in_kafkas_order() {
    let stamped = |id: i64, epoch: i16, sequence: i32| {
        let bytes = with(PRODUCER_ID, id.to_be_bytes());
        let bytes = changed(bytes, PRODUCER_EPOCH, epoch.to_be_bytes());
        changed(bytes, BASE_SEQUENCE, sequence.to_be_bytes())
    };
    let counted = |records_count: i32, last_offset_delta: i32| {
        let bytes = with(RECORDS_COUNT, records_count.to_be_bytes());
        let bytes = changed(bytes, LAST_OFFSET_DELTA, last_offset_delta.to_be_bytes());
        (bytes, header_fault(HeaderFault::Count { records_count, last_offset_delta }))
    };
    let attributes = |bits: i16| with(ATTRIBUTES, bits.to_be_bytes());
    let mut bad_crc = good();
    *bad_crc.last_mut().unwrap() ^= 1;
    let crc_fault = BatchView::exactly(&bad_crc).unwrap().check_crc().unwrap_err();
    let unknown_codec =
        InvalidBatch::Content(ContentError::Compression(DecompressError::UnknownCodec));
    let cases = [
        (with(BASE_OFFSET, 5_i64.to_be_bytes()), header_fault(HeaderFault::BaseOffset(5))),
        (with(BASE_OFFSET, (-1_i64).to_be_bytes()), header_fault(HeaderFault::BaseOffset(-1))),
        (bad_crc, InvalidBatch::Corrupt(crc_fault)),
        (attributes(5), unknown_codec.clone()),
        (attributes(7), unknown_codec),
        counted(0, 0),
        counted(0, -1),
        counted(-1, -2),
        counted(2, 0),
        counted(1, 1),
        counted(1, i32::MAX),
        counted(i32::MIN, i32::MAX),
        (attributes(0x20), header_fault(HeaderFault::Control)),
        (attributes(0x30), header_fault(HeaderFault::Control)),
        (stamped(5, 0, -1), header_fault(HeaderFault::NoSequence)),
        // Kafka takes the last two.
        (stamped(5, -1, 0), header_fault(HeaderFault::NoProducerEpoch)),
        (attributes(0x10), header_fault(HeaderFault::NoProducer)),
    ];
    for (bytes, fault) in cases {
        assert_eq!(refused(bytes), fault);
    }
    for harmless in [attributes(0x40), attributes(0x80), stamped(-5, 0, 0)] {
        assert_eq!(valid(harmless.clone(), &rules()), harmless);
    }
}

#[test]
fn an_earlier_check_hides_a_later_one() {
    // Each batch has all the faults before it was mended in this order.
    let mut bytes = good();
    write_field(&mut bytes, BASE_OFFSET, 9_i64.to_be_bytes());
    write_field(&mut bytes, ATTRIBUTES, 0x20_i16.to_be_bytes());
    write_field(&mut bytes, RECORDS_COUNT, 7_i32.to_be_bytes());
    let small = ProduceRules { max_message_bytes: ByteCount::new(80), ..rules() };
    let usual = rules();
    let verdict = |bytes: &BytesMut, rules| validate(bytes.clone(), rules, NOW).unwrap_err();

    assert_eq!(verdict(&bytes, &small), header_fault(HeaderFault::BaseOffset(9)));
    write_field(&mut bytes, BASE_OFFSET, 0_i64.to_be_bytes());
    assert!(matches!(verdict(&bytes, &small), InvalidBatch::TooLarge(_)));
    assert!(matches!(verdict(&bytes, &usual), InvalidBatch::Corrupt(BatchError::Crc { .. })));
    write_crc(&mut bytes);
    assert!(matches!(
        verdict(&bytes, &usual),
        InvalidBatch::Header(HeaderFault::Count { records_count: 7, .. })
    ));
    bytes = changed(bytes, RECORDS_COUNT, 2_i32.to_be_bytes());
    assert_eq!(verdict(&bytes, &usual), header_fault(HeaderFault::Control));
}

#[test]
fn sizes_are_limits_and_not_beyond() {
    let size = ByteCount::of(&good());
    let over = Oversize { have: size, limit: ByteCount::new(size.get() - 1) };
    // (max.message.bytes, segment.bytes, verdict)
    let cases = [
        (size, size, Ok(())),
        (over.limit, size, Err(InvalidBatch::TooLarge(over))),
        (size, over.limit, Err(InvalidBatch::LargerThanSegment(over))),
        (over.limit, over.limit, Err(InvalidBatch::TooLarge(over))),
    ];
    for (max_message_bytes, segment_bytes, verdict) in cases {
        let rules = ProduceRules { max_message_bytes, segment_bytes, ..rules() };
        assert_eq!(validate(good(), &rules, NOW).map(|_| ()), verdict);
    }
}

#[test]
fn records_are_walked() {
    let records_are = |count, block: &[u8]| with_block(count, block, Codec::None);
    let one = [14, 0, 0, 0, 1, 2, b'v', 0];
    let two = [one, [14, 0, 0, 2, 1, 2, b'v', 0]].concat();
    let cases = [
        (records_are(1, &two), broken(1, RecordError::Surplus)),
        (records_are(3, &two), broken(2, RecordError::Missing)),
        (records_are(1, &[]), broken(0, RecordError::Missing)),
        (records_are(2, two.get(..12).unwrap()), broken(1, RecordError::CutShort)),
        (records_are(2, two.get(..9).unwrap()), broken(1, RecordError::CutShort)),
        (records_are(1, &[1]), broken(0, RecordError::NegativeLength)),
        (records_are(1, &[12, 0, 0, 0, 1, 1, 1]), broken(0, RecordError::HeaderCount)),
        // Kafka reads this key as null.
        (records_are(1, &[12, 0, 0, 0, 3, 1, 0]), broken(0, RecordError::NegativeLength)),
    ];
    for (bytes, fault) in cases {
        assert_eq!(refused(bytes.clone()), fault);
        for codec in CODECS {
            let rules = ProduceRules { validate_compressed: true, ..rules() };
            let outcome = validate(compressed(&bytes, codec), &rules, NOW).map(|_| ());
            // Of no bytes some codecs make none, which is no stream then.
            let no_stream =
                matches!(outcome, Err(InvalidBatch::Content(ContentError::Compression(_))))
                    && bytes.len() == HEADER_BYTES;
            assert!(no_stream || outcome == Err(fault.clone()), "{codec:?}");
        }
    }
}

#[test]
fn compressed_records_are_trusted_unless_the_topic_looks_at_them() {
    for codec in CODECS.into_iter().skip(1) {
        let batch = compressed(&good(), codec);
        let mut garbage = batch.clone();
        garbage.get_mut(HEADER_BYTES..).unwrap().fill(0xff);
        write_crc(&mut garbage);
        assert_eq!(valid(garbage.clone(), &rules()), garbage);

        let other = if codec == Codec::Snappy { Codec::Lz4 { level: 1 } } else { Codec::Snappy };
        let looking = [
            ProduceRules { validate_compressed: true, ..rules() },
            ProduceRules { requires_keys: true, ..rules() },
            ProduceRules { compression: TargetCompression::Codec(other), ..rules() },
            ProduceRules { timestamp_after_max_ms: -5, ..rules() },
        ];
        for rules in looking {
            let error = validate(garbage.clone(), &rules, NOW).unwrap_err();
            let content = matches!(error, InvalidBatch::Content(ContentError::Compression(_)));
            assert!(content, "{codec:?}: {error}");
        }
    }
}

#[test]
fn a_bomb_is_refused_where_it_would_go_off() {
    let zeros = vec![0; 9 << 20];
    let value = NewRecord { value: Some(&zeros), ..record(0) };
    for codec in CODECS.into_iter().skip(1) {
        let bomb = compressed(&batch_of(&[value]), codec);
        let rules = ProduceRules { validate_compressed: true, ..rules() };
        let limit = rules.decompressed_bytes_max;
        let too_large = ContentError::Compression(DecompressError::TooLarge { limit });
        let error = validate(bomb.clone(), &rules, NOW).unwrap_err();
        assert_eq!(error, InvalidBatch::Content(too_large), "{codec:?}");
        valid(bomb, &self::rules());
    }
}

#[test]
fn keys_and_timestamps_are_checked_record_by_record() {
    type Faults = Vec<(i32, RecordFault)>;
    let range = |timestamp: i64| RecordFault::TimestampOutOfRange {
        timestamp: NOW.as_millis() + timestamp,
        oldest: NOW.as_millis() - 1000,
        newest: NOW.as_millis() + HOUR_MS,
    };
    let timeless = NewRecord { timestamp: None, ..record(0) };
    let (keys, times) = (RejectionReason::Keys, RejectionReason::Timestamps);
    let cases: [(Vec<NewRecord<'_>>, Option<RejectionReason>, Faults); 8] = [
        (vec![record(0), record(HOUR_MS), record(-1000)], None, vec![]),
        (vec![timeless, timeless], None, vec![]),
        (vec![record(0), timeless], None, vec![]),
        (vec![record(0), record(HOUR_MS + 1)], Some(times), vec![(1, range(HOUR_MS + 1))]),
        (vec![record(-1001), record(0)], Some(times), vec![(0, range(-1001))]),
        (
            vec![keyless(0), record(0), keyless(0)],
            Some(keys),
            vec![(0, RecordFault::MissingKey), (2, RecordFault::MissingKey)],
        ),
        // The key comes first in a record, the timestamp decides for the batch.
        (
            vec![keyless(HOUR_MS + 1), record(HOUR_MS + 2)],
            Some(times),
            vec![(0, RecordFault::MissingKey), (1, range(HOUR_MS + 2))],
        ),
        (vec![keyless(-5000)], Some(keys), vec![(0, RecordFault::MissingKey)]),
    ];
    let rules = ProduceRules { requires_keys: true, timestamp_before_max_ms: 1000, ..rules() };
    for (all, reason, faults) in cases {
        for codec in CODECS {
            let outcome = validate(compressed(&batch_of(&all), codec), &rules, NOW);
            let expected = reason.map(|reason| {
                InvalidBatch::Records(RejectedRecords {
                    reason,
                    count: u32::try_from(faults.len()).unwrap(),
                    listed: faults
                        .iter()
                        .map(|&(batch_index, fault)| RejectedRecord { batch_index, fault })
                        .collect(),
                })
            });
            assert_eq!(outcome.err(), expected, "{codec:?}: {all:?}");
        }
    }
}

#[test]
fn all_rejected_records_are_counted_and_some_are_listed() {
    let all = vec![keyless(0); REJECTED_RECORDS_LISTED_MAX + 500];
    let rules = ProduceRules { requires_keys: true, ..rules() };
    let Err(InvalidBatch::Records(rejected)) = validate(batch_of(&all), &rules, NOW) else {
        panic!("records without keys are rejected")
    };
    assert_eq!(rejected.count, 1500);
    assert_eq!(rejected.listed.len(), REJECTED_RECORDS_LISTED_MAX);
}

#[test]
fn timestamps_outside_the_range_of_a_compressed_batch_are_named() {
    for codec in CODECS {
        let bytes = compressed(&batch_of(&[record(0), record(2 * HOUR_MS)]), codec);
        let InvalidBatch::Records(rejected) = refused(bytes) else {
            panic!("a record in the future is rejected")
        };
        assert_eq!(rejected.listed.first().map(|record| record.batch_index), Some(1));
    }
}

#[test]
fn sums_of_timestamps_may_wrap_without_harm() {
    for base in [i64::MIN, i64::MIN + 1, -5, 0, i64::MAX - 1, i64::MAX] {
        let outcome = validate(with(BASE_TIMESTAMP, base.to_be_bytes()), &rules(), NOW);
        let in_range = (NOW.as_millis() - i64::MAX..=NOW.as_millis() + HOUR_MS).contains(&base);
        assert_eq!(outcome.is_ok(), in_range, "{base}");
    }
}

#[test]
fn a_valid_batch_says_who_produced_it() {
    let stamp = ProducerStamp {
        id: ProducerId::new(8),
        epoch: ProducerEpoch::ZERO,
        base_sequence: Some(Sequence::ZERO),
    };
    let mut builder = BatchBuilder::new().producer(stamp).transactional();
    builder.push(record(0));
    let batch = validate(builder.build(), &rules(), NOW).unwrap();
    assert_eq!(batch.producer(), Some(stamp));
    assert!(batch.is_transactional());
    assert_eq!(batch.size(), ByteCount::of(batch.bytes()));
}
