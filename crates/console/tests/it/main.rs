//! The console as its clients see it: bytes over TCP.

mod clients;
mod deletions;
mod groups;
mod health;
mod hostile;
mod metrics;
mod reconciliation;
mod retention;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use strandline_console::{
    Changing, Check, Client, CompactionStats, Console, Deletion, DeletionChange, DeletionStats,
    FoundGroup, Reconciliation, Scope, Snapshot, Status, TopicRetention,
};
use strandline_model::{NodeId, Timestamp};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

/// No answer takes longer, unless something hangs.
const PATIENCE: Duration = Duration::from_secs(20);

/// A status that the test sets.
#[derive(Debug)]
struct Told {
    ready: Mutex<Vec<Check>>,
    snapshot: Mutex<Snapshot>,
}

impl Status for Told {
    fn liveness(&self) -> Vec<Check> {
        vec![check("runtime", true, "")]
    }

    fn readiness(&self) -> Vec<Check> {
        self.ready.lock().clone()
    }

    fn snapshot(&self) -> Snapshot {
        self.snapshot.lock().clone()
    }

    fn clients(&self) -> Vec<Client> {
        vec![Client {
            client_id: "app-1".to_owned(),
            software_name: "librdkafka".to_owned(),
            software_version: "2.0.2".to_owned(),
            address: "10.0.0.7:5".parse().expect("an address"),
            reached: "[::1]:9092".parse().expect("an address"),
            told: "kafka:9092".to_owned(),
            connected_at: Timestamp::from_millis(1_700_000_000_500),
            requests: 12,
            last_request: None,
            last_request_at: None,
            connected: true,
            stranded: true,
        }]
    }

    fn group<'a>(&'a self, name: &'a str) -> FoundGroup<'a> {
        Box::pin(async move { groups::group(name) })
    }

    fn reconciliation(&self) -> Vec<Reconciliation> {
        reconciliation::found()
    }

    fn retention(
        &self,
        topic: &str,
        simulated: &[(String, String)],
    ) -> Result<Option<TopicRetention>, String> {
        if let Some((key, _)) = simulated.iter().find(|(key, _)| key != "retention.ms") {
            return Err(format!("no key {key}"));
        }
        Ok((topic != "unknown").then(|| retention::topic(topic, simulated)))
    }

    fn deletions(&self) -> Vec<Deletion> {
        vec![deletions::pending()]
    }

    fn change_deletion(&self, change: DeletionChange) -> Changing<'_> {
        Box::pin(async move { deletions::changed(change) })
    }
}

fn check(name: &'static str, ok: bool, detail: &str) -> Check {
    Check { name, ok, detail: detail.to_owned() }
}

fn snapshot() -> Snapshot {
    Snapshot {
        version: "1.2.3",
        revision: None,
        node_id: NodeId::new(1),
        broker_count: 1,
        started_at: Timestamp::from_millis(1_700_000_000_500),
        apis: Vec::new(),
        listeners: Vec::new(),
        clients_stranded: 0,
        offsets_committed: 12,
        offsets_removed: 3,
        group_rebalances: vec![("member_joined", 5), ("session_expired", 0)],
        retention_failures: 2,
        retention_checked_at: Some(Timestamp::from_millis(1_700_000_000_500)),
        deletions: vec![DeletionStats { state: "grace", topics: 2, bytes: 300 }],
        deletion_oldest_seconds: Some(1.5),
        deletion_freed_bytes: 70,
        deletion_failures: 4,
        compaction: CompactionStats {
            max_dirty_ratio: 0.25,
            failing_partitions: 1,
            last_pass_at: Some(Timestamp::from_millis(1_700_000_000_500)),
            passes: 5,
            failures: 2,
            read_bytes: 1000,
            written_bytes: 400,
            removed_records: 30,
        },
        topics: Vec::new(),
        storage: Vec::new(),
        reconciliation_failures: 4,
        reconciliation: reconciliation::found(),
    }
}

/// A console that runs.
struct Running {
    address: SocketAddr,
    told: Arc<Told>,
    stop: oneshot::Sender<()>,
    done: JoinHandle<()>,
}

impl Running {
    async fn start(scope: Scope, connections_max: usize) -> Self {
        let ready = vec![check("listeners", true, ""), check("recovery", true, "done")];
        let told = Arc::new(Told { ready: Mutex::new(ready), snapshot: Mutex::new(snapshot()) });
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback works");
        let address = listener.local_addr().expect("loopback works");
        let console = Console { status: Arc::clone(&told) as _, scope, connections_max };
        let (stop, stopped) = oneshot::channel();
        let done =
            tokio::spawn(console.serve(listener, async { stopped.await.expect("loopback works") }));
        Self { address, told, stop, done }
    }

    async fn stop(self) {
        self.stop.send(()).expect("loopback works");
        timeout(PATIENCE, self.done).await.expect("stopping hangs").expect("loopback works");
    }

    async fn connect(&self) -> TcpStream {
        TcpStream::connect(self.address).await.expect("loopback works")
    }

    /// Asks on a connection of its own; the whole answer.
    async fn get(&self, path: &str) -> Answer {
        self.send(&format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")).await
    }

    async fn send(&self, request: &str) -> Answer {
        let mut stream = self.connect().await;
        stream.write_all(request.as_bytes()).await.expect("loopback works");
        let mut bytes = Vec::new();
        timeout(PATIENCE, stream.read_to_end(&mut bytes))
            .await
            .expect("no answer")
            .expect("loopback works");
        Answer::parsed(&String::from_utf8(bytes).expect("loopback works"))
    }
}

/// An answer, taken apart.
#[derive(Debug)]
struct Answer {
    code: u16,
    head: String,
    body: String,
}

impl Answer {
    fn parsed(text: &str) -> Self {
        let (head, body) = text.split_once("\r\n\r\n").expect("a head and a body");
        let code = head.split(' ').nth(1).expect("a status line").parse().expect("a code");
        Self { code, head: head.to_ascii_lowercase(), body: body.to_owned() }
    }
}
