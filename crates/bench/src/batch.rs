//! Record batches for the raw-frame drivers: plain producer, no compression, one value per record.

use strandline_records::{HEADER_BYTES, crc32c};

/// How long the keys of a [`Keyed`] batch are.
const KEY_BYTES: usize = 8;

/// A batch of `records` records with values of `value_bytes` bytes, without keys and headers.
///
/// The values are pseudo-random, so that nothing below can gain by compressing them.
pub fn plain(records: u32, value_bytes: usize) -> Vec<u8> {
    build(records, value_bytes, None).bytes
}

/// A batch whose records have keys, which are others each time that it is used.
#[derive(Clone, Debug)]
pub struct Keyed {
    bytes: Vec<u8>,
    /// Where the keys of the records stand.
    keys_at: Vec<usize>,
}

impl Keyed {
    /// `records` records with values as those of [`plain`], and keys that are all the same.
    pub fn new(records: u32, value_bytes: usize) -> Self {
        build(records, value_bytes, Some([0; KEY_BYTES]))
    }

    /// The batch with these keys, one for each record.
    pub fn with_keys(&mut self, keys: impl IntoIterator<Item = u64>) -> &[u8] {
        for (&at, key) in self.keys_at.iter().zip(keys) {
            self.bytes[at..at + KEY_BYTES].copy_from_slice(&key.to_be_bytes());
        }
        seal(&mut self.bytes);
        &self.bytes
    }

    /// Bytes of all its records together.
    pub const fn records_bytes(&self) -> usize {
        self.bytes.len() - HEADER_BYTES
    }
}

fn build(records: u32, value_bytes: usize, key: Option<[u8; KEY_BYTES]>) -> Keyed {
    let count = i32::try_from(records).expect("a batch holds fewer records than i32 counts");
    let now = now_ms();
    let mut batch = vec![0; HEADER_BYTES];
    let mut keys_at = Vec::new();
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut record = Vec::new();
    for delta in 0..records {
        record.clear();
        record.push(0);
        varint(&mut record, 0);
        varint(&mut record, i64::from(delta));
        varint(&mut record, key.map_or(-1, |_| KEY_BYTES as i64));
        let key_at = record.len();
        record.extend(key.into_iter().flatten());
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
        keys_at.extend(key.map(|_| batch.len() + key_at));
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
    seal(&mut batch);
    Keyed { bytes: batch, keys_at }
}

/// Writes the checksum.
fn seal(batch: &mut [u8]) {
    let crc = crc32c(&batch[21..]);
    batch[17..21].copy_from_slice(&crc.to_be_bytes());
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
    use strandline_records::{BatchView, records};

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

    #[test]
    fn keys_change_and_the_batch_is_sound_each_time() {
        let mut keyed = Keyed::new(3, 100);
        let size = keyed.records_bytes();
        for keys in [[1, 2, 3], [3, u64::MAX, 3]] {
            let bytes = keyed.with_keys(keys).to_vec();
            let view = BatchView::exactly(&bytes).unwrap();
            view.check_crc().unwrap();
            let walked = records(&bytes[HEADER_BYTES..], 3).map(Result::unwrap);
            let got: Vec<_> = walked.map(|record| record.key.unwrap().to_vec()).collect();
            assert_eq!(got, keys.map(|key| key.to_be_bytes().to_vec()));
            assert_eq!(bytes.len() - HEADER_BYTES, size);
        }
    }
}
