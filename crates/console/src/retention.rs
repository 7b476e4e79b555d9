//! `/v1/topics/{name}/retention` and `/segments`: what is there of a topic, why, and when it goes.

use axum::Json;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use strandline_model::{ByteCount, Offset, PartitionIndex, Timestamp};

use crate::clients::{rfc_3339, rfc_3339_if_any};

/// The parameter that says what would be configured: `simulate=retention.ms:86400000`.
const SIMULATE: &str = "simulate";
/// The parameter that says behind which segment a page begins: `after=3:1200`.
const AFTER: &str = "after";
/// The parameter that says how long a page is.
const LIMIT: &str = "limit";
/// The longest page.
const SEGMENTS_PER_PAGE_MAX: usize = 10_000;

/// A topic as it is served. Field names are part of the API.
#[derive(Clone, Debug, Serialize)]
pub struct TopicRetention {
    /// Its name.
    pub topic: String,
    /// The time that retention goes by.
    #[serde(serialize_with = "rfc_3339")]
    pub now: Timestamp,
    /// When retention last looked at every partition.
    #[serde(serialize_with = "rfc_3339_if_any")]
    pub checked_at: Option<Timestamp>,
    /// When it does so next.
    #[serde(serialize_with = "rfc_3339_if_any")]
    pub next_check_at: Option<Timestamp>,
    /// Milliseconds from one look to the next.
    pub check_interval_ms: u64,
    /// `cleanup.policy`.
    pub cleanup_policy: &'static str,
    /// `retention.ms`; null: for ever.
    pub retention_ms: Option<u64>,
    /// `retention.bytes`; null: no limit.
    pub retention_bytes: Option<u64>,
    /// `retention.bytes.floor`.
    pub retention_bytes_floor: bool,
    /// `retention.records`; null: no limit.
    pub retention_records: Option<u64>,
    /// Keys that are kept with a value that this version can't read: nothing goes by them.
    pub unreadable: Vec<&'static str>,
    /// Its partitions.
    pub partitions: Vec<PartitionRetention>,
}

/// A partition as it is served.
#[derive(Clone, Debug, Serialize)]
pub struct PartitionRetention {
    /// Which one.
    pub partition: u32,
    /// Its first readable offset.
    pub log_start_offset: i64,
    /// The offset after its last record.
    pub log_end_offset: i64,
    /// Bytes of its batches.
    pub bytes: u64,
    /// How many segments hold them.
    pub segment_count: usize,
    /// Bytes of those that go with the next look.
    pub due_bytes: u64,
    /// How many these are.
    pub due_segments: usize,
    /// Bytes that are left when these have gone.
    pub left_bytes: u64,
    /// When a size or a count will take the oldest segment, if nothing else does before. A guess.
    pub estimate: Option<Estimate>,
    /// The oldest segment, and why it is still there.
    pub oldest: Option<Segment>,
    /// All of them, served by themselves.
    #[serde(skip)]
    segments: Vec<Segment>,
}

/// A guess from the rate at which records came within the last hour.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Estimate {
    /// When the limit will be passed.
    #[serde(serialize_with = "rfc_3339")]
    pub goes_at: Timestamp,
    /// The key that sets it.
    pub limit: &'static str,
}

/// A segment as it is served.
#[derive(Clone, Debug, Serialize)]
pub struct Segment {
    /// The partition that it belongs to.
    pub partition: u32,
    /// What people find it by: a file's name.
    pub name: String,
    /// The offset of its first record.
    pub base_offset: i64,
    /// The offset after its last record.
    pub next_offset: i64,
    /// Bytes of its batches.
    pub bytes: u64,
    /// `open`, `sealed` (where the topic is compacted `clean` or `dirty`), or `due` when it goes with the
    /// next look.
    pub state: &'static str,
    /// The newest timestamp of its records, by the producers' clocks.
    #[serde(serialize_with = "rfc_3339_if_any")]
    pub max_timestamp: Option<Timestamp>,
    /// When its first batch was appended.
    #[serde(serialize_with = "rfc_3339")]
    pub first_appended_at: Timestamp,
    /// When its last batch was appended.
    #[serde(serialize_with = "rfc_3339")]
    pub last_appended_at: Timestamp,
    /// Why it is still there, as a code.
    pub reason: &'static str,
    /// The key whose limit it is beyond.
    pub limit: Option<&'static str>,
    /// When its age makes it go, at the first look afterwards.
    #[serde(serialize_with = "rfc_3339_if_any")]
    pub goes_at: Option<Timestamp>,
}

