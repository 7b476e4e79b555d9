//! The suite: every workload with the bars and aims of the project.

use super::workload::{
    Bound, Check, Crowd, Kind, Lands, Many, Metric, Shape, Side, Volume, Workload,
};
use super::{database, rows};
use crate::contender::{Contender, Durability};

const NULL: &str = "null";
const JOURNAL: &str = "journal";
pub(super) const STRANDLINE: &str = "strandline";

const fn volume(value_bytes: usize, records: u64, partitions: usize) -> Volume {
    Volume { value_bytes, records, partitions }
}

pub(super) const fn side(label: &'static str, durability: Durability, shape: Shape) -> Side {
    let contender = match label.as_bytes() {
        b"null" => Contender::Null,
        b"journal" => Contender::Journal,
        b"pgbench" | b"copy" => Contender::Postgres,
        _ => Contender::Strandline,
    };
    Side { label, contender, durability, shape }
}

fn ratio(kind: Kind, metric: Metric, against: &'static str, bound: Bound) -> Check {
    Check { kind, metric, of: STRANDLINE, against: Some(against), bound }
}

fn alone(kind: Kind, metric: Metric, bound: Bound) -> Check {
    Check { kind, metric, of: STRANDLINE, against: None, bound }
}

/// Strandline beside a reference under one load.
fn pair(
    name: &'static str,
    what: &'static str,
    reference: &'static str,
    durability: Durability,
    shape: Shape,
    checks: Vec<Check>,
) -> Workload {
    let sides = vec![side(reference, durability, shape), side(STRANDLINE, durability, shape)];
    Workload { name, what, sides, checks, rounds_max: usize::MAX }
}

/// All workloads in the order of the report; the ones that need librdkafka only when it is there.
pub fn all() -> Vec<Workload> {
    let mut all = vec![noise()];
    all.extend(produce());
    all.extend(unbatched());
    all.extend(consume());
    all.extend(footprint());
    all.extend(rows::upkeep());
    all.extend(estates());
    all.extend(groups());
    all.extend(database::rows());
    all.retain(|workload| {
        cfg!(feature = "librdkafka")
            || workload
                .sides
                .iter()
                .all(|side| !matches!(side.shape, Shape::Produce(_) | Shape::Consume(_)))
    });
    all
}

fn noise() -> Workload {
    let shape = Shape::Batches(volume(100, 4_000_000, 1));
    let of =
        |label| Side { label, contender: Contender::Null, durability: Durability::Disk, shape };
    let check = |metric| Check {
        kind: Kind::Note,
        metric,
        of: "a",
        against: Some("a again"),
        bound: Bound::Any,
    };
    Workload {
        name: "noise",
        what: "the null broker against itself: what a ratio of equals looks like in this sitting",
        sides: vec![of("a"), of("a again")],
        checks: vec![check(Metric::RecordsPerSecond), check(Metric::CpuNanosPerRecord)],
        rounds_max: usize::MAX,
    }
}

fn produce() -> Vec<Workload> {
    use Durability::{Disk, PageCache};
    use Metric::{CpuNanosPerRecord, RecordsPerSecond};
    let rate = |kind, least| ratio(kind, RecordsPerSecond, NULL, Bound::AtLeast(least));
    let cpu_ratio = |kind, most| ratio(kind, CpuNanosPerRecord, NULL, Bound::AtMost(most));
    let cpu = |kind, most| alone(kind, CpuNanosPerRecord, Bound::AtMost(most));
    let small = volume(100, 2_000_000, 1);
    let middle = volume(1024, 400_000, 1);
    let large = volume(100 * 1024, 6_000, 1);
    vec![
        pair(
            "produce-100b",
            "one librdkafka producer, 100 B, acks=all, on disk before the answer",
            NULL,
            Disk,
            Shape::Produce(small),
            vec![rate(Kind::Bar, 0.8), cpu_ratio(Kind::Bar, 1.6), cpu(Kind::Aim, 130.0)],
        ),
        pair(
            "produce-1k",
            "the same, 1 KiB",
            NULL,
            Disk,
            Shape::Produce(middle),
            vec![rate(Kind::Bar, 0.8), cpu_ratio(Kind::Note, f64::INFINITY)],
        ),
        pair(
            "produce-100k",
            "the same, 100 KiB",
            NULL,
            Disk,
            Shape::Produce(large),
            vec![rate(Kind::Note, 0.0), cpu_ratio(Kind::Note, f64::INFINITY)],
        ),
        pair(
            "produce-100b-cache",
            "100 B into the page cache",
            NULL,
            PageCache,
            Shape::Produce(small),
            vec![rate(Kind::Note, 0.0), cpu_ratio(Kind::Note, f64::INFINITY)],
        ),
        pair(
            "produce-1k-cache",
            "1 KiB into the page cache",
            NULL,
            PageCache,
            Shape::Produce(middle),
            vec![rate(Kind::Note, 0.0), cpu_ratio(Kind::Note, f64::INFINITY)],
        ),
        pair(
            "produce-100b-100p",
            "100 B over 100 partitions in turn, on disk before the answer",
            NULL,
            Disk,
            Shape::Produce(volume(100, 1_000_000, 100)),
            vec![rate(Kind::Note, 0.0), cpu_ratio(Kind::Note, f64::INFINITY)],
        ),
        pair(
            "batches-100b",
            "prepared 1 MB batches of 100 B records as raw frames, on disk before the answer",
            NULL,
            Disk,
            Shape::Batches(volume(100, 4_000_000, 1)),
            vec![rate(Kind::Note, 0.0), cpu_ratio(Kind::Note, f64::INFINITY)],
        ),
        sustained(),
    ]
}

