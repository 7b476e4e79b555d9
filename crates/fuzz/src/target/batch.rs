//! Record batches: what a producer sends and what a disk gives back.

use bytes::{Bytes, BytesMut};
use strandline_model::{
    ByteCount, LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, Timestamp,
};
use strandline_records::{
    Attributes, BatchBuilder, BatchView, Codec, Compression, ControlRecord, EndTransaction,
    HEADER_BYTES, Header, NewRecord, ProducerStamp, SealedBatches, TimestampType,
    TransactionOutcome, batches, compress, crc32c, records,
};

use super::{Target, kind_of, magnitude};

pub(super) const TARGET: Target = Target { name: "batch", seeds, repair, run };

const CRC_AT: usize = 17;
const CHECKED_FROM: usize = 21;
const LENGTH_AT: usize = 8;
const OVERHEAD: usize = 12;

/// A small batch that claims to hold more is refused.
const DECOMPRESSED_MAX: ByteCount = ByteCount::mib(1);

fn seeds() -> Vec<Vec<u8>> {
    let plain = built(1, None);
    let many = built(30, None);
    let stamped = built(5, Some((1234, 3, 17)));
    let marker = EndTransaction {
        producer_id: ProducerId::new(1234),
        producer_epoch: ProducerEpoch::from_wire(3).expect("an epoch"),
        outcome: TransactionOutcome::Commit,
        coordinator_epoch: 9,
    };
    let marker = marker.to_batch(Timestamp::from_millis(1_700_000_000_000));
    let mut two = plain.to_vec();
    two.extend_from_slice(&stamped);
    let mut seeds = vec![plain.to_vec(), stamped.to_vec(), marker.to_vec(), two];
    for codec in CODECS {
        seeds.push(compressed(&many, codec));
    }
    seeds
}

const CODECS: [Compression; 5] = [
    Compression::None,
    Compression::Gzip,
    Compression::Snappy,
    Compression::Lz4,
    Compression::Zstd,
];

fn compressed(batch: &[u8], codec: Compression) -> Vec<u8> {
    let view = BatchView::exactly(batch).expect("just built");
    let mut out = batch[..HEADER_BYTES].to_vec();
    let attributes = view.attributes().with_compression(codec).bits();
    out[CHECKED_FROM..CHECKED_FROM + 2].copy_from_slice(&attributes.to_be_bytes());
    compress(Codec::at_default_level(codec), view.records_bytes(), &mut out);
    repair(&mut out);
    out
}

pub(super) fn built(count: usize, producer: Option<(i64, i16, i32)>) -> BytesMut {
    let mut builder = BatchBuilder::new();
    if let Some((id, epoch, sequence)) = producer {
        builder = builder.producer(ProducerStamp {
            id: ProducerId::new(id),
            epoch: ProducerEpoch::from_wire(epoch).expect("an epoch"),
            base_sequence: Sequence::from_wire(sequence),
        });
    }
    let headers = [Header { key: b"h", value: Some(b"1") }, Header { key: b"h", value: None }];
    for (index, time) in (0..count).zip(1_700_000_000_000..) {
        builder.push(NewRecord {
            timestamp: Some(Timestamp::from_millis(time)),
            key: (index % 3 != 0).then_some(b"key".as_slice()),
            value: (index % 4 != 1).then_some(b"some value".as_slice()),
            headers: &headers[..index % 3],
        });
    }
    builder.build()
}

/// Makes the first batch as long as the input, and its checksum right.
pub(super) fn repair(input: &mut [u8]) {
    if input.len() < CHECKED_FROM {
        return;
    }
    let length = u32::try_from(input.len() - OVERHEAD).expect("inputs are small");
    input[LENGTH_AT..LENGTH_AT + 4].copy_from_slice(&length.to_be_bytes());
    let crc = crc32c(&input[CHECKED_FROM..]);
    input[CRC_AT..CRC_AT + 4].copy_from_slice(&crc.to_be_bytes());
}

fn run(input: &[u8]) -> u64 {
    let mut kinds = 0_u64;
    let mut walked = 0;
    for batch in batches(input) {
        let kind = match batch {
            Ok(batch) => {
                walked += batch.bytes().len();
                assert!(walked <= input.len(), "batches reach past their bytes");
                one(&batch)
            }
            Err(error) => kind_of(error),
        };
        kinds = kinds.rotate_left(7) ^ kind;
    }
    let sealed =
        SealedBatches::from_sealed(Bytes::copy_from_slice(input), Timestamp::from_millis(0));
    if let Ok(Some(sealed)) = &sealed {
        assert!(sealed.base_offset() <= sealed.next_offset(), "{sealed:?} ends before it begins");
    }
    kinds ^ kind_of(sealed.map(|sealed| sealed.is_some()))
}

fn one(batch: &BatchView<'_>) -> u64 {
    let attributes = batch.attributes();
    let crc = batch.check_crc().is_ok();
    let control = ControlRecord::of(batch);
    let producer = batch.producer().map(|stamp| stamp.base_sequence.is_some());
    let mut read = 0;
    let mut end = Ok(());
    let decompressed = batch.decompressed(DECOMPRESSED_MAX);
    if let Ok(block) = &decompressed {
        let within = block.len() as u64 <= DECOMPRESSED_MAX.get().max(batch.bytes().len() as u64);
        assert!(within, "{} bytes came out", block.len());
        for record in records(block, batch.records_count()) {
            match record {
                Ok(record) => {
                    read += 1;
                    // Whatever the numbers are, asking what they mean is safe.
                    let _meaning = (batch.offset_of(&record), batch.timestamp_of(&record));
                    assert!(record.headers.iter().count() <= block.len());
                }
                Err(error) => end = Err(error),
            }
        }
        let counted = usize::try_from(batch.records_count()).is_ok_and(|count| count == read);
        assert!(end.is_err() || counted, "{read} records were read of {}", batch.records_count());
    }
    seal(batch);
    let unpacked = decompressed.map(drop);
    let shape = (attributes, crc, control.is_ok(), producer, end, unpacked);
    kind_of((shape, magnitude(read), batch.next_offset().is_some()))
}

/// A batch whose numbers make a range can be sealed, and is then what was sealed.
fn seal(batch: &BatchView<'_>) {
    if batch.last_offset_delta() < 0 || batch.check_crc().is_err() {
        return;
    }
    let now = Timestamp::from_millis(1_800_000_000_000);
    for kind in [TimestampType::CreateTime, TimestampType::LogAppendTime] {
        let epoch = LeaderEpoch::from_wire(5).expect("an epoch");
        let bytes = BytesMut::from(batch.bytes());
        let sealed = SealedBatches::seal(bytes, Offset::new(1000), epoch, kind, now);
        let view = BatchView::exactly(sealed.bytes()).expect("sealing keeps the shape");
        assert_eq!(view.check_crc(), Ok(()), "sealing broke the checksum");
        assert_eq!(view.base_offset(), Some(Offset::new(1000)));
        assert_eq!(view.next_offset(), Some(sealed.next_offset()));
        assert_eq!(view.attributes().compression(), Attributes::compression(batch.attributes()));
    }
}
