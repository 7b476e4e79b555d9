//! The same values under the names that dashboards and alerts for Kafka ask for.
//!
//! Those of `kafka_exporter`, then those of the JMX exporter's usual rules. What says something
//! about replicas follows from having none: every partition has one, in sync, its leader.

use std::fmt;

use super::family::Families;
use crate::{PartitionStats, Snapshot, TopicStats};

/// Writes everything that begins with `kafka_`.
pub(super) fn encode(to: &mut Families<'_>, now: &Snapshot) -> fmt::Result {
    encode_exporter(to, now)?;
    encode_jmx_topics(to, now)?;
    encode_jmx_broker(to, now)
}

fn encode_exporter(to: &mut Families<'_>, now: &Snapshot) -> fmt::Result {
    to.gauge("kafka_brokers", "Brokers in the cluster", Some(u64::from(now.broker_count)))?;
    let counts = now
        .topics
        .iter()
        .map(|topic| ([("topic", topic.topic.as_str())], topic.partitions.len() as u64));
    to.gauges("kafka_topic_partitions", "Partitions of the topic", counts)?;
    let leader = i64::from(now.node_id.get());
    for (name, help, value) in [
        ("current_offset", "The first offset that is not durable yet", Value::HighWatermark),
        ("oldest_offset", "The first offset to read", Value::LogStart),
        ("leader", "The broker that leads the partition", Value::Always(leader)),
        ("leader_is_preferred", "1: there is no other", Value::Always(1)),
        ("replicas", "1: storage replicates, brokers don't", Value::Always(1)),
        ("in_sync_replica", "1: storage replicates, brokers don't", Value::Always(1)),
        ("under_replicated_partition", "0: storage replicates, brokers don't", Value::Always(0)),
    ] {
        let samples = now
            .labelled_partitions()
            .map(|(topic, each)| (partition_labels(topic, each), value.of(each)));
        to.gauges(&format!("kafka_topic_partition_{name}"), help, samples)?;
    }
    Ok(())
}

/// What a family of `kafka_exporter` shows of a partition.
#[derive(Clone, Copy)]
enum Value {
    HighWatermark,
    LogStart,
    Always(i64),
}

impl Value {
    const fn of(self, partition: &PartitionStats) -> i64 {
        match self {
            Self::HighWatermark => partition.high_watermark.get(),
            Self::LogStart => partition.log_start.get(),
            Self::Always(value) => value,
        }
    }
}

fn encode_jmx_topics(to: &mut Families<'_>, now: &Snapshot) -> fmt::Result {
    let of_each = |value: fn(&TopicStats) -> u64| {
        now.topics.iter().map(move |topic| ([("topic", topic.topic.as_str())], value(topic)))
    };
    let name = |what| format!("kafka_server_brokertopicmetrics_{what}");
    let records = of_each(|topic| topic.received_records);
    to.counters(&name("messagesin"), "Records taken from producers", records)?;
    let received = of_each(|topic| topic.received_bytes);
    to.counters(&name("bytesin"), "Bytes taken from producers", received)?;
    let sent = of_each(|topic| topic.sent_bytes);
    to.counters(&name("bytesout"), "Bytes given to consumers", sent)?;
    let sizes = now
        .labelled_partitions()
        .map(|(topic, each)| (partition_labels(topic, each), each.size.get()));
    to.gauges("kafka_log_log_size", "Bytes of batches stored", sizes)
}

fn encode_jmx_broker(to: &mut Families<'_>, now: &Snapshot) -> fmt::Result {
    let partitions = now.partition_count() as u64;
    for (name, help, value) in [
        ("kafka_server_replicamanager_partitioncount", "Partitions here", partitions),
        ("kafka_server_replicamanager_leadercount", "Partitions led here", partitions),
        ("kafka_server_replicamanager_underreplicatedpartitions", "0: no replicas", 0),
        ("kafka_server_replicamanager_underminisrpartitioncount", "0: no replicas", 0),
        ("kafka_controller_kafkacontroller_activecontrollercount", "1: this broker", 1),
        ("kafka_controller_kafkacontroller_offlinepartitionscount", "0: no replicas", 0),
    ] {
        to.gauge(name, help, Some(value))?;
    }
    let connections = now
        .listeners
        .iter()
        .map(|listener| ([("listener", listener.listener.as_str())], listener.connections));
    let name = "kafka_server_socket_server_metrics_connection_count";
    to.gauges(name, "Connections that are open", connections)?;
    let requests = now.apis.iter().map(|api| {
        let answered = api.answers.iter().map(|answers| answers.count).sum();
        ([("request", api.request)], answered)
    });
    to.counters("kafka_network_requestmetrics_requests", "Requests answered", requests)?;
    let errors = now.apis.iter().flat_map(|api| {
        let labels = |error| [("request", api.request), ("error", error)];
        api.codes.iter().map(move |codes| (labels(codes.error), codes.count))
    });
    let help = "Error codes in answers, NONE too: one for each thing that was asked for";
    to.counters("kafka_network_requestmetrics_errors", help, errors)
}

fn partition_labels(topic: &TopicStats, each: &PartitionStats) -> [(&'static str, String); 2] {
    [("topic", topic.topic.clone()), ("partition", each.partition.to_string())]
}
