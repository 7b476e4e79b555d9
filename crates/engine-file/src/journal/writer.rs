//! The one place that writes the journal.
//!
//! # Invariants
//! - `synced < next`; what lies between was written and is not known to be durable.
//! - Only the current file, the last of `live`, may hold unsynced groups.
//! - After a failed write or sync nothing is written to that file again. ([`Writer::abandon`])

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use super::files::{JournalFiles, SpareFile};
use super::group::GroupBuilder;
use super::header::FileHeader;
use super::{BLOCK_BYTES, Generation, GroupPosition, GroupSequence, Slot};
use crate::disk::DiskFile;

/// Why a group was not written.
#[derive(Debug)]
pub(crate) enum WriteFailure {
    /// There is no file for it. What was written before is as it was.
    NoFile(io::Error),
    /// The current file can't be trusted any more: [`Writer::abandon`] it.
    Broken(io::Error),
}

/// Sizes of the journal's files.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FileSizes {
    /// Of the very first file.
    pub(crate) first_bytes: u64,
    /// Of the largest. Files grow fourfold up to it.
    pub(crate) max_bytes: u64,
    /// Spare files are kept up to this many bytes together.
    pub(crate) spare_bytes_max: u64,
}

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Writer {
    files: Arc<JournalFiles>,
    sizes: FileSizes,
    live: VecDeque<LiveFile>,
    generation_max: Generation,
    next: GroupSequence,
    synced: GroupSequence,
    /// Where trust in the current file ends should its sync fail.
    synced_position: u64,
}

#[derive(Debug)]
struct LiveFile {
    slot: Slot,
    file: Arc<dyn DiskFile>,
    bytes: u64,
    generation: Generation,
    /// Of its newest group.
    last_sequence: GroupSequence,
    /// Where the next group goes.
    position: u64,
    /// A write or sync failed: it is never used again.
    abandoned: bool,
}

impl Writer {
    /// A writer that goes on after `last`, in a file of its own.
    pub(crate) fn new(
        files: Arc<JournalFiles>,
        sizes: FileSizes,
        last: GroupSequence,
        generation_max: Generation,
    ) -> Self {
        let live = VecDeque::new();
        let next = last.next();
        Self { files, sizes, live, generation_max, next, synced: last, synced_position: 0 }
    }

    /// The sequence of the last group that was written.
    pub(crate) const fn last(&self) -> GroupSequence {
        GroupSequence(self.next.0 - 1)
    }

    /// Whether groups were written that are not known to be durable.
    pub(crate) const fn has_unsynced(&self) -> bool {
        self.synced.0 + 1 < self.next.0
    }

    /// The highest generation that was used.
    pub(crate) const fn generation_max(&self) -> Generation {
        self.generation_max
    }

    /// Where the next group will lie, unless a later generation begins with it.
    pub(crate) fn end(&self) -> GroupPosition {
        match self.live.back() {
            Some(current) if !current.abandoned => {
                GroupPosition { generation: current.generation, position: current.position }
            }
            _ => GroupPosition { generation: Generation(self.generation_max.0 + 1), position: 0 },
        }
    }

    /// Bytes of the groups that a start would have to read.
    pub(crate) fn live_bytes(&self) -> u64 {
        self.live.iter().map(|file| file.position).sum()
    }

    /// Whether there are files before the current one, which a checkpoint may give up.
    pub(crate) fn has_older_files(&self) -> bool {
        self.live.len() > 1
    }

    /// Writes a group behind the last one. It is not durable yet.
    pub(crate) fn write(&mut self, group: &mut GroupBuilder) -> Result<(), WriteFailure> {
        let bytes = group.whole_bytes();
        let fits = |file: &LiveFile| !file.abandoned && file.position + bytes <= file.bytes;
        if !self.live.back().is_some_and(fits) {
            self.sync().map_err(WriteFailure::Broken)?;
            self.begin_file(bytes + BLOCK_BYTES, None)?;
        }
        let current = self.live.back_mut().expect("a file was begun");
        group.seal(current.generation, self.next, self.synced);
        let written = current.file.write_at(current.position, &group.slices());
        written.map_err(WriteFailure::Broken)?;
        current.position += bytes;
        current.last_sequence = self.next;
        self.next = self.next.next();
        if current.position * 2 > current.bytes {
            self.files.prepare((current.bytes * 4).min(self.sizes.max_bytes));
        }
        Ok(())
    }

    /// Makes everything that was written durable. After an error, [`abandon`](Self::abandon).
    pub(crate) fn sync(&mut self) -> io::Result<()> {
        if !self.has_unsynced() {
            return Ok(());
        }
        let current = self.live.back().expect("unsynced groups lie in the current file");
        current.file.sync_data()?;
        self.synced = self.last();
        self.synced_position = current.position;
        Ok(())
    }

    /// Gives the current file up at the end of its last synced group, and begins another one whose
    /// header says so. What was not synced is gone. After an error here there is no journal.
    pub(crate) fn abandon(&mut self) -> Result<(), WriteFailure> {
        self.next = self.synced.next();
        let mut replaced = None;
        if let Some(current) = self.live.back_mut() {
            current.abandoned = true;
            current.last_sequence = current.last_sequence.min(self.synced);
            replaced = Some(GroupPosition {
                generation: current.generation,
                position: self.synced_position,
            });
        }
        self.begin_file(2 * BLOCK_BYTES, replaced)
    }

    /// Takes a file into use; its header is durable when this returns.
    fn begin_file(
        &mut self,
        bytes_min: u64,
        abandoned: Option<GroupPosition>,
    ) -> Result<(), WriteFailure> {
        let bytes = self.live.back().map_or(self.sizes.first_bytes, |current| {
            current.bytes.saturating_mul(4).min(self.sizes.max_bytes)
        });
        let spare = self.files.take(bytes_min, bytes).map_err(WriteFailure::NoFile)?;
        // Used up even when the header can't be synced: it may have reached the medium.
        self.generation_max = Generation(self.generation_max.0 + 1);
        let header = FileHeader {
            generation: self.generation_max,
            first_sequence: self.next,
            file_bytes: spare.bytes,
            abandoned,
        };
        let written =
            spare.file.write_at(0, &[&header.encode()]).and_then(|()| spare.file.sync_data());
        if let Err(error) = written {
            self.files.discard(spare.slot);
            return Err(WriteFailure::Broken(error));
        }
        self.live.push_back(LiveFile {
            slot: spare.slot,
            file: spare.file,
            bytes: spare.bytes,
            generation: header.generation,
            last_sequence: self.synced,
            position: BLOCK_BYTES,
            abandoned: false,
        });
        self.synced_position = BLOCK_BYTES;
        Ok(())
    }

    /// Gives up the files that hold nothing above `sequence`, which a snapshot covers.
    pub(crate) fn release(&mut self, sequence: GroupSequence) {
        while self.live.len() > 1
            && let Some(oldest) = self.live.pop_front_if(|file| file.last_sequence <= sequence)
        {
            let smaller = self.live.back().is_some_and(|current| oldest.bytes < current.bytes);
            let kept = self.files.spare_bytes() + oldest.bytes <= self.sizes.spare_bytes_max;
            if oldest.abandoned || smaller || !kept {
                self.files.discard(oldest.slot);
            } else {
                let LiveFile { slot, file, bytes, .. } = oldest;
                self.files.recycle(SpareFile { slot, file, bytes });
            }
        }
    }
}
