//! The walk over uncompressed records: the hot path of every Produce.
//!
//! One pass, no allocation, no branch that a good record takes the wrong way.

use strandline_model::Timestamp;

use super::{
    ContentError, InvalidBatch, ProduceRules, REJECTED_RECORDS_LISTED_MAX, RecordFault,
    RejectedRecord, RejectedRecords, RejectionReason,
};
use crate::varint::Reader;
use crate::{BatchView, Record, RecordError, TimestampType};

/// What the timestamps of a batch are and which ones are taken.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    /// The one timestamp of all records: the producer claims `LogAppendTime`.
    all: Option<i64>,
    /// The oldest and the newest that are taken; those of an append-time topic do not matter.
    oldest: i64,
    newest: i64,
    /// The claim of `LogAppendTime` is itself the fault.
    claim_is_wrong: bool,
}

/// What a walk over good records found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Walked {
    /// Whether the offset deltas are 0, 1, 2, …
    pub(super) consecutive: bool,
    /// The newest timestamp, at least −1.
    pub(super) max_timestamp: i64,
}

impl Times {
    pub(super) fn of(batch: &BatchView<'_>, rules: &ProduceRules, now: Timestamp) -> Self {
        let claims_append_time =
            batch.attributes().timestamp_type() == TimestampType::LogAppendTime;
        let all = claims_append_time.then(|| batch.raw_max_timestamp());
        match rules.timestamp_type {
            TimestampType::LogAppendTime => {
                Self { all, oldest: i64::MIN, newest: i64::MAX, claim_is_wrong: claims_append_time }
            }
            // Kafka takes the claim for a topic of create times when it comes with a time in range:
            // the batch is stored with the bit cleared.
            TimestampType::CreateTime => Self {
                all,
                oldest: now.as_millis().saturating_sub(rules.timestamp_before_max_ms),
                newest: now.as_millis().saturating_add(rules.timestamp_after_max_ms),
                claim_is_wrong: all == Some(-1),
            },
        }
    }

    /// Whether the header alone gives no reason to look at the records' timestamps.
    pub(super) fn header_is_in_range(&self, batch: &BatchView<'_>) -> bool {
        !self.claim_is_wrong
            && !self.is_out(batch.base_timestamp())
            && !self.is_out(batch.raw_max_timestamp())
    }

    /// No timestamp at all is always taken.
    #[inline]
    const fn is_out(&self, timestamp: i64) -> bool {
        (timestamp < self.oldest || timestamp > self.newest) && timestamp != -1
    }

    #[cold]
    fn fault(&self, timestamp: i64, key_is_missing: bool) -> RecordFault {
        let Self { oldest, newest, .. } = *self;
        match (key_is_missing, self.claim_is_wrong) {
            (true, _) => RecordFault::MissingKey,
            (false, true) => RecordFault::TimestampType,
            (false, false) => RecordFault::TimestampOutOfRange { timestamp, oldest, newest },
        }
    }
}

/// Walks the records of `batch`, which are `records` when they are not compressed.
pub(super) fn walk(
    records: &[u8],
    batch: &BatchView<'_>,
    times: &Times,
    requires_keys: bool,
) -> Result<Walked, InvalidBatch> {
    let count = batch.records_count();
    let base_timestamp = batch.base_timestamp();
    let mut reader = Reader::new(records);
    let mut walked = Walked { consecutive: true, max_timestamp: -1 };
    let mut rejected = None;
    for index in 0..count {
        if reader.rest().is_empty() {
            return Err(broken(index, RecordError::Missing));
        }
        let record = Record::read(&mut reader).map_err(|error| broken(index, error))?;
        let timestamp = match times.all {
            Some(all) => all,
            None => base_timestamp.wrapping_add(record.timestamp_delta),
        };
        walked.max_timestamp = walked.max_timestamp.max(timestamp);
        walked.consecutive &= record.offset_delta == index;
        let key_is_missing = requires_keys & record.key.is_none();
        if key_is_missing || times.claim_is_wrong || times.is_out(timestamp) {
            reject(&mut rejected, index, times.fault(timestamp, key_is_missing));
        }
    }
    if !reader.rest().is_empty() {
        return Err(broken(count, RecordError::Surplus));
    }
    match rejected {
        None => Ok(walked),
        Some(rejected) => Err(InvalidBatch::Records(rejected)),
    }
}

#[cold]
fn broken(index: i32, error: RecordError) -> InvalidBatch {
    InvalidBatch::Content(ContentError::Record { index, error })
}

#[cold]
fn reject(rejected: &mut Option<RejectedRecords>, batch_index: i32, fault: RecordFault) {
    let reason = match fault {
        RecordFault::MissingKey => RejectionReason::Keys,
        RecordFault::TimestampOutOfRange { .. } | RecordFault::TimestampType => {
            RejectionReason::Timestamps
        }
    };
    let rejected = rejected.get_or_insert(RejectedRecords { reason, count: 0, listed: Vec::new() });
    rejected.count += 1;
    if reason == RejectionReason::Timestamps {
        rejected.reason = reason;
    }
    if rejected.listed.len() < REJECTED_RECORDS_LISTED_MAX {
        rejected.listed.push(RejectedRecord { batch_index, fault });
    }
}
