//! The files of the journal that are not in use: made, filled with zeros, recycled, removed.
//!
//! A thread of its own does the slow part, so that the commit thread finds the next file ready. When
//! it does not, it waits for the one under way, or makes one itself.

use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};

use parking_lot::{Condvar, Mutex};

use super::{BLOCK_BYTES, FOLDER, Slot};
use crate::disk::{Disk, DiskFile, OpenMode};

/// A file that may be used for the next generation.
#[derive(Clone, Debug)]
pub(crate) struct SpareFile {
    pub(crate) slot: Slot,
    pub(crate) file: Arc<dyn DiskFile>,
    pub(crate) bytes: u64,
}

/// Spare files, and the thread that keeps them. Dropping it ends the thread.
#[derive(Debug)]
pub(crate) struct JournalFiles {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Debug)]
struct Shared {
    disk: Arc<dyn Disk>,
    state: Mutex<State>,
    work: Condvar,
    /// A wanted file was made, or could not be.
    made: Condvar,
}

#[derive(Debug)]
struct State {
    spare: Vec<SpareFile>,
    next_slot: u32,
    /// Bytes of a file that somebody will need soon.
    wanted: Option<u64>,
    /// Files that nobody will need again.
    discarded: VecDeque<Slot>,
    stopping: bool,
}

impl JournalFiles {
    /// Begins with files that an earlier run left.
    pub(crate) fn start(
        disk: Arc<dyn Disk>,
        spare: Vec<SpareFile>,
        next_slot: u32,
    ) -> io::Result<Self> {
        let state = Mutex::new(State {
            spare,
            next_slot,
            wanted: None,
            discarded: VecDeque::new(),
            stopping: false,
        });
        let shared = Arc::new(Shared { disk, state, work: Condvar::new(), made: Condvar::new() });
        let worker = Arc::clone(&shared);
        let thread =
            Builder::new().name("strandline-journal".to_owned()).spawn(move || worker.run())?;
        Ok(Self { shared, thread: Some(thread) })
    }

    /// Removes spare files that are too short to be used or, beside the largest, exceed `bytes_max`.
    pub(crate) fn discard_surplus(&self, bytes_max: u64) {
        let mut state = self.shared.state.lock();
        let State { spare, discarded, .. } = &mut *state;
        spare.sort_by_key(|file| std::cmp::Reverse(file.bytes));
        let mut kept = 0;
        discarded.extend(
            spare
                .extract_if(.., |file| {
                    kept += file.bytes;
                    kept > bytes_max || file.bytes < 2 * BLOCK_BYTES
                })
                .map(|file| file.slot),
        );
        self.shared.work.notify_one();
    }

    /// Asks for a spare file of `bytes`, unless there is one that large.
    pub(crate) fn prepare(&self, bytes: u64) {
        let mut state = self.shared.state.lock();
        if !state.stopping
            && state.wanted.is_none()
            && !state.spare.iter().any(|spare| spare.bytes >= bytes)
        {
            state.wanted = Some(bytes);
            self.shared.work.notify_one();
        }
    }

    /// A file of at least `bytes_min`: a spare one, the one that is being made, or else one made at
    /// once of `bytes`.
    pub(crate) fn take(&self, bytes_min: u64, bytes: u64) -> io::Result<SpareFile> {
        let slot = {
            let mut state = self.shared.state.lock();
            loop {
                let found = state.spare.iter().position(|spare| spare.bytes >= bytes_min);
                if let Some(index) = found {
                    return Ok(state.spare.swap_remove(index));
                }
                if state.wanted.is_none_or(|wanted| wanted < bytes_min) {
                    break state.take_slot();
                }
                self.shared.made.wait(&mut state);
            }
        };
        self.shared.make(slot, bytes.max(bytes_min))
    }

    /// Keeps a file whose groups nobody needs any more for later use.
    pub(crate) fn recycle(&self, file: SpareFile) {
        self.shared.state.lock().spare.push(file);
    }

    /// Removes a file that must not be used again.
    pub(crate) fn discard(&self, slot: Slot) {
        self.shared.state.lock().discarded.push_back(slot);
        self.shared.work.notify_one();
    }

    /// Bytes of all spare files.
    pub(crate) fn spare_bytes(&self) -> u64 {
        self.shared.state.lock().spare.iter().map(|spare| spare.bytes).sum()
    }
}

impl Drop for JournalFiles {
    fn drop(&mut self) {
        self.shared.state.lock().stopping = true;
        self.shared.work.notify_one();
        if let Some(thread) = self.thread.take() {
            // A panic of that thread was printed by it; there is nobody left to tell.
            drop(thread.join());
        }
    }
}

impl State {
    fn take_slot(&mut self) -> Slot {
        self.next_slot += 1;
        Slot(self.next_slot - 1)
    }
}

/// Nobody is to wait for a file once the thread is gone, even by a panic.
struct Gone<'a>(&'a Shared);

impl Drop for Gone<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state.lock();
        state.stopping = true;
        state.wanted = None;
        self.0.made.notify_all();
    }
}

enum Work {
    Make(Slot, u64),
    Remove(Slot),
    Stop,
}

impl Shared {
    fn run(&self) {
        let _gone = Gone(self);
        loop {
            match self.next_work() {
                Work::Make(slot, bytes) => {
                    // Without a spare file the commit thread makes one and meets the error itself.
                    let made = self.make(slot, bytes);
                    let mut state = self.state.lock();
                    state.wanted = None;
                    state.spare.extend(made.ok());
                    self.made.notify_all();
                }
                Work::Remove(slot) => {
                    // A file that stays is found by the next start and reused there.
                    drop(self.disk.remove_file(&slot.path()));
                }
                Work::Stop => return,
            }
        }
    }

    fn next_work(&self) -> Work {
        let mut state = self.state.lock();
        loop {
            if state.stopping {
                return Work::Stop;
            }
            if let Some(bytes) = state.wanted {
                return Work::Make(state.take_slot(), bytes);
            }
            if let Some(slot) = state.discarded.pop_front() {
                return Work::Remove(slot);
            }
            self.work.wait(&mut state);
        }
    }

    /// Makes a file, fills it with zeros and makes it and its name durable.
    fn make(&self, slot: Slot, bytes: u64) -> io::Result<SpareFile> {
        let path = slot.path();
        let file = self.disk.open(&path, OpenMode::New)?;
        let filled = file
            .write_zeros(0, bytes.next_multiple_of(BLOCK_BYTES))
            .and_then(|()| file.sync_data())
            .and_then(|()| self.disk.sync_dir(Path::new(FOLDER)));
        if let Err(error) = filled {
            drop(self.disk.remove_file(&path));
            return Err(error);
        }
        Ok(SpareFile { slot, file, bytes: bytes.next_multiple_of(BLOCK_BYTES) })
    }
}
