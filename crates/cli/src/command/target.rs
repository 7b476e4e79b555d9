//! The broker that a client command talks to, and what to say when that fails.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs, UdpSocket};
use std::time::Duration;

use clap::Args;
use strandline_client::{Address, Client, ClientError, Config, Origin};
use strandline_model::config::nearest;
use strandline_wire::ErrorCode;

use super::advice::advice;
use super::error_word::error_word;
use super::quote::quoted;
use crate::failure::{Exit, Failure};

const BOOTSTRAP_VARIABLE: &str = "STRANDLINE_BOOTSTRAP";
const HTTP_VARIABLE: &str = "STRANDLINE_HTTP";
const DEFAULT_BOOTSTRAP: &str = "localhost:9092";
const DEFAULT_HTTP: &str = "http://localhost:9644";

/// How long a question may take that only makes an error clearer.
const PROBE_TIMEOUT: Duration = Duration::from_millis(300);
/// How much of an answer to such a question is read.
const PROBE_BYTES_MAX: u64 = 4096;

/// Where brokers are.
#[derive(Clone, Debug, Args)]
pub(crate) struct Target {
    /// Kafka addresses to begin with: HOST:PORT, several with commas [default: localhost:9092]
    /// [env: STRANDLINE_BOOTSTRAP].
    #[arg(
        short,
        long,
        global = true,
        value_name = "ADDRESSES",
        visible_alias = "bootstrap-server"
    )]
    bootstrap: Option<String>,
    /// The HTTP address of a Strandline broker [default: http://localhost:9644]
    /// [env: STRANDLINE_HTTP].
    #[arg(long, global = true, value_name = "URL")]
    http_url: Option<String>,
}

/// Who chose the address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Chosen {
    Flag,
    Environment,
    Default,
}

impl fmt::Display for Chosen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Flag => "from -b",
            Self::Environment => "from STRANDLINE_BOOTSTRAP",
            Self::Default => "the default",
        })
    }
}

impl Target {
    fn chosen(&self) -> (String, Chosen) {
        if let Some(text) = &self.bootstrap {
            return (text.clone(), Chosen::Flag);
        }
        match std::env::var(BOOTSTRAP_VARIABLE) {
            Ok(text) if !text.is_empty() => (text, Chosen::Environment),
            _ => (DEFAULT_BOOTSTRAP.to_owned(), Chosen::Default),
        }
    }

    /// The HTTP address of a Strandline broker.
    pub(crate) fn http(&self) -> String {
        let variable = || std::env::var(HTTP_VARIABLE).ok().filter(|text| !text.is_empty());
        self.http_url.clone().or_else(variable).unwrap_or_else(|| DEFAULT_HTTP.to_owned())
    }

    /// Connects.
    pub(crate) async fn connect(&self) -> Result<Client, Failure> {
        let (bootstrap, _) = self.chosen();
        let config = Config::new(&bootstrap).map_err(|error| self.explain(&error.into()))?;
        Client::connect(config).await.map_err(|error| self.explain(&error))
    }

    /// What a failed call means for the person who typed the command.
    pub(crate) fn explain(&self, error: &ClientError) -> Failure {
        match error {
            ClientError::Unreachable { address, origin: Origin::Bootstrap, source } => {
                let (_, chosen) = self.chosen();
                let why = reason(source);
                let failure =
                    unreachable(format!("cannot reach Kafka at {address} ({chosen}): {why}"));
                self.with_probes(failure, address)
            }
            ClientError::Unreachable { address, origin: Origin::Advertised { by }, source } => {
                let why = reason(source);
                unreachable(format!(
                    "{by} answered, but it told us to connect to {address}, which does not work \
                     here: {why}"
                ))
                .hint(format!(
                    "the broker's advertised.listeners names {address}; add a listener for this \
                     network, or unset it (auto)"
                ))
                .hint("see: strandline explain advertised.listeners")
            }
            ClientError::Timeout { .. } | ClientError::Broken { .. } => {
                unreachable(error.to_string())
            }
            ClientError::Address(_) | ClientError::Request(_) => Failure::usage(error.to_string()),
            ClientError::Broker { code, .. } => {
                let exit = if is_passing(*code) { Exit::Unreachable } else { Exit::Failed };
                let mut failure = Failure::new(exit, error_word(*code), error.to_string());
                if let Some(info) = code.info() {
                    failure = failure.hint(info.meaning);
                    failure.hints.extend(advice(info.name).iter().map(|line| (*line).to_owned()));
                }
                failure.kafka_code(code.get())
            }
            ClientError::Garbled { .. } => {
                Failure::new(Exit::Failed, "not_kafka", error.to_string())
            }
            ClientError::Unsupported { .. } => {
                Failure::new(Exit::Failed, "unsupported", error.to_string())
            }
            ClientError::Records { .. } => {
                Failure::new(Exit::Failed, "unreadable_records", error.to_string())
            }
        }
    }

