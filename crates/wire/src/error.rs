//! How reading and writing messages fails.

use std::error::Error;

use crate::ApiKey;

/// Why bytes are not the message that they claim to be. The peer's fault, always.
#[derive(Debug, thiserror::Error)]
pub enum DecodeError {
    /// The message ends before its fields do, or a length points past its end.
    #[error("message is cut short")]
    CutShort,
    /// A length that nothing can have, or null where null is not allowed.
    #[error("length is impossible. length=`{0}`")]
    Length(i64),
    /// A variable-length number of more than five bytes.
    #[error("variable-length number is too long")]
    Varint,
    /// A text that is not UTF-8.
    #[error("text is not utf-8")]
    Utf8,
    /// More topics and partitions than one request may name.
    #[error("request has too many elements. max=`{max}`")]
    TooManyElements {
        /// How many there may be.
        max: usize,
    },
    /// A message of the generated codec is malformed.
    #[error("malformed {key} message")]
    Malformed {
        /// Which API.
        key: ApiKey,
        /// What the codec says.
        source: Box<dyn Error + Send + Sync>,
    },
}

/// Why a message can't be written. A bug of whoever built it, or a response beyond all bounds.
#[derive(Debug, thiserror::Error)]
pub enum EncodeError {
    /// A field is set that this version can't carry, or a text is too long for its length field.
    #[error("{key} version {version} can't carry the message")]
    Unrepresentable {
        /// Which API.
        key: ApiKey,
        /// In which version.
        version: i16,
        /// What the codec says.
        source: Box<dyn Error + Send + Sync>,
    },
    /// A text or an array is longer than its length field can say.
    #[error("a text or an array is too long for the wire")]
    TooLong,
    /// The frame is longer than 2³¹ − 1 bytes.
    #[error("frame is too large. bytes=`{0}`")]
    FrameTooLarge(usize),
}
