//! OffsetForLeaderEpoch: v2–v4. Where an epoch ended, so that a consumer finds out whether its
//! history is ours (KIP-320).

use strandline_model::LeaderEpoch;
use strandline_wire::ErrorCode;
use strandline_wire::offset_for_leader_epoch::{
    EpochEndOffset, OffsetForLeaderPartition, OffsetForLeaderTopicResult, Request, Response,
};

use crate::{Broker, error_code};

/// Looks up each partition's epoch.
pub(crate) async fn handle(broker: &Broker, request: Request) -> Response {
    let mut topics = Vec::with_capacity(request.topics.len());
    for topic in request.topics {
        let mut partitions = Vec::with_capacity(topic.partitions.len());
        for asked in &topic.partitions {
            partitions.push(match end_of(broker, topic.topic.as_str(), asked).await {
                Ok((leader_epoch, end_offset)) => EpochEndOffset {
                    partition: asked.partition,
                    leader_epoch,
                    end_offset,
                    ..EpochEndOffset::default()
                },
                Err(error) => EpochEndOffset {
                    error_code: error.get(),
                    partition: asked.partition,
                    leader_epoch: -1,
                    end_offset: -1,
                    ..EpochEndOffset::default()
                },
            });
        }
        topics.push(OffsetForLeaderTopicResult {
            topic: topic.topic,
            partitions,
            ..OffsetForLeaderTopicResult::default()
        });
    }
    Response { topics, ..Response::default() }
}

async fn end_of(
    broker: &Broker,
    topic: &str,
    asked: &OffsetForLeaderPartition,
) -> Result<(i32, i64), ErrorCode> {
    let partition = broker.open_by_name(topic, asked.partition).await?;
    let ours = partition.leader_epoch();
    if let Some(error) = error_code::epoch_mismatch(ours, asked.current_leader_epoch) {
        return Err(error);
    }
    let end = match LeaderEpoch::from_wire(asked.leader_epoch) {
        Some(epoch) => partition.end_of_epoch(epoch),
        None if asked.leader_epoch == -1 => None,
        // As Kafka: an epoch below all others ended where the first of them began.
        None => return Ok((asked.leader_epoch, partition.bounds().log_start.get())),
    };
    Ok(end.map_or((-1, -1), |end| (end.epoch.get(), end.end_offset.get())))
}
