use proptest::prelude::*;

use super::*;
use crate::records;

const CODECS: [Codec; 4] =
    [Codec::Gzip { level: -1 }, Codec::Snappy, Codec::Lz4 { level: 9 }, Codec::Zstd { level: 3 }];

const LIMIT: ByteCount = ByteCount::mib(1);

fn made(codec: Codec, block: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    compress(codec, block, &mut out);
    out
}

/// Text that compresses well and has no period that a codec could cut at by chance.
fn text(size: usize) -> Vec<u8> {
    (0_u32..).flat_map(|i| format!("line {} of the log; ", i * i).into_bytes()).take(size).collect()
}

#[test]
fn every_codec_and_level_round_trips() {
    let levels = [-200_000, -5, -1, 0, 1, 3, 9, 17, 22, 1000];
    for block in [Vec::new(), vec![7], text(1000), text(200_000)] {
        for level in levels {
            for codec in [
                Codec::None,
                Codec::Gzip { level },
                Codec::Snappy,
                Codec::Lz4 { level },
                Codec::Zstd { level },
            ] {
                let back = decompress(codec.compression(), &made(codec, &block), LIMIT);
                assert_eq!(back.as_deref(), Ok(&block[..]), "{codec:?}, {} bytes", block.len());
            }
        }
    }
}

#[test]
fn streams_that_follow_one_another_are_all_read() {
    for codec in CODECS {
        let mut twice = made(codec, &text(70_000));
        compress(codec, &text(500), &mut twice);
        let back = decompress(codec.compression(), &twice, LIMIT).unwrap();
        assert_eq!(back, [text(70_000), text(500)].concat(), "{codec:?}");
    }
}

#[test]
fn a_block_cut_anywhere_is_an_error() {
    for codec in CODECS {
        let block = made(codec, &text(40_000));
        for cut in 0..block.len() {
            let part = block.get(..cut).unwrap_or_default();
            let back = decompress(codec.compression(), part, LIMIT);
            // Xerial's framing has no end mark: a cut between two chunks is a shorter stream, which
            // the count of records then shows.
            let shorter_stream =
                codec == Codec::Snappy && back.as_ref().is_ok_and(|back| back.len() < 40_000);
            assert!(back.is_err() || shorter_stream, "{codec:?} cut at {cut} gave {back:?}");
        }
    }
}

#[test]
fn the_limit_is_exact() {
    for codec in CODECS {
        let block = made(codec, &text(100_000));
        let compression = codec.compression();
        let fits = decompress(compression, &block, ByteCount::new(100_000));
        assert_eq!(fits.map(|back| back.len()), Ok(100_000), "{codec:?}");
        let limit = ByteCount::new(99_999);
        let error = decompress(compression, &block, limit).unwrap_err();
        assert_eq!(error, DecompressError::TooLarge { limit }, "{codec:?}");
    }
}

#[test]
fn bombs_are_stopped_at_the_limit() {
    let zeros = vec![0; 64 << 20];
    for codec in CODECS {
        let bomb = made(codec, &zeros);
        let error = decompress(codec.compression(), &bomb, LIMIT).unwrap_err();
        assert_eq!(error, DecompressError::TooLarge { limit: LIMIT }, "{codec:?}");
    }
}

#[test]
fn a_claimed_length_of_gigabytes_allocates_nothing() {
    let claims_4_gib = [0xff, 0xff, 0xff, 0xff, 0x0f, 0, b'x'];
    let error = decompress(Compression::Snappy, &claims_4_gib, ByteCount::gib(8)).unwrap_err();
    assert!(matches!(error, DecompressError::Malformed { .. }), "{error}");
}

/// Batches that real clients sent and Apache Kafka 4.4 stored as they came: 400 records of the same
/// text from each (5 when not compressed), in one batch.
#[test]
fn batches_of_real_clients_are_read() {
    macro_rules! vector {
        ($name:literal) => {
            ($name, include_bytes!(concat!("../../tests/vectors/", $name, ".batch")).as_slice())
        };
    }
    let vectors = [
        vector!("java-none"),
        vector!("java-gzip"),
        vector!("java-snappy"),
        vector!("java-lz4"),
        vector!("java-zstd"),
        vector!("librdkafka-none"),
        vector!("librdkafka-gzip"),
        vector!("librdkafka-snappy"),
        vector!("librdkafka-lz4"),
        vector!("librdkafka-zstd"),
        vector!("kafkapython-none"),
        vector!("kafkapython-gzip"),
        vector!("kafkapython-snappy"),
        vector!("kafkapython-lz4"),
        vector!("kafkapython-zstd"),
    ];
    for (name, bytes) in vectors {
        let batch = BatchView::exactly(bytes).unwrap();
        assert_eq!(batch.check_crc(), Ok(()), "{name}");
        let block = batch.decompressed(LIMIT).unwrap_or_else(|error| panic!("{name}: {error}"));
        let count = batch.records_count();
        assert_eq!(count, if name.ends_with("none") { 5 } else { 400 }, "{name}");
        let mut index = 0;
        for record in records(&block, count) {
            let record = record.unwrap_or_else(|error| panic!("{name}, record {index}: {error}"));
            assert_eq!(record.offset_delta, index, "{name}");
            let text = String::from_utf8_lossy(record.value.unwrap());
            let start =
                format!("{{\"id\":{index},\"name\":\"customer {index}\",\"city\":\"Hamburg\"");
            assert!(text.starts_with(&start), "{name}: {text}");
            if index % 3 != 0 {
                assert_eq!(record.key, Some(format!("k{index}").as_bytes()), "{name}");
            }
            index += 1;
        }
        assert_eq!(index, count, "{name}");
    }
}

#[test]
fn snappy_that_we_write_is_framed_as_java_frames_it() {
    let out = made(Codec::Snappy, &text(100));
    let java = include_bytes!("../../tests/vectors/java-snappy.batch");
    let header = BatchView::exactly(java).unwrap().records_bytes().get(..16);
    assert_eq!(out.get(..16), header);
}

#[test]
fn lz4_that_we_write_has_the_flags_of_java() {
    let out = made(Codec::Lz4 { level: 9 }, &text(100));
    let java = include_bytes!("../../tests/vectors/java-lz4.batch");
    // Magic, flags, block size, checksum of these.
    assert_eq!(out.get(..7), BatchView::exactly(java).unwrap().records_bytes().get(..7));
}

proptest! {
    #[test]
    fn any_bytes_decompress_to_an_answer(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        for codec in CODECS {
            if let Ok(out) = decompress(codec.compression(), &bytes, LIMIT) {
                prop_assert!(out.len() <= 1 << 20);
            }
        }
    }

    #[test]
    fn a_flipped_bit_is_an_answer_within_the_limit(at: prop::sample::Index, bit in 0_u8..8) {
        for codec in CODECS {
            let mut block = made(codec, &text(2000));
            let at = at.index(block.len());
            *block.get_mut(at).unwrap() ^= 1 << bit;
            if let Ok(out) = decompress(codec.compression(), &block, LIMIT) {
                prop_assert!(out.len() <= 1 << 20);
            }
        }
    }
}
