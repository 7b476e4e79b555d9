//! What a broker writes into a batch that it takes.

use super::*;

#[test]
fn the_maximum_timestamp_is_that_of_the_records() {
    let right = batch_of(&[record(5), record(9), record(7)]);
    for codec in CODECS {
        for wrong in [-1, 0, NOW.as_millis(), NOW.as_millis() + HOUR_MS] {
            let bytes = compressed(&right, codec);
            let lying = changed(bytes.clone(), MAX_TIMESTAMP, wrong.to_be_bytes());
            let walked = ProduceRules { validate_compressed: true, ..rules() };
            assert_eq!(valid(lying, &walked), bytes, "{codec:?}");
        }
        // Beyond the range the header makes us look, and then the records are in range.
        let beyond = NOW.as_millis() + 2 * HOUR_MS;
        let lying = changed(compressed(&right, codec), MAX_TIMESTAMP, beyond.to_be_bytes());
        assert_eq!(valid(lying, &rules()), compressed(&right, codec), "{codec:?}");
    }
}

/// (topic's type, producer's claim, has timestamps, verdict)
#[test]
fn append_time_is_the_brokers_to_give() {
    use TimestampType::{CreateTime, LogAppendTime};
    let timeless = batch_of(&[NewRecord { timestamp: None, ..record(0) }]);
    let timed = batch_of(&[record(0)]);
    let cases = [
        (CreateTime, CreateTime, true, true),
        (CreateTime, CreateTime, false, true),
        // Kafka takes this one too, and clears the claim.
        (CreateTime, LogAppendTime, true, true),
        (CreateTime, LogAppendTime, false, false),
        (LogAppendTime, CreateTime, true, true),
        (LogAppendTime, CreateTime, false, true),
        (LogAppendTime, LogAppendTime, true, false),
        (LogAppendTime, LogAppendTime, false, false),
    ];
    for (topic, claim, has_time, is_valid) in cases {
        for codec in CODECS {
            let plain = compressed(if has_time { &timed } else { &timeless }, codec);
            let attributes =
                BatchView::exactly(&plain).unwrap().attributes().with_timestamp_type(claim);
            let bytes = changed(plain.clone(), ATTRIBUTES, attributes.bits().to_be_bytes());
            let rules = ProduceRules { timestamp_type: topic, ..rules() };
            let outcome = validate(bytes, &rules, NOW);
            let label = format!("{topic:?}, {claim:?}, {has_time}, {codec:?}");
            assert_eq!(outcome.is_ok(), is_valid, "{label}");
            match outcome {
                Ok(batch) => assert_eq!(batch.bytes(), plain, "{label}"),
                Err(InvalidBatch::Records(rejected)) => {
                    let fault = RecordFault::TimestampType;
                    assert_eq!(rejected.reason, RejectionReason::Timestamps);
                    assert_eq!(rejected.listed, [RejectedRecord { batch_index: 0, fault }]);
                }
                Err(other) => panic!("{label}: {other}"),
            }
        }
    }
}

#[test]
fn sealing_writes_the_place_and_for_append_time_the_time() {
    let later = NOW.plus_millis(77);
    for timestamp_type in [TimestampType::CreateTime, TimestampType::LogAppendTime] {
        let rules = ProduceRules { timestamp_type, ..rules() };
        let batch = validate(good(), &rules, NOW).unwrap();
        assert_eq!(batch.timestamp_type(), timestamp_type);
        let sealed = batch.seal(Offset::new(40), LeaderEpoch::new(3), later);
        assert_eq!(
            (sealed.base_offset(), sealed.next_offset()),
            (Offset::new(40), Offset::new(42))
        );
        let view = sealed.iter().next().unwrap();
        assert_eq!(view.check_crc(), Ok(()));
        assert_eq!(view.leader_epoch(), Some(LeaderEpoch::new(3)));
        assert_eq!(view.attributes().timestamp_type(), timestamp_type);
        let newest = match timestamp_type {
            TimestampType::CreateTime => NOW.plus_millis(1),
            TimestampType::LogAppendTime => later,
        };
        assert_eq!(view.max_timestamp(), Some(newest));
    }
}

#[test]
fn a_topic_with_a_codec_of_its_own_compresses_anew() {
    let plain = good();
    for from in CODECS {
        for to in CODECS {
            let bytes = compressed(&plain, from);
            let rules = ProduceRules { compression: TargetCompression::Codec(to), ..rules() };
            let stored = valid(bytes.clone(), &rules);
            assert_eq!(stored, compressed(&plain, to), "{from:?} to {to:?}");
            assert_eq!(stored == bytes, from == to);
        }
    }
}

#[test]
fn a_batch_that_grows_past_the_limit_is_refused() {
    let value = vec![b'x'; 10_000];
    let plain = batch_of(&[NewRecord { value: Some(&value), ..record(0) }]);
    let bytes = compressed(&plain, Codec::Zstd { level: 3 });
    let rules = ProduceRules {
        max_message_bytes: ByteCount::new(1000),
        compression: TargetCompression::Codec(Codec::None),
        ..rules()
    };
    let over = Oversize { have: ByteCount::of(&plain), limit: rules.max_message_bytes };
    assert_eq!(validate(bytes, &rules, NOW).unwrap_err(), InvalidBatch::TooLarge(over));
}

#[test]
fn offsets_with_holes_are_numbered_anew() {
    let mut builder = BatchBuilder::new();
    for delta in [3, 3, 9] {
        builder.push_at(delta, record(i64::from(delta)));
    }
    let holes = changed(builder.build(), LAST_OFFSET_DELTA, 2_i32.to_be_bytes());
    let dense = batch_of(&[record(3), record(3), record(9)]);
    let rules = ProduceRules { validate_compressed: true, ..rules() };
    for codec in CODECS {
        let stored = valid(compressed(&holes, codec), &rules);
        assert_eq!(stored, compressed(&dense, codec), "{codec:?}");
    }
}
