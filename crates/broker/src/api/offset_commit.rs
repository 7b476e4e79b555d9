//! OffsetCommit: v2–v10. v2 to v4 retention time; v6 leader epoch; v7 static members; v9 says when
//! there is no such group; v10 topic ids (KIP-848).

use std::sync::Arc;

use strandline_coordination::group::{
    CommitOutcome, CommitPartition, CommitRequest, CommitTopic, MemberRequest,
};
use strandline_wire::offset_commit::{
    OffsetCommitRequestPartition, OffsetCommitRequestTopic, OffsetCommitResponsePartition,
    OffsetCommitResponseTopic, Request, Response,
};
use strandline_wire::{ErrorCode, KafkaString, KafkaUuid, topic_id_from_wire};

use super::by_topic::ByTopic;
use super::shared;
use crate::topic::Topic;
use crate::{Broker, error_code};

/// From this version on topics are named by id.
const BY_ID_FROM: i16 = 10;
/// From this version on a client can be told that there is no such group.
const MISSING_GROUP_FROM: i16 = 9;
/// "As the broker says" for how long offsets are kept.
const NO_RETENTION: i64 = -1;

/// Keeps positions; they are durable when the answer leaves.
pub(crate) async fn handle(broker: &Broker, request: Request, version: i16) -> Response {
    let mut answer = Answer::default();
    let mut known = Vec::with_capacity(request.topics.len());
    for topic in &request.topics {
        if let Some(commit) = to_domain(broker, topic, version, &mut answer) {
            known.push((topic, commit));
        }
    }
    if known.is_empty() {
        return respond(answer);
    }
    let (asked, topics): (Vec<&OffsetCommitRequestTopic>, Vec<CommitTopic>) =
        known.into_iter().unzip();
    let indexes: Vec<Vec<i32>> = topics
        .iter()
        .map(|topic| topic.partitions.iter().map(|partition| partition.index).collect())
        .collect();
    let commit = CommitRequest {
        who: MemberRequest {
            group: shared(&request.group_id),
            member: shared(&request.member_id),
            instance: request.group_instance_id.as_ref().map(shared),
            generation: request.generation_id_or_member_epoch,
        },
        retention_ms: Some(request.retention_time_ms).filter(|&ms| ms != NO_RETENTION),
        knows_missing_group: version >= MISSING_GROUP_FROM,
        topics,
    };
    let outcome = match broker.groups().commit(commit).await {
        Ok(Ok(outcomes)) => Ok(outcomes),
        Ok(Err(error)) => Err(error_code::group(error)),
        Err(unavailable) => Err(error_code::unavailable(unavailable)),
    };
    // As Kafka: where nothing was refused at once, a topic that comes twice is answered twice.
    let merges = !answer.is_empty();
    for (position, (topic, indexes)) in asked.into_iter().zip(indexes).enumerate() {
        if !merges {
            answer.begin(key(topic), begun(topic));
        }
        for (place, index) in indexes.into_iter().enumerate() {
            let code = match &outcome {
                Ok(outcomes) => match outcomes[position][place] {
                    CommitOutcome::Committed => ErrorCode::NONE,
                    CommitOutcome::MetadataTooLarge => ErrorCode::OFFSET_METADATA_TOO_LARGE,
                },
                Err(code) => *code,
            };
            add(&mut answer, topic, index, code);
        }
    }
    respond(answer)
}

/// The partitions of `topic` that exist; the others are answered at once.
fn to_domain(
    broker: &Broker,
    topic: &OffsetCommitRequestTopic,
    version: i16,
    answer: &mut Answer,
) -> Option<CommitTopic> {
    let (found, unknown) = if version >= BY_ID_FROM {
        let id = topic_id_from_wire(topic.topic_id);
        (broker.registry().by_id(id), ErrorCode::UNKNOWN_TOPIC_ID)
    } else {
        let by_name = broker.registry().by_name(topic.name.as_str());
        (by_name, ErrorCode::UNKNOWN_TOPIC_OR_PARTITION)
    };
    let Some(found) = found else {
        answer.topic(key(topic), || begun(topic));
        for partition in &topic.partitions {
            add(answer, topic, partition.partition_index, unknown);
        }
        return None;
    };
    let mut partitions = Vec::with_capacity(topic.partitions.len());
    for partition in &topic.partitions {
        if found.partition(partition.partition_index).is_some() {
            partitions.push(to_commit(partition));
        } else {
            let code = ErrorCode::UNKNOWN_TOPIC_OR_PARTITION;
            add(answer, topic, partition.partition_index, code);
        }
    }
    (!partitions.is_empty()).then(|| commit_topic(&found, partitions))
}

fn commit_topic(topic: &Topic, partitions: Vec<CommitPartition>) -> CommitTopic {
    CommitTopic { topic_id: topic.id(), name: Arc::from(topic.name().as_str()), partitions }
}

fn to_commit(partition: &OffsetCommitRequestPartition) -> CommitPartition {
    CommitPartition {
        index: partition.partition_index,
        offset: partition.committed_offset,
        leader_epoch: partition.committed_leader_epoch,
        metadata: partition.committed_metadata.as_ref().map(shared).unwrap_or_default(),
    }
}

/// The answer as it grows. As Kafka: what is refused at once comes first.
type Answer = ByTopic<(KafkaString, KafkaUuid), OffsetCommitResponseTopic>;

fn add(
    answer: &mut Answer,
    topic: &OffsetCommitRequestTopic,
    partition_index: i32,
    code: ErrorCode,
) {
    let partition = OffsetCommitResponsePartition {
        partition_index,
        error_code: code.get(),
        ..OffsetCommitResponsePartition::default()
    };
    answer.topic(key(topic), || begun(topic)).partitions.push(partition);
}

fn key(topic: &OffsetCommitRequestTopic) -> (KafkaString, KafkaUuid) {
    (topic.name.clone(), topic.topic_id)
}

fn begun(topic: &OffsetCommitRequestTopic) -> OffsetCommitResponseTopic {
    OffsetCommitResponseTopic {
        name: topic.name.clone(),
        topic_id: topic.topic_id,
        ..OffsetCommitResponseTopic::default()
    }
}

fn respond(answer: Answer) -> Response {
    Response { topics: answer.into_topics(), ..Response::default() }
}
