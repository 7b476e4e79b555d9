//! Opens the PostgreSQL engine, and waits for a server that is not there yet.

use std::sync::Arc;
use std::time::Duration;

use strandline_engine_postgres::{OpenError, Password, PostgresConfig, PostgresEngine};
use strandline_model::config::PostgresPlace;
use strandline_storage::ErrorKind;

use super::opening::Opening;
use super::run::chain;
use super::tell::{tell, warn};
use crate::failure::{Exit, Failure};

/// Between two tries to reach the server.
const TRY_EVERY: Duration = Duration::from_millis(500);

/// Opens the engine. Waits for as long as nobody answers: a server may start after its brokers. What
/// waiting does not mend is an error at once. `opening` says meanwhile what is waited for.
pub(super) async fn open(
    place: &PostgresPlace,
    opening: &Opening,
) -> Result<Arc<PostgresEngine>, Failure> {
    let config = config(place);
    let mut is_told = false;
    loop {
        let error = match PostgresEngine::open(config.clone()).await {
            Ok(started) => {
                for advice in started.advice {
                    warn(&format!("PostgreSQL: {}", advice.message));
                }
                opening.wait_for(None);
                return Ok(Arc::new(started.engine));
            }
            Err(error) if passes(&error) => error,
            Err(error) => return Err(cannot_open(&error)),
        };
        let waiting = format!("waiting for PostgreSQL: {}", chain(&error));
        // From then on the start itself tells every few seconds what it waits for.
        if !is_told {
            is_told = true;
            tell(&waiting);
        }
        opening.wait_for(Some(waiting));
        tokio::time::sleep(TRY_EVERY).await;
    }
}

/// The engine's configuration.
pub(crate) fn config(place: &PostgresPlace) -> PostgresConfig {
    let password = place.password.as_deref().map(Password::new);
    let password = password.or_else(|| place.password_file.as_deref().map(Password::from_file));
    let PostgresPlace { host, port, user, database, schema, tls, .. } = place.clone();
    let read_lease = Duration::from_millis(place.read_lease_ms);
    let lanes = usize::try_from(place.append_connections).unwrap_or(usize::MAX);
    let bounds = PostgresConfig { lanes, read_lease, ..PostgresConfig::new() };
    PostgresConfig { host, port, user, password, tls, database, schema, ..bounds }
}

/// Whether the same may work a moment later.
fn passes(error: &OpenError) -> bool {
    match error {
        OpenError::Unreachable { .. } => true,
        OpenError::Storage(error) => error.kind() == ErrorKind::Unavailable,
        OpenError::Config(_)
        | OpenError::Password { .. }
        | OpenError::Tls { .. }
        | OpenError::Refused { .. }
        | OpenError::Unfit(_)
        | OpenError::NewerSchema { .. } => false,
    }
}

fn cannot_open(error: &OpenError) -> Failure {
    let fail = |code| Failure::new(Exit::Failed, code, chain(error));
    match error {
        OpenError::Config(_) => fail("postgres_config").hint("see the keys `postgres.*`"),
        OpenError::Password { .. } => fail("postgres_password_file"),
        OpenError::Tls { .. } => fail("postgres_tls")
            .hint("see the keys `postgres.ssl.*`; strandline storage check says more"),
        OpenError::Refused { .. } => fail("postgres_refused").hint(
            "check postgres.user, postgres.database and the password; the user must own the schema",
        ),
        OpenError::Unfit(_) => fail("postgres_unfit"),
        OpenError::NewerSchema { .. } => fail("postgres_schema_newer"),
        OpenError::Unreachable { .. } | OpenError::Storage(_) => fail("postgres"),
    }
}

#[cfg(test)]
mod tests {
    use strandline_model::config::PostgresTls;

    use super::*;
    use crate::serve::plan::Storage;

    fn place() -> PostgresPlace {
        PostgresPlace {
            host: "localhost".to_owned(),
            port: 5432,
            user: "strandline".to_owned(),
            database: "strandline".to_owned(),
            schema: "strandline".to_owned(),
            password: None,
            password_file: None,
            tls: PostgresTls::disabled(),
            append_connections: 2,
            read_lease_ms: 10_000,
        }
    }

    #[tokio::test]
    async fn what_waiting_does_not_mend_ends_the_start() {
        let wrong = PostgresPlace { schema: "No Name".to_owned(), ..place() };
        let failure = open(&wrong, &Opening::begin(&Storage::Memory)).await.expect_err("no name");
        assert_eq!(failure.code, "postgres_config", "{failure}");
        let wrong = PostgresPlace { password_file: Some("nowhere".to_owned()), ..place() };
        let failure = open(&wrong, &Opening::begin(&Storage::Memory)).await.expect_err("no file");
        assert_eq!(failure.code, "postgres_password_file", "{failure}");
        assert!(failure.message.contains("nowhere"), "{failure}");
    }
}
