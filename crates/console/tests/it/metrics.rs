//! Metrics: both formats, the names, and what too many partitions do.

use strandline_console::{
    ApiStats, Durations, ErrorCount, FigureKind, ListenerStats, PartitionStats, RemovedStats,
    Scope, StorageFigure, StorageStats, TopicStats,
};
use strandline_model::{ByteCount, Offset, PartitionIndex};

use crate::{Answer, Running, check};

fn partition(index: u32) -> PartitionStats {
    PartitionStats {
        partition: PartitionIndex::new(index),
        is_open: index == 0,
        log_start: Offset::new(10),
        log_end: Offset::new(25),
        high_watermark: Offset::new(20),
        size: ByteCount::new(700),
        segments: 2,
        overdue: ByteCount::new(90),
    }
}

fn topic(name: &str, partitions: u32) -> TopicStats {
    TopicStats {
        topic: name.to_owned(),
        received_bytes: 1000,
        received_records: 15,
        sent_bytes: 500,
        rejected: vec![ErrorCount { error: "INVALID_RECORD", count: 3 }],
        removed: vec![RemovedStats { limit: "retention.ms", segments: 4, bytes: 2800 }],
        partitions: (0..partitions).map(partition).collect(),
    }
}

async fn busy() -> Running {
    let console = Running::start(Scope::Everything, 8).await;
    *console.told.ready.lock() = vec![check("disk", true, ""), check("recovery", false, "")];
    let mut durations = Durations { sum_seconds: 20.5, ..Durations::default() };
    durations.buckets[0] = 4;
    durations.buckets[2] = 1;
    durations.buckets[13] = 2;
    {
        let mut now = console.told.snapshot.lock();
        now.apis = vec![ApiStats {
            request: "Produce",
            answers: vec![
                ErrorCount { error: "NONE", count: 6 },
                ErrorCount { error: "INVALID_RECORD", count: 1 },
            ],
            codes: vec![
                ErrorCount { error: "NONE", count: 9 },
                ErrorCount { error: "INVALID_RECORD", count: 2 },
            ],
            duration: durations,
        }];
        now.listeners = vec![ListenerStats { listener: "PLAINTEXT".to_owned(), connections: 4 }];
        now.topics = vec![topic("orders", 2), topic("wei\"rd\\", 1)];
        now.storage = vec![StorageStats {
            engine: "file",
            used: ByteCount::kib(1),
            dropped: ByteCount::new(300),
            free: Some(ByteCount::gib(1)),
            fsync: Some(durations),
            errors: vec![("append", 1)],
            figures: vec![
                figure("lost", None, FigureKind::Count(3)),
                figure("cache_bytes", Some(("cache", "tail")), FigureKind::Level(7.5)),
                figure("commit_seconds", None, FigureKind::Durations(durations)),
                figure("cache_bytes", Some(("cache", "past")), FigureKind::Level(1.0)),
            ],
        }];
    }
    console
}

fn figure(
    name: &'static str,
    label: Option<(&'static str, &'static str)>,
    value: FigureKind,
) -> StorageFigure {
    StorageFigure { name, help: "A figure of the engine's own", label, value }
}

impl Answer {
    fn assert_has(&self, lines: &[&str]) {
        for line in lines {
            assert!(self.body.lines().any(|got| got == *line), "{line}\nin\n{}", self.body);
        }
    }
}

