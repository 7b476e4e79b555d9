//! Failures that a test asks for.

use std::io;

use super::Crash;

/// How an operation fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A write fails after its first `written` bytes reached the file.
    Write {
        /// The error; [`io::ErrorKind::Other`] stands for that of a bad disk (`EIO`).
        kind: io::ErrorKind,
        /// What was written all the same: a short write.
        written: usize,
    },
    /// A sync of a file fails (`EIO`). As Linux does, the dirty pages are marked clean: they still read well,
    /// no later sync writes them, and after a crash only what `persisted` says is there.
    Sync {
        /// What reached the medium.
        persisted: Persisted,
    },
    /// A sync of a folder fails; its names stay as they were, in memory and on the medium.
    SyncDir,
    /// A file can't be opened or made.
    Open {
        /// The error.
        kind: io::ErrorKind,
    },
    /// A read fails (`EIO`).
    Read,
    /// A folder can't be listed (`EIO`). It stays so until [`super::TestDisk::clear_faults`]: who else lists
    /// it in the background takes nothing from whom the test means.
    List,
}

/// What a failed sync brought to the medium.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Persisted {
    /// Nothing.
    Nothing,
    /// The sectors that the seed chooses.
    Torn(u64),
}

impl From<Persisted> for Crash {
    fn from(persisted: Persisted) -> Self {
        match persisted {
            Persisted::Nothing => Self::DropAll,
            Persisted::Torn(seed) => Self::Torn(seed),
        }
    }
}

/// What a fault waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moment {
    Write,
    Sync,
    SyncDir,
    Open,
    Read,
    List,
}

impl Fault {
    fn moment(self) -> Moment {
        match self {
            Self::Write { .. } => Moment::Write,
            Self::Sync { .. } => Moment::Sync,
            Self::SyncDir => Moment::SyncDir,
            Self::Open { .. } => Moment::Open,
            Self::Read => Moment::Read,
            Self::List => Moment::List,
        }
    }
}

/// Faults that wait for their moment.
#[derive(Clone, Debug, Default)]
pub(super) struct Faults {
    armed: Vec<Armed>,
}

#[derive(Clone, Debug)]
struct Armed {
    path_contains: String,
    /// Matching operations that still succeed.
    skip: usize,
    fault: Fault,
}

impl Faults {
    pub(super) fn arm(&mut self, path_contains: &str, skip: usize, fault: Fault) {
        self.armed.push(Armed { path_contains: path_contains.to_owned(), skip, fault });
    }

    /// The fault that an operation on `path` meets, if any. Each happens once, but a folder that can't be
    /// listed stays so.
    pub(super) fn meet(&mut self, moment: Moment, path: &str) -> Option<Fault> {
        let mut met = None;
        for (index, armed) in self.armed.iter_mut().enumerate() {
            if armed.fault.moment() == moment && path.contains(&armed.path_contains) {
                if armed.skip > 0 {
                    armed.skip -= 1;
                } else if met.is_none() {
                    met = Some(index);
                }
            }
        }
        let fault = self.armed.get(met?)?.fault;
        if fault != Fault::List {
            self.armed.remove(met?);
        }
        Some(fault)
    }

    pub(super) fn clear(&mut self) {
        self.armed.clear();
    }
}
