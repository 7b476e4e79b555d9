//! Retention of one log: what is known of it, what is decided, and that it happens.

use std::sync::Arc;
use std::time::Duration;

use strandline_model::{ByteCount, Offset, Timestamp};
use strandline_partition::retention::{
    Cause, Choice, Estimate, LogView, Policy, Segment, Sighting, Verdict, choose, estimate,
};
use strandline_storage::{ChunkInfo, ChunkState, CommitLog, Stored};

use super::{Cleaner, newest_append};
use crate::partition::{PartitionSlot, SlotError};
use crate::topic::Topic;

/// Segments that one trim drops: the engine makes its rows of them go in one commit. Reached: another
/// trim follows.
const SEGMENTS_PER_TRIM: usize = 512;

/// A log with what is decided about it.
pub(super) struct Judged {
    pub(super) stored: Stored,
    pub(super) choice: Choice,
    /// When a size or a count will take the oldest segment; `None` when it goes now.
    pub(super) estimate: Option<Estimate>,
}

/// A log that was seen while its times lay in the future.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// When, by a clock that never jumps: a wall clock that was behind then may be set right since.
    since: Duration,
    /// The end of what was there.
    end: Offset,
}

impl Cleaner {
    /// Whether something of the partition is to go, or to be prepared for going.
    pub(super) fn is_due(&self, topic: &Topic, slot: &PartitionSlot, now: Timestamp) -> bool {
        if slot.withheld().is_some() {
            // Nobody opens it; what it has is judged when it is there again.
            return false;
        }
        let policy = topic.settings().retention;
        let is_open = slot.opened().is_some();
        let Some(stored) = self.stored(topic, slot) else { return false };
        self.clock.saw_append(newest_append(&stored), now);
        let choice = self.judge(slot, stored, &policy, now).choice;
        // Nothing grows in a log that is closed.
        choice.log_start.is_some() || is_open && choice.roll
    }

    /// What is stored of a partition, open or not.
    pub(crate) fn stored(&self, topic: &Topic, slot: &PartitionSlot) -> Option<Stored> {
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
        let (latest, monotonic) = (self.clock.latest(now), self.clock.monotonic());
        let mut sightings = self.sightings.lock();
        let before = sightings.get(&slot.id()).map(|seen| {
            let passed = monotonic.saturating_sub(seen.since).as_millis();
            let passed = i64::try_from(passed).unwrap_or(i64::MAX);
            Sighting { at: latest.plus_millis(-passed), end: seen.end }
        });
        let mut view = LogView {
            segments: &segments,
            log_start: stored.bounds.log_start,
            high_watermark: stored.bounds.durable_end,
            sighting: before,
            // A wall clock that is ahead may be right, and what was appended by it is then no older
            // than it says.
            latest,
        };
        let sighting = Sighting::of(&view);
        match sighting {
            Some(new) if sighting != before => {
                sightings.insert(slot.id(), Seen { since: monotonic, end: new.end });
            }
            Some(_) => {}
            None => {
                sightings.remove(&slot.id());
            }
        }
        drop(sightings);
        view.sighting = sighting;
        let choice = choose(&view, policy, now);
        let estimate = choice.log_start.is_none().then(|| estimate(&view, policy, now)).flatten();
        Judged { stored, choice, estimate }
    }

    /// Lets go what is to go of a partition. Failures are told and tried again in the next pass.
    pub(super) async fn clean(&self, topic: &Topic, slot: &Arc<PartitionSlot>) {
        let (name, id) = (topic.name(), slot.id());
        match self.try_clean(topic, slot).await {
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

    async fn try_clean(&self, topic: &Topic, slot: &Arc<PartitionSlot>) -> Result<(), SlotError> {
        let partition = self.parts.partitions.open(topic, slot).await?;
        loop {
            // Anew for each step: settings may have changed meanwhile, and clocks.
            let policy = topic.settings().retention;
            let Judged { stored, choice, .. } =
                self.judge(slot, stored(partition.log()), &policy, self.now());
            if choice.roll {
                partition.log().roll().await?;
            }
            if choice.log_start.is_none() {
                return Ok(());
            }
            let mut step = gone(&stored, &choice);
            step.truncate(SEGMENTS_PER_TRIM);
            let Some((last, _)) = step.last() else { return Ok(()) };
            let upto = last.next_offset;
            let log_start = partition.delete_records_before(upto).await?;
            tell(topic, slot, log_start, &step);
            if log_start < upto {
                return Ok(());
            }
        }
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

pub(super) fn segment(chunk: &ChunkInfo) -> Segment {
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
