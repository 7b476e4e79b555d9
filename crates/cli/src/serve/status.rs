//! What HTTP tells of the broker: health while it starts, serves and stops, and what is counted.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use strandline_broker::{
    ApiMetrics, Broker, ClientStatus, CodeCounters, Counter, DeletionSum, Metrics, Rebalance,
    TopicRetention as FoundRetention, TopicStatus,
};
use strandline_console::{
    ApiStats, Changing, Check, Client, CompactionStats, Deletion, DeletionChange, DeletionRefused,
    DeletionStats, Durations, ErrorCount, FigureKind, FoundGroup, Group, LastRebalance,
    ListenerStats, PartitionRetention, PartitionStats, Reconciliation, RemovedStats, Segment,
    Snapshot, Status, StorageFigure, StorageStats, TopicRetention, TopicStats,
};
use strandline_model::{ByteCount, NodeId, Timestamp};
use strandline_storage::{Figure, FigureValue, Trouble};

use super::deletions;
use super::opening::Opening;
use super::reconciliation::reconciliation;

/// The broker as HTTP sees it. HTTP is served before the broker is ready, so that a long recovery
/// can be watched.
#[derive(Debug)]
pub(crate) struct BrokerStatus {
    node_id: NodeId,
    started_at: Timestamp,
    /// The listener's name.
    listener: String,
    opening: Arc<Opening>,
    broker: OnceLock<Arc<Broker>>,
    /// Whether connections are accepted.
    serving: AtomicBool,
    draining: AtomicBool,
}

impl BrokerStatus {
    /// A broker that begins to start.
    pub(crate) fn new(
        node_id: NodeId,
        started_at: Timestamp,
        listener: String,
        opening: Arc<Opening>,
    ) -> Self {
        Self {
            node_id,
            started_at,
            listener,
            opening,
            broker: OnceLock::new(),
            serving: AtomicBool::new(false),
            draining: AtomicBool::new(false),
        }
    }

    /// Recovery is done. Only the first call counts.
    pub(crate) fn recovered(&self, broker: Arc<Broker>) {
        let _ = self.broker.set(broker);
    }

    /// Clients are served.
    pub(crate) fn serving(&self) {
        self.serving.store(true, Ordering::Release);
    }

    /// The stop has begun.
    pub(crate) fn draining(&self) {
        self.draining.store(true, Ordering::Release);
    }
}

impl Status for BrokerStatus {
    fn liveness(&self) -> Vec<Check> {
        // Whoever asks gets this answer from the runtime whose life is in question.
        vec![Check { name: "runtime", ok: true, detail: "answers".to_owned() }]
    }

    fn readiness(&self) -> Vec<Check> {
        let check = |name, ok: bool, good: &str, bad: &str| Check {
            name,
            ok,
            detail: if ok { good } else { bad }.to_owned(),
        };
        let opening = format!("under way: {}", self.opening.told());
        let mut checks = vec![
            check("recovery", self.broker.get().is_some(), "done", &opening),
            check(
                "listeners",
                self.serving.load(Ordering::Acquire),
                "accepting connections",
                "not accepting connections yet",
            ),
            check(
                "draining",
                !self.draining.load(Ordering::Acquire),
                "no",
                "the broker is stopping",
            ),
        ];
        if let Some(broker) = self.broker.get() {
            let lacking: Vec<String> = broker
                .space()
                .into_iter()
                .filter(|(_, space)| space.is_full())
                .map(|(engine, space)| {
                    let (free, reserve) = (space.free.unwrap_or_default(), space.reserve);
                    format!(
                        "{engine}: records are refused, {free} bytes are free and {reserve} kept \
                         for deleting"
                    )
                })
                .collect();
            let ok = lacking.is_empty();
            let detail = if ok { "above its floor".to_owned() } else { lacking.join(", ") };
            checks.push(Check { name: "disk", ok, detail });
            checks.push(reached(&broker.troubles(), &broker.missing_engines()));
        }
        checks
    }

