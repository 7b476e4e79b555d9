//! The tables: made and changed by numbered steps, which several brokers may begin at once.

use tokio_postgres::{Client, Transaction};

use crate::advice::{self, Advice};
use crate::connection::{Connector, Isolation};
use crate::{OpenError, PostgresConfig};

/// The steps, in order. One that was released is never changed.
const MIGRATIONS: &[&str] = &[include_str!("schema/0001.sql")];

/// The table that says which steps were taken.
pub(crate) const VERSION_TABLE: &str = "schema_version";

/// The version that this build knows.
pub(crate) const VERSION: i32 = 1;
const _: () = assert!(MIGRATIONS.len() == VERSION as usize, "each step is a version");

/// The oldest server that is tested.
pub(crate) const SERVER_VERSION_MIN: i32 = 15;

/// Who migrates holds this one of PostgreSQL's advisory locks until its transaction ends: the first
/// eight letters of our name.
const MIGRATION_LOCK: i64 = 0x7374_7261_6e64_6c69;

/// The tables that all steps make.
pub(crate) fn tables() -> impl Iterator<Item = &'static str> {
    let lines = MIGRATIONS.iter().flat_map(|step| step.lines());
    let names = lines.filter_map(|line| line.strip_prefix("CREATE TABLE ")?.split(' ').next());
    std::iter::once(VERSION_TABLE).chain(names)
}

/// Brings the schema to the version of this build, when it is not there yet.
pub(crate) async fn prepare(
    connector: &Connector,
    config: &PostgresConfig,
) -> Result<Vec<Advice>, OpenError> {
    let (mut client, _task) = connector.client(Isolation::Committed).await?;
    let wrong = |error: tokio_postgres::Error| failed(connector, &error);
    let mut advice = check_server(&client).await.map_err(wrong)??;
    advice.extend(advice::of_config(config));
    if version(&client, &config.schema).await.map_err(wrong)? != Some(VERSION) {
        let transaction = client.transaction().await.map_err(wrong)?;
        migrate(&transaction, &config.schema).await.map_err(wrong)??;
        transaction.commit().await.map_err(wrong)?;
    }
    Ok(advice)
}

fn failed(connector: &Connector, error: &tokio_postgres::Error) -> OpenError {
    OpenError::refused(connector.place().to_owned(), error)
}

/// Whether the server is new enough and keeps what it acknowledges.
async fn check_server(
    client: &Client,
) -> Result<Result<Vec<Advice>, OpenError>, tokio_postgres::Error> {
    let settings = "
        SELECT current_setting('server_version_num')::int4 / 10000,
               current_setting('synchronous_commit'), current_setting('fsync'),
               current_setting('full_page_writes'), pg_is_in_recovery()";
    let row = client.query_one(settings, &[]).await?;
    let version: i32 = row.get(0);
    if version < SERVER_VERSION_MIN {
        let message =
            format!("PostgreSQL is too old. found=`{version}`, oldest=`{SERVER_VERSION_MIN}`");
        return Ok(Err(OpenError::Unfit(message)));
    }
    let synchronous_commit: String = row.get(1);
    if synchronous_commit == "off" {
        let message = "synchronous_commit is off: a crash of the server would lose what was \
                       acknowledged. set it to `on` for this user or database";
        return Ok(Err(OpenError::Unfit(message.to_owned())));
    }
    if row.get::<_, bool>(4) {
        let message = "the server is a standby, which takes no writes: connect to the primary";
        return Ok(Err(OpenError::Unfit(message.to_owned())));
    }
    let mut advice = Vec::new();
    for (column, name) in [(2, "fsync"), (3, "full_page_writes")] {
        if row.get::<_, String>(column) == "off" {
            let message = format!("{name} is off: a power failure can destroy the database");
            advice.push(Advice { message });
        }
    }
    Ok(Ok(advice))
}

/// The version of the schema; `None` when there is none.
pub(crate) async fn version(
    client: &Client,
    schema: &str,
) -> Result<Option<i32>, tokio_postgres::Error> {
    let table = format!("{schema}.{VERSION_TABLE}");
    let row = client.query_one("SELECT to_regclass($1) IS NOT NULL", &[&table]).await?;
    if !row.get::<_, bool>(0) {
        return Ok(None);
    }
    let row = client.query_one("SELECT coalesce(max(version), 0) FROM schema_version", &[]).await?;
    Ok(Some(row.get(0)))
}

/// Takes the steps that are missing; whoever came first has taken them meanwhile.
async fn migrate(
    transaction: &Transaction<'_>,
    schema: &str,
) -> Result<Result<(), OpenError>, tokio_postgres::Error> {
    transaction.query("SELECT pg_advisory_xact_lock($1)", &[&MIGRATION_LOCK]).await?;
    // Creating what is there would ask for a right that who only uses it need not have.
    let known = "SELECT to_regnamespace($1) IS NOT NULL";
    if !transaction.query_one(known, &[&schema]).await?.get::<_, bool>(0) {
        transaction.batch_execute(&format!("CREATE SCHEMA {schema}")).await?;
    }
    let table = format!("{schema}.schema_version");
    let known = "SELECT to_regclass($1) IS NOT NULL";
    if !transaction.query_one(known, &[&table]).await?.get::<_, bool>(0) {
        let create = "CREATE TABLE schema_version \
                      (version integer PRIMARY KEY, migrated_at timestamptz NOT NULL DEFAULT now())";
        transaction.batch_execute(create).await?;
    }
    let newest = "SELECT coalesce(max(version), 0) FROM schema_version";
    let found: i32 = transaction.query_one(newest, &[]).await?.get(0);
    if found > VERSION {
        let schema = schema.to_owned();
        return Ok(Err(OpenError::NewerSchema { schema, found, known: VERSION }));
    }
    for (number, step) in (1_i32..).zip(MIGRATIONS).skip(usize::try_from(found).unwrap_or(0)) {
        transaction.batch_execute(step).await?;
        let note = "INSERT INTO schema_version (version) VALUES ($1)";
        transaction.execute(note, &[&number]).await?;
        tracing::info!(schema, version = number, "schema migrated");
    }
    Ok(Ok(()))
}
