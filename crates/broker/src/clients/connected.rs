//! What is known of one connection, written by the connection and read by whoever asks.

use std::net::SocketAddr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicI16, AtomicU64, Ordering};
use std::time::Duration;

use strandline_model::Timestamp;
use strandline_wire::ApiKey;

use super::stranded::ClientKey;
use crate::Peer;

/// Bytes that are kept of what a client calls itself. What is longer is cut.
const NAME_BYTES_MAX: usize = 256;

/// One connection.
#[derive(Debug)]
pub(super) struct Connected {
    pub(super) peer: Peer,
    pub(super) since: Timestamp,
    /// The same moment on the clock that never goes back.
    opened: Duration,
    client_id: OnceLock<Box<str>>,
    software: OnceLock<(Box<str>, Box<str>)>,
    requests: AtomicU64,
    last: AtomicI16,
    /// Milliseconds from the opening to the last request.
    last_ms: AtomicU64,
    /// It asked where to connect.
    asked: AtomicBool,
    /// It asked for all topics, as who lists them does.
    lists: AtomicBool,
    /// It did something that only a client does which has arrived.
    arrived: AtomicBool,
}

impl Connected {
    pub(super) fn new(peer: Peer, since: Timestamp, opened: Duration) -> Self {
        Self {
            peer,
            since,
            opened,
            client_id: OnceLock::new(),
            software: OnceLock::new(),
            requests: AtomicU64::new(0),
            last: AtomicI16::new(-1),
            last_ms: AtomicU64::new(0),
            asked: AtomicBool::new(false),
            lists: AtomicBool::new(false),
            arrived: AtomicBool::new(false),
        }
    }

    /// Notes a request; whether it is the first that shows that the client has arrived.
    pub(super) fn request(&self, key: ApiKey, client_id: Option<&str>, at: Duration) -> bool {
        self.requests.fetch_add(1, Ordering::Relaxed);
        self.last.store(key.number(), Ordering::Relaxed);
        let after = at.saturating_sub(self.opened).as_millis();
        self.last_ms.store(u64::try_from(after).unwrap_or(u64::MAX), Ordering::Relaxed);
        if let Some(client_id) = client_id {
            // The first name stays.
            self.client_id.get_or_init(|| cut(client_id));
        }
        let is_new = !is_looking(key) && !self.arrived.load(Ordering::Relaxed);
        if is_new {
            self.arrived.store(true, Ordering::Relaxed);
        }
        is_new
    }

    pub(super) fn software_is(&self, name: &str, version: &str) {
        // A second ApiVersions of the same connection says the same.
        self.software.get_or_init(|| (cut(name), cut(version)));
    }

    pub(super) fn asks(&self) {
        self.asked.store(true, Ordering::Relaxed);
    }

    pub(super) fn lists(&self) {
        self.lists.store(true, Ordering::Relaxed);
    }

    /// Whether it asked where to connect and nothing else.
    pub(super) fn only_asked(&self) -> bool {
        let is = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        is(&self.asked) && !is(&self.lists) && !is(&self.arrived)
    }

    /// Whether what it asks says nothing about whether it has arrived.
    pub(super) fn is_no_seeker(&self) -> bool {
        self.lists.load(Ordering::Relaxed) || self.has_arrived()
    }

    pub(super) fn has_arrived(&self) -> bool {
        self.arrived.load(Ordering::Relaxed)
    }

    pub(super) fn client_id(&self) -> &str {
        self.client_id.get().map_or("", AsRef::as_ref)
    }

    pub(super) fn software(&self) -> (&str, &str) {
        self.software.get().map_or(("", ""), |(name, version)| (name.as_ref(), version.as_ref()))
    }

    pub(super) fn requests(&self) -> u64 {
        self.requests.load(Ordering::Relaxed)
    }

    pub(super) fn last_request(&self) -> Option<(String, Timestamp)> {
        let name = strandline_wire::api_name(self.last.load(Ordering::Relaxed))?;
        let after = i64::try_from(self.last_ms.load(Ordering::Relaxed)).unwrap_or(i64::MAX);
        Some((name, self.since.plus_millis(after)))
    }

    pub(super) fn is_same_client(&self, other: &Self) -> bool {
        self.remote().ip() == other.remote().ip() && self.client_id() == other.client_id()
    }

    pub(super) fn key(&self) -> ClientKey {
        ClientKey { address: self.remote().ip(), client_id: self.client_id().to_owned() }
    }

    /// The client's address as people write it.
    pub(super) fn remote(&self) -> SocketAddr {
        SocketAddr::new(self.peer.remote.ip().to_canonical(), self.peer.remote.port())
    }
}

/// What clients ask before they know where to go. All else is asked where they were sent to.
const fn is_looking(key: ApiKey) -> bool {
    matches!(key, ApiKey::ApiVersions | ApiKey::Metadata | ApiKey::FindCoordinator)
}

/// At most [`NAME_BYTES_MAX`] bytes of a name.
fn cut(name: &str) -> Box<str> {
    name[..name.floor_char_boundary(NAME_BYTES_MAX)].into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_are_cut_between_characters() {
        assert_eq!(cut("app").as_ref(), "app");
        assert_eq!(cut(&"ü".repeat(200)).len(), NAME_BYTES_MAX);
        assert_eq!(cut(&format!("x{}", "ü".repeat(200))).len(), NAME_BYTES_MAX - 1);
    }
}