    /// A failure about a topic: when there is none of that name, with the one that may be meant.
    pub(crate) async fn explain_topic(
        &self,
        client: &mut Client,
        topic: &str,
        error: &ClientError,
    ) -> Failure {
        if error.code() != Some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION) {
            return named(self.explain(error), topic);
        }
        // Only to make the error clearer: without the list there is no suggestion.
        let known = client.cluster(None).await.map(|cluster| cluster.topics).unwrap_or_default();
        if known.iter().any(|other| other.name == topic) {
            return self.explain(error);
        }
        unknown_topic(topic, known.iter().map(|topic| topic.name.as_str()))
    }

    fn with_probes(&self, failure: Failure, tried: &Address) -> Failure {
        let http = self.http();
        if let Some(status) = readiness(&http) {
            return failure.hint(format!("a broker's HTTP address, {http}, answers: {status}"));
        }
        if tried.to_string() != DEFAULT_BOOTSTRAP && listens(DEFAULT_BOOTSTRAP) {
            let retry = format!("strandline -b {DEFAULT_BOOTSTRAP} topic list");
            return failure.hint(format!("something listens on {DEFAULT_BOOTSTRAP}; try  {retry}"));
        }
        if is_here(tried.host()) {
            return failure.hint("start a broker here: strandline serve");
        }
        failure.hint(format!("another address: -b HOST:PORT or {BOOTSTRAP_VARIABLE}"))
    }
}

/// The same failure with hints that can be typed as they are.
fn named(mut failure: Failure, topic: &str) -> Failure {
    for hint in &mut failure.hints {
        *hint = hint.replace(" TOPIC", &format!(" {}", quoted(topic)));
    }
    failure
}

/// The failure for a topic that is not there.
pub(crate) fn unknown_topic<'a>(topic: &str, known: impl Iterator<Item = &'a str>) -> Failure {
    let meant = nearest(topic, known);
    let meant = meant.map(|near| format!("did you mean \"{near}\"?   ")).unwrap_or_default();
    Failure::new(Exit::Failed, "unknown_topic", format!("topic \"{topic}\" does not exist"))
        .kafka_code(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION.get())
        .hint(format!(
            "{meant}list: strandline topic list    create: strandline topic create {}",
            quoted(topic)
        ))
}

fn unreachable(message: String) -> Failure {
    Failure::new(Exit::Unreachable, "unreachable", message)
}

/// Whether the broker is only not ready yet, so that trying again makes sense.
const fn is_passing(code: ErrorCode) -> bool {
    matches!(
        code,
        ErrorCode::LEADER_NOT_AVAILABLE
            | ErrorCode::BROKER_NOT_AVAILABLE
            | ErrorCode::COORDINATOR_NOT_AVAILABLE
            | ErrorCode::COORDINATOR_LOAD_IN_PROGRESS
            | ErrorCode::NOT_COORDINATOR
            | ErrorCode::NOT_CONTROLLER
            | ErrorCode::REQUEST_TIMED_OUT
    )
}

/// The system's word for an I/O error, without its number.
fn reason(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
        io::ErrorKind::TimedOut => "no answer in time".to_owned(),
        io::ErrorKind::HostUnreachable => "no route to the host".to_owned(),
        _ => error.to_string(),
    }
}

/// Whether a host is this machine: only its own addresses can be taken.
fn is_here(host: &str) -> bool {
    let Ok(mut addresses) = (host, 0).to_socket_addrs() else { return false };
    addresses.any(|address| UdpSocket::bind(address).is_ok())
}

fn listens(address: &str) -> bool {
    let addresses = address.to_socket_addrs().map(Iterator::collect::<Vec<_>>);
    addresses
        .unwrap_or_default()
        .iter()
        .any(|address| TcpStream::connect_timeout(address, PROBE_TIMEOUT).is_ok())
}

