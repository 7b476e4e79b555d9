//! Offsets by time.

use strandline_model::Timestamp;
use strandline_wire::{KafkaString, list_offsets};

use crate::client::subject_of;
use crate::{Client, ClientError};

/// Which offset of a partition is wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OffsetAt {
    /// The log start offset.
    Earliest,
    /// The high watermark: the next record that consumers will see.
    Latest,
    /// The record with the newest timestamp.
    MaxTimestamp,
    /// The first record at or after that time.
    Time(Timestamp),
}

/// An offset, and the time of its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoundOffset {
    /// The offset; −1 when no record fits.
    pub offset: i64,
    /// The time of its record; −1 when there is none, as for the earliest and the latest.
    pub timestamp: i64,
}

impl OffsetAt {
    const fn to_wire(self) -> i64 {
        match self {
            Self::Latest => -1,
            Self::Earliest => -2,
            Self::MaxTimestamp => -3,
            Self::Time(time) => time.as_millis(),
        }
    }
}

impl Client {
    /// Finds an offset of one partition.
    pub async fn offset(
        &mut self,
        topic: &str,
        partition: i32,
        at: OffsetAt,
    ) -> Result<FoundOffset, ClientError> {
        let name = KafkaString::from(topic.to_owned());
        self.call_leader(
            topic,
            partition,
            false,
            |_, leader| list_offsets::Request {
                replica_id: -1,
                topics: vec![list_offsets::ListOffsetsTopic {
                    name: name.clone(),
                    partitions: vec![list_offsets::ListOffsetsPartition {
                        partition_index: partition,
                        current_leader_epoch: leader.epoch,
                        timestamp: at.to_wire(),
                        ..Default::default()
                    }],
                    ..Default::default()
                }],
                ..Default::default()
            },
            |response| {
                let partitions = response.topics.first().map(|topic| topic.partitions.as_slice());
                let found =
                    partitions.and_then(<[_]>::first).ok_or_else(|| no_answer(topic, partition))?;
                ClientError::check(found.error_code, || subject_of(topic, partition), None)?;
                Ok(FoundOffset { offset: found.offset, timestamp: found.timestamp })
            },
        )
        .await
    }
}

/// The response says nothing about the partition that it was asked about.
pub(crate) fn no_answer(topic: &str, partition: i32) -> ClientError {
    ClientError::Broker {
        subject: subject_of(topic, partition),
        code: strandline_wire::ErrorCode::UNKNOWN_SERVER_ERROR,
        message: Some("the response does not mention the partition".to_owned()),
    }
}
