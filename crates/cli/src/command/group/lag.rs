//! How far a group is behind, partition by partition: in records, and in time.
//!
//! Both are about what the group can still read: records that retention or a trim has removed are no
//! lag, since nobody reads them any more. (Kafka's own tool counts them: its LAG is the end less what
//! was committed, however much of that is gone.) The lag in time is the age of the first record that
//! the group has not read yet; zero when there is none. It is exact, because that record is read.

use std::collections::BTreeSet;
use std::time::{SystemTime, UNIX_EPOCH};

use strandline_client::{Client, ClientError, SizeLimits};
use strandline_model::ByteCount;
use strandline_wire::ErrorCode;

use crate::command::place::{Borders, borders};

/// Fetches of one partition in search of its next record: batches without records that consumers
/// see (markers of transactions) may come first. Reached: the lag in time is not known.
const FETCHES_MAX: u32 = 16;

/// A partition that a group reads or has read.
#[derive(Debug)]
pub(super) struct GroupOffset {
    pub(super) topic: String,
    pub(super) partition: i32,
    /// What the group committed; `None` for nothing yet.
    pub(super) committed: Option<i64>,
    /// What was noted beside it.
    pub(super) metadata: String,
    /// The partition's borders; `None` while it has no leader that answers, or is gone.
    pub(super) borders: Option<Borders>,
    /// Why the borders are not known; nothing for a partition that is gone, which is no trouble.
    pub(super) trouble: Option<ClientError>,
    /// The age of the next record to be read, in milliseconds; `None` when it is not known.
    pub(super) lag_ms: Option<u64>,
}

impl GroupOffset {
    /// The first offset that the group can still read: of what was removed nothing is read any more.
    fn next(&self) -> Option<i64> {
        Some(self.committed?.max(self.borders?.start))
    }

    /// Offsets that the group can still read and has not read yet; never negative.
    pub(super) fn lag_records(&self) -> Option<u64> {
        Some(u64::try_from(self.borders?.end.saturating_sub(self.next()?)).unwrap_or(0))
    }
}

/// What partitions come to together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    /// The sum; `None` when no partition has a lag.
    pub(super) records: Option<u64>,
    /// The largest.
    pub(super) ms: Option<u64>,
}

/// The lags of a group's partitions together.
pub(super) fn totals(offsets: &[GroupOffset]) -> Totals {
    let records = offsets.iter().filter_map(GroupOffset::lag_records);
    Totals {
        records: records.reduce(u64::saturating_add),
        ms: offsets.iter().filter_map(|offset| offset.lag_ms).max(),
    }
}

/// Every partition that a group has committed offsets for, and those of `also`, in order.
///
/// `in_time` reads a record of each partition that is behind.
pub(super) async fn of_group(
    client: &mut Client,
    group: &str,
    also: &[(String, i32)],
    in_time: bool,
) -> Result<Vec<GroupOffset>, ClientError> {
    let committed = client.committed(group).await?;
    let places = committed.iter().map(|offset| (offset.topic.clone(), offset.partition));
    let places: BTreeSet<(String, i32)> = places.chain(also.iter().cloned()).collect();
    let places: Vec<(String, i32)> = places.into_iter().collect();
    let borders = borders(client, &places).await;
    let mut offsets = Vec::new();
    for ((topic, partition), borders) in places.into_iter().zip(borders) {
        let (borders, trouble) = match borders {
            Ok(borders) => (Some(borders), None),
            Err(error) if error.code() == Some(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION) => {
                (None, None)
            }
            Err(error) => (None, Some(error)),
        };
        let found = committed
            .binary_search_by(|offset| (&offset.topic, offset.partition).cmp(&(&topic, partition)))
            .ok();
        let found = found.map(|index| &committed[index]);
        let mut offset = GroupOffset {
            topic,
            partition,
            committed: found.map(|offset| offset.offset),
            metadata: found.map(|offset| offset.metadata.clone()).unwrap_or_default(),
            borders,
            trouble,
            lag_ms: None,
        };
        if in_time {
            offset.lag_ms = time_lag(client, &offset).await?;
        }
        offsets.push(offset);
    }
    Ok(offsets)
}

async fn time_lag(client: &mut Client, offset: &GroupOffset) -> Result<Option<u64>, ClientError> {
    let (Some(mut next), Some(borders)) = (offset.next(), offset.borders) else {
        return Ok(None);
    };
    if next >= borders.end {
        return Ok(Some(0));
    }
    // One batch is sent whatever its size.
    let limits = SizeLimits { partition_max: ByteCount::new(1), ..SizeLimits::new() };
    for _ in 0..FETCHES_MAX {
        let fetched = match client.fetch(&offset.topic, offset.partition, next, limits).await {
            Ok(fetched) => fetched,
            // Retention went on meanwhile, or the partition is on the move.
            Err(error)
                if error.code() == Some(ErrorCode::OFFSET_OUT_OF_RANGE)
                    || error.code().is_some_and(ErrorCode::is_retriable) =>
            {
                return Ok(None);
            }
            Err(error) => return Err(error),
        };
        let (records, after) = fetched.records()?;
        if let Some(record) = records.first() {
            return Ok(age(record.timestamp, SystemTime::now()));
        }
        if after >= borders.end {
            // Nothing but markers was left.
            return Ok(Some(0));
        }
        if after == next {
            return Ok(None);
        }
        next = after;
    }
    Ok(None)
}

/// How old a record is; `None` when it has no time. A time in the future is no age.
fn age(timestamp: i64, now: SystemTime) -> Option<u64> {
    let then = u128::try_from(timestamp).ok()?;
    let now = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    Some(u64::try_from(now.saturating_sub(then)).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn offset(committed: Option<i64>, borders: Option<Borders>) -> GroupOffset {
        GroupOffset {
            topic: "t".to_owned(),
            partition: 0,
            committed,
            metadata: String::new(),
            borders,
            trouble: None,
            lag_ms: None,
        }
    }

    #[test]
    fn a_lag_is_never_negative_and_needs_both_sides() {
        let borders = Some(Borders { start: 5, end: 10 });
        assert_eq!(offset(Some(7), borders).lag_records(), Some(3));
        assert_eq!(offset(Some(12), borders).lag_records(), Some(0), "the topic was made anew");
        assert_eq!(offset(Some(2), borders).lag_records(), Some(5), "three are gone");
        let emptied = Some(Borders { start: 30, end: 30 });
        assert_eq!(offset(Some(0), emptied).lag_records(), Some(0), "all are gone");
        assert_eq!(offset(None, borders).lag_records(), None);
        assert_eq!(offset(Some(7), None).lag_records(), None);
    }

    #[test]
    fn totals_add_records_and_take_the_longest_time() {
        let borders = Some(Borders { start: 0, end: 10 });
        let with_ms =
            |committed, lag_ms| GroupOffset { lag_ms, ..offset(Some(committed), borders) };
        let offsets = [with_ms(7, Some(5)), with_ms(4, Some(900)), offset(None, borders)];
        assert_eq!(totals(&offsets), Totals { records: Some(9), ms: Some(900) });
        assert_eq!(totals(&[offset(None, borders)]), Totals::default());
    }

    #[test]
    fn a_record_from_the_future_has_no_age() {
        let now = UNIX_EPOCH + Duration::from_secs(10);
        assert_eq!(age(4_000, now), Some(6_000));
        assert_eq!(age(99_000, now), Some(0));
        assert_eq!(age(-1, now), None);
    }
}
