//! OffsetFetch: v1–v10. v2 all topics, and an error of the group; v5 leader epoch; v7 stable only
//! (KIP-447); v8 several groups (KIP-709); v10 topic ids (KIP-848).
//!
//! No transaction has offsets pending, so every position is stable.

use std::sync::Arc;

use hashbrown::HashSet;
use strandline_coordination::group::{CommittedOffset, FetchRequest, FetchedTopic};
use strandline_model::TopicId;
use strandline_wire::offset_fetch::{
    OffsetFetchRequestGroup, OffsetFetchRequestTopics, OffsetFetchResponseGroup,
    OffsetFetchResponsePartition, OffsetFetchResponsePartitions, OffsetFetchResponseTopic,
    OffsetFetchResponseTopics, Request, Response,
};
use strandline_wire::{ErrorCode, topic_id_from_wire, topic_id_to_wire};

use super::{shared, text};
use crate::topic::Topic;
use crate::{Broker, error_code};

/// From this version on an answer for one group has a place for its error.
const GROUP_ERROR_FROM: i16 = 2;
/// From this version on there are several groups.
const GROUPS_FROM: i16 = 8;
/// From this version on topics are named by id.
const BY_ID_FROM: i16 = 10;

/// Tells positions.
pub(crate) async fn handle(broker: &Broker, request: Request, version: i16) -> Response {
    if version >= GROUPS_FROM {
        let mut groups = Vec::new();
        let mut named = HashSet::new();
        for asked in &request.groups {
            if named.insert(asked.group_id.as_str()) {
                groups.push(fetch(broker, asked, version).await);
            }
        }
        return Response { groups, ..Response::default() };
    }
    let asked = OffsetFetchRequestGroup {
        group_id: request.group_id,
        topics: request.topics.map(|topics| {
            let topics = topics.into_iter().map(|topic| OffsetFetchRequestTopics {
                name: topic.name,
                partition_indexes: topic.partition_indexes,
                ..OffsetFetchRequestTopics::default()
            });
            topics.collect()
        }),
        ..OffsetFetchRequestGroup::default()
    };
    let group = fetch(broker, &asked, version).await;
    single(group, version)
}

async fn fetch(
    broker: &Broker,
    asked: &OffsetFetchRequestGroup,
    version: i16,
) -> OffsetFetchResponseGroup {
    let group = shared(&asked.group_id);
    let topics = match &asked.topics {
        Some(topics) => some(broker, group, topics, version).await,
        None => all(broker, group).await,
    };
    let answer =
        OffsetFetchResponseGroup { group_id: asked.group_id.clone(), ..Default::default() };
    match topics {
        Ok(topics) => OffsetFetchResponseGroup { topics, ..answer },
        Err(code) => OffsetFetchResponseGroup { error_code: code.get(), ..answer },
    }
}

async fn some(
    broker: &Broker,
    group: Arc<str>,
    asked: &[OffsetFetchRequestTopics],
    version: i16,
) -> Result<Vec<OffsetFetchResponseTopics>, ErrorCode> {
    let find = |topic: &OffsetFetchRequestTopics| {
        if version >= BY_ID_FROM {
            broker.registry().by_id(topic_id_from_wire(topic.topic_id))
        } else {
            broker.registry().by_name(topic.name.as_str())
        }
    };
    let asked = &named_once(asked);
    let found: Vec<Option<Arc<Topic>>> = asked.iter().map(find).collect();
    // A topic that does not exist has no positions under any id.
    let wanted = asked.iter().zip(&found).map(|(topic, found)| {
        let id = found.as_ref().map_or(TopicId::ZERO, |found| found.id());
        (id, topic.partition_indexes.clone())
    });
    let request = FetchRequest { group, topics: Some(wanted.collect()) };
    let fetched = ask(broker, request).await?;
    let topics = asked.iter().zip(found).zip(fetched);
    let answers = topics.map(|((topic, found), fetched)| {
        let code = if found.is_none() && version >= BY_ID_FROM {
            ErrorCode::UNKNOWN_TOPIC_ID
        } else {
            ErrorCode::NONE
        };
        OffsetFetchResponseTopics {
            name: topic.name.clone(),
            topic_id: topic.topic_id,
            partitions: partitions(fetched, code),
            ..OffsetFetchResponseTopics::default()
        }
    });
    Ok(answers.collect())
}

