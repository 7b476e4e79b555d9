//! The forecast: what is still there of a partition, why, and when it goes. Asked of the same
//! function that removes.

use strandline_model::{ByteCount, Offset};
use strandline_partition::retention::{Estimate, Policy, Verdict};
use strandline_storage::{ChunkInfo, LogBounds};

use super::Cleaner;
use super::log::Judged;
use crate::partition::PartitionSlot;
use crate::topic::Topic;

/// What is stored of a partition, segment by segment.
#[derive(Clone, Debug)]
pub(crate) struct Remains {
    pub(crate) bounds: LogBounds,
    /// Everything below was compacted.
    pub(crate) clean_end: Offset,
    pub(crate) segments: Vec<SegmentRemains>,
    /// When a size or a count will take the oldest.
    pub(crate) estimate: Option<Estimate>,
}

/// A segment with what becomes of it.
#[derive(Clone, Debug)]
pub(crate) struct SegmentRemains {
    pub(crate) chunk: ChunkInfo,
    pub(crate) verdict: Verdict,
}

impl Remains {
    /// Bytes that are to go at the next pass.
    pub(crate) fn due_bytes(&self) -> ByteCount {
        let due = self.segments.iter().filter(|one| matches!(one.verdict, Verdict::Goes(_)));
        due.map(|one| one.chunk.bytes).sum()
    }
}

impl Cleaner {
    /// What a pass would find of a partition under `policy`, now; `None` when nothing is stored.
    pub(crate) fn remains(
        &self,
        topic: &Topic,
        slot: &PartitionSlot,
        policy: &Policy,
    ) -> Option<Remains> {
        let stored = self.stored(topic, slot)?;
        let Judged { stored, choice, estimate } = self.judge(slot, stored, policy, self.now());
        let segments = stored.chunks.into_iter().zip(choice.verdicts);
        let segments = segments.map(|(chunk, verdict)| SegmentRemains { chunk, verdict });
        let clean_end = stored.compacted.clean_end;
        let (bounds, segments) = (stored.bounds, segments.collect());
        Some(Remains { bounds, clean_end, segments, estimate })
    }
}
