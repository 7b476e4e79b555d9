//! What the logs of one data directory share: the disk, the open files, the bounds.

use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use parking_lot::Mutex;
use strandline_model::{ByteCount, Offset, PartitionId, PartitionIndex};
use strandline_storage::{LogSettings, StorageError};

use super::files::Files;
use super::name::{FileKey, LOGS, QUARANTINE, parse_partition, partition_dir, topic_dir};
use super::recover::Beyond;
use super::sync::{CacheWindow, SyncWork, by_threads};
use super::{SegmentFacts, SegmentLog};
use crate::disk::{Disk, DiskFile, EntryKind, OpenMode};

/// The bounds of all logs together. Tests use tiny ones.
#[derive(Clone, Debug)]
pub(crate) struct SegmentOptions {
    /// Files that are kept open. Reached: the one unused for longest is closed; unsynced files, and
    /// those somebody reads, stay open beyond the bound.
    pub open_files_max: usize,
    /// Synced bytes, the newest of all logs together, that the page cache may keep.
    pub cache_window: ByteCount,
    /// Bytes that one step of a removal cuts off a file. Freeing a large file at once stalls every
    /// sync of the device for tens of milliseconds.
    pub removal_step: ByteCount,
    /// Bytes read at a time when batches are looked for.
    pub walk_bytes: usize,
    /// Index entries that pile up in memory before a checkpoint saves them.
    pub index_save_entries: usize,
}

impl SegmentOptions {
    /// The bounds that `serve` runs with.
    pub(crate) const fn production() -> Self {
        Self {
            open_files_max: 8192,
            cache_window: ByteCount::mib(512),
            removal_step: ByteCount::mib(16),
            walk_bytes: 8 * 1024,
            index_save_entries: 256,
        }
    }
}

/// What the logs of one data directory share.
#[derive(Debug)]
pub(crate) struct SegmentStore {
    pub(super) disk: Arc<dyn Disk>,
    pub(super) files: Files,
    pub(super) window: Mutex<CacheWindow>,
    /// Held while a folder is synced; why none can be relied on any more.
    folders: Mutex<Option<io::ErrorKind>>,
    /// Held while a segment is replaced, and while copies that were never finished are removed.
    pub(super) replacing: Mutex<()>,
    /// The generation of the next segment that is written in the place of others: higher than that of
    /// every file of a log that was opened, so that no name is used twice.
    pub(super) generations: AtomicU64,
    pub(super) options: SegmentOptions,
}

impl SegmentStore {
    /// The store of the logs below `logs/` of a disk. Touches nothing yet.
    pub(crate) fn new(disk: Arc<dyn Disk>, options: SegmentOptions) -> Arc<Self> {
        let files = Files::new(Arc::clone(&disk), options.open_files_max);
        let window = Mutex::new(CacheWindow::default());
        let (folders, replacing) = (Mutex::new(None), Mutex::new(()));
        let generations = AtomicU64::new(1);
        Arc::new(Self { disk, files, window, folders, replacing, generations, options })
    }

    /// Opens the log of a partition as `facts` say that it is, and makes its files agree.
    ///
    /// `facts` are in offset order. Bytes and segments beyond them are removed: they were never
    /// believed, or are about to be written again. Segments below them were dropped before and wait
    /// for [`SegmentLog::remove_dropped`]. `end` is the offset of the next append; it lies above the
    /// last segment's end only when the log was emptied. Nothing is made for a log without facts.
    ///
    /// `Corrupt` when a file that the facts name is missing or too short.
    pub(crate) fn open(
        self: &Arc<Self>,
        id: PartitionId,
        facts: Vec<SegmentFacts>,
        end: Offset,
        settings: LogSettings,
    ) -> Result<SegmentLog, StorageError> {
        SegmentLog::open(Arc::clone(self), id, facts, end, settings, Beyond::Cut)
    }

    /// As [`open`](Self::open), but leaves what lies beyond the facts where it is: a journal is
    /// replayed that may name it ([`SegmentLog::adopt`]). [`SegmentLog::end_replay`] cuts the rest.
    pub(crate) fn open_to_replay(
        self: &Arc<Self>,
        id: PartitionId,
        facts: Vec<SegmentFacts>,
        end: Offset,
        settings: LogSettings,
    ) -> Result<SegmentLog, StorageError> {
        SegmentLog::open(Arc::clone(self), id, facts, end, settings, Beyond::Keep)
    }

    /// Every partition that has a folder here, in order.
    pub(crate) fn list(&self) -> Result<Vec<PartitionId>, StorageError> {
        let root = Path::new(LOGS);
        let mut ids = Vec::new();
        for topic in self.dirs_in(root)? {
            let Ok(topic_id) = topic.parse() else { continue };
            for partition in self.dirs_in(&root.join(topic))? {
                ids.extend(
                    parse_partition(&partition).map(|index| PartitionId::new(topic_id, index)),
                );
            }
        }
        ids.sort_unstable();
        Ok(ids)
    }

