use std::collections::BTreeMap;

use strandline_model::config::{PostgresTls, PostgresTlsMode};

use super::super::Verdict;
use super::super::facts::{Brokers, Database, Role};
use super::*;

/// A server with nothing wrong about it, and a schema that a broker of this version has made.
fn facts() -> Facts {
    let settings = [
        ("autovacuum", "on"),
        ("fsync", "on"),
        ("full_page_writes", "on"),
        ("idle_session_timeout", "0"),
        ("max_connections", "100"),
        ("search_path", "strandline"),
        ("server_encoding", "UTF8"),
        ("server_version", "15.14"),
        ("server_version_num", "150014"),
        ("statement_timeout", "0"),
        ("superuser_reserved_connections", "3"),
        ("synchronous_commit", "on"),
        ("synchronous_standby_names", ""),
        ("track_counts", "on"),
        ("transaction_read_only", "off"),
    ];
    let table = |name: &str| Table {
        name: name.to_owned(),
        owner: "strandline".to_owned(),
        is_owned: true,
        may: [true; 4],
    };
    Facts {
        settings: settings.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        role: Role { is_superuser: false, connections_max: -1 },
        database: Database {
            connections_max: -1,
            bytes: 8_000_000,
            connections_of_all: 1,
            may_create_schema: true,
        },
        schema: Some(Schema {
            owner: "strandline".to_owned(),
            may_use: true,
            may_create: true,
            tables: schema::tables().map(table).collect(),
            version: Some(schema::VERSION),
        }),
        ..Facts::default()
    }
}

/// What is not good, with what mends it.
fn faults(config: &PostgresConfig, facts: &Facts) -> Vec<(&'static str, Verdict, String)> {
    let checks = all(config, facts).into_iter();
    let faults = checks.filter(|check| check.verdict != Verdict::Good);
    faults.map(|check| (check.name, check.verdict, check.remedy.expect("told"))).collect()
}

#[test]
fn nothing_is_wrong_with_what_is_right() {
    assert_eq!(faults(&PostgresConfig::new(), &facts()), []);
    let none = Facts { schema: None, ..facts() };
    assert_eq!(faults(&PostgresConfig::new(), &none), []);
    let empty = Schema { tables: Vec::new(), version: None, ..facts().schema.expect("there") };
    assert_eq!(faults(&PostgresConfig::new(), &Facts { schema: Some(empty), ..facts() }), []);
}

#[test]
fn each_setting_that_is_wrong_is_told_with_what_mends_it() {
    let mend = |name: &str| format!("ALTER SYSTEM SET {name} = on;");
    let of_role = |what: &str| format!("ALTER ROLE \"strandline\" SET {what};");
    for (setting, value, name, verdict, remedy) in [
        ("fsync", "off", "fsync", Verdict::Doubtful, mend("fsync")),
        (
            "full_page_writes",
            "off",
            "full_page_writes",
            Verdict::Doubtful,
            mend("full_page_writes"),
        ),
        ("autovacuum", "off", "autovacuum", Verdict::Doubtful, mend("autovacuum")),
        ("track_counts", "off", "autovacuum", Verdict::Doubtful, mend("track_counts")),
        (
            "synchronous_commit",
            "off",
            "synchronous_commit",
            Verdict::Wrong,
            of_role("synchronous_commit = on"),
        ),
        (
            "transaction_read_only",
            "on",
            "read_only",
            Verdict::Wrong,
            of_role("default_transaction_read_only = off"),
        ),
        (
            "statement_timeout",
            "1000",
            "statement_timeout",
            Verdict::Doubtful,
            of_role("statement_timeout = 0"),
        ),
        (
            "idle_session_timeout",
            "1000",
            "idle_session_timeout",
            Verdict::Doubtful,
            of_role("idle_session_timeout = 0"),
        ),
        (
            "server_version_num",
            "140022",
            "version",
            Verdict::Wrong,
            "take PostgreSQL 15 or later".to_owned(),
        ),
        (
            "max_connections",
            "12",
            "connections",
            Verdict::Wrong,
            "ALTER SYSTEM SET max_connections = 100;".to_owned(),
        ),
    ] {
        let mut facts = facts();
        facts.settings.insert(setting.to_owned(), value.to_owned());
        assert_eq!(faults(&PostgresConfig::new(), &facts), [(name, verdict, remedy)], "{setting}");
    }
    let mut pooled = facts();
    pooled.settings.insert("search_path".to_owned(), "\"$user\", public".to_owned());
    let found = faults(&PostgresConfig::new(), &pooled);
    assert_eq!((found.len(), found[0].0, found[0].1), (1, "session", Verdict::Wrong));
}

#[test]
fn a_standby_is_told_once() {
    let mut standby = facts();
    standby.is_standby = true;
    standby.settings.insert("transaction_read_only".to_owned(), "on".to_owned());
    let found = faults(&PostgresConfig::new(), &standby);
    assert_eq!((found.len(), found[0].0, found[0].1), (1, "primary", Verdict::Wrong));
}

#[test]
fn acknowledgements_that_no_standby_has_are_told() {
    for (mode, standbys, verdict) in [
        ("on", "", Verdict::Good),
        ("local", "", Verdict::Good),
        ("on", "*", Verdict::Good),
        ("remote_apply", "*", Verdict::Good),
        ("local", "*", Verdict::Doubtful),
        ("off", "", Verdict::Wrong),
        ("off", "*", Verdict::Wrong),
    ] {
        let mut facts = facts();
        let set = BTreeMap::from([
            ("synchronous_commit".to_owned(), mode.to_owned()),
            ("synchronous_standby_names".to_owned(), standbys.to_owned()),
        ]);
        facts.settings.extend(set);
        let check = synchronous_commit(&PostgresConfig::new(), &facts);
        assert_eq!(check.verdict, verdict, "{mode} {standbys}");
    }
}

