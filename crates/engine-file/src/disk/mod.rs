//! The only way this engine touches files.
//!
//! A disk is one folder: every path is relative to it. All calls block; the engine makes them on
//! threads that may. [`RealDisk`] is the file system. `TestDisk` (feature `testkit`) is memory that
//! remembers every write, can be cut after each and shows what a crash would have left.
//!
//! # What callers may count on
//! - A write is on the medium only after [`DiskFile::sync_data`] returned without an error; after
//!   an error the written bytes may read well and still be gone after a crash. Never sync again.
//! - A file's name (created, renamed, removed) is on the medium only after [`Disk::sync_dir`] of
//!   its folder. A rename is seen whole or not at all.
//! - Between writes and a sync a crash keeps any subset of 512-byte sectors.

mod read_only;
mod real;
#[cfg(any(test, feature = "testkit"))]
mod test_disk;

use std::fmt::Debug;
use std::io;
use std::path::Path;
use std::sync::Arc;

use strandline_model::{ByteCount, Timestamp};
use strandline_storage::BatchPiece;

pub use read_only::ReadOnlyDisk;
pub(crate) use real::LOCK_FILE;
pub use real::RealDisk;
#[cfg(any(test, feature = "testkit"))]
pub use test_disk::{Crash, Fault, Operation, Persisted, Replay, TestDisk};

/// A folder and the files below it. See the [module](self) for what is durable when.
pub trait Disk: Debug + Send + Sync {
    /// Opens a file for reading and writing.
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>>;

    /// Gives a file another name, replacing what had it.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    /// Takes a file's name away. Its bytes stay for whoever has it open.
    fn remove_file(&self, path: &Path) -> io::Result<()>;

    /// Makes a folder; its parent must exist. Nothing happens when the folder does.
    fn create_dir(&self, path: &Path) -> io::Result<()>;

    /// Removes an empty folder.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;

    /// What a folder holds, in the order of names. Names that are no UTF-8 are left out: none is ours.
    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>>;

    /// What a file's name stands for, without opening it. Fails with [`io::ErrorKind::NotFound`] when no
    /// file has the name.
    fn look(&self, path: &Path) -> io::Result<FileLook>;

    /// Makes the names in a folder durable.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;

    /// Bytes that may still be written by this process.
    fn free_space(&self) -> io::Result<ByteCount>;

    /// Locks the folder against every other process, until the guard is dropped or the process ends.
    /// Fails with [`io::ErrorKind::WouldBlock`] when somebody else holds it.
    fn lock(&self) -> io::Result<DiskLock>;
}

/// An open file.
pub trait DiskFile: Debug + Send + Sync {
    /// Writes all of `slices`, one behind another, from `position` on.
    ///
    /// After an error any part of them may have been written.
    fn write_at(&self, position: u64, slices: &[&[u8]]) -> io::Result<()>;

    /// Reads up to `buf.len()` bytes from `position` on; fewer only at the end of the file.
    fn read_at(&self, position: u64, buf: &mut [u8]) -> io::Result<usize>;

    /// The length of the file.
    fn size(&self) -> io::Result<u64>;

    /// Which file it is, whatever name it has now.
    fn identity(&self) -> io::Result<FileIdentity>;

    /// When the file was last written, by the system's clock.
    fn modified(&self) -> io::Result<Timestamp>;

    /// Cuts the file, or lengthens it with zeros.
    fn set_len(&self, length: u64) -> io::Result<()>;

    /// Makes all bytes written so far, and the length, durable.
    ///
    /// Callers wait for each other; once it failed for one of them it fails for all who hold this
    /// file.
    fn sync_data(&self) -> io::Result<()>;

    /// Writes zeros over `[position, position + length)`, so that later writes there allocate
    /// nothing: overwriting is 40 % faster to sync than growing.
    fn write_zeros(&self, position: u64, length: u64) -> io::Result<()>;

    /// Asks the system to forget clean pages of the range. A hint, for bytes that a sync made durable:
    /// the error of a write-back that failed before may go with the pages.
    fn drop_cache(&self, position: u64, length: u64) -> io::Result<()>;

    /// The range for a reader: shared with the file where the disk has real ones, else a copy. A copy
    /// too when the file [is doubtful](Self::is_doubtful).
    ///
    /// The caller has made sure that the range lies within the file.
    fn region(&self, position: u64, length: u64) -> io::Result<BatchPiece>;

    /// Whether a reader of a region met bytes that it could not read: [`region`](Self::region) waits
    /// for the disk then.
    fn is_doubtful(&self) -> bool;

    /// Whether regions given out before are still held by somebody.
    fn has_readers(&self) -> bool;
}

/// Whether [`Disk::open`] makes the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpenMode {
    /// It must exist.
    Existing,
    /// It must not exist; it is made.
    New,
    /// It is made unless it exists.
    Either,
}

/// A name in a folder.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DirEntry {
    /// The name, without the folder's.
    pub name: String,
    /// What it is.
    pub kind: EntryKind,
}

/// What a name in a folder stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum EntryKind {
    /// A file.
    File,
    /// A folder.
    Dir,
    /// Something that we never make.
    Other,
}

/// Tells a file from all others, for as long as somebody has it open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FileIdentity {
    /// The volume that it lies on.
    pub volume: u64,
    /// Its number there.
    pub number: u64,
}

/// What a look at a file's name tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileLook {
    /// Which file has the name.
    pub identity: FileIdentity,
    /// Its length.
    pub bytes: u64,
}

/// Holds a folder's lock until dropped.
#[derive(Debug)]
pub struct DiskLock {
    /// Whatever must live as long as the lock; dropping it gives the lock back.
    _held: Box<dyn Debug + Send + Sync>,
}

impl DiskLock {
    fn holding(held: impl Debug + Send + Sync + 'static) -> Self {
        Self { _held: Box::new(held) }
    }
}

/// Reads exactly `buf.len()` bytes, or fails with [`io::ErrorKind::UnexpectedEof`].
pub fn read_exact_at(file: &dyn DiskFile, position: u64, buf: &mut [u8]) -> io::Result<()> {
    if file.read_at(position, buf)? == buf.len() {
        Ok(())
    } else {
        Err(io::ErrorKind::UnexpectedEof.into())
    }
}