fn sustained() -> Workload {
    let shape = Shape::Batches(volume(1024, 6 * 1024 * 1024, 1));
    Workload {
        name: "sustained",
        what: "6 GiB of 1 KiB records, on disk before the answer",
        sides: vec![side(STRANDLINE, Durability::Disk, shape)],
        checks: vec![
            alone(Kind::Aim, Metric::GigabytesPerSecond, Bound::AtLeast(0.8)),
            alone(Kind::Aim, Metric::PeakMib, Bound::AtMost(2048.0)),
        ],
        rounds_max: 2,
    }
}

fn unbatched() -> Vec<Workload> {
    use Durability::Disk;
    let shape = |connections| Shape::Unbatched(Many { connections, partitions: 64 });
    let rate = |kind, least| ratio(kind, Metric::RecordsPerSecond, JOURNAL, Bound::AtLeast(least));
    let p99 = ratio(Kind::Note, Metric::P99Micros, JOURNAL, Bound::Any);
    let one = Shape::Unbatched(Many { connections: 100, partitions: 1 });
    let hundred = Shape::Unbatched(Many { connections: 100, partitions: 100 });
    vec![
        pair(
            "unbatched-1",
            "one record a request, 1 connection, on disk before the answer",
            JOURNAL,
            Disk,
            shape(1),
            vec![rate(Kind::Note, 0.0), p99],
        ),
        pair(
            "unbatched-100",
            "the same, 100 connections",
            JOURNAL,
            Disk,
            shape(100),
            vec![
                rate(Kind::Bar, 0.5),
                p99,
                alone(Kind::Aim, Metric::CpuNanosPerRecord, Bound::AtMost(10_000.0)),
            ],
        ),
        pair(
            "unbatched-1000",
            "the same, 1000 connections",
            JOURNAL,
            Disk,
            shape(1000),
            vec![rate(Kind::Note, 0.0), p99],
        ),
        Workload {
            name: "partitions",
            what: "100 connections to 1 partition and to 100, on disk before the answer",
            sides: vec![side("one", Disk, one), side("hundred", Disk, hundred)],
            checks: vec![Check {
                kind: Kind::Aim,
                metric: Metric::RecordsPerSecond,
                of: "hundred",
                against: Some("one"),
                bound: Bound::AtLeast(1.0 / 1.5),
            }],
            rounds_max: usize::MAX,
        },
    ]
}

fn consume() -> Vec<Workload> {
    use Durability::Disk;
    let rate = |kind, least| ratio(kind, Metric::GigabytesPerSecond, NULL, Bound::AtLeast(least));
    let cpu = ratio(Kind::Note, Metric::CpuNanosPerRecord, NULL, Bound::Any);
    // Below what a broker with a bounded page cache keeps of a log: colder reads are another workload.
    let middle = volume(1024, 300_000, 1);
    vec![
        pair(
            "consume-1k",
            "one librdkafka consumer reads 1 KiB records from the page cache",
            NULL,
            Disk,
            Shape::Consume(middle),
            vec![rate(Kind::Bar, 0.8), cpu],
        ),
        pair(
            "consume-100b",
            "the same, 100 B",
            NULL,
            Disk,
            Shape::Consume(volume(100, 2_000_000, 1)),
            vec![rate(Kind::Note, 0.0), cpu],
        ),
        pair(
            "fetch-1k",
            "a raw consumer reads 1 KiB records from the page cache, 8 MiB a request",
            NULL,
            Disk,
            Shape::Fetch(middle),
            vec![rate(Kind::Bar, 0.8), cpu],
        ),
    ]
}

