//! What goes and why the rest stays: a table, and what holds for every log.

mod estimate;
mod properties;

use strandline_model::{ByteCount, Offset};
use strandline_partition::retention::{
    Choice, LogView, Policy, Segment, Sighting, Verdict, choose, segment_bytes, segment_records,
};

use crate::segments::{at, segment};

/// Nothing is limited.
const UNLIMITED: Policy = Policy {
    deletes: true,
    compacts: false,
    bytes: None,
    bytes_are_a_floor: false,
    millis: None,
    records: None,
};

fn bytes(limit: u64) -> Policy {
    Policy { bytes: Some(ByteCount::new(limit)), ..UNLIMITED }
}

fn millis(limit: u64) -> Policy {
    Policy { millis: Some(limit), ..UNLIMITED }
}

fn records(limit: u64) -> Policy {
    Policy { records: Some(limit), ..UNLIMITED }
}

/// Three segments of 1000, 2000 and 3000 ms, the last one active.
fn three() -> Vec<Segment> {
    vec![segment(0, 1000), segment(10, 2000), Segment { is_active: true, ..segment(20, 3000) }]
}

fn view(segments: &[Segment]) -> LogView<'_> {
    LogView {
        segments,
        log_start: segments.first().map_or(Offset::ZERO, |first| first.base_offset),
        high_watermark: segments.last().map_or(Offset::ZERO, |last| last.next_offset),
        sighting: None,
        latest: at(0),
    }
}

/// A choice in words: `retention.ms | not_expired until 4001`.
fn told(choice: &Choice) -> String {
    let verdicts = choice.verdicts.iter().map(|verdict| match verdict {
        Verdict::Goes(cause) => format!("-{}", cause.name()),
        Verdict::Stays { reason, until: None } => reason.code().to_owned(),
        Verdict::Stays { reason, until: Some(until) } => format!("{}@{until}", reason.code()),
    });
    let mut words = verdicts.collect::<Vec<_>>().join(" ");
    if choice.roll {
        words.push_str(" roll");
    }
    words
}

#[test]
fn each_row_of_the_choice() {
    for (what, policy, now, expected) in
        [rows_of_age_and_policy(), rows_of_size_and_count()].concat()
    {
        assert_eq!(told(&choose(&view(&three()), &policy, at(now))), expected, "{what}");
    }
}

/// What, the policy, the time, and the verdicts with whether the active segment is rolled.
type Row = (&'static str, Policy, i64, &'static str);

fn rows_of_age_and_policy() -> Vec<Row> {
    let compact = Policy { deletes: false, compacts: true, ..millis(1) };
    let both = Policy { compacts: true, ..millis(500) };
    let neither = Policy { deletes: false, ..bytes(1) };
    let all = Policy { bytes: Some(ByteCount::new(250)), records: Some(15), ..millis(6500) };
    vec![
        ("nothing limits", UNLIMITED, 9000, "unlimited unlimited unlimited"),
        ("all is young", millis(5000), 6000, "not_expired@6001 not_expired@7001 not_expired@8001"),
        (
            "as old as allowed",
            millis(2000),
            3000,
            "not_expired@3001 not_expired@4001 not_expired@5001",
        ),
        ("older", millis(2000), 3001, "-retention.ms not_expired@4001 not_expired@5001"),
        ("an idle topic", millis(2000), 9000, "-retention.ms -retention.ms -retention.ms roll"),
        ("an age of zero", millis(0), 3001, "-retention.ms -retention.ms -retention.ms roll"),
        ("compacted", compact, 9000, "compact_only compact_only compact_only"),
        ("compacted and deleted", both, 3100, "-retention.ms -retention.ms not_expired@3501"),
        ("no policy", neither, 9000, "policy_empty policy_empty policy_empty"),
        ("every limit", all, 9501, "-retention.bytes -retention.records -retention.ms roll"),
    ]
}

