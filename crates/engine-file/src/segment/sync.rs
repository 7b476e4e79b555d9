//! Syncing what was written, for a checkpoint; then letting the page cache forget it.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use strandline_model::{Offset, PartitionId};
use strandline_storage::StorageError;

use super::SegmentStore;
use super::files::Unsynced;
use super::name::FileKey;
use crate::disk::DiskFile;

/// Syncs that wait for the disk at a time where nobody else needs it. The more of them the fewer commits
/// of the file system: on a busy disk each of those takes its time, however few files it is for.
const SYNCS_AT_ONCE: usize = 64;

/// Files and folders to be synced, taken from a [`SegmentStore`].
///
/// Until it [ran](Self::run) nobody else knows that they are unsynced: dropping it is a bug.
#[derive(Debug)]
#[must_use = "what was taken is to be synced"]
pub(crate) struct SyncWork {
    store: Arc<SegmentStore>,
    files: Vec<(FileKey, Unsynced)>,
    folders: Vec<PathBuf>,
}

/// Something that could not be synced. What it held may be lost in a crash however well it reads, and
/// syncing again would not help. So it is with a file that has [lost its name](SegmentStore::displaced).
#[derive(Clone, Debug)]
pub(crate) struct SyncFailure {
    /// The segment whose file it is; `None` when it is a folder.
    pub segment: Option<(PartitionId, Offset)>,
    /// Why.
    pub error: StorageError,
    /// Keeps the file open: another handle of it would not know of the failure.
    pub file: Option<Arc<dyn DiskFile>>,
}

impl SyncWork {
    /// Takes everything that was written until now. Writes that come later are the next work's.
    pub(super) fn take(store: &Arc<SegmentStore>) -> Self {
        let (files, folders) = store.files.take_unsynced();
        Self { store: Arc::clone(store), files, folders }
    }

    /// Syncs everything, first files, then folders. Blocks. Empty: all of it is durable now.
    pub(crate) fn run(self) -> Vec<SyncFailure> {
        self.run_by(1, || {})
    }

    /// The same, many at a time: for a start and a stop, which hold up nobody. The file system makes what
    /// waits durable together: a thousand files took 0.2 s in the place of 6. `synced_one` is called
    /// after each.
    pub(crate) fn run_at_once(self, synced_one: impl Fn() + Sync) -> Vec<SyncFailure> {
        self.run_by(SYNCS_AT_ONCE, synced_one)
    }

    /// How many files and folders there are.
    pub(crate) fn len(&self) -> usize {
        self.files.len() + self.folders.len()
    }

    fn run_by(self, threads: usize, synced_one: impl Fn() + Sync) -> Vec<SyncFailure> {
        let mut failures = Vec::new();
        let mut synced = Vec::with_capacity(self.files.len());
        let files = by_threads(self.files, threads, |(key, unsynced)| {
            let result = self.store.sync_in_place(*key, &unsynced.file);
            synced_one();
            result
        });
        for ((key, unsynced), result) in files {
            match result {
                Ok(()) => synced.push((key, unsynced.range)),
                Err(error) => {
                    let context = format!("sync segment. file=`{}`", key.path().display());
                    let error = StorageError::io(context, error);
                    let segment = Some((key.id, key.segment.base_offset));
                    failures.push(SyncFailure { segment, error, file: Some(unsynced.file) });
                }
            }
        }
        let folders = match threads {
            1 => by_threads(self.folders, 1, |folder| self.store.sync_folder(folder)),
            _ => self.store.sync_folders(self.folders, threads, synced_one),
        };
        for (folder, result) in folders {
            match result {
                Ok(()) => {}
                // Removed with all that it held; the folder above is in the list too.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => {
                    let context = format!("sync folder. folder=`{}`", folder.display());
                    let error = StorageError::io(context, error);
                    failures.push(SyncFailure { segment: None, error, file: None });
                }
            }
        }
        self.store.forget_pages(synced);
        failures
    }
}

