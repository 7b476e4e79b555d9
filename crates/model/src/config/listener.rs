//! Listener addresses: `PLAINTEXT://host:port`.

use std::fmt;

/// What a listener speaks below Kafka's protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecurityProtocol {
    /// Nothing: plain TCP.
    Plaintext,
    /// TLS.
    Ssl,
    /// SASL over plain TCP.
    SaslPlaintext,
    /// SASL over TLS.
    SaslSsl,
}

impl SecurityProtocol {
    /// The protocol of Kafka's word.
    pub fn of_name(name: &str) -> Option<Self> {
        match name.to_ascii_uppercase().as_str() {
            "PLAINTEXT" => Some(Self::Plaintext),
            "SSL" => Some(Self::Ssl),
            "SASL_PLAINTEXT" => Some(Self::SaslPlaintext),
            "SASL_SSL" => Some(Self::SaslSsl),
            _ => None,
        }
    }
}

/// An address with the name of its listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listener {
    /// The name, in capitals.
    pub name: String,
    /// The host, an IPv6 address without brackets; `None` for every address of the machine.
    pub host: Option<String>,
    /// The port; 0 takes a free one.
    pub port: u16,
}

/// A text that is no listener.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenerError {
    text: String,
}

impl fmt::Display for ListenerError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\"{}\" is no listener; write NAME://host:port", self.text)
    }
}

impl std::error::Error for ListenerError {}

impl Listener {
    /// Reads `NAME://host:port`; the host may be empty, an IPv6 address is in brackets.
    pub fn parse(text: &str) -> Result<Self, ListenerError> {
        Self::split(text).ok_or_else(|| ListenerError { text: text.to_owned() })
    }

    fn split(text: &str) -> Option<Self> {
        let (name, address) = text.split_once("://")?;
        let (host, port) = address.rsplit_once(':')?;
        let host = match host.strip_prefix('[') {
            Some(rest) => rest.strip_suffix(']').filter(|host| host.contains(':'))?,
            None => Some(host).filter(|host| !host.contains([':', ']']))?,
        };
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
        let is_host = |c: char| is_name(c) || matches!(c, ':' | '%');
        if name.is_empty() || !name.chars().all(is_name) || !host.chars().all(is_host) {
            return None;
        }
        if port.is_empty() || !port.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        Some(Self {
            name: name.to_ascii_uppercase(),
            host: (!host.is_empty()).then(|| host.to_owned()),
            port: port.parse().ok()?,
        })
    }
}

impl fmt::Display for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = self.host.as_deref().unwrap_or_default();
        if host.contains(':') {
            write!(f, "{}://[{host}]:{}", self.name, self.port)
        } else {
            write!(f, "{}://{host}:{}", self.name, self.port)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_and_printed() {
        for (text, name, host, port) in [
            ("PLAINTEXT://:9092", "PLAINTEXT", None, 9092),
            ("PLAINTEXT://localhost:0", "PLAINTEXT", Some("localhost"), 0),
            ("INTERNAL_1://10.0.0.7:65535", "INTERNAL_1", Some("10.0.0.7"), 65535),
            ("PLAINTEXT://[::1]:9092", "PLAINTEXT", Some("::1"), 9092),
        ] {
            let listener = Listener::parse(text).expect("a listener");
            assert_eq!(listener.name, name);
            assert_eq!(listener.host.as_deref(), host);
            assert_eq!(listener.port, port);
            assert_eq!(listener.to_string(), text);
        }
        let lower = Listener::parse("plaintext://a:1").expect("a listener");
        assert_eq!(lower.to_string(), "PLAINTEXT://a:1");
    }

    #[test]
    fn other_texts_are_refused() {
        for text in [
            "",
            "foo",
            "localhost:9092",
            "://a:1",
            "PLAINTEXT://a",
            "PLAINTEXT://a:",
            "PLAINTEXT://a:+1",
            "PLAINTEXT://a:65536",
            "PLAINTEXT://::1:9092",
            "PLAINTEXT://[a]:9092",
            "PLAINTEXT://[::1:9092",
            "PLAIN TEXT://a:1",
            "PLAINTEXT://a b:1",
        ] {
            assert!(Listener::parse(text).is_err(), "{text}");
        }
    }
}