    /// Adds every partition that has a folder, here or aside. One that holds only what is none of ours
    /// is nobody's: what a removal has left of it is not removed again.
    ///
    /// A topic's folder that can't be read hides what is in it and nothing else: it stands for the
    /// partitions of it that `ids` has, or for its first.
    pub(crate) fn add_listed(&self, ids: &mut BTreeSet<PartitionId>) -> Result<(), StorageError> {
        for root in [LOGS, QUARANTINE].map(Path::new) {
            for topic in self.dirs_in(root)? {
                let Ok(topic_id) = topic.parse() else { continue };
                let of_topic = |index| PartitionId::new(topic_id, index);
                let topic = root.join(topic);
                match self.dirs_in(&topic) {
                    Ok(names) => {
                        for name in names {
                            let Some(id) = parse_partition(&name).map(of_topic) else { continue };
                            // What can't be looked into may be anything.
                            if !ids.contains(&id) && self.is_ours(&topic.join(name)).unwrap_or(true)
                            {
                                ids.insert(id);
                            }
                        }
                    }
                    Err(_) if ids.iter().any(|id| id.topic_id == topic_id) => {}
                    Err(_) => {
                        ids.insert(of_topic(PartitionIndex::new(0)));
                    }
                }
            }
        }
        Ok(())
    }

    /// Takes the list of everything that was written until now and is not synced.
    ///
    /// For a checkpoint: what an append wrote is in the list when [`SegmentLog::write`] returned
    /// before this call.
    pub(crate) fn take_unsynced(self: &Arc<Self>) -> SyncWork {
        SyncWork::take(self)
    }

    /// Whether half of the files that may be open have unsynced bytes: it is time to sync.
    pub(crate) fn has_many_unsynced(&self) -> bool {
        self.unsynced_files() >= self.options.open_files_max / 2
    }

    /// Files with unsynced bytes. At half of [`SegmentOptions::open_files_max`] a checkpoint is due.
    pub(crate) fn unsynced_files(&self) -> usize {
        self.files.unsynced_count()
    }

    /// Makes the names in a folder durable.
    ///
    /// After one failure all fail: the system tells one caller of an error and leaves the others in
    /// the belief that the names are there.
    pub(super) fn sync_folder(&self, folder: &Path) -> io::Result<()> {
        let mut failed = self.folders.lock();
        if let Some(kind) = *failed {
            return Err(io::Error::new(kind, "an earlier sync of a folder failed"));
        }
        let synced = self.disk.sync_dir(folder);
        if let Err(error) = &synced
            && error.kind() != io::ErrorKind::NotFound
        {
            *failed = Some(error.kind());
        }
        synced
    }

    /// The same for each of a list, by several threads; `synced_one` is called after each. Others who sync a
    /// folder wait until all are done.
    pub(super) fn sync_folders(
        &self,
        folders: Vec<PathBuf>,
        threads: usize,
        synced_one: impl Fn() + Sync,
    ) -> Vec<(PathBuf, io::Result<()>)> {
        let mut failed = self.folders.lock();
        let before = *failed;
        let synced = by_threads(folders, threads, |folder| {
            let result = match before {
                Some(kind) => Err(io::Error::new(kind, "an earlier sync of a folder failed")),
                None => self.disk.sync_dir(folder),
            };
            synced_one();
            result
        });
        let failures = synced.iter().filter_map(|(_, result)| result.as_ref().err());
        let first = failures.map(io::Error::kind).find(|kind| *kind != io::ErrorKind::NotFound);
        *failed = before.or(first);
        synced
    }

    pub(super) fn open_file(&self, key: FileKey) -> io::Result<Arc<dyn DiskFile>> {
        self.files.open(key, OpenMode::Existing)
    }

    /// Makes the folders of a partition as far as they are missing.
    pub(super) fn create_dirs(&self, id: PartitionId) -> io::Result<()> {
        let topic = topic_dir(id.topic_id);
        let partition = partition_dir(id);
        for folder in [Path::new(LOGS), &topic, &partition] {
            self.disk.create_dir(folder)?;
        }
        // Each folder's name stands in the one above. One that was there already may not be durable
        // either, when whoever made it failed half-way.
        for parent in [Path::new(""), Path::new(LOGS), &topic] {
            self.files.note_names_changed(parent.to_owned());
        }
        Ok(())
    }

    fn dirs_in(&self, folder: &Path) -> Result<Vec<String>, StorageError> {
        let entries = match self.disk.list(folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => {
                let context = format!("list folder. folder=`{}`", folder.display());
                return Err(StorageError::io(context, error));
            }
        };
        let dirs = entries.into_iter().filter(|entry| entry.kind == EntryKind::Dir);
        Ok(dirs.map(|entry| entry.name).collect())
    }
}
