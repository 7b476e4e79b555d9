//! The metrics under our own names.

use std::collections::BTreeSet;
use std::fmt;

use super::LABELLED_PARTITIONS_MAX;
use super::family::Families;
use crate::process::Process;
use crate::{
    Check, FigureKind, PartitionStats, Reconciliation, RemovedStats, Snapshot, TopicStats,
};

/// Writes everything that begins with `strandline_`.
pub(super) fn encode(to: &mut Families<'_>, now: &Snapshot, checks: &[Check]) -> fmt::Result {
    encode_broker(to, now, checks)?;
    encode_requests(to, now)?;
    encode_topics(to, now)?;
    encode_retention(to, now)?;
    encode_compaction(to, now)?;
    encode_deletions(to, now)?;
    encode_partitions(to, now)?;
    encode_storage(to, now)?;
    encode_reconciliation(to, now)
}

fn encode_broker(to: &mut Families<'_>, now: &Snapshot, checks: &[Check]) -> fmt::Result {
    let build = [("version", now.version), ("revision", now.revision.unwrap_or("unknown"))];
    to.gauges("strandline_build_info", "The build that runs", [(build, 1_u64)])?;
    let ready = checks.iter().all(|check| check.ok);
    to.gauge("strandline_ready", "1 when the broker takes work", Some(u64::from(ready)))?;
    let health = checks.iter().map(|check| ([("check", check.name)], u64::from(check.ok)));
    to.gauges("strandline_health", "1 for each readiness check that holds", health)?;
    #[expect(clippy::cast_precision_loss, reason = "milliseconds since 1970 fit an f64")]
    let started = now.started_at.as_millis() as f64 / 1000.0;
    to.gauge("strandline_start_time_seconds", "When the broker started, since 1970", Some(started))
}

fn encode_requests(to: &mut Families<'_>, now: &Snapshot) -> fmt::Result {
    let answers = now.apis.iter().flat_map(|api| {
        let labels = |error| [("request", api.request), ("error", error)];
        api.answers.iter().map(move |answers| (labels(answers.error), answers.count))
    });
    to.counters(
        "strandline_requests",
        "Requests answered, by the first error in the answer",
        answers,
    )?;
    let durations = now.apis.iter().map(|api| ([("request", api.request)], api.duration));
    let help = "From the whole request read to its answer ready";
    to.histograms("strandline_request_duration_seconds", help, durations)?;
    let connections = now
        .listeners
        .iter()
        .map(|listener| ([("listener", listener.listener.as_str())], listener.connections));
    to.gauges("strandline_connections", "Connections that are open", connections)?;
    let help = "Clients that ask where to connect and never arrive";
    to.gauge("strandline_clients_stranded", help, Some(now.clients_stranded))?;
    let help = "Positions that groups have committed";
    to.counter("strandline_group_offsets_committed", help, Some(now.offsets_committed))?;
    let help = "Positions of groups that are gone: deleted, expired, or with their topic";
    to.counter("strandline_group_offsets_removed", help, Some(now.offsets_removed))?;
    let rebalances =
        now.group_rebalances.iter().map(|(reason, count)| ([("reason", *reason)], *count));
    let help = "How often groups left a generation, by what happened";
    to.counters("strandline_group_rebalances", help, rebalances)
}

fn encode_topics(to: &mut Families<'_>, now: &Snapshot) -> fmt::Result {
    let of_each = |value: fn(&TopicStats) -> u64| {
        now.topics.iter().map(move |topic| ([("topic", topic.topic.as_str())], value(topic)))
    };
    let received = of_each(|topic| topic.received_bytes);
    to.counters("strandline_topic_received_bytes", "Bytes taken from producers", received)?;
    let received = of_each(|topic| topic.received_records);
    to.counters("strandline_topic_received_records", "Records taken from producers", received)?;
    let sent = of_each(|topic| topic.sent_bytes);
    to.counters("strandline_topic_sent_bytes", "Bytes given to consumers", sent)?;
    let rejected = now.topics.iter().flat_map(|topic| {
        let labels = |reason| [("topic", topic.topic.as_str()), ("reason", reason)];
        topic.rejected.iter().map(move |refused| (labels(refused.error), refused.count))
    });
    to.counters("strandline_topic_rejected", "Batches refused, by error code", rejected)?;
    let size = of_each(|topic| topic.partitions.iter().map(|each| each.size.get()).sum());
    to.gauges("strandline_topic_size_bytes", "Bytes of batches stored", size)?;
    let segments = of_each(|topic| topic.partitions.iter().map(|each| each.segments).sum());
    to.gauges("strandline_topic_segments", "Chunks that batches are stored in", segments)
}

