//! What a crash left, and the engine that is opened on it.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use strandline_engine_file::disk::{Crash, Disk, Replay, TestDisk};
use strandline_engine_file::{FileEngine, Inspection, OpenError, Severity};
use strandline_model::{ByteCount, LeaderEpoch, Offset, PartitionId};
use strandline_storage::testkit::TestBatch;
use strandline_storage::{
    CommitLog, Durability, ErrorKind, Found, LogStore, OpenLog, Opened, Removal,
};

use crate::End;
use crate::check::{self, Moment};
use crate::dice::Dice;
use crate::oracle::{self, Oracle};
use crate::trace;
use crate::workload::{config, durability, settings};

/// Of how many images one is also cut while the engine recovers, and one after it has.
const TWICE_ONE_IN: u32 = 4;

/// Of how many images one is closed cleanly at last, and opened again.
const CLOSED_ONE_IN: u32 = 8;

/// Steps that the rest of a removal takes at most.
const REMOVAL_STEPS_MAX: usize = 1000;

/// A crash of the workload.
#[derive(Debug)]
pub(crate) struct Image<'a> {
    pub(crate) seed: u64,
    pub(crate) cut: usize,
    pub(crate) end: End,
    pub(crate) oracle: &'a Oracle,
}

/// What the logs that wait for syncs hold.
type Held = BTreeMap<PartitionId, (Offset, Bytes)>;

impl Image<'_> {
    /// Opens an engine on what `make` makes and checks it; sometimes crashes it again.
    pub(crate) fn check(&self, make: impl Fn() -> TestDisk, dice: &mut Dice) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        runtime.block_on(async {
            let moment = Moment { cut: self.cut, keeps_pages: self.end.keeps_pages() };
            let disk = make();
            let stage = self.stage("opened once");
            let held = self.open_and_check(&disk, moment, dice).await;
            drop(stage);
            if dice.one_in(TWICE_ONE_IN) {
                let _stage = self.stage("crashed after its recovery");
                let again = disk.after(Crash::Torn(dice.next()));
                self.expect_held(&again, &held).await;
            }
            if dice.one_in(TWICE_ONE_IN) {
                let _stage = self.stage("crashed during its recovery");
                let (disk, end) = cut_recovery(&make(), dice);
                let keeps_pages = moment.keeps_pages && end.keeps_pages();
                self.open_and_check(&disk, Moment { keeps_pages, ..moment }, dice).await;
            }
        });
    }

    async fn open_and_check(&self, disk: &TestDisk, moment: Moment, dice: &mut Dice) -> Held {
        inspect(disk);
        let engine = open(disk);
        check::meta(&engine, self.oracle, moment.cut).await;
        let ids: Vec<_> = self.oracle.state.lock().logs.keys().copied().collect();
        let listed = engine.list().await.expect("an open engine lists");
        let mut held = Held::new();
        let mut logs = Vec::new();
        for id in ids {
            let removal = self.oracle.log(id, |log| log.removal);
            if removal.done.is_some_and(|at| at <= moment.cut) {
                assert!(!listed.contains(&id), "{id} was removed");
                continue;
            }
            let opened = engine.open(request(id)).await;
            if let Err(error) = &opened
                && error.kind() == ErrorKind::Invalid
                && removal.begun.is_some_and(|at| at <= moment.cut)
            {
                finish_removal(&engine, id).await;
                continue;
            }
            let Opened { log, epoch, found } = opened.expect("a log opens after a crash");
            if removal.marked.is_some_and(|at| at <= moment.cut)
                || removal_done(removal, moment, found)
            {
                assert_eq!(found, Found::Created, "{id}: its removal had begun");
                continue;
            }
            let bytes = check::opened(self.oracle, id, &*log, epoch, found, moment).await;
            let bytes = bytes.expect("what is shown is read");
            check_sound(&engine, id).await;
            let bytes = append_one(&*log, epoch, bytes).await;
            if durability(id) == Durability::Commit {
                held.insert(id, (log.bounds().durable_end, bytes));
            }
            logs.push(log);
        }
        drop(logs);
        if dice.one_in(CLOSED_ONE_IN) {
            engine.close().await.expect("an engine on a good disk closes");
            drop(engine);
            self.expect_held(disk, &held).await;
        }
        held
    }

    /// Opens an engine again that must hold what it held before.
    async fn expect_held(&self, disk: &TestDisk, held: &Held) {
        let engine = open(disk);
        check::meta(&engine, self.oracle, self.cut).await;
        for (id, (end, bytes)) in held {
            let opened = engine.open(request(*id)).await.expect("a log opens");
            assert_eq!(opened.log.bounds().durable_end, *end, "{id}");
            let found = check::read_all(&*opened.log).await.expect("what is shown is read");
            assert!(found == *bytes, "{id}: other batches than before");
        }
    }

    fn stage(&self, stage: &'static str) -> Stage<'_> {
        Stage { image: self, stage }
    }
}

