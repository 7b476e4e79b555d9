//! Reading records: what a fetch may see, how much of it, and how long it waits.
//!
//! A fetch looks at its partitions, and if there is not enough yet, parks on them and looks again
//! when one changes. It never polls. The upper bound of a read is fixed before the read begins: the
//! high watermark.

mod failures;
mod look;
mod park;

use std::sync::Arc;

use strandline_coordination::{FetchPartition, SessionKey};
use strandline_storage::BatchBytes;
use strandline_wire::ErrorCode;

use crate::partition::PartitionSlot;
use crate::topic::Topic;

pub(crate) use failures::ReadFailures;
pub(crate) use look::Looker;
pub(crate) use park::fetch;

/// A partition that a fetch asks for.
#[derive(Clone, Debug)]
pub(crate) struct Asked {
    /// As the client names it.
    pub(crate) key: SessionKey,
    /// What it wants.
    pub(crate) wants: FetchPartition,
    /// The partition itself, or why there is none.
    pub(crate) found: Result<(Arc<Topic>, Arc<PartitionSlot>), ErrorCode>,
}

/// The bounds of one fetch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FetchLimits {
    /// Bytes of records over all partitions.
    pub(crate) max_bytes: u64,
    /// Wait until there are so many bytes.
    pub(crate) min_bytes: u64,
    /// But not longer than this.
    pub(crate) max_wait_ms: u64,
}

/// What was found of one partition.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub(crate) error: ErrorCode,
    /// −1 when unknown.
    pub(crate) high_watermark: i64,
    /// −1 when unknown.
    pub(crate) log_start_offset: i64,
    /// Where the client's history parts from ours (KIP-320).
    pub(crate) diverging: Option<Diverging>,
    /// Our leader epoch, with errors that send the client to look for it.
    pub(crate) leader_epoch: Option<i32>,
    pub(crate) records: BatchBytes,
}

/// The end of the largest epoch that the client may share with us; −1 when there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Diverging {
    pub(crate) epoch: i32,
    pub(crate) end_offset: i64,
}

impl Found {
    pub(crate) const fn failed(error: ErrorCode) -> Self {
        Self {
            error,
            high_watermark: -1,
            log_start_offset: -1,
            diverging: None,
            leader_epoch: None,
            records: BatchBytes::empty(),
        }
    }

    /// Whether this must be told at once, however few bytes there are.
    pub(crate) fn is_urgent(&self) -> bool {
        self.error != ErrorCode::NONE || self.diverging.is_some()
    }
}
