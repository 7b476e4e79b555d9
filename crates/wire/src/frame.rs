//! Frames: how requests follow one another on a connection, and their headers.
//!
//! A frame is a 32-bit length, a header and a body. The reader works on whatever bytes have arrived
//! and takes nothing from a peer's word: the length must fit the API that the frame names, and
//! [`Arrival::Missing`] says how much to make room for now, never what the length field claims.
//!
//! # Invariants
//! - An error here means that the connection can't be followed any further: close it.

mod foreign;

use bytes::{Buf, Bytes, BytesMut};
use kacrab_protocol::KafkaString;
use strandline_model::ByteCount;

use crate::message::Message;
use crate::reader::Reader;
use crate::writer::fill_in_length;
use crate::{Api, ApiKey, DecodeError, EncodeError, Lookup, lookup};

pub use foreign::Foreign;

/// The length field.
const LENGTH_BYTES: usize = 4;
/// API key, version, correlation id: what every header begins with.
const HEADER_BYTES_MIN: usize = 8;
/// The first step of room for a frame; later steps double what has arrived.
const ROOM_BYTES_MIN: usize = 16 * 1024;

/// How large frames may be.
#[derive(Clone, Copy, Debug)]
pub struct FrameLimits {
    produce: usize,
    fetch: usize,
    other: usize,
}

impl FrameLimits {
    /// The largest frame of an API that the generated codec decodes: its small elements grow up to
    /// fifty-fold in memory, so that one request costs at most 100 MiB for as long as it is decoded.
    pub const OTHER_MAX: ByteCount = ByteCount::mib(2);

    /// `produce` is Kafka's `socket.request.max.bytes`; `except_produce` bounds all else, and APIs
    /// other than Produce and Fetch are held to [`FrameLimits::OTHER_MAX`] besides.
    pub fn new(produce: ByteCount, except_produce: ByteCount) -> Self {
        let bytes = |count: ByteCount| usize::try_from(count.get()).unwrap_or(usize::MAX);
        let other = bytes(except_produce.min(Self::OTHER_MAX));
        Self { produce: bytes(produce), fetch: bytes(except_produce), other }
    }

    /// The largest frame of `key`, in bytes without the length field.
    pub const fn max(&self, key: ApiKey) -> usize {
        match key {
            ApiKey::Produce => self.produce,
            ApiKey::Fetch => self.fetch,
            _ => self.other,
        }
    }
}

/// A request's header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestHeader {
    /// What is asked for, in which version.
    pub api: Api,
    /// What the response has to repeat.
    pub correlation_id: i32,
    /// How the client calls itself. Shares the frame's memory: copy it to keep it.
    pub client_id: Option<KafkaString>,
}

/// What has arrived at the front of a connection's buffer.
#[derive(Debug)]
pub enum Arrival {
    /// Not a whole frame yet. Room for this many more bytes is enough for now; it is never more
    /// than 16 KiB or what has arrived of the frame, whichever is larger.
    Missing(usize),
    /// A request of a served API: its header and its body, still encoded.
    Request(RequestHeader, BytesMut),
    /// `ApiVersions` in a version that is not served. The answer is version 0 of it with
    /// `UNSUPPORTED_VERSION` and the served versions (KIP-511); the connection goes on.
    UnknownApiVersions {
        /// What the response has to repeat.
        correlation_id: i32,
    },
}

/// Why a connection can't be followed any further.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The length is negative or smaller than a header.
    #[error("frame length is impossible. length=`{0}`")]
    Length(i32),
    /// The length is above the limit of the frame's API.
    #[error("{key} frame is over its limit. length=`{length}`, max=`{max}`")]
    TooLarge {
        /// Which API.
        key: ApiKey,
        /// What the frame claims.
        length: usize,
        /// What is allowed.
        max: usize,
    },
    /// No served API has this key. Kafka closes the connection too.
    #[error("api key is unknown. key=`{key}`, version=`{version}`")]
    UnknownKey {
        /// The key.
        key: i16,
        /// The version.
        version: i16,
    },
    /// The API is not served in this version. Kafka closes the connection too.
    #[error("{key} version {version} is not served")]
    UnsupportedVersion {
        /// Which API.
        key: ApiKey,
        /// The version.
        version: i16,
    },
    /// The header is malformed.
    #[error("malformed request header")]
    Header(#[source] DecodeError),
    /// What can't be followed begins as another protocol does.
    #[error("peer speaks another protocol: {0}")]
    Foreign(Foreign),
}

/// Takes the next request off the front of `buf`, when all of it has arrived.
pub fn next_request(buf: &mut BytesMut, limits: &FrameLimits) -> Result<Arrival, FrameError> {
    take_request(buf, limits).map_err(|error| match (Foreign::of(buf), &error) {
        // The header is gone from the buffer then; what is there is what follows it.
        (_, FrameError::Header(_)) | (None, _) => error,
        (Some(foreign), _) => FrameError::Foreign(foreign),
    })
}

