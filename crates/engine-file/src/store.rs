//! Opening, listing, checking and removing logs.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use strandline_model::{ByteCount, LeaderEpoch, Offset, PartitionId, Timestamp};
use strandline_storage::{
    BoxFuture, ErrorKind, Figure, Finding, Found, LogBounds, LogStore, Lost, OpenLog, Opened,
    Quarantined, Removal, Space, StorageError, Stored, Ticket, Trouble,
};
use tokio::sync::oneshot;

use crate::FileEngine;
use crate::blocking::blocking;
use crate::engine::{Shared, Turn};
use crate::journal::BLOCK_BYTES;
use crate::live::{LiveLog, Opening};
use crate::log::{FileLog, await_change, without_expectations};
use crate::queue::{Item, PendingChange, RowChange, StopMark, Wait};
use crate::segment::{SegmentFacts, SegmentLog, chunks_of};
use crate::tables::{self, EpochRow};

/// What the rows, and those who opened the log before in this run, say of it.
struct Known {
    facts: Vec<SegmentFacts>,
    log_start: Offset,
    end: Offset,
    row: Option<EpochRow>,
    /// The lowest epoch that may be claimed, if the log was ever opened.
    epoch: Option<LeaderEpoch>,
    found: Found,
}

impl LogStore for FileEngine {
    fn open(&self, request: OpenLog) -> BoxFuture<'_, Result<Opened, StorageError>> {
        Box::pin(async move {
            let shared = &self.shared;
            let id = request.id;
            shared.wait_until_sound(id).await;
            shared.check_open()?;
            let turn = shared.turn().await;
            if shared.rows.read().is_removed(id) {
                let message = format!("log is being removed. partition=`{id}`");
                return Err(StorageError::new(ErrorKind::Invalid, message));
            }
            if shared.rows.read().quarantined(id).is_some() {
                let message = format!("log is in quarantine. partition=`{id}`");
                return Err(StorageError::new(ErrorKind::Invalid, message));
            }
            if let Some(damage) = shared.rows.read().damage(id) {
                return Err(StorageError::new(ErrorKind::Corrupt, damage.describe(id)));
            }
            shared.put_back_before_opening(id, &turn).await?;
            let marks = shared.unsound.count(id);
            let segments = shared.take_over(id, request.at_least).await?;
            let live = shared.open_log(request, segments, &turn).await?;
            // After the claim: from there on the handle of whoever has the log open is ended.
            shared.unsound.check(id, marks)?;
            let (epoch, found) = (live.0.epoch, live.1);
            let log = Arc::new(FileLog {
                shared: Arc::clone(shared),
                running: Arc::clone(&self.running),
                live: live.0,
            });
            Ok(Opened { log, epoch, found })
        })
    }

    fn epoch(&self, id: PartitionId) -> Option<LeaderEpoch> {
        if let Some(live) = self.shared.logs.live(id)
            && live.check_alive().is_ok()
        {
            return Some(live.epoch);
        }
        Some(self.shared.known(id).epoch.unwrap_or(LeaderEpoch::ZERO))
    }

    fn stored(&self, id: PartitionId) -> Option<Stored> {
        let shared = &self.shared;
        {
            let rows = shared.rows.read();
            let is_closed = rows.damage(id).is_some() || rows.quarantined(id).is_some();
            if is_closed || rows.is_removed(id) {
                return None;
            }
        }
        if let Some(live) = shared.logs.live(id) {
            let bounds = live.bounds();
            let compacted = shared.rows.read().compacted(id);
            return Some(Stored { bounds, chunks: live.segments.chunks(), compacted });
        }
        let Known { facts, log_start, end, found, .. } = shared.known(id);
        let bounds = LogBounds { log_start, durable_end: end, written_end: end };
        let compacted = shared.rows.read().compacted(id);
        let chunks = chunks_of(id, &facts);
        (found != Found::Created).then_some(Stored { bounds, chunks, compacted })
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<PartitionId>, StorageError>> {
        Box::pin(async move {
            self.shared.check_open()?;
            let mut ids: BTreeSet<_> = self.shared.rows.read().partitions().into_iter().collect();
            self.shared.segments.add_listed(&mut ids)?;
            Ok(ids.into_iter().collect())
        })
    }

    fn remove_some(
        &self,
        id: PartitionId,
        budget: ByteCount,
    ) -> BoxFuture<'_, Result<Removal, StorageError>> {
        Box::pin(async move {
            self.shared.wait_until_sound(id).await;
            self.shared.check_open()?;
            self.shared.remove_some(id, budget).await
        })
    }

    fn quarantine(
        &self,
        id: PartitionId,
        since: Timestamp,
    ) -> BoxFuture<'_, Result<(), StorageError>> {
        Box::pin(self.shared.quarantine(id, since))
    }

    fn release(&self, id: PartitionId) -> BoxFuture<'_, Result<(), StorageError>> {
        Box::pin(self.shared.release(id))
    }

    fn quarantined(&self) -> BoxFuture<'_, Result<Vec<Quarantined>, StorageError>> {
        Box::pin(self.shared.list_quarantined())
    }

    fn lost(&self) -> BoxFuture<'_, Result<Vec<Lost>, StorageError>> {
        Box::pin(async move {
            self.shared.check_open()?;
            self.shared.look_for_losses().await
        })
    }

    fn foreign(&self) -> BoxFuture<'_, Result<Vec<String>, StorageError>> {
        Box::pin(async move {
            self.shared.check_open()?;
            let store = Arc::clone(&self.shared.segments);
            blocking(move || Ok(store.foreign())).await
        })
    }

    fn verify(&self, id: PartitionId) -> BoxFuture<'_, Result<Vec<Finding>, StorageError>> {
        Box::pin(async move {
            self.shared.check_open()?;
            if let Some(live) = self.shared.logs.live(id) {
                return blocking(move || live.segments.verify()).await;
            }
            let (facts, damage) = {
                let rows = self.shared.rows.read();
                if rows.quarantined(id).is_some() {
                    let message = format!("log is in quarantine. partition=`{id}`");
                    return Err(StorageError::new(ErrorKind::Invalid, message));
                }
                (rows.segments(id), rows.damage(id))
            };
            if facts.is_empty() && damage.is_none() && self.shared.logs.earlier(id).is_none() {
                let message = format!("no such log. partition=`{id}`");
                return Err(StorageError::new(ErrorKind::Missing, message));
            }
            let store = Arc::clone(&self.shared.segments);
            blocking(move || {
                let mut findings: Vec<_> =
                    damage.into_iter().map(|damage| damage.finding(id)).collect();
                findings.extend(store.verify_closed(id, &facts));
                Ok(findings)
            })
            .await
        })
    }

    fn space(&self) -> Space {
        let shared = &self.shared;
        shared.space.look(&*shared.disk);
        let used = shared.segment_bytes() + shared.queue.live_bytes();
        Space {
            used: ByteCount::new(used),
            dropped: ByteCount::new(shared.dropped_bytes()),
            free: shared.space.free(),
            reserve: shared.config.reserve,
        }
    }

    fn trouble(&self) -> Option<Trouble> {
        // A journal that can't be written ends the engine, and its process.
        None
    }

    fn figures(&self) -> Vec<Figure> {
        Vec::new()
    }

    fn close(&self) -> BoxFuture<'_, Result<(), StorageError>> {
        Box::pin(self.stop_cleanly())
    }
}