fn rows_of_size_and_count() -> Vec<Row> {
    let floor = |limit| Policy { bytes_are_a_floor: true, ..bytes(limit) };
    let (size, count) = ("size_within_limit", "count_within_limit");
    let of = |verdicts: [&'static str; 3]| verdicts.join(" ").leak() as &'static str;
    vec![
        ("as large as allowed", bytes(300), 9000, of([size, size, "size_within_limit roll"])),
        ("larger", bytes(299), 9000, of(["-retention.bytes", size, "size_within_limit roll"])),
        (
            "the newest outlive a size",
            bytes(1),
            9000,
            "-retention.bytes -retention.bytes open_segment roll",
        ),
        ("never below a size", floor(299), 9000, "size_floor size_floor size_floor roll"),
        (
            "down to a size",
            floor(200),
            9000,
            of(["-retention.bytes", size, "size_within_limit roll"]),
        ),
        (
            "a size of zero, by Kafka",
            floor(0),
            9000,
            "-retention.bytes -retention.bytes -retention.bytes roll",
        ),
        ("as many as allowed", records(30), 9000, of([count, count, "count_within_limit roll"])),
        ("more", records(29), 9000, of(["-retention.records", count, "count_within_limit roll"])),
        (
            "the newest outlive a count",
            records(3),
            9000,
            "-retention.records -retention.records open_segment roll",
        ),
        ("a limit of many segments", records(80), 9000, of([count, count, count])),
    ]
}

#[test]
fn what_is_not_durable_or_lies_behind_what_stays_does_not_go() {
    let segments = three();
    let log = LogView { high_watermark: Offset::new(15), ..view(&segments) };
    let choice = choose(&log, &millis(100), at(9000));
    assert_eq!(choice.log_start, Some(Offset::new(10)));
    assert_eq!(told(&choice), "-retention.ms above_high_watermark@9000 behind_blocker@9000 roll");

    // The oldest segment has the newest record, as its producer says.
    let blocker = Segment { max_timestamp: Some(at(1000)), ..segment(0, 5000) };
    let first = Segment { max_timestamp: Some(at(4000)), ..blocker };
    let segments = [first, Segment { max_timestamp: Some(at(10)), ..segment(10, 5100) }];
    let choice = choose(&view(&segments), &millis(1000), at(5001));
    assert_eq!(told(&choice), "-retention.ms -retention.ms");
    let choice = choose(&view(&segments), &millis(1000), at(4999));
    assert_eq!(told(&choice), "not_expired@5001 behind_blocker@5001");
}

#[test]
fn what_lies_below_the_log_start_goes_under_any_policy() {
    let segments = three();
    let log = LogView { log_start: Offset::new(25), ..view(&segments) };
    let compact = Policy { deletes: false, compacts: true, ..UNLIMITED };
    for policy in [compact, UNLIMITED] {
        let choice = choose(&log, &policy, at(9000));
        assert_eq!(choice.going(), 2);
        assert_eq!(choice.log_start, None, "it lies there already");
    }
    // Records below the log start do not count.
    assert_eq!(choose(&log, &records(5), at(9000)).log_start, None);
    assert_eq!(choose(&log, &records(4), at(9000)).going(), 2, "the newest outlive the count");
}

#[test]
fn a_record_dated_in_the_future_pins_nothing() {
    let dated = Segment { max_timestamp: Some(at(i64::MAX)), ..segment(0, 1000) };
    let choice = choose(&view(&[dated, segment(10, 1500)]), &millis(1000), at(2001));
    assert_eq!(told(&choice), "-retention.ms not_expired@2501");
}

#[test]
fn without_a_timestamp_the_time_of_the_append_counts() {
    let undated = Segment { max_timestamp: None, ..segment(0, 1000) };
    assert_eq!(choose(&view(&[undated]), &millis(1000), at(2000)).going(), 0);
    assert_eq!(choose(&view(&[undated]), &millis(1000), at(2001)).going(), 1);
}

#[test]
fn a_clock_that_was_set_back_for_a_while_destroys_nothing() {
    // Both clocks said 1970, and the segment before knows better.
    let fresh = segment(10, 3);
    let undated = Segment { max_timestamp: None, ..fresh };
    for segments in [
        [segment(0, 5000), undated],
        [segment(0, 5000), Segment { max_timestamp: Some(at(5100)), ..fresh }],
    ] {
        let choice = choose(&view(&segments), &millis(1000), at(5500));
        assert_eq!(choice.going(), 0, "{choice:?}");
        assert_eq!(choose(&view(&segments), &millis(1000), at(7000)).going(), 2);
    }
}

#[test]
fn a_clock_that_was_far_ahead_pins_nothing_for_longer_than_the_limit() {
    let ahead = at(4_000_000_000_000);
    let wrong = Segment { is_active: true, ..segment(0, ahead.as_millis()) };
    let segments = [wrong];
    let policy = millis(1000);
    let first = LogView { sighting: None, ..view(&segments) };
    let choice = choose(&first, &policy, at(5000));
    assert_eq!(told(&choice), "future_timestamp roll", "what comes now is not held up by it");
    let sighting = Sighting::of(&LogView { latest: at(5000), ..first });
    assert_eq!(sighting, Some(Sighting { at: at(5000), end: Offset::new(10) }));

    // The clock is right again, and records go on coming.
    let segments = [
        Segment { is_active: false, ..wrong },
        segment(10, 5800),
        Segment { is_active: true, ..segment(20, 5900) },
    ];
    let later = |now| {
        let log = LogView { sighting, latest: at(now), ..view(&segments) };
        assert_eq!(Sighting::of(&log), sighting, "remembered while it is there");
        choose(&log, &policy, at(now)).going()
    };
    assert_eq!([later(6000), later(6001)], [0, 1]);
    let rest = view(&segments[1..]);
    assert_eq!(Sighting::of(&LogView { sighting, latest: at(6001), ..rest }), None);
    assert_eq!(choose(&rest, &policy, at(6801)).going(), 1);
    // Seen in the future itself, before the clock was set back.
    let seen = Some(Sighting { at: ahead, end: Offset::new(10) });
    let log = LogView { sighting: seen, latest: at(5950), ..view(&segments) };
    assert_eq!(Sighting::of(&log), Some(Sighting { at: at(5950), end: Offset::new(30) }));
}

#[test]
fn what_another_clock_dates_rightly_is_no_date_in_the_future() {
    // The wall clock jumped ahead and is not believed; records are dated by it.
    let segments = [segment(0, 2000), Segment { is_active: true, ..segment(10, 90_000) }];
    let log = LogView { latest: at(90_000), ..view(&segments) };
    assert_eq!(Sighting::of(&log), None);
    let choice = choose(&log, &millis(1000), at(3001));
    assert_eq!(
        told(&choice),
        "-retention.ms not_expired@91001",
        "and no pass closes what comes in"
    );
    let dated = Segment { max_timestamp: Some(at(2_000_000)), ..segment(10, 2_000_000) };
    let segments = [segment(0, 2000), Segment { is_active: true, ..dated }];
    let log = LogView { latest: at(90_000), ..view(&segments) };
    assert_eq!(
        told(&choose(&log, &millis(1000), at(2500))),
        "not_expired@3001 future_timestamp roll"
    );
}

#[test]
fn a_count_makes_segments_smaller_too() {
    let compact = Policy { deletes: false, compacts: true, ..records(80_000) };
    // (policy, records in a segment)
    let rows = [
        (UNLIMITED, u64::MAX),
        (records(80_000), 10_000),
        (records(10), 1000),
        (compact, u64::MAX),
    ];
    for (policy, expected) in rows {
        assert_eq!(segment_records(&policy), expected, "{policy:?}");
    }
}

#[test]
fn an_active_segment_is_closed_when_its_first_record_has_expired() {
    let growing = Segment { first_appended_at: at(1000), is_active: true, ..segment(0, 5000) };
    assert!(!choose(&view(&[growing]), &millis(4000), at(5000)).roll);
    let choice = choose(&view(&[growing]), &millis(4000), at(5001));
    assert_eq!(told(&choice), "not_expired@9001 roll");
    let sealed = Segment { is_active: false, ..growing };
    assert!(!choose(&view(&[sealed]), &millis(4000), at(5001)).roll, "only once");
}

#[test]
fn a_size_limit_below_the_segment_size_makes_segments_smaller() {
    let compact = Policy { deletes: false, compacts: true, ..bytes(8 << 20) };
    // (policy, configured, effective)
    let rows = [
        (UNLIMITED, 1 << 30, 1 << 30),
        (bytes(64 << 30), 1 << 30, 1 << 30),
        (bytes(1 << 30), 1 << 30, 128 << 20),
        (bytes(1 << 20), 1 << 30, 1 << 20),
        (bytes(1 << 20), 5000, 5000),
        (compact, 1 << 30, 1 << 30),
    ];
    for (policy, configured, effective) in rows {
        let size = segment_bytes(&policy, ByteCount::new(configured));
        assert_eq!(size, ByteCount::new(effective), "{policy:?}");
    }
}

#[test]
fn an_empty_log_has_nothing_to_decide() {
    let choice = choose(&view(&[]), &millis(0), at(9000));
    assert_eq!(choice, Choice { log_start: None, roll: false, verdicts: Vec::new() });
    assert_eq!(Sighting::of(&LogView { latest: at(9000), ..view(&[]) }), None);
}
