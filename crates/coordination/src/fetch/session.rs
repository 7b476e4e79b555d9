//! One fetch session.

use std::collections::BTreeMap;

use strandline_model::Timestamp;

use super::{FetchPartition, Fetched, SessionKey, TopicKey};

/// What a session knows of one partition.
#[derive(Clone, Debug)]
struct Entry {
    key: SessionKey,
    wants: FetchPartition,
    told: Told,
}

/// What the client was told last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Told {
    high_watermark: i64,
    log_start_offset: i64,
}

/// Nothing was told yet: any answer is news.
const NOTHING_TOLD: Told = Told { high_watermark: -1, log_start_offset: -1 };

#[derive(Debug)]
pub(super) struct Session {
    /// The epoch that the next request must carry.
    pub(super) epoch: i32,
    pub(super) uses_ids: bool,
    pub(super) created_at: Timestamp,
    pub(super) last_used_at: Timestamp,
    /// By turn: the partitions that had data last come last, so that each gets its share.
    turns: BTreeMap<u64, Entry>,
    turn_of: BTreeMap<SessionKey, u64>,
    next_turn: u64,
    /// Bytes that the partitions take, about.
    bytes: usize,
}

impl Session {
    pub(super) fn new(now: Timestamp, uses_ids: bool) -> Self {
        Self {
            epoch: 1,
            uses_ids,
            created_at: now,
            last_used_at: now,
            turns: BTreeMap::new(),
            turn_of: BTreeMap::new(),
            next_turn: 0,
            bytes: 0,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.turns.len()
    }

    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds a partition, or changes what the client wants of it.
    pub(super) fn want(&mut self, key: SessionKey, wants: FetchPartition) {
        if let Some(entry) = self.turn_of.get(&key).and_then(|turn| self.turns.get_mut(turn)) {
            entry.wants = wants;
            return;
        }
        self.bytes += key.weight();
        self.turn_of.insert(key.clone(), self.next_turn);
        self.turns.insert(self.next_turn, Entry { key, wants, told: NOTHING_TOLD });
        self.next_turn += 1;
    }

    pub(super) fn forget(&mut self, key: &SessionKey) {
        if let Some(turn) = self.turn_of.remove(key) {
            self.turns.remove(&turn);
            self.bytes -= key.weight();
        }
    }

    /// What to fetch, in order.
    pub(super) fn wants(&self) -> Vec<(SessionKey, FetchPartition)> {
        self.turns.values().map(|entry| (entry.key.clone(), entry.wants)).collect()
    }

    /// Decides whether the client is told of `key`, and remembers it.
    pub(super) fn tell(&mut self, key: &SessionKey, fetched: Fetched) -> bool {
        let Some(&turn) = self.turn_of.get(key) else {
            // Forgotten by a later request of the same session: the client asked, so it is told.
            return true;
        };
        let entry = self.turns.get_mut(&turn).expect("turns and turn_of name the same partitions");
        let told = Told {
            high_watermark: fetched.high_watermark,
            log_start_offset: fetched.log_start_offset,
        };
        let news = fetched.has_records || fetched.must_tell || told != entry.told;
        // After an error the next good answer is news even when its numbers are the old ones.
        entry.told = if fetched.must_tell { NOTHING_TOLD } else { told };
        if fetched.has_records {
            let entry = self.turns.remove(&turn).expect("it was there a line above");
            self.turn_of.insert(entry.key.clone(), self.next_turn);
            self.turns.insert(self.next_turn, entry);
            self.next_turn += 1;
        }
        news
    }

    pub(super) fn mixes_names_and_ids(&self, topic: &TopicKey) -> bool {
        matches!(topic, TopicKey::Id(_)) != self.uses_ids
    }
}
