//! The file system, below one folder, in which nothing is changed.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use strandline_model::ByteCount;

use super::real::{LOCK_FILE, RealDisk, RealFile};
use super::{DirEntry, Disk, DiskFile, DiskLock, FileLook, OpenMode};

/// A folder of the file system for whoever only looks: what would change it fails.
#[derive(Debug)]
pub struct ReadOnlyDisk {
    root: PathBuf,
    disk: RealDisk,
}

impl ReadOnlyDisk {
    /// The disk below `root`, which must be a folder.
    pub fn open(root: impl Into<PathBuf>) -> io::Result<Self> {
        let root = root.into();
        // Whether it is one, and may be read.
        std::fs::read_dir(&root)?;
        Ok(Self { disk: RealDisk::at(root.clone()), root })
    }
}

fn refused<T>() -> io::Result<T> {
    Err(io::ErrorKind::ReadOnlyFilesystem.into())
}

impl Disk for ReadOnlyDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        match mode {
            // The system refuses writes to it.
            OpenMode::Existing => Ok(Arc::new(RealFile::of(File::open(self.root.join(path))?))),
            OpenMode::New | OpenMode::Either => refused(),
        }
    }

    fn rename(&self, _: &Path, _: &Path) -> io::Result<()> {
        refused()
    }

    fn remove_file(&self, _: &Path) -> io::Result<()> {
        refused()
    }

    fn create_dir(&self, _: &Path) -> io::Result<()> {
        refused()
    }

    fn remove_dir(&self, _: &Path) -> io::Result<()> {
        refused()
    }

    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        self.disk.list(path)
    }

    fn look(&self, path: &Path) -> io::Result<FileLook> {
        self.disk.look(path)
    }

    fn sync_dir(&self, _: &Path) -> io::Result<()> {
        refused()
    }

    fn free_space(&self) -> io::Result<ByteCount> {
        self.disk.free_space()
    }

    /// Shared with others who only look. A folder without a lock file was never served, or copied
    /// without it: nobody holds it.
    fn lock(&self) -> io::Result<DiskLock> {
        let file = match OpenOptions::new().read(true).open(self.root.join(LOCK_FILE)) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(DiskLock::holding(()));
            }
            Err(error) => return Err(error),
        };
        match file.try_lock_shared() {
            Ok(()) => Ok(DiskLock::holding(file)),
            Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}