/// Whether the removal ended on the disk though nobody was told.
fn removal_done(removal: oracle::Removal, moment: Moment, found: Found) -> bool {
    removal.begun.is_some_and(|at| at <= moment.cut) && found == Found::Created
}

/// Whoever only looks at the image finds no fault either, and changes nothing.
fn inspect(disk: &TestDisk) {
    let before = disk.operations();
    let inspection = match Inspection::open(Arc::new(disk.clone())) {
        Ok(inspection) => inspection,
        // The cut came before the folder's first snapshot: nothing is in it yet.
        Err(OpenError::Damaged { what }) if what == "it holds nothing of ours" => return,
        Err(error) => panic!("what a crash leaves is whole: {error}"),
    };
    for id in inspection.list().expect("it is listed") {
        let mut findings = inspection.verify(id).findings;
        findings.retain(|(severity, _)| *severity == Severity::Damage);
        assert_eq!(findings, [], "{id}");
    }
    assert_eq!(disk.operations(), before, "it is only looked at");
}

fn open(disk: &TestDisk) -> Arc<FileEngine> {
    let disk: Arc<dyn Disk> = Arc::new(disk.clone());
    FileEngine::open(disk, config()).expect("what a crash leaves is opened").0
}

fn request(id: PartitionId) -> OpenLog {
    OpenLog {
        id,
        at_least: LeaderEpoch::ZERO,
        settings: settings(durability(id)),
        listener: Arc::new(Deaf),
    }
}

/// A check of the log finds nothing. Torn indexes count for nothing: they are made anew.
async fn check_sound(engine: &FileEngine, id: PartitionId) {
    let mut findings = engine.verify(id).await.expect("an open log is checked");
    findings.retain(|finding| trace::has_extension(Path::new(&finding.chunk), "log"));
    assert_eq!(findings, [], "{id}");
}

/// The engine goes on where it recovered to.
async fn append_one(log: &dyn CommitLog, epoch: LeaderEpoch, before: Bytes) -> Bytes {
    let at = log.bounds().written_end;
    let sealed = TestBatch::of(2).seal(at, epoch);
    let ticket = log.submit(at, sealed.clone()).expect("a recovered log takes an append");
    ticket.await.expect("and makes it durable");
    let held = check::read_all(log).await.expect("what is shown is read");
    assert!(
        held.strip_prefix(&before[..]) == Some(&sealed.bytes()[..]),
        "it stands behind the others"
    );
    held
}

async fn finish_removal(engine: &FileEngine, id: PartitionId) {
    for _ in 0..REMOVAL_STEPS_MAX {
        let removed = engine.remove_some(id, ByteCount::kib(4)).await;
        if removed.expect("a removal goes on after a crash") == Removal::Done {
            let listed = engine.list().await.expect("an open engine lists");
            assert!(!listed.contains(&id), "{id} is gone");
            return;
        }
    }
    panic!("{id}: a removal ends");
}

/// Lets an engine open `disk` and crashes it somewhere on the way.
fn cut_recovery(disk: &TestDisk, dice: &mut Dice) -> (TestDisk, End) {
    let engine = open(disk);
    let operations = disk.operations();
    drop(engine);
    let mut replay = Replay::of(disk);
    for _ in 0..dice.index(operations + 1) {
        replay.step();
    }
    let end = match dice.below(3) {
        0 => End::Death,
        1 => End::PowerCut(Crash::DropAll),
        _ => End::PowerCut(Crash::Torn(dice.next())),
    };
    (end.of(&replay), end)
}

#[derive(Debug)]
struct Deaf;

impl strandline_storage::LogListener for Deaf {
    fn durable_end_moved(&self, _end: Offset) {}

    fn died(&self, _error: &strandline_storage::StorageError) {}
}

/// Says where a failed check was.
struct Stage<'a> {
    image: &'a Image<'a>,
    stage: &'static str,
}

impl Drop for Stage<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            let Image { seed, cut, end, .. } = self.image;
            eprintln!("seed {seed}, cut after {cut} operations, {end:?}, {}", self.stage);
        }
    }
}
