//! Guesses of when a size or a count takes the oldest segment.

use strandline_model::{ByteCount, Offset};
use strandline_partition::retention::{
    Cause, Estimate, LogView, Policy, Segment, choose, estimate,
};

use super::{UNLIMITED, at, bytes, millis, records, segment, three, view};

const HOUR_MS: i64 = 3_600_000;

#[test]
fn a_limit_is_reached_as_fast_as_records_came() {
    // 30 records and 300 bytes came within the first 4000 ms: 13 bytes need 173 ms.
    let three =
        [segment(0, 0), segment(10, 2000), Segment { is_active: true, ..segment(20, 3000) }];
    let floor = Policy { bytes_are_a_floor: true, ..bytes(212) };
    let both = Policy { records: Some(31), ..bytes(312) };
    let guess = |at_ms, cause| Some(Estimate { at: at(at_ms), cause });
    // (what, policy, the guess)
    let rows = [
        ("a size", bytes(312), guess(4173, Cause::Bytes)),
        ("a floor needs the limit without the oldest", floor, guess(4160, Cause::Bytes)),
        ("a count", records(31), guess(4266, Cause::Records)),
        ("whichever is first", both, guess(4173, Cause::Bytes)),
        ("it goes now", bytes(299), None),
        ("age is no guess", millis(5), None),
        ("nothing is limited", UNLIMITED, None),
        ("nothing is deleted", Policy { deletes: false, ..bytes(312) }, None),
    ];
    for (what, policy, expected) in rows {
        assert_eq!(estimate(&view(&three), &policy, at(4000)), expected, "{what}");
    }
    assert_eq!(estimate(&view(&[]), &bytes(1), at(4000)), None);
}

#[test]
fn what_came_long_ago_says_nothing() {
    let long_ago = three();
    assert_eq!(estimate(&view(&long_ago), &bytes(400), at(3001 + HOUR_MS)), None);
    // Half of the older segment came within the hour: 150 bytes.
    let now = 10 * HOUR_MS;
    let older = Segment {
        first_appended_at: at(now - HOUR_MS - 1000),
        last_appended_at: at(now - HOUR_MS + 1000),
        ..segment(0, 0)
    };
    let segments = [older, segment(10, now - 5)];
    let guessed = estimate(&view(&segments), &bytes(349), at(now)).unwrap();
    assert_eq!(guessed, Estimate { at: at(now + HOUR_MS), cause: Cause::Bytes });
}

#[test]
fn a_clock_that_was_set_back_makes_no_guess_wild() {
    let ahead = [segment(0, 9_000_000)];
    assert_eq!(estimate(&view(&ahead), &bytes(150), at(5)), None);
}

/// Records that come steadily: once some are there, what was guessed is what happens, to a tenth.
#[test]
fn steady_records_go_when_it_was_guessed() {
    for (policy, every_ms, of_segment) in
        [(bytes(20_000), 700, 40), (records(1_000), 1_300, 77), (bytes(4_000), 60_000, 9)]
    {
        let mut log: Vec<Segment> = Vec::new();
        let mut guesses: Vec<(i64, i64)> = Vec::new();
        for number in 0..6_000_i64 {
            let now = number * every_ms;
            append(&mut log, number, now, of_segment);
            let view = LogView { high_watermark: Offset::new(number + 1), ..view(&log) };
            let choice = choose(&view, &policy, at(now));
            if let Some(start) = choice.log_start {
                check(&guesses, now, every_ms);
                guesses.clear();
                log.retain(|segment| segment.next_offset > start);
            } else if let Some(guess) = estimate(&view, &policy, at(now))
                && number > 30
            {
                guesses.push((now, guess.at.as_millis()));
            }
        }
        assert!(!log.is_empty() && log[0].base_offset > Offset::ZERO, "something went");
    }
}

/// Each guess is right to a tenth of what it foretold, and to two records.
fn check(guesses: &[(i64, i64)], went_at: i64, every_ms: i64) {
    for (said_at, guess) in guesses {
        let (foretold, real) = (guess - said_at, went_at - said_at);
        let off = (foretold - real).abs();
        assert!(off <= real / 10 + 2 * every_ms, "at {said_at}: {guess}, but {went_at}");
    }
}

fn append(log: &mut Vec<Segment>, number: i64, now: i64, of_segment: i64) {
    let is_full =
        log.last().is_none_or(|last| (last.next_offset - last.base_offset).get() >= of_segment);
    if is_full {
        if let Some(last) = log.last_mut() {
            last.is_active = false;
        }
        let bytes = ByteCount::ZERO;
        log.push(Segment {
            bytes,
            is_active: true,
            next_offset: Offset::new(number),
            ..segment(number, now)
        });
    }
    if let Some(last) = log.last_mut() {
        last.next_offset = Offset::new(number + 1);
        last.bytes = ByteCount::new(last.bytes.get() + 10);
        last.max_timestamp = Some(at(now));
        last.last_appended_at = at(now);
    }
}
