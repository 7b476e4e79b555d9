//! Produce: v3–v13. v5 log start; v8 record errors; v10 current leader; v13 topic ids.
//!
//! Two halves: [`begin`] has admitted and submitted everything when it returns, so that requests of
//! a connection are appended in order; [`PendingProduce::finish`] waits for durability, so that
//! several requests of a connection wait together.
//!
//! Both end when the client's own time is up: what is not durable by then is answered with
//! `REQUEST_TIMED_OUT`, as Kafka does, and may become so later.

use std::sync::Arc;
use std::time::Duration;

use bytes::BytesMut;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use smallvec::SmallVec;
use strandline_model::{Offset, Timestamp};
use strandline_records::{
    Compression, InvalidBatch, RejectedRecord, TargetCompression, TimestampType, ValidBatch,
    only_batch, validate,
};
use strandline_storage::{ErrorKind, StorageError};
use strandline_wire::produce::{
    PartitionRequest, PartitionResponse, RecordError, Request, Response, TopicRequest,
    TopicResponse,
};
use strandline_wire::{ErrorCode, Leader, TopicRef};

use super::{name_of, text};
use crate::deadline::Deadline;
use crate::metrics::Metrics;
use crate::partition::{AppendFailure, Appended, Partition, PartitionSlot, SlotError};
use crate::settings::TopicSettings;
use crate::topic::Topic;
use crate::{Broker, error_code};

/// Times that an append is tried when the engine is busy or the log died: each wait is for the
/// engine's own signal, so more tries than this mean that it does not recover.
const TRIES_MAX: u32 = 1_000;

/// The first version in which a batch may be compressed with zstd (KIP-110).
const ZSTD_FROM: i16 = 7;
/// The shortest time that an answer is waited for, however little the client allows: Kafka waits for its
/// own disk as long as it takes, and so may a client that asks for no time at all count on it.
const WAIT_MIN: Duration = Duration::from_secs(1);
/// Smaller batches are compressed or looked into where they arrive: a hop to another thread and
/// back would cost as much.
const COSTLY_BYTES_MIN: usize = 16 * 1024;

/// A Produce request whose batches are submitted.
#[derive(Debug)]
pub(crate) struct PendingProduce {
    /// Whether the client wants an answer at all (acks other than 0).
    pub(crate) wants_answer: bool,
    /// How long the client waits for the answer.
    timeout_ms: i32,
    topics: SmallVec<[PendingTopic; 1]>,
}

/// What holds for every partition of a request.
#[derive(Clone, Copy, Debug)]
struct Terms {
    version: i16,
    acks_are_valid: bool,
    /// Whether the answer waits for all replicas that are in sync.
    waits_for_all: bool,
}

#[derive(Debug)]
struct PendingTopic {
    topic: TopicRef,
    partitions: SmallVec<[PendingPartition; 1]>,
}

#[derive(Debug)]
enum PendingPartition {
    Refused(PartitionResponse),
    Submitted(Box<Submitted>),
}

#[derive(Debug)]
struct Submitted {
    index: i32,
    appended: Appended,
    timestamp_type: TimestampType,
    slot: Arc<PartitionSlot>,
    partition: Arc<Partition>,
}

/// Appends every partition's batch of a request that arrived at `arrived_at`, by the monotonic clock.
pub(crate) async fn begin(
    broker: &Broker,
    request: Request,
    version: i16,
    arrived_at: Duration,
) -> PendingProduce {
    let timeout_ms = request.timeout_ms;
    let mut deadline = answer_by(broker, timeout_ms, arrived_at);
    let wants_answer = request.acks != 0;
    let terms = Terms {
        version,
        acks_are_valid: matches!(request.acks, -1..=1),
        waits_for_all: request.acks == -1,
    };
    let asked = name_once(request.topics);
    let mut topics = SmallVec::with_capacity(asked.len());
    for TopicRequest { topic, partitions } in asked {
        let known = match &topic {
            TopicRef::Name(name) => broker.registry().by_name(name.as_str()),
            TopicRef::Id(id) => broker.registry().by_id(*id),
        };
        let mut pending = SmallVec::with_capacity(partitions.len());
        for asked in partitions {
            pending.push(if let Some(known) = &known {
                begin_partition(broker, known, &topic, asked, terms, &mut deadline).await
            } else {
                let error = error_code::unknown_topic(&topic);
                PendingPartition::Refused(PartitionResponse::failed(asked.index, error))
            });
        }
        topics.push(PendingTopic { topic, partitions: pending });
    }
    PendingProduce { wants_answer, timeout_ms, topics }
}

