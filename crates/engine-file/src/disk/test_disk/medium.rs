//! What is on the medium, what only the system's memory holds, and what a crash makes of the two.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Operation;

/// What a disk tears: it writes a sector whole or not at all.
const SECTOR_BYTES: usize = 512;

/// Names a file from its creation on, whatever it is called later.
pub(super) type FileId = usize;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Node {
    Dir,
    File(FileId),
}

/// What a crash leaves of the changes that were not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crash {
    /// All of them.
    KeepAll,
    /// None of them.
    DropAll,
    /// A subset that the seed chooses: of writes by sectors, of names by changes.
    Torn(u64),
}

/// The medium and the changes on their way to it.
#[derive(Clone, Debug, Default)]
pub(super) struct Medium {
    names: BTreeMap<PathBuf, Node>,
    name_changes: Vec<NameChange>,
    files: BTreeMap<FileId, FileMedium>,
}

#[derive(Clone, Debug)]
struct NameChange {
    operation: NameOperation,
    /// Folders that are to be synced before the change is durable.
    waits_for: BTreeSet<PathBuf>,
}

#[derive(Clone, Debug)]
enum NameOperation {
    Add(PathBuf, Node),
    Move { from: PathBuf, to: PathBuf, node: Node },
    Remove(PathBuf),
}

#[derive(Clone, Debug, Default)]
struct FileMedium {
    /// Shared with images until one of them changes it.
    durable: Arc<Vec<u8>>,
    changes: Vec<DataChange>,
}

#[derive(Clone, Debug)]
enum DataChange {
    Write { position: usize, bytes: bytes::Bytes },
    SetLen(usize),
}

impl Medium {
    pub(super) fn apply(&mut self, operation: &Operation) {
        match operation {
            Operation::CreateDir(path) => {
                self.change_name(NameOperation::Add(path.clone(), Node::Dir), &[path]);
            }
            Operation::Create { path, file } => {
                self.files.insert(*file, FileMedium::default());
                self.change_name(NameOperation::Add(path.clone(), Node::File(*file)), &[path]);
            }
            Operation::Rename { from, to, file } => {
                let node = Node::File(*file);
                let change = NameOperation::Move { from: from.clone(), to: to.clone(), node };
                self.change_name(change, &[from, to]);
            }
            Operation::Remove(path) => {
                self.change_name(NameOperation::Remove(path.clone()), &[path]);
            }
            Operation::SyncDir(folder) => self.sync_dir(folder),
            Operation::Write { file, position, bytes } => {
                let change = DataChange::Write { position: *position, bytes: bytes.clone() };
                self.file(*file).changes.push(change);
            }
            Operation::SetLen { file, length } => {
                self.file(*file).changes.push(DataChange::SetLen(*length));
            }
            Operation::Sync(file) => self.file(*file).persist(Crash::KeepAll),
            Operation::SyncFailed { file, persisted } => self.file(*file).persist(*persisted),
        }
    }

    fn file(&mut self, file: FileId) -> &mut FileMedium {
        self.files.get_mut(&file).expect("a file is created before it is used")
    }

    fn change_name(&mut self, operation: NameOperation, paths: &[&PathBuf]) {
        let waits_for = paths.iter().map(|path| parent(path).to_owned()).collect();
        self.name_changes.push(NameChange { operation, waits_for });
    }

    fn sync_dir(&mut self, folder: &Path) {
        for mut change in std::mem::take(&mut self.name_changes) {
            change.waits_for.remove(folder);
            if change.waits_for.is_empty() {
                change.operation.apply(&mut self.names);
            } else {
                self.name_changes.push(change);
            }
        }
    }

    /// What is found after a crash at this moment.
    pub(super) fn after(&self, crash: Crash) -> Self {
        let mut names = self.names.clone();
        for (index, change) in self.name_changes.iter().enumerate() {
            if crash.keeps(index as u64) {
                change.operation.apply(&mut names);
            }
        }
        // A folder whose own name was lost takes along what it held.
        let whole = names.clone();
        names.retain(|path, _| {
            path.ancestors().skip(1).all(|folder| {
                folder == Path::new("") || whole.get(folder).is_some_and(|node| *node == Node::Dir)
            })
        });
        let mut files = BTreeMap::new();
        for node in names.values() {
            if let Node::File(id) = node {
                let mut file = self.files[id].clone();
                file.persist(crash.of_file(*id));
                files.insert(*id, file);
            }
        }
        Self { names, name_changes: Vec::new(), files }
    }

