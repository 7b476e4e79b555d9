//! One connection: read, start requests, answer in order.
//!
//! ```text
//!  socket ─▶ inbox ─▶ start ─▶ pending (Produce, waits for durability) ─▶ outbox ─▶ socket
//!                        └────────── everything else, one at a time ────────▲
//! ```
//!
//! Produce requests follow each other without waiting for the disk; any other request starts when
//! all before it are answered, and the next one when it is. So requests take effect in their order,
//! as they do in Kafka, which works on one request of a connection at a time.

use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use strandline_broker::{Broker, Connection, Peer, Reply, Started};
use strandline_wire::{ApiKey, Arrival, EncodeError, FrameLimits, RequestHeader, next_request};
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::budget::{Budget, Share};
use crate::end::End;
use crate::inbox::{Inbox, Progress};
use crate::owed::{Owed, TURN_TIME};
use crate::pace::Pace;
use crate::places::Places;
use crate::pool::Pool;
use crate::refusal::Refusals;
use crate::send::Outbox;
use crate::server::ServerConfig;
use crate::turn::{Turn, now_or_never};
use crate::worker::Accepted;

/// Bytes per second that a peer must send of a frame that does not arrive in one window.
const FRAME_RATE_MIN: u64 = 256 * 1024;
/// Bytes per second that a peer must take of replies that do not leave in one window.
const REPLY_RATE_MIN: u64 = 64 * 1024;
/// How long a request may still run whose peer sends nothing more: it may wait for the answer, but
/// most have left, and nobody waits for the records of a fetch then.
const HALF_CLOSED_MAX: Duration = Duration::from_secs(5);

/// What all connections share.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) broker: Arc<Broker>,
    pub(crate) config: ServerConfig,
    pub(crate) frame_limits: FrameLimits,
    pub(crate) budget: Budget,
    /// Permits for heavy requests: see [`strandline_model::Limits::heavy_requests_max`].
    pub(crate) heavy: Semaphore,
    pub(crate) owed: Owed,
    pub(crate) places: Arc<Places>,
    pub(crate) refusals: Refusals,
    /// Connections finish what they have, then close.
    pub(crate) stop: CancellationToken,
    /// Connections close now.
    pub(crate) cut: CancellationToken,
}

impl Context {
    pub(crate) fn new(broker: Arc<Broker>, config: ServerConfig) -> Self {
        Self {
            broker,
            frame_limits: FrameLimits::new(
                config.request_bytes_max,
                config.limits.frame_bytes_max_except_produce,
            ),
            budget: Budget::new(
                config.limits.request_bytes_in_flight_max,
                config.request_bytes_max,
            ),
            owed: Owed::new(config.limits.reply_bytes_owed_max),
            heavy: Semaphore::new(config.limits.heavy_requests_max),
            places: Arc::default(),
            refusals: Refusals::default(),
            stop: CancellationToken::new(),
            cut: CancellationToken::new(),
            config,
        }
    }

    /// Bytes of receive buffers that each worker keeps.
    pub(crate) fn buffer_bytes_per_worker(&self) -> usize {
        let all = usize::try_from(self.config.limits.receive_buffer_bytes_kept_max.get());
        all.unwrap_or(usize::MAX) / self.config.workers.max(1)
    }

    const fn is_heavy(&self, bytes: usize) -> bool {
        bytes as u64 > self.config.limits.heavy_request_bytes_min.get()
    }

    /// Waits for its turn when a request is heavy.
    async fn heavy_permit(&self, bytes: usize) -> Option<SemaphorePermit<'_>> {
        if !self.is_heavy(bytes) {
            return None;
        }
        let permit = self.heavy.acquire().await;
        Some(permit.expect("the semaphore is never closed"))
    }
}

