//! A broker with a clock and faults in the test's hand, and a client that speaks frames.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use bytes::BytesMut;
use strandline_broker::{
    Broker, BrokerParts, Connection, Disconnect, Engines, Environment, NoLoggers, Peer,
    PendingReply, Reply, Started, Strangers,
};
use strandline_model::config::{BrokerLayers, Scope};
use strandline_model::{ByteCount, ProducerEpoch, ProducerId, Sequence, Timestamp};
use strandline_records::{BatchBuilder, NewRecord, ProducerStamp};
use strandline_storage::testkit::Engine;
use strandline_storage::testkit::faults::Faults;
use strandline_storage::{BatchPiece, BoxFuture, MemoryEngine, MemoryOptions};
use strandline_wire::{
    Api, KafkaString, Message, Request, RequestHeader, create_topics, describe_configs, fetch,
    incremental_alter_configs, list_offsets, produce, read_response,
};

/// A clock that stands still until it is moved, tokio's timer, and numbers for randomness.
#[derive(Debug)]
pub(crate) struct TestEnvironment {
    now_ms: AtomicI64,
    /// What the wall clock is wrong by.
    wrong_by_ms: AtomicI64,
    draws: AtomicU64,
}

impl TestEnvironment {
    pub(crate) fn advance_ms(&self, millis: i64) {
        self.now_ms.fetch_add(millis, Ordering::SeqCst);
    }

    /// From now on the wall clock is wrong by so much.
    pub(crate) fn set_wrong_by_ms(&self, millis: i64) {
        self.wrong_by_ms.store(millis, Ordering::SeqCst);
    }
}

impl Environment for TestEnvironment {
    fn now(&self) -> Timestamp {
        let wrong_by = self.wrong_by_ms.load(Ordering::SeqCst);
        Timestamp::from_millis(self.now_ms.load(Ordering::SeqCst) + wrong_by)
    }

    fn monotonic(&self) -> Duration {
        Duration::from_millis(self.now_ms.load(Ordering::SeqCst).unsigned_abs())
    }

    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        Box::pin(tokio::time::sleep(duration))
    }

    fn random_bits(&self) -> u128 {
        // Spread over all bits, so that ids differ in whatever part is used.
        let draw = u128::from(self.draws.fetch_add(1, Ordering::SeqCst) + 1);
        draw.wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835)
    }
}

fn memory() -> Arc<MemoryEngine> {
    let options = MemoryOptions::with_capacity(ByteCount::mib(64));
    Arc::new(MemoryEngine::new(options, |settling| {
        tokio::spawn(settling);
    }))
}

pub(crate) struct TestBroker {
    pub(crate) broker: Arc<Broker>,
    pub(crate) faults: Faults,
    pub(crate) environment: Arc<TestEnvironment>,
    engine: Engine,
}

impl TestBroker {
    pub(crate) async fn start() -> Self {
        Self::start_with(&[]).await
    }

    /// A broker whose file sets these keys.
    pub(crate) async fn start_with(settings: &[(&str, &str)]) -> Self {
        let memory = memory();
        let mut layers = BrokerLayers::default();
        for (name, text) in settings {
            layers.static_broker.set(Scope::Broker, name, text).unwrap();
        }
        let engine = Engine { logs: Arc::clone(&memory) as _, rows: memory };
        Self::start_on(engine, layers, BTreeMap::new()).await
    }

    /// A broker whose features begin at these levels.
    pub(crate) async fn start_at_levels(features: BTreeMap<String, i16>) -> Self {
        let memory = memory();
        let engine = Engine { logs: Arc::clone(&memory) as _, rows: memory };
        Self::start_on(engine, BrokerLayers::default(), features).await
    }

    /// A broker whose metadata does not live as long as its logs.
    pub(crate) async fn start_forgetful() -> Self {
        let memory = memory();
        let engine = Engine { logs: Arc::clone(&memory) as _, rows: memory };
        let (layers, features) = (BrokerLayers::default(), BTreeMap::new());
        Self::start_with_strangers(engine, layers, features, Strangers::Report).await
    }

