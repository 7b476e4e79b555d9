//! What else is sent to a port of Kafka's by mistake.

use std::fmt;

/// Another protocol, by its first bytes.
///
/// They are no proof: a length of 369 MB begins as TLS does. So only what can't be followed anyway is
/// looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Foreign {
    /// A handshake of TLS.
    Tls,
    /// A request of HTTP.
    Http,
    /// The greeting of SSH.
    Ssh,
}

impl Foreign {
    pub(super) fn of(bytes: &[u8]) -> Option<Self> {
        match bytes.first_chunk()? {
            [0x16, 3, 0..=4, _] => Some(Self::Tls),
            b"GET " | b"HEAD" | b"POST" | b"PUT " | b"DELE" | b"OPTI" | b"PATC" | b"CONN"
            | b"PRI " => Some(Self::Http),
            b"SSH-" => Some(Self::Ssh),
            _ => None,
        }
    }
}

/// With what to do about it.
impl fmt::Display for Foreign {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tls => "this looks like TLS, and the listener is plain (security.protocol)",
            Self::Http => "this looks like HTTP, which has a port of its own (http.listeners)",
            Self::Ssh => "this looks like SSH",
        })
    }
}