/// Does something with each, in the order of the list or by several threads; what came of it, in the
/// order of the list.
pub(super) fn by_threads<T: Sync, R: Send>(
    list: Vec<T>,
    threads: usize,
    work: impl Fn(&T) -> R + Sync,
) -> Vec<(T, R)> {
    if threads == 1 {
        return list
            .into_iter()
            .map(|one| {
                let result = work(&one);
                (one, result)
            })
            .collect();
    }
    let share = list.len().div_ceil(threads).max(1);
    let work = &work;
    let results: Vec<R> = std::thread::scope(|scope| {
        let part = |part: &'_ [T]| part.iter().map(work).collect::<Vec<R>>();
        let spawn = |chunk| scope.spawn(move || part(chunk));
        let running: Vec<_> = list.chunks(share).map(spawn).collect();
        running
            .into_iter()
            .flat_map(|thread| thread.join().expect("a sync does not panic"))
            .collect()
    });
    list.into_iter().zip(results).collect()
}

/// Synced ranges, oldest first, that the page cache may still hold.
#[derive(Debug, Default)]
pub(super) struct CacheWindow {
    ranges: VecDeque<(FileKey, Range<u64>)>,
    bytes: u64,
}

/// Ranges that are remembered. Reached: the oldest is forgotten though the window is not full.
const WINDOW_RANGES_MAX: usize = 16 * 1024;

impl CacheWindow {
    /// Adds a synced range.
    fn push(&mut self, key: FileKey, range: Range<u64>) {
        self.bytes += range.end - range.start;
        match self.ranges.back_mut() {
            Some((last_key, last)) if *last_key == key && last.end == range.start => {
                last.end = range.end;
            }
            _ => self.ranges.push_back((key, range)),
        }
    }

    /// Takes out a range that lies behind the newest `window` bytes.
    fn pop_beyond(&mut self, window: u64) -> Option<(FileKey, Range<u64>)> {
        let excess = self.bytes.saturating_sub(window);
        let overfull = self.ranges.len() > WINDOW_RANGES_MAX;
        let (key, range) = self.ranges.front_mut().filter(|_| excess > 0 || overfull)?;
        let length = range.end - range.start;
        if length <= excess || overfull {
            self.bytes -= length;
            return self.ranges.pop_front();
        }
        let head = range.start..range.start + excess;
        range.start = head.end;
        self.bytes -= excess;
        Some((*key, head))
    }
}

impl SegmentStore {
    /// Lets the page cache forget what was synced, except the newest bytes of all logs together.
    ///
    /// Page-cache growth is the dear part of a long run of appends: the first touch of fresh memory
    /// costs 6 to 14 µs per page here, so a bounded cache writes three times as fast.
    fn forget_pages(&self, synced: Vec<(FileKey, Range<u64>)>) {
        let mut beyond = Vec::new();
        {
            let mut window = self.window.lock();
            for (key, range) in synced {
                window.push(key, range);
            }
            while let Some(range) = window.pop_beyond(self.options.cache_window.get()) {
                beyond.push(range);
            }
        }
        for (key, range) in beyond {
            let was_open = self.files.opened(key).is_some();
            // Hints: a file that is gone needs none, and an error costs nothing but memory.
            if let Ok(file) = self.open_file(key) {
                drop(file.drop_cache(range.start, range.end - range.start));
            }
            if !was_open {
                self.files.close_unused(key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use strandline_model::{PartitionIndex, TopicId};

    use super::*;
    use crate::segment::name::{FileKind, SegmentName};

    #[test]
    fn the_window_gives_up_its_oldest_bytes_first() {
        let id = PartitionId::new(TopicId::from_bytes([1; 16]), PartitionIndex::new(0));
        let key =
            |offset| FileKey::new(id, SegmentName::appended(Offset::new(offset)), FileKind::Log);
        let mut window = CacheWindow::default();
        window.push(key(0), 0..60);
        window.push(key(0), 60..100);
        window.push(key(1), 0..50);
        assert_eq!(window.pop_beyond(150), None);
        assert_eq!(window.pop_beyond(120), Some((key(0), 0..30)));
        assert_eq!(window.pop_beyond(120), None);
        assert_eq!(window.pop_beyond(40), Some((key(0), 30..100)));
        assert_eq!(window.pop_beyond(40), Some((key(1), 0..10)));
        assert_eq!(window.pop_beyond(40), None);
    }
}
