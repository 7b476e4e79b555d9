//! The file system, below one folder.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, IoSlice};
use std::num::NonZeroU64;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::UNIX_EPOCH;

use parking_lot::Mutex;
use rustix::fs::{Advice, fadvise, statvfs};
use strandline_model::{ByteCount, Timestamp};
use strandline_storage::{BatchPiece, FileRegion};

use super::{
    DirEntry, Disk, DiskFile, DiskLock, EntryKind, FileIdentity, FileLook, OpenMode, read_exact_at,
};

/// The name of the file in the folder that carries the lock.
pub(crate) const LOCK_FILE: &str = "lock";

/// Bytes handed to the kernel per write. Larger ones make it allocate huge folios out of memory that
/// the host took back: 1 MiB pieces were measured at 0.4 GB/s, 64 to 256 KiB ones at 3.5 to 4.2 GB/s.
const WRITE_PIECE_BYTES: usize = 256 * 1024;

/// Slices handed to the kernel per write: its own limit (`IOV_MAX`).
const WRITE_SLICES_MAX: usize = 1024;

/// A folder of the file system.
#[derive(Debug)]
pub struct RealDisk {
    root: PathBuf,
}

impl RealDisk {
    /// The disk below `root`. The folder is made, durably, when it does not exist.
    pub fn open(root: impl Into<PathBuf>) -> io::Result<Self> {
        let root = root.into();
        create_durably(&root)?;
        Ok(Self { root })
    }

    /// The disk below `root`, which is there.
    pub(super) const fn at(root: PathBuf) -> Self {
        Self { root }
    }
}

impl RealDisk {
    /// Bytes of the whole volume.
    pub fn total_space(&self) -> io::Result<ByteCount> {
        let stats = statvfs(&self.root)?;
        Ok(ByteCount::new(stats.f_blocks.saturating_mul(stats.f_frsize)))
    }
}

fn create_durably(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let parent = match folder.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    create_durably(parent)?;
    match fs::create_dir(folder) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
        _ => {}
    }
    File::open(parent)?.sync_all()
}

impl Disk for RealDisk {
    fn open(&self, path: &Path, mode: OpenMode) -> io::Result<Arc<dyn DiskFile>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        match mode {
            OpenMode::Existing => {}
            OpenMode::New => {
                options.create_new(true);
            }
            OpenMode::Either => {
                options.create(true).truncate(false);
            }
        }
        let file = Arc::new(options.open(self.root.join(path))?);
        let sync = Mutex::new(SyncState::Sound);
        Ok(Arc::new(RealFile { file, is_doubtful: Arc::default(), sync }))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(self.root.join(from), self.root.join(to))
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(self.root.join(path))
    }

    fn create_dir(&self, path: &Path) -> io::Result<()> {
        match fs::create_dir(self.root.join(path)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            made => made,
        }
    }

    fn remove_dir(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(self.root.join(path))
    }

    fn list(&self, path: &Path) -> io::Result<Vec<DirEntry>> {
        let mut entries = Vec::new();
        for entry in fs::read_dir(self.root.join(path))? {
            let entry = entry?;
            let file_type = entry.file_type()?;
            let kind = if file_type.is_file() {
                EntryKind::File
            } else if file_type.is_dir() {
                EntryKind::Dir
            } else {
                EntryKind::Other
            };
            if let Ok(name) = entry.file_name().into_string() {
                entries.push(DirEntry { name, kind });
            }
        }
        entries.sort_unstable();
        Ok(entries)
    }

    fn look(&self, path: &Path) -> io::Result<FileLook> {
        let metadata = fs::metadata(self.root.join(path))?;
        if !metadata.is_file() {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(FileLook { identity: identity_of(&metadata), bytes: metadata.len() })
    }

    fn sync_dir(&self, path: &Path) -> io::Result<()> {
        File::open(self.root.join(path))?.sync_all()
    }

    fn free_space(&self) -> io::Result<ByteCount> {
        let stats = statvfs(&self.root)?;
        Ok(ByteCount::new(stats.f_bavail.saturating_mul(stats.f_frsize)))
    }

    fn lock(&self) -> io::Result<DiskLock> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(self.root.join(LOCK_FILE))?;
        match file.try_lock() {
            Ok(()) => Ok(DiskLock::holding(file)),
            Err(TryLockError::WouldBlock) => Err(io::ErrorKind::WouldBlock.into()),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }
}

#[derive(Debug)]
pub(super) struct RealFile {
    /// Counts the regions that readers hold.
    file: Arc<File>,
    /// Whether a reader met bytes that it could not read.
    is_doubtful: Arc<AtomicBool>,
    /// Held while it is synced.
    sync: Mutex<SyncState>,
}

impl RealFile {
    pub(super) fn of(file: File) -> Self {
        let sync = Mutex::new(SyncState::Sound);
        Self { file: Arc::new(file), is_doubtful: Arc::default(), sync }
    }
}

/// Whether syncs of a file mean anything.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SyncState {
    Sound,
    /// One failed. The system tells one caller of each error and calls the pages clean for the others.
    Failed,
}

