//! Verdicts. Pure: what was read goes in, what a person should know comes out.

use super::facts::{Facts, Schema, Table};
use super::{Check, quoted};
use crate::schema::{self, SERVER_VERSION_MIN};
use crate::{PostgresConfig, advice};

/// Every check, in the order in which a person would ask.
pub(super) fn all(config: &PostgresConfig, facts: &Facts) -> Vec<Check> {
    let mut checks = vec![
        connection(config, facts),
        encryption(config, facts),
        options(config, facts),
        role(config, facts),
        version(facts),
        primary(facts),
    ];
    if !facts.is_standby {
        checks.push(writable(config, facts));
    }
    checks.push(synchronous_commit(config, facts));
    for name in ["fsync", "full_page_writes"] {
        checks.push(durable(name, facts));
    }
    checks.push(autovacuum(facts));
    checks.extend(timeouts(config, facts));
    checks.push(places(config, facts));
    checks.push(Check::good("encoding", facts.setting("server_encoding")));
    checks.push(rights(config, facts));
    checks.push(schema_version(config, facts));
    checks.push(in_use(facts));
    let bytes = facts.database.bytes;
    let size = format!("the database has {bytes} bytes; how much is free the server does not say");
    checks.push(Check::good("size", size));
    checks
}

fn connection(config: &PostgresConfig, facts: &Facts) -> Check {
    let (host, port) = (&config.host, config.port);
    let took = facts.answered_in.as_micros();
    Check::good("connection", format!("{host}, port {port}, answers in {took} µs"))
}

fn encryption(config: &PostgresConfig, facts: &Facts) -> Check {
    let mode = config.tls.mode;
    let found = match &facts.encryption {
        Some(how) => format!("{how}, {mode}"),
        None if config.host.starts_with('/') => "not encrypted: a Unix socket".to_owned(),
        None => format!("not encrypted, {mode}"),
    };
    match advice::of_mode(config) {
        None => Check::good("tls", found),
        Some(why) => Check::doubtful("tls", format!("{found}: {why}"), "set verify-full"),
    }
}

/// A pooler may drop what a connection asks for at its start.
fn options(config: &PostgresConfig, facts: &Facts) -> Check {
    let (found, wanted) = (facts.setting("search_path"), config.schema.as_str());
    if found == wanted {
        return Check::good("session", format!("the search path is {found}"));
    }
    let found = format!("the search path is not what was asked for. found=`{found}`");
    let remedy = "connect to the server itself, or through a pooler in session mode that passes \
                  `options` on";
    Check::wrong("session", found, remedy)
}

fn role(config: &PostgresConfig, facts: &Facts) -> Check {
    let user = &config.user;
    if facts.role.is_superuser {
        let remedy = "take a role of its own that owns the schema: see docs/postgres.md";
        return Check::doubtful(
            "role",
            format!("{user} is a superuser: more than it needs"),
            remedy,
        );
    }
    Check::good("role", user)
}

fn version(facts: &Facts) -> Check {
    let found = facts.setting("server_version");
    if facts.number("server_version_num") / 10_000 >= i64::from(SERVER_VERSION_MIN) {
        return Check::good("version", found);
    }
    let remedy = format!("take PostgreSQL {SERVER_VERSION_MIN} or later");
    Check::wrong("version", format!("{found} is too old"), remedy)
}

fn primary(facts: &Facts) -> Check {
    if facts.is_standby {
        let remedy = "let postgres.host name the primary";
        return Check::wrong("primary", "a standby, which takes no writes", remedy);
    }
    Check::good("primary", "takes writes")
}

fn writable(config: &PostgresConfig, facts: &Facts) -> Check {
    if facts.setting("transaction_read_only") != "on" {
        return Check::good("read_only", "off");
    }
    let user = quoted(&config.user);
    let remedy = format!("ALTER ROLE {user} SET default_transaction_read_only = off;");
    Check::wrong("read_only", "default_transaction_read_only is on: nothing is written", remedy)
}

