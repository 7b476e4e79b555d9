//! Incremental fetch sessions (KIP-227): a consumer sends only what changed, and gets only that.
//!
//! A session remembers which partitions a client reads, from where, and what it was told last. It
//! holds no data. Losing one costs the client a full request, nothing else, so sessions live in
//! memory only.
//!
//! # Invariants
//! - A session's epoch rises by one with each request, from 1, and wraps from 2³¹ − 1 to 1.
//! - At most [`SessionLimits::sessions_max`] sessions of at most
//!   [`SessionLimits::partitions_per_session_max`] partitions, which together take at most
//!   [`SessionLimits::bytes_max`].
//! - A session addresses topics either by name or by id, never both.

mod session;
mod sessions;

use std::sync::Arc;

use strandline_model::TopicId;

pub use sessions::{FetchSessions, SessionContext, SessionError, SessionLimits, SessionRequest};

/// How a client names a topic: by name up to Fetch v12, by id from v13 on.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TopicKey {
    /// Fetch v4 to v12.
    Name(Arc<str>),
    /// Fetch v13 and later.
    Id(TopicId),
}

/// A partition as a session knows it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionKey {
    /// The topic.
    pub topic: TopicKey,
    /// The partition's index as the wire carries it: a wrong one is answered, not refused.
    pub index: i32,
}

impl SessionKey {
    /// What a session needs to remember the partition, about: its key twice, what is wanted and what
    /// was told, and the name.
    pub(crate) fn weight(&self) -> usize {
        const ENTRY_BYTES: usize = 192;
        match &self.topic {
            TopicKey::Name(name) => ENTRY_BYTES + name.len(),
            TopicKey::Id(_) => ENTRY_BYTES,
        }
    }
}

/// What a client wants of one partition. The numbers are the wire's, unchecked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FetchPartition {
    /// Where to read from.
    pub fetch_offset: i64,
    /// At most this many bytes.
    pub max_bytes: i32,
    /// The leader epoch that the client knows; −1 when it knows none.
    pub current_leader_epoch: i32,
    /// The epoch of the last record that the client has; −1 when it has none.
    pub last_fetched_epoch: i32,
}

/// What the client is about to be told of one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fetched {
    /// The high watermark as the response carries it; −1 with an error.
    pub high_watermark: i64,
    /// The log start as the response carries it; −1 with an error.
    pub log_start_offset: i64,
    /// Whether there are records.
    pub has_records: bool,
    /// Whether there is something that must be told whatever was told before: an error, or a
    /// diverging epoch.
    pub must_tell: bool,
}
