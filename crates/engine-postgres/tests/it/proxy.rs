//! A proxy between engine and server that cuts a connection at a statement of choice.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Mutex, oneshot, watch};
use tokio::task::{AbortHandle, JoinSet};

/// How long a statement that comes late waits for others to overtake it.
const LATE_MAX: Duration = Duration::from_secs(20);
/// How many statements overtake it: a connection is made, prepared and asked what became of it.
const OVERTAKE: usize = 4;

/// Where a connection is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Cut {
    /// The statement never reaches the server.
    Before,
    /// It is sent; nobody waits for what becomes of it.
    Sent,
    /// It is carried out; its answer is lost.
    Done,
    /// The client is cut off; the server gets the statement when others have overtaken it.
    Late,
}

impl Cut {
    pub(crate) const ALL: [Self; 4] = [Self::Before, Self::Sent, Self::Done, Self::Late];
}

/// See the [module](self). Ends with its last connection.
#[derive(Debug)]
pub(crate) struct Proxy {
    pub(crate) port: u16,
    plan: Arc<Plan>,
    task: AbortHandle,
}

#[derive(Debug)]
struct Plan {
    /// Statements that came since the proxy was armed.
    seen: watch::Sender<usize>,
    cut: Mutex<Option<(usize, Cut)>>,
    /// Cuts that are not over.
    under_way: AtomicUsize,
    is_over: watch::Sender<bool>,
}

impl Proxy {
    /// A proxy to `port` that lets everything through until it is armed.
    pub(crate) async fn start(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port is free");
        let own = listener.local_addr().expect("it is bound").port();
        let plan = Arc::new(Plan {
            seen: watch::Sender::new(0),
            cut: Mutex::new(None),
            under_way: AtomicUsize::new(0),
            is_over: watch::Sender::new(false),
        });
        let shared = Arc::clone(&plan);
        let task = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((client, _)) = listener.accept().await {
                connections.spawn(serve(client, port, Arc::clone(&shared)));
            }
        });
        Self { port: own, plan, task: task.abort_handle() }
    }

    /// Cuts the connection of the `number`th statement from now on.
    pub(crate) async fn arm(&self, number: usize, cut: Cut) {
        *self.plan.cut.lock().await = Some((number, cut));
        self.plan.seen.send_replace(0);
    }

    /// Statements that came since it was armed.
    pub(crate) fn seen(&self) -> usize {
        *self.plan.seen.borrow()
    }

    /// What is held back goes to the server now. Returns when it has answered.
    pub(crate) async fn finish(&self) {
        self.plan.is_over.send_replace(true);
        while self.plan.under_way.load(Ordering::SeqCst) > 0 {
            tokio::task::yield_now().await;
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(client: TcpStream, port: u16, plan: Arc<Plan>) {
    let Ok(server) = TcpStream::connect(("127.0.0.1", port)).await else { return };
    drop((client.set_nodelay(true), server.set_nodelay(true)));
    let (mut from_client, to_client) = client.into_split();
    let (from_server, mut to_server) = server.into_split();
    let (stop, stopped) = oneshot::channel();
    let answers = tokio::spawn(pass_on(from_server, to_client, stopped));
    let mut input = BytesMut::new();
    let mut is_started = false;
    let mut batch = BytesMut::new();
    loop {
        while let Some((kind, message)) = next_message(&mut input, &mut is_started) {
            batch.extend_from_slice(&message);
            if let b'S' | b'Q' = kind {
                let number = plan.seen.borrow().saturating_add(1);
                plan.seen.send_replace(number);
                let cut = plan.cut.lock().await.take_if(|(at, _)| *at == number);
                if let Some((_, cut)) = cut {
                    plan.under_way.fetch_add(1, Ordering::SeqCst);
                    // The client's connection ends here.
                    drop((stop, from_client));
                    let from_server = answers.await.expect("it does not panic");
                    return cut_off(cut, number, &batch, (from_server, to_server), &plan).await;
                }
            }
            // Parts of a statement wait for its end.
            if !matches!(kind, b'P' | b'B' | b'D' | b'E' | b'C' | b'H') {
                let whole = batch.split();
                if to_server.write_all(&whole).await.is_err() {
                    return;
                }
            }
        }
        match from_client.read_buf(&mut input).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
    }
}

/// Takes a whole message off the input, and says of which kind it is; the first has none.
fn next_message(input: &mut BytesMut, is_started: &mut bool) -> Option<(u8, BytesMut)> {
    let head = usize::from(*is_started);
    let mut length = input.get(head..head + 4)?;
    let whole = head + usize::try_from(length.get_u32()).expect("it fits");
    if input.len() < whole {
        return None;
    }
    let kind = if *is_started { input[0] } else { 0 };
    *is_started = true;
    Some((kind, input.split_to(whole)))
}

/// Until it is stopped. Either end may go at any time.
async fn pass_on(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    stopped: oneshot::Receiver<()>,
) -> OwnedReadHalf {
    tokio::select! {
        _ = tokio::io::copy(&mut from, &mut to) => {}
        _ = stopped => {}
    }
    from
}

/// Sends a statement and waits for the end of its answer, which is lost.
async fn carry_out(statement: &[u8], from: &mut OwnedReadHalf, to: &mut OwnedWriteHalf) {
    const READY: &[u8] = b"Z\0\0\0\x05";
    if to.write_all(statement).await.is_err() {
        return;
    }
    let mut answer = BytesMut::new();
    while answer.len() < 6 || !answer[answer.len() - 6..].starts_with(READY) {
        match from.read_buf(&mut answer).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
    }
}

async fn cut_off(
    cut: Cut,
    number: usize,
    statement: &[u8],
    (mut from_server, mut to_server): (OwnedReadHalf, OwnedWriteHalf),
    plan: &Plan,
) {
    match cut {
        Cut::Before => {}
        Cut::Sent => drop(to_server.write_all(statement).await),
        Cut::Done => carry_out(statement, &mut from_server, &mut to_server).await,
        Cut::Late => {
            let (mut seen, mut over) = (plan.seen.subscribe(), plan.is_over.subscribe());
            let overtaken = seen.wait_for(|seen| *seen >= number + OVERTAKE);
            let wait = async {
                tokio::select! {
                    _ = overtaken => {}
                    _ = over.wait_for(|over| *over) => {}
                }
            };
            drop(tokio::time::timeout(LATE_MAX, wait).await);
            carry_out(statement, &mut from_server, &mut to_server).await;
        }
    }
    plan.under_way.fetch_sub(1, Ordering::SeqCst);
}
