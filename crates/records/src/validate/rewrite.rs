//! What a broker rewrites of a produced batch: header fields, the codec, offsets with holes.

use bytes::{Bytes, BytesMut};
use strandline_model::ByteCount;

use super::{ContentError, InvalidBatch, Oversize};
use crate::batch::{
    ATTRIBUTES, BATCH_LENGTH, LENGTH_OVERHEAD, MAX_TIMESTAMP, write_crc, write_field,
};
use crate::compression::compress;
use crate::{Attributes, BatchView, Codec, HEADER_BYTES, records};

/// Writes what changed in the header, and the checksum.
pub(super) fn header(bytes: &mut BytesMut, attributes: Attributes, max_timestamp: i64) {
    write_field(bytes, ATTRIBUTES, attributes.bits().to_be_bytes());
    write_field(bytes, MAX_TIMESTAMP, max_timestamp.to_be_bytes());
    write_crc(bytes);
}

/// The batch with other records in another codec. Attributes and checksum are still the old ones.
pub(super) fn with_records(
    batch: &BatchView<'_>,
    block: &[u8],
    codec: Codec,
) -> Result<BytesMut, Oversize> {
    let header = batch.bytes().get(..HEADER_BYTES).unwrap_or_default();
    let mut bytes = Vec::with_capacity(HEADER_BYTES + block.len() / 2);
    bytes.extend_from_slice(header);
    compress(codec, block, &mut bytes);
    let length = i32::try_from(bytes.len() - LENGTH_OVERHEAD).map_err(|_| Oversize {
        have: ByteCount::of(&bytes),
        limit: ByteCount::new(i32::MAX.unsigned_abs().into()),
    })?;
    write_field(&mut bytes, BATCH_LENGTH, length.to_be_bytes());
    Ok(BytesMut::from(Bytes::from(bytes)))
}

/// The records with the offset deltas 0, 1, 2, …
///
/// Some old clients number them otherwise. Kafka mends that in compressed batches, and we in all.
pub(super) fn renumber(block: &[u8], batch: &BatchView<'_>) -> Result<Vec<u8>, InvalidBatch> {
    let mut out = Vec::with_capacity(block.len());
    for (record, index) in records(block, batch.records_count()).zip(0..) {
        match record {
            Ok(record) => record.write_at(&mut out, index),
            Err(error) => {
                return Err(InvalidBatch::Content(ContentError::Record { index, error }));
            }
        }
    }
    Ok(out)
}