impl PartitionRetention {
    /// A partition with these segments, oldest first.
    pub fn new(
        index: PartitionIndex,
        log_start: Offset,
        log_end: Offset,
        estimate: Option<(Timestamp, &'static str)>,
        segments: Vec<Segment>,
    ) -> Self {
        let bytes_of = |segments: &mut dyn Iterator<Item = &Segment>| {
            segments.map(|segment| ByteCount::new(segment.bytes)).sum::<ByteCount>().get()
        };
        let due = || segments.iter().filter(|segment| segment.limit.is_some());
        let (bytes, due_bytes) = (bytes_of(&mut segments.iter()), bytes_of(&mut due()));
        Self {
            partition: index.get(),
            log_start_offset: log_start.get(),
            log_end_offset: log_end.get(),
            bytes,
            segment_count: segments.len(),
            due_bytes,
            left_bytes: bytes - due_bytes,
            estimate: estimate.map(|(goes_at, limit)| Estimate { goes_at, limit }),
            due_segments: due().count(),
            oldest: segments.first().cloned(),
            segments,
        }
    }
}

/// What is served of a topic.
#[derive(Clone, Copy, Debug)]
pub(crate) enum View {
    Retention,
    Segments,
}

#[derive(Serialize)]
struct Problem {
    error: String,
}

/// What is asked about a topic.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    view: View,
    /// What would be configured.
    simulated: Vec<(String, String)>,
    /// Only segments behind this one: its partition and base offset.
    after: Option<(u32, i64)>,
    /// At most so many segments.
    limit: usize,
}

impl Question {
    /// From what stands behind the question mark, or what is wrong with it.
    pub(crate) fn parse(view: View, asked: Vec<(String, String)>) -> Result<Self, String> {
        let (simulated, limit) = (Vec::new(), SEGMENTS_PER_PAGE_MAX);
        let mut question = Self { view, simulated, after: None, limit };
        for (name, value) in asked {
            match (name.as_str(), view) {
                (SIMULATE, _) => {
                    let (key, text) = value
                        .split_once(':')
                        .ok_or_else(|| format!("{SIMULATE}={value}: write {SIMULATE}=KEY:VALUE"))?;
                    question.simulated.push((key.to_owned(), text.to_owned()));
                }
                (AFTER, View::Segments) => {
                    let place = value.split_once(':').and_then(|(partition, base_offset)| {
                        Some((partition.parse().ok()?, base_offset.parse().ok()?))
                    });
                    question.after = Some(place.ok_or_else(|| {
                        format!("{AFTER}={value}: write {AFTER}=PARTITION:BASE-OFFSET")
                    })?);
                }
                (LIMIT, View::Segments) => {
                    let limit = value.parse().ok();
                    let limit = limit.filter(|limit| (1..=SEGMENTS_PER_PAGE_MAX).contains(limit));
                    question.limit = limit.ok_or_else(|| {
                        format!("{LIMIT}={value}: from 1 to {SEGMENTS_PER_PAGE_MAX}")
                    })?;
                }
                (_, View::Retention) => {
                    return Err(format!("unknown parameter {name}; known: {SIMULATE}"));
                }
                (_, View::Segments) => {
                    return Err(format!(
                        "unknown parameter {name}; known: {SIMULATE}, {AFTER}, {LIMIT}"
                    ));
                }
            }
        }
        Ok(question)
    }

    /// What would be configured.
    pub(crate) fn simulated(&self) -> &[(String, String)] {
        &self.simulated
    }

    /// The page of these segments, which come by partition and offset.
    fn page(&self, segments: impl Iterator<Item = Segment>) -> Vec<Segment> {
        let is_after = |segment: &Segment| {
            self.after.is_none_or(|after| (segment.partition, segment.base_offset) > after)
        };
        segments.filter(is_after).take(self.limit).collect()
    }
}

/// 200 with the topic, 404 when there is none of that name, 400 when it can't be configured so.
pub(crate) fn answer(
    name: &str,
    asked: Result<(Question, Option<TopicRetention>), String>,
) -> Response {
    let problem =
        |status: StatusCode, error: String| (status, Json(Problem { error })).into_response();
    let (question, found) = match asked {
        Ok(asked) => asked,
        Err(error) => return problem(StatusCode::BAD_REQUEST, error),
    };
    match (found, question.view) {
        (None, _) => problem(StatusCode::NOT_FOUND, format!("no such topic: {name}")),
        (Some(topic), View::Retention) => Json(topic).into_response(),
        (Some(topic), View::Segments) => {
            let partitions = topic.partitions.into_iter();
            Json(question.page(partitions.flat_map(|each| each.segments))).into_response()
        }
    }
}
