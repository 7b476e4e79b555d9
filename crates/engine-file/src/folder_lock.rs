//! Whose a folder is: one process at a time, told by a locked file that names it.

use std::path::Path;

use crate::disk::{Disk, DiskLock, LOCK_FILE, OpenMode};
use crate::recovery::OpenError;

/// Takes the folder, for who only looks at it: the file stays as it is.
pub(crate) fn take(disk: &dyn Disk) -> Result<DiskLock, OpenError> {
    disk.lock().map_err(|error| match error.kind() {
        std::io::ErrorKind::WouldBlock => OpenError::InUse { process: holder(disk) },
        _ => failed(error),
    })
}

/// Takes the folder, and says in the file who has it.
pub(crate) fn take_with_name(disk: &dyn Disk) -> Result<DiskLock, OpenError> {
    let lock = take(disk)?;
    let file = disk.open(Path::new(LOCK_FILE), OpenMode::Either).map_err(failed)?;
    let text = format!("{}\n", std::process::id());
    match file.set_len(0).and_then(|()| file.write_at(0, &[text.as_bytes()])) {
        // For people only: a full disk is no reason not to start.
        Err(error) if error.kind() != std::io::ErrorKind::StorageFull => Err(failed(error)),
        _ => Ok(lock),
    }
}

/// The process that the file names, if it can be read: it only makes an error clearer.
fn holder(disk: &dyn Disk) -> Option<u32> {
    let file = disk.open(Path::new(LOCK_FILE), OpenMode::Existing).ok()?;
    let mut text = [0; 32];
    let read = file.read_at(0, &mut text).ok()?;
    std::str::from_utf8(&text[..read]).ok()?.trim().parse().ok()
}

fn failed(source: std::io::Error) -> OpenError {
    OpenError::Io { what: "lock folder", source }
}
