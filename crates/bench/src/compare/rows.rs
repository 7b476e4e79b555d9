//! The rows about the upkeep of logs: retention, deletion and compaction beside producers; and the
//! rows that Apache Kafka runs side by side, when it takes part.

use super::suite::{STRANDLINE, side};
use super::workload::{Bound, Check, Fate, Kind, Many, Metric, Pass, Shape, Side, Workload};
use crate::contender::{Contender, Durability};

const MANY: Many = Many { connections: 10, partitions: 10 };

const fn ours(label: &'static str, shape: Shape) -> Side {
    side(label, Durability::Disk, shape)
}

const fn check(
    kind: Kind,
    metric: Metric,
    of: &'static str,
    against: Option<&'static str>,
    bound: Bound,
) -> Check {
    Check { kind, metric, of, against, bound }
}

const fn note(metric: Metric, of: &'static str, against: Option<&'static str>) -> Check {
    check(Kind::Note, metric, of, against, Bound::Any)
}

/// Retention, deletion and compaction.
pub(super) fn upkeep() -> [Workload; 3] {
    let p99 = |of| check(Kind::Aim, Metric::P99Micros, of, Some("quiet"), Bound::AtMost(2.0));
    [
        Workload {
            name: "retention",
            what: "10 connections, one record a request, on disk before the answer, quiet and while one pass removes 10 000 segments, until their files are gone",
            sides: vec![
                ours("quiet", Shape::Retained(MANY, 0)),
                ours("removing", Shape::Retained(MANY, 10_000)),
            ],
            checks: vec![
                p99("removing"),
                note(Metric::WorstMicros, "removing", Some("quiet")),
                note(Metric::RecordsPerSecond, "removing", Some("quiet")),
                note(Metric::PassMillis, "removing", None),
            ],
            rounds_max: 3,
        },
        Workload {
            name: "deletion",
            what: "10 connections, one record a request, on disk before the answer, quiet and while 4 GiB are deleted",
            sides: vec![
                ours("quiet", Shape::Removal(MANY, Fate::Stays)),
                ours("deleting", Shape::Removal(MANY, Fate::Goes)),
            ],
            checks: vec![
                check(
                    Kind::Bar,
                    Metric::WorstMicros,
                    "deleting",
                    Some("quiet"),
                    Bound::AtMost(3.0),
                ),
                note(Metric::P99Micros, "deleting", Some("quiet")),
                note(Metric::RemovedMillis, "deleting", None),
            ],
            rounds_max: 3,
        },
        Workload {
            name: "compaction",
            what: "one pass over 1 GiB of 1 KiB records, of which five in six are superseded: alone, and beside 10 connections, one record a request, on disk before the answer; these quiet, too",
            sides: vec![
                ours("quiet", Shape::Compaction(MANY, Pass::None)),
                ours("alone", Shape::Compaction(MANY, Pass::Alone)),
                ours("beside", Shape::Compaction(MANY, Pass::Beside)),
            ],
            checks: vec![
                note(Metric::GigabytesPerSecond, "alone", None),
                note(Metric::CpuSecondsPerGigabyte, "alone", None),
                p99("beside"),
                note(Metric::WorstMicros, "beside", Some("quiet")),
                note(Metric::RecordsPerSecond, "beside", Some("quiet")),
                note(Metric::PassMillis, "beside", None),
            ],
            rounds_max: 3,
        },
    ]
}

/// How the sides of a workload compare with Kafka's; `None` where Kafka has no sides of its own.
fn against_kafka(workload: &Workload) -> Option<Vec<Check>> {
    let checks = match workload.name {
        "retention" => vec![
            note(Metric::P99Micros, "removing", Some("kafka removing")),
            note(Metric::PassMillis, "removing", Some("kafka removing")),
        ],
        "deletion" => vec![
            note(Metric::WorstMicros, "deleting", Some("kafka deleting")),
            note(Metric::RemovedMillis, "deleting", Some("kafka deleting")),
        ],
        "compaction" => vec![
            check(
                Kind::Aim,
                Metric::GigabytesPerSecond,
                "alone",
                Some("kafka alone"),
                Bound::AtLeast(1.0),
            ),
            check(
                Kind::Aim,
                Metric::CpuSecondsPerGigabyte,
                "alone",
                Some("kafka alone"),
                Bound::AtMost(1.0),
            ),
            note(Metric::P99Micros, "beside", Some("kafka beside")),
            note(Metric::PassMillis, "beside", Some("kafka beside")),
        ],
        "written-partitions" => vec![note(Metric::RestartMillis, STRANDLINE, Some("kafka"))],
        _ => return None,
    };
    Some(checks)
}

/// What a side is called when Kafka runs it.
fn kafka(label: &str) -> &'static str {
    match label {
        STRANDLINE => "kafka",
        "quiet" => "kafka quiet",
        "removing" => "kafka removing",
        "deleting" => "kafka deleting",
        "alone" => "kafka alone",
        "beside" => "kafka beside",
        _ => unreachable!("rows that Kafka runs have these sides"),
    }
}

/// Apache Kafka in a workload whose sides are all Strandline's: the same sides and figures, for the
/// reader, and how the two compare.
pub(super) fn add_kafka(workload: &mut Workload) {
    let Some(compared) = against_kafka(workload) else { return };
    let theirs =
        |side: &Side| Side { label: kafka(side.label), contender: Contender::Kafka, ..*side };
    workload.sides.extend(workload.sides.iter().map(theirs).collect::<Vec<_>>());
    let of_theirs = |check: &Check| note(check.metric, kafka(check.of), check.against.map(kafka));
    workload.checks.extend(workload.checks.iter().map(of_theirs).collect::<Vec<_>>());
    workload.checks.extend(compared);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::suite;
    use super::*;

    #[test]
    fn kafka_runs_the_same_sides_and_every_check_names_one_of_them() {
        let mut with_kafka = 0;
        for mut workload in suite::all() {
            let before = workload.sides.len();
            add_kafka(&mut workload);
            with_kafka += usize::from(workload.sides.len() > before);
            let labels: BTreeSet<_> = workload.sides.iter().map(|side| side.label).collect();
            assert_eq!(labels.len(), workload.sides.len(), "labels of {}", workload.name);
            for check in &workload.checks {
                assert!(labels.contains(check.of), "{}: {}", workload.name, check.of);
                let against = check.against.unwrap_or(check.of);
                assert!(labels.contains(against), "{}: {against}", workload.name);
            }
        }
        assert_eq!(with_kafka, 4);
    }
}
