//! From a folder to the state that an engine starts with.
//!
//! The decisions are in [`table`], the reading of the journal in [`replay`]; here they are put
//! together. Everything that recovery brings back is durable, in segments and in a new snapshot,
//! before this returns; until that snapshot is renamed nothing of the old journal is touched, so a
//! crash during recovery starts it again.

mod decide;
mod inspect;
mod replay;
mod report;
mod rescue;
pub(crate) mod table;

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::config::FileEngineConfig;
use crate::disk::Disk;
use crate::journal::files::SpareFile;
use crate::journal::reader::{Journal, WalkStart};
use crate::journal::{self, Generation, GroupPosition, GroupSequence};
use crate::progress::{OpenProgress, OpenWork};
use crate::rows::RowMap;
use crate::segment::{SegmentStore, SyncFailure, rescue_name};
use crate::snapshot::{self, LoadedSnapshot, SnapshotHead};
use crate::tables::{self, DamageRow};
use bytes::Bytes;
pub use inspect::{Inspection, JournalSeen, LogCheck, Severity};
use replay::{Batches, Facts, loss_of};
pub use report::{DamagedLog, OpenError, RecoveryReport, Started};
use rescue::Rescue;
use strandline_model::PartitionId;
use table::{FolderFacts, FolderVerdict, SnapshotFound};

/// What an engine starts with.
#[derive(Debug)]
pub(crate) struct Recovered {
    pub(crate) rows: RowMap,
    /// The sequence of the last group.
    pub(crate) last: GroupSequence,
    pub(crate) generation_max: Generation,
    /// Files of the journal that may be used again.
    pub(crate) spare: Vec<SpareFile>,
    pub(crate) next_slot: u32,
    pub(crate) run: u64,
    pub(crate) unclean_run: u64,
    pub(crate) report: RecoveryReport,
}

/// What a folder's snapshot says.
#[derive(Debug)]
struct Written {
    head: SnapshotHead,
    rows: RowMap,
    version: u32,
}

/// A folder that nobody wrote yet.
const NEW: SnapshotHead = SnapshotHead {
    sequence: GroupSequence(0),
    position: GroupPosition { generation: Generation(1), position: 0 },
    generation_max: Generation(0),
    run: 0,
    unclean_run: 0,
    clean: true,
};

/// Brings the folder into a state from which an engine goes on. Blocks.
///
/// With less than the configured reserve free it gives up files of the journal that hold nothing, to have room for
/// its snapshot.
pub(crate) fn recover(
    disk: &Arc<dyn Disk>,
    segments: &Arc<SegmentStore>,
    config: &FileEngineConfig,
) -> Result<Recovered, OpenError> {
    let began = Instant::now();
    let loaded = snapshot::load(&**disk).map_err(failed("read snapshot"))?;
    let found = match &loaded {
        LoadedSnapshot::None => SnapshotFound::None,
        LoadedSnapshot::Newer(_) => SnapshotFound::Newer,
        LoadedSnapshot::Damaged => SnapshotFound::Damaged,
        LoadedSnapshot::Found(head, ..) if head.clean => SnapshotFound::Clean,
        LoadedSnapshot::Found(..) => SnapshotFound::Running,
    };
    let others = has_others(&**disk, segments)?;
    let first_look = FolderFacts { snapshot: found, others, tail: false };
    let folder = Path::new(journal::FOLDER);
    let mut recovered = match (first_look.verdict(), loaded) {
        (FolderVerdict::RefuseNewer, LoadedSnapshot::Newer(version)) => {
            return Err(OpenError::newer(version));
        }
        (FolderVerdict::Create, _) => {
            disk.create_dir(folder).map_err(failed("make journal"))?;
            snapshot::write(&**disk, &NEW, &RowMap::new()).map_err(failed("write snapshot"))?;
            Recovered::from_snapshot(NEW, RowMap::new())
        }
        (
            FolderVerdict::Resume | FolderVerdict::Recover,
            LoadedSnapshot::Found(head, rows, version),
        ) => {
            disk.create_dir(folder).map_err(failed("make journal"))?;
            let written = Written { head, rows, version };
            go_on(disk, segments, written, (first_look, config))?
        }
        (_, LoadedSnapshot::None) => {
            return Err(OpenError::damaged(
                "its snapshot is missing, but journal or logs are there",
            ));
        }
        _ => return Err(OpenError::damaged("its snapshot is not readable")),
    };
    recovered.count(began.elapsed());
    Ok(recovered)
}

