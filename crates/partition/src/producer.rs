//! What each idempotent producer appended last: enough to know a retry from a gap.

use std::collections::BTreeMap;

use strandline_model::{Offset, OffsetDelta, ProducerEpoch, ProducerId, Sequence, Timestamp};
use strandline_records::BatchView;

/// Batches remembered for each producer: Kafka's window for retries, and the most that a client
/// may have in flight.
pub const BATCHES_KEPT: usize = 5;

/// One remembered batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CachedBatch {
    /// The sequence of its first record.
    pub first_sequence: Sequence,
    /// Its last record's offset minus its first's.
    pub last_offset_delta: u32,
    /// The offset of its first record.
    pub base_offset: Offset,
    /// The broker's time when it was appended.
    pub appended_at: Timestamp,
}

impl CachedBatch {
    /// The sequence of its last record.
    pub const fn last_sequence(&self) -> Sequence {
        self.first_sequence.advanced_by(self.last_offset_delta)
    }

    /// The offset after its last record.
    pub fn next_offset(&self) -> Offset {
        self.base_offset + OffsetDelta::new(i64::from(self.last_offset_delta) + 1)
    }
}

/// What one producer did in its current epoch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProducerEntry {
    epoch: ProducerEpoch,
    /// Oldest first, at most [`BATCHES_KEPT`].
    batches: Vec<CachedBatch>,
    last_seen: Timestamp,
}

impl ProducerEntry {
    /// An entry from saved parts: `batches` oldest first, of which the newest [`BATCHES_KEPT`] count.
    pub fn from_parts(
        epoch: ProducerEpoch,
        last_seen: Timestamp,
        mut batches: Vec<CachedBatch>,
    ) -> Self {
        batches.drain(..batches.len().saturating_sub(BATCHES_KEPT));
        Self { epoch, batches, last_seen }
    }

    /// The newest epoch that was seen.
    pub const fn epoch(&self) -> ProducerEpoch {
        self.epoch
    }

    /// The remembered batches, oldest first.
    pub fn batches(&self) -> &[CachedBatch] {
        &self.batches
    }

    /// When the producer appended last, by the broker's clock.
    pub const fn last_seen(&self) -> Timestamp {
        self.last_seen
    }

    /// The sequence that the next batch must begin with; `None` when no batch is remembered.
    pub fn next_sequence(&self) -> Option<Sequence> {
        self.batches.last().map(|last| last.last_sequence().advanced_by(1))
    }

    /// The remembered batch with exactly these sequences.
    pub fn duplicate_of(&self, first: Sequence, last: Sequence) -> Option<&CachedBatch> {
        self.batches
            .iter()
            .find(|batch| batch.first_sequence == first && batch.last_sequence() == last)
    }

    fn record(&mut self, epoch: ProducerEpoch, batch: CachedBatch) {
        if epoch != self.epoch {
            self.epoch = epoch;
            self.batches.clear();
        }
        if self.batches.len() == BATCHES_KEPT {
            self.batches.remove(0);
        }
        self.batches.push(batch);
        self.last_seen = batch.appended_at;
    }
}

/// All producers of one partition.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProducerStates {
    entries: BTreeMap<ProducerId, ProducerEntry>,
}

impl ProducerStates {
    /// What is known of `id`.
    pub fn entry(&self, id: ProducerId) -> Option<&ProducerEntry> {
        self.entries.get(&id)
    }

    /// Every producer in id order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (ProducerId, &ProducerEntry)> {
        self.entries.iter().map(|(&id, entry)| (id, entry))
    }

    /// How many producers are known.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether none is known.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Takes an entry as it was saved.
    pub fn insert(&mut self, id: ProducerId, entry: ProducerEntry) {
        self.entries.insert(id, entry);
    }

    /// Records that `batch`, sealed, was appended at `appended_at`.
    pub fn record(&mut self, batch: &BatchView<'_>, appended_at: Timestamp) {
        let Some(stamp) = batch.producer() else { return };
        let (Some(first_sequence), Some(base_offset)) = (stamp.base_sequence, batch.base_offset())
        else {
            return;
        };
        let cached = CachedBatch {
            first_sequence,
            last_offset_delta: batch.last_offset_delta().max(0).cast_unsigned(),
            base_offset,
            appended_at,
        };
        self.entries
            .entry(stamp.id)
            .or_insert_with(|| ProducerEntry::from_parts(stamp.epoch, appended_at, Vec::new()))
            .record(stamp.epoch, cached);
    }

    /// Forgets producers that appended nothing for `expiration_ms` (`producer.id.expiration.ms`).
    pub fn expire(&mut self, now: Timestamp, expiration_ms: i64) {
        self.entries.retain(|_, entry| now.millis_since(entry.last_seen) < expiration_ms);
    }

    /// Forgets the sixteenth of the producers that was silent for the longest time: what happens at
    /// the bound of [`strandline_model::Limits::producers_per_partition_max`]. Many at once, so that
    /// looking for them costs each append little.
    pub fn evict_oldest(&mut self) {
        let mut seen: Vec<_> = self.entries.iter().map(|(&id, e)| (e.last_seen, id)).collect();
        let count = seen.len().div_ceil(16);
        if count < seen.len() {
            seen.select_nth_unstable(count);
        }
        for (_, id) in seen.into_iter().take(count) {
            self.entries.remove(&id);
        }
    }
}
