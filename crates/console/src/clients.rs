//! `/v1/clients`: who is connected, with which library, and what address each was told.

use std::net::SocketAddr;

use serde::{Serialize, Serializer};
use strandline_model::Timestamp;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// A client at one moment, as it is served. Field names are part of the API.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Client {
    /// How it calls itself; empty when it does not say.
    pub client_id: String,
    /// Its library; empty when it does not say.
    pub software_name: String,
    /// The version of its library; empty when it does not say.
    pub software_version: String,
    /// Its address.
    pub address: SocketAddr,
    /// Our address, as it reached us.
    pub reached: SocketAddr,
    /// Where it is told to connect.
    pub told: String,
    /// When it connected.
    #[serde(serialize_with = "rfc_3339")]
    pub connected_at: Timestamp,
    /// How many requests it has made on this connection.
    pub requests: u64,
    /// Kafka's name of its last request.
    pub last_request: Option<String>,
    /// When that came.
    #[serde(serialize_with = "rfc_3339_if_any")]
    pub last_request_at: Option<Timestamp>,
    /// Whether the connection is open. Only stranded clients are shown without one.
    pub connected: bool,
    /// Whether it asks for addresses again and again without going to one of them.
    pub stranded: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
pub(crate) fn rfc_3339<S: Serializer>(time: &Timestamp, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&text(*time))
}

#[expect(clippy::ref_option, reason = "serde calls it with a reference")]
pub(crate) fn rfc_3339_if_any<S: Serializer>(
    time: &Option<Timestamp>,
    to: S,
) -> Result<S::Ok, S::Error> {
    match time {
        Some(time) => rfc_3339(time, to),
        None => to.serialize_none(),
    }
}

fn text(time: Timestamp) -> String {
    let nanos = i128::from(time.as_millis()) * 1_000_000;
    let moment = OffsetDateTime::from_unix_timestamp_nanos(nanos).ok();
    // A clock outside the calendar is shown as what it is.
    moment.and_then(|moment| moment.format(&Rfc3339).ok()).unwrap_or_else(|| time.to_string())
}
