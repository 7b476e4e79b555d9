//! What is left of closed logs that their rows do not name: dropped before a stop or a crash.

use strandline_model::{ByteCount, PartitionId};
use strandline_storage::{Removal, StorageError};

use crate::engine::Shared;
use crate::sweeper::{ClosedLogs, Swept};

impl ClosedLogs for Shared {
    fn list(&self) -> Result<Vec<PartitionId>, StorageError> {
        self.segments.list()
    }

    fn sweep(&self, id: PartitionId, budget: ByteCount) -> Result<Swept, StorageError> {
        // Whoever has the turn may wait for this thread, at a close.
        let Some(_turn) = self.try_turn() else { return Ok(Swept::Later) };
        // An open log sweeps by itself. What the journal of an engine that failed may have, the rows do
        // not name: that is asked after the log was seen closed, so that everything of it is published.
        if self.logs.live(id).is_some() || self.check_open().is_err() {
            return Ok(Swept::Done);
        }
        if self.unsound.contains(id) {
            return Ok(Swept::Later);
        }
        let (facts, end) = {
            let rows = self.rows.read();
            // One that is removed goes whole; of one that is damaged or in quarantine nothing goes; and
            // one without a row is not known here.
            let is_sound = rows.damage(id).is_none() && rows.quarantined(id).is_none();
            if rows.is_removed(id) || !is_sound || !rows.has_log(id) {
                return Ok(Swept::Done);
            }
            let Some(facts) = rows.all_segments(id) else { return Ok(Swept::Done) };
            (facts, rows.end(id))
        };
        match self.segments.remove_leftovers(id, &facts, end, budget)? {
            Removal::Done => Ok(Swept::Done),
            Removal::Remaining(bytes) => Ok(Swept::Remaining(bytes)),
        }
    }
}
