//! Configuration that changes while the broker runs: in effect when the answer comes, and kept.

use std::collections::BTreeMap;

use strandline_storage::testkit::faults::CommitFault;
use strandline_wire::{
    ErrorCode, alter_client_quotas, alter_configs, describe_client_quotas, find_coordinator,
    incremental_alter_configs, list_config_resources,
};

use crate::harness::{Client, TestBroker, batch, text};

const TOPIC: i8 = 2;
const BROKER: i8 = 4;
const CLIENT_METRICS: i8 = 16;
const GROUP: i8 = 32;

const SET: i8 = 0;
const DELETE: i8 = 1;

const TOO_LARGE: i16 = ErrorCode::MESSAGE_TOO_LARGE.get();

#[tokio::test]
async fn a_topics_largest_batch_changes_at_once() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic("t", 1).await;
    let large = "x".repeat(2_000);
    assert_eq!(client.produce("t", batch(&[&large])).await.0, 0);
    assert_eq!(client.alter_config(TOPIC, "t", SET, ("max.message.bytes", "1000")).await, 0);
    assert_eq!(client.produce("t", batch(&[&large])).await.0, TOO_LARGE);
    assert_eq!(client.alter_config(TOPIC, "t", DELETE, ("max.message.bytes", "")).await, 0);
    assert_eq!(client.produce("t", batch(&[&large])).await.0, 0);
}

#[tokio::test]
async fn a_brokers_largest_batch_is_that_of_topics_without_their_own() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic("t", 1).await;
    client.create_topic_with("own", 1, &[("max.message.bytes", "5000")]).await;
    let large = "x".repeat(2_000);
    assert_eq!(client.alter_config(BROKER, "", SET, ("message.max.bytes", "1000")).await, 0);
    assert_eq!(client.produce("t", batch(&[&large])).await.0, TOO_LARGE);
    assert_eq!(client.produce("own", batch(&[&large])).await.0, 0);
    // What is set for this broker wins.
    assert_eq!(client.alter_config(BROKER, "1", SET, ("message.max.bytes", "9000")).await, 0);
    assert_eq!(client.produce("t", batch(&[&large])).await.0, 0);
    client.create_topic("new", 1).await;
    assert_eq!(client.describe_configs(TOPIC, "new").await["max.message.bytes"], "9000");
}

#[tokio::test]
async fn an_open_log_takes_a_new_segment_size() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic("t", 1).await;
    let segments = || house.broker.topics()[0].partitions[0].segment_count;
    for _ in 0..3 {
        client.produce("t", batch(&["a"])).await;
    }
    assert_eq!(segments(), 1);
    assert_eq!(client.alter_config(TOPIC, "t", SET, ("internal.segment.bytes", "100")).await, 0);
    for _ in 0..3 {
        client.produce("t", batch(&["a"])).await;
    }
    assert_eq!(segments(), 4);
}

#[tokio::test]
async fn what_was_set_is_there_after_a_restart() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic("t", 1).await;
    for (kind, name, setting) in [
        (TOPIC, "t", ("retention.ms", "60000")),
        (BROKER, "", ("message.max.bytes", "1000")),
        (BROKER, "1", ("log.cleanup.policy", "compact")),
        (GROUP, "g", ("share.auto.offset.reset", "earliest")),
        (CLIENT_METRICS, "m", ("interval.ms", "1000")),
    ] {
        assert_eq!(client.alter_config(kind, name, SET, setting).await, 0, "{setting:?}");
    }
    let again = house.restart().await;
    let mut client = again.connect();
    assert_eq!(client.describe_configs(TOPIC, "t").await["retention.ms"], "60000");
    assert_eq!(client.describe_configs(TOPIC, "t").await["max.message.bytes"], "1000");
    assert_eq!(client.describe_configs(BROKER, "").await["message.max.bytes"], "1000");
    assert_eq!(client.describe_configs(BROKER, "1").await["log.cleanup.policy"], "compact");
    assert_eq!(client.describe_configs(GROUP, "g").await["share.auto.offset.reset"], "earliest");
    assert_eq!(client.describe_configs(CLIENT_METRICS, "m").await["interval.ms"], "1000");
    let listed = client.ask(1, &list_config_resources::Request::default()).await;
    let listed: Vec<_> = listed
        .config_resources
        .iter()
        .map(|found| (found.resource_type, found.resource_name.as_str()))
        .collect();
    assert_eq!(listed, [(2, "t"), (8, "1"), (4, "1"), (16, "m"), (32, "g")]);
}

