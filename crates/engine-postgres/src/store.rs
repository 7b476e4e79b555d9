//! Listing and closing; what is set aside, lost or wrong.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use strandline_model::{ByteCount, LeaderEpoch, Offset, PartitionId, Timestamp};
use strandline_records::batches;
use strandline_storage::{
    BoxFuture, ErrorKind, Figure, Finding, LogStore, LossCertainty, Lost, OpenLog, Opened,
    Quarantined, Removal, Space, StorageError, Stored, Trouble,
};

use crate::PostgresEngine;
use crate::connection::Params;
use crate::engine::Shared;
use crate::facts::Facts;
use crate::lane::digest;
use crate::open::lost_records;
use crate::read::offsets;
use crate::row::partition_of;
use crate::sql::Query;

/// Bytes that a check reads at once.
const VERIFY_BYTES: i64 = 4 << 20;

impl LogStore for PostgresEngine {
    fn open(&self, request: OpenLog) -> BoxFuture<'_, Result<Opened, StorageError>> {
        Box::pin(self.shared.open(request))
    }

    fn epoch(&self, id: PartitionId) -> Option<LeaderEpoch> {
        let Some(log) = self.shared.known(id) else { return Some(LeaderEpoch::ZERO) };
        let state = log.state.lock();
        let is_alive = state.opener.is_some() && state.fate.is_none();
        let is_clean = !state.is_open || state.ended_well();
        Some(if is_alive || is_clean { state.epoch } else { state.epoch.next() })
    }

    fn stored(&self, id: PartitionId) -> Option<Stored> {
        self.shared.known(id)?.stored()
    }

    fn list(&self) -> BoxFuture<'_, Result<Vec<PartitionId>, StorageError>> {
        Box::pin(async move {
            self.shared.check_open()?;
            let rows = self.shared.query("list logs", Query::Partitions, &[]).await?;
            rows.iter().map(|row| partition_of(row.get(0), row.get(1))).collect()
        })
    }

    fn remove_some(
        &self,
        id: PartitionId,
        budget: ByteCount,
    ) -> BoxFuture<'_, Result<Removal, StorageError>> {
        Box::pin(self.shared.remove_some(id, budget))
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
        Box::pin(async move {
            self.shared.check_open()?;
            let rows = self.shared.query("list quarantines", Query::Quarantined, &[]).await?;
            let quarantined = rows.iter().map(|row| {
                let bytes: i64 = row.get(3);
                Ok(Quarantined {
                    id: partition_of(row.get(0), row.get(1))?,
                    since: Timestamp::from_millis(row.get(2)),
                    bytes: ByteCount::new(bytes.max(0).cast_unsigned()),
                })
            });
            quarantined.collect()
        })
    }

    fn lost(&self) -> BoxFuture<'_, Result<Vec<Lost>, StorageError>> {
        Box::pin(async move {
            self.shared.check_open()?;
            let lost = self.shared.without_end().await?;
            let mut all: BTreeMap<PartitionId, String> = lost
                .into_iter()
                .map(|(id, numbers)| {
                    (id, format!("chunks have no last entry. chunks=`{}`", numbers.join(", ")))
                })
                .collect();
            all.extend(self.shared.lost_in_failovers().await?);
            let gone = |(id, what)| Lost { id, what, certainty: LossCertainty::Gone };
            Ok(all.into_iter().map(gone).collect())
        })
    }

    fn foreign(&self) -> BoxFuture<'_, Result<Vec<String>, StorageError>> {
        // What others put into its tables is refused by their keys.
        Box::pin(async move { self.shared.check_open().map(|()| Vec::new()) })
    }

    fn verify(&self, id: PartitionId) -> BoxFuture<'_, Result<Vec<Finding>, StorageError>> {
        Box::pin(self.shared.verify(id))
    }

    fn space(&self) -> Space {
        let used = self.shared.logs.all().iter().map(|log| log.state.lock().bytes()).sum();
        Space {
            used: ByteCount::new(used),
            dropped: ByteCount::new(self.shared.sweeps.bytes()),
            // The database does not say how large its disk is.
            free: None,
            reserve: ByteCount::ZERO,
        }
    }

    fn trouble(&self) -> Option<Trouble> {
        self.shared.vitals().trouble()
    }

    fn figures(&self) -> Vec<Figure> {
        self.shared.figures()
    }

    fn close(&self) -> BoxFuture<'_, Result<(), StorageError>> {
        Box::pin(self.shared.close())
    }
}