    async fn start_on(
        engine: Engine,
        layers: BrokerLayers,
        features: BTreeMap<String, i16>,
    ) -> Self {
        Self::start_with_strangers(engine, layers, features, Strangers::Quarantine).await
    }

    async fn start_with_strangers(
        engine: Engine,
        layers: BrokerLayers,
        features: BTreeMap<String, i16>,
        strangers: Strangers,
    ) -> Self {
        let environment = Arc::new(TestEnvironment {
            now_ms: AtomicI64::new(1_700_000_000_000),
            wrong_by_ms: AtomicI64::new(0),
            draws: AtomicU64::new(0),
        });
        Self::start_in(environment, engine, layers, features, strangers).await
    }

    async fn start_in(
        environment: Arc<TestEnvironment>,
        engine: Engine,
        layers: BrokerLayers,
        features: BTreeMap<String, i16>,
        strangers: Strangers,
    ) -> Self {
        let faults = Faults::none();
        let own = engine.clone();
        let engine = faults.wrap(engine);
        let config = layers.broker_config().unwrap();
        let broker = Broker::start(BrokerParts {
            layers,
            config,
            engines: Engines::new("memory", memory()).and_with("file", engine.logs, strangers),
            meta: engine.rows,
            environment: Arc::clone(&environment) as _,
            coordinators: Vec::new(),
            advertised: BTreeMap::new(),
            loggers: Arc::new(NoLoggers),
            features,
        })
        .await
        .unwrap();
        Self { broker, faults, environment, engine: own }
    }

    /// Another broker on the same engine, with the same clock; this one does nothing any more.
    pub(crate) async fn restart(self) -> Self {
        self.broker.drain();
        let layers = BrokerLayers::default();
        let (environment, features) = (self.environment, BTreeMap::new());
        Self::start_in(environment, self.engine, layers, features, Strangers::Quarantine).await
    }

    /// The engine, as it is without faults.
    pub(crate) const fn engine(&self) -> &Engine {
        &self.engine
    }

    pub(crate) fn connect(&self) -> Client {
        let address = "127.0.0.1:9092".parse().unwrap();
        let peer = Peer { remote: address, local: address };
        Client { connection: Connection::open(&self.broker, peer), client_id: None }
    }
}

/// A client on one connection.
pub(crate) struct Client {
    connection: Connection,
    /// What it calls itself.
    pub(crate) client_id: Option<&'static str>,
}

fn api<M: Message>(version: i16) -> Api {
    M::KEY.served().at(version).expect("the version is served")
}

impl Client {
    /// Sends a request and waits for its reply.
    pub(crate) async fn ask<R: Request>(&mut self, version: i16, request: &R) -> R::Response {
        let reply = match self.start(version, request).await {
            Started::Reply(reply) => reply,
            Started::Waiting(pending) => pending.finish().await.unwrap(),
            Started::Silent => panic!("no reply to {request:?}"),
        };
        decode::<R>(version, reply)
    }

    /// Sends a request; the reply may have to wait.
    pub(crate) async fn start<R: Request>(&mut self, version: i16, request: &R) -> Started {
        self.try_start(version, request).await.unwrap()
    }

    pub(crate) async fn try_start<R: Request>(
        &mut self,
        version: i16,
        request: &R,
    ) -> Result<Started, Disconnect> {
        let mut body = BytesMut::new();
        request.encode(&mut body, version).unwrap();
        let client_id = self.client_id.map(text);
        let header = RequestHeader { api: api::<R>(version), correlation_id: 7, client_id };
        self.connection.start(&header, body).await
    }

    pub(crate) async fn create_topic(&mut self, name: &str, partitions: i32) {
        self.create_topic_with(name, partitions, &[]).await;
    }

    pub(crate) async fn create_topic_with(
        &mut self,
        name: &str,
        partitions: i32,
        configs: &[(&str, &str)],
    ) {
        let config = |&(name, value): &(&str, &str)| create_topics::CreatableTopicConfig {
            name: text(name),
            value: Some(text(value)),
            ..Default::default()
        };
        let topic = create_topics::CreatableTopic {
            name: text(name),
            num_partitions: partitions,
            replication_factor: 1,
            configs: configs.iter().map(config).collect(),
            ..Default::default()
        };
        let request = create_topics::Request { topics: vec![topic], ..Default::default() };
        let response = self.ask(7, &request).await;
        assert_eq!(response.topics[0].error_code, 0, "{response:?}");
    }

