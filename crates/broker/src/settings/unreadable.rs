//! Settings of retention that are kept, but that this version can't read: after a downgrade, say.
//!
//! Elsewhere such a value counts as unset. Here that would mean a default that deletes, where
//! somebody may have asked to keep: so nothing goes by a limit that can't be read.

use std::collections::BTreeSet;

use strandline_model::config::TopicConfig;
use strandline_partition::retention::Policy;

/// The topic keys that say what goes.
const KEYS: [&str; 7] = [
    "cleanup.policy",
    "delete.retention.ms",
    "min.compaction.lag.ms",
    "retention.bytes",
    "retention.bytes.floor",
    "retention.ms",
    "retention.records",
];

/// Topic keys of retention whose value is not known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unreadable(BTreeSet<&'static str>);

impl Unreadable {
    /// A topic's own value of `name` can't be read.
    pub(super) fn add(&mut self, name: &str) {
        self.0.extend(KEYS.into_iter().filter(|key| *key == name));
    }

    /// The broker's value of `name`, a default of topics, can't be read.
    pub(super) fn add_default(&mut self, name: &str) {
        let key = match name {
            "log.retention.ms" | "log.retention.minutes" | "log.retention.hours" => "retention.ms",
            "log.retention.bytes" => "retention.bytes",
            "log.retention.records" => "retention.records",
            "log.cleanup.policy" => "cleanup.policy",
            "log.cleaner.delete.retention.ms" => "delete.retention.ms",
            "log.cleaner.min.compaction.lag.ms" => "min.compaction.lag.ms",
            _ => return,
        };
        self.0.insert(key);
    }

    /// The same with defaults that can't be read, where a topic has no value of its own.
    pub(super) fn with_defaults(mut self, defaults: &Self, has_own: impl Fn(&str) -> bool) -> Self {
        self.0.extend(defaults.0.iter().filter(|key| !has_own(key)));
        self
    }

    /// Their names.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().copied()
    }

    /// Whether it is known how long compaction must keep what it would remove.
    pub(super) fn knows_lags(&self) -> bool {
        !["delete.retention.ms", "min.compaction.lag.ms"].iter().any(|key| self.0.contains(key))
    }

    /// What a topic of `config` keeps: nothing goes by these.
    pub(super) fn policy(&self, config: &TopicConfig) -> Policy {
        let knows = |key| !self.0.contains(key);
        let knows_policy = knows("cleanup.policy");
        Policy {
            deletes: config.cleanup_policy.delete && knows_policy,
            compacts: config.cleanup_policy.compact && knows_policy,
            bytes: config.retention_bytes.filter(|_| knows("retention.bytes")),
            bytes_are_a_floor: config.retention_bytes_floor || !knows("retention.bytes.floor"),
            millis: config.retention_ms.filter(|_| knows("retention.ms")),
            records: config.retention_records.filter(|_| knows("retention.records")),
        }
    }
}
