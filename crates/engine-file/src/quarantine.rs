//! Logs that are out of service because nobody knows them: set aside, brought back, listed.
//!
//! docs/format.md, "Quarantine", has the order of steps and why a crash between any two loses nothing.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use strandline_model::{ByteCount, PartitionId, Timestamp};
use strandline_storage::{ErrorKind, LossCertainty, Lost, Quarantined, StorageError};

use crate::blocking::blocking;
use crate::engine::Shared;
use crate::queue::{RowChange, StopMark};
use crate::rows::Rows;
use crate::segment::{SegmentFacts, SegmentName, SegmentStore, worst_of};
use crate::tables;

impl Shared {
    pub(crate) async fn quarantine(
        &self,
        id: PartitionId,
        since: Timestamp,
    ) -> Result<(), StorageError> {
        self.wait_until_sound(id).await;
        self.check_open()?;
        let turn = self.turn().await;
        // Nobody removes the log while this waits for the checkpoint.
        let Some(_ending) = self.ending.begin(id) else { return Err(is_busy(id)) };
        if self.rows.read().is_removed(id) {
            return Err(being_removed(id));
        }
        if !self.rows.read().has_log(id) && !self.segments.has_files(id)? {
            return Ok(());
        }
        if self.rows.read().quarantined(id).is_none() {
            self.close(id, &format!("log is in quarantine. partition=`{id}`")).await?;
            self.change(vec![quarantine_row(id, Some(since))]).await?;
        }
        self.unsound.check(id, self.unsound.count(id))?;
        // Its handle is ended: what is written in the place of segments of it comes to nothing, soon.
        if self.rewriting.contains(id) {
            return Err(is_busy(id));
        }
        // What the journal has of it is durable in its segments before they go elsewhere: a start writes
        // the journal's batches to where they were. The row keeps openers away meanwhile.
        drop(turn);
        self.checkpoints.done(StopMark::Running).await?;
        let turn = self.turn().await;
        self.check_open()?;
        let store = Arc::clone(&self.segments);
        blocking(move || {
            let moved = store.set_aside(id);
            drop(turn);
            moved
        })
        .await
    }

    pub(crate) async fn release(&self, id: PartitionId) -> Result<(), StorageError> {
        self.check_open()?;
        let turn = self.turn().await;
        let Some(_ending) = self.ending.begin(id) else { return Err(is_busy(id)) };
        if self.rows.read().is_removed(id) {
            return Err(being_removed(id));
        }
        if self.rows.read().quarantined(id).is_none() {
            return Ok(());
        }
        let (store, held) = (Arc::clone(&self.segments), Arc::clone(&turn));
        let moved = blocking(move || {
            let moved = store.bring_back(id);
            drop(held);
            moved
        });
        moved.await?;
        // Its files are back, durably: from here on the log is served.
        self.change(vec![quarantine_row(id, None)]).await
    }

    pub(crate) async fn list_quarantined(&self) -> Result<Vec<Quarantined>, StorageError> {
        self.check_open()?;
        let rows = self.rows.read().all_quarantined();
        let store = Arc::clone(&self.segments);
        blocking(move || Ok(sized(rows, &store))).await
    }

    /// What [`lost`](Self::lost) finds when the files that have lost their names are put back.
    pub(crate) async fn look_for_losses(self: &Arc<Self>) -> Result<Vec<Lost>, StorageError> {
        let shared = Arc::clone(self);
        let displaced = blocking(move || Ok(shared.displaced())).await?;
        if !displaced.is_empty() {
            let turn = self.turn().await;
            if let Err(error) = self.put_back(&displaced, &turn).await {
                let cause = error.in_one_line();
                tracing::error!(
                    cause,
                    "files that somebody removed or replaced while they were open are not put back yet"
                );
            }
        }
        let shared = Arc::clone(self);
        blocking(move || {
            let lost = shared.lost();
            for one in lost.iter().filter(|one| one.certainty == LossCertainty::Gone) {
                shared.end_handle_of(one)?;
            }
            Ok(lost)
        })
        .await
    }

