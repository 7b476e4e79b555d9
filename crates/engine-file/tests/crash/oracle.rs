//! What the workload was promised, and when.
//!
//! "When" is a count of the disk's operations: a promise that was heard when the disk had seen `n` of
//! them holds for every crash after the `n`-th.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use strandline_engine_file::disk::TestDisk;
use strandline_model::{Offset, PartitionId};
use strandline_records::{SealedBatches, batches};
use strandline_storage::{Change, Durability, LogListener, MetaBatch, StorageError, Table};

/// Rows of the metadata store: table and key to value.
pub(crate) type MetaState = BTreeMap<(u8, Bytes), Bytes>;

/// The row that names the commit that wrote it.
pub(crate) const COUNTER: &[u8] = b"counter";

#[derive(Debug)]
pub(crate) struct Oracle {
    disk: TestDisk,
    pub(crate) state: Mutex<Promises>,
}

#[derive(Debug, Default)]
pub(crate) struct Promises {
    pub(crate) logs: BTreeMap<PartitionId, LogPromises>,
    /// The state that each commit would leave, when it was begun, and when it was acknowledged.
    pub(crate) commits: Vec<MetaCommit>,
    /// When the first sync was made to fail: from then on logs that do not wait for syncs are promised
    /// nothing.
    pub(crate) sync_failed: Option<usize>,
}

#[derive(Clone, Debug)]
pub(crate) struct MetaCommit {
    pub(crate) after: MetaState,
    pub(crate) begun: usize,
    pub(crate) acknowledged: Option<usize>,
}

#[derive(Debug)]
pub(crate) struct LogPromises {
    pub(crate) durability: Durability,
    /// Everything that was ever handed over, by base offset: after a failure something else may take
    /// an offset that nobody had seen.
    pub(crate) submitted: BTreeMap<Offset, Vec<Bytes>>,
    /// What was handed over in the present life of the log.
    current: BTreeMap<Offset, Bytes>,
    /// What was shown to readers: it stays.
    pub(crate) shown: BTreeMap<Offset, Bytes>,
    /// When which end was shown.
    pub(crate) ends: Vec<(usize, Offset)>,
    pub(crate) trims: Vec<Trim>,
    pub(crate) compactions: Vec<Compaction>,
    pub(crate) states: Vec<(Offset, Bytes)>,
    pub(crate) removal: Removal,
    /// What was wrong with what the listener heard: a panic there would end a thread of the engine.
    pub(crate) complaints: Vec<String>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Trim {
    pub(crate) log_start: Offset,
    pub(crate) begun: usize,
    pub(crate) acknowledged: Option<usize>,
}

/// A rewrite of some chunks.
#[derive(Clone, Debug)]
pub(crate) struct Compaction {
    /// The batches that it leaves out.
    pub(crate) gone: Vec<Range<Offset>>,
    pub(crate) begun: usize,
    pub(crate) acknowledged: Option<usize>,
}

/// How far a removal has come.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Removal {
    pub(crate) begun: Option<usize>,
    /// A step of it was acknowledged.
    pub(crate) marked: Option<usize>,
    pub(crate) done: Option<usize>,
}

impl Oracle {
    pub(crate) fn new(disk: &TestDisk) -> Arc<Self> {
        Arc::new(Self { disk: disk.clone(), state: Mutex::default() })
    }

    pub(crate) fn now(&self) -> usize {
        self.disk.operations()
    }

    /// A log is used for the first time.
    pub(crate) fn adopt(&self, id: PartitionId, durability: Durability) {
        self.state.lock().logs.entry(id).or_insert_with(|| LogPromises {
            durability,
            submitted: BTreeMap::new(),
            current: BTreeMap::new(),
            shown: BTreeMap::new(),
            ends: Vec::new(),
            trims: Vec::new(),
            compactions: Vec::new(),
            states: Vec::new(),
            removal: Removal::default(),
            complaints: Vec::new(),
        });
    }

