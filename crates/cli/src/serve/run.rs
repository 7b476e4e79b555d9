//! Starts what the plan says, serves, and stops.
//!
//! The order of a start: sockets first, so that a taken port is told before anything is touched and
//! clients that come early wait instead of failing; then HTTP, so that a long recovery can be
//! watched; then the engines, the broker, and the first accepted connection. A stop goes the other
//! way round.

use std::collections::BTreeMap;
use std::io;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use strandline_broker::{Broker, BrokerParts, COORDINATORS, Endpoint};
use strandline_console::{Console, Scope};
use strandline_model::config::Listener;
use strandline_model::{Limits, Timestamp};
use strandline_server::{BindError, Bound, Drained, Server, ServerConfig, SystemEnvironment, bind};
use tokio_util::sync::CancellationToken;
use tracing::level_filters::LevelFilter;

use super::coordinators::Coordinators;
use super::opening::Opening;
use super::plan::{Plan, is_loopback};
use super::port_owner::Owner;
use super::status::BrokerStatus;
use super::stop::Stops;
use super::tell::{tell_notices, tell_ready, tell_start};
use super::{port_owner, ports, storage};
use crate::failure::{Exit, Failure};
use crate::log_levels::LogLevels;
use crate::{console, logging};

/// How long HTTP has to finish its answers.
const HTTP_STOP_TIME: Duration = Duration::from_secs(2);

/// HTTP connections at a time: people and scrapers, not clients.
const HTTP_CONNECTIONS_MAX: usize = 64;

/// Serves until a signal or the plan's own reason stops it.
pub(crate) fn run(plan: &Plan) -> Result<(), Failure> {
    let begun = Instant::now();
    let levels = Arc::new(start_logging(plan));
    tell_notices(plan);
    raise_descriptor_limit();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| cannot_start("start the runtime", &error))?;
    let outcome = runtime.block_on(serve(plan, levels, begun));
    // What a blocking thread still does can't be waited for: it may wait for a disk that hangs.
    runtime.shutdown_background();
    outcome
}

/// What is bound before anything else happens.
struct Sockets {
    kafka: Vec<Bound>,
    kafka_address: String,
    kafka_port: u16,
    http: Vec<(Listener, Bound)>,
    http_address: Option<(String, u16)>,
}

async fn serve(plan: &Plan, levels: Arc<LogLevels>, begun: Instant) -> Result<(), Failure> {
    let stops = Stops::listen(plan.exit_with_parent);
    let mut stops = stops.map_err(|error| cannot_start("listen for signals", &error))?;
    let sockets = bind_all(plan)?;
    let Sockets { kafka, kafka_address, kafka_port, http, http_address } = sockets;
    let name = plan.config.listeners[0].name.clone();
    let opening = Arc::new(Opening::begin(&plan.storage));
    let status = BrokerStatus::new(plan.config.node_id, now(), name, Arc::clone(&opening));
    let status = Arc::new(status);
    let http_stop = CancellationToken::new();
    let mut http_tasks = Vec::new();
    for (listener, bound) in http {
        http_tasks.extend(serve_http(&listener, bound, &status, &http_stop)?);
    }

    let coordinators = Coordinators::start(COORDINATORS);
    let coordinators = coordinators.map_err(|error| cannot_start("start threads", &error))?;
    let explicit = &plan.config.advertised_listeners;
    let advertised = advertised(&plan.config.listeners, &kafka, explicit);
    // A signal ends a start, too: nothing is acknowledged yet, and the next start goes on.
    let broker = tokio::select! {
        started = opening.watch(start_broker(plan, levels, &coordinators, advertised, &opening)) => {
            started?
        }
        reason = stops.first() => {
            tracing::warn!(%reason, "stopped during the start");
            std::process::exit(reason.exit_code());
        }
    };
    status.recovered(Arc::clone(&broker));
    let server = Server::start(kafka, Arc::clone(&broker), server_config(plan))
        .map_err(|error| cannot_start("serve connections", &error))?;
    status.serving();
    if let Some(file) = &plan.ports_file {
        let http_port = http_address.as_ref().map(|(_, port)| *port);
        ports::write(file, kafka_port, http_port)
            .map_err(|error| cannot_start(&format!("write {}", file.display()), &error))?;
    }
    let http_url = http_address.map(|(url, _)| url);
    tell_ready(plan, &broker, &kafka_address, http_url.as_deref(), begun.elapsed());

    let reason = stops.first().await;
    status.draining();
    tracing::info!(%reason, "stopping");
    let limit = Duration::from_millis(plan.config.shutdown_timeout_ms);
    let outcome = stop(&broker, server, limit).await;
    coordinators.stop();
    http_stop.cancel();
    stop_http(http_tasks).await;
    outcome
}

