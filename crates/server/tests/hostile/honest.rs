//! A client that means well: writes a record, reads it back, again and again.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use strandline_client::{Acks, Client, Config, Producer, ProducerSettings, SizeLimits};
use strandline_records::{Codec, NewRecord};

const TOPIC: &str = "honest";
/// Round trips that it makes at least, so that its report says something.
const ROUNDS_MIN: usize = 50;

pub(crate) struct Honest {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Report>,
}

/// How the client fared.
pub(crate) struct Report {
    /// How long each round took, sorted.
    rounds: Vec<Duration>,
}

impl Honest {
    pub(crate) fn start(address: SocketAddr) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime starts").block_on(work(address, &stopped))
        });
        Self { stop, thread }
    }

    /// Stops the client. It must not have met an error.
    pub(crate) fn finish(self) -> Report {
        self.stop.store(true, Ordering::Relaxed);
        match self.thread.join() {
            Ok(report) => report,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

async fn work(address: SocketAddr, stopped: &AtomicBool) -> Report {
    let config = Config::new(&address.to_string()).expect("an address");
    let mut client = Client::connect(config).await.expect("the broker answers");
    let settings = ProducerSettings { acks: Acks::All, idempotent: true, codec: Codec::None };
    let mut producer = Producer::start(&mut client, settings).await.expect("an identity");
    let mut rounds = Vec::new();
    while rounds.len() < ROUNDS_MIN || !stopped.load(Ordering::Relaxed) {
        let begin = Instant::now();
        let value = format!("record {}", rounds.len());
        let record = NewRecord { value: Some(value.as_bytes()), ..NewRecord::default() };
        let appended = producer.send(TOPIC, 0, &[record]).await.expect("it is appended");
        let fetched = producer
            .client()
            .fetch(TOPIC, 0, appended.base_offset, SizeLimits::new())
            .await
            .expect("it is read");
        let (records, _) = fetched.records().expect("whole records");
        let read = records.first().and_then(|record| record.value.as_deref());
        assert_eq!(read, Some(value.as_bytes()), "what was acknowledged is there");
        rounds.push(begin.elapsed());
        // Not as fast as it can: the machine is for the attack.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    rounds.sort_unstable();
    Report { rounds }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.rounds.len();
        let (p50, p99) = (self.rounds[count / 2], self.rounds[count * 99 / 100]);
        let worst = self.rounds[count - 1];
        write!(f, "{count} rounds, p50 {p50:?}, p99 {p99:?}, worst {worst:?}")
    }
}