/// Reads what follows a snapshot and, unless nothing does, brings it back.
fn go_on(
    disk: &Arc<dyn Disk>,
    segments: &Arc<SegmentStore>,
    Written { head, rows, version }: Written,
    (folder, config): (FolderFacts, &FileEngineConfig),
) -> Result<Recovered, OpenError> {
    // Whoever stopped before may have been killed between making, renaming or removing a file and the
    // sync of its folder. What is found from now on stays: the snapshot that this start believes, the
    // slots that it hands out as spare; and a slot that was removed, whose generation is given again,
    // does not come back.
    disk.sync_dir(Path::new(journal::FOLDER)).map_err(failed("sync journal"))?;
    disk.sync_dir(Path::new("")).map_err(failed("sync folder"))?;
    let mut journal = Journal::open(&**disk)?;
    journal.sync_from(head.position.generation).map_err(failed("sync journal"))?;
    let start = WalkStart { position: head.position, sequence: head.sequence.next() };
    let mut facts = Facts::new(rows, head.sequence);
    let progress = &*config.progress;
    let bytes = journal.bytes_from(start.position);
    progress.begin(OpenWork::ReadRows, bytes);
    let end = journal.walk(start, progress, |group| facts.read(&group))?;
    let generation_max = head.generation_max.max(journal.generation_max());
    // A file begun since the snapshot tells of a run that did not stop cleanly, though no group of it
    // is left: it may have shown what was not synced.
    let was_used = journal.generation_max() > head.generation_max;
    let tail = end.last > head.sequence || end.torn_groups > 0 || was_used;
    let is_complete = (FolderFacts { tail, ..folder }).verdict() == FolderVerdict::Resume;
    let mut recovered = if is_complete {
        let report = RecoveryReport::clean();
        let rows = facts.into_rows();
        if version < snapshot::VERSION {
            // Before the first row that the older program can't read: it must refuse the folder by then.
            snapshot::write(&**disk, &head, &rows).map_err(failed("write snapshot"))?;
        }
        Recovered { report, ..Recovered::from_snapshot(head, rows) }
    } else {
        // A disk that can't tell has room.
        if disk.free_space().is_ok_and(|free| free < config.reserve) {
            journal.discard_needless(&**disk, head.position.generation);
        }
        let mut batches = Batches::new(facts, segments, &config.progress);
        progress.begin(OpenWork::BringBack, bytes);
        journal.walk(start, progress, |group| batches.read(&group))?;
        let mut report = RecoveryReport::recovered(end.torn_groups);
        let (decisions, damaged) = batches.finish(&mut report)?;
        let mut rescue = Rescue::new(decisions, Arc::clone(segments), damaged);
        if !rescue.is_needless() {
            progress.begin(OpenWork::Rescue, bytes);
            journal.walk(start, progress, |group| rescue.read(&group))?;
        }
        let (rows, damaged) = rescue.finish()?;
        // Groups behind a clean stop are of the run after it.
        let unclean_run = if head.clean { head.run + 1 } else { head.run };
        let head = SnapshotHead {
            sequence: end.last,
            position: GroupPosition { generation: Generation(generation_max.0 + 1), position: 0 },
            generation_max,
            run: unclean_run + 1,
            unclean_run,
            clean: false,
        };
        sync_all(segments, &damaged, progress)?;
        let rows = rows.into_map();
        snapshot::write(&**disk, &head, &rows).map_err(failed("write snapshot"))?;
        Recovered { run: head.run, report, ..Recovered::from_snapshot(head, rows) }
    };
    recovered.generation_max = generation_max;
    (recovered.spare, recovered.next_slot) = journal.into_spare();
    Ok(recovered)
}

/// Makes durable what was written to segments.
fn sync_all(
    segments: &Arc<SegmentStore>,
    damaged: &BTreeSet<PartitionId>,
    progress: &OpenProgress,
) -> Result<(), OpenError> {
    let unsynced = segments.take_unsynced();
    progress.begin(OpenWork::Sync, unsynced.len() as u64);
    // Nobody believes what this start wrote to segments of damaged logs.
    let matters =
        |failure: &SyncFailure| failure.segment.is_none_or(|(id, _)| !damaged.contains(&id));
    let failed = unsynced.run_at_once(|| progress.advance(1)).into_iter().find(matters);
    failed.map_or(Ok(()), |failure| Err(failure.error.into()))
}

impl Recovered {
    /// The state right behind a snapshot, in the run after the one that wrote it.
    fn from_snapshot(head: SnapshotHead, rows: RowMap) -> Self {
        Self {
            rows,
            last: head.sequence,
            generation_max: head.generation_max,
            spare: Vec::new(),
            next_slot: 0,
            run: head.run + 1,
            unclean_run: head.unclean_run,
            report: RecoveryReport::default(),
        }
    }

    /// Completes the report.
    fn count(&mut self, took: Duration) {
        let segments = self.rows.range((tables::SEGMENTS, Bytes::new())..);
        let mut ids: Vec<_> = segments
            .take_while(|((table, _), _)| *table == tables::SEGMENTS)
            .filter_map(|((_, key), _)| tables::key_partition(key))
            .collect();
        ids.dedup();
        self.report.partitions = ids.len();
        ids.dedup_by_key(|id| id.topic_id);
        self.report.topics = ids.len();
        let damages = self.rows.range((tables::DAMAGES, Bytes::new())..);
        let damages = damages.take_while(|((table, _), _)| *table == tables::DAMAGES);
        self.report.damaged = damages
            .filter_map(|((_, key), value)| {
                let DamageRow { rescued, reason } = DamageRow::parse(value);
                let id = tables::key_partition(key)?;
                Some(DamagedLog { id, reason, rescued: rescued.map(rescue_name) })
            })
            .collect();
        self.report.took = took;
    }
}

/// Whether a journal or logs are there.
fn has_others(disk: &dyn Disk, segments: &SegmentStore) -> Result<bool, OpenError> {
    let journal = match disk.list(Path::new(journal::FOLDER)) {
        Ok(entries) => !entries.is_empty(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => false,
        Err(error) => return Err(failed("list journal")(error)),
    };
    let logs = match segments.list() {
        // Something is there, whatever it was.
        Err(error) if loss_of(&error).is_some() => true,
        found => !found?.is_empty(),
    };
    Ok(journal || logs)
}

fn failed(what: &'static str) -> impl Fn(io::Error) -> OpenError {
    move |source| OpenError::Io { what, source }
}
