//! KIP-98's rules, row by row.

use proptest::prelude::*;
use strandline_model::{Offset, Timestamp};
use strandline_partition::{Admission, PartitionState, Rejected, admit};

use crate::Batch;

/// Producer 7, epoch 3, has appended these batches of two records: sequences 10–11 up to 20–21.
fn seen() -> PartitionState {
    let mut state = PartitionState::default();
    for index in 0..6 {
        let sealed =
            Batch::idempotent(7, 3, 10 + 2 * index, 2).seal(i64::from(100 + 2 * index), 0, 50);
        state.record(&sealed.iter().next().unwrap(), Timestamp::from_millis(50));
    }
    state
}

fn verdict(state: &PartitionState, batch: &Batch) -> Result<Admission, Rejected> {
    admit(&batch.seal(0, 0, 60).iter().next().unwrap(), &state.producers)
}

fn duplicate(base_offset: i64) -> Admission {
    Admission::Duplicate {
        base_offset: Offset::new(base_offset),
        next_offset: Offset::new(base_offset + 2),
        appended_at: Timestamp::from_millis(50),
    }
}

#[test]
fn each_row_of_the_decision() {
    let out_of_order = |expected: i32, got: i32| {
        let sequence = |number| strandline_model::Sequence::from_wire(number).unwrap();
        Err(Rejected::OutOfOrder { expected: sequence(expected), got: sequence(got) })
    };
    let cases = [
        ("a plain producer", Batch::plain(3), Ok(Admission::Append)),
        (
            "an unknown producer, any sequence",
            Batch::idempotent(8, 0, 99, 1),
            Ok(Admission::Append),
        ),
        ("the next batch", Batch::idempotent(7, 3, 22, 2), Ok(Admission::Append)),
        ("a retry of the last", Batch::idempotent(7, 3, 20, 2), Ok(duplicate(110))),
        ("a retry of the fifth last", Batch::idempotent(7, 3, 12, 2), Ok(duplicate(102))),
        ("a retry that is forgotten", Batch::idempotent(7, 3, 10, 2), out_of_order(22, 10)),
        ("half a retry", Batch::idempotent(7, 3, 20, 1), out_of_order(22, 20)),
        ("a gap", Batch::idempotent(7, 3, 24, 2), out_of_order(22, 24)),
        ("a new epoch from the start", Batch::idempotent(7, 4, 0, 2), Ok(Admission::Append)),
        ("a new epoch from the middle", Batch::idempotent(7, 4, 22, 2), out_of_order(0, 22)),
        (
            "a transaction",
            Batch::idempotent(7, 3, 22, 2).transactional(),
            Err(Rejected::NoTransaction),
        ),
    ];
    for (what, batch, expected) in cases {
        assert_eq!(verdict(&seen(), &batch), expected, "{what}");
    }
    assert!(matches!(
        verdict(&seen(), &Batch::idempotent(7, 2, 22, 2)),
        Err(Rejected::StaleEpoch { .. })
    ));
}

#[test]
fn sequences_wrap_after_two_to_the_31() {
    let mut state = PartitionState::default();
    let last = Batch::idempotent(7, 0, i32::MAX, 1).seal(0, 0, 1);
    state.record(&last.iter().next().unwrap(), Timestamp::from_millis(1));
    assert_eq!(verdict(&state, &Batch::idempotent(7, 0, 0, 1)), Ok(Admission::Append));
    let across = Batch::idempotent(7, 0, i32::MAX - 1, 4).seal(0, 0, 1);
    state.record(&across.iter().next().unwrap(), Timestamp::from_millis(1));
    assert_eq!(verdict(&state, &Batch::idempotent(7, 0, 2, 1)), Ok(Admission::Append));
}

#[test]
fn a_forgotten_producer_may_begin_anywhere_and_one_whose_records_went_may_not() {
    let batch = Batch::idempotent(7, 3, 55, 1);
    let mut expired = seen();
    expired.producers.expire(Timestamp::from_millis(1_050), 1_000);
    assert_eq!(verdict(&expired, &batch), Ok(Admission::Append));
    let mut kept = seen();
    kept.producers.expire(Timestamp::from_millis(1_049), 1_000);
    kept.trim(Offset::new(112));
    assert!(verdict(&kept, &batch).is_err());
}

proptest! {
    /// A client that sends batches in order, each any number of times, gets each stored once.
    #[test]
    fn retries_within_the_window_store_each_batch_once(
        counts in prop::collection::vec(1_i32..9, 1..30),
        retries in prop::collection::vec(0_usize..4, 30),
    ) {
        let mut state = PartitionState::default();
        let (mut sequence, mut end) = (0, 0_i64);
        let mut sent = Vec::new();
        for (index, &count) in counts.iter().enumerate() {
            sent.push((Batch::idempotent(1, 0, sequence, count), end));
            let batch = &sent.last().unwrap().0;
            prop_assert_eq!(verdict(&state, batch), Ok(Admission::Append));
            let sealed = batch.seal(end, 0, 5);
            state.record(&sealed.iter().next().unwrap(), Timestamp::from_millis(5));
            sequence += count;
            end += i64::from(count);
            let again = sent.len() - 1 - retries[index].min(sent.len() - 1);
            let (batch, base) = &sent[again];
            let answer = verdict(&state, batch);
            let is_original = matches!(
                answer, Ok(Admission::Duplicate { base_offset, .. }) if base_offset.get() == *base
            );
            prop_assert!(is_original, "{:?}", answer);
        }
    }
}
