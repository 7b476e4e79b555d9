//! How much room the disk has, so that appends are refused before it is full.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use strandline_model::ByteCount;
use strandline_storage::{ErrorKind, StorageError};

use crate::disk::Disk;

#[derive(Debug)]
pub(crate) struct SpaceGauge {
    reserve: u64,
    /// Free bytes when it was last looked at; the maximum when the disk can't tell.
    free: AtomicU64,
    is_full: AtomicBool,
}

impl SpaceGauge {
    pub(crate) fn new(reserve: ByteCount, disk: &dyn Disk) -> Self {
        let gauge = Self {
            reserve: reserve.get(),
            free: AtomicU64::new(u64::MAX),
            is_full: AtomicBool::new(false),
        };
        gauge.look(disk);
        gauge
    }

    /// Asks the disk. A disk that can't tell is not full: the write will tell.
    pub(crate) fn look(&self, disk: &dyn Disk) {
        let free = disk.free_space().map_or(u64::MAX, ByteCount::get);
        self.free.store(free, Ordering::Relaxed);
        self.set_full(free < self.reserve);
    }

    /// Tells of each change once.
    fn set_full(&self, is_full: bool) {
        if self.is_full.swap(is_full, Ordering::Relaxed) == is_full {
            return;
        }
        let free_bytes = self.free.load(Ordering::Relaxed);
        let reserve_bytes = self.reserve;
        if is_full {
            tracing::error!(free_bytes, reserve_bytes, "disk is full: appends are refused");
        } else {
            tracing::info!(free_bytes, reserve_bytes, "disk has room again: appends go on");
        }
    }

    /// Appends are refused until the disk says otherwise, if this error says that it is full.
    pub(crate) fn note_full(&self, error: &StorageError) {
        if error.kind() == ErrorKind::Full {
            self.set_full(true);
        }
    }

    /// Fails when an append would eat into the reserve. Looks again each time while it does.
    pub(crate) fn check(&self, disk: &dyn Disk) -> Result<(), StorageError> {
        if !self.is_full.load(Ordering::Relaxed) {
            return Ok(());
        }
        self.look(disk);
        if !self.is_full.load(Ordering::Relaxed) {
            return Ok(());
        }
        let free = self.free.load(Ordering::Relaxed);
        let message = format!("disk is full. free=`{free}`, reserve=`{}`", self.reserve);
        Err(StorageError::new(ErrorKind::Full, message))
    }

    /// Free bytes, the reserve among them; `None` when the disk can't tell.
    pub(crate) fn free(&self) -> Option<ByteCount> {
        let free = self.free.load(Ordering::Relaxed);
        (free != u64::MAX).then(|| ByteCount::new(free))
    }

    /// Free bytes beside the reserve.
    pub(crate) fn room(&self) -> Option<ByteCount> {
        self.free().map(|free| free.saturating_sub(ByteCount::new(self.reserve)))
    }
}
