//! TLS to the database: what is trusted, who we are, and why a handshake was refused.
//!
//! # Invariants
//! - A mode other than `disable` never ends in a connection that is not encrypted.
//! - Files are read for each new connection, so that new certificates need no restart.

mod refusal;
mod verify;

use std::path::Path;
use std::sync::{Arc, OnceLock};

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use strandline_model::config::{ClientCertificate, PostgresTls, PostgresTlsMode};
use tokio_postgres_rustls::MakeRustlsConnect;

pub(crate) use refusal::refusal;
use verify::Lenient;

/// What connections are made with.
#[derive(Debug)]
pub(crate) struct Tls {
    asked: PostgresTls,
    /// The roots of the system, which are many: read once.
    system_roots: OnceLock<Arc<RootCertStore>>,
}

impl Tls {
    pub(crate) fn new(asked: PostgresTls) -> Self {
        Self { asked, system_roots: OnceLock::new() }
    }

    /// Whether nothing is encrypted.
    pub(crate) fn is_disabled(&self) -> bool {
        self.asked.mode == PostgresTlsMode::Disable
    }

    /// What makes a handshake; `None` when nothing is to be encrypted. Reads files. `Err` says what is
    /// wrong with one.
    pub(crate) fn connector(&self) -> Result<Option<MakeRustlsConnect>, String> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let verifier: Arc<dyn ServerCertVerifier> = match self.asked.mode {
            PostgresTlsMode::Disable => return Ok(None),
            PostgresTlsMode::Require => Arc::new(Lenient::anybody(&provider)),
            PostgresTlsMode::VerifyCa => Arc::new(Lenient::any_name(&provider, self.roots()?)),
            PostgresTlsMode::VerifyFull => self.strict(&provider)?,
        };
        let builder = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let config = match &self.asked.client {
            None => builder.with_no_client_auth(),
            Some(ClientCertificate { cert_file, key_file }) => {
                let chain = certificates(cert_file)?;
                let key = PrivateKeyDer::from_pem_file(key_file);
                let key = key.map_err(|error| unreadable("private key", key_file, &error))?;
                builder.with_client_auth_cert(chain, key).map_err(|error| {
                    format!("certificate and key do not fit. certificate=`{cert_file}`, key=`{key_file}`, reason=`{error}`")
                })?
            }
        };
        Ok(Some(MakeRustlsConnect::new(config)))
    }

    fn strict(&self, provider: &Arc<CryptoProvider>) -> Result<Arc<WebPkiServerVerifier>, String> {
        let provider = Arc::clone(provider);
        WebPkiServerVerifier::builder_with_provider(self.roots()?, provider)
            .build()
            .map_err(|error| error.to_string())
    }

    fn roots(&self) -> Result<Arc<RootCertStore>, String> {
        let Some(file) = &self.asked.root_cert_file else {
            if let Some(roots) = self.system_roots.get() {
                return Ok(Arc::clone(roots));
            }
            let roots = system_roots()?;
            return Ok(Arc::clone(self.system_roots.get_or_init(|| roots)));
        };
        let mut roots = RootCertStore::empty();
        for certificate in certificates(file)? {
            roots.add(certificate).map_err(|error| {
                format!("a root certificate can't be used. file=`{file}`, reason=`{error}`")
            })?;
        }
        Ok(Arc::new(roots))
    }
}

fn system_roots() -> Result<Arc<RootCertStore>, String> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    let (used, _) = roots.add_parsable_certificates(found.certs);
    if used > 0 {
        return Ok(Arc::new(roots));
    }
    let why = found.errors.first().map(|error| format!(", reason=`{error}`")).unwrap_or_default();
    Err(format!("this system has no root certificates: name a file of them{why}"))
}

fn certificates(file: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    let all = CertificateDer::pem_file_iter(Path::new(file)).and_then(Iterator::collect);
    let all: Vec<_> = all.map_err(|error| unreadable("certificate", file, &error))?;
    if all.is_empty() {
        return Err(format!("the file holds no certificate. file=`{file}`"));
    }
    Ok(all)
}

fn unreadable(what: &str, file: &str, error: &rustls::pki_types::pem::Error) -> String {
    use rustls::pki_types::pem::Error;
    match error {
        Error::NoItemsFound => {
            format!("the file holds no {what}, or one that is encrypted. file=`{file}`")
        }
        Error::Io(error) => format!("a {what} can't be read. file=`{file}`, reason=`{error}`"),
        error => format!("a {what} can't be read. file=`{file}`, reason=`{error}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(root: Option<&Path>, client: Option<(&Path, &Path)>) -> Result<(), String> {
        let text = |path: &Path| path.to_str().expect("plain names").to_owned();
        let client = client
            .map(|(cert, key)| ClientCertificate { cert_file: text(cert), key_file: text(key) });
        let mode = PostgresTlsMode::VerifyCa;
        let root_cert_file = root.map(text);
        Tls::new(PostgresTls { mode, root_cert_file, client }).connector().map(drop)
    }

    #[test]
    fn a_file_that_is_wrong_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).unwrap();
            path
        };
        let empty = file("empty.pem", "nothing here\n");
        let torn = file("torn.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n");
        let fake =
            file("fake.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
        let absent = folder.path().join("absent.pem");
        for path in [&empty, &torn, &fake, &absent] {
            let error = with(Some(path), None).unwrap_err();
            assert!(error.contains(path.to_str().unwrap()), "{error}");
        }
    }

    #[test]
    fn nothing_is_read_when_nothing_is_encrypted() {
        assert!(Tls::new(PostgresTls::disabled()).connector().unwrap().is_none());
    }
}