/// Answers under way get a moment; a scraper that takes none of its answer does not hold us.
async fn stop_http(tasks: Vec<tokio::task::JoinHandle<()>>) {
    let ended = async {
        for task in tasks {
            if let Err(error) = task.await {
                tracing::error!(%error, "http ended badly");
            }
        }
    };
    if tokio::time::timeout(HTTP_STOP_TIME, ended).await.is_err() {
        tracing::warn!("http connections were cut");
    }
}

async fn start_broker(
    plan: &Plan,
    levels: Arc<LogLevels>,
    coordinators: &Coordinators,
    advertised: BTreeMap<u16, Endpoint>,
    opening: &Opening,
) -> Result<Arc<Broker>, Failure> {
    let opened = storage::open(plan, opening).await?;
    let report = opened.report;
    let parts = BrokerParts {
        layers: plan.layers(),
        config: plan.config.clone(),
        engines: opened.engines,
        meta: opened.meta,
        environment: Arc::new(SystemEnvironment),
        coordinators: coordinators.runtimes().to_vec(),
        advertised,
        loggers: levels,
        features: plan.features.iter().map(|one| (one.name.clone(), one.level)).collect(),
    };
    let broker = Broker::start(parts).await.map_err(|error| cannot_start("start", &error))?;
    tell_start(report.as_deref(), &broker);
    for topic in &plan.topics {
        let count = topic.partition_count.map_or(-1, u32::cast_signed);
        broker.ensure_topic(&topic.name, count).await.map_err(|why| {
            Failure::new(Exit::Usage, "topic", format!("cannot create topic {}: {why}", topic.name))
        })?;
    }
    Ok(broker)
}

/// The explicit addresses, by the port on which clients reach the listener of the same name.
fn advertised(
    listeners: &[Listener],
    bound: &[Bound],
    explicit: &[Listener],
) -> BTreeMap<u16, Endpoint> {
    let mut addresses = BTreeMap::new();
    for (listener, bound) in listeners.iter().zip(bound) {
        let named = explicit.iter().find(|address| address.name == listener.name);
        let Some(Listener { host: Some(host), port, .. }) = named else { continue };
        addresses.insert(bound.port(), Endpoint { host: host.clone(), port: *port });
    }
    addresses
}

/// Ends what waits, lets what runs finish, and closes the engines.
async fn stop(broker: &Broker, server: Server, limit: Duration) -> Result<(), Failure> {
    let begun = Instant::now();
    broker.drain();
    let Drained { cut, stuck } = server.drain(limit).await;
    if cut > 0 || stuck {
        tracing::warn!(
            limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX),
            connections = cut,
            worker_is_stuck = stuck,
            "connections that were busy at shutdown.timeout.ms were cut"
        );
    }
    broker.close().await.map_err(|error| {
        let why = chain(&error);
        Failure::new(Exit::Failed, "unclean_stop", format!("cannot stop cleanly: {why}"))
            .hint("nothing acknowledged is lost; the next start recovers")
    })?;
    let took_ms = begun.elapsed().as_millis();
    tracing::info!(took_ms = u64::try_from(took_ms).unwrap_or(u64::MAX), "stopped cleanly");
    if console::stderr_is_terminal() {
        console::say(&format!("stopped cleanly in {took_ms} ms"));
    }
    Ok(())
}