/// Serves a connection to its end.
pub(crate) async fn serve(accepted: Accepted, context: &Context, pool: Arc<Pool>) {
    let Accepted { stream, remote, place: _place } = accepted;
    let end = match Served::new(stream, remote, context, pool) {
        Ok(mut served) => {
            let end = served.run().await;
            if end.as_ref().is_err_and(End::is_refusal) {
                served.connection.refuse();
            }
            end
        }
        Err(error) => Err(End::Io(error)),
    };
    if let Err(end) = end {
        let cause = std::error::Error::source(&end).map(ToString::to_string);
        if let Some(more) = end.is_refusal().then(|| context.refusals.admit()).flatten() {
            tracing::info!(%remote, reason = %end, cause, more, "connection refused");
        } else {
            tracing::debug!(%remote, reason = %end, cause, "connection closed");
        }
    }
}

type PendingReply = Pin<Box<dyn Future<Output = Result<Reply, EncodeError>> + Send>>;

struct Served<'a> {
    context: &'a Context,
    stream: TcpStream,
    connection: Connection,
    inbox: Inbox,
    pending: VecDeque<PendingReply>,
    outbox: Outbox,
    /// When the peer last sent something or took something.
    active_at: Instant,
    /// How the frame arrives of which a part is there.
    frame_pace: Option<Pace>,
    /// The peer sends nothing more.
    half_closed: bool,
    /// For how long this connection has its thread.
    turn: Turn,
}

impl<'a> Served<'a> {
    fn new(
        stream: std::net::TcpStream,
        remote: SocketAddr,
        context: &'a Context,
        pool: Arc<Pool>,
    ) -> io::Result<Self> {
        tune(&stream, remote)?;
        let peer = Peer { remote, local: stream.local_addr()? };
        Ok(Self {
            context,
            stream: TcpStream::from_std(stream)?,
            connection: Connection::open(&context.broker, peer),
            inbox: Inbox::new(context.budget.clone(), pool),
            pending: VecDeque::new(),
            outbox: Outbox::default(),
            active_at: Instant::now(),
            frame_pace: None,
            half_closed: false,
            turn: Turn::default(),
        })
    }

    async fn run(&mut self) -> Result<(), End> {
        loop {
            self.start_requests().await?;
            self.send_all().await?;
            let mut turn = self.turn;
            let (waited, at_once) = turn.begin_after(self.wait()).await;
            waited?;
            self.turn = turn;
            if at_once {
                self.give_way().await?;
            }
        }
    }

    /// Starts every request that has arrived whole.
    async fn start_requests(&mut self) -> Result<(), End> {
        while self.pending.len() < self.context.config.limits.connection_pending_replies_max {
            match next_request(self.inbox.buf(), &self.context.frame_limits)? {
                Arrival::Missing(bytes) => {
                    self.inbox.expect(bytes);
                    return Ok(());
                }
                Arrival::UnknownApiVersions { correlation_id } => {
                    drop(self.frame_done(0));
                    self.answer_pending().await?;
                    let reply = Connection::unsupported_api_versions(correlation_id)?;
                    self.outbox.push(reply.into_pieces());
                }
                Arrival::Request(header, body) => {
                    let share = self.frame_done(body.len());
                    if header.api.key() == ApiKey::Produce {
                        // No reading meanwhile: while the engine is busy the peer must wait.
                        let started = self.connection.start(&header, body).await?;
                        self.take(started);
                    } else {
                        self.answer_next(&header, body).await?;
                    }
                    drop(share);
                }
            }
            if !self.inbox.is_empty() {
                self.give_way().await?;
            }
        }
        Ok(())
    }

    /// Lets other connections go first if this one was at it for long.
    async fn give_way(&mut self) -> Result<(), End> {
        if self.turn.is_over() {
            self.send_all().await?;
            self.turn.pass().await;
        }
        Ok(())
    }

    fn frame_done(&mut self, bytes: usize) -> Share {
        self.frame_pace = None;
        self.inbox.frame_done(bytes)
    }

