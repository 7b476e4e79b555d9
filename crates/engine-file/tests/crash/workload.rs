//! A mixed workload, from a seed: appends, metadata, trims, rolls, removals, restarts and faults.

mod compaction;

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use strandline_engine_file::disk::{Disk, Fault, Persisted, TestDisk};
use strandline_engine_file::{FileEngine, FileEngineConfig};
use strandline_model::{
    ByteCount, LeaderEpoch, Offset, OffsetDelta, PartitionId, PartitionIndex, TopicId,
};
use strandline_storage::testkit::TestBatch;
use strandline_storage::{
    AppendError, CommitError, CommitLog, Durability, ErrorKind, LogSettings, LogStore, MetaBatch,
    MetaStore, OpenLog, Opened, Removal, Table, Ticket,
};

use crate::check::{self, Moment};
use crate::dice::Dice;
use crate::oracle::{COUNTER, MetaState, Oracle, Trim};
use crate::trace;
use crate::watchdog::Pulse;

/// Logs that live through the whole workload.
const LASTING: u32 = 4;

/// How long an engine may need to open a log once the disk works again: it replaces a segment meanwhile,
/// or finds out that it has to be started anew.
const MENDED_WITHIN: Duration = Duration::from_secs(20);

/// Of the failures meanwhile the last ones are told.
const FAILURES_TOLD: usize = 3;

/// Small enough that a workload fills several journal files and makes several checkpoints.
pub(crate) fn config() -> FileEngineConfig {
    let blocks = |count: u64| ByteCount::new(count * 4096);
    FileEngineConfig {
        journal_first_file: blocks(4),
        journal_file: blocks(10),
        journal_cap: blocks(64),
        checkpoint_at: blocks(16),
        direct_min: ByteCount::new(1500),
        direct_checkpoint_at: blocks(12),
        open_files_max: 6,
        cache_window: ByteCount::kib(8),
        ..FileEngineConfig::tiny()
    }
}

pub(crate) fn settings(durability: Durability) -> LogSettings {
    LogSettings {
        segment_bytes: ByteCount::kib(6),
        segment_records: u64::MAX,
        segment_age: Duration::MAX,
        index_interval_bytes: ByteCount::new(400),
        durability,
    }
}

pub(crate) fn partition(index: u32) -> PartitionId {
    PartitionId::new(TopicId::from_bytes([0x11; 16]), PartitionIndex::new(index))
}

pub(crate) fn durability(id: PartitionId) -> Durability {
    match id.index.get() {
        2 => Durability::Interval(Duration::from_millis(1)),
        3 => Durability::Never,
        _ => Durability::Commit,
    }
}

/// Runs `steps` steps; gives back the disk and what was promised.
pub(crate) fn run(seed: u64, steps: usize, pulse: &Pulse) -> (TestDisk, Arc<Oracle>) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let disk = TestDisk::new();
    let oracle = Oracle::new(&disk);
    let on_panic = trace::OnPanic(&disk);
    runtime.block_on(async {
        let mut workload = Workload {
            running: Some(open_engine(&disk)),
            disk: disk.clone(),
            oracle: Arc::clone(&oracle),
            dice: Dice::new(seed),
            open: BTreeMap::new(),
            outstanding: Vec::new(),
            meta: MetaState::new(),
            passing: LASTING,
        };
        for step in 0..steps {
            pulse.beat(format!("step {step} of seed {seed}"));
            workload.step().await;
        }
        workload.settle().await;
    });
    drop(on_panic);
    (disk, oracle)
}

fn open_engine(disk: &TestDisk) -> Arc<FileEngine> {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    FileEngine::open(disk, config()).expect("a disk without faults is opened").0
}

struct Workload {
    /// `None` between two engines.
    running: Option<Arc<FileEngine>>,
    disk: TestDisk,
    oracle: Arc<Oracle>,
    dice: Dice,
    open: BTreeMap<PartitionId, Handle>,
    outstanding: Vec<(PartitionId, Offset, Ticket)>,
    /// The rows as the last acknowledged commit left them.
    meta: MetaState,
    /// The log that lives until the next removal.
    passing: u32,
}

