//! Questions to a Strandline broker over HTTP, for what Kafka's protocol has no words for.

use std::fmt::Write as _;
use std::time::Duration;

use http_body_util::{BodyExt, Empty, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::HOST;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::failure::{Exit, Failure};

/// From the first packet to the last.
const TIME_MAX: Duration = Duration::from_secs(10);
/// The largest answer that is read.
const ANSWER_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The port of a broker's HTTP side.
const DEFAULT_PORT: u16 = 9644;

/// What `path` of the broker at `base` (`http://HOST[:PORT]`) says.
pub(crate) async fn get_json(base: &str, path: &str) -> Result<Value, Failure> {
    match ask(base, path).await? {
        (StatusCode::OK, answer) => Ok(answer),
        (status, _) => Err(other_answer(base, path, &format!("with {status}"))),
    }
}

/// The same with the answer's status, whatever it is.
pub(crate) async fn ask(base: &str, path: &str) -> Result<(StatusCode, Value), Failure> {
    send(base, Method::GET, path).await
}

/// Asks for something to be done: the answer's status, and what it says.
pub(crate) async fn post(base: &str, path: &str) -> Result<(StatusCode, Value), Failure> {
    send(base, Method::POST, path).await
}

/// What may stand in a path or behind a question mark.
pub(crate) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b':' => {
                escaped.push(char::from(byte));
            }
            _ => {
                write!(escaped, "%{byte:02X}").expect("writing to a string does not fail");
            }
        }
    }
    escaped
}

async fn send(base: &str, method: Method, path: &str) -> Result<(StatusCode, Value), Failure> {
    let authority = authority(base)?;
    let answered = timeout(TIME_MAX, exchange(&authority, method, path));
    let (status, body) = answered
        .await
        .unwrap_or_else(|_| Err("no answer in time".to_owned()))
        .map_err(|why| unreachable(base, &why))?;
    let answer = serde_json::from_slice(&body).map_err(|_| {
        // What is no JSON comes from another path or another program: the status tells more of it.
        other_answer(base, path, &format!("with {status}, which is no JSON"))
    });
    Ok((status, answer?))
}

/// What the failure of an answer is that nobody of ours gives.
pub(crate) fn other_answer(base: &str, path: &str, how: &str) -> Failure {
    Failure::new(Exit::Failed, "not_strandline", format!("{base} answered {path} {how}"))
        .hint("this needs a strandline broker of this version, on loopback")
}

fn unreachable(base: &str, why: &str) -> Failure {
    let message = format!("this needs a strandline broker (asked {base}, got {why})");
    Failure::new(Exit::Unreachable, "unreachable", message)
        .hint("name its HTTP address with --http-url or STRANDLINE_HTTP")
}

/// `HOST:PORT` of a base address.
fn authority(base: &str) -> Result<String, Failure> {
    let wrong = || Failure::usage(format!("--http-url {base}: write http://HOST:PORT"));
    let authority = base.strip_prefix("http://").ok_or_else(wrong)?.trim_end_matches('/');
    if authority.is_empty() || authority.contains(['/', '@', ' ']) {
        return Err(wrong());
    }
    let has_port = authority.rsplit_once(':').is_some_and(|(host, port)| {
        port.parse::<u16>().is_ok() && (!host.contains(':') || host.ends_with(']'))
    });
    Ok(if has_port { authority.to_owned() } else { format!("{authority}:{DEFAULT_PORT}") })
}

async fn exchange(
    authority: &str,
    method: Method,
    path: &str,
) -> Result<(StatusCode, Bytes), String> {
    let words = |error: &dyn std::error::Error| error.to_string();
    let stream = TcpStream::connect(authority).await.map_err(|error| match error.kind() {
        std::io::ErrorKind::ConnectionRefused => "connection refused".to_owned(),
        _ => error.to_string(),
    })?;
    let (mut sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|error| words(&error))?;
    // Its errors come out of the request too.
    tokio::spawn(async move { drop(connection.await) });
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(HOST, authority)
        .body(Empty::<Bytes>::new())
        .map_err(|error| words(&error))?;
    let response = sender.send_request(request).await.map_err(|error| words(&error))?;
    let status = response.status();
    let body = Limited::new(response.into_body(), ANSWER_BYTES_MAX).collect().await;
    Ok((status, body.map_err(|error| error.to_string())?.to_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_may_leave_the_port_out() {
        for (base, expected) in [
            ("http://localhost:9644", Some("localhost:9644")),
            ("http://localhost/", Some("localhost:9644")),
            ("http://[::1]:1", Some("[::1]:1")),
            ("http://[::1]", Some("[::1]:9644")),
            ("https://localhost", None),
            ("localhost:9644", None),
            ("http://", None),
            ("http://a/b", None),
        ] {
            assert_eq!(authority(base).ok().as_deref(), expected, "{base}");
        }
    }

    #[test]
    fn names_of_any_kind_stay_within_their_path() {
        assert_eq!(escaped("a-b_c.d"), "a-b_c.d");
        assert_eq!(escaped("../x?y z&é"), "..%2Fx%3Fy%20z%26%C3%A9");
    }

    #[tokio::test]
    async fn nobody_there_is_told_with_the_way_on() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let base = format!("http://{}", listener.local_addr().expect("bound"));
        drop(listener);
        let failure = get_json(&base, "/v1/clients").await.expect_err("nobody is there");
        assert_eq!(failure.exit, Exit::Unreachable);
        assert_eq!(
            failure.message,
            format!("this needs a strandline broker (asked {base}, got connection refused)")
        );
    }
}
