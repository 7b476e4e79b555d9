//! Record batches for the raw-frame drivers: plain producer, no compression, one value per record.

use strandline_records::{HEADER_BYTES, crc32c};

/// A batch of `records` records with values of `value_bytes` bytes, without keys and headers.
///
/// The values are pseudo-random, so that nothing below can gain by compressing them.
pub fn plain(records: u32, value_bytes: usize) -> Vec<u8> {
    let count = i32::try_from(records).expect("a batch holds fewer records than i32 counts");
    let now = now_ms();
    let mut batch = vec![0; HEADER_BYTES];
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut record = Vec::new();
    for delta in 0..records {
        record.clear();
        record.push(0);
        varint(&mut record, 0);
        varint(&mut record, i64::from(delta));
        varint(&mut record, -1);
        varint(&mut record, i64::try_from(value_bytes).expect("values are small"));
        for _ in 0..value_bytes.div_ceil(8) {
            seed = seed
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            record.extend_from_slice(&seed.to_le_bytes());
        }
        record.truncate(record.len() - (value_bytes.div_ceil(8) * 8 - value_bytes));
        varint(&mut record, 0);
        varint(&mut batch, i64::try_from(record.len()).expect("records are small"));
        batch.extend_from_slice(&record);
    }
    let length = i32::try_from(batch.len() - 12).expect("batches stay under 2 GiB");
    let mut put = |at: usize, bytes: &[u8]| batch[at..at + bytes.len()].copy_from_slice(bytes);
    put(8, &length.to_be_bytes());
    put(12, &(-1_i32).to_be_bytes());
    put(16, &[2]);
    put(23, &(count - 1).to_be_bytes());
    put(27, &now.to_be_bytes());
    put(35, &now.to_be_bytes());
    put(43, &[0xff; 14]);
    put(57, &count.to_be_bytes());
    let crc = crc32c(&batch[21..]);
    batch[17..21].copy_from_slice(&crc.to_be_bytes());
    batch
}

fn varint(out: &mut Vec<u8>, value: i64) {
    let mut zigzag = (value << 1 ^ value >> 63).cast_unsigned();
    while zigzag >= 0x80 {
        out.push(zigzag.to_le_bytes()[0] | 0x80);
        zigzag >>= 7;
    }
    out.push(zigzag.to_le_bytes()[0]);
}

fn now_ms() -> i64 {
    let since_epoch = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .expect("the clock stands after 1970");
    i64::try_from(since_epoch.as_millis()).expect("milliseconds fit for ages")
}

#[cfg(test)]
mod tests {
    use strandline_records::BatchView;

    use super::*;

    #[test]
    fn a_built_batch_is_what_the_view_expects() {
        for (records, value_bytes) in [(1, 100), (3, 0), (1000, 1021)] {
            let bytes = plain(records, value_bytes);
            let view = BatchView::exactly(&bytes).unwrap();
            view.check_crc().unwrap();
            assert_eq!(view.records_count(), i32::try_from(records).unwrap());
            assert_eq!(view.last_offset_delta(), view.records_count() - 1);
            assert!(view.producer().is_none());
            assert!(bytes.len() >= HEADER_BYTES + records as usize * (value_bytes + 6));
        }
    }
}