    pub(super) fn names(&self) -> &BTreeMap<PathBuf, Node> {
        &self.names
    }

    /// The bytes of every file that are on the medium.
    pub(super) fn contents(&self) -> impl Iterator<Item = (FileId, &Arc<Vec<u8>>)> {
        self.files.iter().map(|(id, file)| (*id, &file.durable))
    }

    /// What a read of `[position, position + length)` finds once the clean pages are forgotten, given
    /// what memory holds: dirty ranges stay, the rest comes from the medium.
    pub(super) fn reread(&self, file: FileId, cached: &mut [u8], range: std::ops::Range<usize>) {
        let FileMedium { durable, changes } = &self.files[&file];
        let range = range.start.min(cached.len())..range.end.min(cached.len());
        let before = cached.to_vec();
        for at in range.clone() {
            cached[at] = durable.get(at).copied().unwrap_or(0);
        }
        for change in changes {
            let dirty = match change {
                DataChange::Write { position, bytes } => *position..position + bytes.len(),
                DataChange::SetLen(length) => *length..cached.len(),
            };
            let dirty = dirty.start.max(range.start)..dirty.end.min(range.end);
            if !dirty.is_empty() {
                cached[dirty.clone()].copy_from_slice(&before[dirty]);
            }
        }
    }
}

impl NameOperation {
    fn apply(&self, names: &mut BTreeMap<PathBuf, Node>) {
        match self {
            Self::Add(path, node) => {
                names.insert(path.clone(), *node);
            }
            Self::Move { from, to, node } => {
                names.remove(from);
                names.insert(to.clone(), *node);
            }
            Self::Remove(path) => {
                names.remove(path);
            }
        }
    }
}

impl FileMedium {
    /// Brings the part of the changes that `crash` keeps to the medium and forgets the others.
    fn persist(&mut self, crash: Crash) {
        for (index, change) in std::mem::take(&mut self.changes).into_iter().enumerate() {
            let crash = crash.of_change(index as u64);
            match change {
                DataChange::SetLen(length) => {
                    if crash.keeps(0) {
                        Arc::make_mut(&mut self.durable).resize(length, 0);
                    }
                }
                DataChange::Write { position, bytes } => {
                    self.persist_write(position, &bytes, crash);
                }
            }
        }
    }

    fn persist_write(&mut self, position: usize, bytes: &[u8], crash: Crash) {
        let end = position + bytes.len();
        if crash == Crash::DropAll {
            return;
        }
        let durable = Arc::make_mut(&mut self.durable);
        // The length may reach the medium before the bytes do.
        if crash.keeps(u64::MAX) && durable.len() < end {
            durable.resize(end, 0);
        }
        let mut at = position;
        while at < end {
            let sector = at / SECTOR_BYTES;
            let sector_end = end.min((sector + 1) * SECTOR_BYTES);
            if crash.keeps(sector as u64) {
                if durable.len() < sector_end {
                    durable.resize(sector_end, 0);
                }
                durable[at..sector_end]
                    .copy_from_slice(&bytes[at - position..sector_end - position]);
            }
            at = sector_end;
        }
    }
}

impl Crash {
    fn keeps(self, item: u64) -> bool {
        match self {
            Self::KeepAll => true,
            Self::DropAll => false,
            Self::Torn(seed) => mix(seed ^ item.wrapping_mul(0x9e37_79b9_7f4a_7c15)) & 1 == 1,
        }
    }

    /// The same kind of crash, deciding anew for the items of one file.
    fn of_file(self, file: FileId) -> Self {
        self.reseeded(0x5bd1_e995_0000_0000 ^ file as u64)
    }

    fn of_change(self, index: u64) -> Self {
        self.reseeded(0x1b87_3593_0000_0000 ^ index)
    }

    fn reseeded(self, salt: u64) -> Self {
        match self {
            Self::Torn(seed) => Self::Torn(mix(seed.wrapping_add(mix(salt)))),
            whole => whole,
        }
    }
}

pub(super) fn parent(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

/// The finalizer of `SplitMix64`: every bit of the result depends on every bit of `x`.
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