#[test]
fn too_few_connections_are_told_with_whose_they_are() {
    let config = PostgresConfig::new();
    let check = |change: fn(&mut Facts)| {
        let mut facts = facts();
        change(&mut facts);
        places(&config, &facts)
    };
    let role = check(|facts| facts.role.connections_max = 5);
    assert_eq!(role.verdict, Verdict::Wrong);
    assert_eq!(role.remedy.as_deref(), Some("ALTER ROLE \"strandline\" CONNECTION LIMIT -1;"));
    let database = check(|facts| facts.database.connections_max = 9);
    assert_eq!(database.verdict, Verdict::Wrong);
    assert!(database.remedy.is_some_and(|remedy| remedy.starts_with("ALTER DATABASE")));
    let full = check(|facts| facts.database.connections_of_all = 90);
    assert_eq!(full.verdict, Verdict::Doubtful);
    let ours = check(|facts| {
        facts.database.connections_of_all = 90;
        facts.brokers = Some(Brokers { connections: 24, ..Brokers::default() });
    });
    assert_eq!(ours.verdict, Verdict::Good, "{ours:?}");
    let superuser = check(|facts| {
        facts.role = Role { is_superuser: true, connections_max: 5 };
    });
    assert_eq!(superuser.verdict, Verdict::Good);
}

#[test]
fn rights_that_are_missing_come_with_the_statement_that_gives_them() {
    let config = PostgresConfig { user: "app".to_owned(), ..PostgresConfig::new() };
    let found = |change: fn(&mut Facts)| {
        let mut facts = facts();
        change(&mut facts);
        let check = rights(&config, &facts);
        (check.verdict, check.remedy.unwrap_or_default())
    };
    let schema = |facts: &mut Facts, change: fn(&mut Schema)| {
        change(facts.schema.as_mut().expect("there"));
    };
    for (got, verdict, remedy) in [
        (
            found(|facts| {
                facts.schema = None;
                facts.database.may_create_schema = false;
            }),
            Verdict::Wrong,
            "CREATE SCHEMA strandline AUTHORIZATION \"app\";",
        ),
        (
            found(|facts| facts.schema.as_mut().expect("there").may_use = false),
            Verdict::Wrong,
            "GRANT USAGE ON SCHEMA strandline TO \"app\";",
        ),
        (
            found(|facts| {
                let schema = facts.schema.as_mut().expect("there");
                schema.may_create = false;
                schema.tables.clear();
            }),
            Verdict::Wrong,
            "GRANT CREATE ON SCHEMA strandline TO \"app\";",
        ),
        (
            found(|facts| facts.schema.as_mut().expect("there").tables[2].may[3] = false),
            Verdict::Wrong,
            "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA strandline TO \"app\";",
        ),
        (
            found(|facts| {
                for table in &mut facts.schema.as_mut().expect("there").tables {
                    table.is_owned = false;
                }
            }),
            Verdict::Doubtful,
            "GRANT \"strandline\" TO \"app\";",
        ),
    ] {
        assert_eq!(got, (verdict, remedy.to_owned()));
    }
    let mut whole = facts();
    schema(&mut whole, |schema| schema.may_create = false);
    assert_eq!(rights(&config, &whole).verdict, Verdict::Good, "nothing is to be made");
}

#[test]
fn the_schema_is_of_this_version_or_can_become_so() {
    let config = PostgresConfig::new();
    let check = |change: fn(&mut Schema)| {
        let mut facts = facts();
        change(facts.schema.as_mut().expect("there"));
        schema_version(&config, &facts).verdict
    };
    assert_eq!(check(|_| {}), Verdict::Good);
    assert_eq!(check(|schema| schema.version = Some(schema::VERSION + 1)), Verdict::Wrong);
    assert_eq!(check(|schema| schema.version = Some(schema::VERSION - 1)), Verdict::Good);
    assert_eq!(check(|schema| schema.version = None), Verdict::Doubtful);
    assert_eq!(check(|schema| drop(schema.tables.pop())), Verdict::Wrong);
    let foreign = check(|schema| {
        schema.version = None;
        schema.tables.truncate(1);
        schema.tables[0].name = "customers".to_owned();
    });
    assert_eq!(foreign, Verdict::Wrong);
}

#[test]
fn a_broker_at_work_and_a_weak_mode_are_told() {
    let brokers = Some(Brokers { connections: 11, ..Brokers::default() });
    let found = faults(&PostgresConfig::new(), &Facts { brokers, ..facts() });
    assert_eq!((found.len(), found[0].0, found[0].1), (1, "brokers", Verdict::Doubtful));
    let role = Role { is_superuser: true, connections_max: -1 };
    let found = faults(&PostgresConfig::new(), &Facts { role, ..facts() });
    assert_eq!((found.len(), found[0].0, found[0].1), (1, "role", Verdict::Doubtful));
    let tls = PostgresTls { mode: PostgresTlsMode::Require, ..PostgresTls::disabled() };
    let config = PostgresConfig { host: "db".to_owned(), tls, ..PostgresConfig::new() };
    let found = faults(&config, &facts());
    assert_eq!((found.len(), found[0].0, found[0].1), (1, "tls", Verdict::Doubtful));
}