fn footprint() -> Vec<Workload> {
    use Durability::Disk;
    let start = side(STRANDLINE, Disk, Shape::Start);
    let idle = Shape::Idle { connections: 10_000 };
    let many = Many { connections: 10, partitions: 10 };
    vec![
        Workload {
            name: "start",
            what: "an empty folder, from the start of the process to its first answer; then idle",
            sides: vec![start],
            checks: vec![
                alone(Kind::Bar, Metric::ReadyMillis, Bound::AtMost(50.0)),
                alone(Kind::Bar, Metric::ResidentMib, Bound::AtMost(20.0)),
            ],
            rounds_max: usize::MAX,
        },
        Workload {
            name: "idle",
            what: "10 000 connections that do nothing after one request",
            sides: vec![side(STRANDLINE, Disk, idle)],
            checks: vec![alone(Kind::Aim, Metric::KibPerConnection, Bound::AtMost(16.0))],
            rounds_max: 2,
        },
        Workload {
            name: "hostile",
            what: "10 honest connections, one record a request, quiet and beside hostile peers",
            sides: vec![
                side("quiet", Disk, Shape::Unbatched(many)),
                side("besieged", Disk, Shape::Besieged(many)),
            ],
            checks: vec![
                Check {
                    kind: Kind::Bar,
                    metric: Metric::P99Micros,
                    of: "besieged",
                    against: Some("quiet"),
                    bound: Bound::AtMost(3.0),
                },
                Check {
                    kind: Kind::Bar,
                    metric: Metric::ResidentPeakMib,
                    of: "besieged",
                    against: None,
                    bound: Bound::AtMost(256.0),
                },
            ],
            rounds_max: usize::MAX,
        },
    ]
}

fn groups() -> Vec<Workload> {
    let crowd = |label, groups, (hanging, crowd), commits| {
        let shape = Shape::Groups(Crowd { groups, members: 3, hanging, crowd, commits });
        side(label, Durability::Disk, shape)
    };
    vec![
        Workload {
            name: "groups",
            what: "1 000 groups of 3 members that heartbeat and commit at once, on disk before the answer",
            sides: vec![crowd(STRANDLINE, 1_000, (0, 0), true)],
            checks: vec![
                alone(Kind::Note, Metric::RecordsPerSecond, Bound::Any),
                alone(Kind::Note, Metric::P99Micros, Bound::Any),
            ],
            rounds_max: 3,
        },
        Workload {
            name: "groups-hanging",
            what: "heartbeats of 30 groups of 3, alone and beside 200 groups whose rebalances hang and one of 400 members with 100 protocols each that join again and again",
            sides: vec![crowd("quiet", 30, (0, 0), false), crowd("beside", 30, (200, 400), false)],
            checks: vec![Check {
                kind: Kind::Bar,
                metric: Metric::P99Micros,
                of: "beside",
                against: Some("quiet"),
                bound: Bound::AtMost(2.0),
            }],
            rounds_max: usize::MAX,
        },
    ]
}

fn estates() -> Vec<Workload> {
    let estate = |topics, partitions, written| {
        let lands = Lands { topics, partitions, written };
        vec![side(STRANDLINE, Durability::Disk, Shape::Estate(lands))]
    };
    let told = alone(Kind::Bar, Metric::MetadataMillis, Bound::AtMost(100.0));
    let weight = alone(Kind::Bar, Metric::KibPerPartition, Bound::AtMost(2.0));
    let started = alone(Kind::Bar, Metric::RestartMillis, Bound::AtMost(2000.0));
    vec![
        Workload {
            name: "topics",
            what: "10 000 topics of one partition, told of, described and changed all at once; then a start after kill -9",
            sides: estate(10_000, 1, false),
            checks: vec![
                told,
                alone(Kind::Note, Metric::DescribeMillis, Bound::Any),
                alone(Kind::Note, Metric::AlterMillis, Bound::Any),
                alone(Kind::Note, Metric::KibPerPartition, Bound::Any),
                started,
            ],
            rounds_max: 3,
        },
        Workload {
            name: "idle-partitions",
            what: "1 000 topics of 100 partitions that hold nothing; then a start after kill -9",
            sides: estate(1_000, 100, false),
            checks: vec![weight, started],
            rounds_max: 3,
        },
        Workload {
            name: "written-partitions",
            what: "100 topics of 100 partitions that have taken one record each; then a start after kill -9",
            sides: estate(100, 100, true),
            checks: vec![weight, started],
            rounds_max: 3,
        },
        Workload {
            name: "written-topics",
            what: "10 000 topics of one partition that have taken one record each; then a start after kill -9",
            sides: estate(10_000, 1, true),
            checks: vec![weight, started],
            rounds_max: 3,
        },
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_unique_and_every_check_names_sides_of_its_workload() {
        let mut names = BTreeSet::new();
        for workload in all() {
            assert!(names.insert(workload.name), "{} twice", workload.name);
            let labels: BTreeSet<_> = workload.sides.iter().map(|side| side.label).collect();
            assert_eq!(labels.len(), workload.sides.len(), "labels of {}", workload.name);
            for check in &workload.checks {
                assert!(labels.contains(check.of), "{}: {}", workload.name, check.of);
                let against = check.against.unwrap_or(check.of);
                assert!(labels.contains(against), "{}: {against}", workload.name);
            }
        }
    }
}
