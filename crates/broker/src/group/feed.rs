//! `__consumer_offsets`: what has become durable of groups, as records that monitoring tools read.
//!
//! The rows are the truth; the topic is derived from them, lives in memory and keeps the newest
//! records only. It is made by the first lookup of a group's coordinator and listed from then on.
//! Nobody waits for it: when more changes than it can take, it leaves some out and says so.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use bytes::BytesMut;
use strandline_coordination::group::{FeedRecord, GroupRow, feed_partition};
use strandline_model::{ByteCount, TopicId};
use strandline_records::{BatchBuilder, NewRecord, validate};
use tokio::sync::mpsc;

use crate::Broker;
use crate::partition::{AppendFailure, Partition};
use crate::topic::{CreateError, NewTopic, Topic};

/// The topic.
pub(crate) const OFFSETS_TOPIC: &str = "__consumer_offsets";
/// Commits of rows that wait to be told of. Reached: the next ones are left out.
const WAITING_MAX: usize = 1024;
/// Records in one batch.
const BATCH_RECORDS_MAX: usize = 500;
/// A chunk of a partition is closed when it has so many bytes.
const CHUNK_BYTES: ByteCount = ByteCount::kib(64);
/// Chunks that a partition keeps.
const CHUNKS_MAX: usize = 4;
/// Topics whose names are remembered, so that a position in a topic that is gone can be told of.
const NAMES_MAX: usize = 10_000;

/// Where owners of groups say what has become durable.
#[derive(Clone, Debug)]
pub(crate) struct OffsetsFeed(mpsc::Sender<Vec<GroupRow>>);

/// What has become durable and was not told of yet.
#[derive(Debug)]
pub(crate) struct Untold(mpsc::Receiver<Vec<GroupRow>>);

impl OffsetsFeed {
    pub(crate) fn new() -> (Self, Untold) {
        let (sender, receiver) = mpsc::channel(WAITING_MAX);
        (Self(sender), Untold(receiver))
    }

    pub(super) fn tell(&self, rows: &[GroupRow]) {
        if self.0.try_send(rows.to_vec()).is_err() {
            tracing::debug!(rows = rows.len(), topic = OFFSETS_TOPIC, "changes were left out");
        }
    }
}

impl Broker {
    /// The offsets topic as Kafka makes it, whoever is the first to want it.
    pub(crate) fn new_offsets_topic(&self) -> NewTopic {
        let config = |key: &str, value: String| (key.to_owned(), Some(value));
        let broker = self.settings().broker();
        NewTopic {
            name: OFFSETS_TOPIC.to_owned(),
            partition_count: i32::try_from(broker.offsets_topic_num_partitions).unwrap_or(i32::MAX),
            replication_factor: -1,
            assignments: Vec::new(),
            configs: vec![
                config("cleanup.policy", "compact".to_owned()),
                config("compression.type", "producer".to_owned()),
                config("segment.bytes", broker.offsets_topic_segment_bytes.to_string()),
            ],
        }
    }

    /// Makes the offsets topic unless it is there.
    pub(crate) async fn ensure_offsets_topic(self: &Arc<Self>) {
        if self.registry().by_name(OFFSETS_TOPIC).is_some() {
            return;
        }
        match self.create_topic(&self.new_offsets_topic()).await {
            // Somebody else was first.
            Ok(_) | Err(CreateError::Exists(_)) => {}
            // Groups work without it.
            Err(error) => tracing::warn!(%error, topic = OFFSETS_TOPIC, "topic was not made"),
        }
    }
}

/// Tells of what becomes durable, until the broker drains.
pub(crate) async fn run(broker: Arc<Broker>, untold: Untold) {
    let Untold(mut receiver) = untold;
    let mut names = Names::default();
    let stop = broker.stop().clone();
    loop {
        let rows = tokio::select! {
            rows = receiver.recv() => rows,
            () = stop.cancelled() => return,
        };
        let Some(rows) = rows else { return };
        // Not before somebody asked for a coordinator: there is nobody to read it.
        let Some(topic) = broker.registry().by_name(OFFSETS_TOPIC) else { continue };
        let mut by_partition: BTreeMap<u32, Vec<FeedRecord>> = BTreeMap::new();
        for row in &rows {
            let Some(record) = names.record(&broker, row) else { continue };
            let partition = feed_partition(row.group_id(), topic.partition_count());
            by_partition.entry(partition).or_default().push(record);
        }
        for (index, records) in by_partition {
            for records in records.chunks(BATCH_RECORDS_MAX) {
                append(&broker, &topic, index, records).await;
            }
        }
    }
}

/// The names of topics by their ids, also of those that are gone by now.
#[derive(Default)]
struct Names(HashMap<TopicId, Arc<str>>);

impl Names {
    fn record(&mut self, broker: &Broker, row: &GroupRow) -> Option<FeedRecord> {
        let GroupRow::Offset(key, _) = row else { return row.feed_record("") };
        if let Some(topic) = broker.registry().by_id(key.topic_id) {
            if self.0.len() >= NAMES_MAX {
                self.0.clear();
            }
            self.0.entry(key.topic_id).or_insert_with(|| Arc::from(topic.name().as_str()));
        }
        row.feed_record(self.0.get(&key.topic_id)?)
    }
}

/// Appends records and lets the oldest go.
async fn append(broker: &Arc<Broker>, topic: &Arc<Topic>, index: u32, records: &[FeedRecord]) {
    let slot = i32::try_from(index).ok().and_then(|index| topic.partition(index));
    let Some(slot) = slot else { return };
    let partition = match broker.partitions().open(topic, &slot).await {
        Ok(partition) => partition,
        Err(error) => {
            tracing::debug!(%error, topic = OFFSETS_TOPIC, index, "changes were left out");
            return;
        }
    };
    if let Err(error) = append_to(broker, topic, &partition, records).await {
        tracing::debug!(error, topic = OFFSETS_TOPIC, index, "changes were left out");
    }
}

async fn append_to(
    broker: &Arc<Broker>,
    topic: &Arc<Topic>,
    partition: &Partition,
    records: &[FeedRecord],
) -> Result<(), String> {
    let now = broker.environment().now();
    let batch = validate(batch_of(records, now), &topic.settings().produce, now);
    let mut batch = batch.map_err(|error| error.to_string())?;
    let appended = loop {
        match partition.append(batch, now) {
            Ok(appended) => break appended,
            Err(AppendFailure::Busy(again)) => {
                batch = again;
                partition.log().ready().await;
            }
            Err(AppendFailure::Rejected(rejected)) => return Err(rejected.to_string()),
            Err(AppendFailure::Storage(error)) => return Err(error.to_string()),
        }
    };
    appended.ticket.await.map_err(|error| error.to_string())?;
    keep_the_newest(partition).await.map_err(|error| error.to_string())
}

fn batch_of(records: &[FeedRecord], now: strandline_model::Timestamp) -> BytesMut {
    let mut batch = BatchBuilder::new();
    for FeedRecord { key, value } in records {
        batch.push(NewRecord {
            timestamp: Some(now),
            key: Some(key),
            value: value.as_deref(),
            ..NewRecord::default()
        });
    }
    batch.build()
}

async fn keep_the_newest(partition: &Partition) -> Result<(), strandline_storage::StorageError> {
    let chunks = partition.log().chunks();
    if chunks.last().is_some_and(|active| active.bytes >= CHUNK_BYTES) {
        partition.log().roll().await?;
    }
    if let Some(oldest) = chunks.len().checked_sub(CHUNKS_MAX).filter(|&excess| excess > 0) {
        partition.log().trim(chunks[oldest].base_offset).await?;
    }
    Ok(())
}