#[tokio::test]
async fn what_could_not_be_kept_is_not_in_effect() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic("t", 1).await;
    for (kind, name, key) in [(TOPIC, "t", "max.message.bytes"), (BROKER, "1", "message.max.bytes")]
    {
        house.faults.on_commit(0, CommitFault::Lose);
        assert_ne!(client.alter_config(kind, name, SET, (key, "1000")).await, 0);
        assert_eq!(client.describe_configs(kind, name).await[key], "1048588");
        let large = "x".repeat(2_000);
        assert_eq!(client.produce("t", batch(&[&large])).await.0, 0);
    }
}

#[tokio::test]
async fn a_change_that_was_kept_in_spite_of_its_error_takes_effect_when_it_is_repeated() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic("t", 1).await;
    house.faults.on_commit(0, CommitFault::Keep);
    assert_ne!(client.alter_config(TOPIC, "t", SET, ("max.message.bytes", "1000")).await, 0);
    assert_eq!(client.alter_config(TOPIC, "t", SET, ("max.message.bytes", "1000")).await, 0);
    let large = "x".repeat(2_000);
    assert_eq!(client.produce("t", batch(&[&large])).await.0, TOO_LARGE);
}

#[tokio::test]
async fn a_check_changes_nothing() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic("t", 1).await;
    for (kind, name, key) in [
        (TOPIC, "t", "max.message.bytes"),
        (BROKER, "1", "message.max.bytes"),
        (GROUP, "g", "share.partition.max.record.locks"),
    ] {
        let before = client.describe_configs(kind, name).await;
        let config = incremental_alter_configs::AlterableConfig {
            name: text(key),
            config_operation: SET,
            value: Some(text("1000")),
            ..Default::default()
        };
        let resource = incremental_alter_configs::AlterConfigsResource {
            resource_type: kind,
            resource_name: text(name),
            configs: vec![config],
            ..Default::default()
        };
        let request = incremental_alter_configs::Request {
            resources: vec![resource],
            validate_only: true,
            ..Default::default()
        };
        assert_eq!(client.ask(1, &request).await.responses[0].error_code, 0);
        assert_eq!(client.describe_configs(kind, name).await, before);
    }
}

/// Not as in Kafka, which keeps any name for plug-ins that may know it: here are none, and a typing
/// error would do nothing in silence.
#[tokio::test]
async fn an_unknown_broker_key_is_refused() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    let code = client.alter_config(BROKER, "1", SET, ("message.max.byte", "1")).await;
    assert_eq!(code, ErrorCode::INVALID_CONFIG.get());
}

#[tokio::test]
async fn a_count_of_threads_goes_up_in_steps_and_is_there_after_a_restart() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    let threads = |count: &'static str| ("num.io.threads", count);
    let refused = ErrorCode::INVALID_REQUEST.get();
    assert_eq!(client.alter_config(BROKER, "1", SET, threads("32")).await, refused);
    assert_eq!(client.describe_configs(BROKER, "1").await["num.io.threads"], "8");
    for count in ["16", "32"] {
        assert_eq!(client.alter_config(BROKER, "1", SET, threads(count)).await, 0, "{count}");
    }
    // Back to 8 is less than half of it.
    assert_eq!(client.alter_config(BROKER, "1", DELETE, threads("32")).await, refused);
    // At a start nothing runs yet that the count could be too far from.
    let again = house.restart().await;
    let mut client = again.connect();
    assert_eq!(client.describe_configs(BROKER, "1").await["num.io.threads"], "32");
}

#[tokio::test]
async fn a_topics_engine_stays_what_it_was() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic("t", 1).await;
    let code = client.alter_config(TOPIC, "t", SET, ("storage.engine", "memory")).await;
    assert_eq!(code, ErrorCode::INVALID_CONFIG.get());
    assert_eq!(client.alter_config(TOPIC, "t", SET, ("storage.engine", "file")).await, 0);
}

#[tokio::test]
async fn a_topic_tells_the_engine_that_it_was_made_with() {
    let house = TestBroker::start_with(&[("storage.default", "memory")]).await;
    let mut client = house.connect();
    client.create_topic("m", 1).await;
    let told = client.describe_config(TOPIC, "m", "storage.engine").await;
    assert_eq!(told, "memory from 4: storage.default=memory from 4, storage.default=file from 5");
    let code = client.alter_config(TOPIC, "m", SET, ("storage.engine", "file")).await;
    assert_eq!(code, ErrorCode::INVALID_CONFIG.get());

    // Without the broker's word it is the topic's own, and what nobody set still is not.
    let house = house.restart().await;
    let mut client = house.connect();
    client.create_topic("f", 1).await;
    let told = client.describe_config(TOPIC, "m", "storage.engine").await;
    assert_eq!(told, "memory from 1: storage.engine=memory from 1, storage.default=file from 5");
    let told = client.describe_config(TOPIC, "f", "storage.engine").await;
    assert_eq!(told, "file from 5: storage.default=file from 5");
    // The broker's own topics are in memory whatever is set.
    let find = find_coordinator::Request { key: text("g"), ..Default::default() };
    client.ask(0, &find).await;
    let told = client.describe_config(TOPIC, "__consumer_offsets", "storage.engine").await;
    assert_eq!(told, "memory from 5: storage.engine=memory from 5, storage.default=file from 5");
}

