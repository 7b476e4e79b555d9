//! The saved state of a partition: what an engine gives back as opaque bytes.

use bytes::Bytes;
use strandline_model::{LeaderEpoch, Offset, ProducerEpoch, ProducerId, Sequence, Timestamp};
use strandline_partition::PartitionState;
use strandline_records::{
    BatchBuilder, BatchView, NewRecord, ProducerStamp, SealedBatches, TimestampType,
};

use super::{Target, kind_of, magnitude};

pub(super) const TARGET: Target = Target { name: "state", seeds, repair: |_| {}, run };

fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = vec![PartitionState::default().encode().to_vec()];
    let mut state = PartitionState::default();
    for number in 0..12 {
        record(&mut state, number);
        seeds.push(state.encode().to_vec());
    }
    seeds
}

/// Records the batch of one producer of three, in a new epoch now and then.
fn record(state: &mut PartitionState, number: i64) {
    let stamp = ProducerStamp {
        id: ProducerId::new(100 + number % 3),
        epoch: ProducerEpoch::from_wire(0).expect("an epoch"),
        base_sequence: Sequence::from_wire(i32::try_from(number / 3).expect("small")),
    };
    let mut builder = BatchBuilder::new().producer(stamp);
    builder.push(NewRecord { value: Some(b"v"), ..NewRecord::default() });
    let epoch =
        LeaderEpoch::from_wire(i32::try_from(number / 4).expect("small")).expect("an epoch");
    let now = Timestamp::from_millis(1_700_000_000_000);
    let offset = Offset::new(number);
    let sealed =
        SealedBatches::seal(builder.build(), offset, epoch, TimestampType::CreateTime, now);
    state.record(&BatchView::exactly(sealed.bytes()).expect("just built"), now);
}

fn run(input: &[u8]) -> u64 {
    match PartitionState::decode(Bytes::copy_from_slice(input)) {
        Ok(mut state) => {
            let again = PartitionState::decode(state.encode()).expect("what we wrote can be read");
            assert_eq!(again, state, "changed on its way");
            let shape = (magnitude(state.producers.len()), state.epochs.latest());
            state.trim(Offset::new(6));
            kind_of((shape, state.producers.is_empty()))
        }
        Err(error) => kind_of(error),
    }
}
