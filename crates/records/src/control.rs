//! Control batches: what a broker writes into a partition about its transactions.
//!
//! A control batch holds exactly one record, whose key says what it means: version (i16) and type
//! (i16). The value of a transaction's end is a version (i16) and the coordinator's epoch (i32).
//! Consumers skip these batches; they take up an offset all the same.
//!
//! See KIP-98 §"Control messages".

use bytes::BytesMut;
use strandline_model::{ProducerEpoch, ProducerId, Timestamp};

use crate::{
    Attributes, BatchBuilder, BatchView, NewRecord, ProducerStamp, Record, RecordError, records,
};

const ABORT: i16 = 0;
const COMMIT: i16 = 1;
const VERSION: i16 = 0;

/// How a transaction ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransactionOutcome {
    /// Its records count for nothing.
    Abort,
    /// Its records count.
    Commit,
}

/// The marker that ends a producer's transaction in one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EndTransaction {
    /// Whose transaction.
    pub producer_id: ProducerId,
    /// The producer's epoch; older ones are fenced by it.
    pub producer_epoch: ProducerEpoch,
    /// How it ended.
    pub outcome: TransactionOutcome,
    /// The epoch of the coordinator that decided.
    pub coordinator_epoch: i32,
}

/// What a control batch says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlRecord {
    /// A transaction ended.
    EndTransaction(EndTransaction),
    /// Something of Kafka's own replication, by its type: no meaning here.
    Other(i16),
}

/// Why a control batch can't be understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ControlError {
    /// It is not a batch of exactly one uncompressed record.
    #[error("control batch does not hold one plain record")]
    NotOneRecord,
    /// Its record is broken.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// Its key or its value is too short or of an unknown version.
    #[error("control record is malformed")]
    Malformed,
    /// It ends a transaction of nobody.
    #[error("control batch has no producer")]
    NoProducer,
}

impl EndTransaction {
    /// The control batch of this marker.
    pub fn to_batch(self, timestamp: Timestamp) -> BytesMut {
        let kind = match self.outcome {
            TransactionOutcome::Abort => ABORT,
            TransactionOutcome::Commit => COMMIT,
        };
        let [k0, k1] = VERSION.to_be_bytes();
        let [k2, k3] = kind.to_be_bytes();
        let [e0, e1, e2, e3] = self.coordinator_epoch.to_be_bytes();
        let stamp =
            ProducerStamp { id: self.producer_id, epoch: self.producer_epoch, base_sequence: None };
        let mut builder = BatchBuilder::new()
            .producer(stamp)
            .attributes(Attributes::PLAIN.with_transactional().with_control());
        builder.push(NewRecord {
            timestamp: Some(timestamp),
            key: Some(&[k0, k1, k2, k3]),
            value: Some(&[k0, k1, e0, e1, e2, e3]),
            headers: &[],
        });
        builder.build()
    }
}

impl ControlRecord {
    /// What `batch` says, or `None` when it is no control batch.
    pub fn of(batch: &BatchView<'_>) -> Result<Option<Self>, ControlError> {
        if !batch.attributes().is_control() {
            return Ok(None);
        }
        let plain = batch.attributes().compression() == Some(crate::Compression::None);
        if batch.records_count() != 1 || !plain {
            return Err(ControlError::NotOneRecord);
        }
        let record =
            records(batch.records_bytes(), 1).next().ok_or(ControlError::NotOneRecord)??;
        let outcome = match kind(&record)? {
            ABORT => TransactionOutcome::Abort,
            COMMIT => TransactionOutcome::Commit,
            other => return Ok(Some(Self::Other(other))),
        };
        let stamp = batch.producer().ok_or(ControlError::NoProducer)?;
        Ok(Some(Self::EndTransaction(EndTransaction {
            producer_id: stamp.id,
            producer_epoch: stamp.epoch,
            outcome,
            coordinator_epoch: coordinator_epoch(&record)?,
        })))
    }
}

/// The type in the key. A later version keeps the first two fields, so only a negative one is wrong.
fn kind(record: &Record<'_>) -> Result<i16, ControlError> {
    match record.key {
        Some(&[v0, v1, t0, t1, ..]) if i16::from_be_bytes([v0, v1]) >= 0 => {
            Ok(i16::from_be_bytes([t0, t1]))
        }
        _ => Err(ControlError::Malformed),
    }
}

