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
//! The name is a broker's id, empty for all brokers, or that of the group or subscription. For quotas
//! (kind 255) it is, for each type of entity: the type's text, u8 1 for a name or 0 for everybody, the
//! name's text; the values are numbers as text. There is no row where nothing is set.

use std::collections::BTreeMap;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use strandline_model::{NodeId, QuotaEntity};

use crate::row_codec::{RowError, check_version, put_text, put_texts, take_text, take_texts};

const VERSION: u8 = 1;

const BROKER: u8 = 4;
const CLIENT_METRICS: u8 = 16;
const GROUP: u8 = 32;
/// Quotas are no resource of Kafka's, so this number is ours.
const CLIENT_QUOTA: u8 = 255;

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
    /// The quotas of users, clients or addresses.
    ClientQuota(QuotaEntity),
}

impl Owner {
    /// The key of the row.
    pub(super) fn key(&self) -> Bytes {
        let mut key = BytesMut::new();
        let mut put = |kind: u8, name: &[u8]| {
            key.put_u8(kind);
            key.put_slice(name);
        };
        match self {
            Self::AllBrokers => put(BROKER, &[]),
            Self::Broker(id) => put(BROKER, id.to_string().as_bytes()),
            Self::ClientMetrics(name) => put(CLIENT_METRICS, name.as_bytes()),
            Self::Group(name) => put(GROUP, name.as_bytes()),
            Self::ClientQuota(entity) => {
                key.put_u8(CLIENT_QUOTA);
                for (kind, name) in entity.iter() {
                    put_text(&mut key, kind.name());
                    key.put_u8(u8::from(name.is_some()));
                    put_text(&mut key, name.unwrap_or_default());
                }
            }
        }
        key.freeze()
    }

    /// The owner of a row.
    pub(super) fn of_key(key: &[u8]) -> Result<Self, RowError> {
        let (kind, name) = key.split_first().ok_or(RowError::Damaged)?;
        if *kind == CLIENT_QUOTA {
            return quota_entity(name).map(Self::ClientQuota);
        }
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

fn quota_entity(name: &[u8]) -> Result<QuotaEntity, RowError> {
    let mut bytes = Bytes::copy_from_slice(name);
    let mut entries = Vec::new();
    while bytes.has_remaining() {
        let kind = take_text(&mut bytes)?;
        let is_named = bytes.try_get_u8().map_err(|_| RowError::Damaged)? == 1;
        let name = take_text(&mut bytes)?;
        entries.push((kind, is_named.then_some(name)));
    }
    QuotaEntity::new(entries).map_err(|_| RowError::Damaged)
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
            Owner::ClientQuota(
                QuotaEntity::new([
                    ("user".to_owned(), None),
                    ("client-id".to_owned(), Some("c".to_owned())),
                ])
                .expect("good"),
            ),
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
