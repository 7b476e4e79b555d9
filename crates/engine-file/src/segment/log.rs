//! The log of one partition: its segments in order, and who may do what with them when.

use std::collections::VecDeque;
use std::sync::Arc;

use parking_lot::Mutex;
use strandline_model::{ByteCount, Offset, PartitionId};
use strandline_storage::{ChunkInfo, ErrorKind, LogSettings, StorageError};

use super::SegmentFacts;
use super::append::{Cursor, Growing};
use super::find::Search;
use super::live::Segment;
use super::name::{FileKind, SegmentName};
use super::store::SegmentStore;

/// The log of one partition. Shared by one writer and any number of readers.
///
/// The writer [places](Self::place) batches, in order, and [writes](Self::write) them where they were
/// placed, in the same order. After a failed write the log takes no more: it is to be opened again.
#[derive(Debug)]
pub(crate) struct SegmentLog {
    pub(super) store: Arc<SegmentStore>,
    pub(super) id: PartitionId,
    /// While a journal is replayed.
    pub(super) replay: Option<ReplayOfLog>,
    /// Held for the whole of a write, and by nobody but writers.
    pub(super) writer: Mutex<Growing>,
    /// Never held during I/O.
    pub(super) state: Mutex<State>,
}

/// What a log is known to hold that its facts do not tell, while a journal is replayed that may.
#[derive(Debug)]
pub(super) struct ReplayOfLog {
    /// The first segment that may hold more than is known of it.
    pub(super) from: Offset,
    /// Segments that were found beyond the facts.
    pub(super) beyond: Vec<SegmentName>,
    /// Files of rescued batches were found.
    pub(super) has_rescues: bool,
}

#[derive(Debug)]
pub(super) struct State {
    /// Oldest first; the last one may grow.
    pub(super) segments: VecDeque<Arc<Segment>>,
    /// Segments that lie below the log start and whose files are still there.
    pub(super) dropped: VecDeque<Arc<Segment>>,
    /// Where the next batches will be placed: ahead of what is written.
    pub(super) cursor: Cursor,
    /// The offset after the last record that is written.
    pub(super) written_end: Offset,
    pub(super) settings: LogSettings,
    pub(super) is_failed: bool,
}

impl SegmentLog {
    /// Whose log it is.
    pub(crate) const fn id(&self) -> PartitionId {
        self.id
    }

    /// The offset after the last record that is in its segment.
    pub(crate) fn written_end(&self) -> Offset {
        self.state.lock().written_end
    }

    /// The segments, oldest first.
    pub(crate) fn chunks(&self) -> Vec<ChunkInfo> {
        let infos = self.segments().into_iter().map(|segment| segment.info());
        infos.filter(|info| info.bytes > ByteCount::ZERO).collect()
    }

    /// What the engine is to remember of the segments, oldest first.
    pub(crate) fn facts(&self) -> Vec<SegmentFacts> {
        let facts = self.segments().into_iter().map(|segment| segment.facts());
        facts.filter(|facts| facts.bytes > 0).collect()
    }

    /// Takes new settings from the next placement on.
    pub(crate) fn configure(&self, settings: LogSettings) {
        self.state.lock().settings = settings;
    }

    /// Brings the index of the last segment into memory if it is not there, and saves what its files
    /// lack, if that is worth a write. Derived data: errors only cost time when the log is opened
    /// again. To be called at checkpoints and before a clean stop, by a thread that may block.
    pub(crate) fn save_index(&self) {
        let last = self.state.lock().segments.back().map(Arc::clone);
        if let Some(last) = last {
            let interval = self.search().interval;
            last.save_index(&self.store, interval, self.store.options.index_save_entries);
        }
    }

    /// Whether [`save_index`](Self::save_index) would write something.
    pub(crate) fn has_index_to_save(&self) -> bool {
        let last = self.state.lock().segments.back().map(Arc::clone);
        last.is_some_and(|last| last.has_index_to_save(self.store.options.index_save_entries))
    }

    pub(super) fn segments(&self) -> Vec<Arc<Segment>> {
        self.state.lock().segments.iter().map(Arc::clone).collect()
    }

    pub(super) fn search(&self) -> Search<'_> {
        let interval = self.state.lock().settings.index_interval_bytes.get();
        Search { store: &self.store, interval }
    }
}

/// Nobody writes or reads the log any more: its files need not be open. Those that are unsynced, or in
/// the hands of a reader, stay.
impl Drop for SegmentLog {
    fn drop(&mut self) {
        let state = self.state.get_mut();
        for segment in state.segments.iter().chain(&state.dropped) {
            for kind in FileKind::ALL {
                self.store.files.close_unused(segment.key(kind));
            }
        }
    }
}

impl State {
    pub(super) fn check_alive(&self) -> Result<(), StorageError> {
        if self.is_failed {
            let message = "log failed before and is to be opened again";
            return Err(StorageError::new(ErrorKind::Closed, message));
        }
        Ok(())
    }
}
