//! What a look at the names and sizes of a log's files finds gone.

use std::io;

use strandline_model::PartitionId;
use strandline_storage::{LossCertainty, StorageError};

use super::SegmentFacts;
use super::name::{FileKey, FileKind};
use super::recover::{missing_segment, shorter_segment};
use super::store::SegmentStore;

/// A segment that is not as its facts say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentLoss {
    /// What was believed of it.
    pub(crate) facts: SegmentFacts,
    /// The bytes that are there; `None`: there is no file.
    pub(crate) bytes: Option<u64>,
    /// Whether it is the last one, which is needed whole to go on.
    is_last: bool,
}

impl SegmentLoss {
    /// Whether the log can be served all the same: what is wrong with it is the segment alone.
    pub(crate) const fn certainty(&self) -> LossCertainty {
        if self.bytes.is_none() || self.is_last {
            LossCertainty::Gone
        } else {
            LossCertainty::InPart
        }
    }

    fn describe(&self, id: PartitionId) -> String {
        let name = self.facts.name();
        self.bytes.map_or_else(
            || missing_segment(id, name),
            |bytes| shorter_segment(id, name, bytes, self.facts.bytes),
        )
    }
}

/// What is lost of a log, in one line that tells of the worst: what is gone as a whole, then what is
/// shorter. `None` when nothing is.
pub(crate) fn worst_of(id: PartitionId, losses: &[SegmentLoss]) -> Option<(String, LossCertainty)> {
    let is_worst = |loss: &&SegmentLoss| loss.certainty() == LossCertainty::Gone;
    let worst = losses.iter().find(is_worst).or_else(|| losses.first())?;
    let what = worst.describe(id);
    let what = match losses.len() - 1 {
        0 => what,
        others => format!("{what}, other_segments=`{others}`"),
    };
    Some((what, worst.certainty()))
}

impl SegmentStore {
    /// The segments of `facts` that have no file, or a shorter one, in their order. Blocks.
    pub(crate) fn losses_of(
        &self,
        id: PartitionId,
        facts: &[SegmentFacts],
    ) -> Result<Vec<SegmentLoss>, StorageError> {
        if facts.is_empty() {
            return Ok(Vec::new());
        }
        // A folder that can't be read says nothing of what it holds.
        let there = self.segments_of(id)?;
        let last = facts.last().map(SegmentFacts::name);
        let mut losses = Vec::new();
        for facts in facts {
            let name = facts.name();
            let bytes = if there.binary_search(&name).is_ok() {
                self.size_of_segment(FileKey::new(id, name, FileKind::Log))?
            } else {
                None
            };
            if bytes.is_none_or(|bytes| bytes < facts.bytes) {
                losses.push(SegmentLoss { facts: *facts, bytes, is_last: last == Some(name) });
            }
        }
        Ok(losses)
    }

    fn size_of_segment(&self, key: FileKey) -> Result<Option<u64>, StorageError> {
        match self.disk.look(&key.path()) {
            Ok(look) => Ok(Some(look.bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => {
                let context = format!("look at segment. file=`{}`", key.path().display());
                Err(StorageError::io(context, error))
            }
        }
    }
}
