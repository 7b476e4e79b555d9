//! How storage fails. Four types, one per family of operations.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

use strandline_model::Offset;

use crate::LogBounds;

/// What the caller should do about a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// Try again later: the engine or the log is opening, closing, or cut off for now.
    Unavailable,
    /// The handle failed before and is dead. Open the log again.
    Closed,
    /// Another opener with a higher epoch owns the log. Step down.
    Fenced,
    /// Bytes that were durable are gone or damaged. An operator must look.
    Corrupt,
    /// No space. Deleting still works; appends go on when space returns.
    Full,
    /// The request makes no sense for the state of the log: a bug or a lost race of the caller.
    Invalid,
    /// There is nothing of that name.
    Missing,
}

/// Linux: a bad sector (`EIO`, `ENODATA`), or a damaged structure of the file system (`EBADMSG`,
/// `EILSEQ`, `EUCLEAN`).
const LOST: [i32; 5] = [5, 61, 74, 84, 117];

/// Whether the error says that what one file or folder held is lost: more room, other rights or a later
/// try would not bring it back.
pub fn is_lost(error: &std::io::Error) -> bool {
    error.raw_os_error().is_some_and(|code| LOST.contains(&code))
}

/// A failure of the world below us. Cheap to clone: one failed sync fails many appends.
#[derive(Clone, Debug)]
pub struct StorageError {
    kind: ErrorKind,
    message: Arc<str>,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

impl StorageError {
    /// A failure with no cause below it. The message is lower case, facts last.
    pub fn new(kind: ErrorKind, message: impl Into<Arc<str>>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    /// The same failure, caused by `source`.
    #[must_use]
    pub fn caused_by(mut self, source: impl Error + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// An I/O failure. `context` is in verb form: "open segment".
    pub fn io(context: impl Into<Arc<str>>, source: std::io::Error) -> Self {
        let kind = match source.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => ErrorKind::Full,
            std::io::ErrorKind::NotFound => ErrorKind::Missing,
            _ => ErrorKind::Unavailable,
        };
        Self::new(kind, context).caused_by(source)
    }

    /// The failure and what caused it, in one line: for a finding, not for whoever handles it.
    pub fn in_one_line(&self) -> String {
        match &self.source {
            Some(source) => format!("{}: {source}", self.message),
            None => self.message.to_string(),
        }
    }

    /// What to do about it.
    pub const fn kind(&self) -> ErrorKind {
        self.kind
    }
}

impl fmt::Display for StorageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl Error for StorageError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn Error + 'static))
    }
}

/// Why an append was not taken. Nothing was written.
#[derive(Clone, Debug, thiserror::Error)]
pub enum AppendError {
    /// Another append came first: the log ends elsewhere than the caller thought.
    #[error("log end moved. written_end=`{written_end}`")]
    Moved {
        /// Where the log ends.
        written_end: Offset,
    },
    /// The engine's queue or journal is full for the moment. Wait for [`crate::CommitLog::ready`]
    /// outside all locks, then submit again.
    #[error("append queue is full")]
    Busy,
    /// No space ([`ErrorKind::Full`]), a dead handle ([`ErrorKind::Closed`]) or a fenced one.
    #[error(transparent)]
    Refused(#[from] StorageError),
}

/// Why a read returned nothing.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ReadError {
    /// The offset lies before the log start or past the durable end.
    #[error("offset is out of range. log_start=`{}`, durable_end=`{}`", .0.log_start, .0.durable_end)]
    OutOfRange(LogBounds),
    /// The bytes could not be read.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// Why a metadata commit changed nothing.
#[derive(Clone, Debug, thiserror::Error)]
pub enum CommitError {
    /// The row that an [`crate::Expectation`] names is not as expected: somebody else was first.
    #[error("row is not as expected. expectation=`{index}`")]
    Unexpected {
        /// Which expectation of the batch failed first.
        index: usize,
    },
    /// The commit could not be made durable.
    #[error(transparent)]
    Storage(#[from] StorageError),
}