fn encode_retention(to: &mut Families<'_>, now: &Snapshot) -> fmt::Result {
    let overdue = now.topics.iter().map(|topic| {
        let bytes = topic.partitions.iter().map(|each| each.overdue.get()).sum::<u64>();
        ([("topic", topic.topic.as_str())], bytes)
    });
    let help = "Bytes beyond a limit of retention that are still there";
    to.gauges("strandline_topic_retention_overdue_bytes", help, overdue)?;
    let removed = |value: fn(&RemovedStats) -> u64| {
        now.topics.iter().flat_map(move |topic| {
            let labels = |limit| [("topic", topic.topic.as_str()), ("limit", limit)];
            topic.removed.iter().map(move |removed| (labels(removed.limit), value(removed)))
        })
    };
    let help = "Bytes that retention removed, by limit";
    let bytes = removed(|removed| removed.bytes);
    to.counters("strandline_topic_retention_removed_bytes", help, bytes)?;
    let help = "Segments that retention removed, by limit";
    let segments = removed(|removed| removed.segments);
    to.counters("strandline_topic_retention_removed_segments", help, segments)?;
    let help = "Partitions of which retention could remove nothing";
    to.counter("strandline_retention_failures", help, Some(now.retention_failures))?;
    #[expect(clippy::cast_precision_loss, reason = "milliseconds since 1970 fit an f64")]
    let checked = now.retention_checked_at.map(|at| at.as_millis() as f64 / 1000.0);
    let help = "When retention last came to the end of a pass, since 1970";
    to.gauge("strandline_retention_last_check_timestamp_seconds", help, checked)
}

fn encode_compaction(to: &mut Families<'_>, now: &Snapshot) -> fmt::Result {
    let compaction = &now.compaction;
    let help = "The dirty part of the dirtiest compacted partition, from 0 to 1";
    to.gauge("strandline_compaction_max_dirty_ratio", help, Some(compaction.max_dirty_ratio))?;
    #[expect(clippy::cast_precision_loss, reason = "a count of partitions fits an f64")]
    let failing = compaction.failing_partitions as f64;
    let help = "Partitions whose last pass of compaction failed";
    to.gauge("strandline_compaction_failing_partitions", help, Some(failing))?;
    #[expect(clippy::cast_precision_loss, reason = "milliseconds since 1970 fit an f64")]
    let last = compaction.last_pass_at.map(|at| at.as_millis() as f64 / 1000.0);
    let help = "When a pass of compaction last came to its end, since 1970";
    to.gauge("strandline_compaction_last_pass_timestamp_seconds", help, last)?;
    let help = "Passes of compaction over a partition";
    to.counter("strandline_compaction_passes", help, Some(compaction.passes))?;
    let help = "Passes of compaction that failed, each tried again";
    to.counter("strandline_compaction_failures", help, Some(compaction.failures))?;
    let help = "Bytes of the segments that compaction looked at";
    to.counter("strandline_compaction_read_bytes", help, Some(compaction.read_bytes))?;
    let help = "Bytes of the segments that it wrote in the place of others";
    to.counter("strandline_compaction_written_bytes", help, Some(compaction.written_bytes))?;
    let help = "Records that it removed";
    to.counter("strandline_compaction_removed_records", help, Some(compaction.removed_records))
}

