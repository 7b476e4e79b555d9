//! One connection to one broker: negotiation, requests, responses in order.
//!
//! Requests may be pipelined: [`send`](Connection::send) several, then [`receive`](Connection::receive)
//! their responses in the same order, which is the order in which Kafka answers.
//!
//! # Invariants
//! - A call that is dropped half-way leaves the connection usable: what is not written yet is
//!   written by the next call, and a response that nobody waits for is thrown away.
//! - Memory grows with what has arrived, not with what a peer claims to send.

use std::collections::VecDeque;
use std::io;
use std::time::Duration;

use bytes::{Buf, Bytes, BytesMut};
use strandline_wire::{
    Api, ApiKey, ErrorCode, KafkaString, Message, Request, RequestHeader, api_versions,
    read_response, response_correlation_id, write_request,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout, timeout_at};

use crate::{Address, ClientError, Config, Origin};

/// Requests of one connection that wait for their responses. Reached: `send` refuses.
const IN_FLIGHT_MAX: usize = 1000;
/// The first step of room for a response; later steps double what has arrived.
const ROOM_BYTES_MIN: usize = 16 * 1024;

/// A connection to one broker.
#[derive(Debug)]
pub struct Connection {
    address: Address,
    stream: TcpStream,
    client_id: KafkaString,
    /// What the broker said that it serves.
    said: api_versions::Response,
    next_correlation_id: i32,
    in_flight: VecDeque<Sent>,
    to_write: BytesMut,
    read: BytesMut,
    response_bytes_max: usize,
}

/// A request that was sent: what its response is received with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    correlation_id: i32,
    api: Api,
}

impl Connection {
    /// Connects, and asks what the broker serves.
    pub async fn open(
        address: &Address,
        origin: Origin,
        config: &Config,
    ) -> Result<Self, ClientError> {
        let unreachable = |source| ClientError::Unreachable {
            address: address.clone(),
            origin: origin.clone(),
            source,
        };
        let deadline = Instant::now() + config.connect_timeout;
        let target = (address.host(), address.port());
        let stream = timeout_at(deadline, TcpStream::connect(target))
            .await
            .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
            .map_err(unreachable)?;
        stream.set_nodelay(true).map_err(unreachable)?;
        let mut connection = Self {
            address: address.clone(),
            stream,
            client_id: KafkaString::from(config.client_id.clone()),
            said: api_versions::Response::default(),
            next_correlation_id: 0,
            in_flight: VecDeque::new(),
            to_write: BytesMut::new(),
            read: BytesMut::new(),
            response_bytes_max: usize::try_from(config.response_bytes_max.get())
                .unwrap_or(usize::MAX),
        };
        match timeout_at(deadline, connection.negotiate()).await {
            Ok(Ok(said)) => connection.said = said,
            Ok(Err(error)) => return Err(error),
            Err(_) => {
                let doing = ApiKey::ApiVersions;
                let after = config.connect_timeout;
                return Err(ClientError::Timeout { address: address.clone(), doing, after });
            }
        }
        Ok(connection)
    }

    /// Where this connection leads.
    pub const fn address(&self) -> &Address {
        &self.address
    }

    /// What the broker said that it serves.
    pub(crate) const fn said(&self) -> &api_versions::Response {
        &self.said
    }

    /// The newest version of `key` that both sides know, at most `at_most`.
    pub fn version(&self, key: ApiKey, at_most: i16) -> Result<Api, ClientError> {
        let ours = key.spoken();
        self.said
            .api_keys
            .iter()
            .find(|theirs| theirs.api_key == key.number())
            .map(|theirs| {
                let max = theirs.max_version.min(ours.max_version).min(at_most);
                (theirs.min_version.max(ours.min_version), max)
            })
            .filter(|(min, max)| min <= max)
            .and_then(|(_, max)| ours.at(max))
            .ok_or_else(|| ClientError::Unsupported { address: self.address.clone(), key })
    }

    /// Sends `request` in the newest version that both sides know and waits for its response.
    pub async fn call<R: Request>(
        &mut self,
        request: &R,
        within: Duration,
    ) -> Result<R::Response, ClientError> {
        let api = self.version(R::KEY, i16::MAX)?;
        self.call_at(api, request, within).await
    }

    /// Sends `request` in one version and waits for its response.
    pub async fn call_at<R: Request>(
        &mut self,
        api: Api,
        request: &R,
        within: Duration,
    ) -> Result<R::Response, ClientError> {
        let exchange = async {
            let sent = self.send(api, request).await?;
            self.receive::<R::Response>(sent).await
        };
        match timeout(within, exchange).await {
            Ok(result) => result,
            Err(_) => Err(ClientError::Timeout {
                address: self.address.clone(),
                doing: R::KEY,
                after: within,
            }),
        }
    }

    /// Writes a request, without waiting for its response.
    pub async fn send(&mut self, api: Api, request: &impl Message) -> Result<Sent, ClientError> {
        if self.in_flight.len() >= IN_FLIGHT_MAX {
            let source = io::Error::other("too many requests in flight");
            return Err(self.broken(api.key(), source));
        }
        let correlation_id = self.next_correlation_id;
        let client_id = Some(self.client_id.clone());
        let header = RequestHeader { api, correlation_id, client_id };
        write_request(&mut self.to_write, &header, request)?;
        let sent = Sent { correlation_id, api };
        self.next_correlation_id = correlation_id.wrapping_add(1);
        self.in_flight.push_back(sent);
        self.flush(api.key()).await?;
        Ok(sent)
    }