    /// Nobody goes on with a log that has lost what it needs: whoever opens it again meets what an opening
    /// checks. Blocks.
    fn end_handle_of(&self, lost: &Lost) -> Result<(), StorageError> {
        let is_alive = self.logs.live(lost.id).is_some_and(|live| live.check_alive().is_ok());
        if !is_alive {
            return Ok(());
        }
        self.break_unsound(lost.id, &StorageError::new(ErrorKind::Corrupt, lost.what.as_str()))
    }

    /// The logs with open files that have lost their names. Blocks.
    fn displaced(&self) -> Vec<PartitionId> {
        let mut ids = self.rows.read().partitions();
        ids.retain(|id| {
            let facts = self.named_facts(*id);
            !self.is_out_of_service(*id) && !self.segments.displaced(*id, &facts).is_empty()
        });
        ids
    }

    /// Blocks.
    pub(crate) fn lost(&self) -> Vec<Lost> {
        let ids = self.rows.read().partitions();
        let mut lost = Vec::new();
        for id in ids {
            let (what, certainty) = match self.loss_of(id) {
                Ok(None) => continue,
                Ok(Some(loss)) => loss,
                // Of this one nobody knows; the others are looked at all the same.
                Err(error) => (error.in_one_line(), LossCertainty::Unreadable),
            };
            lost.push(Lost { id, what, certainty });
        }
        lost
    }

    fn loss_of(&self, id: PartitionId) -> Result<Option<(String, LossCertainty)>, StorageError> {
        if self.is_out_of_service(id) {
            return Ok(None);
        }
        if let Some(damage) = self.rows.read().damage(id) {
            return Ok(Some((damage.describe(id), LossCertainty::Gone)));
        }
        let mut losses = self.segments.losses_of(id, &self.named_facts(id))?;
        if losses.is_empty() {
            return Ok(None);
        }
        // A trim, a removal or a quarantine may have come between: each takes the name out of the rows,
        // or marks the log, before the file is cut or goes.
        let named = self.named_segments(id);
        losses.retain(|loss| named.contains(&loss.facts.name()));
        Ok(worst_of(id, &losses).filter(|_| !self.is_out_of_service(id)))
    }

    /// The segments of a log that must have files.
    fn named_segments(&self, id: PartitionId) -> BTreeSet<SegmentName> {
        self.named_facts(id).iter().map(SegmentFacts::name).collect()
    }

    fn is_out_of_service(&self, id: PartitionId) -> bool {
        let rows = self.rows.read();
        rows.is_removed(id) || rows.quarantined(id).is_some()
    }
}

/// The logs in quarantine, with how much there is; of one that can't be read, what is said is nothing.
fn sized(rows: Vec<(PartitionId, Timestamp)>, store: &SegmentStore) -> Vec<Quarantined> {
    let sized = rows.into_iter().map(|(id, since)| {
        let bytes = store.set_aside_bytes(id).unwrap_or_else(|error| {
            let cause = error.in_one_line();
            tracing::warn!(partition = %id, cause, "nobody knows how much of this log is in quarantine");
            0
        });
        Quarantined { id, since, bytes: ByteCount::new(bytes) }
    });
    sized.collect()
}

impl Rows {
    /// The logs in quarantine whose files `store` has. Blocks.
    pub(crate) fn list_quarantined(&self, store: &SegmentStore) -> Vec<Quarantined> {
        sized(self.all_quarantined(), store)
    }
}

fn is_busy(id: PartitionId) -> StorageError {
    let message = format!("log is being removed or set aside now. partition=`{id}`");
    StorageError::new(ErrorKind::Unavailable, message)
}

fn being_removed(id: PartitionId) -> StorageError {
    StorageError::new(ErrorKind::Invalid, format!("log is being removed. partition=`{id}`"))
}

fn quarantine_row(id: PartitionId, since: Option<Timestamp>) -> RowChange {
    RowChange {
        table: tables::QUARANTINES,
        key: Bytes::copy_from_slice(&tables::partition_key(id)),
        value: since.map(|since| Bytes::copy_from_slice(&since.as_millis().to_be_bytes())),
    }
}
