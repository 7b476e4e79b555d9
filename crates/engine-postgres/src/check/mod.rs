//! What is right and wrong with a database, before anything is kept in it.
//!
//! Everything is read, nothing is changed: no schema is made, no table is brought up to date. Reading
//! ([`facts`]) and judging ([`judge`]) are apart, so that each verdict has a test without a server.

mod facts;
mod judge;
mod refused;

use strandline_storage::{ErrorKind, StorageError};

use crate::connection::{Connector, Isolation};
use crate::{OpenError, PostgresConfig, advice};
use facts::Facts;

/// How bad it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// As it should be.
    Good,
    /// It works, and somebody should look at it.
    Doubtful,
    /// The engine would not start, or not keep what it promises.
    Wrong,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// A stable word for it.
    pub name: &'static str,
    /// How bad it is.
    pub verdict: Verdict,
    /// What was found, as a lower-case fact.
    pub found: String,
    /// What to do about it: a sentence, or a statement that ends with `;`.
    pub remedy: Option<String>,
}

/// What was looked at, in order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checked {
    /// All of it; it ends where something kept us from looking on.
    pub checks: Vec<Check>,
    /// Whether somebody answered. Trying again makes sense when nobody did.
    pub is_reached: bool,
}

impl Check {
    fn good(name: &'static str, found: impl Into<String>) -> Self {
        Self { name, verdict: Verdict::Good, found: found.into(), remedy: None }
    }

    fn doubtful(name: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        let remedy = Some(remedy.into());
        Self { name, verdict: Verdict::Doubtful, found: found.into(), remedy }
    }

    fn wrong(name: &'static str, found: impl Into<String>, remedy: impl Into<String>) -> Self {
        let remedy = Some(remedy.into());
        Self { name, verdict: Verdict::Wrong, found: found.into(), remedy }
    }
}

impl PostgresConfig {
    /// Connections that an engine holds at once, at most: the one at the start ends before the others
    /// are needed, but the places must be there.
    pub fn connections_max(&self) -> usize {
        self.lanes + self.readers + self.row_writers + 2
    }
}

/// Looks at the database with the rights that the engine would have. Changes nothing. Runs on the tokio
/// runtime of the caller.
pub async fn check(config: &PostgresConfig) -> Checked {
    let mut checks = of_secrets(config);
    let is_reached = match look(config).await {
        Ok(facts) => {
            checks.extend(judge::all(config, &facts));
            true
        }
        Err(error) => {
            checks.push(refused::told(config, &error));
            !matches!(error, OpenError::Unreachable { .. } | OpenError::Storage(_))
        }
    };
    Checked { checks, is_reached }
}

async fn look(config: &PostgresConfig) -> Result<Facts, OpenError> {
    config.check()?;
    let connector = Connector::new(config);
    let (client, task) = connector.client(Isolation::Committed).await?;
    let facts = tokio::time::timeout(config.statement_wait, Facts::read(&client, config)).await;
    drop(client);
    task.abort();
    let facts = facts.map_err(|_| {
        let message = format!("no answer within {} s", config.statement_wait.as_secs());
        OpenError::Storage(StorageError::new(ErrorKind::Unavailable, message))
    })?;
    facts.map_err(|error| OpenError::refused(config.place(), &error))
}

/// About files that hold secrets: before anybody is asked.
fn of_secrets(config: &PostgresConfig) -> Vec<Check> {
    let remedy = "take the right to read it from others: chmod o-r";
    let told = advice::of_files(config).into_iter();
    told.map(|found| Check::doubtful("secrets", found, remedy)).collect()
}

/// A name as it stands in a statement.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_ends_where_its_quotes_say() {
        assert_eq!(quoted("app"), "\"app\"");
        assert_eq!(quoted("a\"; DROP TABLE x; --"), "\"a\"\"; DROP TABLE x; --\"");
    }
}
