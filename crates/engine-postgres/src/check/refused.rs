//! Why nothing could be looked at, and what to do about it.

use super::{Check, quoted};
use crate::error::describe;
use crate::{OpenError, PostgresConfig};

/// The one check that a failure to connect comes to.
pub(super) fn told(config: &PostgresConfig, error: &OpenError) -> Check {
    let found = describe(error);
    match error {
        OpenError::Config(_) => Check::wrong("settings", found, "see the keys `postgres.*`"),
        OpenError::Password { .. } => {
            Check::wrong("password", found, "let postgres.password.file name a file that is there")
        }
        OpenError::Tls { reason, .. } => Check::wrong("tls", found, of_tls(reason)),
        OpenError::Refused { code, .. } => {
            let (name, remedy) = of_code(config, code);
            Check::wrong(name, found, remedy)
        }
        OpenError::Unfit(_) | OpenError::NewerSchema { .. } => {
            Check::wrong("server", found, "see docs/postgres.md")
        }
        OpenError::Unreachable { .. } | OpenError::Storage(_) => {
            let remedy =
                "see that the server runs, and that postgres.host and postgres.port are its";
            Check::wrong("connection", found, remedy)
        }
    }
}

fn of_tls(reason: &str) -> &'static str {
    if reason.contains("nobody that is trusted") {
        "let postgres.ssl.root.cert.file name the certificate of the authority that signed it"
    } else if reason.contains("another name") {
        "let postgres.host be a name of the certificate, or give the server one for this name"
    } else if reason.contains("does not speak TLS") {
        "turn `ssl` on in the server; postgres.ssl.mode=disable does without"
    } else if reason.contains("has expired") {
        "give the server a new certificate"
    } else if reason.contains("signs others") {
        "give the server a certificate of its own, which that one signs"
    } else {
        "see the keys `postgres.ssl.*`"
    }
}

/// By the server's own code for it.
fn of_code(config: &PostgresConfig, code: &str) -> (&'static str, String) {
    let (user, database) = (quoted(&config.user), quoted(&config.database));
    match code {
        "28P01" => {
            let remedy = format!(
                "check postgres.user and the password; a new one: ALTER ROLE {user} PASSWORD '…';"
            );
            ("login", remedy)
        }
        "28000" => {
            let remedy = format!(
                "CREATE ROLE {user} LOGIN PASSWORD '…'; or a line that lets it in, in pg_hba.conf"
            );
            ("login", remedy)
        }
        "3D000" => ("database", format!("CREATE DATABASE {database} OWNER {user};")),
        "42501" => ("rights", format!("GRANT CONNECT ON DATABASE {database} TO {user};")),
        _ => ("connection", "see the server's log".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::Verdict;

    #[test]
    fn the_servers_code_says_what_to_do() {
        let config = PostgresConfig::new();
        for (code, name, part) in [
            ("28P01", "login", "ALTER ROLE \"strandline\" PASSWORD"),
            ("28000", "login", "pg_hba.conf"),
            ("3D000", "database", "CREATE DATABASE \"strandline\" OWNER \"strandline\";"),
            ("42501", "rights", "GRANT CONNECT ON DATABASE"),
            ("XX000", "connection", "log"),
        ] {
            let (place, reason) = (config.place(), "no".to_owned());
            let error = OpenError::Refused { place, reason, code: code.to_owned() };
            let check = told(&config, &error);
            assert_eq!((check.name, check.verdict), (name, Verdict::Wrong));
            assert!(check.remedy.is_some_and(|remedy| remedy.contains(part)), "{code}");
        }
    }
}
