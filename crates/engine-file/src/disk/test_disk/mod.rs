//! A disk in memory that remembers every operation and shows what a crash after any of them leaves.
//!
//! A test runs its workload once on a [`TestDisk`], noting [`operations`](TestDisk::operations) at
//! each acknowledgement. Then a [`Replay`] walks the recorded operations and makes, at every step it
//! likes, the disk that a crash at that moment leaves, to be opened by a new engine. That disk records
//! too, so that recovery can be cut in the same way.

mod fault;
mod file;
mod medium;
mod replay;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use bytes::Bytes;
use parking_lot::Mutex;
use rustix::io::Errno;
use strandline_model::{ByteCount, Timestamp};

use super::{DirEntry, Disk, DiskFile, DiskLock, EntryKind, FileIdentity, FileLook, OpenMode};
pub use fault::{Fault, Persisted};
use fault::{Faults, Moment};
use file::TestFile;
pub use medium::Crash;
use medium::{FileId, Medium, Node, parent};
pub use replay::Replay;

/// Something that changed the disk.
#[derive(Clone, Debug)]
pub enum Operation {
    /// A folder was made.
    CreateDir(PathBuf),
    /// A file was made.
    Create {
        /// Its name.
        path: PathBuf,
        /// What the later operations call it.
        file: usize,
    },
    /// A file was renamed.
    Rename {
        /// Its old name.
        from: PathBuf,
        /// Its new name.
        to: PathBuf,
        /// Which file.
        file: usize,
    },
    /// A file or an empty folder was removed.
    Remove(PathBuf),
    /// A folder was synced.
    SyncDir(PathBuf),
    /// Bytes were written.
    Write {
        /// Where to.
        file: usize,
        /// At which byte.
        position: usize,
        /// What.
        bytes: Bytes,
    },
    /// A file was cut or lengthened.
    SetLen {
        /// Which.
        file: usize,
        /// The new length.
        length: usize,
    },
    /// A file was synced.
    Sync(usize),
    /// A sync failed: what was dirty counts as clean from now on.
    SyncFailed {
        /// Of which file.
        file: usize,
        /// What reached the medium.
        persisted: Crash,
    },
}

/// A disk in memory. Clones are the same disk.
#[derive(Clone, Debug)]
pub struct TestDisk {
    state: Arc<Mutex<State>>,
}

#[derive(Debug)]
struct State {
    /// What programs see now.
    names: BTreeMap<PathBuf, Node>,
    files: BTreeMap<FileId, Cached>,
    next_file: FileId,
    /// What a crash would find.
    medium: Medium,
    /// The medium when recording began.
    origin: Medium,
    history: Vec<Operation>,
    faults: Faults,
    spoiled: Vec<Spoiled>,
    meanwhile: Option<Meanwhile>,
    capacity: Option<u64>,
    power_off_after: Option<usize>,
    locked: bool,
    now: Timestamp,
}

/// Bytes that can't be read any more.
#[derive(Clone, Debug)]
struct Spoiled {
    path_contains: String,
    bytes: Range<u64>,
}

/// What another thread does while somebody reads.
struct Meanwhile(Box<dyn FnOnce() + Send>);

impl fmt::Debug for Meanwhile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Meanwhile")
    }
}

#[derive(Debug)]
struct Cached {
    name: PathBuf,
    /// Shared with the medium until one of the two changes.
    bytes: Arc<Vec<u8>>,
    modified: Timestamp,
}

impl Default for TestDisk {
    fn default() -> Self {
        Self::new()
    }
}

impl TestDisk {
    /// An empty disk.
    pub fn new() -> Self {
        Self::from_medium(Medium::default())
    }

    fn from_medium(medium: Medium) -> Self {
        let seen = medium.clone();
        Self::from_system(&seen, medium)
    }

    /// A system that sees what `seen` holds, on a medium that may not have all of it yet.
    fn from_system(seen: &Medium, medium: Medium) -> Self {
        let names = seen.names().clone();
        let name_of = |id| {
            let found = names.iter().find(|(_, node)| **node == Node::File(id));
            found.map(|(path, _)| path.clone()).unwrap_or_default()
        };
        let modified = Timestamp::from_millis(0);
        let files: BTreeMap<_, _> = seen
            .contents()
            .map(|(id, bytes)| {
                (id, Cached { name: name_of(id), bytes: Arc::clone(bytes), modified })
            })
            .collect();
        let next_file = medium.contents().last().map_or(0, |(id, _)| id + 1);
        let state = State {
            names,
            files,
            next_file,
            origin: medium.clone(),
            medium,
            history: Vec::new(),
            faults: Faults::default(),
            spoiled: Vec::new(),
            meanwhile: None,
            capacity: None,
            power_off_after: None,
            locked: false,
            now: modified,
        };
        Self { state: Arc::new(Mutex::new(state)) }
    }

    /// How many operations changed the disk so far. What is durable now survives every crash that
    /// happens after that many.
    pub fn operations(&self) -> usize {
        self.state.lock().history.len()
    }

