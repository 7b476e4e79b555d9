//! `/v1/storage`: what the storage engines hold beside what metadata says.

use serde::Serialize;
use strandline_model::Timestamp;

use crate::clients::{rfc_3339, rfc_3339_if_any};

/// What was found of one engine, as it is served. Field names are part of the API.
#[derive(Clone, Debug, Serialize)]
pub struct Reconciliation {
    /// The engine's name.
    pub engine: String,
    /// When it was looked at last.
    #[serde(serialize_with = "rfc_3339")]
    pub checked_at: Timestamp,
    /// Logs of topics that exist, and are whole as far as a look tells.
    pub known: usize,
    /// Logs of deleted topics, whose bytes wait for their removal.
    pub pending: usize,
    /// What lies among the logs and is no part of any: it is left alone.
    pub foreign: Vec<String>,
    /// Logs that no topic knows.
    pub strangers: Vec<Stranger>,
    /// Partitions of which something is gone: they are served to nobody.
    pub missing: Vec<MissingPartition>,
    /// Partitions of which a part is gone, or can't be read: the rest is served.
    pub damaged: Vec<MissingPartition>,
    /// Partitions that could not be looked at: nobody knows whether they are whole.
    pub unreadable: Vec<MissingPartition>,
}

/// A log that no topic knows.
#[derive(Clone, Debug, Serialize)]
pub struct Stranger {
    /// The id of the topic that it once belonged to.
    pub topic_id: String,
    /// The partition's index in it.
    pub partition: u32,
    /// `quarantined`, or `left` where it is.
    pub state: &'static str,
    /// Bytes in quarantine.
    pub bytes: u64,
    /// Since when it is in quarantine.
    #[serde(serialize_with = "rfc_3339_if_any")]
    pub since: Option<Timestamp>,
    /// When it is removed; null: never.
    #[serde(serialize_with = "rfc_3339_if_any")]
    pub purge_at: Option<Timestamp>,
}

/// A partition that has lost something, or that can't be looked at.
#[derive(Clone, Debug, Serialize)]
pub struct MissingPartition {
    /// The name of its topic.
    pub topic: String,
    /// The topic's id.
    pub topic_id: String,
    /// Its index.
    pub partition: u32,
    /// What is gone, or why nobody knows.
    pub what: String,
}

impl Reconciliation {
    /// Bytes in quarantine.
    pub(crate) fn quarantined_bytes(&self) -> u64 {
        self.strangers.iter().map(|stranger| stranger.bytes).sum()
    }
}
