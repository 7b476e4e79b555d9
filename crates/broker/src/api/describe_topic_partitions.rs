//! DescribeTopicPartitions: v0 (KIP-966). Topics in name order, page by page.

use std::collections::BTreeSet;
use std::sync::Arc;

use strandline_model::TopicName;
use strandline_wire::describe_topic_partitions::{
    Cursor, DescribeTopicPartitionsResponsePartition, DescribeTopicPartitionsResponseTopic,
    Request, RequestCursor, Response, TopicRequest,
};
use strandline_wire::{ErrorCode, topic_id_to_wire};

use super::metadata::TOPIC_OPERATIONS;
use super::{OPERATIONS_NOT_ASKED, text};
use crate::Broker;
use crate::topic::Topic;

/// Kafka's `max.request.partition.size.limit`: partitions in one page at most.
const PARTITIONS_MAX: usize = 2_000;

/// Describes the asked topics, or all, from the cursor on.
pub(crate) fn handle(broker: &Broker, request: &Request) -> Response {
    let limit = usize::try_from(request.response_partition_limit).unwrap_or(0);
    let mut left = limit.clamp(1, PARTITIONS_MAX);
    let cursor = request.cursor.as_deref();
    if cursor.is_some_and(|cursor| !is_valid(cursor, request)) {
        let refused = |topic: &TopicRequest| DescribeTopicPartitionsResponseTopic {
            error_code: ErrorCode::INVALID_REQUEST.get(),
            name: Some(topic.name.clone()),
            topic_authorized_operations: OPERATIONS_NOT_ASKED,
            ..DescribeTopicPartitionsResponseTopic::default()
        };
        return Response {
            topics: request.topics.iter().map(refused).collect(),
            ..Response::default()
        };
    }
    let begin = cursor.map(|cursor| cursor.topic_name.as_str());
    let mut response = Response::default();
    for (name, topic) in asked_topics(broker, request) {
        if begin.is_some_and(|begin| name.as_str() < begin) {
            continue;
        }
        let first = match cursor {
            Some(cursor) if cursor.topic_name.as_str() == name => cursor.partition_index,
            Some(_) | None => 0,
        };
        if left == 0 {
            response.next_cursor = Some(Box::new(cursor_at(&name, first)));
            break;
        }
        let Some(topic) = topic else {
            response.topics.push(unknown(&name));
            continue;
        };
        let described = describe(broker, &topic, first, left);
        let after =
            first.saturating_add(i32::try_from(described.partitions.len()).unwrap_or(i32::MAX));
        left -= described.partitions.len();
        response.topics.push(described);
        if u32::try_from(after).is_ok_and(|after| after < topic.partition_count()) {
            response.next_cursor = Some(Box::new(cursor_at(&name, after)));
            break;
        }
    }
    response
}

/// A page begins at a partition that there can be, of a topic that was asked for.
fn is_valid(cursor: &RequestCursor, request: &Request) -> bool {
    let is_asked =
        request.topics.is_empty() || request.topics.iter().any(|t| t.name == cursor.topic_name);
    is_asked && cursor.partition_index >= 0
}

/// What was asked for in name order; all topics when nothing was named.
fn asked_topics(broker: &Broker, request: &Request) -> Vec<(String, Option<Arc<Topic>>)> {
    if request.topics.is_empty() {
        let all = broker.registry().all().into_iter();
        return all.map(|topic| (topic.name().to_string(), Some(topic))).collect();
    }
    let names: BTreeSet<&str> = request.topics.iter().map(|topic| topic.name.as_str()).collect();
    names.into_iter().map(|name| (name.to_owned(), broker.registry().by_name(name))).collect()
}

fn unknown(name: &str) -> DescribeTopicPartitionsResponseTopic {
    let error = match TopicName::new(name) {
        Ok(_) => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
        Err(_) => ErrorCode::INVALID_TOPIC_EXCEPTION,
    };
    DescribeTopicPartitionsResponseTopic {
        error_code: error.get(),
        name: Some(text(name)),
        topic_authorized_operations: TOPIC_OPERATIONS,
        ..DescribeTopicPartitionsResponseTopic::default()
    }
}

fn describe(
    broker: &Broker,
    topic: &Topic,
    first: i32,
    limit: usize,
) -> DescribeTopicPartitionsResponseTopic {
    let node = broker.node_id().get();
    let skip = usize::try_from(first).unwrap_or(0);
    let partitions = topic.partitions().into_iter().skip(skip).take(limit).map(|slot| {
        DescribeTopicPartitionsResponsePartition {
            partition_index: slot.id().index.to_wire(),
            leader_id: node,
            leader_epoch: broker.partitions().leader_epoch(topic, &slot),
            replica_nodes: vec![node],
            isr_nodes: vec![node],
            eligible_leader_replicas: Some(Vec::new()),
            last_known_elr: Some(Vec::new()),
            ..DescribeTopicPartitionsResponsePartition::default()
        }
    });
    DescribeTopicPartitionsResponseTopic {
        name: Some(text(topic.name().as_str())),
        topic_id: topic_id_to_wire(topic.id()),
        is_internal: topic.name().is_internal(),
        partitions: partitions.collect(),
        topic_authorized_operations: TOPIC_OPERATIONS,
        ..DescribeTopicPartitionsResponseTopic::default()
    }
}

fn cursor_at(topic: &str, partition_index: i32) -> Cursor {
    Cursor { topic_name: text(topic), partition_index, ..Cursor::default() }
}