    /// Waits for the response of a request. Responses of earlier requests are thrown away.
    pub async fn receive<M: Message>(&mut self, sent: Sent) -> Result<M, ClientError> {
        let frame = self.receive_frame(sent).await?;
        let (_, message) =
            read_response(frame, sent.api).map_err(|source| self.garbled(sent, source))?;
        Ok(message)
    }

    async fn receive_frame(&mut self, sent: Sent) -> Result<Bytes, ClientError> {
        self.flush(sent.api.key()).await?;
        loop {
            let frame = self.next_frame(sent.api.key()).await?;
            let correlation_id =
                response_correlation_id(&frame).map_err(|source| self.garbled(sent, source))?;
            let oldest = self.in_flight.pop_front();
            match oldest {
                Some(oldest) if oldest.correlation_id == correlation_id => {
                    if oldest == sent {
                        return Ok(frame);
                    }
                }
                _ => {
                    let source = io::Error::other("responses are out of order");
                    return Err(self.broken(sent.api.key(), source));
                }
            }
        }
    }

    /// `ApiVersions` in our newest version, or in the newest that the broker has (KIP-511).
    async fn negotiate(&mut self) -> Result<api_versions::Response, ClientError> {
        let ours = ApiKey::ApiVersions.served();
        let mut version = ours.max_version;
        // Twice is enough: the answer to the first request says what the second has to be.
        for _ in 0..2 {
            let api = ours.at(version).expect("one of our versions");
            let request = api_versions::Request {
                client_software_name: KafkaString::from_static("strandline"),
                client_software_version: KafkaString::from_static(env!("CARGO_PKG_VERSION")),
                ..Default::default()
            };
            let sent = self.send(api, &request).await?;
            let response = self.receive_api_versions(sent).await?;
            if response.error_code != ErrorCode::UNSUPPORTED_VERSION.get() {
                let subject = || format!("{} ApiVersions", self.address);
                ClientError::check(response.error_code, subject, None)?;
                return Ok(response);
            }
            let theirs = response.api_keys.iter().find(|row| row.api_key == ours.key.number());
            version = theirs.map_or(0, |row| row.max_version).clamp(0, version);
        }
        Err(ClientError::Unsupported { address: self.address.clone(), key: ApiKey::ApiVersions })
    }

    /// A broker that does not know the version answers in version 0, whatever it was asked.
    async fn receive_api_versions(
        &mut self,
        sent: Sent,
    ) -> Result<api_versions::Response, ClientError> {
        let frame = self.receive_frame(sent).await?;
        let unsupported = ErrorCode::UNSUPPORTED_VERSION.get().to_be_bytes();
        let version_0 = frame.get(4..6) == Some(&unsupported[..]);
        let api = if version_0 { ApiKey::ApiVersions.served().at(0) } else { None };
        let (_, response) = read_response(frame, api.unwrap_or(sent.api))
            .map_err(|source| self.garbled(sent, source))?;
        Ok(response)
    }

    async fn flush(&mut self, doing: ApiKey) -> Result<(), ClientError> {
        while !self.to_write.is_empty() {
            match self.stream.write_buf(&mut self.to_write).await {
                Ok(0) => return Err(self.broken(doing, io::ErrorKind::WriteZero.into())),
                Ok(_) => {}
                Err(source) => return Err(self.broken(doing, source)),
            }
        }
        Ok(())
    }

    /// The next frame, without its length.
    async fn next_frame(&mut self, doing: ApiKey) -> Result<Bytes, ClientError> {
        loop {
            let whole = match self.read.first_chunk() {
                None => 4,
                Some(&length) => match usize::try_from(i32::from_be_bytes(length)) {
                    Ok(length) if length <= self.response_bytes_max => 4 + length,
                    _ => {
                        let source = io::Error::other("response length is impossible or too large");
                        return Err(self.broken(doing, source));
                    }
                },
            };
            if whole > 4 && self.read.len() >= whole {
                let mut frame = self.read.split_to(whole);
                frame.advance(4);
                return Ok(frame.freeze());
            }
            if whole == 4 && self.read.len() >= 4 {
                let source = io::Error::other("response is empty");
                return Err(self.broken(doing, source));
            }
            let missing = whole.saturating_sub(self.read.len());
            self.read.reserve(missing.min(self.read.len().max(ROOM_BYTES_MIN)));
            match self.stream.read_buf(&mut self.read).await {
                Ok(0) => return Err(self.broken(doing, io::ErrorKind::UnexpectedEof.into())),
                Ok(_) => {}
                Err(source) => return Err(self.broken(doing, source)),
            }
        }
    }

    fn broken(&self, doing: ApiKey, source: io::Error) -> ClientError {
        ClientError::Broken { address: self.address.clone(), doing, source }
    }

    fn garbled(&self, sent: Sent, source: strandline_wire::DecodeError) -> ClientError {
        ClientError::Garbled { address: self.address.clone(), doing: sent.api.key(), source }
    }
}
