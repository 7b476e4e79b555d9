//! What the engine is told: where the database is, and its bounds.

use std::time::Duration;

use strandline_model::ByteCount;
use strandline_model::config::PostgresTls;

use crate::{OpenError, Password};

/// Letters of a schema's name. PostgreSQL cuts longer names off without a word.
const SCHEMA_LETTERS_MAX: usize = 63;

/// Where the database is, and how much of it and of memory the engine uses.
#[derive(Clone, Debug)]
pub struct PostgresConfig {
    /// A host's name or address, or the folder of a Unix socket (it begins with `/`).
    pub host: String,
    /// The server's port.
    pub port: u16,
    /// Who connects.
    pub user: String,
    /// The user's password; `None` when the server asks for none.
    pub password: Option<Password>,
    /// Whether and how connections are encrypted.
    pub tls: PostgresTls,
    /// The database, which must exist.
    pub database: String,
    /// The schema that holds the engine's tables; made when it is missing. Lower-case letters, digits
    /// and `_`, at most 63.
    pub schema: String,
    /// Connections that append. A log is always served by the same one.
    pub lanes: usize,
    /// Connections that everything else but rows shares: reads, openings, removals.
    pub readers: usize,
    /// Connections that commit rows.
    pub row_writers: usize,
    /// Appends that may wait in a lane. Reached: `submit` answers `Busy`.
    pub pending_appends_max: usize,
    /// Bytes of appends that may wait in a lane; one larger append alone may.
    pub pending_bytes_max: ByteCount,
    /// Memory for what was appended last, so that readers at the end cost the database nothing.
    pub tail_bytes: ByteCount,
    /// Memory for what was read of the past.
    pub past_bytes: ByteCount,
    /// How long a statement may take until its connection counts as lost.
    pub statement_wait: Duration,
    /// For how long after the last sign of life from the database records are read from memory.
    pub read_lease: Duration,
    /// How long a commit of rows is tried that was not sent yet.
    pub commit_wait: Duration,
    /// How long the outcome of an append is looked for, or a lost connection made anew, until the
    /// log's handle dies.
    pub outcome_wait: Duration,
}

impl PostgresConfig {
    /// Bounds for a broker; the place is `localhost:5432`, database and user `strandline`.
    pub fn new() -> Self {
        Self {
            host: "localhost".to_owned(),
            port: 5432,
            user: "strandline".to_owned(),
            password: None,
            tls: PostgresTls::disabled(),
            database: "strandline".to_owned(),
            schema: "strandline".to_owned(),
            lanes: 2,
            readers: 4,
            row_writers: 2,
            pending_appends_max: 4096,
            pending_bytes_max: ByteCount::mib(64),
            tail_bytes: ByteCount::mib(64),
            past_bytes: ByteCount::mib(64),
            statement_wait: Duration::from_secs(10),
            read_lease: Duration::from_secs(10),
            commit_wait: Duration::from_secs(5),
            outcome_wait: Duration::from_secs(30),
        }
    }

    /// Refuses what could not work, before anything is connected.
    pub(crate) fn check(&self) -> Result<(), OpenError> {
        let letters = self.schema.as_bytes();
        let is_name = letters
            .first()
            .is_some_and(|first| first.is_ascii_lowercase() || *first == b'_')
            && letters.iter().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'_')
            && letters.len() <= SCHEMA_LETTERS_MAX;
        // The name goes into statements that take no parameters: nothing else may be in it.
        if !is_name {
            let message = format!("schema is no lower-case name. schema=`{}`", self.schema);
            return Err(OpenError::Config(message));
        }
        let counts = [
            ("lanes", self.lanes),
            ("readers", self.readers),
            ("row_writers", self.row_writers),
            ("pending_appends_max", self.pending_appends_max),
        ];
        match counts.into_iter().find(|(_, count)| *count == 0) {
            Some((name, _)) => Err(OpenError::Config(format!("{name} is 0"))),
            None => Ok(()),
        }
    }

    /// What people call the place: no password in it.
    pub(crate) fn place(&self) -> String {
        let Self { host, port, user, database, .. } = self;
        format!("host=`{host}`, port=`{port}`, user=`{user}`, database=`{database}`")
    }
}

impl Default for PostgresConfig {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_shown_nowhere() {
        let config = PostgresConfig {
            password: Some(Password::new("open sesame")),
            ..PostgresConfig::new()
        };
        assert!(!format!("{config:?}").contains("sesame"));
        assert!(!config.place().contains("sesame"));
    }

    #[test]
    fn a_schema_is_a_plain_name() {
        let refused = |schema: &str| {
            PostgresConfig { schema: schema.to_owned(), ..PostgresConfig::new() }.check().is_err()
        };
        for good in ["strandline", "_a", "s1_b"] {
            assert!(!refused(good), "{good}");
        }
        for bad in ["", "1a", "A", "a b", "a\"b", "a;b", "a-b", "ä", &"a".repeat(64)] {
            assert!(refused(bad), "{bad}");
        }
    }

    #[test]
    fn nothing_may_be_none_at_all() {
        for config in [
            PostgresConfig { lanes: 0, ..PostgresConfig::new() },
            PostgresConfig { readers: 0, ..PostgresConfig::new() },
            PostgresConfig { row_writers: 0, ..PostgresConfig::new() },
            PostgresConfig { pending_appends_max: 0, ..PostgresConfig::new() },
        ] {
            config.check().unwrap_err();
        }
    }
}
