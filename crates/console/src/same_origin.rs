//! Changes are asked for from this machine by whoever means it, not by a page of another site that a
//! browser happens to show.
//!
//! A browser sends a page's POST to `localhost` whoever made the page, and says in `Origin` where the
//! page is from. A page whose own name was made to point here says a `Host` that is not ours.

use std::net::IpAddr;

use axum::extract::Request;
use axum::http::header::{HOST, ORIGIN};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

/// Refuses a request with 403 unless it is [meant](refusal).
pub(crate) async fn only(request: Request, next: Next) -> Response {
    match refusal(request.headers()) {
        None => next.run(request).await,
        Some(why) => {
            let problem = format!("{{\"error\":\"{why}\"}}\n");
            (StatusCode::FORBIDDEN, [("content-type", "application/json")], problem).into_response()
        }
    }
}

/// Why a request is not believed to be meant. `None`: it names this machine as its host, and comes from
/// no page or from one of that host.
fn refusal(headers: &HeaderMap) -> Option<&'static str> {
    let one = |name| {
        let mut values = headers.get_all(name).iter();
        let first = values.next().map(|value| value.to_str().unwrap_or(""));
        if values.next().is_some() { Some("") } else { first }
    };
    let host = one(HOST).unwrap_or("");
    if !is_here(host) {
        return Some("changes are taken at localhost or an address of loopback only (Host)");
    }
    match one(ORIGIN) {
        None => None,
        Some(origin) if origin.strip_prefix("http://").is_some_and(|it| it == host) => None,
        Some(_) => Some("changes are not taken from pages of other sites (Origin)"),
    }
}

/// Whether `host` (with or without a port) can be nowhere else.
fn is_here(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.parse::<u16>().is_ok() => name,
        _ => host,
    };
    let address = name.strip_prefix('[').and_then(|it| it.strip_suffix(']')).unwrap_or(name);
    name.eq_ignore_ascii_case("localhost")
        || address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(host: Option<&str>, origin: Option<&str>) -> bool {
        let mut headers = HeaderMap::new();
        for (name, value) in [(HOST, host), (ORIGIN, origin)] {
            if let Some(value) = value {
                headers.insert(name, value.parse().expect("a value"));
            }
        }
        refusal(&headers).is_some()
    }

    #[test]
    fn only_this_machine_and_its_own_pages_may_change_something() {
        for (host, origin, expected) in [
            (Some("localhost:9644"), None, false),
            (Some("LocalHost"), None, false),
            (Some("127.0.0.1:1"), None, false),
            (Some("127.8.9.1"), None, false),
            (Some("[::1]:9644"), None, false),
            (Some("localhost:9644"), Some("http://localhost:9644"), false),
            (None, None, true),
            (Some(""), None, true),
            (Some("evil.example"), None, true),
            (Some("localhost.evil.example"), None, true),
            (Some("10.0.0.1:9644"), None, true),
            (Some("[::2]"), None, true),
            (Some("evil.example"), Some("http://evil.example"), true),
            (Some("localhost:9644"), Some("http://evil.example"), true),
            (Some("localhost:9644"), Some("https://localhost:9644"), true),
            (Some("localhost:9644"), Some("http://localhost:3000"), true),
            (Some("localhost:9644"), Some("null"), true),
        ] {
            assert_eq!(refused(host, origin), expected, "{host:?} {origin:?}");
        }
        let mut twice = HeaderMap::new();
        twice.append(HOST, "localhost".parse().expect("a value"));
        twice.append(HOST, "evil.example".parse().expect("a value"));
        assert!(refusal(&twice).is_some());
    }
}