    /// Answers a request that is no Produce, after all that came before it.
    ///
    /// Small answers leave together with those before them, unless one has to be waited for.
    async fn answer_next(&mut self, header: &RequestHeader, body: BytesMut) -> Result<(), End> {
        self.answer_pending().await?;
        let context = self.context;
        let may_hold = context.is_heavy(body.len()) || context.owed.is_pressed();
        if may_hold || !self.outbox.is_light() {
            // Nothing that others wait for is held while a peer takes its time.
            self.send_all().await?;
        }
        let mut heavy = context.heavy_permit(body.len()).await;
        let is_heavy = heavy.is_some();
        let mut turn = context.owed.turn().await;
        let started = self.start_while_sending(header, body, (&mut turn, &mut heavy)).await?;
        self.take(started);
        match context.owed.take(self.outbox.memory_bytes()) {
            None if !is_heavy => Ok(()),
            // The answer of a heavy request is large too: it counts until it has left.
            None => self.send_all().await,
            Some(debt) => {
                let sent = match debt.within {
                    None => self.send_all().await,
                    Some(within) => tokio::time::timeout(within, self.send_all())
                        .await
                        .map_err(|_| End::Pressed)?,
                };
                drop(turn);
                sent
            }
        }
    }

    /// Runs a request, and sends what is owed from before if that has to wait.
    async fn start_while_sending(
        &mut self,
        header: &RequestHeader,
        body: BytesMut,
        (turn, heavy): (&mut Option<SemaphorePermit<'_>>, &mut Option<SemaphorePermit<'_>>),
    ) -> Result<Started, End> {
        let Self { connection, stream, half_closed, outbox, active_at, .. } = self;
        let stream = &*stream;
        let mut start =
            std::pin::pin!(start_while_open(connection, stream, *half_closed, header, body));
        let start = async {
            if turn.is_some() || heavy.is_some() {
                if let Ok(started) = tokio::time::timeout(TURN_TIME, &mut start).await {
                    return started;
                }
                // It waits for others, not for us: a parked join must not hold up who works.
                (*turn, *heavy) = (None, None);
            }
            start.await
        };
        let mut start = std::pin::pin!(start);
        if let Some(started) = now_or_never(&mut start).await {
            return started;
        }
        // Both at once: a request that has begun may hold what others wait for.
        let (started, ()) = tokio::try_join!(start, send_all(stream, outbox, active_at))?;
        Ok(started)
    }

    fn take(&mut self, started: Started) {
        match started {
            Started::Reply(reply) => self.outbox.push(reply.into_pieces()),
            Started::Waiting(pending) => self.pending.push_back(Box::pin(pending.finish())),
            Started::Silent => {}
        }
    }

    async fn answer_pending(&mut self) -> Result<(), End> {
        while let Some(reply) = self.pending.pop_front() {
            self.outbox.push(reply.await?.into_pieces());
        }
        Ok(())
    }

    async fn send_all(&mut self) -> Result<(), End> {
        send_all(&self.stream, &mut self.outbox, &mut self.active_at).await
    }

    /// Waits for the next thing: bytes from the peer, an answer that became durable, or the end.
    async fn wait(&mut self) -> Result<(), End> {
        let stopping = self.context.stop.is_cancelled();
        let nothing_pending = self.pending.is_empty();
        if nothing_pending && stopping {
            return Err(End::Stopping);
        }
        if nothing_pending && self.half_closed {
            return Err(End::Closed);
        }
        let may_read = !stopping
            && !self.half_closed
            && self.pending.len() < self.context.config.limits.connection_pending_replies_max;
        let deadline = self.deadline();
        let Self { stream, inbox, pending, context, .. } = self;
        tokio::select! {
            biased;
            reply = first(pending) => {
                self.pending.pop_front();
                self.outbox.push(reply?.into_pieces());
                self.take_ready().await?;
            }
            read = inbox.read(stream), if may_read => match read? {
                Progress::Read(bytes) => {
                    let now = Instant::now();
                    self.active_at = now;
                    if let Some(pace) = &mut self.frame_pace {
                        pace.moved(bytes, || now);
                    }
                }
                // What it asked for before is still answered.
                Progress::Closed => self.half_closed = true,
            },
            () = context.stop.cancelled(), if !stopping => {}
            () = tokio::time::sleep_until(deadline), if nothing_pending => {
                return Err(if self.inbox.is_empty() { End::Idle } else { End::Stalled });
            }
        }
        Ok(())
    }

