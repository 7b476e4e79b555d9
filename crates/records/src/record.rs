//! A borrowed view of one record, and the walk over the records of a batch.
//!
//! # On the wire and on disk
//!
//! | field | type | |
//! | --- | --- | --- |
//! | length | varint | bytes of the fields that follow |
//! | attributes | i8 | unused |
//! | timestamp delta | varlong | from the batch's base timestamp |
//! | offset delta | varint | from the batch's base offset |
//! | key | varint length, bytes | −1: null |
//! | value | varint length, bytes | −1: null |
//! | headers count | varint | |
//! | each header | key (varint length, bytes), value (varint length, bytes; −1: null) | |
//!
//! Varints are zig-zag. Records of a compressed batch are compressed together, so what is walked
//! here is the block that
//! [`BatchView::decompressed`] returns.

use strandline_model::{Offset, OffsetDelta, Timestamp};

use crate::varint::{Reader, put_varint, put_varlong, varint_bytes};
use crate::{BatchView, TimestampType};

/// Why bytes are not the records that a batch says it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// A field reaches past the end of its record, or the record past the end of the batch.
    #[error("record is cut short")]
    CutShort,
    /// A number has more bits than its field.
    #[error("varint is too long")]
    Varint,
    /// A length is negative where that means nothing.
    #[error("length is negative")]
    NegativeLength,
    /// The number of headers is negative, or larger than the bytes that are left could hold.
    #[error("header count is impossible")]
    HeaderCount,
    /// The fields of a record end before its length does.
    #[error("record is longer than its fields")]
    LongerThanItsFields,
    /// There are fewer records than the batch says.
    #[error("records are missing")]
    Missing,
    /// There are bytes after the last record that the batch counts.
    #[error("bytes follow the last record")]
    Surplus,
}

/// One record, borrowed from the uncompressed records of its batch.
///
/// [`BatchView::offset_of`] and [`BatchView::timestamp_of`] turn the deltas into what they mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// Offset of this record minus the batch's base offset.
    pub offset_delta: i32,
    /// Timestamp of this record minus the batch's base timestamp.
    pub timestamp_delta: i64,
    /// The key, if any.
    pub key: Option<&'a [u8]>,
    /// The value; `None` deletes the key in a compacted topic.
    pub value: Option<&'a [u8]>,
    /// The headers.
    pub headers: Headers<'a>,
}

/// A header of a record. Kafka's clients take keys for UTF-8; brokers do not look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header<'a> {
    /// The name; several headers may have the same.
    pub key: &'a [u8],
    /// The value, if any.
    pub value: Option<&'a [u8]>,
}

/// The headers of a record in the order they were given, repeated keys included.
///
/// # Invariants
/// - The bytes are exactly `count` headers: checked when the record is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Headers<'a> {
    count: i32,
    bytes: &'a [u8],
}

impl<'a> Headers<'a> {
    /// No headers.
    pub const NONE: Headers<'static> = Headers { count: 0, bytes: &[] };

    /// Each header.
    pub const fn iter(&self) -> HeaderIter<'a> {
        HeaderIter { left: self.count, reader: Reader::new(self.bytes) }
    }

    /// Whether there is none.
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn read(reader: Reader<'a>, count: i32) -> Result<Self, RecordError> {
        let headers = Self { count, bytes: reader.rest() };
        // A header has two bytes at least, so that a huge count can't make a long loop.
        let room = usize::try_from(count).is_ok_and(|count| count <= headers.bytes.len() / 2);
        if !room {
            return Err(RecordError::HeaderCount);
        }
        let mut each = headers.iter();
        while each.left > 0 {
            each.read()?;
        }
        if each.reader.rest().is_empty() {
            Ok(headers)
        } else {
            Err(RecordError::LongerThanItsFields)
        }
    }
}

impl std::fmt::Debug for Headers<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<'a> IntoIterator for Headers<'a> {
    type Item = Header<'a>;
    type IntoIter = HeaderIter<'a>;

    fn into_iter(self) -> HeaderIter<'a> {
        self.iter()
    }
}

impl<'a> IntoIterator for &Headers<'a> {
    type Item = Header<'a>;
    type IntoIter = HeaderIter<'a>;

    fn into_iter(self) -> HeaderIter<'a> {
        self.iter()
    }
}

/// See [`Headers::iter`].
#[derive(Clone, Debug)]
pub struct HeaderIter<'a> {
    left: i32,
    reader: Reader<'a>,
}

impl<'a> HeaderIter<'a> {
    fn read(&mut self) -> Result<Header<'a>, RecordError> {
        self.left -= 1;
        Ok(Header { key: self.reader.sized()?, value: self.reader.nullable()? })
    }
}

impl<'a> Iterator for HeaderIter<'a> {
    type Item = Header<'a>;

    fn next(&mut self) -> Option<Header<'a>> {
        (self.left > 0).then(|| self.read().expect("headers are checked when a record is read"))
    }
}