    /// The disk that a crash at this moment leaves.
    #[must_use]
    pub fn after(&self, crash: Crash) -> Self {
        Self::from_medium(self.state.lock().medium.after(crash))
    }

    /// The disk of a machine that went on when the process died at this moment: everything is seen as
    /// it was, and what was not synced is lost in a later crash all the same.
    #[must_use]
    pub fn after_death(&self) -> Self {
        Self::outliving(&self.state.lock().medium)
    }

    fn outliving(medium: &Medium) -> Self {
        Self::from_system(&medium.after(Crash::KeepAll), medium.clone())
    }

    /// Makes an operation on a path that contains `path_contains` fail once, after `skip` others of
    /// its kind succeeded.
    pub fn inject(&self, path_contains: &str, skip: usize, fault: Fault) {
        self.state.lock().faults.arm(path_contains, skip, fault);
    }

    /// From now on reads of these bytes fail, in every file whose path contains `path_contains`: a bad
    /// sector. What is made from this disk is a sound one.
    pub fn spoil(&self, path_contains: &str, bytes: Range<u64>) {
        let spoiled = Spoiled { path_contains: path_contains.to_owned(), bytes };
        self.state.lock().spoiled.push(spoiled);
    }

    /// Runs `other` in the midst of the next read of a file, as another thread would.
    pub fn during_next_read(&self, other: impl FnOnce() + Send + 'static) {
        self.state.lock().meanwhile = Some(Meanwhile(Box::new(other)));
    }

    /// Takes back all faults that have not happened.
    pub fn clear_faults(&self) {
        self.state.lock().faults.clear();
    }

    /// Limits the bytes of all files together; beyond, writes fail with
    /// [`io::ErrorKind::StorageFull`].
    pub fn set_capacity(&self, capacity: Option<ByteCount>) {
        self.state.lock().capacity = capacity.map(ByteCount::get);
    }

    /// Lets every operation fail, and change nothing, once `operations` happened since recording began.
    pub fn power_off_after(&self, operations: usize) {
        self.state.lock().power_off_after = Some(operations);
    }

    /// Sets the clock that stamps written files.
    pub fn set_time(&self, now: Timestamp) {
        self.state.lock().now = now;
    }

    /// The bytes of a file as programs see them.
    pub fn contents(&self, path: impl AsRef<Path>) -> Option<Vec<u8>> {
        let state = self.state.lock();
        let id = state.file_id(path.as_ref()).ok()?;
        Some(state.files[&id].bytes.to_vec())
    }

    /// Every name on the disk, in order.
    pub fn paths(&self) -> Vec<PathBuf> {
        self.state.lock().names.keys().cloned().collect()
    }

    fn file(&self, id: FileId) -> Arc<dyn DiskFile> {
        let sync_failed = AtomicBool::new(false);
        Arc::new(TestFile { state: Arc::clone(&self.state), id, sync_failed })
    }
}

impl State {
    fn record(&mut self, operation: Operation) -> io::Result<()> {
        if self.power_off_after.is_some_and(|limit| self.history.len() >= limit) {
            return Err(io::Error::other("the power is off"));
        }
        self.medium.apply(&operation);
        self.history.push(operation);
        Ok(())
    }