fn synchronous_commit(config: &PostgresConfig, facts: &Facts) -> Check {
    const NAME: &str = "synchronous_commit";
    let found = facts.setting(NAME);
    let remedy = || format!("ALTER ROLE {} SET {NAME} = on;", quoted(&config.user));
    let has_standbys = !facts.setting("synchronous_standby_names").is_empty();
    match found {
        "off" => {
            let found = "off: a crash of the server would lose what was acknowledged";
            Check::wrong(NAME, found, remedy())
        }
        "local" if has_standbys => {
            let found = "local: what is acknowledged may be on the primary alone";
            Check::doubtful(NAME, found, remedy())
        }
        found if has_standbys => {
            Check::good(NAME, format!("{found}, and an acknowledgement waits for a standby"))
        }
        found => Check::good(NAME, format!("{found}; there is no synchronous standby")),
    }
}

fn durable(name: &'static str, facts: &Facts) -> Check {
    if facts.setting(name) != "off" {
        return Check::good(name, "on");
    }
    let found = "off: a power failure can destroy the database";
    Check::doubtful(name, found, format!("ALTER SYSTEM SET {name} = on;"))
}

fn autovacuum(facts: &Facts) -> Check {
    for name in ["autovacuum", "track_counts"] {
        if facts.setting(name) == "off" {
            let found = format!("{name} is off: tables grow for ever");
            let remedy = format!("ALTER SYSTEM SET {name} = on;");
            return Check::doubtful("autovacuum", found, remedy);
        }
    }
    Check::good("autovacuum", "on")
}

fn timeouts(config: &PostgresConfig, facts: &Facts) -> Vec<Check> {
    let user = quoted(&config.user);
    let statement = match facts.number("statement_timeout") {
        0 => Check::good("statement_timeout", "off for our connections, whatever the role's is"),
        found => {
            let found = format!(
                "{found} ms: a commit that it cancels while it waits for a standby counts as done"
            );
            let remedy = format!("ALTER ROLE {user} SET statement_timeout = 0;");
            Check::doubtful("statement_timeout", found, remedy)
        }
    };
    let others = ["idle_session_timeout", "transaction_timeout"].into_iter();
    let others = others.filter(|name| facts.number(name) != 0).map(|name| {
        let found = format!("{} ms: connections are cut and made anew", facts.number(name));
        Check::doubtful(name, found, format!("ALTER ROLE {user} SET {name} = 0;"))
    });
    std::iter::once(statement).chain(others).collect()
}

/// Whether there are enough connections for us.
fn places(config: &PostgresConfig, facts: &Facts) -> Check {
    const NAME: &str = "connections";
    let wanted = i64::try_from(config.connections_max()).unwrap_or(i64::MAX);
    let reserved =
        facts.number("superuser_reserved_connections") + facts.number("reserved_connections");
    let of_server = facts.number("max_connections") - reserved;
    // Superusers are bound by none of these.
    let limit = |limit: i32| {
        if facts.role.is_superuser || limit < 0 { None } else { Some(i64::from(limit)) }
    };
    let (user, database) = (quoted(&config.user), quoted(&config.database));
    let limits = [
        (Some(of_server), "the server", "ALTER SYSTEM SET max_connections = 100;".to_owned()),
        (
            limit(facts.role.connections_max),
            "the role",
            format!("ALTER ROLE {user} CONNECTION LIMIT -1;"),
        ),
        (
            limit(facts.database.connections_max),
            "the database",
            format!("ALTER DATABASE {database} CONNECTION LIMIT -1;"),
        ),
    ];
    for (limit, whose, remedy) in limits {
        if let Some(limit) = limit.filter(|limit| *limit < wanted) {
            let found = format!("{whose} allows {limit}, up to {wanted} are wanted");
            return Check::wrong(NAME, found, remedy);
        }
    }
    let taken = facts.database.connections_of_all;
    let found = format!("{taken} of {of_server} are taken, up to {wanted} are wanted");
    // With a broker at work its own are among them.
    if facts.brokers.is_none() && of_server - taken < wanted {
        let remedy = "let the server have more of them (max_connections), or others fewer";
        return Check::doubtful(NAME, found, remedy);
    }
    Check::good(NAME, found)
}

