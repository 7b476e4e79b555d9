//! How texts, times and versions stand in the rows of the metadata store.
//!
//! All numbers big-endian; a text is its length (u16) and its UTF-8 bytes; a map of texts is its
//! count (u16), then each key and value.

use std::collections::BTreeMap;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use strandline_model::Timestamp;

/// The longest text that a row takes: what a classic Kafka string can carry.
pub(crate) const TEXT_BYTES_MAX: usize = 32_767;

/// Bytes that are no row of ours.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RowError {
    /// Written by a newer version of the broker.
    #[error("row has an unknown version. version=`{0}`")]
    Version(u8),
    /// The bytes end early or hold something impossible.
    #[error("row is damaged")]
    Damaged,
}

/// Takes the version off a row and refuses any but `known`.
pub(crate) fn check_version(bytes: &mut Bytes, known: u8) -> Result<(), RowError> {
    match bytes.try_get_u8() {
        Ok(version) if version == known => Ok(()),
        Ok(version) => Err(RowError::Version(version)),
        Err(_) => Err(RowError::Damaged),
    }
}

pub(crate) fn put_text(buf: &mut BytesMut, text: &str) {
    buf.put_u16(
        u16::try_from(text.len()).expect("texts are checked to be shorter when they come in"),
    );
    buf.put_slice(text.as_bytes());
}

pub(crate) fn take_text(bytes: &mut Bytes) -> Result<String, RowError> {
    let length = usize::from(bytes.try_get_u16().map_err(|_| RowError::Damaged)?);
    if bytes.remaining() < length {
        return Err(RowError::Damaged);
    }
    String::from_utf8(bytes.split_to(length).into()).map_err(|_| RowError::Damaged)
}

pub(crate) fn put_texts(buf: &mut BytesMut, texts: &BTreeMap<String, String>) {
    buf.put_u16(u16::try_from(texts.len()).expect("there are fewer config keys"));
    for (key, value) in texts {
        put_text(buf, key);
        put_text(buf, value);
    }
}

pub(crate) fn take_texts(bytes: &mut Bytes) -> Result<BTreeMap<String, String>, RowError> {
    let mut texts = BTreeMap::new();
    for _ in 0..bytes.try_get_u16().map_err(|_| RowError::Damaged)? {
        texts.insert(take_text(bytes)?, take_text(bytes)?);
    }
    Ok(texts)
}

pub(crate) fn take_timestamp(bytes: &mut Bytes) -> Result<Timestamp, RowError> {
    let millis = bytes.try_get_i64().map_err(|_| RowError::Damaged)?;
    Timestamp::from_wire(millis).ok_or(RowError::Damaged)
}