impl Shared {
    /// Bytes of all segments; of open logs up to the last append.
    fn segment_bytes(&self) -> u64 {
        let live = self.logs.all_live();
        let is_live = |id| live.binary_search_by_key(&id, |log| log.id).is_ok();
        let closed = self.rows.read().segment_bytes(|id| !is_live(id));
        let open = live.iter().flat_map(|log| log.segments.facts()).map(|facts| facts.bytes);
        closed + open.sum::<u64>()
    }

    /// Bytes of dropped segments that are still there.
    fn dropped_bytes(&self) -> u64 {
        let live = self.logs.all_live();
        let is_live = |id| live.binary_search_by_key(&id, |log| log.id).is_ok();
        let open = live.iter().map(|log| log.segments.dropped_bytes()).sum::<u64>();
        open + self.sweeper.left_bytes(|id| !is_live(id))
    }

    fn known(&self, id: PartitionId) -> Known {
        let rows = self.rows.read();
        let row = rows.epoch(id);
        let earlier = self.logs.earlier(id);
        let is_unclean = row.is_some_and(|row| row.run <= self.unclean_run);
        let from_row = row.map(|row| if is_unclean { row.epoch.next() } else { row.epoch });
        let from_earlier = earlier
            .map(|earlier| if earlier.must_raise { earlier.epoch.next() } else { earlier.epoch });
        let raised = is_unclean && earlier.is_none() || earlier.is_some_and(|e| e.must_raise);
        let facts = rows.segments(id);
        let log_start = rows.log_start(id).unwrap_or(Offset::ZERO);
        let was_there = row.is_some() || earlier.is_some() || !facts.is_empty();
        let found = match (was_there, raised) {
            (false, _) => Found::Created,
            (true, true) => Found::Unclean,
            (true, false) => Found::Clean,
        };
        let end = rows.end(id);
        Known { facts, log_start, end, row, epoch: from_row.max(from_earlier), found }
    }

