//! How the database fails, told apart by what is known afterwards.

use std::io;
use std::sync::Arc;

use strandline_storage::{ErrorKind, StorageError};
use tokio_postgres::error::{Severity, SqlState};

/// Why the engine did not open.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A setting makes no sense.
    #[error("{0}")]
    Config(String),
    /// The file of the password could not be read.
    #[error("{context}")]
    Password {
        /// What was tried.
        context: String,
        /// Why it failed.
        source: io::Error,
    },
    /// Nobody answers there: it may come later.
    #[error("connect to PostgreSQL. {place}")]
    Unreachable {
        /// Where.
        place: String,
        /// Why it failed.
        source: tokio_postgres::Error,
    },
    /// The server does not speak TLS, is not who it should be, or a certificate's file is wrong.
    #[error("TLS to PostgreSQL. {place}, reason=`{reason}`")]
    Tls {
        /// Where.
        place: String,
        /// Why, as a fact.
        reason: String,
    },
    /// The server refuses: user, password, database or rights.
    #[error("PostgreSQL refuses. {place}, reason=`{reason}`")]
    Refused {
        /// Where.
        place: String,
        /// In the server's words.
        reason: String,
        /// Its code for it (SQLSTATE); empty when it gave none.
        code: String,
    },
    /// The server, or a setting of it, can't keep what the engine promises.
    #[error("{0}")]
    Unfit(String),
    /// The tables were made by a later version.
    #[error(
        "the schema is newer than this build knows: start a newer one. \
         schema=`{schema}`, found=`{found}`, known=`{known}`"
    )]
    NewerSchema {
        /// Which schema.
        schema: String,
        /// Its version.
        found: i32,
        /// The newest version that this build knows.
        known: i32,
    },
    /// The rows could not be read.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl OpenError {
    /// A statement at the start was refused.
    pub(crate) fn refused(place: String, error: &tokio_postgres::Error) -> Self {
        let code = error.code().map(|state| state.code().to_owned()).unwrap_or_default();
        Self::Refused { place, reason: describe(error), code }
    }
}

/// Why a statement gave no answer.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    /// The connection is gone: whether the statement was carried out is not known.
    Lost(Arc<str>),
    /// The server refused it and nothing changed.
    Refused {
        /// Why, in five letters.
        state: SqlState,
        /// In the server's words.
        message: Arc<str>,
    },
}

impl Failure {
    pub(crate) fn of(error: &tokio_postgres::Error) -> Self {
        let Some(db) = error.as_db_error() else {
            return if error.is_closed() || is_io(error) {
                Self::Lost(describe(error).into())
            } else {
                // The client's own: a value or a column of another type than the statement's.
                let message = describe(error).into();
                Self::Refused { state: SqlState::INTERNAL_ERROR, message }
            };
        };
        let ends = matches!(db.parsed_severity(), Some(Severity::Fatal | Severity::Panic));
        // 08: connection exceptions; 57P: the server stops, or was stopped.
        let class = db.code().code();
        if ends || class.starts_with("08") || class.starts_with("57P") {
            return Self::Lost(db.message().into());
        }
        Self::Refused { state: db.code().clone(), message: db.message().into() }
    }

    /// Why, in words.
    pub(crate) fn reason(&self) -> &str {
        match self {
            Self::Lost(message) | Self::Refused { message, .. } => message,
        }
    }

    /// Why the server writes nothing at all, if that is what it says: its disk is full, it or the user's
    /// transactions are read-only, or a right is gone.
    pub(crate) fn refuses_writes(&self) -> Option<Arc<str>> {
        let Self::Refused { state, message } = self else { return None };
        let refusals = [
            SqlState::DISK_FULL,
            SqlState::READ_ONLY_SQL_TRANSACTION,
            SqlState::INSUFFICIENT_PRIVILEGE,
            SqlState::OUT_OF_MEMORY,
        ];
        refusals.contains(state).then(|| Arc::clone(message))
    }

    /// Others were in the way: the same again may work at once.
    pub(crate) fn is_conflict(&self) -> bool {
        let Self::Refused { state, .. } = self else { return false };
        [
            SqlState::T_R_SERIALIZATION_FAILURE,
            SqlState::T_R_DEADLOCK_DETECTED,
            SqlState::LOCK_NOT_AVAILABLE,
        ]
        .contains(state)
    }

    /// As the engine's callers know failures. `context` is in verb form.
    pub(crate) fn into_storage(self, context: &str) -> StorageError {
        let (kind, message) = match self {
            Self::Lost(message) => (ErrorKind::Unavailable, message),
            Self::Refused { state, message } => (kind_of(&state), message),
        };
        StorageError::new(kind, format!("{context}. reason=`{message}`"))
    }
}

fn kind_of(state: &SqlState) -> ErrorKind {
    let damage = [SqlState::DATA_CORRUPTED, SqlState::INDEX_CORRUPTED];
    if *state == SqlState::DISK_FULL {
        ErrorKind::Full
    } else if damage.contains(state) {
        ErrorKind::Corrupt
    } else {
        ErrorKind::Unavailable
    }
}

fn is_io(error: &tokio_postgres::Error) -> bool {
    let mut cause = std::error::Error::source(error);
    while let Some(one) = cause {
        if one.is::<io::Error>() {
            return true;
        }
        cause = one.source();
    }
    false
}

/// The error with its causes: the client's own text says little.
pub(crate) fn describe(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(one) = cause {
        text = format!("{text}: {one}");
        cause = one.source();
    }
    text
}

/// What calls answer once the engine is closed.
pub(crate) fn closed() -> StorageError {
    StorageError::new(ErrorKind::Closed, "PostgreSQL engine is closed")
}
