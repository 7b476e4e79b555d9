//! When retention wants the active segment closed, so that old records do not hide behind new ones.

use strandline_model::{ByteCount, Timestamp};

use super::{Policy, Segment};

/// A limit is spread over this many segments: with whole segments dropped, at least seven eighths of
/// what the limit allows stay.
const SEGMENTS_PER_LIMIT: u64 = 8;

/// Segments are not made smaller than this for a limit's sake while records come in: Kafka's own
/// minimum of `segment.bytes`.
const SEGMENT_BYTES_MIN: ByteCount = ByteCount::mib(1);

/// Nor do they hold fewer records than this for a limit's sake while records come in: a file for every
/// few of them costs more than it frees.
const SEGMENT_RECORDS_MIN: u64 = 1_000;

/// The size at which a segment is to be closed in a topic that asks for `configured`.
pub fn segment_bytes(policy: &Policy, configured: ByteCount) -> ByteCount {
    let limit = policy.bytes.filter(|_| policy.deletes);
    limit.map_or(configured, |limit| {
        configured.min(ByteCount::new(limit.get() / SEGMENTS_PER_LIMIT).max(SEGMENT_BYTES_MIN))
    })
}

/// How many records a segment is to hold at most.
pub fn segment_records(policy: &Policy) -> u64 {
    let limit = policy.records.filter(|_| policy.deletes);
    limit.map_or(u64::MAX, |limit| (limit / SEGMENTS_PER_LIMIT).max(SEGMENT_RECORDS_MIN))
}

/// Whether an active segment that stays is to be closed now.
pub(super) fn is_overdue(
    active: &Segment,
    policy: &Policy,
    now: Timestamp,
    latest: Timestamp,
) -> bool {
    if !policy.deletes {
        return false;
    }
    let share = |limit: u64| (limit / SEGMENTS_PER_LIMIT).max(1);
    let records = (active.next_offset - active.base_offset).get().max(0).unsigned_abs();
    let age_ms = now.millis_since(active.first_appended_at);
    let appended = active.last_appended_at;
    let newest = active.max_timestamp.map_or(appended, |newest| newest.min(appended));
    // Its first records have expired, whatever came behind them.
    let is_old = |millis: u64| {
        u64::try_from(age_ms).is_ok_and(|age_ms| age_ms > millis)
            // Nobody knows how old it is: what comes now shall not be held up by it.
            || newest > now.max(latest)
    };
    policy.bytes.is_some_and(|limit| active.bytes.get() > share(limit.get()))
        || policy.records.is_some_and(|limit| records > share(limit))
        || policy.millis.is_some_and(is_old)
}
