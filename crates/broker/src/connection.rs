//! One client connection as the broker sees it: requests in, replies out, in order.

mod admin;
mod groups;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use strandline_wire::{
    Api, ApiKey, DecodeError, EncodeError, ErrorCode, KafkaString, Message, Request, RequestHeader,
    api_versions, create_topics, delete_topics, describe_cluster, describe_topic_partitions, fetch,
    init_producer_id, list_offsets, metadata, offset_for_leader_epoch, produce, write_response,
};

use crate::api;
use crate::clients::{ClientEntry, Clients, MetadataQuestion, Now};
use crate::codes::Codes;
use crate::topic::DeletedBy;
use crate::{Broker, Reply};

/// Who is on the other end, and which of our addresses it reached.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    /// The client's address.
    pub remote: SocketAddr,
    /// Ours, as the client reached it.
    pub local: SocketAddr,
}

/// Why a connection must be closed. A client mistake, or an answer that only closing can give.
#[derive(Debug, thiserror::Error)]
pub enum Disconnect {
    /// The request makes no sense.
    #[error("request can't be read")]
    Request(#[from] DecodeError),
    /// The response can't be written in the version that was asked for: a bug of ours.
    #[error("response can't be written")]
    Response(#[from] EncodeError),
    /// A Produce with `acks=0` failed: there is no answer in which to say so.
    #[error("produce without acknowledgement failed. topics=`{0}`")]
    UnacknowledgedProduce(String),
}

/// What a request came to so far.
#[derive(Debug)]
pub enum Started {
    /// The answer.
    Reply(Reply),
    /// There will be none (`acks=0`).
    Silent,
    /// Batches are submitted; the answer comes when they are durable. Further requests may start
    /// meanwhile.
    Waiting(PendingReply),
}

/// The answer to a Produce that waits for durability.
#[derive(Debug)]
pub struct PendingReply {
    broker: Arc<Broker>,
    produce: api::produce::PendingProduce,
    api: Api,
    correlation_id: i32,
    arrived_at: Duration,
}

/// A connection's side of the broker. Dropping it ends whatever it waits for.
#[derive(Debug)]
pub struct Connection {
    broker: Arc<Broker>,
    peer: Peer,
    client: ClientEntry,
}

impl Connection {
    /// A connection that was just accepted.
    pub fn open(broker: &Arc<Broker>, peer: Peer) -> Self {
        broker.metrics().connections_opened.add(1);
        let client = broker.client_book().open(peer, broker.clocks());
        Self { broker: Arc::clone(broker), peer, client }
    }

    /// Counts that the peer is thrown out for what it sent.
    pub fn refuse(&self) {
        self.broker.metrics().connections_refused.add(1);
    }

    /// The answer to an ApiVersions request of a version that is not served (KIP-511).
    pub fn unsupported_api_versions(correlation_id: i32) -> Result<Reply, EncodeError> {
        let api = ApiKey::ApiVersions.served().at(0).expect("version 0 is served");
        encode(api, correlation_id, &api::api_versions::unsupported())
    }

    /// Starts a request. When this returns a Produce has been appended (not yet durably), and
    /// everything else is done: requests of one connection take effect in their order.
    pub async fn start(
        &mut self,
        header: &RequestHeader,
        body: BytesMut,
    ) -> Result<Started, Disconnect> {
        let arrived_at = self.broker.environment().monotonic();
        let client_id = header.client_id.as_ref().map(KafkaString::as_str);
        self.broker.client_book().request(&self.client, header.api.key(), client_id, arrived_at);
        if header.api.key() == ApiKey::Produce {
            return self.start_produce(header, body, arrived_at).await;
        }
        let (api, id) = (header.api, header.correlation_id);
        let reply = match api.key() {
            key if groups::is_of_groups(key) => self.answer_of_groups(header, body).await?,
            key if admin::is_of_configs(key) => self.configure(api, id, body).await?,
            key if admin::is_of_tools(key) => self.administer(api, id, body).await?,
            ApiKey::DeleteTopics => self.delete_topics(header, body).await?,
            _ => self.answer(api, id, body).await?,
        };
        self.broker.answered(api.key(), arrived_at);
        Ok(Started::Reply(reply))
    }

    async fn start_produce(
        &self,
        header: &RequestHeader,
        body: BytesMut,
        arrived_at: Duration,
    ) -> Result<Started, Disconnect> {
        let request = produce::Request::decode(body, header.api)?;
        let produce =
            api::produce::begin(&self.broker, request, header.api.version(), arrived_at).await;
        if produce.wants_answer {
            return Ok(Started::Waiting(PendingReply {
                broker: Arc::clone(&self.broker),
                produce,
                api: header.api,
                correlation_id: header.correlation_id,
                arrived_at,
            }));
        }
        if produce.has_refusal() {
            let topics = produce.topic_names().join(", ");
            return Err(Disconnect::UnacknowledgedProduce(topics));
        }
        self.broker.metrics().answer(ApiKey::Produce, std::iter::empty());
        self.broker.answered(ApiKey::Produce, arrived_at);
        Ok(Started::Silent)
    }

    async fn answer(&self, api: Api, id: i32, body: BytesMut) -> Result<Reply, Disconnect> {
        let broker = &self.broker;
        let version = api.version();
        let replied = match api.key() {
            ApiKey::Produce => unreachable!("Produce is started, not answered"),
            ApiKey::Fetch => {
                let request = fetch::Request::decode(body, api)?;
                api::fetch::handle(broker, request, api, id).await
            }
            ApiKey::ListOffsets => {
                let request: list_offsets::Request = decode(body, api)?;
                reply(broker, api, id, &api::list_offsets::handle(broker, request, version).await)
            }
            ApiKey::Metadata => {
                let request: metadata::Request = decode(body, api)?;
                reply(broker, api, id, &self.answer_metadata(request, version).await)
            }
            ApiKey::ApiVersions => {
                let request: api_versions::Request = decode(body, api)?;
                let response = api::api_versions::handle(broker, &request, version);
                if response.error_code == ErrorCode::NONE.get() {
                    let name = request.client_software_name.as_str();
                    let software_version = request.client_software_version.as_str();
                    Clients::software(&self.client, name, software_version);
                }
                reply(broker, api, id, &response)
            }
            ApiKey::CreateTopics => {
                let request: create_topics::Request = decode(body, api)?;
                reply(broker, api, id, &api::create_topics::handle(broker, request).await)
            }
            ApiKey::DeleteTopics => unreachable!("who deletes is told with the header"),
            ApiKey::InitProducerId => {
                let request: init_producer_id::Request = decode(body, api)?;
                reply(broker, api, id, &api::init_producer_id::handle(broker, &request).await)
            }
            ApiKey::OffsetForLeaderEpoch => {
                let request: offset_for_leader_epoch::Request = decode(body, api)?;
                reply(broker, api, id, &api::offset_for_leader_epoch::handle(broker, request).await)
            }
            ApiKey::DescribeCluster => {
                let request: describe_cluster::Request = decode(body, api)?;
                reply(broker, api, id, &api::describe_cluster::handle(broker, &self.peer, &request))
            }
            ApiKey::DescribeTopicPartitions => {
                let request: describe_topic_partitions::Request = decode(body, api)?;
                reply(broker, api, id, &api::describe_topic_partitions::handle(broker, &request))
            }
            // A header names none but served APIs, and a test calls each of those.
            other => unreachable!("{other} is not served"),
        };
        Ok(replied?)
    }

    async fn delete_topics(
        &self,
        header: &RequestHeader,
        body: BytesMut,
    ) -> Result<Reply, Disconnect> {
        let api = header.api;
        let request: delete_topics::Request = decode(body, api)?;
        let client_id = header.client_id.as_ref().map(KafkaString::as_str).unwrap_or_default();
        let by = DeletedBy::new(client_id, self.peer.remote);
        let response = api::delete_topics::handle(&self.broker, request, api.version(), &by).await;
        Ok(reply(&self.broker, api, header.correlation_id, &response)?)
    }

    async fn answer_metadata(
        &self,
        request: metadata::Request,
        version: i16,
    ) -> metadata::Response {
        let broker = &self.broker;
        // In version 0 an empty list stands for all topics.
        let asks_for_all = match &request.topics {
            None => true,
            Some(topics) => version == 0 && topics.is_empty(),
        };
        let response = api::metadata::handle(broker, &self.peer, request, version).await;
        let question = MetadataQuestion::of(asks_for_all, &response);
        let told = broker.endpoint_for(&self.peer);
        broker.client_book().asked(&self.client, question, &told, broker.clocks());
        response
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        let told = self.broker.endpoint_for(&self.peer);
        self.broker.client_book().close(&self.client, &told, self.broker.clocks());
        self.broker.metrics().connections_closed.add(1);
    }
}

impl PendingReply {
    /// Waits for durability; then the reply.
    pub async fn finish(self) -> Result<Reply, EncodeError> {
        let response = self.produce.finish(&self.broker, self.arrived_at).await;
        self.broker.metrics().answer(ApiKey::Produce, response.codes());
        let mut buf = BytesMut::new();
        response.write_frame(&mut buf, self.api, self.correlation_id)?;
        self.broker.answered(ApiKey::Produce, self.arrived_at);
        Ok(Reply::from_bytes(buf.freeze()))
    }
}

impl Broker {
    fn clocks(&self) -> Now {
        Now { wall: self.environment().now(), monotonic: self.environment().monotonic() }
    }

    fn answered(&self, key: ApiKey, arrived_at: Duration) {
        self.metrics().answered(key, self.environment().monotonic().saturating_sub(arrived_at));
    }
}

fn decode<R: Request>(body: BytesMut, api: Api) -> Result<R, DecodeError> {
    R::decode(body.freeze(), api.version())
}

/// Counts the answer, and writes it.
fn reply<R: Message + Codes>(
    broker: &Broker,
    api: Api,
    correlation_id: i32,
    response: &R,
) -> Result<Reply, EncodeError> {
    broker.metrics().answer(api.key(), response.codes());
    encode(api, correlation_id, response)
}

fn encode(api: Api, correlation_id: i32, response: &impl Message) -> Result<Reply, EncodeError> {
    let mut buf = BytesMut::new();
    write_response(&mut buf, api, correlation_id, response)?;
    Ok(Reply::from_bytes(buf.freeze()))
}
