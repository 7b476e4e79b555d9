//! Whether a batch may be appended: idempotence (KIP-98) and the refusals that depend on what the
//! partition has seen.
//!
//! # The decision
//!
//! | the producer | the batch | verdict |
//! | --- | --- | --- |
//! | none | anything | append |
//! | never seen here, or expired | any sequence | append |
//! | known | equals one of its last five batches | duplicate: the first answer again |
//! | known | an older epoch | [`Rejected::StaleEpoch`] |
//! | known | a newer epoch, sequence 0 | append |
//! | known | a newer epoch, another sequence | [`Rejected::OutOfOrder`] |
//! | known | the same epoch, the next sequence | append |
//! | known | the same epoch, another sequence | [`Rejected::OutOfOrder`] |
//!
//! Transactions are refused until they are served, so that no data waits for a marker that never comes.

use strandline_model::{Offset, ProducerEpoch, Sequence, Timestamp};
use strandline_records::{BatchView, ProducerStamp};

use crate::ProducerStates;

/// What to do with a valid batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Append it at the log's end.
    Append,
    /// It is there already: answer as the first time, once that is durable.
    Duplicate {
        /// Where its first record was appended.
        base_offset: Offset,
        /// The offset after its last record.
        next_offset: Offset,
        /// The broker's time when it was appended.
        appended_at: Timestamp,
    },
}

/// Why a batch may not be appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Rejected {
    /// The batch does not follow the producer's last one.
    #[error("sequence is out of order. expected=`{expected}`, got=`{got}`")]
    OutOfOrder {
        /// The sequence that would have been right.
        expected: Sequence,
        /// The batch's first sequence.
        got: Sequence,
    },
    /// A newer instance of the producer has written here: this one is a zombie.
    #[error("producer epoch is stale. current=`{current}`, got=`{got}`")]
    StaleEpoch {
        /// The epoch that the partition knows.
        current: ProducerEpoch,
        /// The batch's.
        got: ProducerEpoch,
    },
    /// The batch belongs to a transaction, and none is open.
    #[error("batch is transactional and no transaction is open")]
    NoTransaction,
}

/// Decides about one validated batch.
pub fn admit(batch: &BatchView<'_>, producers: &ProducerStates) -> Result<Admission, Rejected> {
    if batch.attributes().is_transactional() {
        return Err(Rejected::NoTransaction);
    }
    let Some(ProducerStamp { id, epoch, base_sequence: Some(first) }) = batch.producer() else {
        return Ok(Admission::Append);
    };
    let Some(known) = producers.entry(id) else {
        return Ok(Admission::Append);
    };
    if epoch < known.epoch() {
        return Err(Rejected::StaleEpoch { current: known.epoch(), got: epoch });
    }
    if epoch > known.epoch() {
        return if first == Sequence::ZERO {
            Ok(Admission::Append)
        } else {
            Err(Rejected::OutOfOrder { expected: Sequence::ZERO, got: first })
        };
    }
    let last = first.advanced_by(batch.last_offset_delta().max(0).cast_unsigned());
    if let Some(cached) = known.duplicate_of(first, last) {
        return Ok(Admission::Duplicate {
            base_offset: cached.base_offset,
            next_offset: cached.next_offset(),
            appended_at: cached.appended_at,
        });
    }
    match known.next_sequence() {
        Some(expected) if expected != first => Err(Rejected::OutOfOrder { expected, got: first }),
        Some(_) | None => Ok(Admission::Append),
    }
}
