//! What holds for every log, policy and time.

use proptest::prelude::*;
use strandline_model::{ByteCount, Offset, Timestamp};
use strandline_partition::retention::{
    Cause, LogView, Policy, Segment, Sighting, TrustedClock, Verdict, choose,
};

use super::at;

/// A log that owns its segments.
#[derive(Clone, Debug)]
struct AnyLog {
    segments: Vec<Segment>,
    log_start: Offset,
    high_watermark: Offset,
    sighting: Option<Sighting>,
}

impl AnyLog {
    fn view(&self) -> LogView<'_> {
        LogView {
            segments: &self.segments,
            log_start: self.log_start,
            high_watermark: self.high_watermark,
            sighting: self.sighting,
            latest: at(0),
        }
    }

    fn end(&self) -> Offset {
        self.segments.last().map_or(Offset::ZERO, |last| last.next_offset)
    }

    fn bytes(&self, from: usize) -> u64 {
        self.segments[from..].iter().map(|segment| segment.bytes.get()).sum()
    }

    fn records(&self, from: usize) -> u64 {
        self.segments
            .get(from)
            .map_or(0, |first| (self.end() - first.base_offset.max(self.log_start)).get())
            .unsigned_abs()
    }
}

/// Segments with times of any kind.
fn segments() -> impl Strategy<Value = Vec<Segment>> {
    let one = (1..100_i64, 1..1000_u64, prop::option::of(0..20_000_i64), 0..10_000_i64, 0..500_i64);
    (prop::collection::vec(one, 0..9), any::<bool>()).prop_map(|(parts, is_active)| {
        let mut base = 0;
        let count = parts.len();
        let segment = |(index, (records, bytes, stamp, appended, span)): (
            usize,
            (i64, u64, Option<i64>, i64, i64),
        )| {
            let base_offset = Offset::new(base);
            base += records;
            Segment {
                base_offset,
                next_offset: Offset::new(base),
                bytes: ByteCount::new(bytes),
                max_timestamp: stamp.map(at),
                first_appended_at: at(appended),
                last_appended_at: at(appended + span),
                is_active: is_active && index + 1 == count,
            }
        };
        parts.into_iter().enumerate().map(segment).collect()
    })
}

fn any_log() -> impl Strategy<Value = AnyLog> {
    let seen = prop::option::of((0..20_000_i64, 0..900_i64));
    (segments(), 0..1000_i64, 0..1000_i64, seen).prop_map(|(segments, start, above, seen)| {
        let end = segments.last().map_or(0, |last| last.next_offset.get());
        let first = segments.first().map_or(0, |first| first.next_offset.get());
        // The log start lies in the first segment or above; the watermark above that.
        let log_start = Offset::new(start % (end + 1)).min(Offset::new(first));
        AnyLog {
            high_watermark: log_start.max(Offset::new(above % (end + 1))),
            sighting: seen.map(|(time, end)| Sighting { at: at(time), end: Offset::new(end) }),
            segments,
            log_start,
        }
    })
}

/// All clocks were right: appends came one after another, records were stamped before.
fn sane_log() -> impl Strategy<Value = AnyLog> {
    any_log().prop_map(|mut log| {
        let mut clock = 0;
        for segment in &mut log.segments {
            clock += 1 + segment.first_appended_at.as_millis() % 700;
            segment.first_appended_at = at(clock);
            clock += segment.last_appended_at.as_millis() % 300;
            segment.last_appended_at = at(clock);
            segment.max_timestamp = segment.max_timestamp.map(|stamp| stamp.min(at(clock)));
        }
        log.sighting = None;
        log.high_watermark = log.end();
        log
    })
}

fn policy() -> impl Strategy<Value = Policy> {
    let limits = (
        prop::option::of(0..5000_u64),
        prop::option::of(0..12_000_u64),
        prop::option::of(0..600_u64),
    );
    (limits, any::<(bool, bool)>(), 0..8_u8).prop_map(
        |((bytes, millis, records), (compacts, bytes_are_a_floor), deletes)| Policy {
            deletes: deletes > 0,
            compacts,
            bytes: bytes.map(ByteCount::new),
            bytes_are_a_floor,
            millis,
            records,
        },
    )
}

/// `lower` where both are limited, and a limit where only one is.
fn lower(limit: Option<u64>, by: u64) -> u64 {
    limit.map_or(by, |limit| limit.saturating_sub(by))
}

