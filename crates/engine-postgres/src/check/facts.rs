//! What is read of a server, a role and a schema. Nothing here changes anything.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;
use tokio_postgres::{Client, Error};

use crate::PostgresConfig;
use crate::schema;

/// Settings that somebody should know of.
const SETTINGS: &[&str] = &[
    "autovacuum",
    "fsync",
    "full_page_writes",
    "idle_session_timeout",
    "max_connections",
    "reserved_connections",
    "search_path",
    "server_encoding",
    "server_version",
    "server_version_num",
    "statement_timeout",
    "superuser_reserved_connections",
    "synchronous_commit",
    "synchronous_standby_names",
    "track_counts",
    "transaction_read_only",
    "transaction_timeout",
];

/// All that is judged.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    /// How long one question took.
    pub(super) answered_in: Duration,
    pub(super) settings: BTreeMap<String, String>,
    pub(super) is_standby: bool,
    /// Protocol and cipher; `None` when nothing is encrypted.
    pub(super) encryption: Option<String>,
    pub(super) role: Role,
    pub(super) database: Database,
    /// `None` when there is no such schema.
    pub(super) schema: Option<Schema>,
    /// Brokers that are connected to the same database, as far as the role may see.
    pub(super) brokers: Option<Brokers>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Role {
    pub(super) is_superuser: bool,
    /// Negative: no limit.
    pub(super) connections_max: i32,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Database {
    /// Negative: no limit.
    pub(super) connections_max: i32,
    pub(super) bytes: i64,
    /// Connections to all databases of the server.
    pub(super) connections_of_all: i64,
    pub(super) may_create_schema: bool,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Schema {
    pub(super) owner: String,
    pub(super) may_use: bool,
    pub(super) may_create: bool,
    pub(super) tables: Vec<Table>,
    /// `None` when no step was taken, or none can be read.
    pub(super) version: Option<i32>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Table {
    pub(super) name: String,
    pub(super) owner: String,
    /// Whether the role may change the table itself.
    pub(super) is_owned: bool,
    /// Whether it may read, insert, update and delete.
    pub(super) may: [bool; 4],
}

#[derive(Clone, Debug, Default)]
pub(super) struct Brokers {
    pub(super) connections: i64,
    pub(super) addresses: String,
    pub(super) since: String,
}

impl Facts {
    pub(super) async fn read(client: &Client, config: &PostgresConfig) -> Result<Self, Error> {
        let begun = Instant::now();
        let is_standby = client.query_one("SELECT pg_is_in_recovery()", &[]).await?.get(0);
        let answered_in = begun.elapsed();
        let settings = "SELECT name, setting FROM pg_settings WHERE name = ANY($1)";
        let settings = client.query(settings, &[&SETTINGS]).await?;
        let settings = settings.iter().map(|row| (row.get(0), row.get(1))).collect();
        let encryption = "SELECT version || ', ' || cipher FROM pg_stat_ssl \
                          WHERE pid = pg_backend_pid() AND ssl";
        let encryption = client.query_opt(encryption, &[]).await?;
        let encryption = encryption.and_then(|row| row.get::<_, Option<String>>(0));
        Ok(Self {
            answered_in,
            settings,
            is_standby,
            encryption,
            role: Role::read(client).await?,
            database: Database::read(client).await?,
            schema: Schema::read(client, &config.schema).await?,
            brokers: Brokers::read(client).await?,
        })
    }

    /// A setting; empty where the server has none of that name.
    pub(super) fn setting(&self, name: &str) -> &str {
        debug_assert!(SETTINGS.contains(&name), "{name} is not read");
        self.settings.get(name).map_or("", String::as_str)
    }

    /// A setting that is a number; 0 where the server has none of that name.
    pub(super) fn number(&self, name: &str) -> i64 {
        self.setting(name).parse().unwrap_or(0)
    }
}

impl Role {
    async fn read(client: &Client) -> Result<Self, Error> {
        let role = "SELECT rolsuper, rolconnlimit FROM pg_roles WHERE rolname = current_user";
        let row = client.query_one(role, &[]).await?;
        Ok(Self { is_superuser: row.get(0), connections_max: row.get(1) })
    }
}

impl Database {
    async fn read(client: &Client) -> Result<Self, Error> {
        let database = "SELECT datconnlimit, pg_database_size(oid), \
                        (SELECT sum(numbackends)::int8 FROM pg_stat_database), \
                        has_database_privilege(oid, 'CREATE') \
                        FROM pg_database WHERE datname = current_database()";
        let row = client.query_one(database, &[]).await?;
        Ok(Self {
            connections_max: row.get(0),
            bytes: row.get(1),
            connections_of_all: row.get(2),
            may_create_schema: row.get(3),
        })
    }
}

impl Schema {
    async fn read(client: &Client, name: &str) -> Result<Option<Self>, Error> {
        let schema = "SELECT pg_get_userbyid(nspowner)::text, has_schema_privilege(oid, 'USAGE'), \
                      has_schema_privilege(oid, 'CREATE'), oid FROM pg_namespace WHERE nspname = $1";
        let Some(row) = client.query_opt(schema, &[&name]).await? else { return Ok(None) };
        let oid: u32 = row.get(3);
        let mut found = Self {
            owner: row.get(0),
            may_use: row.get(1),
            may_create: row.get(2),
            tables: Vec::new(),
            version: None,
        };
        let tables = "SELECT relname::text, pg_get_userbyid(relowner)::text, \
                      pg_has_role(relowner, 'USAGE'), has_table_privilege(oid, 'SELECT'), \
                      has_table_privilege(oid, 'INSERT'), has_table_privilege(oid, 'UPDATE'), \
                      has_table_privilege(oid, 'DELETE') \
                      FROM pg_class WHERE relnamespace = $1 AND relkind IN ('r', 'p') ORDER BY 1";
        found.tables = client.query(tables, &[&oid]).await?.iter().map(Table::of_row).collect();
        let can_be_read = |table: &Table| table.name == schema::VERSION_TABLE && table.may[0];
        if found.may_use && found.tables.iter().any(can_be_read) {
            found.version = schema::version(client, name).await?;
        }
        Ok(Some(found))
    }
}

impl Table {
    fn of_row(row: &tokio_postgres::Row) -> Self {
        Self {
            name: row.get(0),
            owner: row.get(1),
            is_owned: row.get(2),
            may: [row.get(3), row.get(4), row.get(5), row.get(6)],
        }
    }
}

impl Brokers {
    async fn read(client: &Client) -> Result<Option<Self>, Error> {
        let brokers = "SELECT count(*), \
                       string_agg(DISTINCT CASE WHEN backend_start IS NULL \
                       THEN 'an address that is not shown to this role' \
                       ELSE coalesce(host(client_addr), 'this machine') END, ', '), \
                       coalesce(to_char(min(backend_start), 'YYYY-MM-DD HH24:MI:SS TZ'), \
                       'a time that is not shown either') \
                       FROM pg_stat_activity WHERE datname = current_database() \
                       AND application_name = $1 AND pid <> pg_backend_pid()";
        let row = client.query_one(brokers, &[&crate::connection::APPLICATION]).await?;
        let connections: i64 = row.get(0);
        Ok((connections > 0).then(|| Self {
            connections,
            addresses: row.get(1),
            since: row.get(2),
        }))
    }
}