    fn file_id(&self, path: &Path) -> io::Result<FileId> {
        match self.names.get(path) {
            Some(Node::File(id)) => Ok(*id),
            Some(Node::Dir) => Err(io::ErrorKind::IsADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn require_dir(&self, path: &Path) -> io::Result<()> {
        match self.names.get(path) {
            _ if path == Path::new("") => Ok(()),
            Some(Node::Dir) => Ok(()),
            Some(Node::File(_)) => Err(io::ErrorKind::NotADirectory.into()),
            None => Err(io::ErrorKind::NotFound.into()),
        }
    }

    fn children(&self, folder: &Path) -> impl Iterator<Item = (&PathBuf, &Node)> {
        self.names.iter().filter(move |(path, _)| parent(path) == folder)
    }

    fn cached(&mut self, id: FileId) -> &mut Cached {
        self.files.get_mut(&id).expect("a file is created before it is used")
    }

    fn meet(&mut self, moment: Moment, id: FileId) -> Option<Fault> {
        let name = self.files[&id].name.to_string_lossy().into_owned();
        self.faults.meet(moment, &name)
    }

    /// Fails when a read of `bytes` would meet a bad sector.
    fn check_readable(&self, id: FileId, bytes: &Range<u64>) -> io::Result<()> {
        let name = self.files[&id].name.to_string_lossy();
        let is_hit = |spoiled: &Spoiled| {
            name.contains(&spoiled.path_contains)
                && spoiled.bytes.start < bytes.end
                && bytes.start < spoiled.bytes.end
        };
        if self.spoiled.iter().any(is_hit) { Err(Errno::IO.into()) } else { Ok(()) }
    }

    fn used(&self) -> u64 {
        let sizes = self.names.values().map(|node| match node {
            Node::File(id) => self.files[id].bytes.len() as u64,
            Node::Dir => 0,
        });
        sizes.sum()
    }

    /// Bytes that a file may still grow by.
    fn room(&self) -> usize {
        let free = self.capacity.map_or(u64::MAX, |capacity| capacity.saturating_sub(self.used()));
        usize::try_from(free).unwrap_or(usize::MAX)
    }

    fn write(&mut self, id: FileId, position: usize, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let operation =
            Operation::Write { file: id, position, bytes: Bytes::copy_from_slice(bytes) };
        self.record(operation)?;
        let now = self.now;
        let file = self.cached(id);
        let end = position + bytes.len();
        let cached = Arc::make_mut(&mut file.bytes);
        if cached.len() < end {
            cached.resize(end, 0);
        }
        cached[position..end].copy_from_slice(bytes);
        file.modified = now;
        Ok(())
    }
}

impl Disk for TestDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        let mut state = self.state.lock();
        if let Some(Fault::Open { kind }) = state.faults.meet(Moment::Open, &path.to_string_lossy())
        {
            return Err(kind.into());
        }
        match (state.file_id(path), mode) {
            (Ok(_), OpenMode::New) => Err(io::ErrorKind::AlreadyExists.into()),
            (Ok(id), OpenMode::Existing | OpenMode::Either) => Ok(self.file(id)),
            (Err(error), OpenMode::New | OpenMode::Either)
                if error.kind() == io::ErrorKind::NotFound =>
            {
                state.require_dir(parent(path))?;
                let id = state.next_file;
                state.record(Operation::Create { path: path.to_owned(), file: id })?;
                state.next_file += 1;
                state.names.insert(path.to_owned(), Node::File(id));
                let modified = state.now;
                let cached = Cached { name: path.to_owned(), bytes: Arc::default(), modified };
                state.files.insert(id, cached);
                Ok(self.file(id))
            }
            (Err(error), _) => Err(error),
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        let file = state.file_id(from)?;
        state.require_dir(parent(to))?;
        state.record(Operation::Rename { from: from.to_owned(), to: to.to_owned(), file })?;
        state.names.remove(from);
        state.names.insert(to.to_owned(), Node::File(file));
        to.clone_into(&mut state.cached(file).name);
        Ok(())
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        state.file_id(path)?;
        state.record(Operation::Remove(path.to_owned()))?;
        state.names.remove(path);
        Ok(())
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        if state.names.contains_key(path) {
            return state.require_dir(path);
        }
        state.require_dir(parent(path))?;
        state.record(Operation::CreateDir(path.to_owned()))?;
        state.names.insert(path.to_owned(), Node::Dir);
        Ok(())
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        state.require_dir(path)?;
        if state.children(path).next().is_some() {
            return Err(io::ErrorKind::DirectoryNotEmpty.into());
        }
        state.record(Operation::Remove(path.to_owned()))?;
        state.names.remove(path);
        Ok(())
    }

    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        let mut state = self.state.lock();
        state.require_dir(path)?;
        if state.faults.meet(Moment::List, &path.to_string_lossy()).is_some() {
            return Err(io::Error::from_raw_os_error(5));
        }
        let entry = |(path, node): (&PathBuf, &Node)| DirEntry {
            name: path.file_name().unwrap_or_default().to_string_lossy().into_owned(),
            kind: match node {
                Node::Dir => EntryKind::Dir,
                Node::File(_) => EntryKind::File,
            },
        };
        let mut entries: Vec<_> = state.children(path).map(entry).collect();
        entries.sort_unstable();
        Ok(entries)
    }

    fn look(&self, path: &Path) -> io::Result<FileLook> {
        let state = self.state.lock();
        match state.file_id(path) {
            Ok(id) => Ok(FileLook {
                identity: identity_of(id),
                bytes: state.files[&id].bytes.len() as u64,
            }),
            Err(error) if error.kind() == io::ErrorKind::IsADirectory => {
                Err(io::ErrorKind::NotFound.into())
            }
            Err(error) => Err(error),
        }
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state.lock();
        state.require_dir(path)?;
        if state.faults.meet(Moment::SyncDir, &path.to_string_lossy()).is_some() {
            return Err(io::Error::other("injected: folder not synced"));
        }
        state.record(Operation::SyncDir(path.to_owned()))
    }

    fn free_space(&self) -> io::Result<ByteCount> {
        Ok(ByteCount::new(self.state.lock().room() as u64))
    }

    fn lock(&self) -> io::Result<DiskLock> {
        let mut state = self.state.lock();
        if state.locked {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        state.locked = true;
        Ok(DiskLock::holding(Held(Arc::clone(&self.state))))
    }
}

fn identity_of(id: FileId) -> FileIdentity {
    FileIdentity { volume: 0, number: id as u64 }
}

#[derive(Debug)]
struct Held(Arc<Mutex<State>>);

impl Drop for Held {
    fn drop(&mut self) {
        self.0.lock().locked = false;
    }
}