impl Shared {
    /// Everything that was submitted is settled; then the rows say that nothing is open.
    async fn close(&self) -> Result<(), StorageError> {
        self.check_open()?;
        self.is_closed.store(true, Ordering::Release);
        for lane in &self.lanes {
            lane.barrier().await?;
        }
        let is_broken = |log: &Arc<crate::state::Log>| {
            let state = log.state.lock();
            state.is_broken.then_some(state.log_id)
        };
        let broken: Vec<i64> = self.logs.all().iter().filter_map(is_broken).collect();
        self.query("mark the stop", Query::Close, &[&self.run, &broken]).await?;
        let writers = self.rows.writer_ids();
        self.query("mark the stop", Query::RemoveWriters, &[&writers]).await?;
        self.end_tasks();
        self.rows.close().await;
        self.background.close().await;
        self.pool.close().await;
        Ok(())
    }

    /// Logs that ended further on before a failover, as their rows say now.
    async fn lost_in_failovers(&self) -> Result<Vec<(PartitionId, String)>, StorageError> {
        let mut lost = Vec::new();
        for log in self.logs.all() {
            if log.state.lock().lost.is_none() {
                continue;
            }
            let row = self.look_up(log.id).await?;
            let mark = row.as_ref().and_then(|row| Some((row.end_offset, row.lost?)));
            log.state.lock().lost = mark.map(|(_, end)| end);
            lost.extend(mark.map(|(left, end)| (log.id, lost_records(log.id, left, end))));
        }
        Ok(lost)
    }

    async fn verify(&self, id: PartitionId) -> Result<Vec<Finding>, StorageError> {
        self.check_open()?;
        let Some(row) = self.look_up(id).await? else {
            let message = format!("no such log. partition=`{id}`");
            return Err(StorageError::new(ErrorKind::Missing, message));
        };
        let rows = self.query("list chunks", Query::ChunksOf, &[&row.log_id]).await?;
        let chunks = rows.iter().map(|row| Facts::of_row(row).1).chain(row.active);
        let mut findings = Vec::new();
        for facts in chunks {
            self.verify_chunk(row.log_id, &facts, &mut findings).await?;
        }
        Ok(findings)
    }

    async fn verify_chunk(
        &self,
        log_id: i64,
        facts: &Facts,
        findings: &mut Vec<Finding>,
    ) -> Result<(), StorageError> {
        let mut position = 0;
        let mut from = facts.base;
        let mut tell = |position, message: String| {
            findings.push(Finding { chunk: facts.name(), position, message });
        };
        while from < facts.next {
            let values: Params<'_> = &[&log_id, &facts.number, &from.get(), &VERIFY_BYTES];
            let rows = self.query("read entries", Query::Read, values).await?;
            if rows.is_empty() {
                tell(position, format!("entries are missing. from=`{from}`, to=`{}`", facts.next));
                return Ok(());
            }
            for row in &rows {
                let (next, data) = (Offset::new(row.get(1)), row.get::<_, &[u8]>(4));
                if digest(data) != row.get::<_, i64>(3) {
                    tell(position, "an entry is not what was appended".to_owned());
                } else if let Err(message) = check_batches(data, from, next) {
                    tell(position, message);
                }
                position += data.len() as u64;
                from = next;
            }
        }
        if position != facts.bytes.cast_unsigned() {
            let bytes = facts.bytes;
            tell(position, format!("entries and chunk differ in size. expected=`{bytes}`"));
        }
        Ok(())
    }
}

/// Holes are not wrong: compaction makes them.
fn check_batches(data: &[u8], from: Offset, end: Offset) -> Result<(), String> {
    let mut last = from;
    for batch in batches(data) {
        let batch = batch.map_err(|error| error.to_string())?;
        let (base, next) = offsets(&batch).map_err(|error| error.to_string())?;
        if base < last {
            return Err(format!("offsets go back. expected=`{last}`, got=`{base}`"));
        }
        batch.check_crc().map_err(|error| error.to_string())?;
        last = next;
    }
    if last == end { Ok(()) } else { Err(format!("an entry ends elsewhere. got=`{last}`")) }
}
