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

use strandline_broker::{Broker, BrokerParts, Endpoint};
use strandline_console::{Console, Scope};
use strandline_model::config::{FsyncPolicy, Listener};
use strandline_model::{Limits, Timestamp};
use strandline_server::{BindError, Bound, Drained, Server, ServerConfig, SystemEnvironment, bind};
use tokio_util::sync::CancellationToken;
use tracing::level_filters::LevelFilter;

use super::banner::Banner;
use super::plan::{Plan, Storage, is_loopback};
use super::status::BrokerStatus;
use super::stop::Stops;
use super::{port_owner, ports, storage};
use crate::failure::{Exit, Failure};
use crate::{console, logging};

/// How long HTTP has to finish its answers.
const HTTP_STOP_TIME: Duration = Duration::from_secs(2);

/// HTTP connections at a time: people and scrapers, not clients.
const HTTP_CONNECTIONS_MAX: usize = 64;

/// Serves until a signal or the plan's own reason stops it.
pub(crate) fn run(plan: &Plan) -> Result<(), Failure> {
    let begun = Instant::now();
    start_logging(plan);
    tell_notices(plan);
    raise_descriptor_limit();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| cannot_start("start the runtime", &error))?;
    let outcome = runtime.block_on(serve(plan, begun));
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

async fn serve(plan: &Plan, begun: Instant) -> Result<(), Failure> {
    let stops = Stops::listen(plan.exit_with_parent);
    let mut stops = stops.map_err(|error| cannot_start("listen for signals", &error))?;
    let sockets = bind_all(plan)?;
    let Sockets { kafka, kafka_address, kafka_port, http, http_address } = sockets;
    let name = plan.config.listeners[0].name.clone();
    let status = Arc::new(BrokerStatus::new(plan.config.node_id, now(), name));
    let http_stop = CancellationToken::new();
    let mut http_tasks = Vec::new();
    for (listener, bound) in http {
        http_tasks.extend(serve_http(&listener, bound, &status, &http_stop)?);
    }

    let explicit = &plan.config.advertised_listeners;
    let advertised = advertised(&plan.config.listeners, &kafka, explicit);
    // A signal ends a start, too: nothing is acknowledged yet, and the next start goes on.
    let broker = tokio::select! {
        started = start_broker(plan, advertised) => started?,
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
    advertised: BTreeMap<u16, Endpoint>,
) -> Result<Arc<Broker>, Failure> {
    let opened = storage::open(plan).await?;
    if let Some(report) = &opened.report {
        tell(report);
    }
    let parts = BrokerParts {
        layers: plan.layers(),
        config: plan.config.clone(),
        engines: opened.engines,
        meta: opened.meta,
        environment: Arc::new(SystemEnvironment),
        advertised,
        features: plan.features.iter().map(|one| (one.name.clone(), one.level)).collect(),
    };
    let broker = Broker::start(parts).await.map_err(|error| cannot_start("start", &error))?;
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
            let owner = match port_owner::owner_of(listener.port) {
                Some(owner) => format!("process {} ({}) holds the port", owner.pid, owner.name),
                None => "the port is in use".to_owned(),
            };
            fail(&owner).hint(format!("stop it, or take another port: strandline serve {flag} 0"))
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
        connections_max: plan.config.max_connections as usize,
        limits: Limits::production(),
    }
}

fn start_logging(plan: &Plan) {
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
    logging::start(format, level);
}

fn tell_notices(plan: &Plan) {
    for notice in plan.settings.notices() {
        let text = notice.to_string();
        if console::stderr_is_terminal() {
            console::say(&format!("warning: {text}"));
        } else {
            tracing::warn!("{text}");
        }
    }
    let without: Vec<&str> = plan.settings.without_effect().map(|(name, _)| name).collect();
    if !without.is_empty() {
        tell(&format!(
            "settings without effect here (strandline config check says why): {}",
            without.join(" ")
        ));
    }
    if plan.is_open_to_others() {
        let warning = "everybody who reaches this machine can read and write: nothing is \
                       authenticated yet; http outside of loopback serves health only";
        if console::stderr_is_terminal() {
            console::say(&format!("warning: {warning}"));
        } else {
            tracing::warn!("{warning}");
        }
    }
}

/// A line that a person should see once: on the terminal as it is, else in the log.
fn tell(text: &str) {
    if console::stderr_is_terminal() {
        console::say(text);
    } else {
        tracing::info!("{text}");
    }
}

fn tell_ready(plan: &Plan, broker: &Broker, kafka: &str, http: Option<&str>, after: Duration) {
    let ready_ms = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
    if !console::stderr_is_terminal() {
        tracing::info!(
            version = env!("CARGO_PKG_VERSION"),
            cluster_id = broker.cluster_id(),
            node_id = plan.config.node_id.get(),
            kafka,
            http,
            data = %plan.storage,
            fsync = %plan.config.storage_file_fsync,
            ready_ms,
            "ready"
        );
        return;
    }
    let data = match &plan.storage {
        Storage::Folder(folder) => folder.display().to_string(),
        Storage::Memory => "memory".to_owned(),
    };
    let banner = Banner {
        cluster_id: broker.cluster_id(),
        node_id: plan.config.node_id.get(),
        kafka,
        open_to_others: plan.is_open_to_others(),
        http,
        data: &data,
        how: &how_kept(plan, broker),
        config: &how_configured(plan),
        ready_after: after,
    };
    console::say(&banner.render());
}

fn how_kept(plan: &Plan, broker: &Broker) -> String {
    let policy = match (&plan.storage, plan.config.storage_file_fsync) {
        (Storage::Memory, _) => return "gone when the broker stops".to_owned(),
        (Storage::Folder(_), FsyncPolicy::Commit) => {
            "file engine, every acknowledged record is on disk (fsync)".to_owned()
        }
        (Storage::Folder(_), policy @ FsyncPolicy::Interval(_)) => {
            format!("file engine, fsync {policy}: power loss takes what is younger")
        }
        (Storage::Folder(_), FsyncPolicy::Never) => {
            "file engine, fsync never: power loss takes recent records".to_owned()
        }
    };
    let free = broker.space().into_iter().find(|(engine, _)| engine == "file");
    match free.and_then(|(_, space)| space.free) {
        Some(free) => format!("{policy}, {} MiB free", free.get() >> 20),
        None => policy,
    }
}

fn how_configured(plan: &Plan) -> String {
    let creation = if plan.config.auto_create_topics_enable {
        "topics are created on first use (auto.create.topics.enable=true)"
    } else {
        "topics are created by command only (auto.create.topics.enable=false)"
    };
    let changed = crate::settings::show(&plan.settings).len();
    match changed {
        0 => format!("defaults; {creation}"),
        1 => format!("1 setting (strandline config show); {creation}"),
        count => format!("{count} settings (strandline config show); {creation}"),
    }
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

fn cannot_start(what: &str, error: &(dyn std::error::Error + 'static)) -> Failure {
    Failure::new(Exit::Failed, "cannot_start", format!("cannot {what}: {}", chain(error)))
}

/// An error with its causes.
pub(super) fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text += &format!(": {cause}");
        source = cause.source();
    }
    text
}

fn now() -> Timestamp {
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
        let us = std::process::id();
        assert!(
            failure
                .message
                .starts_with(&format!("cannot listen on 127.0.0.1:{port}: process {us} (")),
            "{failure}"
        );
        assert_eq!(
            failure.hints,
            ["stop it, or take another port: strandline serve --port 0".to_owned()]
        );
    }
}
