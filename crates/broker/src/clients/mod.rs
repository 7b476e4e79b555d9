//! Who is connected, and who never arrives.
//!
//! Each connection writes down what it is asked; [`Broker::clients`] reads it. A client that keeps
//! asking where to connect is warned of once: see [`stranded`].
//!
//! # Invariants
//! - A request costs some atomic writes; locks are taken when a connection opens, closes, asks for
//!   metadata or does its first work.

mod connected;
mod stranded;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use strandline_model::Timestamp;
use strandline_wire::{ApiKey, ErrorCode, metadata};

use crate::advertise::Endpoint;
use crate::{Broker, Peer};
use connected::Connected;
use stranded::{ClientKey, Seekers};

/// Stranded clients that are known. Reached: the one that was heard of longest ago is forgotten.
const STRANDED_MAX: usize = 1_000;
/// How long a stranded client is shown that is not heard of any more, in milliseconds.
const SHOWN_MS: i64 = 3_600_000;

/// A client at one moment.
#[derive(Clone, Debug)]
pub struct ClientStatus {
    /// How it calls itself; empty when it does not say.
    pub client_id: String,
    /// Its library; empty when it does not say.
    pub software_name: String,
    /// The version of its library; empty when it does not say.
    pub software_version: String,
    /// Its address.
    pub remote: SocketAddr,
    /// Our address, as it reached us.
    pub reached: SocketAddr,
    /// Where it is told to connect.
    pub told: String,
    /// When it connected.
    pub connected_at: Timestamp,
    /// How many requests it has made on this connection.
    pub requests: u64,
    /// Its last request, and when that came.
    pub last_request: Option<(String, Timestamp)>,
    /// Whether the connection is open. Only stranded clients are shown without one.
    pub is_connected: bool,
    /// Whether it asks for addresses again and again without going to one of them.
    pub is_stranded: bool,
}

/// All connections, and what is remembered of clients beyond them.
#[derive(Debug, Default)]
pub(crate) struct Clients {
    open: Mutex<Open>,
    seekers: Mutex<Seekers>,
    /// Stranded clients as they were heard of last.
    stranded: Mutex<BTreeMap<ClientKey, (Timestamp, ClientStatus)>>,
}

#[derive(Debug, Default)]
struct Open {
    next_id: u64,
    connections: BTreeMap<u64, Arc<Connected>>,
}

/// A connection's own entry.
#[derive(Debug)]
pub(crate) struct ClientEntry {
    id: u64,
    connected: Arc<Connected>,
}

/// What a request for metadata says about whoever makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MetadataQuestion {
    /// It may be looking for its way.
    TheWay,
    /// It lists all topics.
    Everything,
    /// It waits for a topic.
    AMissingTopic,
}

/// The two clocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Now {
    pub(crate) wall: Timestamp,
    pub(crate) monotonic: Duration,
}

impl Clients {
    /// A connection that was just accepted.
    pub(crate) fn open(&self, peer: Peer, now: Now) -> ClientEntry {
        let connected = Arc::new(Connected::new(peer, now.wall, now.monotonic));
        let mut open = self.open.lock();
        let id = open.next_id;
        open.next_id += 1;
        open.connections.insert(id, Arc::clone(&connected));
        ClientEntry { id, connected }
    }

    /// Notes a request.
    pub(crate) fn request(
        &self,
        entry: &ClientEntry,
        key: ApiKey,
        client_id: Option<&str>,
        at: Duration,
    ) {
        if entry.connected.request(key, client_id, at) {
            let key = entry.connected.key();
            self.seekers.lock().trust(&key, millis(at));
            self.stranded.lock().remove(&key);
        }
    }

    /// Notes how a client's library calls itself.
    pub(crate) fn software(entry: &ClientEntry, name: &str, version: &str) {
        entry.connected.software_is(name, version);
    }

    /// Notes that a client was told where to connect.
    pub(crate) fn asked(
        &self,
        entry: &ClientEntry,
        question: MetadataQuestion,
        told: &Endpoint,
        now: Now,
    ) {
        let connected = &entry.connected;
        match question {
            MetadataQuestion::AMissingTopic => {}
            MetadataQuestion::Everything => {
                connected.lists();
                self.seekers.lock().trust(&connected.key(), millis(now.monotonic));
            }
            MetadataQuestion::TheWay if connected.is_no_seeker() || is_own(connected) => {}
            MetadataQuestion::TheWay => {
                connected.asks();
                let key = connected.key();
                let too_often = self.seekers.lock().asks(&key, millis(now.monotonic));
                if too_often && !self.works_elsewhere(connected) {
                    self.strand(key, connected, told, now);
                }
            }
        }
    }

