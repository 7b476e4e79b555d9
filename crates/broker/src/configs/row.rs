//! The rows of what was set while running of anything but topics, which keep it in their own rows.
//!
//! # On disk
//!
//! Written as `row_codec.rs` says.
//!
//! | row | key | value |
//! | --- | --- | --- |
//! | configuration | kind u8 (Kafka's number of the resource type), name | version u8 = 1, map of texts |
//!
//! The name is a broker's id, empty for all brokers, or that of the group or subscription. There is
//! no row where nothing is set.

use std::collections::BTreeMap;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use strandline_model::NodeId;

use crate::row_codec::{RowError, check_version, put_texts, take_texts};

const VERSION: u8 = 1;

const BROKER: u8 = 4;
const CLIENT_METRICS: u8 = 16;
const GROUP: u8 = 32;

/// Whose configuration a row holds.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Owner {
    /// All brokers.
    AllBrokers,
    /// One broker.
    Broker(NodeId),
    /// A subscription to the metrics of clients.
    ClientMetrics(String),
    /// A group, of any kind; it need not exist.
    Group(String),
}

impl Owner {
    /// The key of the row.
    pub(super) fn key(&self) -> Bytes {
        let (kind, name) = match self {
            Self::AllBrokers => (BROKER, String::new()),
            Self::Broker(id) => (BROKER, id.to_string()),
            Self::ClientMetrics(name) => (CLIENT_METRICS, name.clone()),
            Self::Group(name) => (GROUP, name.clone()),
        };
        let mut key = BytesMut::with_capacity(1 + name.len());
        key.put_u8(kind);
        key.put_slice(name.as_bytes());
        key.freeze()
    }

    /// The owner of a row.
    pub(super) fn of_key(key: &[u8]) -> Result<Self, RowError> {
        let (kind, name) = key.split_first().ok_or(RowError::Damaged)?;
        let name = std::str::from_utf8(name).map_err(|_| RowError::Damaged)?;
        match *kind {
            BROKER if name.is_empty() => Ok(Self::AllBrokers),
            BROKER => {
                let id = name.parse().map_err(|_| RowError::Damaged)?;
                Ok(Self::Broker(NodeId::new(id)))
            }
            CLIENT_METRICS => Ok(Self::ClientMetrics(name.to_owned())),
            GROUP => Ok(Self::Group(name.to_owned())),
            _ => Err(RowError::Damaged),
        }
    }
}

/// The value of the row.
pub(super) fn encode(texts: &BTreeMap<String, String>) -> Bytes {
    let mut buf = BytesMut::new();
    buf.put_u8(VERSION);
    put_texts(&mut buf, texts);
    buf.freeze()
}

/// What a row's value sets.
pub(super) fn decode(mut value: Bytes) -> Result<BTreeMap<String, String>, RowError> {
    check_version(&mut value, VERSION)?;
    let texts = take_texts(&mut value)?;
    if value.has_remaining() { Err(RowError::Damaged) } else { Ok(texts) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_and_values_round_trip() {
        for owner in [
            Owner::AllBrokers,
            Owner::Broker(NodeId::new(7)),
            Owner::ClientMetrics("m".to_owned()),
            Owner::Group("größe".to_owned()),
            Owner::Group(String::new()),
        ] {
            assert_eq!(Owner::of_key(&owner.key()), Ok(owner));
        }
        let texts = BTreeMap::from([("a".to_owned(), "b".to_owned())]);
        assert_eq!(decode(encode(&texts)), Ok(texts));
    }

    #[test]
    fn damage_is_told() {
        for key in [&[][..], &[9], &[BROKER, b'x'], &[GROUP, 0xff]] {
            assert_eq!(Owner::of_key(key), Err(RowError::Damaged), "{key:?}");
        }
        let whole = encode(&BTreeMap::from([("a".to_owned(), "b".to_owned())]));
        for end in 0..whole.len() {
            assert!(decode(whole.slice(..end)).is_err(), "{end}");
        }
        assert_eq!(decode(Bytes::from_static(&[2, 0, 0])), Err(RowError::Version(2)));
        assert_eq!(decode(Bytes::from_static(&[1, 0, 0, 0])), Err(RowError::Damaged));
    }
}