fn encode_deletions(to: &mut Families<'_>, now: &Snapshot) -> fmt::Result {
    let labels = |state| [("kind", "topic"), ("state", state)];
    let items = now.deletions.iter().map(|sum| (labels(sum.state), sum.topics));
    let help = "Deleted topics whose bytes are not all gone";
    to.gauges("strandline_deletion_pending_items", help, items)?;
    let bytes = now.deletions.iter().map(|sum| (labels(sum.state), sum.bytes));
    to.gauges("strandline_deletion_pending_bytes", "Bytes of deleted topics", bytes)?;
    let help = "For how long the oldest of them has been deleted";
    let oldest = now.deletion_oldest_seconds.unwrap_or(0.0);
    to.gauge("strandline_deletion_oldest_pending_seconds", help, Some(oldest))?;
    let help = "Bytes of deleted topics that were freed";
    to.counter("strandline_deletion_freed_bytes", help, Some(now.deletion_freed_bytes))?;
    let help = "Steps of deletions that failed, each tried again";
    to.counter("strandline_deletion_failures", help, Some(now.deletion_failures))
}

fn encode_partitions(to: &mut Families<'_>, now: &Snapshot) -> fmt::Result {
    let labelled = now.has_labelled_partitions();
    let help = "1 when each partition has series of its own, 0 when there are too many";
    to.gauge("strandline_partition_labels", help, Some(u64::from(labelled)))?;
    let open = now.topics.iter().flat_map(|topic| &topic.partitions).filter(|each| each.is_open);
    let help = "Partitions whose log is open; the others are opened when they are used";
    to.gauge("strandline_open_partitions", help, Some(open.count() as u64))?;
    let of_each = |value: fn(&PartitionStats) -> i64| {
        now.labelled_partitions().map(move |(topic, each)| {
            (
                [("topic", topic.topic.clone()), ("partition", each.partition.to_string())],
                value(each),
            )
        })
    };
    let start = of_each(|each| each.log_start.get());
    to.gauges("strandline_partition_log_start_offset", "The first offset to read", start)?;
    let end = of_each(|each| each.log_end.get());
    to.gauges("strandline_partition_log_end_offset", "The next offset to assign", end)?;
    let durable = of_each(|each| each.high_watermark.get());
    let help = "The first offset that is not durable yet";
    to.gauges("strandline_partition_high_watermark", help, durable)
}

fn encode_storage(to: &mut Families<'_>, now: &Snapshot) -> fmt::Result {
    let used = now.storage.iter().map(|store| ([("engine", store.engine)], store.used.get()));
    to.gauges("strandline_storage_used_bytes", "Bytes that the engine occupies", used)?;
    let dropped = now.storage.iter().map(|store| ([("engine", store.engine)], store.dropped.get()));
    let help = "Bytes of dropped segments that are still there";
    to.gauges("strandline_storage_dropped_bytes", help, dropped)?;
    let free = now.storage.iter().filter_map(|store| Some((store.engine, store.free?.get())));
    let free = free.map(|(engine, bytes)| ([("engine", engine)], bytes));
    to.gauges("strandline_disk_free_bytes", "Bytes that may still be written", free)?;
    let syncs = now.storage.iter().filter_map(|store| Some((store.engine, store.fsync?)));
    let syncs = syncs.map(|(engine, durations)| ([("engine", engine)], durations));
    to.histograms("strandline_fsync_duration_seconds", "Syncs of the journal", syncs)?;
    let errors = now.storage.iter().flat_map(|store| {
        let labels = |op| [("engine", store.engine), ("op", op)];
        store.errors.iter().map(move |&(op, count)| (labels(op), count))
    });
    to.counters("strandline_storage_errors", "Failures of the storage engine", errors)?;
    encode_figures(to, now)
}

/// What engines count and measure by themselves, each name once.
fn encode_figures(to: &mut Families<'_>, now: &Snapshot) -> fmt::Result {
    let all =
        || now.storage.iter().flat_map(|store| store.figures.iter().map(|one| (store.engine, one)));
    let mut written = BTreeSet::new();
    for (_, first) in all().filter(|(_, figure)| written.insert(figure.name)) {
        let (name, help) = (format!("strandline_storage_{}", first.name), first.help);
        let of_name = || {
            all().filter(|(_, figure)| figure.name == first.name).map(|(engine, figure)| {
                let engine = std::iter::once(("engine", engine));
                (engine.chain(figure.label).collect::<Vec<_>>(), figure.value)
            })
        };
        let counts = of_name().filter_map(|(labels, value)| match value {
            FigureKind::Count(count) => Some((labels, count)),
            FigureKind::Level(_) | FigureKind::Durations(_) => None,
        });
        to.counters(&name, help, counts)?;
        let levels = of_name().filter_map(|(labels, value)| match value {
            FigureKind::Level(level) => Some((labels, level)),
            FigureKind::Count(_) | FigureKind::Durations(_) => None,
        });
        to.gauges(&name, help, levels)?;
        let durations = of_name().filter_map(|(labels, value)| match value {
            FigureKind::Durations(durations) => Some((labels, durations)),
            FigureKind::Count(_) | FigureKind::Level(_) => None,
        });
        to.histograms(&name, help, durations)?;
    }
    Ok(())
}

