//! How calls fail.

use std::fmt;
use std::io;
use std::time::Duration;

use strandline_wire::{ApiKey, DecodeError, EncodeError, ErrorCode};

use crate::Address;
use crate::address::ParseAddressError;

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// An address of the configuration is none.
    #[error(transparent)]
    Address(#[from] ParseAddressError),
    /// No connection could be made. With several bootstrap addresses: to the last of them.
    #[error("{origin} {address}: {source}")]
    Unreachable {
        /// To what.
        address: Address,
        /// Who named the address.
        origin: Origin,
        /// Why.
        source: io::Error,
    },
    /// The peer did not answer in time. Whether it did what it was asked to is not known.
    #[error("{address} did not answer {doing} within {} ms", after.as_millis())]
    Timeout {
        /// Who.
        address: Address,
        /// What it was asked.
        doing: ApiKey,
        /// How long we waited.
        after: Duration,
    },
    /// The connection broke. Whether the peer did what it was asked to is not known.
    #[error("connection to {address} broke during {doing}: {source}")]
    Broken {
        /// To whom.
        address: Address,
        /// What it was asked.
        doing: ApiKey,
        /// Why.
        source: io::Error,
    },
    /// The peer's answer is not Kafka's protocol.
    #[error("{address} answered {doing} with what is no Kafka response: {source}")]
    Garbled {
        /// Who.
        address: Address,
        /// What it was asked.
        doing: ApiKey,
        /// What is wrong.
        source: DecodeError,
    },
    /// The peer does not serve the API in any version that we know.
    #[error("{address} does not serve {key} in a version that this client knows")]
    Unsupported {
        /// Who.
        address: Address,
        /// Which API.
        key: ApiKey,
    },
    /// The request can't be sent: a name that is too long, say.
    #[error(transparent)]
    Request(#[from] EncodeError),
    /// The broker's answer is an error.
    #[error("{subject}: {code}{}", message.as_deref().map(|m| format!(" ({m})")).unwrap_or_default())]
    Broker {
        /// What the answer is about: a topic, a partition, a request.
        subject: String,
        /// The broker's code.
        code: ErrorCode,
        /// The broker's words, when it sent any.
        message: Option<String>,
    },
    /// Records that the broker sent can't be read.
    #[error("{subject}: records can't be read: {reason}")]
    Records {
        /// Which topic, partition and offset.
        subject: String,
        /// What is wrong.
        reason: String,
    },
}

/// Who named an address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The user.
    Bootstrap,
    /// A broker that answered told us to go there: its `advertised.listeners`.
    Advertised {
        /// The broker that answered.
        by: Address,
    },
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bootstrap => f.write_str("cannot reach Kafka at"),
            Self::Advertised { by } => {
                write!(f, "{by} answered, but it told us to connect to")
            }
        }
    }
}

impl ClientError {
    /// The broker's code, when the broker answered with one.
    pub const fn code(&self) -> Option<ErrorCode> {
        match self {
            Self::Broker { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// Nothing when `code` says that all is well.
    pub(crate) fn check(
        code: i16,
        subject: impl FnOnce() -> String,
        message: Option<&str>,
    ) -> Result<(), Self> {
        let code = ErrorCode::from_wire(code);
        if code.is_none() {
            return Ok(());
        }
        Err(Self::Broker { subject: subject(), code, message: message.map(str::to_owned) })
    }
}
