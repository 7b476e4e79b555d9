//! Which address a client is told to connect to.
//!
//! A wrong one strands the client: it asks for metadata for ever and never produces. So unless the
//! operator said otherwise each client is told the address that it demonstrably reached.

use std::fmt;
use std::net::SocketAddr;

/// Where clients should connect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoint {
    /// A host name or an address, without brackets.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

/// The endpoint for a client that reached us at `local`.
///
/// 1. `advertised.listeners` is used as it stands.
/// 2. Who came over loopback is told `localhost`, which works for IPv4 and IPv6.
/// 3. Everybody else is told the very address that was reached.
pub fn endpoint_for(explicit: Option<&Endpoint>, local: SocketAddr) -> Endpoint {
    if let Some(endpoint) = explicit {
        return endpoint.clone();
    }
    let ip = local.ip().to_canonical();
    let host = if ip.is_loopback() { "localhost".to_owned() } else { ip.to_string() };
    Endpoint { host, port: local.port() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(local: &str) -> String {
        let Endpoint { host, port } = endpoint_for(None, local.parse().unwrap());
        format!("{host} {port}")
    }

    #[test]
    fn each_client_is_told_the_address_that_it_reached() {
        assert_eq!(told("127.0.0.1:9092"), "localhost 9092");
        assert_eq!(told("[::1]:19092"), "localhost 19092");
        assert_eq!(told("192.168.1.7:9092"), "192.168.1.7 9092");
        assert_eq!(told("[::ffff:192.168.1.7]:9092"), "192.168.1.7 9092");
        assert_eq!(told("[2001:db8::7]:9092"), "2001:db8::7 9092");
    }

    #[test]
    fn endpoints_are_written_as_people_write_them() {
        let written = |host: &str| Endpoint { host: host.to_owned(), port: 9 }.to_string();
        assert_eq!(written("kafka"), "kafka:9");
        assert_eq!(written("2001:db8::7"), "[2001:db8::7]:9");
    }

    #[test]
    fn an_explicit_address_is_told_to_all() {
        let explicit = Endpoint { host: "kafka.example".to_owned(), port: 9 };
        assert_eq!(endpoint_for(Some(&explicit), "127.0.0.1:1".parse().unwrap()), explicit);
    }
}