fn take_request(buf: &mut BytesMut, limits: &FrameLimits) -> Result<Arrival, FrameError> {
    let Some(&length) = buf.first_chunk() else {
        return Ok(missing(LENGTH_BYTES + HEADER_BYTES_MIN, buf.len()));
    };
    let claimed = i32::from_be_bytes(length);
    let length = usize::try_from(claimed)
        .ok()
        .filter(|&length| length >= HEADER_BYTES_MIN)
        .ok_or(FrameError::Length(claimed))?;
    // The limit depends on the API, so that nothing is decided before its key is here.
    let Some(&[k0, k1, v0, v1, c0, c1, c2, c3]) =
        buf.get(LENGTH_BYTES..).and_then(|tail| tail.first_chunk())
    else {
        return Ok(missing(LENGTH_BYTES + HEADER_BYTES_MIN, buf.len()));
    };
    let (key, version) = (i16::from_be_bytes([k0, k1]), i16::from_be_bytes([v0, v1]));
    let correlation_id = i32::from_be_bytes([c0, c1, c2, c3]);
    let found = lookup(key, version);
    let key = match found {
        Lookup::Served(api) => api.key(),
        Lookup::UnsupportedVersion(ApiKey::ApiVersions) => ApiKey::ApiVersions,
        Lookup::UnsupportedVersion(key) => {
            return Err(FrameError::UnsupportedVersion { key, version });
        }
        Lookup::UnknownKey => return Err(FrameError::UnknownKey { key, version }),
    };
    let max = limits.max(key);
    if length > max {
        return Err(FrameError::TooLarge { key, length, max });
    }
    if buf.len() < LENGTH_BYTES + length {
        return Ok(missing(LENGTH_BYTES + length, buf.len()));
    }
    let mut frame = buf.split_to(LENGTH_BYTES + length);
    frame.advance(LENGTH_BYTES + HEADER_BYTES_MIN);
    match found {
        Lookup::Served(api) => request(api, correlation_id, frame),
        // Its header may have any shape; only the correlation id is needed.
        Lookup::UnsupportedVersion(_) | Lookup::UnknownKey => {
            Ok(Arrival::UnknownApiVersions { correlation_id })
        }
    }
}

fn request(api: Api, correlation_id: i32, frame: BytesMut) -> Result<Arrival, FrameError> {
    // The client id has a 16-bit length even where all else is flexible, and no client is turned away
    // because of how it writes its name.
    let mut reader = Reader::new(frame, false);
    let client_id = reader.lenient_text().map_err(FrameError::Header)?;
    let mut reader = Reader::new(reader.into_rest(), api.is_flexible());
    reader.skip_tagged_fields().map_err(FrameError::Header)?;
    let header = RequestHeader { api, correlation_id, client_id };
    Ok(Arrival::Request(header, reader.into_rest()))
}

fn missing(whole: usize, arrived: usize) -> Arrival {
    Arrival::Missing(whole.saturating_sub(arrived).min(arrived.max(ROOM_BYTES_MIN)))
}

/// Appends a whole response frame to `buf`. On an error `buf` is as it was.
pub fn write_response(
    buf: &mut BytesMut,
    api: Api,
    correlation_id: i32,
    response: &impl Message,
) -> Result<(), EncodeError> {
    let header = 8 + usize::from(api.has_flexible_response_header());
    write_frame(buf, api, header, response, |buf| {
        buf.extend_from_slice(&correlation_id.to_be_bytes());
        if api.has_flexible_response_header() {
            buf.extend_from_slice(&[0]);
        }
    })
}

/// Appends a whole request frame to `buf`, as a client sends it. On an error `buf` is as it was.
pub fn write_request(
    buf: &mut BytesMut,
    header: &RequestHeader,
    request: &impl Message,
) -> Result<(), EncodeError> {
    let RequestHeader { api, correlation_id, client_id } = header;
    let client_id_length = match client_id {
        None => -1,
        Some(text) => i16::try_from(text.len()).map_err(|_| EncodeError::TooLong)?,
    };
    let header = 15 + client_id.as_ref().map_or(0, KafkaString::len);
    write_frame(buf, *api, header, request, |buf| {
        buf.extend_from_slice(&api.key().number().to_be_bytes());
        buf.extend_from_slice(&api.version().to_be_bytes());
        buf.extend_from_slice(&correlation_id.to_be_bytes());
        buf.extend_from_slice(&client_id_length.to_be_bytes());
        buf.extend_from_slice(client_id.as_ref().map_or(&[], KafkaString::as_bytes));
        if api.is_flexible() {
            buf.extend_from_slice(&[0]);
        }
    })
}

fn write_frame(
    buf: &mut BytesMut,
    api: Api,
    header_bytes: usize,
    message: &impl Message,
    write_header: impl FnOnce(&mut BytesMut),
) -> Result<(), EncodeError> {
    let start = buf.len();
    let body = message.encoded_len(api.version())?;
    buf.reserve(header_bytes.saturating_add(body));
    buf.extend_from_slice(&[0; LENGTH_BYTES]);
    write_header(buf);
    let result = message.encode(buf, api.version()).and_then(|()| {
        let length = buf.len().saturating_sub(start + LENGTH_BYTES);
        fill_in_length(buf, start, length)
    });
    if result.is_err() {
        buf.truncate(start);
    }
    result
}

/// The correlation id of a response frame that has no length field any more.
pub fn response_correlation_id(frame: &[u8]) -> Result<i32, DecodeError> {
    frame.first_chunk().map(|&id| i32::from_be_bytes(id)).ok_or(DecodeError::CutShort)
}

/// Reads a response frame without its length field: its correlation id and its message.
pub fn read_response<M: Message>(frame: Bytes, api: Api) -> Result<(i32, M), DecodeError> {
    let correlation_id = response_correlation_id(&frame)?;
    let mut body = BytesMut::from(frame);
    body.advance(4);
    let mut reader = Reader::new(body, api.has_flexible_response_header());
    reader.skip_tagged_fields()?;
    Ok((correlation_id, M::decode(reader.into_rest().freeze(), api.version())?))
}

#[cfg(test)]
mod tests;