    /// Ends whoever has the log open, behind what was submitted. Returns the log's segments when they
    /// are as good as before.
    async fn take_over(
        &self,
        id: PartitionId,
        at_least: LeaderEpoch,
    ) -> Result<Option<Arc<SegmentLog>>, StorageError> {
        let Some(live) = self.logs.live(id) else { return Ok(None) };
        let is_held = live.is_held();
        if is_held {
            self.logs.note_broken(&live);
        }
        let owner = self.known(id).epoch.max(Some(at_least)).unwrap_or(at_least);
        let message =
            format!("a later opener owns the log. epoch=`{}`, owner=`{owner}`", live.epoch);
        let fenced = StorageError::new(ErrorKind::Fenced, message);
        // False for a log that failed: its owner was told, and its segments must be opened anew.
        let was_alive = self.queue.exclusively(|| live.set_fate(fenced.clone()));
        self.retire(&live, (was_alive && is_held).then_some(fenced)).await?;
        let is_sound = live.commit.lock().broken.is_none();
        Ok(is_sound.then(|| Arc::clone(&live.segments)))
    }

    async fn retire(
        &self,
        live: &Arc<LiveLog>,
        error: Option<StorageError>,
    ) -> Result<(), StorageError> {
        let (done, retired) = Ticket::pair();
        self.queue.push(Item::Retire { log: Arc::clone(live), error, done })?;
        retired.await
    }

    async fn open_log(
        &self,
        request: OpenLog,
        segments: Option<Arc<SegmentLog>>,
        turn: &Turn,
    ) -> Result<(Arc<LiveLog>, Found), StorageError> {
        let OpenLog { id, at_least, settings, listener } = request;
        let Known { facts, log_start, end, row, epoch, found } = self.known(id);
        let epoch = epoch.map_or(at_least, |epoch| epoch.max(at_least));
        let active = facts.last().copied();
        let durability = settings.durability;
        let segments = if let Some(segments) = segments {
            segments.configure(settings);
            segments
        } else {
            // When the engine failed, its journal may have what opening would cut.
            self.check_open()?;
            let (store, turn) = (Arc::clone(&self.segments), Arc::clone(turn));
            let opened = blocking(move || {
                let opened = store.open(id, facts, end, settings);
                drop(turn);
                opened
            });
            Arc::new(opened.await?)
        };
        if segments.has_dropped() {
            // Segments that were dropped, replaced, or never the log's, and whose files are still there.
            self.sweeper.sweep(&segments);
        }
        let epoch_row = match row {
            Some(row) if row.epoch == epoch && row.run == self.run => None,
            Some(row) if row.epoch == epoch => Some(EpochRow { run: self.run, ..row }),
            _ => Some(EpochRow { epoch, start_offset: end, run: self.run }),
        };
        let live = Arc::new(LiveLog::new(Opening {
            id,
            epoch,
            epoch_row,
            segments,
            active,
            log_start,
            end,
            durability,
            listener,
            registry: Arc::clone(&self.logs),
        }));
        self.logs.claim(&live);
        Ok((live, found))
    }