    /// Produces one batch and waits: the error code and the base offset.
    pub(crate) async fn produce(&mut self, topic: &str, batch: BytesMut) -> (i16, i64) {
        let response = self.ask(9, &produce_request(topic, batch)).await;
        let partition = &response.responses[0].partition_responses[0];
        (partition.error_code, partition.base_offset)
    }

    /// Produces one batch; the reply waits for durability.
    pub(crate) async fn begin_produce(&mut self, topic: &str, batch: BytesMut) -> PendingReply {
        match self.start(9, &produce_request(topic, batch)).await {
            Started::Waiting(pending) => pending,
            Started::Reply(_) | Started::Silent => panic!("a produce waits"),
        }
    }

    /// Fetches partition 0 without a session.
    pub(crate) async fn fetch(
        &mut self,
        topic: &str,
        offset: i64,
        max_wait_ms: i32,
    ) -> fetch::message::PartitionData {
        let response = self.ask(12, &fetch_request(topic, offset, max_wait_ms)).await;
        response.responses.into_iter().next().unwrap().partitions.into_iter().next().unwrap()
    }

    /// The values of all keys of a resource that have one.
    pub(crate) async fn describe_configs(
        &mut self,
        resource_type: i8,
        name: &str,
    ) -> BTreeMap<String, String> {
        let resource = describe_configs::DescribeConfigsResource {
            resource_type,
            resource_name: text(name),
            configuration_keys: None,
            ..Default::default()
        };
        let request = describe_configs::Request { resources: vec![resource], ..Default::default() };
        let response = self.ask(4, &request).await;
        assert_eq!(response.results[0].error_code, 0, "{response:?}");
        let values = response.results[0].configs.iter().filter_map(|entry| {
            Some((entry.name.as_str().to_owned(), entry.value.as_ref()?.as_str().to_owned()))
        });
        values.collect()
    }

    /// One key of a resource with its source, and its synonyms with theirs.
    pub(crate) async fn describe_config(
        &mut self,
        resource_type: i8,
        name: &str,
        key: &str,
    ) -> String {
        let resource = describe_configs::DescribeConfigsResource {
            resource_type,
            resource_name: text(name),
            configuration_keys: Some(vec![text(key)]),
            ..Default::default()
        };
        let request = describe_configs::Request {
            resources: vec![resource],
            include_synonyms: true,
            ..Default::default()
        };
        let response = self.ask(4, &request).await;
        let [entry] = response.results[0].configs.as_slice() else { panic!("{response:?}") };
        let told = |value: &Option<KafkaString>, source: i8| {
            format!("{} from {source}", value.as_ref().map_or("null", |value| value.as_str()))
        };
        let synonyms = entry.synonyms.iter();
        let synonyms: Vec<String> = synonyms
            .map(|one| format!("{}={}", one.name.as_str(), told(&one.value, one.source)))
            .collect();
        format!("{}: {}", told(&entry.value, entry.config_source), synonyms.join(", "))
    }

    /// Changes one key of a resource: the error code.
    pub(crate) async fn alter_config(
        &mut self,
        resource_type: i8,
        name: &str,
        operation: i8,
        (key, value): (&str, &str),
    ) -> i16 {
        let config = incremental_alter_configs::AlterableConfig {
            name: text(key),
            config_operation: operation,
            value: Some(text(value)),
            ..Default::default()
        };
        let resource = incremental_alter_configs::AlterConfigsResource {
            resource_type,
            resource_name: text(name),
            configs: vec![config],
            ..Default::default()
        };
        let request =
            incremental_alter_configs::Request { resources: vec![resource], ..Default::default() };
        self.ask(1, &request).await.responses[0].error_code
    }

