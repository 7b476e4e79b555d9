//! Reads Kafka's primitive types from a request body that it owns.
//!
//! Owning the buffer lets record batches leave it as buffers of their own, writable and without a
//! copy: the broker assigns offsets in place.
//!
//! # Invariants
//! - Nothing is allocated on the word of a length field: it is compared with the bytes that are there.

use bytes::{Buf, BytesMut};
use kacrab_protocol::KafkaString;
use strandline_model::TopicId;

use crate::DecodeError;

#[derive(Debug)]
pub(crate) struct Reader {
    buf: BytesMut,
    flexible: bool,
    elements_left: usize,
}

/// Topics and partitions (and what else stands in arrays) of one request. Far above what any client
/// sends; without it a frame of empty topics would grow thirtyfold when decoded. Kafka has no such
/// bound and runs out of heap instead.
pub(crate) const ELEMENTS_MAX: usize = 250_000;

impl Reader {
    pub(crate) const fn new(buf: BytesMut, flexible: bool) -> Self {
        Self { buf, flexible, elements_left: ELEMENTS_MAX }
    }

    pub(crate) fn int8(&mut self) -> Result<i8, DecodeError> {
        self.buf.try_get_i8().map_err(|_| DecodeError::CutShort)
    }

    pub(crate) fn int16(&mut self) -> Result<i16, DecodeError> {
        self.buf.try_get_i16().map_err(|_| DecodeError::CutShort)
    }

    pub(crate) fn int32(&mut self) -> Result<i32, DecodeError> {
        self.buf.try_get_i32().map_err(|_| DecodeError::CutShort)
    }

    pub(crate) fn int64(&mut self) -> Result<i64, DecodeError> {
        self.buf.try_get_i64().map_err(|_| DecodeError::CutShort)
    }

    pub(crate) fn topic_id(&mut self) -> Result<TopicId, DecodeError> {
        let mut bytes = [0; 16];
        self.buf.try_copy_to_slice(&mut bytes).map_err(|_| DecodeError::CutShort)?;
        Ok(TopicId::from_bytes(bytes))
    }

    /// Seven bits a byte, lowest first; at most five bytes.
    pub(crate) fn unsigned_varint(&mut self) -> Result<u32, DecodeError> {
        let mut value = 0_u32;
        for shift in [0, 7, 14, 21, 28] {
            let byte = self.buf.try_get_u8().map_err(|_| DecodeError::CutShort)?;
            value |= u32::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(DecodeError::Varint)
    }

    /// A length of bytes that are there, or null. Any negative length is null, as Kafka reads it.
    fn length(&mut self, width: Width) -> Result<Option<usize>, DecodeError> {
        let length = if self.flexible {
            i64::from(self.unsigned_varint()?) - 1
        } else {
            match width {
                Width::Int16 => i64::from(self.int16()?),
                Width::Int32 => i64::from(self.int32()?),
            }
        };
        match usize::try_from(length) {
            Err(_) => Ok(None),
            Ok(length) if length > self.buf.len() => Err(DecodeError::CutShort),
            Ok(length) => Ok(Some(length)),
        }
    }

    pub(crate) fn nullable_text(&mut self) -> Result<Option<KafkaString>, DecodeError> {
        let Some(length) = self.length(Width::Int16)? else { return Ok(None) };
        let bytes = self.buf.split_to(length).freeze();
        KafkaString::new(bytes).map(Some).map_err(|_| DecodeError::Utf8)
    }

    /// A text that need not be UTF-8: what is not becomes U+FFFD, as in Java.
    pub(crate) fn lenient_text(&mut self) -> Result<Option<KafkaString>, DecodeError> {
        let Some(length) = self.length(Width::Int16)? else { return Ok(None) };
        let bytes = self.buf.split_to(length).freeze();
        let lossy = || KafkaString::from(String::from_utf8_lossy(&bytes).into_owned());
        Ok(Some(KafkaString::new(bytes.clone()).unwrap_or_else(|_| lossy())))
    }

    pub(crate) fn text(&mut self) -> Result<KafkaString, DecodeError> {
        self.nullable_text()?.ok_or(DecodeError::Length(-1))
    }

    /// Record batches, as a buffer of their own that shares the frame's memory.
    pub(crate) fn records(&mut self) -> Result<Option<BytesMut>, DecodeError> {
        Ok(self.length(Width::Int32)?.map(|length| self.buf.split_to(length)))
    }

    /// The length of an array whose elements have at least one byte each.
    pub(crate) fn array(&mut self) -> Result<usize, DecodeError> {
        let count = self.length(Width::Int32)?.ok_or(DecodeError::Length(-1))?;
        match self.elements_left.checked_sub(count) {
            None => Err(DecodeError::TooManyElements { max: ELEMENTS_MAX }),
            Some(left) => {
                self.elements_left = left;
                Ok(count)
            }
        }
    }

    /// The tagged fields that end every structure of a flexible version: those that `known` takes
    /// are read by it, all others are skipped.
    pub(crate) fn tagged_fields(
        &mut self,
        mut known: impl FnMut(u32, &mut Self) -> Result<(), DecodeError>,
    ) -> Result<(), DecodeError> {
        if !self.flexible {
            return Ok(());
        }
        for _ in 0..self.unsigned_varint()? {
            let tag = self.unsigned_varint()?;
            let size = usize::try_from(self.unsigned_varint()?).unwrap_or(usize::MAX);
            if size > self.buf.len() {
                return Err(DecodeError::CutShort);
            }
            let mut field = Self::new(self.buf.split_to(size), true);
            known(tag, &mut field)?;
        }
        Ok(())
    }

    /// Tagged fields of which none is known.
    pub(crate) fn skip_tagged_fields(&mut self) -> Result<(), DecodeError> {
        self.tagged_fields(|_, _| Ok(()))
    }

    /// What has not been read.
    pub(crate) fn into_rest(self) -> BytesMut {
        self.buf
    }
}

/// How wide a length field is in versions that are not flexible.
#[derive(Clone, Copy)]
enum Width {
    Int16,
    Int32,
}
