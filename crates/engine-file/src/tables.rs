//! The engine's own rows: keys and values of the tables that only it sees.
//!
//! docs/format.md, "Rows", has the byte tables.

use bytes::{Bytes, BytesMut};
use strandline_model::{LeaderEpoch, Offset, PartitionId, PartitionIndex, Timestamp, TopicId};
use strandline_storage::{Compacted, Finding, Table};

use crate::bytes::Fields;
use crate::segment::{SegmentFacts, rescue_name};

/// The persisted number of a table, of the metadata store (below 128) or of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TableNumber(pub(crate) u8);

impl TableNumber {
    /// Of a table of the metadata store.
    pub(crate) const fn of(table: Table) -> Self {
        Self(table.number())
    }
}

/// What a segment holds. The last one of a partition is its active one.
pub(crate) const SEGMENTS: TableNumber = TableNumber(128);
/// The newest epoch claimed.
pub(crate) const EPOCHS: TableNumber = TableNumber(129);
/// The first offset that may be read.
pub(crate) const LOG_STARTS: TableNumber = TableNumber(130);
/// Logs whose removal has begun.
pub(crate) const REMOVALS: TableNumber = TableNumber(131);
/// What the log's owner saved.
pub(crate) const STATES: TableNumber = TableNumber(132);
/// Logs that a start found damaged.
pub(crate) const DAMAGES: TableNumber = TableNumber(133);
/// How far logs are compacted.
pub(crate) const COMPACTED: TableNumber = TableNumber(134);

/// Logs that are out of service because nobody knows them, and since when.
pub(crate) const QUARANTINES: TableNumber = TableNumber(135);

/// Where damaged logs end, as the journal had it: what is found of them may end before.
pub(crate) const DAMAGED_ENDS: TableNumber = TableNumber(136);

/// Tables whose key begins with a partition: all of the engine's own.
pub(crate) const OF_PARTITIONS: [TableNumber; 9] =
    [SEGMENTS, EPOCHS, LOG_STARTS, REMOVALS, STATES, DAMAGES, COMPACTED, QUARANTINES, DAMAGED_ENDS];

const PARTITION_BYTES: usize = 20;

/// The key of a partition's rows.
pub(crate) fn partition_key(id: PartitionId) -> [u8; PARTITION_BYTES] {
    let mut key = [0; PARTITION_BYTES];
    key[..16].copy_from_slice(id.topic_id.as_bytes());
    key[16..].copy_from_slice(&id.index.get().to_be_bytes());
    key
}

/// The partition that a key of one of the engine's tables begins with.
pub(crate) fn key_partition(key: &[u8]) -> Option<PartitionId> {
    let mut fields = Fields::of(key);
    let topic_id = TopicId::from_bytes(fields.array()?);
    Some(PartitionId::new(topic_id, PartitionIndex::from_wire(fields.i32()?)?))
}

/// The key of a segment's row. A partition's segments lie side by side, oldest first.
pub(crate) fn segment_key(id: PartitionId, base_offset: Offset) -> [u8; PARTITION_BYTES + 8] {
    let mut key = [0; PARTITION_BYTES + 8];
    key[..PARTITION_BYTES].copy_from_slice(&partition_key(id));
    key[PARTITION_BYTES..].copy_from_slice(&base_offset.get().to_be_bytes());
    key
}

pub(crate) fn parse_segment_key(key: &[u8]) -> Option<(PartitionId, Offset)> {
    let base_offset = Fields::of(key.get(PARTITION_BYTES..)?).i64()?;
    Some((key_partition(key)?, Offset::from_wire(base_offset)?))
}

/// The value of a segment's row. One that was appended to has no generation.
pub(crate) fn segment_value(facts: &SegmentFacts) -> Bytes {
    let mut value = BytesMut::with_capacity(48);
    let fields = [
        facts.bytes.cast_signed(),
        facts.next_offset.get(),
        facts.max_timestamp.map_or(-1, Timestamp::as_millis),
        facts.first_appended_at.as_millis(),
        facts.last_appended_at.as_millis(),
    ];
    for field in fields {
        value.extend_from_slice(&field.to_be_bytes());
    }
    if facts.generation > 0 {
        value.extend_from_slice(&facts.generation.to_be_bytes());
    }
    value.freeze()
}

pub(crate) fn parse_segment(key: &[u8], value: &[u8]) -> Option<SegmentFacts> {
    let base_offset = Offset::from_wire(Fields::of(key.get(PARTITION_BYTES..)?).i64()?)?;
    let mut fields = Fields::of(value);
    let mut facts = SegmentFacts {
        base_offset,
        generation: 0,
        bytes: fields.u64()?,
        next_offset: Offset::from_wire(fields.i64()?)?,
        max_timestamp: Timestamp::from_wire(fields.i64()?),
        first_appended_at: Timestamp::from_wire(fields.i64()?)?,
        last_appended_at: Timestamp::from_wire(fields.i64()?)?,
    };
    if !fields.is_empty() {
        facts.generation = fields.u64().filter(|generation| *generation > 0)?;
    }
    fields.is_empty().then_some(facts)
}

