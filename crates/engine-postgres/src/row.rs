//! A log's row.

use strandline_model::{
    ByteCount, LeaderEpoch, Offset, PartitionId, PartitionIndex, Timestamp, TopicId,
};
use strandline_storage::{Compacted, ErrorKind, StorageError};
use tokio_postgres::Row;
use uuid::Uuid;

use crate::facts::Facts;

/// See the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct LogRow {
    pub(crate) log_id: i64,
    pub(crate) id: PartitionId,
    pub(crate) epoch: LeaderEpoch,
    pub(crate) session: i64,
    pub(crate) is_open: bool,
    pub(crate) found_unclean: bool,
    pub(crate) log_start: Offset,
    pub(crate) end_offset: Offset,
    pub(crate) active: Option<Facts>,
    pub(crate) last_number: i64,
    pub(crate) compacted: Compacted,
    pub(crate) removing: Option<ByteCount>,
    pub(crate) quarantined: Option<Timestamp>,
    /// Where it ended before a failover that lost some of it.
    pub(crate) lost: Option<Offset>,
}

impl LogRow {
    /// The columns in the order in which the statements select them.
    pub(crate) fn of_row(row: &Row) -> Result<Self, StorageError> {
        let id = partition_of(row.get(1), row.get(2))?;
        let end_offset = Offset::new(row.get(8));
        let active = Facts {
            number: row.get(9),
            base: Offset::new(row.get(10)),
            next: end_offset,
            bytes: row.get(11),
            max_timestamp: row.get::<_, Option<i64>>(12).map(Timestamp::from_millis),
            first_at: Timestamp::from_millis(row.get(13)),
            last_at: Timestamp::from_millis(row.get(14)),
        };
        let remaining: i64 = row.get(19);
        Ok(Self {
            log_id: row.get(0),
            id,
            epoch: LeaderEpoch::new(row.get(3)),
            session: row.get(4),
            is_open: row.get(5),
            found_unclean: row.get(6),
            log_start: Offset::new(row.get(7)),
            end_offset,
            active: (active.number > 0).then_some(active),
            last_number: row.get(15),
            compacted: Compacted {
                clean_end: Offset::new(row.get(16)),
                delete_horizon: row.get::<_, Option<i64>>(17).map(Timestamp::from_millis),
            },
            removing: row
                .get::<_, bool>(18)
                .then_some(ByteCount::new(remaining.max(0).cast_unsigned())),
            quarantined: row.get::<_, Option<i64>>(20).map(Timestamp::from_millis),
            lost: row.get::<_, Option<i64>>(21).map(Offset::new),
        })
    }
}

/// A partition's two columns.
pub(crate) fn partition_of(topic: Uuid, partition: i32) -> Result<PartitionId, StorageError> {
    let index = u32::try_from(partition).map_err(|_| {
        let message = format!("a row has a partition below 0. partition=`{partition}`");
        StorageError::new(ErrorKind::Corrupt, message)
    })?;
    Ok(PartitionId::new(TopicId::from_bytes(*topic.as_bytes()), PartitionIndex::new(index)))
}

/// The two columns of a partition.
pub(crate) fn columns_of(id: PartitionId) -> (Uuid, i32) {
    (id.topic_id.to_uuid(), id.index.to_wire())
}