impl<'a> Record<'a> {
    /// The record at the front of `reader`, whole and checked.
    #[expect(clippy::inline_always, reason = "the walk of every Produce takes 2.5 of 15 ns less")]
    #[inline(always)]
    pub(crate) fn read(reader: &mut Reader<'a>) -> Result<Self, RecordError> {
        let mut body = Reader::new(reader.sized()?);
        let _attributes = body.byte()?;
        let timestamp_delta = body.varlong()?;
        let offset_delta = body.varint()?;
        let key = body.nullable()?;
        let value = body.nullable()?;
        let headers = match body.varint()? {
            0 if body.rest().is_empty() => Headers::NONE,
            0 => return Err(RecordError::LongerThanItsFields),
            count => Headers::read(body, count)?,
        };
        Ok(Self { offset_delta, timestamp_delta, key, value, headers })
    }

    /// Appends this record with another offset delta, everything else as it is.
    pub(crate) fn write_at(&self, out: &mut Vec<u8>, offset_delta: i32) {
        let sized = |field: Option<&[u8]>| {
            let length = field.map_or(-1, wire_length);
            varint_bytes(i64::from(length)) + field.map_or(0, <[u8]>::len)
        };
        let attributes = 1;
        let length = attributes
            + varint_bytes(self.timestamp_delta)
            + varint_bytes(i64::from(offset_delta))
            + sized(self.key)
            + sized(self.value)
            + varint_bytes(i64::from(self.headers.count))
            + self.headers.bytes.len();
        put_varint(out, i32::try_from(length).expect("a record is smaller than 2 GiB"));
        out.push(0);
        put_varlong(out, self.timestamp_delta);
        put_varint(out, offset_delta);
        put_nullable(out, self.key);
        put_nullable(out, self.value);
        put_varint(out, self.headers.count);
        out.extend_from_slice(self.headers.bytes);
    }
}

/// Headers in the form in which a record carries them.
#[derive(Clone, Debug, Default)]
pub(crate) struct EncodedHeaders {
    count: i32,
    bytes: Vec<u8>,
}

impl EncodedHeaders {
    /// Replaces what was encoded before; the buffer is kept.
    pub(crate) fn encode(&mut self, headers: &[Header<'_>]) -> Headers<'_> {
        self.bytes.clear();
        self.count = i32::try_from(headers.len()).expect("a record has fewer than 2^31 headers");
        for header in headers {
            put_nullable(&mut self.bytes, Some(header.key));
            put_nullable(&mut self.bytes, header.value);
        }
        Headers { count: self.count, bytes: &self.bytes }
    }
}

fn put_nullable(out: &mut Vec<u8>, field: Option<&[u8]>) {
    put_varint(out, field.map_or(-1, wire_length));
    out.extend_from_slice(field.unwrap_or_default());
}

fn wire_length(field: &[u8]) -> i32 {
    i32::try_from(field.len()).expect("a field is smaller than 2 GiB")
}

/// The `count` records that `bytes`, uncompressed, are.
///
/// Ends after the last record, or yields one error and ends there. A count that does not fit the
/// bytes is such an error.
pub const fn records(bytes: &[u8], count: i32) -> RecordIter<'_> {
    RecordIter { reader: Reader::new(bytes), left: count }
}

/// See [`records`].
#[derive(Clone, Debug)]
pub struct RecordIter<'a> {
    reader: Reader<'a>,
    left: i32,
}

impl<'a> RecordIter<'a> {
    #[inline]
    fn read(&mut self) -> Result<Record<'a>, RecordError> {
        if self.left <= 0 {
            return Err(RecordError::Surplus);
        }
        if self.reader.rest().is_empty() {
            return Err(RecordError::Missing);
        }
        Record::read(&mut self.reader)
    }
}

impl<'a> Iterator for RecordIter<'a> {
    type Item = Result<Record<'a>, RecordError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 && self.reader.rest().is_empty() {
            return None;
        }
        let record = self.read();
        match record {
            Ok(_) => self.left -= 1,
            Err(_) => *self = records(&[], 0),
        }
        Some(record)
    }
}

impl BatchView<'_> {
    /// The offset of a record of this batch; `None` when the numbers make no offset.
    pub fn offset_of(&self, record: &Record<'_>) -> Option<Offset> {
        self.base_offset()?.checked_add(OffsetDelta::new(i64::from(record.offset_delta)))
    }

    /// When a record of this batch was made, or with [`TimestampType::LogAppendTime`] when it was
    /// appended; `None` when it has no timestamp.
    pub fn timestamp_of(&self, record: &Record<'_>) -> Option<Timestamp> {
        match self.attributes().timestamp_type() {
            TimestampType::LogAppendTime => self.max_timestamp(),
            // Two numbers of the producer's: Kafka lets the sum wrap, and a negative time is none.
            TimestampType::CreateTime => {
                Timestamp::from_wire(self.base_timestamp().wrapping_add(record.timestamp_delta))
            }
        }
    }
}

#[cfg(test)]
mod tests;
