//! Compares an opened engine with what the oracle was promised.

use std::collections::BTreeSet;

use bytes::Bytes;
use strandline_engine_file::FileEngine;
use strandline_model::{ByteCount, LeaderEpoch, Offset, PartitionId};
use strandline_records::batches;
use strandline_storage::{
    CommitLog, Durability, Found, MetaStore, Minimum, ReadError, ReadLimit, Table,
};

use crate::oracle::{COUNTER, LogPromises, MetaState, Oracle};

/// Which crash the engine comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    /// Operations of the workload's disk that had happened.
    pub(crate) cut: usize,
    /// Whether only the process ended, not the machine.
    pub(crate) keeps_pages: bool,
}

/// Checks a log that was just opened. Returns what it holds. Fails only when it can't be read.
pub(crate) async fn opened(
    oracle: &Oracle,
    id: PartitionId,
    log: &dyn CommitLog,
    epoch: LeaderEpoch,
    found: Found,
    moment: Moment,
) -> Result<Bytes, ReadError> {
    let bounds = log.bounds();
    let held = read_all(log).await?;
    let state = log.load_state().await?;
    let sync_failed = oracle.state.lock().sync_failed;
    oracle.log(id, |promises| {
        assert_eq!(promises.complaints, [] as [String; 0]);
        let (least, most) = promises.log_start_bounds(moment.cut);
        assert!(
            (least..=most).contains(&bounds.log_start),
            "{id}: log start {} is not in {least}..={most}",
            bounds.log_start
        );
        let shown = promises.end_shown_by(moment.cut);
        if is_bound(promises, sync_failed, moment) {
            assert!(
                bounds.durable_end >= shown,
                "{id}: {bounds:?} ({found:?}) takes back what was shown: {shown}"
            );
        }
        assert_eq!(bounds.written_end, bounds.durable_end, "{id}");
        check_batches(promises, id, bounds.log_start, bounds.durable_end, &held, moment.cut);
        for batch in batches(&held).map(|batch| batch.expect("checked above")) {
            let of_batch = batch.leader_epoch().expect("sealed batches have an epoch");
            let is_newer =
                if found == Found::Unclean { epoch > of_batch } else { epoch >= of_batch };
            assert!(is_newer, "{id}: epoch {epoch} ({found:?}) after batches of {of_batch}");
        }
        if let Some((at, state)) = state {
            assert!(at <= bounds.durable_end, "{id}: a state above the end");
            assert!(promises.states.contains(&(at, state)), "{id}: a state that nobody saved");
        }
    });
    Ok(held)
}

/// Whether what was shown must be there after the crash.
fn is_bound(promises: &LogPromises, sync_failed: Option<usize>, moment: Moment) -> bool {
    match promises.durability {
        Durability::Commit => true,
        // These survive the process. After a failed sync even that is no more than likely.
        Durability::Interval(_) | Durability::Never => {
            moment.keeps_pages && sync_failed.is_none_or(|at| at > moment.cut)
        }
    }
}

/// Whole batches of ours, one after another, from the one that holds the log start to the end.
fn check_batches(
    promises: &LogPromises,
    id: PartitionId,
    log_start: Offset,
    end: Offset,
    held: &[u8],
    cut: usize,
) {
    let mut next = None;
    let mut bases = BTreeSet::new();
    for batch in batches(held) {
        let batch = batch.expect("a log serves whole batches");
        batch.check_crc().expect("a log serves sound batches");
        let base = batch.base_offset().expect("sealed batches have offsets");
        bases.insert(base);
        let from = next.unwrap_or(log_start);
        assert!(
            next.is_none() && base <= log_start || promises.may_skip(from, base, cut),
            "{id}: a hole from {from} to {base}, which no compaction made: {}, there are {:?}",
            promises.compactions_at(from),
            ranges(held)
        );
        next = batch.next_offset();
        assert!(
            promises.is_allowed(base, batch.bytes(), cut),
            "{id}: the batch at {base} is not what was shown there, or not ours: {}",
            promises.history_of(base, batch.bytes())
        );
    }
    assert_eq!(next.unwrap_or(log_start), end, "{id}: the end is that of the last batch");
    let compacted = promises.check_compactions((log_start, end), &bases, cut);
    compacted.unwrap_or_else(|wrong| panic!("{id}: {wrong}"));
}

/// Offsets and bytes of batches.
fn ranges(held: &[u8]) -> Vec<(Option<Offset>, Option<Offset>, usize)> {
    let all = batches(held).filter_map(Result::ok);
    all.map(|one| (one.base_offset(), one.next_offset(), one.bytes().len())).collect()
}

/// Everything that a log serves.
pub(crate) async fn read_all(log: &dyn CommitLog) -> Result<Bytes, ReadError> {
    let bounds = log.bounds();
    read_between(log, bounds.log_start, bounds.durable_end).await
}

/// What a log serves from one offset, or its start, to another, where a batch ends.
pub(crate) async fn read_between(
    log: &dyn CommitLog,
    from: Offset,
    upto: Offset,
) -> Result<Bytes, ReadError> {
    let limit = ReadLimit { bytes: ByteCount::kib(16), minimum: Minimum::OneBatch };
    let mut held = Vec::new();
    let mut from = from.max(log.bounds().log_start);
    while from < upto {
        let read = log.read(from, upto, limit).await?;
        let bytes = read.read_to_memory().expect("a disk without faults is read");
        held.extend_from_slice(&bytes);
        let last = batches(&bytes).last().expect("a read below the end gets on");
        // Whoever asked looks at what is none.
        let Ok(last) = last else { break };
        from = last.next_offset().expect("sealed batches have offsets");
    }
    Ok(held.into())
}

/// Checks that the rows are those of one commit, whole, and that it is no older than the last
/// acknowledged one. Returns which one.
pub(crate) async fn meta(engine: &FileEngine, oracle: &Oracle, cut: usize) -> Option<usize> {
    let rows = scan_all(engine).await;
    let counter = rows.get(&(Table::Cluster.number(), Bytes::from_static(COUNTER)));
    let number = counter.map(|value| {
        std::str::from_utf8(value).ok().and_then(|text| text.parse().ok()).expect("our counter")
    });
    let promises = oracle.state.lock();
    assert!(promises.is_meta_allowed(number, cut), "rows of commit {number:?} after cut {cut}");
    assert_eq!(rows, promises.meta_after(number), "rows of commit {number:?} in part");
    number
}

async fn scan_all(engine: &FileEngine) -> MetaState {
    let mut rows = MetaState::new();
    for table in Table::ALL {
        let mut after = None;
        loop {
            let page = engine.scan(table, after, 7).await.expect("an open engine is scanned");
            after = page.rows.last().map(|row| row.key.clone());
            rows.extend(page.rows.into_iter().map(|row| ((table.number(), row.key), row.value)));
            if !page.more {
                break;
            }
        }
    }
    rows
}
