//! The broker under attack, in a process of its own.

use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use strandline_wire::ApiKey;

use crate::honest::Honest;

/// What the broker may ever hold, in KiB.
const MEMORY_MAX_KIB: u64 = 256 * 1024;
/// Descriptors that the largest test needs, and those that run beside it.
const DESCRIPTORS_MIN: u64 = 15_000;
/// How long anything may take that must happen: a stalled peer is given half a minute.
pub(crate) const PATIENCE: Duration = Duration::from_secs(90);

/// A broker with an honest client beside it, which both must be well to the end.
pub(crate) struct Broker {
    child: Child,
    /// Its end is the child's.
    stdin: Option<ChildStdin>,
    pub(crate) address: SocketAddr,
    honest: Option<Honest>,
}

impl Broker {
    pub(crate) fn start() -> Self {
        allow_many_descriptors();
        let mut child = Command::new(env!("CARGO_BIN_EXE_strandline-hostile-target"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the target was built with the tests");
        let stdin = child.stdin.take();
        let mut line = String::new();
        let stdout = child.stdout.take().expect("it is piped");
        BufReader::new(stdout).read_line(&mut line).expect("the broker starts");
        let port = line.trim().parse::<u16>().expect("it says its port");
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let honest = Some(Honest::start(address));
        Self { child, stdin, address, honest }
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).expect("the broker accepts");
        stream.set_read_timeout(Some(PATIENCE)).expect("a timeout can be set");
        stream.set_write_timeout(Some(PATIENCE)).expect("a timeout can be set");
        stream
    }

    /// A line of the kernel's about the process, in KiB.
    fn status_kib(&self, name: &str) -> u64 {
        let path = format!("/proc/{}/status", self.child.id());
        let status = fs::read_to_string(path).expect("the broker runs");
        let line = status.lines().find(|line| line.starts_with(name)).expect("the kernel says so");
        line.split_whitespace().nth(1).and_then(|number| number.parse().ok()).expect("in KiB")
    }

    /// What the broker holds now, in KiB.
    pub(crate) fn resident_kib(&self) -> u64 {
        self.status_kib("VmRSS:")
    }

    /// Descriptors that the broker has open.
    pub(crate) fn descriptors(&self) -> usize {
        let path = format!("/proc/{}/fd", self.child.id());
        fs::read_dir(path).expect("the broker runs").count()
    }

    /// Ends the test: the broker never held too much, the honest client went on all the time.
    #[expect(clippy::print_stdout, reason = "numbers for whoever runs the test by hand")]
    pub(crate) fn assert_well(mut self) {
        let report = self.honest.take().expect("it is taken once").finish();
        let peak = self.status_kib("VmHWM:");
        println!("broker's peak {} MiB; honest client: {report}", peak / 1024);
        assert!(peak <= MEMORY_MAX_KIB, "the broker held {peak} KiB");
        drop(self.stdin.take());
        let status = self.child.wait().expect("the broker ends");
        assert!(status.success(), "{status}");
    }
}

/// A test that fails leaves no process behind.
impl Drop for Broker {
    fn drop(&mut self) {
        if self.stdin.is_some() {
            drop(self.child.kill());
            drop(self.child.wait());
        }
    }
}

/// Raises the soft limit of this process, and of what it starts, to the hard one.
fn allow_many_descriptors() {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, ..limit };
    setrlimit(Resource::Nofile, raised).expect("the soft limit may be raised");
    let enough = limit.maximum.is_none_or(|maximum| maximum >= DESCRIPTORS_MIN);
    assert!(enough, "these tests need {DESCRIPTORS_MIN} descriptors, see `ulimit -Hn`");
}

/// A frame with its length in front.
pub(crate) fn frame(body: &[u8]) -> Vec<u8> {
    let length = i32::try_from(body.len()).expect("a small frame");
    [&length.to_be_bytes(), body].concat()
}

/// The header of a request, in the version of the header that the API has there.
pub(crate) fn header(key: ApiKey, version: i16) -> Vec<u8> {
    let api = key.served().at(version).expect("it is served");
    let mut bytes = Vec::new();
    bytes.extend(key.number().to_be_bytes());
    bytes.extend(version.to_be_bytes());
    bytes.extend(7_i32.to_be_bytes());
    bytes.extend((-1_i16).to_be_bytes());
    if api.is_flexible() {
        bytes.push(0);
    }
    bytes
}

/// How a connection ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// The broker closed it.
    Closed,
    /// The broker answered first.
    Answered,
}

/// Waits for an answer or the end.
pub(crate) fn outcome(stream: &mut TcpStream) -> Outcome {
    let mut byte = [0];
    match stream.read(&mut byte) {
        Ok(0) => Outcome::Closed,
        Ok(_) => Outcome::Answered,
        Err(error) if is_reset(error.kind()) => Outcome::Closed,
        Err(error) => panic!("neither answered nor closed: {error}"),
    }
}

/// Waits for the end, whatever comes before it.
pub(crate) fn wait_for_end(stream: &mut TcpStream) {
    let begin = Instant::now();
    let mut buf = vec![0; 1 << 16];
    loop {
        assert!(begin.elapsed() < PATIENCE, "the broker never hangs up");
        match stream.read(&mut buf) {
            Ok(0) => return,
            Ok(_) => {}
            Err(error) if is_reset(error.kind()) => return,
            Err(error) => panic!("not closed: {error}"),
        }
    }
}

/// Sends as much as the broker takes before it hangs up.
pub(crate) fn send(stream: &mut TcpStream, bytes: &[u8]) {
    match stream.write_all(bytes) {
        Ok(()) => {}
        Err(error) if is_reset(error.kind()) => {}
        Err(error) => panic!("neither taken nor refused: {error}"),
    }
}

fn is_reset(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::ConnectionAborted
    )
}