/// Since when a log is in quarantine. A moment that can't be read is the last one: nothing is purged
/// for it.
pub(crate) fn parse_quarantine(value: &[u8]) -> Timestamp {
    let since = Fields::of(value).i64().and_then(Timestamp::from_wire);
    since.unwrap_or(Timestamp::from_millis(i64::MAX))
}

/// The newest epoch of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EpochRow {
    pub(crate) epoch: LeaderEpoch,
    /// Where it begins: what older epochs appended at or above this is void.
    pub(crate) start_offset: Offset,
    /// The run of the engine that claimed it.
    pub(crate) run: u64,
}

impl EpochRow {
    pub(crate) fn value(&self) -> [u8; 20] {
        let mut value = [0; 20];
        value[..4].copy_from_slice(&self.epoch.get().to_be_bytes());
        value[4..12].copy_from_slice(&self.start_offset.get().to_be_bytes());
        value[12..].copy_from_slice(&self.run.to_be_bytes());
        value
    }

    pub(crate) fn parse(value: &[u8]) -> Option<Self> {
        let mut fields = Fields::of(value);
        let epoch = fields.leader_epoch()?;
        let start_offset = Offset::from_wire(fields.i64()?)?;
        let run = fields.u64()?;
        fields.is_empty().then_some(Self { epoch, start_offset, run })
    }
}

/// Why a log stays closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct DamageRow {
    /// With which offset the rescued batches begin; `None` when there are none.
    pub(crate) rescued: Option<Offset>,
    /// What a start found, as a fact.
    pub(crate) reason: String,
}

impl DamageRow {
    pub(crate) fn value(&self) -> Bytes {
        let mut value = BytesMut::with_capacity(8 + self.reason.len());
        value.extend_from_slice(&self.rescued.map_or(-1, Offset::get).to_be_bytes());
        value.extend_from_slice(self.reason.as_bytes());
        value.freeze()
    }

    /// What whoever opens the log is told.
    pub(crate) fn describe(&self, id: PartitionId) -> String {
        let reason = &self.reason;
        let rescued = self.rescued.map_or_else(|| "nothing".to_owned(), rescue_name);
        format!(
            "log is damaged and stays closed. partition=`{id}`, rescued=`{rescued}`, reason=`{reason}`"
        )
    }

    /// What a check of the log reports.
    pub(crate) fn finding(&self, id: PartitionId) -> Finding {
        let chunk = self.rescued.map_or_else(String::new, rescue_name);
        Finding { chunk, position: 0, message: self.describe(id) }
    }

    /// A row that does not parse still says that the log is damaged.
    pub(crate) fn parse(value: &[u8]) -> Self {
        let rescued = Fields::of(value).i64().and_then(Offset::from_wire);
        let reason = String::from_utf8_lossy(value.get(8..).unwrap_or_default()).into_owned();
        Self { rescued, reason }
    }
}

/// The value of the row that says how far a log is compacted.
pub(crate) fn compacted_value(compacted: Compacted) -> Bytes {
    let mut value = BytesMut::with_capacity(16);
    value.extend_from_slice(&compacted.clean_end.get().to_be_bytes());
    let horizon = compacted.delete_horizon.map_or(-1, Timestamp::as_millis);
    value.extend_from_slice(&horizon.to_be_bytes());
    value.freeze()
}

pub(crate) fn parse_compacted(value: &[u8]) -> Option<Compacted> {
    let mut fields = Fields::of(value);
    let clean_end = Offset::from_wire(fields.i64()?)?;
    let delete_horizon = Timestamp::from_wire(fields.i64()?);
    fields.is_empty().then_some(Compacted { clean_end, delete_horizon })
}

/// The value of a log start's row.
pub(crate) fn offset_value(offset: Offset) -> [u8; 8] {
    offset.get().to_be_bytes()
}

pub(crate) fn parse_offset(value: &[u8]) -> Option<Offset> {
    Fields::of(value).i64().and_then(Offset::from_wire)
}

/// The value of a saved state's row.
pub(crate) fn state_value(at: Offset, state: &[u8]) -> Bytes {
    let mut value = BytesMut::with_capacity(8 + state.len());
    value.extend_from_slice(&at.get().to_be_bytes());
    value.extend_from_slice(state);
    value.freeze()
}

pub(crate) fn parse_state(value: &Bytes) -> Option<(Offset, Bytes)> {
    let at = parse_offset(value)?;
    Some((at, value.slice(8..)))
}
