//! The bytes that the engine holds, counted so that they stay below a bound.

use std::sync::atomic::{AtomicU64, Ordering};

use strandline_model::ByteCount;

use crate::{ErrorKind, Space, StorageError};

/// How much is held and how much may be.
pub(super) struct Budget {
    used: AtomicU64,
    capacity: ByteCount,
    reserve: ByteCount,
}

/// What bytes are taken for.
#[derive(Clone, Copy)]
pub(super) enum Purpose {
    /// Batches: they leave the reserve alone.
    Batches,
    /// Rows and saved states: they may use the reserve.
    Rows,
}

impl Budget {
    pub(super) const fn new(capacity: ByteCount, reserve: ByteCount) -> Self {
        Self { used: AtomicU64::new(0), capacity, reserve }
    }

    /// Counts `bytes` as held, or answers `Full` and counts nothing.
    pub(super) fn take(&self, bytes: u64, purpose: Purpose) -> Result<(), StorageError> {
        let capacity = match purpose {
            Purpose::Batches => self.capacity.saturating_sub(self.reserve).get(),
            Purpose::Rows => self.capacity.get(),
        };
        let grown = |used: u64| used.checked_add(bytes).filter(|&sum| sum <= capacity);
        // Relaxed: the counter guards no other memory.
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, grown).map(|_| ()).map_err(
            |used| {
                let message =
                    format!("memory is full. used=`{used}`, need=`{bytes}`, capacity=`{capacity}`");
                StorageError::new(ErrorKind::Full, message)
            },
        )
    }

    /// Counts `bytes` as free again.
    pub(super) fn give_back(&self, bytes: u64) {
        let before = self.used.fetch_sub(bytes, Ordering::Relaxed);
        assert!(before >= bytes, "only bytes that were taken are given back");
    }

    pub(super) fn space(&self) -> Space {
        let used = ByteCount::new(self.used.load(Ordering::Relaxed));
        let free = Some(self.capacity.saturating_sub(used));
        // A dropped chunk's memory goes with it; who reads it has its own.
        Space { used, dropped: ByteCount::ZERO, free, reserve: self.reserve }
    }
}