#[derive(Clone)]
struct Handle {
    log: Arc<dyn CommitLog>,
    epoch: LeaderEpoch,
}

impl Workload {
    fn engine(&self) -> &FileEngine {
        self.running.as_deref().expect("an engine runs between two steps")
    }

    async fn step(&mut self) {
        let id = partition(self.dice.below(LASTING));
        match self.dice.below(100) {
            0..46 => self.append(id).await,
            46..54 => self.settle().await,
            54..60 => self.commit().await,
            64..67 => self.trim(id).await,
            67..71 => self.retain(id).await,
            71..73 => self.roll(id).await,
            73..76 => self.save_state(id).await,
            76..81 => self.append(partition(self.passing)).await,
            60..64 | 81..84 => self.compact(id).await,
            84..86 => self.remove().await,
            86..89 => drop(self.open.remove(&id)),
            89 => self.restart(true).await,
            90 => self.restart(false).await,
            91..93 => self.fill_disk(id).await,
            _ => self.fail_once(id).await,
        }
    }

    /// The handle of a log, opened if it is not; the engine is restarted when it has failed.
    async fn handle(&mut self, id: PartitionId) -> Handle {
        if let Some(handle) = self.open.get(&id) {
            return handle.clone();
        }
        let durability = durability(id);
        self.oracle.adopt(id, durability);
        let mut failures = VecDeque::new();
        let deadline = Instant::now() + MENDED_WITHIN;
        while Instant::now() < deadline {
            let request = OpenLog {
                id,
                at_least: LeaderEpoch::ZERO,
                settings: settings(durability),
                listener: self.oracle.listener(id),
            };
            match self.engine().open(request).await {
                Ok(Opened { log, epoch, found }) => {
                    let end = log.bounds().durable_end;
                    let moment = Moment { cut: self.oracle.now(), keeps_pages: true };
                    let checked =
                        check::opened(&self.oracle, id, &*log, epoch, found, moment).await;
                    match checked {
                        Ok(held) => {
                            self.oracle.reopened(id, end, &held);
                            let handle = Handle { log, epoch };
                            self.open.insert(id, handle.clone());
                            return handle;
                        }
                        // A fault of an earlier step reached the engine meanwhile.
                        Err(error) => failures.push_back(format!("read: {error:?}")),
                    }
                    drop(log);
                }
                Err(error) => failures.push_back(format!("open: {error:?}")),
            }
            if failures.len() > FAILURES_TOLD {
                failures.pop_front();
            }
            self.mend().await;
            tokio::task::yield_now().await;
        }
        let now = self.oracle.now();
        panic!("a log opens once the disk works again. {id}, operation {now}: {failures:#?}");
    }

    async fn append(&mut self, id: PartitionId) {
        let Handle { log, epoch } = self.handle(id).await;
        for _ in 0..=self.dice.below(4) {
            let records = 1 + self.dice.below(4);
            let value_bytes = match self.dice.below(12) {
                0 => 4000,
                1..4 => 700,
                _ => 30,
            };
            let at = log.bounds().written_end;
            let sealed = TestBatch::of(records).value_bytes(value_bytes).seal(at, epoch);
            self.oracle.submitting(id, &sealed);
            match log.submit(at, sealed.clone()) {
                Ok(ticket) => self.outstanding.push((id, sealed.next_offset(), ticket)),
                Err(AppendError::Busy) => {
                    self.settle().await;
                    log.ready().await;
                }
                Err(AppendError::Moved { written_end }) => {
                    panic!("nobody else appends. at=`{at}`, written_end=`{written_end}`")
                }
                Err(AppendError::Refused(error)) => {
                    if error.kind() != ErrorKind::Full {
                        self.open.remove(&id);
                    }
                    break;
                }
            }
        }
    }

    /// Waits for everything that was submitted.
    async fn settle(&mut self) {
        for (id, end, ticket) in std::mem::take(&mut self.outstanding) {
            match ticket.await {
                Ok(()) => {
                    let now = self.oracle.now();
                    let shown = self.oracle.log(id, |log| log.end_shown_by(now));
                    assert!(shown >= end, "what is acknowledged is shown. {id} {end}");
                }
                Err(_) => drop(self.open.remove(&id)),
            }
        }
    }

