//! Why a handshake was refused, in words that say what to do.

use std::error::Error as _;
use std::io;

use rustls::{CertificateError, Error};

/// As the client of PostgreSQL says that the server answered "no" to the request for TLS.
const NO_TLS: &str = "server does not support TLS";

/// Why TLS was refused, by the server or by us; `None` for any other failure, such as a network that
/// broke during the handshake: that one may pass.
pub(crate) fn refusal(error: &tokio_postgres::Error) -> Option<String> {
    let mut cause = error.source();
    while let Some(one) = cause {
        if let Some(failure) = one.downcast_ref::<io::Error>() {
            let inner = failure.get_ref()?;
            if let Some(error) = inner.downcast_ref::<Error>() {
                return Some(told(error));
            }
            let is_no_name = failure.kind() == io::ErrorKind::InvalidInput;
            return is_no_name.then(|| format!("the host is no name that TLS knows: {inner}"));
        }
        if one.to_string() == NO_TLS {
            return Some("the server does not speak TLS".to_owned());
        }
        cause = one.source();
    }
    None
}

fn told(error: &Error) -> String {
    match error {
        Error::InvalidCertificate(why) => told_of_certificate(why),
        Error::AlertReceived(alert) => format!("the server broke the handshake off: {alert:?}"),
        error => format!("the handshake failed: {error}"),
    }
}

fn told_of_certificate(why: &CertificateError) -> String {
    match why {
        CertificateError::UnknownIssuer => {
            "the server's certificate is signed by nobody that is trusted here".to_owned()
        }
        CertificateError::BadSignature => {
            "the server's certificate is signed by nobody that is trusted here: the authority of \
             that name has another key"
                .to_owned()
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            format!("the server's certificate has expired: {why}")
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            format!("the server's certificate is for another name: {why}")
        }
        CertificateError::Other(other) if format!("{other:?}").contains("CaUsedAsEndEntity") => {
            "the server's certificate is one that signs others, and not a server's".to_owned()
        }
        why => format!("the server's certificate is not accepted: {why}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_says_whose_fault_it_is() {
        for (error, part) in [
            (CertificateError::UnknownIssuer, "nobody that is trusted here"),
            (CertificateError::BadSignature, "nobody that is trusted here"),
            (CertificateError::Expired, "has expired"),
            (CertificateError::NotValidForName, "for another name"),
            (CertificateError::BadEncoding, "is not accepted"),
        ] {
            let text = told(&Error::InvalidCertificate(error));
            assert!(text.starts_with("the server's certificate") && text.contains(part), "{text}");
        }
        let text = told(&Error::AlertReceived(rustls::AlertDescription::CertificateRequired));
        assert_eq!(text, "the server broke the handshake off: CertificateRequired");
    }
}
