//! The rows that describe topics: what is kept in the metadata store of each.
//!
//! # On disk
//!
//! Written as `row_codec.rs` says.
//!
//! | row | key | value |
//! | --- | --- | --- |
//! | topic | topic id (16 bytes) | version u8 = 1, name text, engine text, partition count u32, created at i64, config count u16, then each: key text, value text |
//! | topic name | the name with `.` as `_` | topic id |
//!
//! The name row is keyed by the collision key, so that one expectation refuses both a taken name
//! and one that differs only in `.` and `_`.

use std::collections::BTreeMap;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use strandline_model::{Timestamp, TopicId, TopicName};

use crate::row_codec::{
    RowError, check_version, put_text, put_texts, take_text, take_texts, take_timestamp,
};

const VERSION: u8 = 1;

/// A topic as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TopicRow {
    /// Its label.
    pub(crate) name: TopicName,
    /// The engine that its logs are kept in, pinned when the topic was created.
    pub(crate) engine: String,
    /// How many partitions it has.
    pub(crate) partition_count: u32,
    /// When it was created.
    pub(crate) created_at: Timestamp,
    /// Its own configuration: what differs from the broker's.
    pub(crate) configs: BTreeMap<String, String>,
}

impl TopicRow {
    /// The value of the row.
    pub(crate) fn encode(&self) -> Bytes {
        let mut buf = BytesMut::new();
        self.encode_into(&mut buf);
        buf.freeze()
    }

    pub(super) fn encode_into(&self, buf: &mut BytesMut) {
        buf.put_u8(VERSION);
        put_text(buf, self.name.as_str());
        put_text(buf, &self.engine);
        buf.put_u32(self.partition_count);
        buf.put_i64(self.created_at.as_millis());
        put_texts(buf, &self.configs);
    }

    /// The topic that `value` describes.
    pub(crate) fn decode(mut value: Bytes) -> Result<Self, RowError> {
        let row = Self::decode_from(&mut value)?;
        if value.has_remaining() { Err(RowError::Damaged) } else { Ok(row) }
    }

    fn decode_from(bytes: &mut Bytes) -> Result<Self, RowError> {
        check_version(bytes, VERSION)?;
        let name = TopicName::new(&take_text(bytes)?).map_err(|_| RowError::Damaged)?;
        let engine = take_text(bytes)?;
        let partition_count = bytes.try_get_u32().map_err(|_| RowError::Damaged)?;
        let created_at = take_timestamp(bytes)?;
        let configs = take_texts(bytes)?;
        Ok(Self { name, engine, partition_count, created_at, configs })
    }
}

/// The key of a topic's row.
pub(crate) fn topic_key(id: TopicId) -> Bytes {
    Bytes::copy_from_slice(id.as_bytes())
}

/// The key of a topic name's row.
pub(crate) fn name_key(name: &TopicName) -> Bytes {
    Bytes::from(name.collision_key().into_bytes())
}
