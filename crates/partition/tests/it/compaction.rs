//! When a log is compacted and which segments take part: tables; and what holds for every log.

mod model;
mod properties;

use strandline_model::{ByteCount, Offset};
use strandline_partition::compaction::{Due, LogView, Plan, Policy, groups, plan};
use strandline_partition::retention::Segment;

use crate::segments::{at, segment};

const DEFAULTS: Policy = Policy {
    compacts: true,
    min_dirty_ratio: 0.5,
    min_lag_ms: 0,
    max_lag_ms: u64::MAX,
    delete_retention_ms: 1000,
};

/// Four segments of 1, 2, 3 and 4 s, the last one active.
fn four() -> Vec<Segment> {
    let active = Segment { is_active: true, ..segment(30, 4000) };
    vec![segment(0, 1000), segment(10, 2000), segment(20, 3000), active]
}

fn view(segments: &[Segment], clean_end: i64) -> LogView<'_> {
    LogView {
        segments,
        log_start: Offset::ZERO,
        last_stable_offset: Offset::new(40),
        clean_end: Offset::new(clean_end),
        delete_horizon: None,
    }
}

/// Where the dirty part begins and ends, bytes that are clean and that are cleanable, and whether it is due.
fn told(plan: &Plan) -> (i64, i64, u64, u64, Option<Due>) {
    let (from, upto) = (plan.dirty_from.get(), plan.upto.get());
    (from, upto, plan.clean_bytes.get(), plan.cleanable_bytes.get(), plan.due)
}

#[test]
fn what_takes_part_and_whether_it_is_due() {
    use Due::DirtyRatio;
    let segments = four();
    let all = view(&segments, 0);
    let rows = [
        ("nothing was cleaned", all, DEFAULTS, (0, 30, 0, 300, Some(DirtyRatio))),
        ("a third is dirty", view(&segments, 20), DEFAULTS, (20, 30, 200, 100, None)),
        (
            "more than the ratio, not as much as it",
            view(&segments, 20),
            Policy { min_dirty_ratio: 1.0 / 3.0, ..DEFAULTS },
            (20, 30, 200, 100, None),
        ),
        ("two thirds are", view(&segments, 10), DEFAULTS, (10, 30, 100, 200, Some(DirtyRatio))),
        (
            "everything is clean",
            view(&segments, 30),
            Policy { min_dirty_ratio: 0.0, ..DEFAULTS },
            (30, 30, 300, 0, None),
        ),
        (
            "in the middle of a segment",
            view(&segments, 15),
            DEFAULTS,
            (15, 30, 100, 200, Some(DirtyRatio)),
        ),
        (
            "a mark from another life",
            view(&segments, 41),
            DEFAULTS,
            (0, 30, 0, 300, Some(DirtyRatio)),
        ),
        (
            "the log start lies behind the mark",
            LogView { log_start: Offset::new(25), ..view(&segments, 20) },
            DEFAULTS,
            (25, 30, 200, 100, None),
        ),
    ];
    for (what, log, policy, expected) in rows {
        assert_eq!(told(&plan(&log, &policy, at(10_000))), expected, "{what}");
    }
}

