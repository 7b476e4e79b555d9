//! Prints what happened to some of the files of a disk.

use std::collections::BTreeMap;
use std::path::Path;

use strandline_engine_file::disk::{Operation, Replay, TestDisk};

/// Prints the operations on paths that `STRANDLINE_CRASH_TRACE` names, if it is set.
pub(crate) fn print(disk: &TestDisk) {
    let Ok(wanted) = std::env::var("STRANDLINE_CRASH_TRACE") else { return };
    let mut names = BTreeMap::new();
    let mut replay = Replay::of(disk);
    while let Some(operation) = replay.step() {
        let (name, text) = match operation {
            Operation::CreateDir(path) => (path, "create folder".to_owned()),
            Operation::Create { path, file } => {
                names.insert(file, path.clone());
                (path, "create".to_owned())
            }
            Operation::Rename { from, to, file } => {
                names.insert(file, to.clone());
                (to, format!("rename from {}", from.display()))
            }
            Operation::Remove(path) => (path, "remove".to_owned()),
            Operation::SyncDir(path) => (path, "sync folder".to_owned()),
            Operation::Write { file, position, bytes } => {
                (names[&file].clone(), format!("write {} at {position}", bytes.len()))
            }
            Operation::SetLen { file, length } => {
                (names[&file].clone(), format!("set length {length}"))
            }
            Operation::Sync(file) => (names[&file].clone(), "sync".to_owned()),
            Operation::SyncFailed { file, persisted } => {
                (names[&file].clone(), format!("sync failed, {persisted:?}"))
            }
        };
        let name = name.display().to_string();
        if wanted.split(',').any(|text| name.contains(text)) {
            println!("{:5} {name}: {text}", replay.done());
        }
    }
}

/// Prints them when the workload itself finds something wrong.
pub(crate) struct OnPanic<'a>(pub(crate) &'a TestDisk);

impl Drop for OnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            print(self.0);
        }
    }
}

pub(crate) fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found == extension)
}