    /// A new life of a log begins with what it holds, up to `end`: readers see it from now on.
    ///
    /// That may be more than was shown before. What failed may be in the journal all the same.
    pub(crate) fn reopened(&self, id: PartitionId, end: Offset, held: &[u8]) {
        let now = self.now();
        self.log(id, |log| {
            log.current.clear();
            for batch in batches(held).map(|batch| batch.expect("checked before")) {
                let base = batch.base_offset().expect("checked before");
                let bytes = Bytes::copy_from_slice(batch.bytes());
                log.shown.insert(base, bytes);
            }
            log.ends.push((now, end));
        });
    }

    pub(crate) fn submitting(&self, id: PartitionId, sealed: &SealedBatches) {
        self.log(id, |log| {
            let bytes = sealed.bytes().clone();
            log.current.insert(sealed.base_offset(), bytes.clone());
            log.submitted.entry(sealed.base_offset()).or_default().push(bytes);
        });
    }

    pub(crate) fn log<T>(&self, id: PartitionId, with: impl FnOnce(&mut LogPromises) -> T) -> T {
        with(self.state.lock().logs.get_mut(&id).expect("a log is adopted before it is used"))
    }

    pub(crate) fn listener(self: &Arc<Self>, id: PartitionId) -> Arc<dyn LogListener> {
        Arc::new(Listener { oracle: Arc::clone(self), id })
    }

    /// Begins a commit that leaves `state`, and says which one it is: the counter's value.
    pub(crate) fn begin_commit(
        &self,
        mut state: MetaState,
        mut batch: MetaBatch,
    ) -> (usize, MetaBatch) {
        let begun = self.now();
        let mut promises = self.state.lock();
        let number = promises.commits.len();
        batch = batch.put(Table::Cluster, COUNTER, number.to_string());
        for change in &batch.changes {
            match change.clone() {
                Change::Put(table, key, value) => state.insert((table.number(), key), value),
                Change::Delete(table, key) => state.remove(&(table.number(), key)),
            };
        }
        promises.commits.push(MetaCommit { after: state, begun, acknowledged: None });
        (number, batch)
    }
}

impl Promises {
    /// The state that commit `number` left; empty for none.
    pub(crate) fn meta_after(&self, number: Option<usize>) -> MetaState {
        number.map_or_else(MetaState::new, |number| self.commits[number].after.clone())
    }

    /// The numbers that the counter may have after a crash at `cut`: `None` for no commit at all.
    pub(crate) fn is_meta_allowed(&self, number: Option<usize>, cut: usize) -> bool {
        let acknowledged = |commit: &MetaCommit| commit.acknowledged.is_some_and(|at| at <= cut);
        let least = self.commits.iter().rposition(acknowledged);
        match number {
            None => least.is_none(),
            Some(number) => {
                Some(number) >= least
                    && self.commits.get(number).is_some_and(|commit| commit.begun <= cut)
            }
        }
    }
}

impl LogPromises {
    /// The end that readers had seen by `cut`.
    pub(crate) fn end_shown_by(&self, cut: usize) -> Offset {
        let shown = self.ends.iter().filter(|(at, _)| *at <= cut).map(|(_, end)| *end);
        shown.max().unwrap_or(Offset::ZERO)
    }

    /// Whether `bytes` may stand at `base` in a log that shows it after a crash at `cut`.
    pub(crate) fn is_allowed(&self, base: Offset, bytes: &[u8], cut: usize) -> bool {
        if self.durability == Durability::Commit
            && base < self.end_shown_by(cut)
            && let Some(shown) = self.shown.get(&base)
        {
            return shown == bytes;
        }
        self.submitted.get(&base).is_some_and(|all| all.iter().any(|one| one == bytes))
    }

    /// Whether a reader may get from `at` to `base` without a batch, in a log that a crash at `cut`
    /// left: over what compactions may have left out.
    pub(crate) fn may_skip(&self, mut at: Offset, base: Offset, cut: usize) -> bool {
        let begun = || self.compactions.iter().filter(|one| one.begun <= cut);
        let hole = |at| begun().flat_map(|one| &one.gone).find(|gone| gone.contains(&at));
        while at < base {
            let Some(gone) = hole(at) else { return false };
            at = gone.end;
        }
        at == base
    }

