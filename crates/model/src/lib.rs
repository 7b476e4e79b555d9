//! The words that every other crate speaks: identities, offsets, epochs, time and limits.
//!
//! Kafka's terms, as newtypes, so that an offset can't be handed over as a sequence number and a
//! count of bytes can't be handed over as a count of records. Nothing here does I/O, reads a clock
//! or rolls dice: ids are *made* elsewhere and only *named* here.
//!
//! # Invariants
//! - Ranges are half-open, `[start, end)`; only a name that begins with `last_` is inclusive.
//! - Topics are identified by [`TopicId`]; a [`TopicName`] is a label that may be reused.
//!
//! ```
//! use strandline_model::{Offset, OffsetDelta};
//!
//! let base_offset = Offset::new(40);
//! let next_offset = base_offset + OffsetDelta::new(2);
//! assert_eq!(next_offset - base_offset, OffsetDelta::new(2));
//! ```

mod bytes;
pub mod config;
mod epoch;
mod feature;
mod id;
mod limits;
mod offset;
mod offset_spec;
mod producer;
mod quota;
mod timestamp;
mod topic_name;

pub use bytes::ByteCount;
pub use epoch::{LeaderEpoch, ProducerEpoch};
pub use feature::{
    Feature, FeatureError, FeatureLevels, FeatureUpdate, SUPPORTED_FEATURES, UpgradeType,
};
pub use id::{NodeId, ParseTopicIdError, PartitionId, PartitionIndex, TopicId};
pub use limits::Limits;
pub use offset::{Offset, OffsetDelta};
pub use offset_spec::{OffsetPoint, OffsetSpec, ParseOffsetSpecError};
pub use producer::{ProducerId, Sequence};
pub use quota::{QuotaEntity, QuotaEntityType, QuotaError};
pub use timestamp::Timestamp;
pub use topic_name::{InvalidTopicName, TopicName};