#[tokio::test]
async fn every_scraper_reads_the_plain_format() {
    let console = busy().await;
    let answer = console.get("/metrics").await;
    assert_eq!(answer.code, 200);
    assert!(answer.head.contains("content-type: text/plain; version=0.0.4"), "{}", answer.head);
    answer.assert_has(&[
        r#"strandline_build_info{version="1.2.3",revision="unknown"} 1"#,
        "strandline_ready 0",
        r#"strandline_health{check="disk"} 1"#,
        r#"strandline_health{check="recovery"} 0"#,
        "strandline_start_time_seconds 1700000000.5",
        "# TYPE strandline_requests_total counter",
        r#"strandline_requests_total{request="Produce",error="NONE"} 6"#,
        r#"strandline_requests_total{request="Produce",error="INVALID_RECORD"} 1"#,
        r#"strandline_request_duration_seconds_bucket{request="Produce",le="0.001"} 4"#,
        r#"strandline_request_duration_seconds_bucket{request="Produce",le="0.005"} 5"#,
        r#"strandline_request_duration_seconds_bucket{request="Produce",le="+Inf"} 7"#,
        r#"strandline_request_duration_seconds_count{request="Produce"} 7"#,
        r#"strandline_request_duration_seconds_sum{request="Produce"} 20.5"#,
        r#"strandline_connections{listener="PLAINTEXT"} 4"#,
        "strandline_group_offsets_committed_total 12",
        "strandline_group_offsets_removed_total 3",
        r#"strandline_topic_received_bytes_total{topic="orders"} 1000"#,
        r#"strandline_topic_received_records_total{topic="orders"} 15"#,
        r#"strandline_topic_sent_bytes_total{topic="orders"} 500"#,
        r#"strandline_topic_rejected_total{topic="orders",reason="INVALID_RECORD"} 3"#,
        r#"strandline_topic_size_bytes{topic="orders"} 1400"#,
        r#"strandline_topic_segments{topic="orders"} 4"#,
        r#"strandline_topic_size_bytes{topic="wei\"rd\\"} 700"#,
        r#"strandline_topic_retention_overdue_bytes{topic="orders"} 180"#,
        r#"strandline_topic_retention_removed_bytes_total{topic="orders",limit="retention.ms"} 2800"#,
        r#"strandline_topic_retention_removed_segments_total{topic="orders",limit="retention.ms"} 4"#,
        "strandline_retention_failures_total 2",
        "strandline_retention_last_check_timestamp_seconds 1700000000.5",
        "strandline_compaction_max_dirty_ratio 0.25",
        "strandline_compaction_failing_partitions 1.0",
        "strandline_compaction_last_pass_timestamp_seconds 1700000000.5",
        "strandline_compaction_read_bytes_total 1000",
        "strandline_compaction_written_bytes_total 400",
        "strandline_compaction_removed_records_total 30",
        "strandline_partition_labels 1",
        "strandline_open_partitions 2",
        r#"strandline_partition_log_start_offset{topic="orders",partition="1"} 10"#,
        r#"strandline_partition_log_end_offset{topic="orders",partition="1"} 25"#,
        r#"strandline_partition_high_watermark{topic="orders",partition="1"} 20"#,
        r#"strandline_storage_used_bytes{engine="file"} 1024"#,
        r#"strandline_storage_dropped_bytes{engine="file"} 300"#,
        r#"strandline_storage_last_check_timestamp_seconds{engine="file"} 1700000000.5"#,
        "strandline_storage_reconciliation_failures_total 4",
        r#"strandline_disk_free_bytes{engine="file"} 1073741824"#,
        r#"strandline_fsync_duration_seconds_count{engine="file"} 7"#,
        r#"strandline_storage_errors_total{engine="file",op="append"} 1"#,
        "kafka_brokers 1",
        r#"kafka_topic_partitions{topic="orders"} 2"#,
        r#"kafka_topic_partition_current_offset{topic="orders",partition="0"} 20"#,
        r#"kafka_topic_partition_leader{topic="orders",partition="0"} 1"#,
        r#"kafka_server_brokertopicmetrics_messagesin_total{topic="orders"} 15"#,
        r#"kafka_log_log_size{topic="orders",partition="0"} 700"#,
        "kafka_server_replicamanager_partitioncount 3",
        r#"kafka_network_requestmetrics_requests_total{request="Produce"} 7"#,
        r#"kafka_network_requestmetrics_errors_total{request="Produce",error="NONE"} 9"#,
        r#"kafka_network_requestmetrics_errors_total{request="Produce",error="INVALID_RECORD"} 2"#,
    ]);
    assert!(answer.body.contains("\nprocess_resident_memory_bytes "));
    assert!(answer.body.contains("\nprocess_cpu_seconds_total "));
    assert!(!answer.body.contains("# EOF") && !answer.body.contains("# UNIT"));
    console.stop().await;
}

