//! Sizes and policies of the engine. Every bound is a field, so that tests can be small.

use std::sync::Arc;

use strandline_model::ByteCount;
use strandline_storage::{Durability, StorageError};

use crate::journal::BLOCK_BYTES;
use crate::progress::OpenProgress;
use crate::queue::Bounds;
use crate::segment::SegmentOptions;

/// How a [`FileEngine`](crate::FileEngine) keeps its folder.
#[derive(Clone)]
pub struct FileEngineConfig {
    /// What a metadata commit waits for: its write under [`Durability::Never`], else its sync. Logs
    /// have settings of their own.
    pub metadata: Durability,
    /// The first file of the journal. Small: a new folder is ready when it is filled with zeros.
    pub journal_first_file: ByteCount,
    /// The largest file of the journal; files grow fourfold up to it.
    pub journal_file: ByteCount,
    /// Bytes of journal that a start may have to read. Appends stop at three quarters of it, until
    /// a checkpoint has freed some; rows, trims and removals go on.
    pub journal_cap: ByteCount,
    /// Live bytes of the journal at which a checkpoint begins.
    pub checkpoint_at: ByteCount,
    /// Bytes of one log in one group from which they are written to its segment only, which is synced
    /// with the group, instead of to the journal too.
    pub direct_min: ByteCount,
    /// Bytes written so since the last checkpoint at which one begins: a start compares them with
    /// what the journal says of them.
    pub direct_checkpoint_at: ByteCount,
    /// Bytes of entries that one group may carry; one that is larger goes alone.
    pub group_max: ByteCount,
    /// Bytes of rows that one metadata commit may carry.
    pub commit_max: ByteCount,
    /// Bytes that may wait to be written. Reached: `submit` answers `Busy`.
    pub queue_max: ByteCount,
    /// Free space below which appends are refused as `Full`: room for a snapshot and a journal file,
    /// so that deleting always works.
    pub reserve: ByteCount,
    /// Appended bytes after which the free space is looked at again.
    pub space_check_every: ByteCount,
    /// Segment files that may be open at a time. At half as many unsynced ones a checkpoint begins.
    pub open_files_max: usize,
    /// Synced bytes of segments, newest first, that the page cache keeps.
    pub cache_window: ByteCount,
    /// How far the opening is.
    pub progress: Arc<OpenProgress>,
    /// Called once when the journal can't be written any more, with the reason. Everything is
    /// answered `Closed` from then on; a process that serves should end with a clear word.
    pub on_fatal: Arc<dyn Fn(&StorageError) + Send + Sync>,
}

impl FileEngineConfig {
    /// What `serve` runs with; `on_fatal` ends the process there.
    pub fn production(on_fatal: Arc<dyn Fn(&StorageError) + Send + Sync>) -> Self {
        Self {
            metadata: Durability::Commit,
            journal_first_file: ByteCount::mib(1),
            journal_file: ByteCount::mib(64),
            journal_cap: ByteCount::mib(512),
            checkpoint_at: ByteCount::mib(128),
            direct_min: ByteCount::kib(512),
            direct_checkpoint_at: ByteCount::mib(512),
            group_max: ByteCount::mib(4),
            commit_max: ByteCount::mib(32),
            queue_max: ByteCount::mib(8),
            reserve: ByteCount::mib(128),
            space_check_every: ByteCount::mib(16),
            open_files_max: 4096,
            cache_window: ByteCount::mib(512),
            progress: Arc::default(),
            on_fatal,
        }
    }

    /// The same on a volume of `total` bytes: what may lie idle, or be written before anybody looks at
    /// the free space again, is a small part of it.
    #[must_use]
    pub fn fitted_to(self, total: ByteCount) -> Self {
        let part = |bytes: ByteCount, of: ByteCount, part: u64| {
            let part = of.get() / part / BLOCK_BYTES * BLOCK_BYTES;
            bytes.min(ByteCount::new(part.max(4 * BLOCK_BYTES)))
        };
        let journal_cap = part(self.journal_cap, total, 4);
        let journal_file = part(self.journal_file, journal_cap, 8);
        let reserve = part(self.reserve, total, 8);
        Self {
            journal_first_file: self.journal_first_file.min(journal_file),
            journal_file,
            journal_cap,
            checkpoint_at: part(self.checkpoint_at, journal_cap, 4),
            group_max: part(self.group_max, journal_file, 2),
            queue_max: part(self.queue_max, reserve, 4),
            space_check_every: part(self.space_check_every, reserve, 8),
            reserve,
            ..self
        }
    }

    /// As small as it works: a few groups fill a journal file, a few files the journal.
    pub fn tiny() -> Self {
        Self {
            journal_first_file: ByteCount::new(4 * BLOCK_BYTES),
            journal_file: ByteCount::new(16 * BLOCK_BYTES),
            journal_cap: ByteCount::new(256 * BLOCK_BYTES),
            checkpoint_at: ByteCount::new(64 * BLOCK_BYTES),
            direct_min: ByteCount::kib(4),
            direct_checkpoint_at: ByteCount::kib(256),
            group_max: ByteCount::kib(16),
            commit_max: ByteCount::mib(2),
            queue_max: ByteCount::kib(256),
            reserve: ByteCount::kib(64),
            space_check_every: ByteCount::kib(16),
            open_files_max: 16,
            cache_window: ByteCount::kib(64),
            ..Self::production(Arc::new(|_| {}))
        }
    }

    pub(crate) fn segment_options(&self) -> SegmentOptions {
        let production = SegmentOptions::production();
        SegmentOptions {
            open_files_max: self.open_files_max,
            cache_window: self.cache_window,
            ..production
        }
    }

    /// Whether changes of metadata wait for a sync.
    pub(crate) const fn metadata_waits(&self) -> bool {
        match self.metadata {
            Durability::Commit | Durability::Interval(_) => true,
            Durability::Never => false,
        }
    }

    pub(crate) fn bounds(&self) -> Bounds {
        let cap = self.journal_cap.get();
        Bounds { waiting: self.queue_max.get(), data: cap / 4 * 3, rows: cap / 8 * 7 }
    }
}

impl std::fmt::Debug for FileEngineConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FileEngineConfig")
            .field("metadata", &self.metadata)
            .field("journal_file", &self.journal_file)
            .field("journal_cap", &self.journal_cap)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_small_volume_keeps_most_of_itself_for_records() {
        let production = || FileEngineConfig::production(Arc::new(|_| {}));
        let large = production().fitted_to(ByteCount::gib(2));
        assert_eq!((large.journal_cap, large.reserve), (ByteCount::mib(512), ByteCount::mib(128)));
        assert_eq!((large.queue_max, large.journal_file), (ByteCount::mib(8), ByteCount::mib(64)));
        for mib in [8, 64, 500] {
            let total = ByteCount::mib(mib);
            let small = production().fitted_to(total);
            assert!(small.journal_cap.get() + small.reserve.get() < total.get() / 2, "{mib}");
            // A snapshot and a journal file, beside what comes in before the next look.
            let unseen = small.queue_max.get() + small.space_check_every.get();
            assert!(unseen + small.journal_file.get() < small.reserve.get(), "{mib}");
            assert!(small.journal_first_file <= small.journal_file);
            assert!(small.bounds().data < small.bounds().rows);
        }
        let tiniest = production().fitted_to(ByteCount::ZERO);
        assert!(tiniest.journal_cap >= tiniest.journal_file && tiniest.queue_max > ByteCount::ZERO);
    }
}
