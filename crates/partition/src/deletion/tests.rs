//! When each deletion is worked on: tables of states, and whole lives with failures, hangs and rates.

use std::collections::BTreeMap;

use proptest::prelude::*;
use strandline_model::ByteCount;

use super::*;

const MS: Duration = Duration::from_millis(1);

fn secs(count: u64) -> Duration {
    Duration::from_secs(count)
}

fn turn(due: u64, has_begun: bool, failures: u32) -> Turn {
    Turn { failures, ..Turn::new(secs(due), has_begun, Hold::Free) }
}

#[test]
fn each_deletion_is_in_one_state() {
    let now = secs(100);
    let paused = |turn| Turn { hold: Hold::Paused, ..turn };
    let stepping = |turn| Turn { step_began: Some(secs(99)), ..turn };
    for (turn, all, expected) in [
        (turn(101, false, 0), Hold::Free, State::Grace),
        (turn(100, false, 0), Hold::Free, State::Queued),
        (turn(100, true, 0), Hold::Free, State::Running),
        (turn(200, true, 3), Hold::Free, State::BackingOff),
        (turn(200, false, 1), Hold::Free, State::BackingOff),
        (turn(101, false, 0), Hold::Paused, State::Paused),
        (paused(turn(101, false, 0)), Hold::Free, State::Paused),
        (paused(turn(200, true, 1)), Hold::Paused, State::Paused),
        // What is under way comes to its end.
        (stepping(paused(turn(0, true, 0))), Hold::Paused, State::Running),
    ] {
        assert_eq!(turn.state(now, all), expected, "{turn:?} {all:?}");
    }
}

#[test]
fn pauses_after_failures_double_up_to_a_minute_and_no_number_ends_them() {
    let pauses: Vec<u64> = (0..8).map(|failures| backoff(failures).as_secs()).collect();
    assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60]);
    assert_eq!(backoff(u32::MAX), BACKOFF_MAX);
}

fn asked(now: u64, turns: &[Turn], all: Hold) -> Next<usize> {
    next(secs(now), turns.iter().copied().enumerate(), all, &Pace::default())
}

#[test]
fn the_one_that_is_due_longest_comes_first_and_nobody_waits_for_one_that_is_not() {
    let paused = Turn { hold: Hold::Paused, ..turn(1, true, 0) };
    let busy = Turn { step_began: Some(secs(9)), ..turn(0, true, 0) };
    let free = Hold::Free;
    assert_eq!(asked(10, &[], free), Next::Idle);
    assert_eq!(asked(10, &[paused, busy], free), Next::Idle);
    assert_eq!(asked(10, &[paused, busy, turn(12, false, 0)], free), Next::Wait(secs(2)));
    assert_eq!(asked(10, &[turn(12, true, 4), turn(10, false, 0)], free), Next::Step(1));
    assert_eq!(
        asked(10, &[turn(8, true, 0), turn(7, true, 0), turn(7, true, 0)], free),
        Next::Step(1)
    );
    assert_eq!(asked(10, &[turn(8, true, 0)], Hold::Paused), Next::Idle);
}

#[test]
fn steps_that_hang_give_their_place_to_others() {
    let mut turns = vec![Turn { step_began: Some(secs(10)), ..turn(0, true, 0) }; STEPS_MAX];
    turns.push(turn(5, true, 0));
    assert_eq!(asked(12, &turns, Hold::Free), Next::Wait(secs(8)));
    assert_eq!(asked(20, &turns, Hold::Free), Next::Step(STEPS_MAX));
}

#[test]
fn a_pause_after_a_failure_ends_when_somebody_says_so() {
    let mut failed = turn(0, true, 0);
    assert!(!failed.retry(secs(1)), "nothing failed");
    failed.begin_step(secs(1));
    failed.fail_step(secs(1));
    assert_eq!(asked(1, &[failed], Hold::Free), Next::Wait(BACKOFF_MIN));
    assert!(failed.retry(secs(1)));
    assert_eq!(asked(1, &[failed], Hold::Free), Next::Step(0));
    failed.begin_step(secs(1));
    failed.end_step(secs(2));
    assert_eq!((failed.failures, failed.due), (0, secs(2)));
}