fn bind_all(plan: &Plan) -> Result<Sockets, Failure> {
    let backlog = plan.config.socket_listen_backlog_size;
    let mut kafka = Vec::new();
    for listener in &plan.config.listeners {
        kafka.push(bind_one(listener, backlog, "--port")?);
    }
    let mut http = Vec::new();
    for listener in &plan.config.http_listeners {
        http.push((listener.clone(), bind_one(listener, backlog, "--http")?));
    }
    let kafka_port = kafka.first().map_or(0, Bound::port);
    let kafka_address = address(&plan.config.listeners[0], kafka_port);
    let http_address = http.first().map(|(listener, bound)| {
        (format!("http://{}", address(listener, bound.port())), bound.port())
    });
    Ok(Sockets { kafka, kafka_address, kafka_port, http, http_address })
}

/// Where this machine reaches a listener.
fn address(listener: &Listener, port: u16) -> String {
    match listener.host.as_deref() {
        None | Some("0.0.0.0" | "::") => format!("localhost:{port}"),
        Some(host) if host.contains(':') => format!("[{host}]:{port}"),
        Some(host) => format!("{host}:{port}"),
    }
}

/// Takes each port for a moment: which listener, and why it can't be had.
pub(super) fn try_listeners(plan: &Plan) -> Vec<(String, Result<(), Failure>)> {
    let backlog = plan.config.socket_listen_backlog_size;
    let kafka = plan.config.listeners.iter().map(|listener| (listener, "--port"));
    let http = plan.config.http_listeners.iter().map(|listener| (listener, "--http"));
    // All are held until the last was tried: two of them may want one port.
    let tried: Vec<_> = kafka
        .chain(http)
        .map(|(listener, flag)| (listener.to_string(), bind_one(listener, backlog, flag)))
        .collect();
    tried.into_iter().map(|(listener, bound)| (listener, bound.map(drop))).collect()
}

fn bind_one(listener: &Listener, backlog: u32, flag: &str) -> Result<Bound, Failure> {
    let host = listener.host.as_deref().unwrap_or_default();
    bind(host, listener.port, backlog).map_err(|error| cannot_bind(listener, &error, flag))
}

fn cannot_bind(listener: &Listener, error: &BindError, flag: &str) -> Failure {
    let at = listener.to_string();
    let at = at.split_once("://").map_or(at.as_str(), |(_, address)| address);
    let fail = |why: &str| {
        Failure::new(Exit::Failed, "cannot_listen", format!("cannot listen on {at}: {why}"))
    };
    match error.error.kind() {
        io::ErrorKind::AddrInUse => {
            let (why, way_out) = held_by(port_owner::owner_of(listener.port));
            fail(&why).hint(format!("{way_out}: strandline serve {flag} 0"))
        }
        io::ErrorKind::PermissionDenied => {
            fail("ports below 1024 need a privilege").hint("take a port from 1024 on")
        }
        io::ErrorKind::AddrNotAvailable => {
            fail("this machine has no such address").hint("--bind 0.0.0.0 listens on all of them")
        }
        _ => fail(&error.error.to_string()),
    }
}

/// Who has a port that we want, and what to do about it.
fn held_by(owner: Option<Owner>) -> (String, &'static str) {
    match owner {
        Some(owner) if owner.pid == std::process::id() => {
            ("another listener of this broker has the port".to_owned(), "take another port")
        }
        Some(Owner { pid, name }) => {
            (format!("process {pid} ({name}) holds the port"), "stop it, or take another port")
        }
        None => ("the port is in use".to_owned(), "take another port"),
    }
}

