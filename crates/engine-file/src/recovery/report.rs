//! What a start tells people: that it went well, how, or why not.

use std::fmt;
use std::io;
use std::time::Duration;

use strandline_model::PartitionId;
use strandline_storage::StorageError;

use crate::journal::reader::ReadFailure;
use crate::snapshot::VERSION;

/// How a folder was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Started {
    /// It was empty.
    #[default]
    New,
    /// The last process stopped cleanly.
    Clean,
    /// The last process did not: what the journal had was brought back.
    Recovered,
}

/// What a start found and did. Its text is one line for people.
#[derive(Clone, Debug, Default)]
pub struct RecoveryReport {
    /// How the folder was found.
    pub started: Started,
    /// Topics that have bytes.
    pub topics: usize,
    /// Partitions that have bytes.
    pub partitions: usize,
    /// Batches written again from the journal.
    pub batches_replayed: u64,
    /// Their bytes.
    pub bytes_replayed: u64,
    /// Groups at the end of the journal that were written in part. Nobody was told that they are
    /// durable.
    pub torn_groups: u64,
    /// Batches that had been superseded, or stood behind a hole; never acknowledged as durable.
    pub batches_cut: u64,
    /// Logs that this start, or one before, found damaged: they stay closed until they are removed.
    pub damaged: Vec<DamagedLog>,
    /// How long it took.
    pub took: Duration,
}

/// A log of which something that was durable is gone. The others go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedLog {
    /// Which.
    pub id: PartitionId,
    /// What was found, as a fact.
    pub reason: String,
    /// The file in its folder with what had been acknowledged and stood in the journal; `None` when
    /// that was nothing.
    pub rescued: Option<String>,
}

impl RecoveryReport {
    pub(super) fn clean() -> Self {
        Self { started: Started::Clean, ..Self::default() }
    }

    pub(super) fn recovered(torn_groups: u64) -> Self {
        Self { started: Started::Recovered, torn_groups, ..Self::default() }
    }
}

impl fmt::Display for RecoveryReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let plural = |count: u64| if count == 1 { "" } else { "s" };
        let partitions = self.partitions as u64;
        match self.started {
            Started::New => return f.write_str("new data folder"),
            Started::Clean => write!(f, "clean start")?,
            Started::Recovered => write!(f, "recovered after an unclean stop")?,
        }
        write!(
            f,
            ": {partitions} partition{} with data, {} ms",
            plural(partitions),
            self.took.as_millis()
        )?;
        let replayed = self.batches_replayed;
        if replayed > 0 {
            write!(f, "; replayed {replayed} batch append{}", plural(replayed))?;
        }
        let cut = self.torn_groups + self.batches_cut;
        if cut > 0 {
            write!(f, "; truncated {cut} torn write{}, none was acknowledged", plural(cut))?;
        }
        let damaged = self.damaged.len() as u64;
        if damaged > 0 {
            let stay = if damaged == 1 { "stays" } else { "stay" };
            write!(f, "; {damaged} damaged partition{} {stay} closed", plural(damaged))?;
        }
        Ok(())
    }
}

/// Why a folder can't be opened. The text is a diagnosis in one line.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has it.
    #[error("data folder is in use by process {}", display_process(*process))]
    InUse {
        /// Its id, if it could be found out.
        process: Option<u32>,
    },
    /// A newer version of Strandline wrote it.
    #[error(
        "data folder has format version {found}, this program reads up to {supported}: \
         start the newer program again"
    )]
    Newer {
        /// The version of the folder.
        found: u32,
        /// The newest version that this program reads.
        supported: u32,
    },
    /// Something that was durable is missing or damaged. Nothing was changed.
    #[error("data folder is damaged and was left as it is: {what}")]
    Damaged {
        /// What, as a fact.
        what: String,
    },
    /// The logs could not be brought back.
    #[error("data folder can't be opened: {0}")]
    Storage(#[from] StorageError),
    /// The system refused.
    #[error("data folder can't be opened: {what}: {source}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// Why it failed.
        source: io::Error,
    },
}

impl OpenError {
    pub(super) fn damaged(what: impl Into<String>) -> Self {
        Self::Damaged { what: what.into() }
    }

    pub(super) const fn newer(found: u32) -> Self {
        Self::Newer { found, supported: VERSION }
    }
}

impl From<ReadFailure> for OpenError {
    fn from(failure: ReadFailure) -> Self {
        match failure {
            ReadFailure::Io(source) => Self::Io { what: "read journal", source },
            ReadFailure::Newer(found) => Self::newer(found),
            ReadFailure::Twice(generation) => {
                Self::damaged(format!("two journal files have generation {}", generation.0))
            }
            ReadFailure::Unreadable { sequence, at } => Self::damaged(format!(
                "group {} of its journal, at {} of generation {}, holds what this version can't \
                 read; a newer one may",
                sequence.0, at.position, at.generation.0
            )),
            ReadFailure::Damaged { sequence, at } => Self::damaged(format!(
                "journal group {} was durable and can't be read (generation {}, position {})",
                sequence.0, at.generation.0, at.position
            )),
        }
    }
}

fn display_process(process: Option<u32>) -> String {
    process.map_or_else(|| "(unknown)".to_owned(), |process| process.to_string())
}
