//! What is saved comes back, and nothing else does.

use bytes::Bytes;
use proptest::prelude::*;
use strandline_model::Timestamp;
use strandline_partition::{PartitionState, StateError};

use crate::Batch;

fn state(batches: &[(i64, i16, i32, i32)]) -> PartitionState {
    let mut state = PartitionState::default();
    let mut end = 0;
    for (index, &(id, epoch, first, count)) in batches.iter().enumerate() {
        let leader_epoch = i32::try_from(index / 3).unwrap();
        let sealed = Batch::idempotent(id, epoch, first, count).seal(end, leader_epoch, 9);
        state.record(&sealed.iter().next().unwrap(), Timestamp::from_millis(9));
        end += i64::from(count);
    }
    state
}

#[test]
fn an_unknown_version_is_refused() {
    assert_eq!(PartitionState::decode(Bytes::from_static(&[9])), Err(StateError::Version(9)));
    assert_eq!(PartitionState::decode(Bytes::new()), Err(StateError::Damaged));
}

proptest! {
    #[test]
    fn state_round_trips(batches in prop::collection::vec((0_i64..4, 0_i16..3, 0_i32..100, 1_i32..9), 0..40)) {
        let state = state(&batches);
        prop_assert_eq!(PartitionState::decode(state.encode()), Ok(state));
    }

    #[test]
    fn damaged_bytes_never_panic(
        batches in prop::collection::vec((0_i64..4, 0_i16..3, 0_i32..100, 1_i32..9), 0..10),
        at in any::<prop::sample::Index>(), value: u8, cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = state(&batches).encode().to_vec();
        let at = at.index(bytes.len());
        bytes[at] = value;
        bytes.truncate(cut.index(bytes.len() + 1));
        drop(PartitionState::decode(bytes.into()));
    }
}
