//! Looks before the next pass, at topics to which much was appended since the last one.
//!
//! How often passes come bounds how late age removes. A size or a count can be passed many times
//! over meanwhile; so what was appended is compared with these limits every second.

use hashbrown::HashMap;
use parking_lot::Mutex;
use strandline_model::TopicId;
use strandline_partition::retention::Policy;

use crate::topic::Topic;

/// Part of a limit that must have been appended.
const SHARE: u64 = 2;
/// Limits below this many bytes are not hurried for.
const BYTES_MIN: u64 = 1 << 20;
/// Limits below this many records are not hurried for.
const RECORDS_MIN: u64 = 1_000;

/// What had been appended to topics when they were looked at.
#[derive(Debug, Default)]
pub(super) struct Appended(Mutex<HashMap<TopicId, Counts>>);

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    bytes: u64,
    records: u64,
}

impl Appended {
    /// The topic is looked at now.
    pub(super) fn look_at(&self, topic: &Topic) {
        let policy = topic.settings().retention;
        if policy.bytes.is_some() || policy.records.is_some() {
            self.0.lock().insert(topic.id(), Counts::of(topic));
        }
    }

    /// Forgets topics that are gone.
    pub(super) fn retain(&self, is_there: impl Fn(TopicId) -> bool) {
        self.0.lock().retain(|id, _| is_there(*id));
    }

    /// Whether so much was appended since that the topic should not wait for the next pass.
    pub(super) fn is_much(&self, topic: &Topic) -> bool {
        let policy = topic.settings().retention;
        if policy.bytes.is_none() && policy.records.is_none() {
            return false;
        }
        let before = self.0.lock().get(&topic.id()).copied().unwrap_or_default();
        Counts::of(topic).since(before).is_much_for(&policy)
    }
}

impl Counts {
    fn of(topic: &Topic) -> Self {
        let metrics = topic.metrics();
        Self { bytes: metrics.received_bytes.get(), records: metrics.received_records.get() }
    }

    const fn since(self, before: Self) -> Self {
        // One that was brought back counts from nothing.
        Self {
            bytes: self.bytes.saturating_sub(before.bytes),
            records: self.records.saturating_sub(before.records),
        }
    }

    fn is_much_for(self, policy: &Policy) -> bool {
        let is_much = |came: u64, limit: u64, min: u64| came >= limit.max(min) / SHARE;
        policy.deletes
            && (policy.bytes.is_some_and(|limit| is_much(self.bytes, limit.get(), BYTES_MIN))
                || policy.records.is_some_and(|limit| is_much(self.records, limit, RECORDS_MIN)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A topic that was deleted and brought back counts from nothing, and was looked at before.
    #[test]
    fn less_than_before_is_nothing() {
        let counts = |bytes, records| Counts { bytes, records };
        let came = counts(10, 2).since(counts(500, 7));
        assert_eq!((came.bytes, came.records), (0, 0));
        let came = counts(510, 9).since(counts(500, 7));
        assert_eq!((came.bytes, came.records), (10, 2));
    }
}
