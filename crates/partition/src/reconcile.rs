//! What a store of logs holds beside what metadata says that there is: which logs are known, which
//! nobody knows, and which have lost something.
//!
//! The broker asks an engine for an [`Inventory`] and then reads the [`Claims`] of metadata, in this
//! order: a log has bytes only after its topic was committed, so nothing that is being created is listed
//! without a claim. A claim may still be between two tables when it is read, while a deletion is being
//! taken back, so a log is [taken for unknown](confirmed) only when two looks agree.
//!
//! # Invariants
//! - Each log that is listed falls into exactly one class.
//! - A log with a claim is never unknown; one without is never known, pending or missing.

use std::collections::{BTreeMap, BTreeSet};

use strandline_model::{PartitionId, Timestamp, TopicId};

/// What a store says of its logs, all of it at about the same moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inventory {
    /// Every log that owns bytes or rows.
    pub listed: BTreeSet<PartitionId>,
    /// Those in quarantine, and since when.
    pub quarantined: BTreeMap<PartitionId, Timestamp>,
    /// Those of which something durable is gone, and what.
    pub lost: BTreeMap<PartitionId, String>,
    /// Those of which a part is gone, and what; the rest can be served.
    pub damaged: BTreeMap<PartitionId, String>,
    /// Those that could not be looked at, and why.
    pub unreadable: BTreeMap<PartitionId, String>,
}

/// What metadata says of the topics of one store.
pub type Claims = BTreeMap<TopicId, Claim>;

/// Why a topic's logs may have bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Claim {
    /// The topic exists.
    Topic {
        /// How many partitions it has.
        partition_count: u32,
    },
    /// It is deleted, and its bytes wait for their removal.
    Deletion {
        /// How many partitions it had.
        partition_count: u32,
    },
}

/// A log of a topic that exists, and what it has lost, or why it can't be looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// Which one.
    pub id: PartitionId,
    /// What is gone or hides it, as the store tells it.
    pub what: String,
}

/// Each listed log, by what is to become of it. All in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// Their topic exists, and all is well.
    pub known: Vec<PartitionId>,
    /// Their topic exists, and something of them is gone: reported, and served to nobody.
    pub missing: Vec<Missing>,
    /// Their topic exists, and a part of them is gone: reported, and served as far as they can be read.
    pub damaged: Vec<Missing>,
    /// Their topic exists, and they could not be looked at: reported, and left as they are.
    pub unreadable: Vec<Missing>,
    /// Their topic exists, and they are in quarantine: to be released.
    pub returned: Vec<PartitionId>,
    /// Their topic is deleted: the removal is under way.
    pub pending: Vec<PartitionId>,
    /// Nobody knows them: to be set aside.
    pub unknown: Vec<PartitionId>,
    /// Nobody knows them, and they are set aside.
    pub quarantined: Vec<PartitionId>,
}

/// Puts each log where it belongs.
pub fn compare(inventory: &Inventory, claims: &Claims) -> Comparison {
    let Inventory { listed, quarantined, lost, damaged, unreadable } = inventory;
    let mut comparison = Comparison::default();
    for id in listed.union(&quarantined.keys().copied().collect()).copied() {
        match (claim_of(claims, id), quarantined.contains_key(&id), lost.get(&id)) {
            (Some(Claim::Topic { .. }), true, _) => comparison.returned.push(id),
            (Some(Claim::Topic { .. }), false, Some(what)) => {
                comparison.missing.push(Missing { id, what: what.clone() });
            }
            (Some(Claim::Topic { .. }), false, None) => {
                let told = |what: &String| Missing { id, what: what.clone() };
                match (damaged.get(&id), unreadable.get(&id)) {
                    (Some(what), _) => comparison.damaged.push(told(what)),
                    (None, Some(what)) => comparison.unreadable.push(told(what)),
                    (None, None) => comparison.known.push(id),
                }
            }
            (Some(Claim::Deletion { .. }), _, _) => comparison.pending.push(id),
            (None, true, _) => comparison.quarantined.push(id),
            (None, false, _) => comparison.unknown.push(id),
        }
    }
    comparison
}

/// Logs that are unknown in both looks, of which the second began after the first.
pub fn confirmed(first: &Comparison, second: &Comparison) -> Vec<PartitionId> {
    let before: BTreeSet<_> = first.unknown.iter().collect();
    second.unknown.iter().filter(|id| before.contains(id)).copied().collect()
}

/// When what is in quarantine since `since` may be removed; `None`: never.
pub fn purge_at(since: Timestamp, kept_ms: Option<u64>) -> Option<Timestamp> {
    let kept_ms = i64::try_from(kept_ms?).ok()?;
    // At the end of time is never.
    since.as_millis().checked_add(kept_ms).map(Timestamp::from_millis)
}

/// The claim on a partition: one beyond the count of its topic has none.
fn claim_of(claims: &Claims, id: PartitionId) -> Option<Claim> {
    let claim = *claims.get(&id.topic_id)?;
    let (Claim::Topic { partition_count } | Claim::Deletion { partition_count }) = claim;
    (id.index.get() < partition_count).then_some(claim)
}