fn rights(config: &PostgresConfig, facts: &Facts) -> Check {
    const NAME: &str = "rights";
    let (user, schema) = (quoted(&config.user), config.schema.as_str());
    let Some(found) = &facts.schema else {
        if facts.database.may_create_schema {
            return Check::good(NAME, format!("may make the schema {schema}"));
        }
        let database = quoted(&config.database);
        let remedy = format!("CREATE SCHEMA {schema} AUTHORIZATION {user};");
        let found = format!("may make no schema in the database {database}");
        return Check::wrong(NAME, found, remedy);
    };
    let owner = &found.owner;
    if !found.may_use {
        let remedy = format!("GRANT USAGE ON SCHEMA {schema} TO {user};");
        return Check::wrong(NAME, format!("may not use the schema of {owner}"), remedy);
    }
    if !found.may_create && lacks_tables(found) {
        let remedy = format!("GRANT CREATE ON SCHEMA {schema} TO {user};");
        return Check::wrong(NAME, format!("may make no tables in the schema of {owner}"), remedy);
    }
    let ours = |table: &&Table| schema::tables().any(|name| name == table.name);
    let barred: Vec<&Table> =
        found.tables.iter().filter(ours).filter(|table| table.may.contains(&false)).collect();
    if let Some(first) = barred.first() {
        let names: Vec<&str> = barred.iter().map(|table| table.name.as_str()).collect();
        let what = ["SELECT", "INSERT", "UPDATE", "DELETE"];
        let found = format!(
            "may not read and change tables of {}. tables=`{}`",
            first.owner,
            names.join(", ")
        );
        let remedy =
            format!("GRANT {} ON ALL TABLES IN SCHEMA {schema} TO {user};", what.join(", "));
        return Check::wrong(NAME, found, remedy);
    }
    if let Some(strange) = found.tables.iter().filter(ours).find(|table| !table.is_owned) {
        let owner = quoted(&strange.owner);
        let found = format!("the tables are of {owner}: a later version can't change them");
        return Check::doubtful(NAME, found, format!("GRANT {owner} TO {user};"));
    }
    Check::good(NAME, format!("may use the schema {schema} and all that is in it"))
}

fn lacks_tables(found: &Schema) -> bool {
    schema::tables().any(|name| !found.tables.iter().any(|table| table.name == name))
}

fn schema_version(config: &PostgresConfig, facts: &Facts) -> Check {
    const NAME: &str = "schema";
    let (schema, known) = (config.schema.as_str(), schema::VERSION);
    let Some(found) = &facts.schema else {
        return Check::good(NAME, format!("{schema} is not there; the first start makes it"));
    };
    match found.version {
        None if found.tables.is_empty() => {
            Check::good(NAME, format!("{schema} is empty; the first start makes the tables"))
        }
        None if !found.tables.iter().any(|table| table.name == schema::VERSION_TABLE) => {
            let found = format!("{schema} holds tables that are not ours");
            Check::wrong(NAME, found, "let postgres.schema name one of its own")
        }
        // Who may not read it was told so.
        None => {
            Check::doubtful(NAME, format!("the version of {schema} can't be read"), "see rights")
        }
        Some(version) if version > known => {
            let found = format!("{schema} has version {version}, this build knows {known}");
            Check::wrong(NAME, found, "start a newer version")
        }
        Some(version) if version < known => {
            Check::good(NAME, format!("{schema} has version {version}; the start makes it {known}"))
        }
        Some(_) if lacks_tables(found) => {
            let is_there = |name: &&str| found.tables.iter().any(|table| table.name == *name);
            let missing: Vec<&str> = schema::tables().filter(|name| !is_there(name)).collect();
            let found = format!("{schema} lacks tables. missing=`{}`", missing.join(", "));
            Check::wrong(NAME, found, "bring the schema back from a backup")
        }
        Some(version) => Check::good(NAME, format!("{schema} has version {version}")),
    }
}

fn in_use(facts: &Facts) -> Check {
    const NAME: &str = "brokers";
    let Some(brokers) = &facts.brokers else {
        return Check::good(NAME, "none is connected to this database, as far as can be seen");
    };
    let (connections, from, since) = (brokers.connections, &brokers.addresses, &brokers.since);
    let found = format!("{connections} connections from {from}, since {since}");
    Check::doubtful(NAME, found, "one broker uses a schema: stop it before another one starts")
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