proptest! {
    /// Whatever the clocks said, a whole prefix goes that is durable.
    #[test]
    fn a_durable_prefix_of_whole_segments_goes(
        log in any_log(), policy in policy(), now in 0..30_000_i64,
    ) {
        let choice = choose(&log.view(), &policy, at(now));
        let going = choice.going();
        prop_assert_eq!(choice.verdicts.len(), log.segments.len());
        let stays = |verdict: &Verdict| !matches!(verdict, Verdict::Goes(_));
        prop_assert!(choice.verdicts[going..].iter().all(stays));
        if let Some(start) = choice.log_start {
            prop_assert_eq!(start, log.segments[going - 1].next_offset);
            prop_assert!(start > log.log_start && start <= log.high_watermark);
        }
        let rolls_something = log.segments.last().is_some_and(|last| last.is_active);
        prop_assert!(!choice.roll || rolls_something);
    }

    #[test]
    fn nothing_inside_the_limits_goes(
        log in sane_log(), policy in policy(), now in 0..30_000_i64,
    ) {
        let choice = choose(&log.view(), &policy, at(now));
        for (index, verdict) in choice.verdicts.iter().enumerate() {
            let segment = &log.segments[index];
            match verdict {
                Verdict::Goes(Cause::LogStart) => prop_assert!(segment.next_offset <= log.log_start),
                Verdict::Goes(Cause::Bytes) if policy.bytes_are_a_floor => {
                    prop_assert!(log.bytes(index + 1) >= policy.bytes.unwrap().get());
                }
                Verdict::Goes(Cause::Bytes) => {
                    prop_assert!(log.bytes(index) > policy.bytes.unwrap().get());
                    prop_assert!(index + 1 < log.segments.len());
                }
                Verdict::Goes(Cause::Records) => {
                    prop_assert!(log.records(index) > policy.records.unwrap());
                    prop_assert!(index + 1 < log.segments.len());
                }
                Verdict::Goes(Cause::Age) => {
                    let newest = segment.max_timestamp.unwrap_or(segment.last_appended_at);
                    let age = u64::try_from(at(now).millis_since(newest)).unwrap();
                    prop_assert!(age > policy.millis.unwrap());
                }
                Verdict::Stays { .. } => {}
            }
            if policy.deletes {
                continue;
            }
            prop_assert!(!matches!(verdict, Verdict::Goes(cause) if *cause != Cause::LogStart));
        }
    }

    #[test]
    fn everything_outside_the_limits_goes(
        log in sane_log(), policy in policy(), now in 0..30_000_i64,
    ) {
        let going = choose(&log.view(), &policy, at(now)).going();
        let Some(first) = log.segments.get(going) else { return Ok(()) };
        prop_assert!(first.next_offset > log.log_start);
        if !policy.deletes {
            return Ok(());
        }
        let has_more = going + 1 < log.segments.len();
        if let Some(limit) = policy.millis {
            let newest = first.max_timestamp.unwrap_or(first.last_appended_at);
            prop_assert!(at(now).millis_since(newest) <= i64::try_from(limit).unwrap());
        }
        if let Some(limit) = policy.bytes {
            if policy.bytes_are_a_floor {
                prop_assert!(log.bytes(going + 1) < limit.get());
            } else {
                prop_assert!(!has_more || log.bytes(going) <= limit.get());
            }
        }
        if let Some(limit) = policy.records {
            prop_assert!(!has_more || log.records(going) <= limit);
        }
    }

    /// A later look never finds less, whatever the clocks said.
    #[test]
    fn more_goes_later(
        log in any_log(), policy in policy(), now in 0..30_000_i64, later in 0..10_000_i64,
    ) {
        let early = choose(&log.view(), &policy, at(now)).going();
        let late = choose(&log.view(), &policy, at(now + later)).going();
        prop_assert!(early <= late, "{early} at {now}, {late} later");
    }

    #[test]
    fn lower_limits_remove_more(
        log in any_log(), policy in policy(), now in 0..30_000_i64, by in 0..4000_u64,
    ) {
        let lowered = [
            Policy { bytes: Some(ByteCount::new(lower(policy.bytes.map(ByteCount::get), by))), ..policy },
            Policy { millis: Some(lower(policy.millis, by)), ..policy },
            Policy { records: Some(lower(policy.records, by)), ..policy },
            // The ceiling removes at least what the floor does, except the very last segment.
            Policy { bytes_are_a_floor: false, ..policy },
        ];
        let before = choose(&log.view(), &policy, at(now)).going();
        for policy in lowered {
            let after = choose(&log.view(), &policy, at(now)).going();
            let excepted = usize::from(!policy.bytes_are_a_floor);
            prop_assert!(after >= before.min(log.segments.len().saturating_sub(excepted)), "{policy:?}");
        }
    }

    /// The time that people are told is the time at which it goes.
    #[test]
    fn what_stays_goes_when_it_is_said_to(
        log in any_log(), policy in policy(), now in 0..30_000_i64,
    ) {
        let log = AnyLog { high_watermark: log.end(), ..log };
        let choice = choose(&log.view(), &policy, at(now));
        for (index, verdict) in choice.verdicts.iter().enumerate() {
            if let Verdict::Stays { until: Some(until), .. } = *verdict {
                prop_assert!(until > at(now));
                prop_assert!(choose(&log.view(), &policy, until).going() > index);
                let before = at(until.as_millis() - 1);
                prop_assert!(choose(&log.view(), &policy, before).going() <= index);
            }
        }
    }

    /// A second pass at the same time finds nothing more.
    #[test]
    fn a_pass_is_done_at_once(log in sane_log(), policy in policy(), now in 0..30_000_i64) {
        let choice = choose(&log.view(), &policy, at(now));
        let rest = AnyLog {
            segments: log.segments[choice.going()..].to_vec(),
            log_start: choice.log_start.unwrap_or(log.log_start),
            ..log
        };
        prop_assert_eq!(choose(&rest.view(), &policy, at(now)).going(), 0);
    }

    /// However wrong the clocks were: what was seen has gone when the limit has passed since.
    #[test]
    fn nothing_is_pinned_by_its_times(log in any_log(), limit in 0..12_000_u64, now in 0..30_000_i64) {
        let policy = Policy { millis: Some(limit), ..super::UNLIMITED };
        let mut log = AnyLog { high_watermark: log.end(), sighting: None, ..log };
        log.sighting = Sighting::of(&LogView { latest: at(now), ..log.view() });
        let later = at(now).plus_millis(i64::try_from(limit).unwrap() + 1);
        prop_assert_eq!(choose(&log.view(), &policy, later).going(), log.segments.len());
    }

    /// However often the clock was set back: what was appended last is kept as long as what was
    /// appended before it, and its own time allows.
    #[test]
    fn nothing_goes_early_because_a_clock_was_set_back(
        log in sane_log(), back in prop::collection::vec(0..5000_i64, 9), limit in 0..12_000_u64,
        now in 0..30_000_i64,
    ) {
        let policy = Policy { millis: Some(limit), ..super::UNLIMITED };
        let mut undated = log.clone();
        for segment in &mut undated.segments {
            segment.max_timestamp = None;
        }
        let mut confused = undated.clone();
        let set_back = |time: Timestamp, by: i64| at((time.as_millis() - by).max(0));
        for (segment, by) in confused.segments.iter_mut().skip(1).zip(&back) {
            segment.first_appended_at = set_back(segment.first_appended_at, *by);
            segment.last_appended_at = set_back(segment.last_appended_at, *by);
        }
        let going = choose(&confused.view(), &policy, at(now)).going();
        // What goes with it was appended after the oldest, whose time is right.
        if let Some(first) = undated.segments.first() {
            let age = at(now).millis_since(first.last_appended_at);
            prop_assert!(going == 0 || first.next_offset <= log.log_start || age > i64::try_from(limit).unwrap());
        }
    }

    /// The clock that retention goes by never runs faster than time does, but for small steps, until
    /// a jump has lasted.
    #[test]
    fn a_moment_in_the_future_is_not_believed(
        start in 0..1_000_000_000_i64, jump in 60_001..100_000_000_000_i64, steps in prop::collection::vec(1..100_000_i64, 1..30),
    ) {
        let mut clock = TrustedClock::default();
        let mut elapsed = 0_i64;
        clock.now(at(start), std::time::Duration::ZERO);
        for step in steps {
            elapsed += step;
            let monotonic = std::time::Duration::from_millis(elapsed.unsigned_abs());
            let believed = clock.now(at(start + elapsed + jump), monotonic);
            prop_assert_eq!(believed, at(start + elapsed));
        }
        let monotonic = std::time::Duration::from_millis((elapsed + 1).unsigned_abs());
        prop_assert_eq!(clock.now(at(start + elapsed + 1), monotonic), at(start + elapsed + 1));
    }
}
