//! A damaged log that serves again, from what is whole of it.
//!
//! docs/adr/0023-repair.md has the reasons, docs/format.md ("Repairing a damaged log") the order of
//! steps and why a crash between any two loses nothing.

mod plan;

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use strandline_model::{ByteCount, LeaderEpoch, Offset, PartitionId, Timestamp};
use strandline_storage::{ErrorKind, StorageError};

use crate::FileEngine;
use crate::blocking::blocking;
use crate::engine::Shared;
use crate::queue::{RowChange, StopMark};
use crate::recovery::Inspection;
use crate::rows::Rows;
use crate::segment::SegmentStore;
use crate::tables;
use plan::{Known, Plan};

/// What a repair keeps of a log, and what it can't.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repair {
    /// Why a start closed the log; `None` when none has met the damage yet.
    pub reason: Option<String>,
    /// Batches that are served again.
    pub kept_batches: u64,
    /// Their bytes.
    pub kept_bytes: u64,
    /// Of them, batches that the journal had and no segment.
    pub put_back_batches: u64,
    /// Their bytes.
    pub put_back_bytes: u64,
    /// Batches that the journal had and a segment too.
    pub twice_batches: u64,
    /// What is lost, in no order.
    pub lost: Vec<LostRange>,
    /// Where the log ends, before and after.
    pub end: Offset,
}

/// Offsets of which nothing is left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostRange {
    /// From the first to behind the last; empty when no offset is known to be lost with the bytes.
    pub offsets: Range<Offset>,
    /// Bytes of the files that are no batches; 0 where nobody knows.
    pub bytes: u64,
    /// Where, and what is wrong, as a fact.
    pub what: String,
    /// Whether each of the offsets had a record. Compaction may have taken some before.
    pub certain: bool,
}

impl FileEngine {
    /// Makes a damaged log serve again from what is whole of it: batches before and behind the damage, at
    /// their offsets, and those that were rescued from the journal. `None`: there is nothing to repair.
    ///
    /// Reads every batch of the log. Nothing of it may be open. Durable when it returns; after a crash
    /// the log is as it was, or repaired. What is not whole is gone afterwards.
    pub async fn repair(
        &self,
        id: PartitionId,
        now: Timestamp,
    ) -> Result<Option<Repair>, StorageError> {
        self.shared.repair(id, now).await
    }
}

impl Inspection {
    /// What [`FileEngine::repair`] would do, by what is in the files and rows now: what the journal
    /// holds of the log is brought back by a start before. Blocks.
    pub fn plan_repair(&self, id: PartitionId) -> Result<Option<Repair>, StorageError> {
        let (rows, store) = (&self.rows, &*self.segments);
        let known = known(rows, store, id, Timestamp::default())?;
        let planned = known.and_then(|known| plan::plan(&known, reason_of(rows, id)));
        Ok(planned.map(|(_, repair)| repair))
    }
}

impl Shared {
    async fn repair(
        &self,
        id: PartitionId,
        now: Timestamp,
    ) -> Result<Option<Repair>, StorageError> {
        self.check_open()?;
        // Nobody opens, removes or sweeps the log meanwhile.
        let turn = self.turn().await;
        if self.logs.live(id).is_some() {
            let message = format!("log is open. partition=`{id}`");
            return Err(StorageError::new(ErrorKind::Invalid, message));
        }
        let known = {
            let rows = self.rows.read();
            let known = known(&rows, &self.segments, id, now)?;
            known.map(|known| (known, reason_of(&rows, id)))
        };
        let planned = known.and_then(|(known, reason)| plan::plan(&known, reason));
        let Some((Plan { dropped, new }, repair)) = planned else { return Ok(None) };
        let need = new.iter().flat_map(|segment| &segment.pieces);
        let need = need.map(|piece| piece.run.size()).sum();
        self.check_room(id, need)?;
        let store = Arc::clone(&self.segments);
        let written = blocking(move || store.write_repaired(id, &new)).await?;
        let mut changes: Vec<RowChange> = Vec::new();
        let gone =
            |table, key: &[u8]| RowChange { table, key: Bytes::copy_from_slice(key), value: None };
        for facts in &dropped {
            changes.push(gone(tables::SEGMENTS, &tables::segment_key(id, facts.base_offset)));
        }
        for facts in written {
            changes.push(RowChange {
                table: tables::SEGMENTS,
                key: Bytes::copy_from_slice(&tables::segment_key(id, facts.base_offset)),
                value: Some(tables::segment_value(&facts)),
            });
        }
        let key = tables::partition_key(id);
        changes.extend([tables::DAMAGED_ENDS, tables::DAMAGES].map(|table| gone(table, &key)));
        // From here on the log is served again.
        self.change(changes).await?;
        // A start counts what is appended from the end that the snapshot has.
        self.checkpoints.done(StopMark::Running).await?;
        let store = Arc::clone(&self.segments);
        blocking(move || {
            let removed = store.remove_repaired(id, &dropped);
            drop(turn);
            removed
        })
        .await?;
        Ok(Some(repair))
    }

    /// Fails when the disk has no room for `bytes` beside its reserve.
    fn check_room(&self, id: PartitionId, bytes: u64) -> Result<(), StorageError> {
        self.space.look(&*self.disk);
        let free = self.space.room().map_or(u64::MAX, ByteCount::get);
        if free >= bytes {
            return Ok(());
        }
        let message = format!(
            "disk has no room to repair the log. partition=`{id}`, free=`{free}`, need=`{bytes}`"
        );
        Err(StorageError::new(ErrorKind::Full, message))
    }
}

fn reason_of(rows: &Rows, id: PartitionId) -> Option<String> {
    rows.damage(id).map(|damage| damage.reason)
}

/// Reads what there is of a log; `None` of one that is removed, in quarantine or unknown. Blocks.
fn known(
    rows: &Rows,
    store: &SegmentStore,
    id: PartitionId,
    now: Timestamp,
) -> Result<Option<Known>, StorageError> {
    if rows.is_removed(id) || rows.quarantined(id).is_some() || !rows.has_log(id) {
        return Ok(None);
    }
    let Some(facts) = rows.all_segments(id) else {
        let message = format!("a row of the log's segments can't be read. partition=`{id}`");
        return Err(StorageError::new(ErrorKind::Corrupt, message));
    };
    let mut segments = Vec::with_capacity(facts.len());
    for facts in facts {
        segments.push((facts, store.salvage(id, &facts)?));
    }
    let mut rescued = Vec::new();
    if rows.damage(id).is_some() {
        for name in store.rescues_of(id)? {
            let salvage = store.salvage_rescued(id, &name)?;
            rescued.push((name, salvage));
        }
    }
    let log_start = rows.log_start(id).unwrap_or(Offset::ZERO);
    let seen = rescued.iter().flat_map(|(_, salvage)| &salvage.runs).map(|run| run.offsets.end);
    let end = seen.chain(rows.damaged_end(id)).fold(rows.end(id), Offset::max);
    let epoch = rows.epoch(id).map_or(LeaderEpoch::ZERO, |row| row.epoch);
    Ok(Some(Known { log_start, end, epoch, segments, rescued, now }))
}