/// What is asked for, each partition once: with the text that a position may have, a small request that
/// names one again and again would be answered with gigabytes. The same goes for groups.
fn named_once(asked: &[OffsetFetchRequestTopics]) -> Vec<OffsetFetchRequestTopics> {
    let mut named = HashSet::new();
    let mut once = Vec::new();
    for topic in asked {
        let (name, id) = (topic.name.as_str(), topic.topic_id);
        let mut new = topic.clone();
        new.partition_indexes.retain(|&index| named.insert((name, id, index)));
        if !new.partition_indexes.is_empty() || topic.partition_indexes.is_empty() {
            once.push(new);
        }
    }
    once
}

/// Every position in a topic that exists; what is left of those that are gone is not told.
async fn all(
    broker: &Broker,
    group: Arc<str>,
) -> Result<Vec<OffsetFetchResponseTopics>, ErrorCode> {
    let fetched = ask(broker, FetchRequest { group, topics: None }).await?;
    let known = fetched.into_iter().filter_map(|fetched| {
        let topic = broker.registry().by_id(fetched.topic_id)?;
        Some(OffsetFetchResponseTopics {
            name: text(topic.name().as_str()),
            topic_id: topic_id_to_wire(topic.id()),
            partitions: partitions(fetched, ErrorCode::NONE),
            ..OffsetFetchResponseTopics::default()
        })
    });
    let mut topics: Vec<_> = known.collect();
    topics.sort_unstable_by(|a, b| a.name.as_str().cmp(b.name.as_str()));
    Ok(topics)
}

async fn ask(broker: &Broker, request: FetchRequest) -> Result<Vec<FetchedTopic>, ErrorCode> {
    broker.groups().fetch(request).await.map_err(error_code::unavailable)
}

fn partitions(fetched: FetchedTopic, code: ErrorCode) -> Vec<OffsetFetchResponsePartitions> {
    let answer = |(partition_index, offset): (i32, Option<CommittedOffset>)| {
        let answer = OffsetFetchResponsePartitions {
            partition_index,
            committed_offset: -1,
            committed_leader_epoch: -1,
            metadata: Some(text("")),
            error_code: code.get(),
            ..OffsetFetchResponsePartitions::default()
        };
        match offset {
            Some(offset) => OffsetFetchResponsePartitions {
                committed_offset: offset.offset,
                committed_leader_epoch: offset.leader_epoch.max(-1),
                metadata: Some(text(&*offset.metadata)),
                ..answer
            },
            None => answer,
        }
    };
    fetched.partitions.into_iter().map(answer).collect()
}

/// The answer up to v7, which is about one group.
fn single(group: OffsetFetchResponseGroup, version: i16) -> Response {
    // v1 has no place for the group's error but the partitions.
    let for_partitions =
        (version < GROUP_ERROR_FROM && group.error_code != 0).then_some(group.error_code);
    let topics = group.topics.into_iter().map(|topic| OffsetFetchResponseTopic {
        name: topic.name,
        partitions: (topic.partitions.into_iter())
            .map(|partition| OffsetFetchResponsePartition {
                partition_index: partition.partition_index,
                committed_offset: partition.committed_offset,
                committed_leader_epoch: partition.committed_leader_epoch,
                metadata: partition.metadata,
                error_code: for_partitions.unwrap_or(partition.error_code),
                ..OffsetFetchResponsePartition::default()
            })
            .collect(),
        ..OffsetFetchResponseTopic::default()
    });
    Response { topics: topics.collect(), error_code: group.error_code, ..Response::default() }
}
