//! How a client behaves.

use std::time::Duration;

use strandline_model::ByteCount;

use crate::Address;
use crate::address::ParseAddressError;

/// How a client behaves. Made by [`Config::new`]; fields may be changed before connecting.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where to begin: the first that answers is used.
    pub bootstrap: Vec<Address>,
    /// How the client calls itself in requests.
    pub client_id: String,
    /// How long one address may take to be resolved and connected, and to say what it serves.
    pub connect_timeout: Duration,
    /// How long one call may take, looking up leaders again included.
    pub request_timeout: Duration,
    /// The largest response that is read. A larger one ends the connection.
    pub response_bytes_max: ByteCount,
}

impl Config {
    /// Kafka's timeouts for tools: 10 s to connect, 30 s for a call.
    pub fn new(bootstrap: &str) -> Result<Self, ParseAddressError> {
        Ok(Self {
            bootstrap: Address::list(bootstrap)?,
            client_id: "strandline".to_owned(),
            connect_timeout: Duration::from_secs(10),
            request_timeout: Duration::from_secs(30),
            response_bytes_max: ByteCount::mib(128),
        })
    }
}