impl DiskFile for RealFile {
    fn write_at(&self, position: u64, slices: &[&[u8]]) -> io::Result<()> {
        let mut at = position;
        let mut piece = Vec::with_capacity(slices.len().min(WRITE_SLICES_MAX));
        let mut piece_bytes = 0;
        for slice in slices {
            let mut rest = *slice;
            while !rest.is_empty() {
                let (head, tail) = rest.split_at(rest.len().min(WRITE_PIECE_BYTES - piece_bytes));
                piece.push(head);
                piece_bytes += head.len();
                rest = tail;
                if piece_bytes == WRITE_PIECE_BYTES || piece.len() == WRITE_SLICES_MAX {
                    self.write_piece(&mut at, &piece)?;
                    piece.clear();
                    piece_bytes = 0;
                }
            }
        }
        self.write_piece(&mut at, &piece)
    }

    fn read_at(&self, position: u64, buf: &mut [u8]) -> io::Result<usize> {
        let mut read = 0;
        while read < buf.len() {
            match self.file.read_at(&mut buf[read..], position + read as u64) {
                Ok(0) => break,
                Ok(count) => read += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(read)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn identity(&self) -> io::Result<FileIdentity> {
        Ok(identity_of(&self.file.metadata()?))
    }

    fn modified(&self) -> io::Result<Timestamp> {
        let since_epoch = self.file.metadata()?.modified()?.duration_since(UNIX_EPOCH);
        // A file from before 1970 is as old as can be.
        let millis =
            since_epoch.map_or(0, |age| i64::try_from(age.as_millis()).unwrap_or(i64::MAX));
        Ok(Timestamp::from_millis(millis))
    }

    fn set_len(&self, length: u64) -> io::Result<()> {
        self.file.set_len(length)
    }

    fn sync_data(&self) -> io::Result<()> {
        let mut sync = self.sync.lock();
        if *sync == SyncState::Failed {
            return Err(io::Error::other("an earlier sync of this file failed"));
        }
        self.file.sync_data().inspect_err(|_| *sync = SyncState::Failed)
    }

    fn write_zeros(&self, position: u64, length: u64) -> io::Result<()> {
        static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];
        let end = position + length;
        let mut at = position;
        while at < end {
            let count = usize::try_from(end - at).unwrap_or(usize::MAX).min(ZEROS.len());
            self.file.write_all_at(&ZEROS[..count], at)?;
            at += count as u64;
        }
        Ok(())
    }

    fn drop_cache(&self, position: u64, length: u64) -> io::Result<()> {
        // A length of zero would mean "to the end of the file".
        let Some(length) = NonZeroU64::new(length) else { return Ok(()) };
        Ok(fadvise(&*self.file, position, Some(length), Advice::DontNeed)?)
    }

    fn region(&self, position: u64, length: u64) -> io::Result<BatchPiece> {
        if self.is_doubtful() {
            let size = usize::try_from(length).map_err(|_| io::ErrorKind::OutOfMemory)?;
            let mut bytes = vec![0; size];
            read_exact_at(self, position, &mut bytes)?;
            return Ok(BatchPiece::Memory(bytes.into()));
        }
        let (file, is_doubtful) = (Arc::clone(&self.file), Arc::clone(&self.is_doubtful));
        Ok(BatchPiece::File(FileRegion { file, position, length, is_doubtful }))
    }

    fn is_doubtful(&self) -> bool {
        self.is_doubtful.load(Ordering::Relaxed)
    }

    fn has_readers(&self) -> bool {
        Arc::strong_count(&self.file) > 1
    }
}

fn identity_of(metadata: &fs::Metadata) -> FileIdentity {
    FileIdentity { volume: metadata.dev(), number: metadata.ino() }
}

impl RealFile {
    /// Writes all slices and moves `at` behind them.
    fn write_piece(&self, at: &mut u64, slices: &[&[u8]]) -> io::Result<()> {
        let mut slices: Vec<IoSlice<'_>> = slices.iter().map(|slice| IoSlice::new(slice)).collect();
        let mut rest = slices.as_mut_slice();
        while !rest.is_empty() {
            match rustix::io::pwritev(&*self.file, rest, *at) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    *at += count as u64;
                    IoSlice::advance_slices(&mut rest, count);
                }
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disk() -> (tempfile::TempDir, RealDisk) {
        let folder = tempfile::tempdir().unwrap();
        let disk = RealDisk::open(folder.path().join("a/b")).unwrap();
        (folder, disk)
    }

    #[test]
    fn many_slices_of_any_size_are_written_one_behind_another() {
        let (_folder, disk) = disk();
        let file = disk.open(Path::new("f"), OpenMode::New).unwrap();
        let large: Vec<u8> = (0..600_000_u32).map(|i| i.to_le_bytes()[0]).collect();
        let tiny: Vec<&[u8]> = large.chunks(7).take(3000).collect();
        let mut slices = tiny.clone();
        slices.extend([&large[..], &[], &large[1..]]);
        file.write_at(5, &slices).unwrap();

        let mut written = vec![0; usize::try_from(file.size().unwrap()).unwrap()];
        read_exact_at(&*file, 0, &mut written).unwrap();
        assert_eq!(written[..5], [0; 5]);
        assert!(written[5..] == slices.concat());
        assert_eq!(file.read_at(written.len() as u64 - 2, &mut [0; 9]).unwrap(), 2);
    }

    #[test]
    fn a_region_in_hand_is_seen_until_it_is_dropped() {
        let (_folder, disk) = disk();
        let file = disk.open(Path::new("f"), OpenMode::Either).unwrap();
        file.write_at(0, &[b"abc"]).unwrap();
        assert!(!file.has_readers());
        let region = file.region(1, 2).unwrap();
        assert!(file.has_readers());
        drop(region);
        assert!(!file.has_readers());
    }

    #[test]
    fn a_name_that_was_given_to_another_file_is_told_from_the_one_that_is_open() {
        let (folder, disk) = disk();
        let path = Path::new("f");
        let file = disk.open(path, OpenMode::New).unwrap();
        file.write_at(0, &[b"abc"]).unwrap();
        let look = disk.look(path).unwrap();
        assert_eq!((look.identity, look.bytes), (file.identity().unwrap(), 3));
        let elsewhere = folder.path().join("elsewhere");
        fs::rename(folder.path().join("a/b/f"), &elsewhere).unwrap();
        assert_eq!(disk.look(path).unwrap_err().kind(), io::ErrorKind::NotFound);
        fs::copy(&elsewhere, folder.path().join("a/b/f")).unwrap();
        assert_ne!(disk.look(path).unwrap().identity, file.identity().unwrap());
        fs::rename(elsewhere, folder.path().join("a/b/f")).unwrap();
        assert_eq!(disk.look(path).unwrap(), look);
        disk.create_dir(Path::new("d")).unwrap();
        assert_eq!(disk.look(Path::new("d")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    /// A bad sector, for which a file stands that became shorter.
    #[test]
    fn what_a_reader_could_not_read_is_met_by_who_asks_next() {
        let (folder, disk) = disk();
        let file = disk.open(Path::new("f"), OpenMode::New).unwrap();
        file.write_at(0, &[b"abcdef"]).unwrap();
        let BatchPiece::File(region) = file.region(0, 6).unwrap() else { panic!("a range") };
        OpenOptions::new()
            .write(true)
            .open(folder.path().join("a/b/f"))
            .unwrap()
            .set_len(3)
            .unwrap();
        assert!(matches!(file.region(0, 6).unwrap(), BatchPiece::File(_)), "nobody noticed");
        region.note_failure();
        drop(region);
        assert!(file.is_doubtful());
        assert_eq!(file.region(0, 6).unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        let BatchPiece::Memory(bytes) = file.region(1, 2).unwrap() else { panic!("a copy") };
        assert_eq!(bytes, "bc");
        assert!(!file.has_readers());
    }

    #[test]
    fn the_folder_has_one_owner() {
        let (folder, disk) = disk();
        let lock = disk.lock().unwrap();
        let second = RealDisk::open(folder.path().join("a/b")).unwrap();
        assert_eq!(second.lock().unwrap_err().kind(), io::ErrorKind::WouldBlock);
        drop(lock);
        second.lock().unwrap();
    }

    #[test]
    fn names_come_in_order_with_what_they_are() {
        let (_folder, disk) = disk();
        disk.create_dir(Path::new("sub")).unwrap();
        disk.create_dir(Path::new("sub")).unwrap();
        disk.open(Path::new("b"), OpenMode::New).unwrap();
        disk.open(Path::new("c"), OpenMode::New).unwrap();
        disk.rename(Path::new("c"), Path::new("a")).unwrap();
        disk.sync_dir(Path::new("")).unwrap();
        let names = disk.list(Path::new("")).unwrap();
        let entry = |name: &str, kind| DirEntry { name: name.into(), kind };
        let expected = [
            entry("a", EntryKind::File),
            entry("b", EntryKind::File),
            entry("sub", EntryKind::Dir),
        ];
        assert_eq!(names, expected);
        let again = disk.open(Path::new("a"), OpenMode::New).unwrap_err();
        assert_eq!(again.kind(), io::ErrorKind::AlreadyExists);
        let missing = disk.open(Path::new("x"), OpenMode::Existing).unwrap_err();
        assert_eq!(missing.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn hints_change_no_byte() {
        let (_folder, disk) = disk();
        let file = disk.open(Path::new("f"), OpenMode::New).unwrap();
        file.write_zeros(0, 200_000).unwrap();
        file.write_at(100_000, &[b"kept"]).unwrap();
        file.sync_data().unwrap();
        file.drop_cache(0, 200_000).unwrap();
        let mut bytes = [1; 6];
        read_exact_at(&*file, 99_999, &mut bytes).unwrap();
        assert_eq!(&bytes, b"\0kept\0");
        assert!(disk.free_space().unwrap() > ByteCount::ZERO);
        assert!(file.modified().unwrap() > Timestamp::from_millis(0));
    }
}