    /// Takes further answers that are ready too: they leave together.
    async fn take_ready(&mut self) -> Result<(), End> {
        while let Some(reply) = self.pending.front_mut() {
            let Some(reply) = now_or_never(reply).await else { return Ok(()) };
            self.pending.pop_front();
            self.outbox.push(reply?.into_pieces());
        }
        Ok(())
    }

    /// When the peer has waited, or let us wait, for too long. Of no use while answers are pending:
    /// then it is not the peer's turn.
    fn deadline(&mut self) -> Instant {
        const FOREVER: Duration = Duration::from_hours(24 * 365);
        if self.inbox.is_empty() || !self.pending.is_empty() {
            self.frame_pace = None;
            return self.active_at + self.context.config.idle_max.unwrap_or(FOREVER);
        }
        let begin = || Pace::begin(Instant::now(), FRAME_RATE_MIN);
        self.frame_pace.get_or_insert_with(begin).deadline()
    }
}

/// Runs a request that may take long, and notices meanwhile when the peer goes away.
async fn start_while_open(
    connection: &mut Connection,
    stream: &TcpStream,
    half_closed: bool,
    header: &RequestHeader,
    body: BytesMut,
) -> Result<Started, End> {
    let mut start = std::pin::pin!(connection.start(header, body));
    if !half_closed {
        // Not "readable": that says nothing about the end while there are bytes before it.
        let closed = stream.ready(Interest::PRIORITY | Interest::ERROR);
        tokio::select! {
            biased;
            started = &mut start => return Ok(started?),
            closed = closed => {
                if closed?.is_error() {
                    return Err(End::Closed);
                }
            }
        }
    }
    match tokio::time::timeout(HALF_CLOSED_MAX, start).await {
        Ok(started) => Ok(started?),
        Err(_) => Err(End::Closed),
    }
}

/// Sends everything that is owed.
async fn send_all(
    stream: &TcpStream,
    outbox: &mut Outbox,
    active_at: &mut Instant,
) -> Result<(), End> {
    if outbox.is_empty() {
        return Ok(());
    }
    if outbox.send_now(stream)? {
        *active_at = Instant::now();
        return Ok(());
    }
    let mut pace = Pace::begin(Instant::now(), REPLY_RATE_MIN);
    while !outbox.is_empty() {
        let send = outbox.send_some(stream);
        let sent = tokio::time::timeout_at(pace.deadline(), send).await;
        pace.moved(sent.map_err(|_| End::Stalled)??, Instant::now);
    }
    *active_at = Instant::now();
    Ok(())
}

/// The first pending answer; never, when there is none.
async fn first(pending: &mut VecDeque<PendingReply>) -> Result<Reply, EncodeError> {
    match pending.front_mut() {
        Some(reply) => reply.await,
        None => std::future::pending().await,
    }
}

fn tune(stream: &std::net::TcpStream, remote: SocketAddr) -> io::Result<()> {
    stream.set_nonblocking(true)?;
    stream.set_nodelay(true)?;
    let socket = socket2::SockRef::from(stream);
    socket.set_keepalive(true)?;
    if remote.ip().to_canonical().is_loopback()
        // Pacing congestion controls (bbr) cost a factor of 3 to 5 on loopback, where nothing
        // congests. Not allowed, or not built in: the default serves as well.
        && let Err(error) = socket.set_tcp_congestion(b"reno")
    {
        tracing::debug!(%error, "loopback connection keeps the default congestion control");
    }
    Ok(())
}
