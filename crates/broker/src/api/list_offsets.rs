//! ListOffsets: v1–v11. v4 leader epoch; v7 newest record (−3, KIP-734); v8 earliest local (−4);
//! v9 latest tiered (−5); v11 earliest pending upload (−6).

use hashbrown::HashMap;
use strandline_model::Timestamp;
use strandline_wire::list_offsets::{
    ListOffsetsPartition, ListOffsetsPartitionResponse, ListOffsetsTopicResponse, Request, Response,
};
use strandline_wire::{ErrorCode, KafkaString};

use super::is_isolation_level;
use crate::lookup::{self, Position};
use crate::partition::Partition;
use crate::{Broker, error_code};

const LATEST: i64 = -1;
const EARLIEST: i64 = -2;
const NEWEST_RECORD: i64 = -3;
const EARLIEST_LOCAL: i64 = -4;
const LATEST_TIERED: i64 = -5;
const EARLIEST_PENDING_UPLOAD: i64 = -6;

/// What a client is told when there is no such record.
const NOTHING: Position = Position { offset: -1, timestamp: -1, leader_epoch: -1 };

/// Looks up each partition.
pub(crate) async fn handle(broker: &Broker, request: Request, version: i16) -> Response {
    let is_valid = is_isolation_level(request.isolation_level);
    let mut times: HashMap<(KafkaString, i32), usize> = HashMap::new();
    for topic in &request.topics {
        for asked in &topic.partitions {
            *times.entry((topic.name.clone(), asked.partition_index)).or_default() += 1;
        }
    }
    let mut topics = Vec::with_capacity(request.topics.len());
    for topic in request.topics {
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        for asked in &topic.partitions {
            let found = match times.remove(&(topic.name.clone(), asked.partition_index)) {
                _ if !is_valid => Err(ErrorCode::UNKNOWN_SERVER_ERROR),
                Some(1) => find(broker, topic.name.as_str(), asked, version).await,
                // Answered once, however often it is named.
                Some(_) => Err(ErrorCode::INVALID_REQUEST),
                None => continue,
            };
            partitions.push(answer(asked.partition_index, found, version));
        }
        topics.push(ListOffsetsTopicResponse {
            name: topic.name,
            partitions,
            ..ListOffsetsTopicResponse::default()
        });
    }
    Response { topics, ..Response::default() }
}

async fn find(
    broker: &Broker,
    topic: &str,
    asked: &ListOffsetsPartition,
    version: i16,
) -> Result<Position, ErrorCode> {
    let partition = broker.open_by_name(topic, asked.partition_index).await?;
    let ours = partition.leader_epoch();
    if let Some(error) = error_code::epoch_mismatch(ours, asked.current_leader_epoch) {
        return Err(error);
    }
    let since = match asked.timestamp {
        LATEST | EARLIEST | 0.. => 1,
        NEWEST_RECORD => 7,
        EARLIEST_LOCAL => 8,
        LATEST_TIERED => 9,
        EARLIEST_PENDING_UPLOAD => 11,
        _ => i16::MAX,
    };
    if version < since {
        return Err(ErrorCode::UNSUPPORTED_VERSION);
    }
    find_in(&partition, asked.timestamp).await
}

async fn find_in(partition: &Partition, timestamp: i64) -> Result<Position, ErrorCode> {
    let bounds = partition.bounds();
    let found = match timestamp {
        LATEST => Ok(Some(Position {
            offset: bounds.durable_end.get(),
            timestamp: -1,
            leader_epoch: partition.latest_epoch().get(),
        })),
        // Everything is local: there is no second tier.
        EARLIEST | EARLIEST_LOCAL => Ok(Some(Position {
            offset: bounds.log_start.get(),
            timestamp: -1,
            leader_epoch: partition.earliest_epoch().get(),
        })),
        LATEST_TIERED | EARLIEST_PENDING_UPLOAD => Ok(None),
        NEWEST_RECORD => lookup::newest_record(partition).await,
        timestamp => match Timestamp::from_wire(timestamp) {
            Some(at) => lookup::first_at_or_after(partition, at).await,
            None => Ok(None),
        },
    };
    found.map(|position| position.unwrap_or(NOTHING)).map_err(|error| error_code::storage(&error))
}

fn answer(
    index: i32,
    found: Result<Position, ErrorCode>,
    version: i16,
) -> ListOffsetsPartitionResponse {
    let (error, position) = match found {
        Ok(position) => (ErrorCode::NONE, position),
        Err(error) => (error, NOTHING),
    };
    ListOffsetsPartitionResponse {
        partition_index: index,
        error_code: error.get(),
        timestamp: position.timestamp,
        offset: position.offset,
        // Older versions have no field for it.
        leader_epoch: if version >= 4 { position.leader_epoch } else { -1 },
        ..ListOffsetsPartitionResponse::default()
    }
}
