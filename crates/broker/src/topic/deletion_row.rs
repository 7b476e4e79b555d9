//! The row of a deleted topic whose bytes are not all gone.
//!
//! # On disk
//!
//! Written as `row_codec.rs` says.
//!
//! | row | key | value |
//! | --- | --- | --- |
//! | deletion | engine text, topic id | version u8 = 2, deleted at i64, not before i64, flags u8 (1: removal has begun, 2: paused), bytes u64, bytes freed u64, client id text, address text, the topic's row |
//!
//! Version 1 has no flags and nothing up to the topic's row. Nobody knows of it whether removal has
//! begun, so it is read as if it had.

use std::net::SocketAddr;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use strandline_model::{ByteCount, Timestamp, TopicId};

use super::TopicRow;
use crate::row_codec::{RowError, put_text, take_text, take_timestamp};

const VERSION: u8 = 2;
/// The version before removal had a beginning.
const VERSION_WITHOUT_BEGINNING: u8 = 1;

/// How much is kept of what a client calls itself.
const CLIENT_ID_BYTES_MAX: usize = 256;

const HAS_BEGUN: u8 = 1;
const IS_PAUSED: u8 = 2;

/// A deleted topic whose bytes are not all gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DeletionRow {
    /// The topic's identity.
    pub(crate) topic_id: TopicId,
    /// When it was deleted.
    pub(crate) deleted_at: Timestamp,
    /// When its bytes may go.
    pub(crate) not_before: Timestamp,
    /// Whether some of them may be gone: there is no way back.
    pub(crate) has_begun: bool,
    /// Whether somebody stopped the removal.
    pub(crate) is_paused: bool,
    /// Bytes of its batches when it was deleted.
    pub(crate) bytes: ByteCount,
    /// Bytes that were freed so far.
    pub(crate) freed: ByteCount,
    /// Who deleted it.
    pub(crate) by: DeletedBy,
    /// The topic as it was: enough to bring it back within the grace.
    pub(crate) topic: TopicRow,
}

/// Whose request deleted a topic. Empty where it is not known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeletedBy {
    /// What the client calls itself.
    pub(crate) client_id: String,
    /// Its address.
    pub(crate) address: String,
}

impl DeletedBy {
    /// A client that calls itself so, as much of it as a row takes.
    pub(crate) fn new(client_id: &str, address: SocketAddr) -> Self {
        let end = client_id.floor_char_boundary(CLIENT_ID_BYTES_MAX);
        Self { client_id: client_id[..end].to_owned(), address: address.to_string() }
    }
}

impl DeletionRow {
    /// The key of the row.
    pub(crate) fn key(&self) -> Bytes {
        deletion_key(&self.topic.engine, self.topic_id)
    }

    /// The value of the row.
    pub(crate) fn encode(&self) -> Bytes {
        let mut buf = BytesMut::new();
        buf.put_u8(VERSION);
        buf.put_i64(self.deleted_at.as_millis());
        buf.put_i64(self.not_before.as_millis());
        let begun = if self.has_begun { HAS_BEGUN } else { 0 };
        let paused = if self.is_paused { IS_PAUSED } else { 0 };
        buf.put_u8(begun | paused);
        buf.put_u64(self.bytes.get());
        buf.put_u64(self.freed.get());
        put_text(&mut buf, &self.by.client_id);
        put_text(&mut buf, &self.by.address);
        self.topic.encode_into(&mut buf);
        buf.freeze()
    }