/// When a request that arrived at `arrived_at` must be answered.
fn answer_by(broker: &Broker, timeout_ms: i32, arrived_at: Duration) -> Deadline<'_> {
    let allowed = Duration::from_millis(u64::try_from(timeout_ms).unwrap_or(0));
    Deadline::new(broker.environment(), arrived_at + allowed.max(WAIT_MIN))
}

/// Each partition once, as Kafka: of several batches for it the last counts. A topic of no partitions
/// is not answered.
fn name_once(mut topics: SmallVec<[TopicRequest; 1]>) -> SmallVec<[TopicRequest; 1]> {
    if let [topic] = topics.as_slice()
        && topic.partitions.len() == 1
    {
        return topics;
    }
    if topics.len() > 1 {
        let mut merged: SmallVec<[TopicRequest; 1]> = SmallVec::with_capacity(topics.len());
        let mut place_of: HashMap<TopicRef, usize> = HashMap::with_capacity(topics.len());
        for topic in topics {
            match place_of.entry(topic.topic.clone()) {
                Entry::Occupied(place) => merged[*place.get()].partitions.extend(topic.partitions),
                Entry::Vacant(place) => {
                    place.insert(merged.len());
                    merged.push(topic);
                }
            }
        }
        topics = merged;
    }
    for topic in &mut topics {
        let mut left: HashMap<i32, usize> = HashMap::with_capacity(topic.partitions.len());
        for partition in &topic.partitions {
            *left.entry(partition.index).or_default() += 1;
        }
        if left.len() < topic.partitions.len() {
            topic.partitions.retain(|partition| {
                let left = left.entry(partition.index).or_default();
                *left = left.saturating_sub(1);
                *left == 0
            });
        }
    }
    topics.retain(|topic| !topic.partitions.is_empty());
    topics
}

async fn begin_partition(
    broker: &Broker,
    topic: &Arc<Topic>,
    named: &TopicRef,
    asked: PartitionRequest,
    terms: Terms,
    deadline: &mut Deadline<'_>,
) -> PendingPartition {
    let PartitionRequest { index, records } = asked;
    let refused = |error| PendingPartition::Refused(PartitionResponse::failed(index, error));
    let Some(slot) = topic.partition(index) else {
        return refused(ErrorCode::UNKNOWN_TOPIC_OR_PARTITION);
    };
    if topic.name().is_internal() {
        // Those are the broker's own to write. Kafka lets the client id `__admin_client` through, for
        // records that its coordinators then load; ours read rows, and would never see them.
        return refused(ErrorCode::INVALID_TOPIC_EXCEPTION);
    }
    let settings = topic.settings();
    let now = broker.environment().now();
    let records = records.unwrap_or_default();
    if terms.version < ZSTD_FROM && is_compressed_with(&records, Compression::Zstd) {
        return refused(ErrorCode::UNSUPPORTED_COMPRESSION_TYPE);
    }
    if !terms.acks_are_valid && only_batch(&records).is_ok() {
        return refused(ErrorCode::INVALID_REQUIRED_ACKS);
    }
    if terms.waits_for_all && settings.min_insync_replicas > 1 {
        // There is one replica, whatever the topic asks for.
        return refused(ErrorCode::NOT_ENOUGH_REPLICAS);
    }
    let batch = match check(records, &settings, now).await {
        Ok(batch) => batch,
        Err(invalid) => {
            Metrics::batch_refused(topic);
            let mut response = invalid_batch(index, &invalid);
            if is_told_log_start(&invalid) {
                let opened = deadline.wait(broker.partitions().open(topic, &slot)).await;
                response.log_start_offset = log_start_of(opened);
            }
            return PendingPartition::Refused(response);
        }
    };
    let (records, size) = (batch.records_count(), batch.size());
    match append(broker, topic, &slot, batch, deadline).await {
        Ok((partition, appended)) => {
            Metrics::appended(topic, records, size);
            if appended.should_save_state {
                broker.partitions().save_state_soon(&partition);
            }
            let timestamp_type = settings.produce.timestamp_type;
            let submitted = Submitted { index, appended, timestamp_type, slot, partition };
            PendingPartition::Submitted(Box::new(submitted))
        }
        Err(AppendError::TimedOut) => refused(ErrorCode::REQUEST_TIMED_OUT),
        Err(AppendError::Slot(SlotError::Deleted)) => refused(error_code::unknown_topic(named)),
        Err(AppendError::Slot(SlotError::Storage(error)) | AppendError::Storage(error)) => {
            PendingPartition::Refused(not_stored(index, &error))
        }
        Err(AppendError::Rejected { rejected, log_start }) => {
            let error = error_code::rejected(&rejected);
            PendingPartition::Refused(PartitionResponse {
                error_message: Some(text(rejected.to_string())),
                log_start_offset: log_start.get(),
                ..PartitionResponse::failed(index, error)
            })
        }
    }
}

