//! How connections to the database are encrypted, and what of its server is verified.

use core::net::IpAddr;
use std::fmt;

use super::Value;
use super::broker_config::BrokerConfigError;
use super::typed::Reader;

/// The words of `postgres.ssl.mode`: libpq's, without those that let the server choose.
pub(super) const MODES: &[&str] = &["auto", "disable", "require", "verify-ca", "verify-full"];

const MODE: &str = "postgres.ssl.mode";
const ROOT: &str = "postgres.ssl.root.cert.file";
const CERT: &str = "postgres.ssl.cert.file";
const KEY: &str = "postgres.ssl.key.file";

/// The `postgres.ssl.*` keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PostgresTls {
    /// `postgres.ssl.mode`, with `auto` worked out.
    pub mode: PostgresTlsMode,
    /// `postgres.ssl.root.cert.file`; `None`: the roots of the system.
    pub root_cert_file: Option<String>,
    /// `postgres.ssl.cert.file` and `postgres.ssl.key.file`: who we are.
    pub client: Option<ClientCertificate>,
}

/// A client's certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientCertificate {
    /// The PEM file of the certificate and those between it and its root.
    pub cert_file: String,
    /// The PEM file of its private key.
    pub key_file: String,
}

/// What is asked of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PostgresTlsMode {
    /// Nothing is encrypted.
    Disable,
    /// Encrypted, and the server may be anybody.
    Require,
    /// Its certificate has a root that is trusted.
    VerifyCa,
    /// Its certificate also names the host that was asked for.
    VerifyFull,
}

impl PostgresTlsMode {
    /// As the key spells it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Disable => "disable",
            Self::Require => "require",
            Self::VerifyCa => "verify-ca",
            Self::VerifyFull => "verify-full",
        }
    }
}

impl fmt::Display for PostgresTlsMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl PostgresTls {
    /// Nothing is encrypted.
    pub const fn disabled() -> Self {
        Self { mode: PostgresTlsMode::Disable, root_cert_file: None, client: None }
    }

    pub(super) fn read<F: Fn(&str) -> Option<Value>>(
        read: &Reader<F>,
        host: &str,
    ) -> Result<Self, BrokerConfigError> {
        let wrong = |name: &'static str, why: String| Err(BrokerConfigError { name, why });
        let word = read.text(MODE);
        let mode = match word.as_str() {
            "disable" => PostgresTlsMode::Disable,
            "require" => PostgresTlsMode::Require,
            "verify-ca" => PostgresTlsMode::VerifyCa,
            "verify-full" => PostgresTlsMode::VerifyFull,
            _ if is_on_this_machine(host) => PostgresTlsMode::Disable,
            _ => PostgresTlsMode::VerifyFull,
        };
        if is_socket(host) && mode != PostgresTlsMode::Disable {
            return wrong(MODE, format!("is {word}, and a Unix socket carries no TLS"));
        }
        let files = [ROOT, CERT, KEY].map(|name| (name, read.text_or_unset(name)));
        let given = files.iter().find(|(_, file)| file.is_some());
        if let (PostgresTlsMode::Disable, Some((name, _))) = (mode, given) {
            let why = format!("is set, and nothing is encrypted: {MODE} is {word}");
            return wrong(name, why);
        }
        let [(_, root_cert_file), (_, cert), (_, key)] = files;
        if mode == PostgresTlsMode::Require && root_cert_file.is_some() {
            let why = format!("is set, and {MODE}={mode} verifies nothing; set verify-full");
            return wrong(ROOT, why);
        }
        let client = match (cert, key) {
            (Some(cert_file), Some(key_file)) => Some(ClientCertificate { cert_file, key_file }),
            (Some(_), None) => return wrong(CERT, format!("is set, and {KEY} is not")),
            (None, Some(_)) => return wrong(KEY, format!("is set, and {CERT} is not")),
            (None, None) => None,
        };
        Ok(Self { mode, root_cert_file, client })
    }
}

/// Whether what is sent to the host does not leave this machine.
pub fn is_on_this_machine(host: &str) -> bool {
    let is_loopback = || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    is_socket(host) || host.eq_ignore_ascii_case("localhost") || is_loopback()
}

fn is_socket(host: &str) -> bool {
    host.starts_with('/')
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::config::broker_key;

    fn tls(host: &str, settings: &[(&str, &str)]) -> Result<PostgresTls, BrokerConfigError> {
        let given: BTreeMap<_, _> = settings.iter().copied().collect();
        let read = Reader(|name| {
            let key = broker_key(name).expect("a broker key");
            let text = given.get(name).copied().or(key.default)?;
            Some(key.parse(text).expect("a good value"))
        });
        PostgresTls::read(&read, host)
    }

    #[test]
    fn what_leaves_the_machine_is_verified_unless_somebody_says_otherwise() {
        for (host, settings, expected) in [
            ("db.example.org", &[][..], "verify-full"),
            ("10.0.0.7", &[], "verify-full"),
            ("localhost", &[], "disable"),
            ("127.0.0.1", &[], "disable"),
            ("::1", &[], "disable"),
            ("/run/postgresql", &[], "disable"),
            ("/run/postgresql", &[(MODE, "disable")], "disable"),
            ("localhost", &[(MODE, "verify-full")], "verify-full"),
            ("db", &[(MODE, "verify-ca")], "verify-ca"),
            ("db", &[(MODE, "require")], "require"),
            ("db", &[(MODE, "disable")], "disable"),
        ] {
            let found = tls(host, settings).expect("good").mode.name();
            assert_eq!(found, expected, "{host} {settings:?}");
        }
    }

    #[test]
    fn each_word_of_the_key_is_a_mode() {
        for word in MODES {
            let found = tls("db", &[(MODE, word)]).expect("good").mode;
            assert!(*word == "auto" || found.name() == *word, "{word}");
        }
        assert!(broker_key(MODE).expect("a key").parse("prefer").is_err(), "no downgrade");
    }

    #[test]
    fn what_would_protect_less_than_it_seems_is_refused() {
        for (host, settings, at) in [
            ("/run/postgresql", &[(MODE, "verify-full")][..], MODE),
            ("db", &[(MODE, "disable"), (ROOT, "ca.pem")], ROOT),
            ("localhost", &[(ROOT, "ca.pem")], ROOT),
            ("db", &[(MODE, "require"), (ROOT, "ca.pem")], ROOT),
            ("db", &[(CERT, "me.pem")], CERT),
            ("db", &[(KEY, "me.key")], KEY),
        ] {
            let error = tls(host, settings).expect_err("refused");
            assert_eq!(error.name, at, "{host} {settings:?}: {}", error.why);
        }
        let settings = [(ROOT, "ca.pem"), (CERT, "me.pem"), (KEY, "me.key")];
        let found = tls("db", &settings).expect("good");
        assert_eq!(found.root_cert_file.as_deref(), Some("ca.pem"));
        assert_eq!(found.client.expect("both").key_file, "me.key");
    }
}
