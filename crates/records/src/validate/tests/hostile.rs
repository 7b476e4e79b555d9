//! Whatever is sent, the answer is an error or a batch that is sound.

use proptest::prelude::*;

use super::*;

fn any_rules() -> impl Strategy<Value = ProduceRules> {
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    let target = prop::option::of(prop::sample::select(CODECS.to_vec()));
    (flags, target, -10_i64..HOUR_MS).prop_map(|((keys, walk, append_time), target, after)| {
        ProduceRules {
            requires_keys: keys,
            validate_compressed: walk,
            timestamp_type: if append_time {
                TimestampType::LogAppendTime
            } else {
                TimestampType::CreateTime
            },
            compression: target.map_or(TargetCompression::Producer, TargetCompression::Codec),
            timestamp_after_max_ms: after,
            decompressed_bytes_max: ByteCount::kib(64),
            ..rules()
        }
    })
}

fn any_batch() -> impl Strategy<Value = BytesMut> {
    let field = || prop::option::of(prop::collection::vec(any::<u8>(), 0..40));
    let record = (0_i64..2 * HOUR_MS, field(), field());
    let all = prop::collection::vec(record, 1..8);
    (all, prop::sample::select(CODECS.to_vec())).prop_map(|(all, codec)| {
        let mut builder = BatchBuilder::new();
        for (millis, key, value) in &all {
            let (key, value) = (key.as_deref(), value.as_deref());
            builder.push(NewRecord { key, value, ..self::record(*millis) });
        }
        compressed(&builder.build(), codec)
    })
}

/// What is true of every batch that is taken, whatever was sent.
fn assert_sound(batch: ValidBatch, rules: &ProduceRules) {
    let size = batch.size();
    assert!(size <= rules.max_message_bytes);
    let count = batch.records_count();
    let sealed = batch.seal(Offset::new(1000), LeaderEpoch::ZERO, NOW);
    assert_eq!(sealed.size(), size);
    assert_eq!((sealed.next_offset() - sealed.base_offset()).get(), i64::from(count));
    let view = sealed.iter().next().unwrap();
    assert_eq!(view.check_crc(), Ok(()));
    assert_eq!(view.attributes().timestamp_type(), rules.timestamp_type);
    let walked =
        rules.validate_compressed || view.attributes().compression() == Some(Compression::None);
    if walked {
        let block = view.decompressed(ByteCount::mib(1)).unwrap();
        for (record, index) in records(&block, view.records_count()).zip(0..) {
            assert_eq!(record.unwrap().offset_delta, index);
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_get_an_answer(
        bytes in prop::collection::vec(any::<u8>(), 0..300), rules in any_rules(),
    ) {
        if let Ok(batch) = validate(BytesMut::from(&bytes[..]), &rules, NOW) {
            assert_sound(batch, &rules);
        }
        for batch in crate::batches(&bytes) {
            let Ok(batch) = batch else { break };
            prop_assert!(batch.bytes().len() <= bytes.len());
        }
    }

    #[test]
    fn a_mutated_batch_gets_an_answer(
        mut bytes in any_batch(), rules in any_rules(),
        at in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        mend_crc: bool,
    ) {
        let length = bytes.len();
        for (at, with) in at {
            *bytes.get_mut(at.index(length)).unwrap() ^= with;
        }
        if mend_crc {
            write_crc(&mut bytes);
        }
        if let Ok(batch) = validate(bytes, &rules, NOW) {
            assert_sound(batch, &rules);
        }
    }

    #[test]
    fn records_of_any_bytes_get_an_answer(
        block in prop::collection::vec(any::<u8>(), 0..200), count in 1_i32..20,
        codec in prop::sample::select(CODECS.to_vec()), rules in any_rules(),
    ) {
        let bytes = with_block(count, &block, codec);
        if let Ok(batch) = validate(bytes, &rules, NOW) {
            assert_sound(batch, &rules);
        }
    }
}

#[test]
fn every_flipped_bit_under_the_checksum_is_noticed() {
    for codec in CODECS {
        let bytes = compressed(&good(), codec);
        for at in ATTRIBUTES..bytes.len() {
            for bit in 0..8 {
                let mut flipped = bytes.clone();
                *flipped.get_mut(at).unwrap() ^= 1 << bit;
                let error = refused(flipped);
                let crc = matches!(error, InvalidBatch::Corrupt(BatchError::Crc { .. }));
                assert!(crc, "{codec:?}, byte {at}, bit {bit}: {error}");
            }
        }
    }
}