/// Where the log begins tells a client whether it lost its place: what can't be opened tells it nothing.
fn log_start_of(opened: Option<Result<Arc<Partition>, SlotError>>) -> i64 {
    let partition = opened.and_then(Result::ok);
    partition.map_or(-1, |partition| partition.bounds().log_start.get())
}

/// What an engine could not do, in its words: a disk that is full should be told so.
fn not_stored(index: i32, error: &StorageError) -> PartitionResponse {
    PartitionResponse {
        error_message: Some(text(error.to_string())),
        ..PartitionResponse::failed(index, error_code::storage(error))
    }
}

/// Checks a batch against its topic's rules: here, unless that may take long.
async fn check(
    records: BytesMut,
    settings: &Arc<TopicSettings>,
    now: Timestamp,
) -> Result<ValidBatch, InvalidBatch> {
    let rules = &settings.produce;
    let looks_inside = rules.requires_keys || rules.validate_compressed;
    let is_costly = rules.compression != TargetCompression::Producer
        || looks_inside && !is_compressed_with(&records, Compression::None);
    if !is_costly || records.len() < COSTLY_BYTES_MIN {
        return validate(records, rules, now);
    }
    // Compressing a batch takes milliseconds, and this thread serves others.
    let settings = Arc::clone(settings);
    let checked = tokio::task::spawn_blocking(move || validate(records, &settings.produce, now));
    checked.await.expect("validation never panics, and is not given up while its connection lives")
}

fn is_compressed_with(records: &[u8], codec: Compression) -> bool {
    let batch = only_batch(records);
    batch.is_ok_and(|batch| batch.attributes().compression() == Some(codec))
}

/// Why an append did not happen after all tries.
enum AppendError {
    Slot(SlotError),
    Storage(StorageError),
    /// The client's time was up before the batch was submitted.
    TimedOut,
    Rejected {
        rejected: strandline_partition::Rejected,
        log_start: Offset,
    },
}

async fn append(
    broker: &Broker,
    topic: &Arc<Topic>,
    slot: &Arc<PartitionSlot>,
    mut batch: ValidBatch,
    deadline: &mut Deadline<'_>,
) -> Result<(Arc<Partition>, Appended), AppendError> {
    for _ in 0..TRIES_MAX {
        let opened = deadline.wait(broker.partitions().open(topic, slot)).await;
        let partition = opened.ok_or(AppendError::TimedOut)?.map_err(AppendError::Slot)?;
        // Read anew for each try: append times of a partition follow its offsets.
        match partition.append(batch, broker.cleaner().append_time()) {
            Ok(appended) => return Ok((partition, appended)),
            Err(AppendFailure::Rejected(rejected)) => {
                let log_start = partition.bounds().log_start;
                return Err(AppendError::Rejected { rejected, log_start });
            }
            Err(AppendFailure::Busy(again)) => {
                batch = again;
                deadline.wait(partition.log().ready()).await.ok_or(AppendError::TimedOut)?;
            }
            Err(AppendFailure::Storage(_)) if slot.is_deleted() => {
                return Err(AppendError::Slot(SlotError::Deleted));
            }
            // The log died under an earlier append: the next try opens it anew, and the client's
            // own retry finds it open.
            Err(AppendFailure::Storage(error)) => {
                if error.kind() == ErrorKind::Closed {
                    slot.close_dead(&partition);
                }
                return Err(AppendError::Storage(error));
            }
        }
    }
    let message = "append queue stayed full";
    Err(AppendError::Storage(StorageError::new(ErrorKind::Unavailable, message)))
}