    /// A connection that is closed.
    pub(crate) fn close(&self, entry: &ClientEntry, told: &Endpoint, now: Now) {
        self.open.lock().connections.remove(&entry.id);
        let connected = &entry.connected;
        if !connected.only_asked() || asks_often(connected) {
            return;
        }
        let key = connected.key();
        let too_often = self.seekers.lock().leaves(&key, millis(now.monotonic));
        if too_often && !self.works_elsewhere(connected) {
            self.strand(key, connected, told, now);
        }
    }

    /// Whether the same client works on another connection.
    fn works_elsewhere(&self, connected: &Connected) -> bool {
        let open = self.open.lock();
        let mut others = open.connections.values();
        others.any(|other| other.has_arrived() && other.is_same_client(connected))
    }

    /// Notes that a client is stranded, and warns of it when that is new.
    fn strand(&self, key: ClientKey, connected: &Connected, told: &Endpoint, now: Now) {
        let status = ClientStatus { is_stranded: true, ..status(connected, told, false) };
        let mut stranded = self.stranded.lock();
        if !stranded.contains_key(&key) && stranded.len() >= STRANDED_MAX {
            let oldest = stranded.iter().min_by_key(|(_, (heard, _))| *heard);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                stranded.remove(&oldest);
            }
        }
        let known = stranded.insert(key, (now.wall, status));
        drop(stranded);
        if known.is_some() {
            return;
        }
        let (software, version) = connected.software();
        tracing::warn!(
            client_id = connected.client_id(),
            software,
            version,
            address = %connected.remote().ip(),
            reached = %connected.peer.local,
            %told,
            "client asks where to connect and never arrives there: the address that it was told does \
             not work where it is. Tell clients one that does: \
             -c advertised.listeners=PLAINTEXT://HOST:PORT"
        );
    }

    /// How many clients are stranded.
    pub(crate) fn stranded_count(&self, now: Timestamp) -> usize {
        let stranded = self.stranded.lock();
        stranded.values().filter(|(heard, _)| now.millis_since(*heard) <= SHOWN_MS).count()
    }

    /// Every client, the stranded first.
    fn list(&self, now: Timestamp, told: impl Fn(&Peer) -> Endpoint) -> Vec<ClientStatus> {
        let connected: Vec<Arc<Connected>> =
            self.open.lock().connections.values().cloned().collect();
        let mut stranded = self.stranded.lock().clone();
        stranded.retain(|_, (heard, _)| now.millis_since(*heard) <= SHOWN_MS);
        let mut clients = Vec::new();
        let mut shown = Vec::new();
        for connected in &connected {
            let key = connected.key();
            let is_stranded = !connected.has_arrived() && stranded.contains_key(&key);
            let status = status(connected, &told(&connected.peer), true);
            clients.push(ClientStatus { is_stranded, ..status });
            if is_stranded {
                shown.push(key);
            }
        }
        stranded.retain(|key, _| !shown.contains(key));
        clients.extend(stranded.into_values().map(|(_, status)| status));
        clients.sort_by_key(|one| !one.is_stranded);
        clients
    }
}

impl Broker {
    /// Who is connected, and who was stranded within the last hour; the stranded first.
    pub fn clients(&self) -> Vec<ClientStatus> {
        self.client_book().list(self.environment().now(), |peer| self.endpoint_for(peer))
    }

    /// How many clients are stranded.
    pub fn stranded_client_count(&self) -> usize {
        self.client_book().stranded_count(self.environment().now())
    }
}

impl MetadataQuestion {
    /// `asks_for_all` topics, and was answered so.
    pub(crate) fn of(asks_for_all: bool, response: &metadata::Response) -> Self {
        let none = ErrorCode::NONE.get();
        if asks_for_all {
            Self::Everything
        } else if response.topics.iter().any(|topic| topic.error_code != none) {
            Self::AMissingTopic
        } else {
            Self::TheWay
        }
    }
}

fn status(connected: &Connected, told: &Endpoint, is_connected: bool) -> ClientStatus {
    let (name, version) = connected.software();
    ClientStatus {
        client_id: connected.client_id().to_owned(),
        software_name: name.to_owned(),
        software_version: version.to_owned(),
        remote: connected.remote(),
        reached: connected.peer.local,
        told: told.to_string(),
        connected_at: connected.since,
        requests: connected.requests(),
        last_request: connected.last_request(),
        is_connected,
        is_stranded: false,
    }
}

/// Whether a closed connection tells nothing of its client: librdkafka and what is built on it
/// (`confluent-kafka-python 2.16.1-rdkafka-2.16.0`) ask often enough to be known by that, and are what
/// tools that look once are made of.
fn asks_often(connected: &Connected) -> bool {
    let (name, version) = connected.software();
    name.contains("rdkafka") || version.contains("rdkafka")
}

/// Our own commands say themselves when an address does not work.
fn is_own(connected: &Connected) -> bool {
    connected.software().0 == "strandline"
}

fn millis(monotonic: Duration) -> u64 {
    u64::try_from(monotonic.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