fn quota(client: Option<&str>, key: &str, value: Option<f64>) -> alter_client_quotas::Request {
    let entity = alter_client_quotas::EntityData {
        entity_type: text("client-id"),
        entity_name: client.map(text),
        ..Default::default()
    };
    let op = alter_client_quotas::OpData {
        key: text(key),
        value: value.unwrap_or_default(),
        remove: value.is_none(),
        ..Default::default()
    };
    let entry = alter_client_quotas::EntryData {
        entity: vec![entity],
        ops: vec![op],
        ..Default::default()
    };
    alter_client_quotas::Request { entries: vec![entry], ..Default::default() }
}

/// The names and values of all quotas of clients.
async fn quotas(client: &mut Client) -> Vec<(Option<String>, String, f64)> {
    let component = describe_client_quotas::ComponentData {
        entity_type: text("client-id"),
        match_type: 2,
        ..Default::default()
    };
    let request =
        describe_client_quotas::Request { components: vec![component], ..Default::default() };
    let response = client.ask(1, &request).await;
    let mut told = Vec::new();
    for entry in response.entries.unwrap() {
        let name = entry.entity[0].entity_name.as_ref().map(|name| name.as_str().to_owned());
        for value in entry.values {
            told.push((name.clone(), value.key.as_str().to_owned(), value.value));
        }
    }
    told
}

#[tokio::test]
async fn quotas_are_kept_and_told() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    for (name, key, value, code) in [
        (Some("c"), "producer_byte_rate", Some(1024.0), 0),
        (None, "request_percentage", Some(0.25), 0),
        (Some("c"), "producer_byte_rate", Some(0.5), ErrorCode::INVALID_REQUEST.get()),
        (Some("c"), "no.such", Some(1.0), ErrorCode::INVALID_REQUEST.get()),
        (Some("c"), "no.such", None, 0),
    ] {
        let response = client.ask(1, &quota(name, key, value)).await;
        assert_eq!(response.entries[0].error_code, code, "{key} {value:?}");
    }
    let again = house.restart().await;
    let mut client = again.connect();
    let rate = "producer_byte_rate".to_owned();
    let percentage = "request_percentage".to_owned();
    let expected = [(None, percentage, 0.25), (Some("c".to_owned()), rate.clone(), 1024.0)];
    assert_eq!(quotas(&mut client).await, expected);
    assert_eq!(client.ask(1, &quota(Some("c"), &rate, None)).await.entries[0].error_code, 0);
    assert_eq!(quotas(&mut client).await.len(), 1);
}

/// Replaces all that is set on topic `t`: the error code.
async fn replace(client: &mut Client, configs: &BTreeMap<String, String>) -> i16 {
    let config = |(name, value): (&String, &String)| alter_configs::AlterableConfig {
        name: text(name),
        value: Some(text(value)),
        ..Default::default()
    };
    let resource = alter_configs::AlterConfigsResource {
        resource_type: TOPIC,
        resource_name: text("t"),
        configs: configs.iter().map(config).collect(),
        ..Default::default()
    };
    let request = alter_configs::Request { resources: vec![resource], ..Default::default() };
    client.ask(2, &request).await.responses[0].error_code
}

#[tokio::test]
async fn what_is_described_may_be_sent_back() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic_with("t", 1, &[("retention.ms", "60000")]).await;
    let described = client.describe_configs(TOPIC, "t").await;
    for (name, value) in &described {
        assert_eq!(client.alter_config(TOPIC, "t", SET, (name, value)).await, 0, "{name}={value}");
    }
    assert_eq!(replace(&mut client, &described).await, 0);
    assert_eq!(client.describe_configs(TOPIC, "t").await, described);
}

#[tokio::test]
async fn the_old_request_forgets_what_it_does_not_name_and_the_new_one_does_not() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic_with("t", 1, &[("retention.ms", "60000"), ("segment.ms", "7000")]).await;
    assert_eq!(client.alter_config(TOPIC, "t", SET, ("preallocate", "true")).await, 0);
    let described = client.describe_configs(TOPIC, "t").await;
    assert_eq!(described["retention.ms"], "60000");
    assert_eq!(described["preallocate"], "true");
    let one = BTreeMap::from([("segment.ms".to_owned(), "8000".to_owned())]);
    assert_eq!(replace(&mut client, &one).await, 0);
    let described = client.describe_configs(TOPIC, "t").await;
    assert_eq!(described["segment.ms"], "8000");
    assert_eq!(described["retention.ms"], "604800000");
    assert_eq!(described["preallocate"], "false");
}