    /// The compactions that left out what stood at an offset, for whoever looks for the mistake.
    pub(crate) fn compactions_at(&self, at: Offset) -> String {
        let has = |one: &&Compaction| one.gone.iter().any(|gone| gone.contains(&at));
        let all: Vec<_> = self.compactions.iter().filter(has).collect();
        format!("{all:?}, trims {:?}, shown {:?}", self.trims, self.shown.contains_key(&at))
    }

    /// Checks what compactions left out of a log that begins at `log_start`, ends at `end` and holds
    /// batches at `bases`: all of each or nothing, and all of what was acknowledged. Of a log that waits
    /// for no sync a crash may take the end, and with it some of what was to go.
    pub(crate) fn check_compactions(
        &self,
        (log_start, end): (Offset, Offset),
        bases: &BTreeSet<Offset>,
        cut: usize,
    ) -> Result<(), String> {
        for (number, one) in self.compactions.iter().enumerate().filter(|(_, one)| one.begun <= cut)
        {
            let is_sure = one.acknowledged.is_some_and(|at| at <= cut);
            let is_of_another = |gone: &Range<Offset>| {
                let mut others = self.compactions.iter().enumerate();
                others.any(|(other, one)| {
                    other != number && one.begun <= cut && one.gone.contains(gone)
                })
            };
            let judged = one.gone.iter().filter(|gone| gone.end > log_start && gone.start < end);
            let judged: Vec<_> = judged.filter(|gone| is_sure || !is_of_another(gone)).collect();
            let there = judged.iter().filter(|gone| bases.contains(&gone.start)).count();
            if there > 0 && (is_sure || there < judged.len()) {
                return Err(format!("{there} of {} are there of {one:?}", judged.len()));
            }
        }
        Ok(())
    }

    /// What is known of the batches at `base`, for whoever looks for the mistake.
    pub(crate) fn history_of(&self, base: Offset, found: &[u8]) -> String {
        let describe = |bytes: &[u8]| {
            let batch = batches(bytes).next().and_then(Result::ok);
            let end = batch.and_then(|batch| batch.next_offset());
            let epoch = batch.and_then(|batch| batch.leader_epoch());
            let is_found = if bytes == found { " (found)" } else { "" };
            format!("to {end:?} of epoch {epoch:?}{is_found}")
        };
        let submitted = self.submitted.get(&base).into_iter().flatten();
        let submitted: Vec<_> = submitted.map(|bytes| describe(bytes)).collect();
        let shown = self.shown.get(&base).map(|bytes| describe(bytes));
        let found = describe(found);
        let ends = &self.ends[self.ends.len().saturating_sub(12)..];
        format!("found {found}, shown {shown:?}, submitted {submitted:?}, ends {ends:?}")
    }

    /// The bounds of the log start after a crash at `cut`.
    pub(crate) fn log_start_bounds(&self, cut: usize) -> (Offset, Offset) {
        let of = |trims: &mut dyn Iterator<Item = &Trim>| {
            trims.map(|trim| trim.log_start).max().unwrap_or(Offset::ZERO)
        };
        let is_sure = |trim: &&Trim| trim.acknowledged.is_some_and(|at| at <= cut);
        let least = of(&mut self.trims.iter().filter(is_sure));
        let most = of(&mut self.trims.iter().filter(|trim| trim.begun <= cut));
        (least, most)
    }
}

#[derive(Debug)]
struct Listener {
    oracle: Arc<Oracle>,
    id: PartitionId,
}

impl LogListener for Listener {
    fn durable_end_moved(&self, end: Offset) {
        let now = self.oracle.now();
        self.oracle.log(self.id, |log| {
            log.ends.push((now, end));
            let unseen = log.current.range(..end).rev();
            let unseen: Vec<_> = unseen
                .take_while(|(base, _)| !log.shown.contains_key(base))
                .map(|(base, bytes)| (*base, bytes.clone()))
                .collect();
            for (base, bytes) in unseen {
                let view = batches(&bytes).last().and_then(Result::ok);
                let next = view.and_then(|batch| batch.next_offset());
                if next > Some(end) {
                    log.complaints.push(format!("the end {end} lies within the batch at {base}"));
                }
                log.shown.insert(base, bytes);
            }
        });
    }

    fn died(&self, _error: &StorageError) {}
}