#[test]
fn what_may_wait_and_what_may_not() {
    use Due::{DeleteHorizon, DirtyRatio, MaxLag};
    let segments = four();
    let all = view(&segments, 0);
    let lag = |min_lag_ms| Policy { min_lag_ms, ..DEFAULTS };
    let overdue = Policy { max_lag_ms: 7_999, ..DEFAULTS };
    let horizon = |millis| Some(at(millis));
    let rows = [
        (
            "an open transaction",
            LogView { last_stable_offset: Offset::new(29), ..all },
            DEFAULTS,
            (0, 20, 0, 200, Some(DirtyRatio)),
        ),
        ("the youngest waits", all, lag(7_001), (0, 20, 0, 200, Some(DirtyRatio))),
        ("old enough to the millisecond", all, lag(7_000), (0, 30, 0, 300, Some(DirtyRatio))),
        ("all wait", all, lag(100_000), (0, 0, 0, 0, None)),
        ("what is clean needs no age", view(&segments, 20), lag(100_000), (20, 20, 200, 0, None)),
        (
            "overdue, however little is dirty",
            view(&segments, 10),
            Policy { min_dirty_ratio: 1.0, ..overdue },
            (10, 30, 100, 200, Some(MaxLag)),
        ),
        ("not yet", view(&segments, 20), overdue, (20, 30, 200, 100, None)),
        (
            "tombstones that are over, and the retention once more",
            LogView { delete_horizon: horizon(9_000), ..view(&segments, 30) },
            DEFAULTS,
            (30, 30, 300, 0, Some(DeleteHorizon)),
        ),
        (
            "tombstones that are over",
            LogView { delete_horizon: horizon(9_001), ..view(&segments, 30) },
            DEFAULTS,
            (30, 30, 300, 0, None),
        ),
        ("another policy", all, Policy { compacts: false, ..DEFAULTS }, (0, 30, 0, 300, None)),
        ("an empty log", view(&[], 0), DEFAULTS, (0, 0, 0, 0, None)),
    ];
    for (what, log, policy, expected) in rows {
        assert_eq!(told(&plan(&log, &policy, at(10_000))), expected, "{what}");
    }
}

#[test]
fn a_date_in_the_future_keeps_nothing_from_being_compacted() {
    let mut segments = four();
    segments[0].max_timestamp = Some(at(99_000_000));
    segments[1].max_timestamp = None;
    let policy = Policy { min_lag_ms: 5_000, ..DEFAULTS };
    assert_eq!(plan(&view(&segments, 0), &policy, at(7_500)).segments_count, 2);
    // The broker's clock was set back: it waits until it is right again.
    assert_eq!(plan(&view(&segments, 0), &policy, at(500)).segments_count, 0);
}

#[test]
fn the_active_segment_is_closed_when_it_has_waited_too_long() {
    let segments = four();
    let rolls = |policy: Policy, now| plan(&view(&segments, 0), &policy, at(now)).roll;
    let overdue = Policy { max_lag_ms: 500, ..DEFAULTS };
    assert!(!rolls(overdue, 4_500));
    assert!(rolls(overdue, 4_501));
    assert!(!rolls(DEFAULTS, 99_000_000));
    assert!(!rolls(Policy { compacts: false, ..overdue }, 99_000));
}

#[test]
fn the_dirtiest_comes_first_after_what_is_overdue() {
    let segments = four();
    let overdue = Policy { max_lag_ms: 10, ..DEFAULTS };
    let of = |clean_end, policy: Policy| plan(&view(&segments, clean_end), &policy, at(10_000));
    let urgencies = [of(20, overdue), of(0, DEFAULTS), of(10, DEFAULTS), of(30, DEFAULTS)];
    assert!(urgencies.windows(2).all(|pair| pair[0].urgency() > pair[1].urgency()));
}

#[test]
fn adjacent_segments_become_one_while_they_fit() {
    let mut segments = four();
    let of = |segments: &[Segment], limit| -> Vec<_> {
        let groups = groups(segments, ByteCount::new(limit));
        groups.into_iter().map(|group| (group.start, group.end)).collect()
    };
    assert_eq!(of(&segments, 1000), [(0, 4)]);
    assert_eq!(of(&segments, 399), [(0, 3), (3, 4)]);
    assert_eq!(of(&segments, 200), [(0, 2), (2, 4)]);
    assert_eq!(of(&segments, 10), [(0, 1), (1, 2), (2, 3), (3, 4)], "one always fits");
    assert_eq!(of(&[], 10), []);
    segments[2].next_offset = Offset::new(i64::from(i32::MAX));
    segments[3].next_offset = Offset::new(i64::from(i32::MAX) + 1);
    assert_eq!(of(&segments, 1000), [(0, 3), (3, 4)], "offsets are 31 bits wide");
}
