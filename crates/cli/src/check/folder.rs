//! A data folder: whether it is there, ours, free, readable, and has room.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{Access, access};
use strandline_engine_file::disk::{Disk, ReadOnlyDisk};
use strandline_engine_file::{Inspection, OpenError};
use strandline_model::ByteCount;

use super::{Check, Purpose};
use crate::format::counted;

const OF: &str = "folder";

/// A disk with less than this free is doubtful.
const FREE_MIN: ByteCount = ByteCount::gib(1);

pub(super) fn checks(folder: &Path, purpose: Purpose) -> Vec<Check> {
    let disk = match ReadOnlyDisk::open(folder) {
        Ok(disk) => disk,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return vec![absent(folder)],
        Err(error) => return vec![unreadable(folder, &error)],
    };
    let mut checks = vec![Check::good(OF, "folder", folder.display().to_string())];
    checks.push(writable(folder));
    checks.push(space(&disk));
    let disk: Arc<dyn Disk> = Arc::new(disk);
    checks.push(content(&disk, purpose));
    checks
}

/// The start makes it, where it may.
fn absent(folder: &Path) -> Check {
    let at = folder.display();
    let named = |path: &&Path| !path.as_os_str().is_empty();
    let above = folder.ancestors().skip(1).filter(named).find(|path| path.exists());
    let above = above.unwrap_or_else(|| Path::new("."));
    if !above.is_dir() {
        let found = format!("{} is a file", above.display());
        return Check::wrong(OF, "folder", found, "take another folder: --data DIR");
    }
    match access(above, Access::WRITE_OK | Access::EXEC_OK) {
        Ok(()) => Check::good(OF, "folder", format!("{at} is not there; the first start makes it")),
        Err(error) => {
            let found = format!("{at} can't be made in {}: {error}", above.display());
            Check::wrong(OF, "folder", found, "change its owner, or take another: --data DIR")
        }
    }
}

fn unreadable(folder: &Path, error: &io::Error) -> Check {
    let at = folder.display();
    let (found, remedy) = match error.kind() {
        io::ErrorKind::NotADirectory => {
            (format!("{at}: there is a file"), "take another folder: --data DIR")
        }
        _ => (
            format!("{at} can't be read: {error}"),
            "change its owner, or take another: --data DIR",
        ),
    };
    Check::wrong(OF, "folder", found, remedy)
}

fn writable(folder: &Path) -> Check {
    match access(folder, Access::READ_OK | Access::WRITE_OK | Access::EXEC_OK) {
        Ok(()) => Check::good(OF, "writable", "yes"),
        Err(error) => {
            let remedy = "change its owner, or take another: --data DIR";
            Check::wrong(OF, "writable", format!("no: {error}"), remedy)
        }
    }
}

fn space(disk: &dyn Disk) -> Check {
    const NAME: &str = "space";
    match disk.free_space() {
        Ok(free) if free < FREE_MIN => {
            let found = format!("{} bytes are free", free.get());
            Check::doubtful(OF, NAME, found, "make room: a full disk takes no records")
        }
        Ok(free) => Check::good(OF, NAME, format!("{} bytes are free", free.get())),
        Err(error) => {
            Check::doubtful(OF, NAME, format!("not known: {error}"), "look at the volume")
        }
    }
}

/// Reads what a start reads first: the snapshot and the journal.
fn content(disk: &Arc<dyn Disk>, purpose: Purpose) -> Check {
    const NAME: &str = "content";
    let inspection = match Inspection::is_new(disk) {
        Ok(true) => return Check::good(OF, NAME, "nothing of ours; the first start begins it"),
        Ok(false) => Inspection::open(Arc::clone(disk)),
        Err(error) => Err(error),
    };
    match inspection {
        Ok(inspection) => {
            let logs = match inspection.list() {
                Ok(logs) => counted(logs.len() as u64, "log"),
                Err(error) => return Check::wrong(OF, NAME, error.to_string(), "see the volume"),
            };
            let journal = inspection.journal();
            let appends = counted(journal.batches, "append");
            let found = format!("{logs}; {appends} of the journal would be looked at again");
            Check::good(OF, NAME, found)
        }
        Err(OpenError::InUse { process }) => {
            let who = process.map_or("a process".to_owned(), |id| format!("process {id}"));
            let found = format!("{who} has it open");
            match purpose {
                Purpose::Look => {
                    let remedy = "a running broker tells more: GET /v1/storage";
                    Check::doubtful(OF, "in_use", found, remedy)
                }
                Purpose::Start => {
                    let remedy = "stop that process, or take another folder: --data DIR";
                    Check::wrong(OF, "in_use", found, remedy)
                }
            }
        }
        Err(error) => {
            let remedy = match error {
                OpenError::Damaged { .. } => "see strandline storage verify, or a backup",
                OpenError::Newer { .. } => "start the newer version",
                OpenError::InUse { .. } | OpenError::Storage(_) | OpenError::Io { .. } => {
                    "see the volume"
                }
            };
            Check::wrong(OF, NAME, error.to_string(), remedy)
        }
    }
}

#[cfg(test)]
mod tests {
    use strandline_engine_file::disk::RealDisk;
    use strandline_engine_file::{FileEngine, FileEngineConfig};

    use super::super::Verdict;
    use super::*;

    fn found(folder: &Path, purpose: Purpose) -> Vec<(&'static str, Verdict)> {
        let checks = checks(folder, purpose).into_iter();
        // How full the disk of the tests is says nothing.
        let checks = checks.filter(|check| check.name != "space");
        checks.map(|check| (check.name, check.verdict)).collect()
    }

    #[test]
    fn a_folder_is_looked_at_and_left_as_it_is() {
        let place = tempfile::tempdir().expect("a folder");
        let folder = place.path().join("data");
        assert_eq!(found(&folder, Purpose::Start), [("folder", Verdict::Good)]);
        assert!(!folder.exists(), "nothing was made");
        std::fs::create_dir(&folder).expect("made");
        let good = [("folder", Verdict::Good), ("writable", Verdict::Good)];
        let with = |last| [good[0], good[1], last];
        assert_eq!(found(&folder, Purpose::Start), with(("content", Verdict::Good)));
        assert_eq!(std::fs::read_dir(&folder).expect("read").count(), 0, "nothing was made");

        let disk = Arc::new(RealDisk::open(&folder).expect("a disk"));
        let config = FileEngineConfig::production(Arc::new(|_| {}));
        let (engine, _) = FileEngine::open(disk, config).expect("opens");
        assert_eq!(found(&folder, Purpose::Look), with(("in_use", Verdict::Doubtful)));
        assert_eq!(found(&folder, Purpose::Start), with(("in_use", Verdict::Wrong)));
        drop(engine);
    }

    #[test]
    fn what_is_no_folder_is_wrong() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        for folder in [file.path().to_owned(), file.path().join("data"), file.path().join("a/b")] {
            let found = found(&folder, Purpose::Start);
            assert_eq!(found, [("folder", Verdict::Wrong)], "{}", folder.display());
        }
    }
}