#[test]
fn a_step_that_freed_something_leaves_the_disk_to_others_for_a_while() {
    let mut pace = Pace::default();
    let reserved = pace.reserve(secs(1));
    assert_eq!((reserved.budget, pace.free_at()), (STEP, secs(1)), "no rate, no waiting");
    pace.settle(secs(2), reserved, ByteCount::ZERO, secs(1));
    assert_eq!(pace.free_at(), secs(1));
    pace.settle(secs(2), reserved, STEP, 30 * MS);
    assert_eq!(pace.free_at(), secs(2) + 30 * MS);
    pace.settle(secs(3), reserved, STEP, secs(9));
    assert_eq!(pace.free_at(), secs(3) + 100 * MS, "a slow disk is not given up");
}

#[test]
fn another_rate_counts_at_once() {
    let mut pace = Pace::default();
    pace.set_rate(Some(1));
    let reserved = pace.reserve(secs(0));
    assert!(pace.free_at() > secs(4_000), "a block at a byte a second");
    pace.set_rate(Some(1));
    assert!(pace.free_at() > secs(4_000), "the same rate changes nothing");
    pace.set_rate(None);
    assert_eq!(pace.free_at(), Duration::ZERO);
    pace.settle(secs(1), reserved, ByteCount::ZERO, MS);
    assert_eq!(pace.free_at(), Duration::ZERO);
}

/// A deletion of a test: what it has left and how its steps go.
#[derive(Clone, Debug)]
struct Life {
    grace_ms: u64,
    bytes: u64,
    /// Steps that fail before one does not.
    failures: u32,
    hangs: bool,
}

fn life() -> impl Strategy<Value = Life> {
    (0_u64..5_000, 0_u64..200_000_000, 0_u32..4, prop::bool::weighted(0.2))
        .prop_map(|(grace_ms, bytes, failures, hangs)| Life { grace_ms, bytes, failures, hangs })
}

proptest! {
    /// Whatever fails or hangs, the others come to their end; nothing goes within its grace; and no
    /// second sees more bytes than the rate and one step.
    #[test]
    fn every_deletion_that_can_end_ends(
        lives in prop::collection::vec(life(), 1..24),
        rate in prop::option::of(20_000_000_u64..500_000_000),
    ) {
        let mut pace = Pace::default();
        pace.set_rate(rate);
        let mut lives: BTreeMap<usize, (Life, Turn)> = lives
            .into_iter()
            .map(|life| {
                let due = Duration::from_millis(life.grace_ms);
                (life, Turn::new(due, false, Hold::Free))
            })
            .enumerate()
            .collect();
        let (mut now, mut freed) = (Duration::ZERO, Vec::<(Duration, u64)>::new());
        while lives.values().any(|(life, _)| !life.hangs) {
            prop_assert!(now < secs(1_200), "left: {lives:?}");
            let turns = lives.iter().map(|(key, (_, turn))| (*key, *turn));
            match next(now, turns, Hold::Free, &pace) {
                Next::Idle => prop_assert!(false, "somebody waits: {lives:?}"),
                Next::Wait(wait) => now += wait,
                Next::Step(key) => {
                    let (life, turn) = lives.get_mut(&key).expect("it was asked about");
                    prop_assert!(now >= Duration::from_millis(life.grace_ms));
                    turn.begin_step(now);
                    let reserved = pace.reserve(now);
                    if life.hangs {
                        continue;
                    }
                    now += MS;
                    if life.failures > 0 {
                        life.failures -= 1;
                        turn.fail_step(now);
                        pace.settle(now, reserved, ByteCount::ZERO, MS);
                        continue;
                    }
                    turn.end_step(now);
                    let bytes = life.bytes.min(reserved.budget.get());
                    life.bytes -= bytes;
                    pace.settle(now, reserved, ByteCount::new(bytes), MS);
                    freed.push((now, bytes));
                    if life.bytes == 0 {
                        lives.remove(&key);
                    }
                }
            }
        }
        if let Some(rate) = rate {
            for (from, _) in &freed {
                let second = freed.iter().filter(|(at, _)| at >= from && *at < *from + secs(1));
                let bytes: u64 = second.map(|(_, bytes)| bytes).sum();
                prop_assert!(bytes <= rate + 2 * STEP.get(), "{bytes} in a second at {rate}");
            }
        }
    }
}