fn serve_http(
    listener: &Listener,
    bound: Bound,
    status: &Arc<BrokerStatus>,
    stop: &CancellationToken,
) -> Result<Vec<tokio::task::JoinHandle<()>>, Failure> {
    let scope = if is_loopback(listener) { Scope::Everything } else { Scope::HealthOnly };
    let mut tasks = Vec::new();
    for socket in bound.into_listeners() {
        let socket = tokio::net::TcpListener::from_std(socket);
        let socket = socket.map_err(|error| cannot_start("serve http", &error))?;
        let status: Arc<BrokerStatus> = Arc::clone(status);
        let console = Console { status, scope, connections_max: HTTP_CONNECTIONS_MAX };
        let stop = stop.clone();
        tasks.push(tokio::spawn(console.serve(socket, stop.cancelled_owned())));
    }
    Ok(tasks)
}

fn server_config(plan: &Plan) -> ServerConfig {
    ServerConfig {
        workers: std::thread::available_parallelism().map_or(1, NonZeroUsize::get),
        request_bytes_max: plan.config.socket_request_max_bytes,
        idle_max: plan.config.connections_max_idle_ms.map(Duration::from_millis),
        limits: Limits::production(),
    }
}

fn start_logging(plan: &Plan) -> LogLevels {
    let at_terminal = console::stderr_is_terminal();
    let format = match plan.config.logging_format.as_str() {
        "text" => logging::Format::Text,
        "json" => logging::Format::Json,
        _ if at_terminal => logging::Format::Text,
        _ => logging::Format::Json,
    };
    let is_set = !plan.settings.of("logging.level").is_empty();
    let level = match plan.verbosity {
        0 if at_terminal && !is_set => LevelFilter::WARN,
        // The table of keys allows no other words.
        0 => plan.config.logging_level.parse().unwrap_or(LevelFilter::INFO),
        1 => LevelFilter::INFO,
        _ => LevelFilter::DEBUG,
    };
    logging::start(format, level)
}

/// The default is 1024 descriptors, and each connection and open segment takes one.
fn raise_descriptor_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    if limit.current == limit.maximum {
        return;
    }
    if let Err(error) =
        setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, maximum: limit.maximum })
    {
        tracing::warn!(%error, "limit of open files stays as it is");
    }
}

pub(super) fn cannot_start(what: &str, error: &(dyn std::error::Error + 'static)) -> Failure {
    Failure::new(Exit::Failed, "cannot_start", format!("cannot {what}: {}", chain(error)))
}

/// An error with its causes.
pub(crate) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text += &format!(": {cause}");
        source = cause.source();
    }
    text
}

pub(crate) fn now() -> Timestamp {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_millis(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_listener_has_the_advertised_address_of_its_name() {
        let listener = |text: &str| Listener::parse(text).expect("a listener");
        let listeners = [listener("IN://127.0.0.1:0"), listener("OUT://127.0.0.1:0")];
        let bound: Vec<Bound> = listeners
            .iter()
            .map(|listener| bind_one(listener, 1, "--port").expect("a free port"))
            .collect();
        let explicit = [listener("OUT://kafka.example:19092")];
        let addresses = advertised(&listeners, &bound, &explicit);
        let told = Endpoint { host: "kafka.example".to_owned(), port: 19092 };
        assert_eq!(addresses, BTreeMap::from([(bound[1].port(), told)]));
    }

    #[test]
    fn a_taken_port_is_told_with_its_process() {
        let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = taken.local_addr().expect("bound").port();
        let listener = Listener::parse(&format!("PLAINTEXT://127.0.0.1:{port}")).expect("good");
        let failure = bind_one(&listener, 1, "--port").expect_err("taken");
        let held = "another listener of this broker has the port";
        assert_eq!(failure.message, format!("cannot listen on 127.0.0.1:{port}: {held}"));
        assert_eq!(failure.hints, ["take another port: strandline serve --port 0".to_owned()]);
        let other = Owner { pid: 1, name: "init".to_owned() };
        assert_eq!(held_by(Some(other)).0, "process 1 (init) holds the port");
    }
}