    /// The deletion that a row describes.
    pub(crate) fn decode(key: &Bytes, mut value: Bytes) -> Result<Self, RowError> {
        let topic_id = TopicId::from_bytes(*key.last_chunk().ok_or(RowError::Damaged)?);
        let version = value.try_get_u8().map_err(|_| RowError::Damaged)?;
        let deleted_at = match version {
            VERSION | VERSION_WITHOUT_BEGINNING => take_timestamp(&mut value)?,
            unknown => return Err(RowError::Version(unknown)),
        };
        let not_before = take_timestamp(&mut value)?;
        if version == VERSION_WITHOUT_BEGINNING {
            return Ok(Self {
                topic_id,
                deleted_at,
                not_before,
                has_begun: true,
                is_paused: false,
                bytes: ByteCount::ZERO,
                freed: ByteCount::ZERO,
                by: DeletedBy::default(),
                topic: TopicRow::decode(value)?,
            });
        }
        let flags = value.try_get_u8().map_err(|_| RowError::Damaged)?;
        if flags & !(HAS_BEGUN | IS_PAUSED) != 0 {
            return Err(RowError::Damaged);
        }
        let mut count = || value.try_get_u64().map(ByteCount::new).map_err(|_| RowError::Damaged);
        let (bytes, freed) = (count()?, count()?);
        let client_id = take_text(&mut value)?;
        let address = take_text(&mut value)?;
        Ok(Self {
            topic_id,
            deleted_at,
            not_before,
            has_begun: flags & HAS_BEGUN != 0,
            is_paused: flags & IS_PAUSED != 0,
            bytes,
            freed,
            by: DeletedBy { client_id, address },
            topic: TopicRow::decode(value)?,
        })
    }
}

/// The key of the row of a deleted topic.
pub(crate) fn deletion_key(engine: &str, topic_id: TopicId) -> Bytes {
    let mut buf = BytesMut::new();
    put_text(&mut buf, engine);
    buf.put_slice(topic_id.as_bytes());
    buf.freeze()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use strandline_model::TopicName;

    use super::*;

    fn row() -> DeletionRow {
        DeletionRow {
            topic_id: TopicId::from_bytes([7; 16]),
            deleted_at: Timestamp::from_millis(1_000),
            not_before: Timestamp::from_millis(61_000),
            has_begun: true,
            is_paused: true,
            bytes: ByteCount::gib(3),
            freed: ByteCount::mib(16),
            by: DeletedBy { client_id: "admin".to_owned(), address: "[::1]:5".to_owned() },
            topic: TopicRow {
                name: TopicName::new("orders").unwrap(),
                engine: "file".to_owned(),
                partition_count: 3,
                created_at: Timestamp::from_millis(1),
                configs: BTreeMap::from([("retention.ms".to_owned(), "1".to_owned())]),
            },
        }
    }

    #[test]
    fn a_row_is_read_as_it_was_written() {
        for (has_begun, is_paused) in [(false, false), (true, false), (false, true), (true, true)] {
            let row = DeletionRow { has_begun, is_paused, ..row() };
            assert_eq!(DeletionRow::decode(&row.key(), row.encode()), Ok(row));
        }
    }

    #[test]
    fn a_row_that_ends_early_or_says_too_much_is_damaged() {
        let (key, value) = (row().key(), row().encode());
        for length in 0..value.len() {
            let cut = DeletionRow::decode(&key, value.slice(..length));
            assert_eq!(cut, Err(RowError::Damaged), "{length}");
        }
        let mut unknown_flag = BytesMut::from(&*value);
        unknown_flag[17] = 4;
        assert_eq!(DeletionRow::decode(&key, unknown_flag.freeze()), Err(RowError::Damaged));
        let mut newer = BytesMut::from(&*value);
        newer[0] = 3;
        assert_eq!(DeletionRow::decode(&key, newer.freeze()), Err(RowError::Version(3)));
    }

    #[test]
    fn a_row_of_the_first_version_may_have_lost_bytes() {
        let row = row();
        let mut first = BytesMut::new();
        first.put_u8(1);
        first.put_i64(row.deleted_at.as_millis());
        first.put_i64(row.not_before.as_millis());
        row.topic.encode_into(&mut first);
        let read = DeletionRow::decode(&row.key(), first.freeze()).unwrap();
        assert!(read.has_begun && !read.is_paused);
        assert_eq!((read.topic, read.not_before), (row.topic, row.not_before));
    }
}
