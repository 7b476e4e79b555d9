//! Places in partitions: what people write (`start`, `-3`, `@-1h`, `orders:0,2`) becomes offsets.

use std::str::FromStr;
use std::time::{SystemTime, UNIX_EPOCH};

use strandline_client::{Client, ClientError, FoundOffset, OffsetAt, OffsetQuestion};
use strandline_model::{OffsetPoint, OffsetSpec, Timestamp};

use crate::remark::Remark;

/// A topic, and those of its partitions that are meant: `orders`, `orders:0,2`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TopicPartitions {
    /// The topic.
    pub(super) topic: String,
    /// Its partitions; all for none.
    pub(super) partitions: Vec<i32>,
}

impl FromStr for TopicPartitions {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("\"{text}\" is neither TOPIC nor TOPIC:PARTITION,PARTITION");
        let (topic, list) = text.split_once(':').map_or((text, None), |(t, l)| (t, Some(l)));
        if topic.is_empty() {
            return Err(wrong());
        }
        let index = |word: &str| word.trim().parse().ok().filter(|index: &i32| *index >= 0);
        let partitions = list.map_or(Some(Vec::new()), |list| list.split(',').map(index).collect());
        Ok(Self { topic: topic.to_owned(), partitions: partitions.ok_or_else(wrong)? })
    }
}

impl TopicPartitions {
    /// Whether it means this partition.
    pub(super) fn includes(&self, topic: &str, partition: i32) -> bool {
        self.topic == topic && (self.partitions.is_empty() || self.partitions.contains(&partition))
    }
}

/// One place, not a range: for arguments.
pub(super) fn point(text: &str) -> Result<OffsetPoint, String> {
    match text.parse::<OffsetSpec>() {
        Ok(OffsetSpec { from, until: None }) => Ok(from),
        Ok(_) => Err(format!("\"{text}\" is a range; one place is wanted")),
        Err(_) => Err(format!(
            "\"{text}\" is no place; write start, end, 47, +2, -3, @2026-01-15 or @-1h"
        )),
    }
}

/// The borders of a partition: the log start offset and the high watermark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Borders {
    pub(super) start: i64,
    pub(super) end: i64,
}

/// What to say of an offset that a partition does not have, where the nearest is taken instead.
pub(super) fn outside(topic: &str, partition: i32, wished: i64, nearest: i64) -> Remark {
    let message = format!("{topic}-{partition} has no offset {wished}; the nearest is {nearest}");
    Remark::warning("offset_outside", message)
}

impl Borders {
    /// The nearest offset inside; the end counts as inside.
    pub(super) fn clamp(self, offset: i64) -> i64 {
        offset.min(self.end).max(self.start)
    }
}

/// The borders of many partitions, in their order: two requests to each leader.
pub(super) async fn borders(
    client: &mut Client,
    partitions: &[(String, i32)],
) -> Vec<Result<Borders, ClientError>> {
    let starts = client.offsets(&questions(partitions, OffsetAt::Earliest)).await;
    let ends = client.offsets(&questions(partitions, OffsetAt::Latest)).await;
    let both = |(start, end): (Result<FoundOffset, _>, Result<FoundOffset, _>)| {
        Ok(Borders { start: start?.offset, end: end?.offset })
    };
    starts.into_iter().zip(ends).map(both).collect()
}

/// The offsets of one place in many partitions, in their order. Places that are counted may lie
/// outside the borders.
pub(super) async fn offsets_at(
    client: &mut Client,
    partitions: &[((String, i32), Borders)],
    place: OffsetPoint,
) -> Vec<Result<i64, ClientError>> {
    let now = SystemTime::now();
    let known = |borders: Borders| offset_or_time(place, borders, now);
    let Some(time) = partitions.iter().find_map(|(_, borders)| known(*borders).err()) else {
        return partitions.iter().filter_map(|(_, borders)| known(*borders).ok()).map(Ok).collect();
    };
    let names: Vec<(String, i32)> = partitions.iter().map(|(name, _)| name.clone()).collect();
    let found = client.offsets(&questions(&names, OffsetAt::Time(time))).await;
    // No record is that young: then the end is meant.
    let or_end = |found: FoundOffset, borders: &Borders| {
        if found.offset < 0 { borders.end } else { found.offset }
    };
    let answers = found.into_iter().zip(partitions);
    answers.map(|(found, (_, borders))| found.map(|found| or_end(found, borders))).collect()
}