fn coordinator_epoch(record: &Record<'_>) -> Result<i32, ControlError> {
    match record.value {
        Some(&[v0, v1, e0, e1, e2, e3, ..]) if i16::from_be_bytes([v0, v1]) >= 0 => {
            Ok(i32::from_be_bytes([e0, e1, e2, e3]))
        }
        _ => Err(ControlError::Malformed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marker(outcome: TransactionOutcome) -> EndTransaction {
        EndTransaction {
            producer_id: ProducerId::new(1234),
            producer_epoch: ProducerEpoch::from_wire(5).unwrap(),
            outcome,
            coordinator_epoch: 17,
        }
    }

    #[test]
    fn markers_round_trip() {
        for outcome in [TransactionOutcome::Abort, TransactionOutcome::Commit] {
            let bytes = marker(outcome).to_batch(Timestamp::from_millis(99));
            let batch = BatchView::exactly(&bytes).unwrap();
            assert_eq!(batch.check_crc(), Ok(()));
            assert!(batch.attributes().is_transactional());
            assert_eq!(batch.producer().unwrap().base_sequence, None);
            let read = ControlRecord::of(&batch);
            assert_eq!(read, Ok(Some(ControlRecord::EndTransaction(marker(outcome)))));
        }
    }

    #[test]
    fn a_commit_marker_is_the_bytes_that_kafka_writes() {
        let bytes = marker(TransactionOutcome::Commit).to_batch(Timestamp::from_millis(99));
        // length 16, attributes, deltas, key of 4, value of 6, no headers
        let record = [32, 0, 0, 0, 8, 0, 0, 0, 1, 12, 0, 0, 0, 0, 0, 17, 0];
        assert_eq!(BatchView::exactly(&bytes).unwrap().records_bytes(), record);
    }

    #[test]
    fn data_batches_say_nothing() {
        let mut builder = BatchBuilder::new();
        builder.push(NewRecord::default());
        let bytes = builder.build();
        assert_eq!(ControlRecord::of(&BatchView::exactly(&bytes).unwrap()), Ok(None));
    }

    #[test]
    fn control_batches_that_are_wrong_are_errors() {
        type Verdict = Result<Option<ControlRecord>, ControlError>;
        type Case = (&'static [u8], Option<&'static [u8]>, usize, Verdict);
        // (key, value, records, verdict)
        let cases: [Case; 6] = [
            (&[0, 0, 0, 2], None, 1, Ok(Some(ControlRecord::Other(2)))),
            (&[0, 0, 0, 2], None, 2, Err(ControlError::NotOneRecord)),
            (&[0, 0, 0], None, 1, Err(ControlError::Malformed)),
            (&[0xff, 0xff, 0, 1], None, 1, Err(ControlError::Malformed)),
            (&[0, 0, 0, 1], None, 1, Err(ControlError::NoProducer)),
            (&[0, 0, 0, 1], Some(&[0, 0, 0, 0, 0]), 1, Err(ControlError::NoProducer)),
        ];
        for (key, value, count, verdict) in cases {
            let mut builder = BatchBuilder::new().attributes(Attributes::PLAIN.with_control());
            for _ in 0..count {
                builder.push(NewRecord { key: Some(key), value, ..NewRecord::default() });
            }
            let bytes = builder.build();
            let read = ControlRecord::of(&BatchView::exactly(&bytes).unwrap());
            assert_eq!(read, verdict, "{key:?}");
        }
    }

    #[test]
    fn an_end_without_an_epoch_is_malformed() {
        let stamp = ProducerStamp {
            id: ProducerId::new(1),
            epoch: ProducerEpoch::ZERO,
            base_sequence: None,
        };
        let mut builder =
            BatchBuilder::new().producer(stamp).attributes(Attributes::PLAIN.with_control());
        builder.push(NewRecord { key: Some(&[0, 0, 0, 1]), ..NewRecord::default() });
        let bytes = builder.build();
        let read = ControlRecord::of(&BatchView::exactly(&bytes).unwrap());
        assert_eq!(read, Err(ControlError::Malformed));
    }
}
