//! Raw frames over a blocking socket, with deadlines.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// How long an answer may take; nothing after that is silence.
const ANSWER: Duration = Duration::from_secs(10);
/// Responses are small here; a larger claim is garbage.
const RESPONSE_BYTES_MAX: usize = 64 << 20;

/// What a broker does with some bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reply {
    /// A frame, without its length.
    Frame(Vec<u8>),
    /// It closes the connection.
    Closed,
    /// Nothing, for as long as we wait.
    Silence,
}

/// A connection to a broker.
#[derive(Debug)]
pub(crate) struct Socket(TcpStream);

impl Socket {
    pub(crate) fn connect(address: &str) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(ANSWER))?;
        stream.set_write_timeout(Some(ANSWER))?;
        Ok(Self(stream))
    }

    /// Writes a frame: its length, then `body`.
    pub(crate) fn send(&mut self, body: &[u8]) -> bool {
        let length = i32::try_from(body.len()).expect("requests are small here");
        let mut frame = length.to_be_bytes().to_vec();
        frame.extend_from_slice(body);
        self.send_raw(&frame)
    }

    /// Writes bytes that need not be a frame. False when the peer has closed.
    pub(crate) fn send_raw(&mut self, bytes: &[u8]) -> bool {
        self.0.write_all(bytes).is_ok()
    }

    /// The next frame, or what comes instead, within `patience`.
    pub(crate) fn receive(&mut self, patience: Duration) -> Reply {
        // A timeout that can't be set would only make the test slower.
        drop(self.0.set_read_timeout(Some(patience.min(ANSWER))));
        let mut length = [0; 4];
        if let Err(reply) = self.fill(&mut length) {
            return reply;
        }
        let length = usize::try_from(i32::from_be_bytes(length)).unwrap_or(usize::MAX);
        if length > RESPONSE_BYTES_MAX {
            return Reply::Frame(b"a length that is no length".to_vec());
        }
        let mut frame = vec![0; length];
        match self.fill(&mut frame) {
            Ok(()) => Reply::Frame(frame),
            Err(reply) => reply,
        }
    }

    fn fill(&mut self, buf: &mut [u8]) -> Result<(), Reply> {
        self.0.read_exact(buf).map_err(|error| match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => Reply::Silence,
            _ => Reply::Closed,
        })
    }
}