/// The offset of a place, which may lie outside the borders; or the time, for a place that the broker
/// has to look up.
pub(super) fn offset_or_time(
    place: OffsetPoint,
    borders: Borders,
    now: SystemTime,
) -> Result<i64, Timestamp> {
    match place {
        OffsetPoint::Start => Ok(borders.start),
        OffsetPoint::End => Ok(borders.end),
        OffsetPoint::Exact(offset) => Ok(offset.get()),
        OffsetPoint::AfterStart(count) => Ok(borders.start.saturating_add_unsigned(count)),
        OffsetPoint::BeforeEnd(count) => Ok(borders.end.saturating_sub_unsigned(count)),
        OffsetPoint::At(time) => Err(time),
        OffsetPoint::Ago(span) => Err(ago(now, span)),
    }
}

fn questions(partitions: &[(String, i32)], at: OffsetAt) -> Vec<OffsetQuestion> {
    let question = |(topic, partition): &(String, i32)| OffsetQuestion {
        topic: topic.clone(),
        partition: *partition,
        at,
    };
    partitions.iter().map(question).collect()
}

fn ago(now: SystemTime, span_ms: u64) -> Timestamp {
    let now_ms = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let then = now_ms.saturating_sub(u128::from(span_ms));
    Timestamp::from_millis(i64::try_from(then).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use strandline_model::Offset;

    use super::*;

    #[test]
    fn topics_may_carry_partitions() {
        let parse = |text: &str| text.parse::<TopicPartitions>().ok();
        let expected = |topic: &str, partitions: &[i32]| {
            Some(TopicPartitions { topic: topic.to_owned(), partitions: partitions.to_vec() })
        };
        assert_eq!(parse("orders"), expected("orders", &[]));
        assert_eq!(parse("orders:2"), expected("orders", &[2]));
        assert_eq!(parse("orders:2,0"), expected("orders", &[2, 0]));
        for wrong in ["", ":1", "orders:", "orders:x", "orders:-1", "orders:1,"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
        assert!(parse("orders").is_some_and(|all| all.includes("orders", 9)));
        assert!(parse("orders:2").is_some_and(|one| !one.includes("orders", 9)));
    }

    #[test]
    fn a_range_is_no_place() {
        assert_eq!(point("-3"), Ok(OffsetPoint::BeforeEnd(3)));
        assert!(point("5:9").is_err_and(|error| error.contains("range")));
        assert!(point("soon").is_err());
    }

    #[test]
    fn places_lie_where_they_say() {
        let borders = Borders { start: 10, end: 20 };
        let now = UNIX_EPOCH + Duration::from_secs(10);
        let time = Timestamp::from_millis(6_000);
        for (place, expected) in [
            (OffsetPoint::Start, Ok(10)),
            (OffsetPoint::End, Ok(20)),
            (OffsetPoint::Exact(Offset::new(99)), Ok(99)),
            (OffsetPoint::AfterStart(3), Ok(13)),
            (OffsetPoint::BeforeEnd(3), Ok(17)),
            (OffsetPoint::BeforeEnd(99), Ok(-79)),
            (OffsetPoint::At(time), Err(time)),
            (OffsetPoint::Ago(4_000), Err(time)),
            (OffsetPoint::Ago(u64::MAX), Err(Timestamp::from_millis(0))),
        ] {
            assert_eq!(offset_or_time(place, borders, now), expected, "{place:?}");
        }
        assert_eq!([9, 10, 20, 21].map(|offset| borders.clamp(offset)), [10, 10, 20, 20]);
    }
}