    async fn commit(&mut self) {
        let mut batch = MetaBatch::new();
        for _ in 0..=self.dice.below(3) {
            let table = Table::ALL[self.dice.index(Table::ALL.len())];
            let key = format!("k{}", self.dice.below(20));
            batch = if self.dice.one_in(3) {
                batch.delete(table, key)
            } else {
                let size = self.dice.index(300);
                batch.put(table, key, vec![b"abcdefghijklmnop"[self.dice.index(16)]; size])
            };
        }
        let counter = (Table::Cluster.number(), Bytes::from_static(COUNTER));
        batch = match self.meta.get(&counter) {
            None => batch.expect_absent(Table::Cluster, COUNTER),
            Some(value) => batch.expect_equals(Table::Cluster, COUNTER, value.clone()),
        };
        if self.dice.one_in(8) {
            let refused = batch.clone().expect_equals(Table::Topics, "no such row", "x");
            match self.engine().commit(refused).await {
                Err(CommitError::Unexpected { index: 1 } | CommitError::Storage(_)) => {}
                other => panic!("an expectation that does not hold is told: {other:?}"),
            }
        }
        let (number, batch) = self.oracle.begin_commit(self.meta.clone(), batch);
        match self.engine().commit(batch).await {
            Ok(()) => {
                let now = self.oracle.now();
                let mut promises = self.oracle.state.lock();
                promises.commits[number].acknowledged = Some(now);
                self.meta = promises.meta_after(Some(number));
            }
            Err(CommitError::Unexpected { index }) => panic!("nobody else commits: {index}"),
            Err(CommitError::Storage(_)) => self.mend().await,
        }
    }

    async fn trim(&mut self, id: PartitionId) {
        let log = self.handle(id).await.log;
        let bounds = log.bounds();
        let span = (bounds.durable_end - bounds.log_start).get();
        let raise = i64::from(self.dice.below(1 + u32::try_from(span).expect("a short log")));
        self.trim_to(id, log, bounds.log_start + OffsetDelta::new(raise)).await;
    }

    /// As retention does: drops the oldest segments, whole, the active one closed before or not.
    async fn retain(&mut self, id: PartitionId) {
        if self.dice.one_in(2) {
            self.roll(id).await;
        }
        let log = self.handle(id).await.log;
        let durable_end = log.bounds().durable_end;
        let mut borders: Vec<_> = log.chunks().iter().map(|chunk| chunk.next_offset).collect();
        borders.retain(|border| *border <= durable_end);
        if !borders.is_empty() {
            let border = borders[self.dice.index(borders.len())];
            self.trim_to(id, log, border).await;
        }
    }

    async fn trim_to(&mut self, id: PartitionId, log: Arc<dyn CommitLog>, log_start: Offset) {
        let begun = self.oracle.now();
        self.oracle.log(id, |log| log.trims.push(Trim { log_start, begun, acknowledged: None }));
        let trimmed = log.trim(log_start).await;
        let now = self.oracle.now();
        if let Ok(bounds) = trimmed {
            assert!(bounds.log_start >= log_start);
            self.oracle.log(id, |log| {
                log.trims.last_mut().expect("just pushed").acknowledged = Some(now);
            });
        } else {
            drop(log);
            self.lose(id).await;
        }
    }

    async fn roll(&mut self, id: PartitionId) {
        let log = self.handle(id).await.log;
        if log.roll().await.is_err() {
            drop(log);
            self.lose(id).await;
        }
    }

    async fn save_state(&mut self, id: PartitionId) {
        let log = self.handle(id).await.log;
        let at = log.bounds().durable_end;
        let state = Bytes::from(format!("state {}", self.dice.next()));
        self.oracle.log(id, |log| log.states.push((at, state.clone())));
        if log.save_state(at, state).await.is_err() {
            drop(log);
            self.lose(id).await;
        }
    }

