//! The open files of all logs: opened when needed, few at a time, and which of them are unsynced.
//!
//! # Invariants
//! - A file has at most one [`DiskFile`] at a time, so its readers are all known.
//! - A file that is unsynced, in use or has readers stays open: closing an unsynced one could lose
//!   the error of its write-back. The bound is exceeded by such files only.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;

use super::name::FileKey;
use crate::disk::{Disk, DiskFile, OpenMode};

/// Files looked at to find one to close. Reached: the bound is exceeded until files are given back.
const EVICTION_TRIES_MAX: usize = 32;

/// Entries of open files for which room is kept though there are fewer.
const ROOM_KEPT: usize = 256;

#[derive(Debug)]
pub(super) struct Files {
    disk: Arc<dyn Disk>,
    open_max: usize,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    open: HashMap<FileKey, Open>,
    /// Open files by when they were last used.
    by_use: BTreeMap<u64, FileKey>,
    uses: u64,
    unsynced: BTreeMap<FileKey, Unsynced>,
    unsynced_dirs: BTreeSet<PathBuf>,
    /// Files whose removal has begun: nobody may open them to read any more.
    removing: BTreeSet<FileKey>,
    /// Counts the names that were given to another file.
    replacements: u64,
}

#[derive(Debug)]
struct Open {
    file: Arc<dyn DiskFile>,
    last_use: u64,
}

/// A file with bytes that were not synced. Keeps it open.
#[derive(Debug)]
pub(super) struct Unsynced {
    pub(super) file: Arc<dyn DiskFile>,
    /// Where they lie.
    pub(super) range: Range<u64>,
}

impl Files {
    pub(super) fn new(disk: Arc<dyn Disk>, open_max: usize) -> Self {
        Self { disk, open_max, state: Mutex::new(State::default()) }
    }

    /// The file, opened if it is not.
    pub(super) fn open(&self, key: FileKey, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        // Begun again only when a segment was replaced meanwhile, which takes far longer than this.
        loop {
            let replacements = {
                let mut state = self.state.lock();
                state.check_stays(key)?;
                if let Some(file) = state.touch(key) {
                    return Ok(file);
                }
                state.replacements
            };
            // Not under the lock: opening may wait for the disk.
            let file = self.disk.open(&key.path(), mode)?;
            let mut state = self.state.lock();
            state.check_stays(key)?;
            // Somebody else may have been faster; ours has no readers yet and is closed again.
            if let Some(first) = state.touch(key) {
                return Ok(first);
            }
            if state.replacements != replacements {
                // It may be the file that has lost its name.
                continue;
            }
            state.insert(key, Arc::clone(&file));
            let closing = state.evict(self.open_max);
            drop(state);
            drop(closing);
            return Ok(file);
        }
    }

    /// The name stands for `file` now, which is synced. What is unsynced of the one before no longer
    /// matters; who reads it may go on.
    pub(super) fn replace(&self, key: FileKey, file: Arc<dyn DiskFile>) {
        let mut state = self.state.lock();
        state.replacements += 1;
        let unsynced = state.unsynced.remove(&key);
        let open = state.open.remove(&key);
        if let Some(open) = &open {
            state.by_use.remove(&open.last_use);
        }
        state.insert(key, file);
        drop(state);
        drop((unsynced, open));
    }

    /// The file, made unless it is there, for a segment that begins.
    ///
    /// Opened in any case: a file of that name that was removed may still be held open.
    pub(super) fn create(&self, key: FileKey) -> io::Result<Arc<dyn DiskFile>> {
        let file = self.disk.open(&key.path(), OpenMode::Either)?;
        self.forget(key);
        self.end_removal(key);
        let mut state = self.state.lock();
        state.insert(key, Arc::clone(&file));
        let closing = state.evict(self.open_max);
        drop(state);
        drop(closing);
        Ok(file)
    }

    /// The file, if it is open.
    pub(super) fn opened(&self, key: FileKey) -> Option<Arc<dyn DiskFile>> {
        self.state.lock().touch(key)
    }

    /// Whether `file` is the one that is open for that name.
    pub(super) fn is_current(&self, key: FileKey, file: &Arc<dyn DiskFile>) -> bool {
        self.state.lock().open.get(&key).is_some_and(|open| Arc::ptr_eq(&open.file, file))
    }

    /// Those of some files that are open. Not a use of them.
    pub(super) fn opened_of(
        &self,
        keys: impl Iterator<Item = FileKey>,
    ) -> Vec<(FileKey, Arc<dyn DiskFile>)> {
        let state = self.state.lock();
        let opened = keys.filter_map(|key| Some((key, Arc::clone(&state.open.get(&key)?.file))));
        opened.collect()
    }

    /// Lets nobody open the file any more, unless somebody uses it or holds a region of it. In one step,
    /// so that no reader comes in between. What is unsynced of it no longer matters.
    pub(super) fn begin_removal(&self, key: FileKey) -> bool {
        let mut state = self.state.lock();
        let unsynced = state.unsynced.remove(&key);
        drop(unsynced);
        if state.open.get(&key).is_some_and(Open::is_used) {
            return false;
        }
        let open = state.open.remove(&key);
        if let Some(open) = &open {
            state.by_use.remove(&open.last_use);
        }
        state.removing.insert(key);
        drop(state);
        drop(open);
        true
    }

