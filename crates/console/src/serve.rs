//! The HTTP listener: who may connect, for how long, and what they may ask.
//!
//! # Invariants
//! - At most [`Console::connections_max`] connections are open. Reached: others wait unaccepted.
//! - A connection ends after [`LIFETIME_MAX`] whatever it does, so that a peer that reads or writes
//!   a byte now and then gives its place back. Scrapers that keep connections open make a new one.
//! - A request's head has at most [`HEAD_BYTES_MAX`] bytes and comes within [`HEAD_WAIT_MAX`].

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Path, Query, State};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router, middleware};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::{sleep, timeout};

use crate::retention::{Question, View};
use crate::{Client, Reconciliation, Status, deletions, groups, health, metrics, retention};

/// How long a connection may last before it is asked to end.
const LIFETIME_MAX: Duration = Duration::from_mins(1);
/// How long an answer under way may take once its connection was asked to end.
const GRACE_MAX: Duration = Duration::from_secs(5);
/// How long a request's head may take, from the end of the request before.
const HEAD_WAIT_MAX: Duration = Duration::from_secs(10);
/// The largest head of a request. Reached: 431 and the end of the connection.
const HEAD_BYTES_MAX: usize = 16 * 1024;
/// The most headers of a request. Reached: 431 and the end of the connection.
const HEADERS_MAX: usize = 64;
/// The pause after a failed accept, which comes from a lack of descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// What is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Health, metrics and the API: for loopback.
    Everything,
    /// Health alone: for any other address while there is no authentication.
    HealthOnly,
}

/// The HTTP side of a broker.
#[derive(Clone, Debug)]
pub struct Console {
    /// Whom it asks.
    pub status: Arc<dyn Status>,
    /// What it tells.
    pub scope: Scope,
    /// Connections that may be open at once.
    pub connections_max: usize,
}

impl Console {
    /// Serves `listener` until `stop` resolves and the answers under way have been sent.
    pub async fn serve(self, listener: TcpListener, stop: impl Future<Output = ()>) {
        let router = router(self.status, self.scope);
        let places = Arc::new(Semaphore::new(self.connections_max));
        let (stopping, _) = watch::channel(false);
        let mut stop = pin!(stop);
        loop {
            let place = tokio::select! {
                () = &mut stop => break,
                place = Arc::clone(&places).acquire_owned() => {
                    place.expect("nobody closes the semaphore")
                }
            };
            let accepted = tokio::select! {
                () = &mut stop => break,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, _peer)) => {
                    let conversation =
                        converse(stream, router.clone(), stopping.subscribe(), place);
                    tokio::spawn(conversation);
                }
                Err(error) => {
                    tracing::warn!(%error, "http connection not accepted");
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
        drop(listener);
        stopping.send_replace(true);
        // Every conversation holds the other end while it lasts.
        if timeout(GRACE_MAX * 2, stopping.closed()).await.is_err() {
            tracing::warn!("http connections left open");
        }
    }
}

/// One connection, from its first byte to its last.
async fn converse(
    stream: TcpStream,
    router: Router,
    mut stopping: watch::Receiver<bool>,
    place: OwnedSemaphorePermit,
) {
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WAIT_MAX)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX)
        .half_close(false)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router));
    let mut connection = pin!(connection);
    let end = tokio::select! {
        outcome = &mut connection => outcome,
        () = last_call(&mut stopping) => {
            connection.as_mut().graceful_shutdown();
            match timeout(GRACE_MAX, connection).await {
                Ok(outcome) => outcome,
                // The peer does not take its answer: dropping the connection resets it.
                Err(_) => Ok(()),
            }
        }
    };
    if let Err(error) = end {
        tracing::debug!(%error, "http connection ended");
    }
    drop(place);
}

/// Resolves when a connection is to end: it is old, or the console stops.
async fn last_call(stopping: &mut watch::Receiver<bool>) {
    // An error says that the console is gone, which is a stop too.
    let stopped = async { drop(stopping.wait_for(|&stopping| stopping).await) };
    tokio::select! {
        () = sleep(LIFETIME_MAX) => {}
        () = stopped => {}
    }
}

fn router(status: Arc<dyn Status>, scope: Scope) -> Router {
    let health = Router::new()
        .route("/livez", get(liveness))
        .route("/healthz", get(liveness))
        .route("/readyz", get(readiness));
    let served = match scope {
        Scope::Everything => health
            .route("/metrics", get(scrape))
            .route("/v1/clients", get(clients))
            .route("/v1/groups/{name}", get(groups::show))
            .route("/v1/storage", get(storage))
            .route("/v1/topics/{name}/retention", get(retention))
            .route("/v1/topics/{name}/segments", get(segments))
            .merge(deletions::routes()),
        Scope::HealthOnly => health,
    };
    served
        .fallback(async || (StatusCode::NOT_FOUND, "nothing here\n"))
        .layer(middleware::map_response(with_fixed_headers))
        .with_state(status)
}

async fn liveness(State(status): State<Arc<dyn Status>>, ask: Query<health::Ask>) -> Response {
    health::answer(&health::LIVENESS, status.liveness(), ask)
}

async fn readiness(State(status): State<Arc<dyn Status>>, ask: Query<health::Ask>) -> Response {
    health::answer(&health::READINESS, status.readiness(), ask)
}

async fn scrape(State(status): State<Arc<dyn Status>>, headers: HeaderMap) -> Response {
    let format = metrics::Format::of(&headers);
    let content_type = [(CONTENT_TYPE, HeaderValue::from_static(format.content_type()))];
    (content_type, metrics::text(status, format)).into_response()
}

async fn clients(State(status): State<Arc<dyn Status>>) -> Json<Vec<Client>> {
    Json(status.clients())
}

async fn storage(State(status): State<Arc<dyn Status>>) -> Json<Vec<Reconciliation>> {
    Json(status.reconciliation())
}

/// What stands behind the question mark, in order; a name may come twice.
type Asked = Query<Vec<(String, String)>>;

async fn retention(status: State<Arc<dyn Status>>, name: Path<String>, asked: Asked) -> Response {
    kept(&status, &name, asked, View::Retention)
}

async fn segments(status: State<Arc<dyn Status>>, name: Path<String>, asked: Asked) -> Response {
    kept(&status, &name, asked, View::Segments)
}

/// What is kept of a topic, as it is or as if it were configured otherwise.
fn kept(status: &Arc<dyn Status>, name: &str, Query(asked): Asked, view: View) -> Response {
    let asked = Question::parse(view, asked).and_then(|question| {
        let found = status.retention(name, question.simulated())?;
        Ok((question, found))
    });
    retention::answer(name, asked)
}

async fn with_fixed_headers(mut response: Response) -> Response {
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