    /// A step of the removal of the passing log, or all of it.
    async fn remove(&mut self) {
        let id = partition(self.passing);
        self.oracle.adopt(id, durability(id));
        self.settle().await;
        self.open.remove(&id);
        let begun = self.oracle.now();
        self.oracle.log(id, |log| _ = log.removal.begun.get_or_insert(begun));
        let steps = 1 + self.dice.below(6);
        for _ in 0..steps {
            let removed = self.engine().remove_some(id, ByteCount::kib(4)).await;
            let now = self.oracle.now();
            match removed {
                Ok(Removal::Remaining(_)) => {
                    self.oracle.log(id, |log| _ = log.removal.marked.get_or_insert(now));
                }
                Ok(Removal::Done) => {
                    self.oracle.log(id, |log| log.removal.done = Some(now));
                    self.passing += 1;
                    break;
                }
                Err(_) => {
                    self.mend().await;
                    break;
                }
            }
        }
        if self.passing == id.index.get() {
            // Nobody opens it again: another one takes its place, and this one is finished later or by
            // whoever opens an image.
            self.passing += 1;
        }
    }

    /// Stops the engine, cleanly or as a killed process does, and starts another on the same disk.
    async fn restart(&mut self, cleanly: bool) {
        self.settle().await;
        if cleanly {
            // It may fail when the disk was made to fail.
            drop(self.engine().close().await);
        }
        self.reboot().await;
    }

    async fn reboot(&mut self) {
        self.open.clear();
        self.outstanding.clear();
        self.disk.clear_faults();
        self.disk.set_capacity(None);
        // The old engine ends with its last handle, and gives the folder's lock back.
        drop(self.running.take());
        let engine = self.running.insert(open_engine(&self.disk));
        let number = check::meta(engine, &self.oracle, self.oracle.now()).await;
        self.meta = self.oracle.state.lock().meta_after(number);
    }

    /// The disk fills up; appends fail; it has room again.
    async fn fill_disk(&mut self, id: PartitionId) {
        let used: usize =
            self.disk.paths().iter().filter_map(|path| Some(self.disk.contents(path)?.len())).sum();
        self.disk.set_capacity(Some(ByteCount::new((used + self.dice.index(6000)) as u64)));
        for _ in 0..3 {
            self.append(id).await;
            self.commit().await;
        }
        self.settle().await;
        self.disk.set_capacity(None);
    }

    /// Lets one of the next operations fail.
    async fn fail_once(&mut self, id: PartitionId) {
        let persisted = if self.dice.one_in(2) {
            Persisted::Nothing
        } else {
            Persisted::Torn(self.dice.next())
        };
        let kind =
            if self.dice.one_in(2) { io::ErrorKind::StorageFull } else { io::ErrorKind::Other };
        let written = self.dice.index(6000);
        let skip = self.dice.index(3);
        let (path, fault) = match self.dice.below(12) {
            0..3 => (".journal", Fault::Sync { persisted }),
            3 => (".journal", Fault::Write { kind, written }),
            4..6 => (".log", Fault::Write { kind, written }),
            6..9 => (".log", Fault::Sync { persisted }),
            9 => {
                // Nor can the copy that is to take its place be made.
                let fault = if self.dice.one_in(2) {
                    Fault::Write { kind, written }
                } else {
                    Fault::Sync { persisted }
                };
                self.disk.inject(".log.new", 0, fault);
                (".log", Fault::Sync { persisted })
            }
            10 => ("snapshot", Fault::Sync { persisted }),
            _ => ("", Fault::SyncDir),
        };
        if matches!(fault, Fault::Sync { .. } | Fault::SyncDir) || path == ".journal" {
            let now = self.oracle.now();
            self.oracle.state.lock().sync_failed.get_or_insert(now);
        }
        self.disk.inject(path, skip, fault);
        self.append(id).await;
        self.commit().await;
    }

    async fn lose(&mut self, id: PartitionId) {
        self.open.remove(&id);
        self.mend().await;
    }

    /// After a failure: the disk works again, and the engine is asked whether it lives.
    async fn mend(&mut self) {
        self.disk.clear_faults();
        self.disk.set_capacity(None);
        if self.engine().list().await.is_err() {
            self.reboot().await;
        }
    }
}
