//! Retention of one log: what is known of it, what is decided, and that it happens.

use std::sync::Arc;

use strandline_model::{ByteCount, Offset, Timestamp};
use strandline_partition::retention::{
    Cause, Choice, LogView, Policy, Segment, Sighting, Verdict, choose,
};
use strandline_storage::{ChunkInfo, ChunkState, CommitLog, Stored};

use super::Cleaner;
use crate::partition::{PartitionSlot, SlotError};
use crate::topic::Topic;

/// Segments that one trim drops: the engine makes its rows of them go in one commit. Reached: another
/// trim follows.
const SEGMENTS_PER_TRIM: usize = 512;

/// A log with what is decided about it.
pub(super) struct Judged {
    pub(super) stored: Stored,
    pub(super) choice: Choice,
}

impl Cleaner {
    /// Whether something of the partition is to go, or to be prepared for going.
    pub(super) fn is_due(&self, topic: &Topic, slot: &PartitionSlot, now: Timestamp) -> bool {
        let policy = topic.settings().retention;
        let is_open = slot.opened().is_some();
        let Some(stored) = self.stored(topic, slot) else { return false };
        let choice = self.judge(slot, stored, &policy, now).choice;
        // Nothing grows in a log that is closed.
        choice.log_start.is_some() || is_open && choice.roll
    }

    /// What is stored of a partition, open or not.
    pub(super) fn stored(&self, topic: &Topic, slot: &PartitionSlot) -> Option<Stored> {
        match slot.opened() {
            Some(partition) => Some(stored(partition.log())),
            None => self.parts.partitions.store_of(topic).ok()?.stored(slot.id()),
        }
    }

    /// Decides about a log, and remembers what must be known of it the next time.
    pub(super) fn judge(
        &self,
        slot: &PartitionSlot,
        stored: Stored,
        policy: &Policy,
        now: Timestamp,
    ) -> Judged {
        let segments: Vec<_> = stored.chunks.iter().map(segment).collect();
        let mut sightings = self.sightings.lock();
        let mut view = LogView {
            segments: &segments,
            log_start: stored.bounds.log_start,
            high_watermark: stored.bounds.durable_end,
            sighting: sightings.get(&slot.id()).copied(),
        };
        // By the later of both clocks: a wall clock that is ahead may be right, and what was appended
        // by it is then no older than it says.
        let sighting = Sighting::of(&view, now.max(self.parts.environment.now()));
        if let Some(sighting) = sighting {
            sightings.insert(slot.id(), sighting);
        } else {
            sightings.remove(&slot.id());
        }
        drop(sightings);
        view.sighting = sighting;
        let choice = choose(&view, policy, now);
        Judged { stored, choice }
    }

    /// Lets go what is to go of a partition. Failures are told and tried again in the next pass.
    pub(super) async fn clean(&self, topic: &Topic, slot: &Arc<PartitionSlot>, now: Timestamp) {
        let (name, id) = (topic.name(), slot.id());
        match self.try_clean(topic, slot, now).await {
            Ok(()) | Err(SlotError::Deleted) => {}
            Err(SlotError::Storage(error)) if slot.is_deleted() => {
                tracing::debug!(topic = %name, partition = %id, %error, "deleted during retention");
            }
            Err(SlotError::Storage(error)) => {
                self.parts.metrics.retention_failures.add(1);
                tracing::warn!(
                    topic = %name, partition = %id, %error,
                    "retention removed nothing, will try again"
                );
            }
        }
    }

    async fn try_clean(
        &self,
        topic: &Topic,
        slot: &Arc<PartitionSlot>,
        now: Timestamp,
    ) -> Result<(), SlotError> {
        let partition = self.parts.partitions.open(topic, slot).await?;
        let policy = topic.settings().retention;
        let Judged { stored, choice } = self.judge(slot, stored(partition.log()), &policy, now);
        if choice.roll {
            partition.log().roll().await?;
        }
        if choice.log_start.is_none() {
            return Ok(());
        }
        for step in gone(&stored, &choice).chunks(SEGMENTS_PER_TRIM) {
            let Some((last, _)) = step.last() else { break };
            let log_start = partition.delete_records_before(last.next_offset).await?;
            tell(topic, slot, log_start, step);
        }
        Ok(())
    }
}

/// The segments that go, oldest first, each with the limit that it is beyond.
fn gone<'a>(stored: &'a Stored, choice: &Choice) -> Vec<(&'a ChunkInfo, Cause)> {
    let gone =
        stored.chunks.iter().zip(&choice.verdicts).map_while(|(chunk, verdict)| match verdict {
            Verdict::Goes(cause) => Some((chunk, *cause)),
            Verdict::Stays { .. } => None,
        });
    gone.collect()
}

/// Counts and logs what went, by limit.
fn tell(topic: &Topic, slot: &PartitionSlot, log_start: Offset, gone: &[(&ChunkInfo, Cause)]) {
    for cause in Cause::ALL {
        let of_it = gone.iter().filter(|(_, by)| *by == cause);
        let bytes = of_it.clone().map(|(chunk, _)| chunk.bytes).sum::<ByteCount>();
        let segments = of_it.count() as u64;
        if segments > 0 {
            topic.metrics().removed(cause, segments, bytes);
            tracing::info!(
                topic = %topic.name(), partition = slot.id().index.get(), %log_start, segments,
                %bytes, limit = cause.name(), "retention removed segments"
            );
        }
    }
}

/// What an open log says of itself.
pub(super) fn stored(log: &dyn CommitLog) -> Stored {
    // In this order: what is durable by the bounds is in the chunks.
    let bounds = log.bounds();
    Stored { bounds, chunks: log.chunks(), compacted: log.compacted() }
}

fn segment(chunk: &ChunkInfo) -> Segment {
    Segment {
        base_offset: chunk.base_offset,
        next_offset: chunk.next_offset,
        bytes: chunk.bytes,
        max_timestamp: chunk.max_timestamp,
        first_appended_at: chunk.first_appended_at,
        last_appended_at: chunk.last_appended_at,
        is_active: chunk.state == ChunkState::Active,
    }
}
