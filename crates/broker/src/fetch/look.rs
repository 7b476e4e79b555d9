//! One look at the partitions of a fetch.

use std::sync::Arc;

use strandline_coordination::FetchPartition;
use strandline_model::{ByteCount, LeaderEpoch, Offset};
use strandline_storage::{ErrorKind, Minimum, ReadError, ReadLimit, StorageError};
use strandline_wire::ErrorCode;

use super::{Asked, Diverging, FetchLimits, Found};
use crate::error_code;
use crate::partition::{Partition, PartitionSlot};
use crate::partitions::Partitions;
use crate::topic::Topic;

/// Looks at partitions and reads what they have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Looker<'a> {
    pub(crate) partitions: &'a Partitions,
    pub(crate) limits: FetchLimits,
}

/// What one look found.
#[derive(Debug)]
pub(crate) struct Look {
    /// In the order of the asked partitions.
    pub(crate) found: Vec<Found>,
    pub(crate) bytes: u64,
    pub(crate) urgent: bool,
}

impl Looker<'_> {
    /// Reads from each partition in turn until the fetch's bytes are used up.
    pub(crate) async fn look(&self, asked: &[Asked]) -> Look {
        let mut look = Look { found: Vec::with_capacity(asked.len()), bytes: 0, urgent: false };
        for asked in asked {
            // The first partition that has data gives at least one batch, whatever the limits say.
            let minimum = if look.bytes == 0 { Minimum::OneBatch } else { Minimum::Nothing };
            let left = self.limits.max_bytes.saturating_sub(look.bytes);
            let found = self.look_at(asked, left, minimum).await;
            look.bytes += found.records.size().get();
            look.urgent |= found.is_urgent();
            look.found.push(found);
        }
        look
    }

    async fn look_at(&self, asked: &Asked, left: u64, minimum: Minimum) -> Found {
        let (topic, slot) = match &asked.found {
            Ok(found) => found,
            Err(error) => return Found::failed(*error),
        };
        let max_bytes = u64::try_from(asked.wants.max_bytes).unwrap_or(0).min(left);
        let limit = ReadLimit { bytes: ByteCount::new(max_bytes), minimum };
        match self.read(topic, slot, asked, limit).await {
            Ok(found) => found,
            Err(error) if error.kind() == ErrorKind::Closed => {
                // The log died since it was opened; the second try opens it anew.
                match self.read(topic, slot, asked, limit).await {
                    Ok(found) => found,
                    Err(error) => Found::failed(error_code::storage(&error)),
                }
            }
            Err(error) => Found::failed(error_code::storage(&error)),
        }
    }

    async fn read(
        &self,
        topic: &Arc<Topic>,
        slot: &Arc<PartitionSlot>,
        asked: &Asked,
        limit: ReadLimit,
    ) -> Result<Found, StorageError> {
        let partition = match self.partitions.open(topic, slot).await {
            Ok(partition) => partition,
            Err(error) => return Ok(Found::failed(error_code::slot_by(&asked.key.topic, &error))),
        };
        let (from, upto) = match readable(&partition, asked.wants) {
            Ok(range) => range,
            Err(found) => return Ok(*found),
        };
        let bounds = partition.bounds();
        let mut found = Found {
            high_watermark: bounds.durable_end.get(),
            log_start_offset: bounds.log_start.get(),
            ..Found::failed(ErrorCode::NONE)
        };
        if from < upto && asked.wants.max_bytes < 0 {
            // As Kafka, which notices it only when there is something to read.
            return Ok(Found::failed(ErrorCode::UNKNOWN_SERVER_ERROR));
        }
        if from >= upto || (limit.bytes == ByteCount::ZERO && limit.minimum == Minimum::Nothing) {
            return Ok(found);
        }
        match partition.log().read(from, upto, limit).await {
            Ok(records) => {
                found.records = records;
                Ok(found)
            }
            // Trimmed between looking at the bounds and reading.
            Err(ReadError::OutOfRange(_)) => Ok(Found::failed(ErrorCode::OFFSET_OUT_OF_RANGE)),
            Err(ReadError::Storage(error)) => {
                if error.kind() == ErrorKind::Closed {
                    slot.close_dead(&partition);
                }
                self.partitions.note_read_failure(topic, slot, from, &error);
                Err(error)
            }
        }
    }
}

/// The range that the client may read now, or what it is told instead.
fn readable(partition: &Partition, wants: FetchPartition) -> Result<(Offset, Offset), Box<Found>> {
    let ours = partition.leader_epoch();
    // As Kafka: here any negative epoch means "unknown", not only −1 as in other requests.
    let theirs = wants.current_leader_epoch.max(-1);
    if let Some(error) = error_code::epoch_mismatch(ours, theirs) {
        // As Kafka: whoever is behind learns the leader; whoever is ahead asks again.
        let leader_epoch = (error == ErrorCode::FENCED_LEADER_EPOCH).then(|| ours.get());
        return Err(Box::new(Found { leader_epoch, ..Found::failed(error) }));
    }
    let bounds = partition.bounds();
    let out_of_range = || Box::new(Found::failed(ErrorCode::OFFSET_OUT_OF_RANGE));
    let from = Offset::from_wire(wants.fetch_offset).ok_or_else(out_of_range)?;
    if let Some(last_fetched) = LeaderEpoch::from_wire(wants.last_fetched_epoch) {
        let end = partition.end_of_epoch(last_fetched).ok_or_else(out_of_range)?;
        if end.epoch < last_fetched || end.end_offset < from {
            let diverging = Diverging { epoch: end.epoch.get(), end_offset: end.end_offset.get() };
            return Err(Box::new(Found {
                diverging: Some(diverging),
                high_watermark: bounds.durable_end.get(),
                log_start_offset: bounds.log_start.get(),
                ..Found::failed(ErrorCode::NONE)
            }));
        }
    }
    if from < bounds.log_start || from > bounds.written_end {
        return Err(out_of_range());
    }
    Ok((from, bounds.durable_end))
}