#[tokio::test]
async fn what_an_engine_counts_stands_under_its_name_and_the_engines() {
    let console = busy().await;
    let answer = console.get("/metrics").await;
    answer.assert_has(&[
        r#"strandline_storage_lost_total{engine="file"} 3"#,
        r#"strandline_storage_cache_bytes{engine="file",cache="tail"} 7.5"#,
        r#"strandline_storage_cache_bytes{engine="file",cache="past"} 1.0"#,
        r#"strandline_storage_commit_seconds_count{engine="file"} 7"#,
    ]);
    let families = answer.body.matches("# TYPE strandline_storage_cache_bytes ").count();
    assert_eq!(families, 1, "{}", answer.body);
    console.stop().await;
}

#[tokio::test]
async fn rebalances_of_groups_are_counted_by_reason() {
    let console = busy().await;
    console.get("/metrics").await.assert_has(&[
        "# TYPE strandline_group_rebalances_total counter",
        r#"strandline_group_rebalances_total{reason="member_joined"} 5"#,
        r#"strandline_group_rebalances_total{reason="session_expired"} 0"#,
    ]);
    console.stop().await;
}

#[tokio::test]
async fn what_is_stored_beside_what_is_known_is_counted() {
    let console = busy().await;
    console.get("/metrics").await.assert_has(&[
        r#"strandline_storage_orphans{engine="file"} 2"#,
        r#"strandline_storage_quarantined_bytes{engine="file"} 700"#,
        r#"strandline_storage_missing_partitions{engine="file"} 1"#,
        r#"strandline_storage_damaged_partitions{engine="file"} 1"#,
        r#"strandline_storage_foreign_entries{engine="file"} 1"#,
    ]);
    console.stop().await;
}

#[tokio::test]
async fn openmetrics_is_there_for_who_asks() {
    let console = busy().await;
    let accept = "application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5";
    let request = format!(
        "GET /metrics HTTP/1.1\r\nhost: x\r\naccept: {accept}\r\nconnection: close\r\n\r\n"
    );
    let answer = console.send(&request).await;
    let content_type = "content-type: application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert!(answer.head.contains(content_type), "{}", answer.head);
    answer.assert_has(&[
        "# TYPE strandline_requests counter",
        r#"strandline_requests_total{request="Produce",error="NONE"} 6"#,
    ]);
    assert!(answer.body.ends_with("# EOF\n"));
    console.stop().await;
}

/// What a parser of the plain format insists on: each family once, in one block, type before samples.
#[tokio::test]
async fn families_are_whole_and_unique() {
    let console = busy().await;
    let answer = console.get("/metrics").await;
    let mut seen = Vec::new();
    for line in answer.body.lines() {
        if let Some(declared) = line.strip_prefix("# TYPE ") {
            let name = declared.split(' ').next().unwrap().to_owned();
            assert!(!seen.contains(&name), "{name} twice");
            seen.push(name);
        } else if !line.starts_with('#') {
            let family = seen.last().expect("a type before samples");
            let rest = line.strip_prefix(family.as_str()).unwrap_or_else(|| panic!("{line}"));
            let suffix = rest.split(['{', ' ']).next().unwrap();
            assert!(["", "_bucket", "_sum", "_count"].contains(&suffix), "{line} under {family}");
            assert!(line.rsplit(' ').next().unwrap().parse::<f64>().is_ok(), "{line}");
        }
    }
    assert!(seen.len() > 40, "{seen:?}");
    console.stop().await;
}

#[tokio::test]
async fn too_many_partitions_get_no_series_of_their_own() {
    let console = busy().await;
    console.told.snapshot.lock().topics = vec![topic("huge", 2001)];
    let answer = console.get("/metrics").await;
    answer.assert_has(&[
        "strandline_partition_labels 0",
        r#"strandline_topic_size_bytes{topic="huge"} 1400700"#,
        r#"kafka_topic_partitions{topic="huge"} 2001"#,
    ]);
    assert!(!answer.body.contains("partition=\""));
    console.told.snapshot.lock().topics = vec![topic("large", 2000)];
    let answer = console.get("/metrics").await;
    assert!(answer.body.contains(r#"partition="1999""#));
    console.stop().await;
}