    pub(crate) async fn offset(&mut self, topic: &str, timestamp: i64) -> (i16, i64) {
        let partition = list_offsets::ListOffsetsPartition { timestamp, ..Default::default() };
        let topic = list_offsets::ListOffsetsTopic {
            name: text(topic),
            partitions: vec![partition],
            ..Default::default()
        };
        let request = list_offsets::Request { topics: vec![topic], ..Default::default() };
        let response = self.ask(7, &request).await;
        let partition = &response.topics[0].partitions[0];
        (partition.error_code, partition.offset)
    }
}

pub(crate) fn text(text: &str) -> KafkaString {
    KafkaString::from(text.to_owned())
}

pub(crate) fn decode<R: Request>(version: i16, reply: Reply) -> R::Response {
    let mut frame = BytesMut::new();
    for piece in reply.into_pieces() {
        match piece {
            BatchPiece::Memory(bytes) => frame.extend_from_slice(&bytes),
            BatchPiece::File(_) => panic!("the memory engine has no files"),
        }
    }
    let length = i32::from_be_bytes(*frame.first_chunk().unwrap());
    assert_eq!(usize::try_from(length).unwrap(), frame.len() - 4, "the frame's length is right");
    let (correlation_id, response) =
        read_response(frame.split_off(4).freeze(), api::<R>(version)).unwrap();
    assert_eq!(correlation_id, 7);
    response
}

/// How long a producer waits for its answer.
pub(crate) const PRODUCE_TIMEOUT_MS: i32 = 30_000;

pub(crate) fn produce_request(topic: &str, batch: BytesMut) -> produce::message::Request {
    produce::message::Request {
        acks: -1,
        timeout_ms: PRODUCE_TIMEOUT_MS,
        topic_data: vec![produce::message::TopicProduceData {
            name: text(topic),
            partition_data: vec![produce::message::PartitionProduceData {
                index: 0,
                records: Some(batch.freeze()),
                ..Default::default()
            }],
            ..Default::default()
        }],
        ..Default::default()
    }
}

pub(crate) fn fetch_request(topic: &str, offset: i64, max_wait_ms: i32) -> fetch::message::Request {
    fetch::message::Request {
        max_wait_ms,
        min_bytes: 1,
        max_bytes: 1 << 20,
        topics: vec![fetch::message::FetchTopic {
            topic: text(topic),
            partitions: vec![fetch::message::FetchPartition {
                fetch_offset: offset,
                partition_max_bytes: 1 << 20,
                ..Default::default()
            }],
            ..Default::default()
        }],
        ..Default::default()
    }
}

/// A plain batch of these values.
pub(crate) fn batch(values: &[&str]) -> BytesMut {
    fill(BatchBuilder::new(), values)
}

/// The batch of an idempotent producer.
pub(crate) fn idempotent_batch(
    producer_id: i64,
    epoch: i16,
    sequence: i32,
    values: &[&str],
) -> BytesMut {
    let stamp = ProducerStamp {
        id: ProducerId::new(producer_id),
        epoch: ProducerEpoch::from_wire(epoch).unwrap(),
        base_sequence: Sequence::from_wire(sequence),
    };
    fill(BatchBuilder::new().producer(stamp), values)
}

fn fill(mut builder: BatchBuilder, values: &[&str]) -> BytesMut {
    for value in values {
        builder.push(NewRecord {
            timestamp: Some(Timestamp::from_millis(1_700_000_000_000)),
            value: Some(value.as_bytes()),
            ..NewRecord::default()
        });
    }
    builder.build()
}

/// A plain batch of one record with this timestamp.
/// A batch with a record of each of these timestamps.
pub(crate) fn batch_of_times(times: &[i64]) -> BytesMut {
    let mut builder = BatchBuilder::new();
    for millis in times {
        builder.push(NewRecord {
            timestamp: Some(Timestamp::from_millis(*millis)),
            value: Some(b"v"),
            ..NewRecord::default()
        });
    }
    builder.build()
}

pub(crate) fn batch_at(millis: i64, value: &str) -> BytesMut {
    let mut builder = BatchBuilder::new();
    builder.push(NewRecord {
        timestamp: Some(Timestamp::from_millis(millis)),
        value: Some(value.as_bytes()),
        ..NewRecord::default()
    });
    builder.build()
}
