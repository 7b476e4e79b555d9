//! Writes Kafka's primitive types, and frames around them.
//!
//! A length that its field can't express is remembered and reported once, by [`Writer::finish`]:
//! the code in between reads like the schema.

use bytes::{BufMut, BytesMut};
use kacrab_protocol::KafkaString;

use crate::{Api, EncodeError};

#[derive(Debug)]
pub(crate) struct Writer<'a> {
    buf: &'a mut BytesMut,
    /// Where the frame's length stands.
    start: usize,
    flexible: bool,
    too_long: bool,
}

impl<'a> Writer<'a> {
    /// Begins a response frame at the end of `buf`: its length, to be filled in, and its header.
    pub(crate) fn response(buf: &'a mut BytesMut, api: Api, correlation_id: i32) -> Self {
        let start = buf.len();
        buf.put_i32(0);
        buf.put_i32(correlation_id);
        if api.has_flexible_response_header() {
            buf.put_u8(0);
        }
        Self { buf, start, flexible: api.is_flexible(), too_long: false }
    }

    /// Fills in the frame's length. `elsewhere` bytes of it are not in the buffer.
    pub(crate) fn finish(self, elsewhere: usize) -> Result<(), EncodeError> {
        if self.too_long {
            return Err(EncodeError::TooLong);
        }
        let written = self.buf.len().saturating_sub(self.start).saturating_sub(4);
        fill_in_length(self.buf, self.start, written.saturating_add(elsewhere))
    }

    /// How many bytes the buffer holds.
    pub(crate) fn position(&self) -> usize {
        self.buf.len()
    }

    pub(crate) fn int16(&mut self, value: i16) {
        self.buf.put_i16(value);
    }

    pub(crate) fn int32(&mut self, value: i32) {
        self.buf.put_i32(value);
    }

    pub(crate) fn int64(&mut self, value: i64) {
        self.buf.put_i64(value);
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        self.buf.put_slice(bytes);
    }

    pub(crate) fn unsigned_varint(&mut self, mut value: u32) {
        loop {
            let [low, ..] = value.to_le_bytes();
            value >>= 7;
            if value == 0 {
                return self.buf.put_u8(low & 0x7f);
            }
            self.buf.put_u8(low | 0x80);
        }
    }

    /// A length of something whose length field is 32 bits wide in versions that are not flexible.
    pub(crate) fn length(&mut self, length: usize) {
        let Ok(length) = i32::try_from(length) else {
            self.too_long = true;
            return;
        };
        if self.flexible {
            self.unsigned_varint(length.cast_unsigned() + 1);
        } else {
            self.int32(length);
        }
    }

    /// A null array.
    pub(crate) fn null(&mut self) {
        if self.flexible { self.unsigned_varint(0) } else { self.int32(-1) }
    }

    pub(crate) fn text(&mut self, text: &KafkaString) {
        if self.flexible {
            self.length(text.len());
        } else {
            match i16::try_from(text.len()) {
                Ok(length) => self.int16(length),
                Err(_) => self.too_long = true,
            }
        }
        self.bytes(text.as_bytes());
    }

    pub(crate) fn nullable_text(&mut self, text: Option<&KafkaString>) {
        match text {
            Some(text) => self.text(text),
            None if self.flexible => self.unsigned_varint(0),
            None => self.int16(-1),
        }
    }

    /// The end of a structure that has no tagged fields set.
    pub(crate) fn no_tagged_fields(&mut self) {
        if self.flexible {
            self.unsigned_varint(0);
        }
    }

    /// The head of a tagged field of `size` bytes.
    pub(crate) fn tag(&mut self, tag: u32, size: usize) {
        self.unsigned_varint(tag);
        match u32::try_from(size) {
            Ok(size) => self.unsigned_varint(size),
            Err(_) => self.too_long = true,
        }
    }
}

/// Writes `length` into the four bytes at `start`, where a frame's length stands.
pub(crate) fn fill_in_length(
    buf: &mut BytesMut,
    start: usize,
    length: usize,
) -> Result<(), EncodeError> {
    let size = i32::try_from(length).map_err(|_| EncodeError::FrameTooLarge(length))?;
    let field = buf.get_mut(start..).and_then(|tail| tail.first_chunk_mut());
    *field.expect("a frame begins with its length") = size.to_be_bytes();
    Ok(())
}

/// The bytes that [`Writer::unsigned_varint`] writes for `value`.
pub(crate) fn varint_len(value: usize) -> usize {
    match value {
        0..=0x7f => 1,
        0x80..=0x3fff => 2,
        0x4000..=0x1f_ffff => 3,
        0x20_0000..=0xfff_ffff => 4,
        _ => 5,
    }
}