fn encode_reconciliation(to: &mut Families<'_>, now: &Snapshot) -> fmt::Result {
    let of_each = |value: fn(&Reconciliation) -> u64| {
        now.reconciliation.iter().map(move |one| ([("engine", one.engine.as_str())], value(one)))
    };
    let orphans = of_each(|one| one.strangers.len() as u64);
    to.gauges("strandline_storage_orphans", "Logs that no topic knows", orphans)?;
    let help = "Names among the logs that are no part of any, and are left alone";
    let foreign = of_each(|one| one.foreign.len() as u64);
    to.gauges("strandline_storage_foreign_entries", help, foreign)?;
    let help = "Bytes in quarantine, that no topic knows";
    let quarantined = of_each(Reconciliation::quarantined_bytes);
    to.gauges("strandline_storage_quarantined_bytes", help, quarantined)?;
    let help = "Partitions that have lost data and are served to nobody";
    let missing = of_each(|one| one.missing.len() as u64);
    to.gauges("strandline_storage_missing_partitions", help, missing)?;
    let help = "Partitions of which a part is gone or can't be read, and the rest is served";
    let damaged = of_each(|one| one.damaged.len() as u64);
    to.gauges("strandline_storage_damaged_partitions", help, damaged)?;
    let help = "Partitions whose files can't be looked at";
    let unreadable = of_each(|one| one.unreadable.len() as u64);
    to.gauges("strandline_storage_unreadable_partitions", help, unreadable)?;
    #[expect(clippy::cast_precision_loss, reason = "milliseconds since 1970 fit an f64")]
    let checked = now
        .reconciliation
        .iter()
        .map(|one| ([("engine", one.engine.as_str())], one.checked_at.as_millis() as f64 / 1000.0));
    let help = "When storage was last compared with metadata, since 1970";
    to.gauges("strandline_storage_last_check_timestamp_seconds", help, checked)?;
    let help = "Failures to compare storage with metadata, or to see to what was found";
    to.counter(
        "strandline_storage_reconciliation_failures",
        help,
        Some(now.reconciliation_failures),
    )
}

/// Writes what Prometheus' own libraries write of a process.
pub(super) fn encode_process(to: &mut Families<'_>, process: &Process) -> fmt::Result {
    to.counter("process_cpu_seconds", "User and system time", process.cpu_seconds)?;
    to.gauge("process_resident_memory_bytes", "Memory in RAM", process.resident_bytes)?;
    to.gauge("process_virtual_memory_bytes", "Memory mapped", process.virtual_bytes)?;
    to.gauge("process_threads", "Threads", process.threads)?;
    to.gauge("process_open_fds", "Open descriptors", process.open_fds)?;
    to.gauge("process_max_fds", "Descriptors that may be open", process.max_fds)
}

impl Snapshot {
    fn has_labelled_partitions(&self) -> bool {
        self.partition_count() <= LABELLED_PARTITIONS_MAX
    }

    pub(super) fn partition_count(&self) -> usize {
        self.topics.iter().map(|topic| topic.partitions.len()).sum()
    }

    /// Every partition with its topic, or none when there are too many.
    pub(super) fn labelled_partitions(
        &self,
    ) -> impl Iterator<Item = (&TopicStats, &PartitionStats)> + Clone {
        let topics = if self.has_labelled_partitions() { self.topics.as_slice() } else { &[] };
        topics.iter().flat_map(|topic| topic.partitions.iter().map(move |each| (topic, each)))
    }
}
