//! Connections: made, made anew, and shared.
//!
//! A connection answers in the order in which it was asked, and may be asked before it has answered: many
//! callers share one, and nobody waits for a free one. None ever begins a transaction that spans
//! statements.

use std::fmt;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::{Mutex, OnceCell};
use tokio::task::AbortHandle;
use tokio::time::Instant;
use tokio_postgres::config::SslMode;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Connection as Driver, NoTls, Row, Socket, Statement};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::error::{Failure, describe};
use crate::failover::Failover;
use crate::gate::Gate;
use crate::sql::Query;
use crate::tls::{Tls, refusal};
use crate::vitals::{Vitals, count};
use crate::{OpenError, Password, PostgresConfig};

/// How long to try to reach the server, once.
const CONNECT_WAIT: Duration = Duration::from_secs(5);
/// A peer that says nothing for so long is asked whether it is there.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(10);

/// What the server calls our connections.
pub(crate) const APPLICATION: &str = "strandline";

/// Makes connections.
pub(crate) struct Connector {
    config: tokio_postgres::Config,
    password: Option<Password>,
    tls: Arc<Tls>,
    place: String,
    statement_wait: Duration,
    /// Where connections live, whoever asks for one: that runtime outlives the engine.
    runtime: Handle,
    /// Holds up those who come again too soon.
    gate: Gate,
    vitals: Arc<Vitals>,
    /// Looks at each new connection, once there is something to lose.
    failover: OnceLock<Arc<Failover>>,
}

/// How transactions of a connection see each other, and what is particular about them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Isolation {
    /// Each statement sees what was committed before it.
    Committed,
    /// As if one came after the other.
    Serializable,
    /// As `Committed`, and a statement is planned once, not anew for each group: arrays of values make
    /// the server believe that a plan for just these is worth it, which costs more than the statement.
    Appending,
    /// As `Committed`, and a commit is not waited for: for what is done again after a crash.
    Relaxed,
}

