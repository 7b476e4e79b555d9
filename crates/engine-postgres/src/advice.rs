//! What works but is not as it should be.

use std::path::Path;

use strandline_model::config::{PostgresTlsMode, is_on_this_machine};

use crate::PostgresConfig;
use crate::password::{Password, is_open_to_others};

/// What is right but not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    /// What, as a lower-case fact.
    pub message: String,
}

/// About secrets, and how they travel.
pub(crate) fn of_config(config: &PostgresConfig) -> Vec<Advice> {
    let advice = of_files(config).into_iter().chain(of_mode(config));
    advice.map(|message| Advice { message }).collect()
}

/// About files that everybody may read.
pub(crate) fn of_files(config: &PostgresConfig) -> Vec<String> {
    let password = config.password.as_ref().and_then(Password::file);
    let key = config.tls.client.as_ref().map(|client| Path::new(&client.key_file));
    let files = [("the password", password), ("the private key", key)];
    let open = files.into_iter().filter_map(|(what, file)| Some((what, file?)));
    open.filter(|(_, file)| is_open_to_others(file))
        .map(|(what, file)| {
            let file = file.display();
            format!("everybody on this machine can read {what}. file=`{file}`")
        })
        .collect()
}

/// About a network on which others may listen, or answer in the server's place.
pub(crate) fn of_mode(config: &PostgresConfig) -> Option<String> {
    if is_on_this_machine(&config.host) {
        return None;
    }
    let weakness = match config.tls.mode {
        PostgresTlsMode::Disable => "whoever is on the way reads and changes what is sent",
        PostgresTlsMode::Require => "whoever is on the way can take the server's place",
        PostgresTlsMode::VerifyCa | PostgresTlsMode::VerifyFull => return None,
    };
    let mode = config.tls.mode;
    Some(format!("{weakness}. postgres.ssl.mode=`{mode}`, wanted=`verify-full`"))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use strandline_model::config::PostgresTls;

    use super::*;

    #[test]
    fn a_password_that_all_can_read_is_told_without_it() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "open sesame").unwrap();
        let password = Some(Password::from_file(file.path()));
        let config = PostgresConfig { password, ..PostgresConfig::new() };
        assert_eq!(of_config(&config), []);
        std::fs::set_permissions(file.path(), std::fs::Permissions::from_mode(0o644)).unwrap();
        let told = of_config(&config);
        assert_eq!(told.len(), 1);
        assert!(told[0].message.starts_with("everybody"), "{told:?}");
        assert!(!told[0].message.contains("sesame"), "{told:?}");
    }

    #[test]
    fn a_network_that_protects_nothing_is_told() {
        for (host, mode, is_told) in [
            ("localhost", PostgresTlsMode::Disable, false),
            ("/run/postgresql", PostgresTlsMode::Disable, false),
            ("db", PostgresTlsMode::Disable, true),
            ("db", PostgresTlsMode::Require, true),
            ("db", PostgresTlsMode::VerifyCa, false),
            ("db", PostgresTlsMode::VerifyFull, false),
        ] {
            let tls = PostgresTls { mode, ..PostgresTls::disabled() };
            let config = PostgresConfig { host: host.to_owned(), tls, ..PostgresConfig::new() };
            assert_eq!(of_mode(&config).is_some(), is_told, "{host} {mode}");
        }
    }
}