    fn snapshot(&self) -> Snapshot {
        let broker = self.broker.get();
        let connections = broker.map_or(0, |broker| {
            let metrics = broker.metrics();
            metrics.connections_opened.get().saturating_sub(metrics.connections_closed.get())
        });
        let counted = |counter: fn(&Metrics) -> &Counter| {
            broker.map_or(0, |broker| counter(broker.metrics()).get())
        };
        let sums = broker.map(|broker| broker.deletion_sums()).unwrap_or_default();
        Snapshot {
            version: env!("CARGO_PKG_VERSION"),
            revision: None,
            node_id: self.node_id,
            broker_count: 1,
            started_at: self.started_at,
            apis: broker.map(|broker| apis(broker)).unwrap_or_default(),
            listeners: vec![ListenerStats { listener: self.listener.clone(), connections }],
            clients_stranded: broker.map_or(0, |broker| broker.stranded_client_count() as u64),
            offsets_committed: counted(|metrics| &metrics.offsets_committed),
            offsets_removed: counted(|metrics| &metrics.offsets_removed),
            group_rebalances: broker
                .map(|broker| broker.metrics().group_rebalances.counts().collect())
                .unwrap_or_default(),
            retention_failures: counted(|metrics| &metrics.retention_failures),
            retention_checked_at: broker.and_then(|broker| broker.last_retention_pass()),
            compaction: broker.map(|broker| compaction(broker)).unwrap_or_default(),
            deletions: sums.by_state.iter().map(deletion_stats).collect(),
            deletion_oldest_seconds: sums.oldest.map(|age| age.as_secs_f64()),
            deletion_freed_bytes: counted(|metrics| &metrics.deletion_freed_bytes),
            deletion_failures: counted(|metrics| &metrics.deletion_failures),
            topics: broker.map_or_else(Vec::new, |broker| {
                broker.topics().into_iter().map(topic_stats).collect()
            }),
            storage: broker.map(|broker| storage(broker)).unwrap_or_default(),
            reconciliation_failures: counted(|metrics| &metrics.reconciliation_failures),
            reconciliation: self.reconciliation(),
        }
    }

    fn clients(&self) -> Vec<Client> {
        let clients = self.broker.get().map(|broker| broker.clients()).unwrap_or_default();
        clients.into_iter().map(client).collect()
    }

    fn group<'a>(&'a self, name: &'a str) -> FoundGroup<'a> {
        Box::pin(async move {
            let broker = self.broker.get().ok_or_else(|| "the broker is starting".to_owned())?;
            Ok(broker.group(name).await?.map(|found| Group {
                cluster_id: broker.cluster_id().to_owned(),
                group: name.to_owned(),
                state: found.state,
                generation: found.generation,
                last_rebalance: found.rebalance.map(last_rebalance),
            }))
        })
    }

    fn reconciliation(&self) -> Vec<Reconciliation> {
        self.broker.get().map(|broker| reconciliation(broker)).unwrap_or_default()
    }

    fn retention(
        &self,
        topic: &str,
        simulated: &[(String, String)],
    ) -> Result<Option<TopicRetention>, String> {
        let Some(broker) = self.broker.get() else { return Ok(None) };
        Ok(broker.retention(topic, simulated)?.map(topic_retention))
    }

    fn deletions(&self) -> Vec<Deletion> {
        self.broker.get().map(|broker| deletions::pending(broker)).unwrap_or_default()
    }

    fn change_deletion(&self, change: DeletionChange) -> Changing<'_> {
        Box::pin(async move {
            match self.broker.get() {
                Some(broker) => deletions::change(broker, change).await,
                None => Err(DeletionRefused::Unavailable("the broker is starting".to_owned())),
            }
        })
    }
}

/// Whether every engine does its work, and each that topics need is there.
fn reached(troubles: &[(String, Trouble)], missing: &BTreeMap<String, (usize, String)>) -> Check {
    let each = troubles.iter().map(|(engine, trouble)| {
        let (what, seconds) = (&trouble.what, trouble.lasting.as_secs());
        format!("{engine}: {what}; for {seconds} s")
    });
    let each: Vec<_> = each.chain(missing.iter().map(of_missing_engine)).collect();
    let ok = each.is_empty();
    let detail = if ok { "works".to_owned() } else { each.join(", ") };
    Check { name: "storage", ok, detail }
}

/// What is wrong, and what to do about it, when a broker lacks an engine that topics are kept in.
pub(super) fn of_missing_engine((engine, (count, topic)): (&String, &(usize, String))) -> String {
    let keys = match engine.as_str() {
        "postgres" => "set postgres.host and the keys that go with it",
        "file" => "let storage.default or meta.store be `file`, with the data.dir of before",
        _ => "start the broker with it",
    };
    format!("{engine}: not configured, {count} topics are kept there, such as {topic}; {keys}")
}

fn last_rebalance(why: Rebalance) -> LastRebalance {
    let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let member = why.member.as_ref();
    LastRebalance {
        reason: why.cause.name(),
        at: why.at,
        generation: why.generation,
        member_id: member.and_then(|member| text(&member.id)),
        instance_id: member.and_then(|member| member.instance.as_deref().map(str::to_owned)),
        client_id: member.and_then(|member| text(&member.client_id)),
        host: member.and_then(|member| text(member.client_host.trim_start_matches('/'))),
        client_reason: text(&why.client_reason),
    }
}