/// Whether Kafka looks at the log before it refuses such a batch, and says where the log begins.
const fn is_told_log_start(invalid: &InvalidBatch) -> bool {
    match invalid {
        InvalidBatch::Header(_) | InvalidBatch::Content(_) | InvalidBatch::Records(_) => true,
        InvalidBatch::NoBatch
        | InvalidBatch::SeveralBatches
        | InvalidBatch::OldFormat { .. }
        | InvalidBatch::Corrupt(_)
        | InvalidBatch::TooLarge(_)
        | InvalidBatch::LargerThanSegment(_) => false,
    }
}

fn invalid_batch(index: i32, invalid: &InvalidBatch) -> PartitionResponse {
    let record_errors = match invalid {
        InvalidBatch::Records(rejected) => rejected.listed.as_slice(),
        InvalidBatch::NoBatch
        | InvalidBatch::SeveralBatches
        | InvalidBatch::OldFormat { .. }
        | InvalidBatch::Corrupt(_)
        | InvalidBatch::TooLarge(_)
        | InvalidBatch::LargerThanSegment(_)
        | InvalidBatch::Header(_)
        | InvalidBatch::Content(_) => &[],
    };
    let record_error = |record: &RejectedRecord| RecordError {
        batch_index: record.batch_index,
        message: Some(text(record.fault.to_string())),
    };
    PartitionResponse {
        record_errors: record_errors.iter().map(record_error).collect(),
        error_message: Some(text(invalid.to_string())),
        ..PartitionResponse::failed(index, error_code::invalid_batch(invalid))
    }
}

impl PendingProduce {
    /// Waits until everything that the answer reveals is durable, or the client's time is up.
    pub(crate) async fn finish(self, broker: &Broker, arrived_at: Duration) -> Response {
        let mut deadline = answer_by(broker, self.timeout_ms, arrived_at);
        let mut topics = SmallVec::with_capacity(self.topics.len());
        for PendingTopic { topic, partitions: pending } in self.topics {
            let mut partitions = SmallVec::with_capacity(pending.len());
            for partition in pending {
                partitions.push(match partition {
                    PendingPartition::Refused(response) => response,
                    PendingPartition::Submitted(submitted) => {
                        submitted.finish(broker, &topic, &mut deadline).await
                    }
                });
            }
            topics.push(TopicResponse { topic, partitions });
        }
        Response { topics, throttle_time_ms: 0, node_endpoints: Vec::new() }
    }

    /// Whether some partition refused its batch: with `acks=0` the connection is closed then, so
    /// that the client looks for what is wrong.
    pub(crate) fn has_refusal(&self) -> bool {
        let mut partitions = self.topics.iter().flat_map(|topic| &topic.partitions);
        partitions.any(|partition| matches!(partition, PendingPartition::Refused(_)))
    }

    /// The topics that were named, for logs.
    pub(crate) fn topic_names(&self) -> Vec<&str> {
        self.topics.iter().filter_map(|topic| name_of(&topic.topic)).collect()
    }
}

impl Submitted {
    async fn finish(
        self,
        broker: &Broker,
        named: &TopicRef,
        deadline: &mut Deadline<'_>,
    ) -> PartitionResponse {
        let Some(durable) = deadline.wait(self.appended.ticket).await else {
            return PartitionResponse::failed(self.index, ErrorCode::REQUEST_TIMED_OUT);
        };
        // Its name may be another topic's by now, in which nobody would find what was acknowledged.
        if self.slot.is_deleted() {
            return PartitionResponse::failed(self.index, error_code::unknown_topic(named));
        }
        if let Err(error) = durable {
            tracing::debug!(partition = %self.partition.id(), %error, "append failed");
            self.slot.close_dead(&self.partition);
            let current_leader = Some(Leader {
                id: broker.node_id().get(),
                epoch: self.partition.leader_epoch().get(),
            });
            let error = error_code::storage(&error);
            return PartitionResponse {
                current_leader,
                ..PartitionResponse::failed(self.index, error)
            };
        }
        let log_append_time_ms = match self.timestamp_type {
            // As Kafka: only a retry is told a time that producers chose.
            TimestampType::CreateTime => {
                self.appended.duplicate_of.map_or(-1, Timestamp::as_millis)
            }
            TimestampType::LogAppendTime => self.appended.at.as_millis(),
        };
        PartitionResponse {
            base_offset: self.appended.base_offset.get(),
            log_append_time_ms,
            log_start_offset: self.partition.bounds().log_start.get(),
            ..PartitionResponse::failed(self.index, ErrorCode::NONE)
        }
    }
}
