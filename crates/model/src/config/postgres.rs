//! Where the PostgreSQL engine finds its database.

use std::fmt;

use super::Value;
use super::broker_config::BrokerConfigError;
use super::postgres_tls::PostgresTls;
use super::topic_config::StorageEngine;
use super::typed::Reader;

/// The `postgres.*` keys.
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresPlace {
    /// `postgres.host`: a name, an address, or the folder of a Unix socket.
    pub host: String,
    /// `postgres.port`.
    pub port: u16,
    /// `postgres.user`.
    pub user: String,
    /// `postgres.database`.
    pub database: String,
    /// `postgres.schema`.
    pub schema: String,
    /// `postgres.password`.
    pub password: Option<String>,
    /// `postgres.password.file`.
    pub password_file: Option<String>,
    /// `postgres.ssl.*`.
    pub tls: PostgresTls,
    /// `postgres.append.connections`.
    pub append_connections: u32,
    /// `postgres.read.lease.ms`.
    pub read_lease_ms: u64,
}

impl PostgresPlace {
    /// `None` when no host is named: then nothing may be kept there.
    pub(super) fn read<F: Fn(&str) -> Option<Value>>(
        read: &Reader<F>,
    ) -> Result<Option<Self>, BrokerConfigError> {
        let wrong = |name: &'static str, why: String| Err(BrokerConfigError { name, why });
        let Some(host) = read.text_or_unset("postgres.host") else {
            let postgres = StorageEngine::Postgres.name();
            let needs = |key: &&&str| read.text(key) == postgres;
            return match ["storage.default", "meta.store"].iter().find(needs) {
                Some(key) => wrong("postgres.host", format!("is not set, and {key} is {postgres}")),
                None => Ok(None),
            };
        };
        let password = read.text_or_unset("postgres.password");
        let password_file = read.text_or_unset("postgres.password.file");
        if password.is_some() && password_file.is_some() {
            let why = "is set, and postgres.password too; set one of them".to_owned();
            return wrong("postgres.password.file", why);
        }
        let tls = PostgresTls::read(read, &host)?;
        Ok(Some(Self {
            host,
            port: u16::try_from(read.number("postgres.port")).expect("the table checks the port"),
            user: read.text("postgres.user"),
            database: read.text("postgres.database"),
            schema: read.text("postgres.schema"),
            password,
            password_file,
            tls,
            append_connections: read.count("postgres.append.connections"),
            read_lease_ms: u64::from(read.count("postgres.read.lease.ms")),
        }))
    }
}

/// Without the password.
impl fmt::Debug for PostgresPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresPlace")
            .field("host", &self.host)
            .field("port", &self.port)
            .field("user", &self.user)
            .field("database", &self.database)
            .field("schema", &self.schema)
            .field("password", &self.password.as_ref().map(|_| "[hidden]"))
            .field("password_file", &self.password_file)
            .field("tls", &self.tls)
            .field("append_connections", &self.append_connections)
            .field("read_lease_ms", &self.read_lease_ms)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::config::broker_key;

    fn place(settings: &[(&str, &str)]) -> Result<Option<PostgresPlace>, BrokerConfigError> {
        let given: BTreeMap<_, _> = settings.iter().copied().collect();
        let read = Reader(|name| {
            let key = broker_key(name).expect("a broker key");
            let text = given.get(name).copied().or(key.default)?;
            Some(key.parse(text).expect("a good value"))
        });
        PostgresPlace::read(&read)
    }

    #[test]
    fn a_host_is_what_makes_a_place() {
        assert_eq!(place(&[("postgres.user", "me")]), Ok(None));
        let found = place(&[("postgres.host", "db"), ("postgres.port", "6432")]);
        let found = found.expect("good").expect("a place");
        assert_eq!((found.host.as_str(), found.port), ("db", 6432));
        assert_eq!((found.user.as_str(), found.schema.as_str()), ("strandline", "strandline"));
        for key in ["storage.default", "meta.store"] {
            let error = place(&[(key, "postgres")]).expect_err("no place");
            assert_eq!(error.name, "postgres.host");
            assert!(error.why.contains(key), "{error}");
        }
    }

    #[test]
    fn a_password_has_one_origin_and_is_not_shown() {
        let host = ("postgres.host", "db");
        let found = place(&[host, ("postgres.password", "sesame")]).expect("good");
        assert!(!format!("{found:?}").contains("sesame"));
        let both = [host, ("postgres.password", "x"), ("postgres.password.file", "/run/secret")];
        assert_eq!(place(&both).expect_err("two").name, "postgres.password.file");
    }
}
