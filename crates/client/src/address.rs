//! Where a broker listens.

use std::fmt;
use std::str::FromStr;

/// A host and a port.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    host: String,
    port: u16,
}

/// The text is not `HOST`, `HOST:PORT` or `[IPV6]:PORT`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not an address (HOST:PORT): \"{0}\"")]
pub struct ParseAddressError(String);

impl Address {
    /// Kafka's port.
    pub const DEFAULT_PORT: u16 = 9092;

    /// `host` without brackets.
    pub fn new(host: impl Into<String>, port: u16) -> Self {
        Self { host: host.into(), port }
    }

    /// The host, without brackets.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The port.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The addresses of a list that is separated by commas; at least one.
    pub fn list(text: &str) -> Result<Vec<Self>, ParseAddressError> {
        text.split(',').map(|part| part.trim().parse()).collect()
    }
}

impl FromStr for Address {
    type Err = ParseAddressError;

    fn from_str(text: &str) -> Result<Self, ParseAddressError> {
        let wrong = || ParseAddressError(text.to_owned());
        // A listener's name in front, as in Kafka's own configuration, does no harm.
        let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
        let (host, port) = match rest.strip_prefix('[') {
            Some(rest) => match rest.split_once(']').ok_or_else(wrong)? {
                (host, "") => (host, None),
                (host, port) => (host, Some(port.strip_prefix(':').ok_or_else(wrong)?)),
            },
            // More than one colon without brackets: an IPv6 address without a port.
            None => match rest.rsplit_once(':') {
                Some((host, port)) if !host.contains(':') => (host, Some(port)),
                _ => (rest, None),
            },
        };
        let port = match port {
            None => Self::DEFAULT_PORT,
            Some(digits) => digits.parse().map_err(|_| wrong())?,
        };
        if host.is_empty() || host.contains(char::is_whitespace) || port == 0 {
            return Err(wrong());
        }
        Ok(Self::new(host, port))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read_as_people_write_them() {
        for (text, shown) in [
            ("localhost", "localhost:9092"),
            ("localhost:1234", "localhost:1234"),
            ("PLAINTEXT://kafka:9093", "kafka:9093"),
            ("[::1]:1234", "[::1]:1234"),
            ("[::1]", "[::1]:9092"),
            ("::1", "[::1]:9092"),
        ] {
            assert_eq!(
                text.parse::<Address>().map(|a| a.to_string()),
                Ok(shown.to_owned()),
                "{text}"
            );
        }
    }

    #[test]
    fn text_that_is_no_address_is_refused() {
        for text in
            ["", ":9092", "host:", "host:x", "host:0", "host:99999", "[::1", "[::1]x", "a b"]
        {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
        assert!(Address::list("a:1,,b:2").is_err());
        assert_eq!(Address::list("a:1, b:2").map(|list| list.len()), Ok(2));
    }
}
