//! The memory that the maps of all passes share.

use std::sync::Arc;

use parking_lot::Mutex;
use strandline_model::ByteCount;
use strandline_model::config::BrokerConfig;

/// The least that a pass begins with, if it needs as much.
const LEAST: ByteCount = ByteCount::mib(1);

/// How much of it is taken.
#[derive(Debug, Default)]
pub(super) struct Memory(Mutex<u64>);

/// Memory that a pass may use.
#[derive(Debug)]
pub(super) struct Taken {
    memory: Arc<Memory>,
    bytes: u64,
}

impl Memory {
    /// Up to `wanted`, but no more than one thread's share; `None` when too little is left.
    pub(super) fn take(
        self: &Arc<Self>,
        wanted: ByteCount,
        config: &BrokerConfig,
    ) -> Option<Taken> {
        let all = config.log_cleaner_dedupe_buffer_size.get();
        let share = all / u64::from(config.log_cleaner_threads.max(1));
        let mut taken = self.0.lock();
        let bytes = wanted.get().min(share).min(all.saturating_sub(*taken));
        if bytes < wanted.get().min(share).min(LEAST.get()) {
            return None;
        }
        *taken += bytes;
        Some(Taken { memory: Arc::clone(self), bytes })
    }
}

impl Taken {
    pub(super) const fn bytes(&self) -> ByteCount {
        ByteCount::new(self.bytes)
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        *self.memory.0.lock() -= self.bytes;
    }
}