/// What a statement is given.
pub(crate) type Params<'a> = &'a [&'a (dyn ToSql + Sync)];

/// One connection. It ends with its last reference, at once.
pub(crate) struct Connection {
    client: Client,
    statements: [OnceCell<Statement>; Query::COUNT],
    is_lost: AtomicBool,
    wait: Duration,
    task: AbortHandle,
    vitals: Arc<Vitals>,
}

impl Connector {
    pub(crate) fn new(config: &PostgresConfig) -> Self {
        let mut to = tokio_postgres::Config::new();
        to.host(&config.host)
            .port(config.port)
            .user(&config.user)
            .dbname(&config.database)
            .application_name(APPLICATION)
            .connect_timeout(CONNECT_WAIT)
            .keepalives_idle(KEEPALIVE_IDLE)
            .tcp_user_timeout(config.statement_wait);
        let tls = Arc::new(Tls::new(config.tls.clone()));
        // The client's own default would go on in plain text with a server that wants it so.
        to.ssl_mode(if tls.is_disabled() { SslMode::Disable } else { SslMode::Require });
        // The name was checked; a statement names tables alone. A commit that is cancelled while it waits
        // for a standby answers as if it were done: no timeout of the role's may do that.
        // Rows are read by their key, a few, in its order. A planner that has not counted a table yet would
        // rather collect and sort all that are left.
        let settings = "-c statement_timeout=0 -c enable_bitmapscan=off";
        to.options(format!("-c search_path={} {settings}", config.schema));
        let (place, statement_wait) = (config.place(), config.statement_wait);
        let (password, runtime) = (config.password.clone(), Handle::current());
        let vitals = Arc::new(Vitals::new(config.read_lease));
        let (gate, failover) = (Gate::default(), OnceLock::new());
        Self { config: to, password, tls, place, statement_wait, runtime, gate, vitals, failover }
    }

    /// A connection without anything prepared; whoever holds the client ends it.
    pub(crate) async fn client(
        &self,
        isolation: Isolation,
    ) -> Result<(Client, AbortHandle), OpenError> {
        let mut config = self.config.clone();
        let setting = match isolation {
            Isolation::Committed => None,
            Isolation::Serializable => Some("default_transaction_isolation=serializable"),
            Isolation::Appending => Some("plan_cache_mode=force_generic_plan"),
            Isolation::Relaxed => Some("synchronous_commit=off"),
        };
        if let Some(setting) = setting {
            let options = config.get_options().unwrap_or_default();
            let options = format!("{options} -c {setting}");
            config.options(options);
        }
        let (secrets, place) = (self.secrets(), self.place.clone());
        let connecting = self.runtime.spawn(async move {
            let connected = async {
                let (password, tls) = secrets.await?;
                if let Some(password) = password {
                    config.password(password);
                }
                let connected = match tls {
                    None => config.connect(NoTls).await.map(driven),
                    Some(tls) => config.connect(tls).await.map(driven),
                };
                connected.map_err(|error| refused(place, error))
            };
            tokio::time::timeout(CONNECT_WAIT, connected).await
        });
        let Ok(Ok(connected)) = connecting.await else {
            return Err(passing(format!("no answer within {} s", CONNECT_WAIT.as_secs())));
        };
        let (client, driver) = connected?;
        let task = self.runtime.spawn(async move {
            if let Err(error) = driver.await {
                tracing::debug!(error = describe(&error), "connection to PostgreSQL ended");
            }
        });
        Ok((client, task.abort_handle()))
    }

    /// The password and the certificates as their files hold them now.
    fn secrets(&self) -> impl Future<Output = Result<Secrets, OpenError>> + use<> {
        let (password, tls, place) =
            (self.password.clone(), Arc::clone(&self.tls), self.place.clone());
        let reading = self.runtime.spawn_blocking(move || {
            let password = password.as_ref().map(Password::reveal).transpose()?;
            let tls = tls.connector().map_err(|reason| OpenError::Tls { place, reason })?;
            Ok((password, tls))
        });
        async move {
            let stopped = |_| passing("the engine stops".to_owned());
            reading.await.map_err(stopped)?
        }
    }

    /// A connection. Who tries again too soon after a failure is refused for the reason of that one.
    pub(crate) async fn connect(&self, isolation: Isolation) -> Result<Connection, Failure> {
        let entered = self.gate.enter()?;
        count(&self.vitals.counts.connection_attempts);
        let begun = Instant::now();
        match self.try_connect(isolation).await {
            Ok(connection) => {
                self.gate.passed();
                self.vitals.heard(begun);
                count(&self.vitals.counts.connections_made);
                Ok(connection)
            }
            Err(failure) => {
                self.gate.failed(&entered, &failure);
                self.vitals.lost(failure.reason());
                Err(failure)
            }
        }
    }

    async fn try_connect(&self, isolation: Isolation) -> Result<Connection, Failure> {
        let (client, task) =
            self.client(isolation).await.map_err(|error| Failure::Lost(describe(&error).into()))?;
        if let Some(failover) = self.failover.get() {
            let look = failover.look(&client, isolation == Isolation::Relaxed);
            let looked = tokio::time::timeout(self.statement_wait, look).await;
            let looked = looked.unwrap_or_else(|_| Err(Failure::Lost("no answer".into())));
            if let Err(failure) = looked {
                task.abort();
                return Err(failure);
            }
        }
        Ok(Connection {
            client,
            statements: [const { OnceCell::const_new() }; Query::COUNT],
            is_lost: AtomicBool::new(false),
            wait: self.statement_wait,
            task,
            vitals: Arc::clone(&self.vitals),
        })
    }

    /// From now on each new connection is looked at. Once only.
    pub(crate) fn look_with(&self, failover: Arc<Failover>) {
        let is_first = self.failover.set(failover).is_ok();
        debug_assert!(is_first, "an engine has one connector");
    }

    pub(crate) const fn vitals(&self) -> &Arc<Vitals> {
        &self.vitals
    }

    pub(crate) fn place(&self) -> &str {
        &self.place
    }
}

/// A password, and what makes a handshake.
type Secrets = (Option<String>, Option<MakeRustlsConnect>);

/// What reads and writes a connection's bytes, encrypted or not.
type DriverTask = Pin<Box<dyn Future<Output = Result<(), tokio_postgres::Error>> + Send>>;

fn driven<S>((client, driver): (Client, Driver<Socket, S>)) -> (Client, DriverTask)
where
    S: tokio_postgres::tls::TlsStream + Unpin + Send + 'static,
{
    (client, Box::pin(driver))
}

/// Why there is no connection.
fn refused(place: String, error: tokio_postgres::Error) -> OpenError {
    if let Some(reason) = refusal(&error) {
        return OpenError::Tls { place, reason };
    }
    match error.as_db_error() {
        // 57P03: it starts, or stops. 53300: too many connections. Both pass.
        Some(db) if !["57P03", "57P01", "53300"].contains(&db.code().code()) => {
            let (reason, code) = (db.message().to_owned(), db.code().code().to_owned());
            OpenError::Refused { place, reason, code }
        }
        None if describe(&error).contains(NO_PASSWORD) => {
            let reason = "it asks for a password, and none is set".to_owned();
            let code = SqlState::INVALID_PASSWORD.code().to_owned();
            OpenError::Refused { place, reason, code }
        }
        _ => OpenError::Unreachable { place, source: error },
    }
}

/// What the client library says when the server asks for a password and it has none.
const NO_PASSWORD: &str = "password missing";

/// The same may work a moment later.
fn passing(reason: String) -> OpenError {
    OpenError::Storage(Failure::Lost(reason.into()).into_storage("connect to PostgreSQL"))
}

impl Connection {
    /// Carries out a statement.
    pub(crate) async fn query(
        &self,
        query: Query,
        params: Params<'_>,
    ) -> Result<Vec<Row>, Failure> {
        let sent = Instant::now();
        let answer = tokio::time::timeout(self.wait, async {
            let statement = self.prepared(query).await?;
            self.client.query(statement, params).await
        });
        let failure = match answer.await {
            Ok(Ok(rows)) => {
                self.vitals.heard(sent);
                return Ok(rows);
            }
            Ok(Err(error)) => Failure::of(&error),
            Err(_) => {
                let message = format!("no answer within {} s", self.wait.as_secs());
                Failure::Lost(message.into())
            }
        };
        match &failure {
            Failure::Lost(reason) => self.lose(reason),
            Failure::Refused { .. } => self.vitals.heard(sent),
        }
        Err(failure)
    }

    /// Prepares a statement, so that its first use is one round trip.
    pub(crate) async fn prepare(&self, query: Query) -> Result<(), Failure> {
        let prepared = tokio::time::timeout(self.wait, self.prepared(query)).await;
        let failure = match prepared {
            Ok(Ok(_)) => return Ok(()),
            Ok(Err(error)) => Failure::of(&error),
            Err(_) => Failure::Lost("no answer".into()),
        };
        self.lose(failure.reason());
        Err(failure)
    }

    async fn prepared(&self, query: Query) -> Result<&Statement, tokio_postgres::Error> {
        self.statements[query as usize].get_or_try_init(|| self.client.prepare(query.text())).await
    }

    pub(crate) fn is_usable(&self) -> bool {
        !self.is_lost.load(Ordering::Acquire) && !self.client.is_closed()
    }

    /// Nobody asks it any more; what was asked gets no answer.
    fn lose(&self, why: &str) {
        if !self.is_lost.swap(true, Ordering::AcqRel) {
            count(&self.vitals.counts.connections_lost);
            self.vitals.lost(why);
        }
        self.task.abort();
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A few connections that many share.
pub(crate) struct Pool {
    connector: Arc<Connector>,
    isolation: Isolation,
    slots: Vec<Mutex<Option<Arc<Connection>>>>,
    next: AtomicUsize,
}

/// For how long a statement that may be repeated is tried when its connection is lost: a server that
/// restarts is there again by then.
const REPEAT_WAIT: Duration = Duration::from_secs(5);

impl Pool {
    pub(crate) fn new(connector: Arc<Connector>, size: usize, isolation: Isolation) -> Self {
        let slots = (0..size).map(|_| Mutex::new(None)).collect();
        Self { connector, isolation, slots, next: AtomicUsize::new(0) }
    }

    pub(crate) fn vitals(&self) -> &Arc<Vitals> {
        self.connector.vitals()
    }

    /// A connection that works as far as is known.
    async fn connection(&self) -> Result<Arc<Connection>, Failure> {
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        let mut slot = self.slots[turn % self.slots.len()].lock().await;
        if let Some(connection) = slot.as_ref().filter(|connection| connection.is_usable()) {
            return Ok(Arc::clone(connection));
        }
        let connection = Arc::new(self.connector.connect(self.isolation).await?);
        *slot = Some(Arc::clone(&connection));
        Ok(connection)
    }

    /// Carries out a statement that does no harm when it is carried out twice.
    pub(crate) async fn query(
        &self,
        query: Query,
        params: Params<'_>,
    ) -> Result<Vec<Row>, Failure> {
        let vitals = self.connector.vitals();
        let begun = Instant::now();
        let mut tries = 1;
        loop {
            let failure = match self.query_once(query, params).await {
                Ok(rows) => return Ok(rows),
                Err(failure) => failure,
            };
            let passes = matches!(failure, Failure::Lost(_)) || failure.is_conflict();
            let is_gone = vitals.gone_for().is_some_and(|time| time > REPEAT_WAIT);
            if !passes || is_gone || begun.elapsed() > REPEAT_WAIT {
                return Err(failure);
            }
            count(&vitals.counts.statements_retried);
            tokio::time::sleep(pause(tries)).await;
            tries += 1;
        }
    }

    /// Carries out a statement, or fails.
    pub(crate) async fn query_once(
        &self,
        query: Query,
        params: Params<'_>,
    ) -> Result<Vec<Row>, Failure> {
        self.connection().await?.query(query, params).await
    }

    /// Ends all connections.
    pub(crate) async fn close(&self) {
        for slot in &self.slots {
            drop(slot.lock().await.take());
        }
    }
}

/// How long to wait after so many failures: 10 ms at first, a second at most, never the same for all.
pub(crate) fn pause(tries: usize) -> Duration {
    let millis = 10_u64 << tries.min(7).saturating_sub(1);
    let millis = millis.min(1000);
    Duration::from_millis(millis / 2 + rand::random_range(0..=millis / 2))
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").field("place", &self.place).finish_non_exhaustive()
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection").field("is_usable", &self.is_usable()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").field("size", &self.slots.len()).finish_non_exhaustive()
    }
}