    async fn remove_some(
        &self,
        id: PartitionId,
        budget: ByteCount,
    ) -> Result<Removal, StorageError> {
        let turn = self.turn().await;
        // Whoever waits for the checkpoint has no turn: nobody begins the same removal again behind it.
        let Some(_ending) = self.ending.begin(id) else {
            return Ok(Removal::Remaining(ByteCount::new(BLOCK_BYTES)));
        };
        let is_marked = self.rows.read().is_removed(id);
        if !is_marked {
            self.close(id, &format!("log is being removed. partition=`{id}`")).await?;
        }
        // Its handle is ended: what is written in the place of segments of it comes to nothing, soon.
        if self.rewriting.contains(id) {
            return Ok(Removal::Remaining(ByteCount::new(BLOCK_BYTES)));
        }
        let had_bytes = self.rows.read().has_log(id);
        if !is_marked && had_bytes {
            self.change(vec![removal_mark(id)]).await?;
        }
        // The file may be in use by its replacement, which began before the mark was there to be seen.
        self.unsound.check(id, self.unsound.count(id))?;
        // Freeing less than a block frees nothing.
        let budget = budget.max(ByteCount::new(BLOCK_BYTES));
        let (store, held) = (Arc::clone(&self.segments), Arc::clone(&turn));
        let removal = blocking(move || {
            let removal = store.remove_some(id, budget);
            drop(held);
            removal
        });
        if let Removal::Remaining(bytes) = removal.await? {
            return Ok(Removal::Remaining(bytes));
        }
        let _turn = if had_bytes {
            self.finish_removal(id, turn).await?
        } else {
            // No row, and no journal, names the log: it is enough that its files stay gone.
            let store = Arc::clone(&self.segments);
            blocking(move || store.sync_removal(id)).await?;
            turn
        };
        self.logs.forget(id);
        self.unsound.forget(id);
        Ok(Removal::Done)
    }

    /// Ends the handle of whoever has the log open; what it submitted is done first.
    pub(crate) async fn close(&self, id: PartitionId, message: &str) -> Result<(), StorageError> {
        if let Some(live) = self.logs.live(id) {
            let error = StorageError::new(ErrorKind::Closed, message);
            let was_alive = self.queue.exclusively(|| live.set_fate(error.clone()));
            self.retire(&live, was_alive.then_some(error)).await?;
        }
        Ok(())
    }

    /// All files are gone: the rows go, and the mark last, when the journal names the log no more.
    ///
    /// The turn is given back while this waits for the checkpoint, so that other removals come to wait
    /// for the same one; the mark keeps openers away.
    async fn finish_removal(&self, id: PartitionId, turn: Turn) -> Result<Turn, StorageError> {
        let rows = self.rows.read().keys_of(id);
        let (mark, others): (Vec<_>, Vec<_>) =
            rows.into_iter().partition(|(table, _)| *table == tables::REMOVALS);
        let deletions = |keys: Vec<_>| {
            let delete = |(table, key)| RowChange { table, key, value: None };
            keys.into_iter().map(delete).collect::<Vec<_>>()
        };
        if !others.is_empty() {
            self.change(deletions(others)).await?;
        }
        drop(turn);
        self.checkpoints.done(StopMark::Running).await?;
        let turn = self.turn().await;
        self.change(deletions(mark)).await?;
        Ok(turn)
    }

    /// Commits changes of the engine's own rows.
    pub(crate) async fn change(&self, changes: Vec<RowChange>) -> Result<(), StorageError> {
        let (done, answer) = oneshot::channel();
        let change = PendingChange {
            expectations: Vec::new(),
            changes,
            wait: Wait::Sync,
            log: None,
            trim: None,
            rewritten: None,
            done,
        };
        self.queue.push(Item::Change(change))?;
        await_change(answer).await.map_err(without_expectations)
    }
}

/// Logs of which somebody carries out the removal, or the quarantine.
#[derive(Debug, Default)]
pub(crate) struct Ending(Mutex<BTreeSet<PartitionId>>);

impl Ending {
    /// `None` while somebody else does.
    pub(crate) fn begin(&self, id: PartitionId) -> Option<EndingGuard<'_>> {
        let is_first = self.0.lock().insert(id);
        is_first.then(|| EndingGuard { ending: self, id })
    }
}

/// Whoever carries out a removal, until it has an answer or goes away.
pub(crate) struct EndingGuard<'a> {
    ending: &'a Ending,
    id: PartitionId,
}

impl Drop for EndingGuard<'_> {
    fn drop(&mut self) {
        self.ending.0.lock().remove(&self.id);
    }
}

/// Committed before the first byte of a log goes.
fn removal_mark(id: PartitionId) -> RowChange {
    RowChange {
        table: tables::REMOVALS,
        key: Bytes::copy_from_slice(&tables::partition_key(id)),
        value: Some(Bytes::new()),
    }
}