/// The first line of what a Strandline broker says about itself over HTTP, if one is there.
fn readiness(url: &str) -> Option<String> {
    let host = url.strip_prefix("http://")?.trim_end_matches('/');
    let address = host.to_socket_addrs().ok()?.next()?;
    let mut stream = TcpStream::connect_timeout(&address, PROBE_TIMEOUT).ok()?;
    stream.set_read_timeout(Some(PROBE_TIMEOUT)).ok()?;
    stream.set_write_timeout(Some(PROBE_TIMEOUT)).ok()?;
    let request = format!("GET /readyz HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = Vec::new();
    // A peer that neither ends nor speaks within the time has still said what was read.
    let _ = stream.take(PROBE_BYTES_MAX).read_to_end(&mut answer);
    let answer = String::from_utf8(answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.lines().next()?.split_once(' ')?.1;
    let first = body.lines().next().unwrap_or_default();
    Some(format!("{status} {first}").trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target() -> Target {
        Target { bootstrap: Some("a:1".to_owned()), http_url: None }
    }

    #[test]
    fn a_missing_topic_comes_with_the_one_that_was_meant() {
        assert_eq!(
            unknown_topic("ordres", ["orders", "clicks"].into_iter()).to_string(),
            "error: topic \"ordres\" does not exist\n  did you mean \"orders\"?   list: strandline \
             topic list    create: strandline topic create ordres"
        );
    }

    #[test]
    fn an_error_of_a_broker_comes_with_its_meaning_and_the_way_on() {
        let refused = |code| ClientError::Broker {
            subject: "topic orders".to_owned(),
            code,
            message: Some("64 is too many".to_owned()),
        };
        let failure = target().explain(&refused(ErrorCode::INVALID_REPLICATION_FACTOR));
        assert_eq!((failure.exit, failure.kafka_code), (Exit::Failed, Some(38)));
        assert_eq!(
            failure.to_string(),
            "error: topic orders: INVALID_REPLICATION_FACTOR (64 is too many)\n  The replication \
             factor is below 1 or above the number of brokers.\n  no more replicas than brokers: strandline cluster info"
        );
        let failure = target().explain(&refused(ErrorCode::COORDINATOR_NOT_AVAILABLE));
        assert_eq!(failure.exit, Exit::Unreachable, "it passes");
    }

    #[test]
    fn an_advertised_address_that_does_not_work_is_explained() {
        let error = ClientError::Unreachable {
            address: "kafka:9092".parse().expect("an address"),
            origin: Origin::Advertised { by: "localhost:9092".parse().expect("an address") },
            source: io::Error::other("does not resolve"),
        };
        let failure = target().explain(&error);
        assert_eq!(failure.exit, Exit::Unreachable);
        assert_eq!(
            failure.to_string(),
            "error: localhost:9092 answered, but it told us to connect to kafka:9092, which does \
             not work here: does not resolve\n  the broker's advertised.listeners names kafka:9092; \
             add a listener for this network, or unset it (auto)\n  \
             see: strandline explain advertised.listeners"
        );
    }

    #[test]
    fn an_unreachable_broker_says_who_chose_the_address() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("bound").port();
        drop(listener);
        let address = format!("127.0.0.1:{port}");
        let target = Target {
            bootstrap: Some(address.clone()),
            // Nobody answers there either.
            http_url: Some(format!("http://{address}")),
        };
        let error = ClientError::Unreachable {
            address: address.parse().expect("an address"),
            origin: Origin::Bootstrap,
            source: io::ErrorKind::ConnectionRefused.into(),
        };
        let failure = target.explain(&error);
        assert_eq!(
            failure.message,
            format!("cannot reach Kafka at {address} (from -b): connection refused")
        );
        assert_eq!(failure.hints.len(), 1);
    }

    #[test]
    fn a_broker_can_only_be_started_where_the_address_is() {
        for here in ["localhost", "127.0.0.1", "::1", "0.0.0.0"] {
            // A machine may have no IPv6.
            assert!(is_here(here) || here == "::1", "{here}");
        }
        // Addresses and names that are nobody's (RFC 5737, RFC 6761).
        for elsewhere in ["192.0.2.1", "nosuch.invalid"] {
            assert!(!is_here(elsewhere), "{elsewhere}");
        }
    }

    #[test]
    fn the_brokers_own_word_on_its_readiness_is_told() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a connection");
            let mut request = [0; 512];
            let length = stream.read(&mut request).expect("a request");
            stream
                .write_all(b"HTTP/1.1 503 Service Unavailable\r\n\r\nnot ready: recovery\n")
                .expect("sent");
            String::from_utf8_lossy(&request[..length]).into_owned()
        });
        assert_eq!(readiness(&url).as_deref(), Some("503 Service Unavailable not ready: recovery"));
        assert!(server.join().expect("served").starts_with("GET /readyz HTTP/1.1\r\n"));
    }
}