    /// The file is gone, or its name stands for another one.
    pub(super) fn end_removal(&self, key: FileKey) {
        self.state.lock().removing.remove(&key);
    }

    /// Closes a file that is about to be removed; what is unsynced of it no longer matters.
    pub(super) fn forget(&self, key: FileKey) {
        let mut state = self.state.lock();
        let unsynced = state.unsynced.remove(&key);
        let open = state.open.remove(&key);
        if let Some(open) = &open {
            state.by_use.remove(&open.last_use);
        }
        drop(state);
        drop((unsynced, open));
    }

    /// Closes the file, unless it is unsynced, in use or has readers.
    pub(super) fn close_unused(&self, key: FileKey) {
        let mut state = self.state.lock();
        if state.open.get(&key).is_none_or(Open::is_used) {
            return;
        }
        let open = state.open.remove(&key);
        if let Some(open) = &open {
            state.by_use.remove(&open.last_use);
        }
        state.give_up_room();
        drop(state);
        drop(open);
    }

    /// Notes that bytes of `range` were written. Called after the write and before the write counts.
    ///
    /// Nobody needs what was written to a file that has lost its name.
    pub(super) fn note_written(&self, key: FileKey, file: &Arc<dyn DiskFile>, range: Range<u64>) {
        let mut state = self.state.lock();
        // The caller's reference keeps it open, if it is the file of that name.
        if !state.open.get(&key).is_some_and(|open| Arc::ptr_eq(&open.file, file)) {
            return;
        }
        let unsynced = state
            .unsynced
            .entry(key)
            .or_insert_with(|| Unsynced { file: Arc::clone(file), range: range.clone() });
        unsynced.range.start = unsynced.range.start.min(range.start);
        unsynced.range.end = unsynced.range.end.max(range.end);
    }

    /// Notes that names in `folder` changed.
    pub(super) fn note_names_changed(&self, folder: PathBuf) {
        self.state.lock().unsynced_dirs.insert(folder);
    }

    /// Everything that is not synced; it is the caller's to sync now.
    pub(super) fn take_unsynced(&self) -> (Vec<(FileKey, Unsynced)>, Vec<PathBuf>) {
        let mut state = self.state.lock();
        let files = std::mem::take(&mut state.unsynced);
        let dirs = std::mem::take(&mut state.unsynced_dirs);
        drop(state);
        (files.into_iter().collect(), dirs.into_iter().collect())
    }

    /// Whether bytes of the file were written that are not synced, or are being synced.
    pub(super) fn is_unsynced(&self, key: FileKey) -> bool {
        self.state.lock().unsynced.contains_key(&key)
    }

    pub(super) fn unsynced_count(&self) -> usize {
        self.state.lock().unsynced.len()
    }

    #[cfg(test)]
    pub(super) fn open_count(&self) -> usize {
        self.state.lock().open.len()
    }
}

impl State {
    fn check_stays(&self, key: FileKey) -> io::Result<()> {
        if self.removing.contains(&key) { Err(io::ErrorKind::NotFound.into()) } else { Ok(()) }
    }

    fn insert(&mut self, key: FileKey, file: Arc<dyn DiskFile>) {
        self.uses += 1;
        self.by_use.insert(self.uses, key);
        let replaced = self.open.insert(key, Open { file, last_use: self.uses });
        if let Some(replaced) = replaced {
            self.by_use.remove(&replaced.last_use);
        }
    }

    /// After many files were closed: the room of their entries.
    fn give_up_room(&mut self) {
        if self.open.capacity() > ROOM_KEPT.max(4 * self.open.len()) {
            self.open.shrink_to(ROOM_KEPT.max(2 * self.open.len()));
        }
    }

    fn touch(&mut self, key: FileKey) -> Option<Arc<dyn DiskFile>> {
        let open = self.open.get_mut(&key)?;
        self.uses += 1;
        self.by_use.remove(&open.last_use);
        self.by_use.insert(self.uses, key);
        open.last_use = self.uses;
        Some(Arc::clone(&open.file))
    }

    /// Takes out the files that were unused for longest, until `max` are left, or gives up.
    fn evict(&mut self, max: usize) -> Vec<Open> {
        let mut evicted = Vec::new();
        for _ in 0..EVICTION_TRIES_MAX {
            if self.open.len() <= max {
                break;
            }
            let Some((_, key)) = self.by_use.pop_first() else { break };
            let open = self.open.get_mut(&key).expect("a file in the order of use is open");
            if open.is_used() {
                // Behind all others, so that the next search looks at different files.
                self.uses += 1;
                open.last_use = self.uses;
                self.by_use.insert(self.uses, key);
            } else {
                evicted.extend(self.open.remove(&key));
            }
        }
        evicted
    }
}

impl Open {
    /// Called under the lock, where nobody can take another reference.
    fn is_used(&self) -> bool {
        Arc::strong_count(&self.file) > 1 || self.file.has_readers()
    }
}