fn deletion_stats((state, sum): (&&'static str, &DeletionSum)) -> DeletionStats {
    DeletionStats { state, topics: sum.topics, bytes: sum.bytes }
}

fn compaction(broker: &Broker) -> CompactionStats {
    let (status, metrics) = (broker.compaction_status(), broker.metrics());
    CompactionStats {
        max_dirty_ratio: status.max_dirty_ratio,
        failing_partitions: status.failing_partitions as u64,
        last_pass_at: status.last_pass,
        passes: metrics.compaction_passes.get(),
        failures: metrics.compaction_failures.get(),
        read_bytes: metrics.compaction_read_bytes.get(),
        written_bytes: metrics.compaction_written_bytes.get(),
        removed_records: metrics.compaction_removed_records.get(),
    }
}

fn topic_retention(found: FoundRetention) -> TopicRetention {
    let partitions = found.partitions.into_iter().map(|partition| {
        let index = partition.index;
        let segments = partition.segments.into_iter();
        let segments = segments.map(|segment| Segment {
            partition: index.get(),
            name: segment.name,
            base_offset: segment.base_offset.get(),
            next_offset: segment.next_offset.get(),
            bytes: segment.bytes.get(),
            state: match (segment.limit, segment.is_open) {
                (Some(_), _) => "due",
                (None, true) => "open",
                (None, false) => match segment.is_clean {
                    Some(true) => "clean",
                    Some(false) => "dirty",
                    None => "sealed",
                },
            },
            max_timestamp: segment.max_timestamp,
            first_appended_at: segment.first_appended_at,
            last_appended_at: segment.last_appended_at,
            reason: segment.reason,
            limit: segment.limit,
            goes_at: segment.goes_at,
        });
        let (start, end) = (partition.log_start_offset, partition.log_end_offset);
        PartitionRetention::new(index, start, end, partition.estimate, segments.collect())
    });
    TopicRetention {
        topic: found.topic,
        now: found.now,
        checked_at: found.checked_at,
        next_check_at: found.next_check_at,
        check_interval_ms: found.check_interval_ms,
        cleanup_policy: match (found.deletes, found.compacts) {
            (true, false) => "delete",
            (true, true) => "compact,delete",
            (false, true) => "compact",
            (false, false) => "",
        },
        retention_ms: found.retention_ms,
        retention_bytes: found.retention_bytes.map(ByteCount::get),
        retention_bytes_floor: found.retention_bytes_floor,
        retention_records: found.retention_records,
        unreadable: found.unreadable,
        partitions: partitions.collect(),
    }
}

fn client(client: ClientStatus) -> Client {
    let (last_request, last_request_at) = client.last_request.unzip();
    Client {
        client_id: client.client_id,
        software_name: client.software_name,
        software_version: client.software_version,
        address: client.remote,
        reached: client.reached,
        told: client.told,
        connected_at: client.connected_at,
        requests: client.requests,
        last_request,
        last_request_at,
        connected: client.is_connected,
        stranded: client.is_stranded,
    }
}

/// What stands where an error code would: refused batches are counted without theirs.
const ANY: &str = "ANY";

fn apis(broker: &Broker) -> Vec<ApiStats> {
    let called = broker.metrics().apis().iter().filter(|(_, api)| api.requests() > 0);
    called
        .map(|(key, api)| ApiStats {
            request: key.name(),
            answers: error_counts(&api.answers),
            codes: error_counts(&api.codes),
            duration: durations(api),
        })
        .collect()
}

fn error_counts(counters: &CodeCounters) -> Vec<ErrorCount> {
    counters.counts().map(|(error, count)| ErrorCount { error, count }).collect()
}

fn durations(api: &ApiMetrics) -> Durations {
    let mut durations = Durations::default();
    for (count, counter) in durations.buckets.iter_mut().zip(&api.buckets) {
        *count = counter.get();
    }
    #[expect(clippy::cast_precision_loss, reason = "a sum of seconds needs no more than 52 bits")]
    let micros = api.micros.get() as f64;
    durations.sum_seconds = micros / 1e6;
    durations
}

fn topic_stats(topic: TopicStatus) -> TopicStats {
    let rejected = topic.metrics.rejected_batches.get();
    TopicStats {
        received_bytes: topic.metrics.received_bytes.get(),
        received_records: topic.metrics.received_records.get(),
        sent_bytes: topic.metrics.sent_bytes.get(),
        rejected: if rejected == 0 {
            Vec::new()
        } else {
            vec![ErrorCount { error: ANY, count: rejected }]
        },
        removed: topic
            .metrics
            .removed_by()
            .map(|(limit, removed)| RemovedStats {
                limit,
                segments: removed.segments.get(),
                bytes: removed.bytes.get(),
            })
            .filter(|removed| removed.segments > 0)
            .collect(),
        partitions: topic
            .partitions
            .iter()
            .map(|partition| PartitionStats {
                partition: partition.index,
                is_open: partition.is_open,
                log_start: partition.log_start_offset,
                log_end: partition.log_end_offset,
                high_watermark: partition.high_watermark,
                size: partition.size,
                segments: partition.segment_count as u64,
                overdue: partition.overdue,
            })
            .collect(),
        topic: topic.name,
    }
}

fn storage(broker: &Broker) -> Vec<StorageStats> {
    let space = broker.space();
    let mut figures = broker.figures();
    let known = |name: &str| strandline_model::config::StorageEngine::of_name(name);
    space
        .into_iter()
        .filter_map(|(name, space)| {
            let figures = figures.iter_mut().find(|(engine, _)| *engine == name);
            let figures = figures.map(|(_, figures)| std::mem::take(figures)).unwrap_or_default();
            Some(StorageStats {
                engine: known(&name)?.name(),
                used: space.used,
                dropped: space.dropped,
                free: space.free,
                fsync: None,
                errors: Vec::new(),
                figures: figures.into_iter().map(figure).collect(),
            })
        })
        .collect()
}

fn figure(figure: Figure) -> StorageFigure {
    let value = match figure.value {
        FigureValue::Count(count) => FigureKind::Count(count),
        FigureValue::Level(level) => FigureKind::Level(level),
        FigureValue::Times(times) => FigureKind::Durations(Durations {
            buckets: times.counts,
            sum_seconds: times.sum.as_secs_f64(),
        }),
    };
    StorageFigure { name: figure.name, help: figure.help, label: figure.label, value }
}

#[cfg(test)]
mod tests {
    use strandline_broker::BUCKET_BOUNDS_MICROS;
    use strandline_console::BUCKET_BOUNDS_SECONDS;

    use super::*;
    use crate::serve::plan::Storage;

    #[test]
    fn the_broker_counts_in_the_buckets_that_are_published() {
        let published = BUCKET_BOUNDS_SECONDS.map(std::time::Duration::from_secs_f64);
        assert_eq!(BUCKET_BOUNDS_MICROS.map(std::time::Duration::from_micros), published);
        assert_eq!(strandline_storage::TIMES_BOUNDS, published);
    }

    #[test]
    fn an_engine_in_trouble_is_told_with_its_reason_and_since_when() {
        let (none, one) = (BTreeMap::new(), ("file".to_owned(), (2, "orders".to_owned())));
        assert!(reached(&[], &none).ok);
        let missing = reached(&[], &BTreeMap::from([one]));
        assert!(!missing.ok);
        let told =
            "file: not configured, 2 topics are kept there, such as orders; let storage.default";
        assert!(missing.detail.starts_with(told), "{}", missing.detail);
        let what = "the database is not reached: connection refused".to_owned();
        let trouble = Trouble { lasting: std::time::Duration::from_secs(7), what };
        let check = reached(&[("postgres".to_owned(), trouble)], &none);
        assert!(!check.ok);
        let told = "postgres: the database is not reached: connection refused; for 7 s";
        assert_eq!((check.name, check.detail.as_str()), ("storage", told));
    }

    #[test]
    fn a_broker_is_ready_between_its_start_and_its_stop() {
        let failing = |status: &BrokerStatus| -> Vec<&str> {
            status.readiness().iter().filter(|check| !check.ok).map(|check| check.name).collect()
        };
        let opening = Arc::new(Opening::begin(&Storage::Memory));
        let (id, begun) = (NodeId::new(1), Timestamp::from_millis(0));
        let status = BrokerStatus::new(id, begun, "P".to_owned(), opening);
        assert_eq!(failing(&status), ["recovery", "listeners"]);
        let detail = status.readiness().swap_remove(0).detail;
        assert!(detail.starts_with("under way: reading topics and groups; since "), "{detail}");
        status.serving();
        status.draining();
        assert_eq!(failing(&status), ["recovery", "draining"]);
        assert!(status.snapshot().topics.is_empty());
    }
}
