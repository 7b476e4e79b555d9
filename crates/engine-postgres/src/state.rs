//! What is known of a log: of an open one everything, of a closed one what its rows said last.
//!
//! # Invariants
//! - `log_start <= durable_end <= written_end`.
//! - An append, and every change of the log's rows by its owner, is queued under the state's lock: the
//!   lane carries them out in the order in which they were decided on.
//! - Only the last chunk grows.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use strandline_model::{ByteCount, LeaderEpoch, Offset, PartitionId, Timestamp};
use strandline_records::SealedBatches;
use strandline_storage::{
    ChunkInfo, ChunkState, Compacted, Completion, ErrorKind, LogBounds, LogListener, LogSettings,
    StorageError, Stored, Ticket,
};

use crate::facts::{Chunk, Facts};
use crate::queue::Change;
use crate::row::LogRow;

/// A log, whoever holds it.
pub(crate) struct Log {
    pub(crate) id: PartitionId,
    /// Openings, trims, rewrites and removals of the log come one after the other.
    pub(crate) turn: tokio::sync::Mutex<()>,
    pub(crate) state: Mutex<State>,
}

pub(crate) struct State {
    /// The log's key in the tables; 0 until it is known.
    pub(crate) log_id: i64,
    /// Under which the caches know the log: another one in each history of the database.
    pub(crate) cache_id: i64,
    pub(crate) bounds: LogBounds,
    /// Oldest first.
    pub(crate) chunks: Vec<Chunk>,
    pub(crate) compacted: Compacted,
    /// The epoch of the last opener, as far as is known.
    pub(crate) epoch: LeaderEpoch,
    pub(crate) session: i64,
    /// The number of the newest chunk.
    pub(crate) last_number: i64,
    /// The last opener has not closed, as far as is known.
    pub(crate) is_open: bool,
    pub(crate) removing: Option<ByteCount>,
    /// The last entry that a removal took away.
    pub(crate) removed_to: Key,
    pub(crate) quarantined: Option<Timestamp>,
    /// Where it ended before a failover that lost some of it.
    pub(crate) lost: Option<Offset>,
    /// Counts the openings in this run; a handle is of one of them.
    pub(crate) opening: u64,
    pub(crate) opener: Option<Opener>,
    /// Why the handle of the last opening is dead.
    pub(crate) fate: Option<StorageError>,
    /// It was lost what became of an append: the next opening must raise the epoch.
    pub(crate) is_broken: bool,
    pub(crate) is_rewriting: bool,
    /// Tickets of `durable` with the end that each waits for.
    pub(crate) waiting: Vec<(Offset, Completion)>,
}

/// Where an entry stands in its log; the default is before all of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Key {
    pub(crate) chunk: i64,
    pub(crate) next_offset: i64,
}

/// Who has the log open.
pub(crate) struct Opener {
    pub(crate) listener: Arc<dyn LogListener>,
    pub(crate) settings: LogSettings,
}

/// Where an append goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Placement {
    /// The growing chunk with the append in it.
    pub(crate) active: Facts,
    /// The chunk that it closes.
    pub(crate) closed: Option<Facts>,
}

impl Log {
    /// A log of which nothing is known.
    pub(crate) fn new(id: PartitionId) -> Self {
        Self { id, turn: tokio::sync::Mutex::new(()), state: Mutex::new(State::unknown()) }
    }

    /// A log as its rows tell it.
    pub(crate) fn of_rows(row: &LogRow, sealed: impl IntoIterator<Item = Facts>) -> Self {
        let log = Self::new(row.id);
        log.state.lock().take_rows(row, sealed);
        log
    }

    pub(crate) fn stored(&self) -> Option<Stored> {
        let state = self.state.lock();
        let is_there =
            state.log_id != 0 && state.withdrawn(self.id).is_none() && state.lost.is_none();
        is_there.then(|| Stored {
            bounds: state.bounds,
            chunks: state.infos(),
            compacted: state.compacted,
        })
    }

    /// A ticket for everything before `end`.
    pub(crate) fn durable(&self, opening: u64, end: Offset) -> Ticket {
        let mut state = self.state.lock();
        if end <= state.bounds.durable_end {
            return Ticket::settled(Ok(()));
        }
        if let Err(error) = state.check_handle(self.id, opening) {
            return Ticket::settled(Err(error));
        }
        assert!(end <= state.bounds.written_end, "nobody waits for what was never written");
        let (completion, ticket) = Ticket::pair();
        state.waiting.push((end, completion));
        ticket
    }

    /// Everything of `opening` before `end` is durable: tells who wants to know.
    pub(crate) fn publish(&self, opening: u64, end: Offset) {
        let (listener, reached) = {
            let mut state = self.state.lock();
            let rose = state.opening == opening && end > state.bounds.durable_end;
            if !rose {
                return;
            }
            state.bounds.durable_end = end;
            let listener = state.opener.as_ref().map(|opener| Arc::clone(&opener.listener));
            (listener, state.take_reached())
        };
        if let Some(listener) = listener {
            listener.durable_end_moved(end);
        }
        for completion in reached {
            completion.settle(Ok(()));
        }
    }

    /// Ends the handle of `opening`, if it is not dead already, and tells its owner.
    pub(crate) fn kill(&self, opening: u64, error: &StorageError) {
        let (opener, waiting) = {
            let mut state = self.state.lock();
            if state.opening != opening {
                return;
            }
            state.is_broken = true;
            let opener = if state.fate.is_none() { state.opener.take() } else { None };
            let answer = answer_after(self.id, error);
            state.fate.get_or_insert(answer);
            (opener, std::mem::take(&mut state.waiting))
        };
        for (_, completion) in waiting {
            completion.settle(Err(error.clone()));
        }
        if let Some(Opener { listener, .. }) = opener {
            listener.died(error);
        }
    }
}

impl State {
    fn unknown() -> Self {
        Self {
            log_id: 0,
            cache_id: 0,
            bounds: LogBounds::EMPTY,
            chunks: Vec::new(),
            compacted: Compacted::default(),
            epoch: LeaderEpoch::ZERO,
            session: 0,
            last_number: 0,
            is_open: false,
            removing: None,
            removed_to: Key::default(),
            quarantined: None,
            lost: None,
            opening: 0,
            opener: None,
            fate: None,
            is_broken: false,
            is_rewriting: false,
            waiting: Vec::new(),
        }
    }

    /// Everything as the rows have it. Leaves alone who has the log open.
    pub(crate) fn take_rows(&mut self, row: &LogRow, sealed: impl IntoIterator<Item = Facts>) {
        self.log_id = row.log_id;
        self.bounds = LogBounds {
            log_start: row.log_start,
            durable_end: row.end_offset,
            written_end: row.end_offset,
        };
        self.chunks = sealed
            .into_iter()
            .map(|facts| Chunk { facts, state: ChunkState::Sealed })
            .chain(row.active.map(|facts| Chunk { facts, state: ChunkState::Active }))
            .collect();
        // Most logs have few, and there may be very many logs.
        self.chunks.shrink_to_fit();
        self.compacted = row.compacted;
        self.epoch = row.epoch;
        self.session = row.session;
        self.last_number = row.last_number;
        self.is_open = row.is_open;
        self.removing = row.removing;
        self.quarantined = row.quarantined;
        self.lost = row.lost;
    }

    pub(crate) fn infos(&self) -> Vec<ChunkInfo> {
        self.chunks.iter().map(Chunk::info).collect()
    }

    /// Bytes of all chunks.
    pub(crate) fn bytes(&self) -> u64 {
        self.chunks.iter().map(|chunk| chunk.facts.bytes.cast_unsigned()).sum()
    }

    /// Why nobody may have the log open, if so.
    pub(crate) fn withdrawn(&self, id: PartitionId) -> Option<String> {
        if self.removing.is_some() {
            return Some(format!("log is being removed. partition=`{id}`"));
        }
        self.quarantined.map(|_| format!("log is in quarantine. partition=`{id}`"))
    }

    /// A handle of `opening` may read and write.
    pub(crate) fn check_handle(&self, id: PartitionId, opening: u64) -> Result<(), StorageError> {
        if let Some(why) = self.withdrawn(id) {
            return Err(StorageError::new(ErrorKind::Closed, why));
        }
        if self.opening != opening {
            return Err(fenced(id, self.epoch));
        }
        self.fate.clone().map_or(Ok(()), Err)
    }

    /// Takes the completions whose end is durable.
    fn take_reached(&mut self) -> Vec<Completion> {
        let durable_end = self.bounds.durable_end;
        self.waiting.extract_if(.., |(end, _)| *end <= durable_end).map(|(_, done)| done).collect()
    }

    /// Notes `batches` at the written end and says where they go.
    pub(crate) fn place(&mut self, batches: &SealedBatches) -> Placement {
        let opener = self.opener.as_ref().expect("an opener stays known while it holds its handle");
        let settings = &opener.settings;
        let mut closed = None;
        if let Some(Chunk { facts, state: state @ ChunkState::Active }) = self.chunks.last_mut()
            && !facts.has_room(batches, settings)
        {
            *state = ChunkState::Sealed;
            closed = Some(*facts);
        }
        self.bounds.written_end = batches.next_offset();
        let active =
            if let Some(Chunk { facts, state: ChunkState::Active }) = self.chunks.last_mut() {
                facts.add(batches);
                *facts
            } else {
                self.last_number += 1;
                let facts = Facts::begun_by(self.last_number, batches);
                self.chunks.push(Chunk { facts, state: ChunkState::Active });
                facts
            };
        Placement { active, closed }
    }

    /// Closes the growing chunk; `None` when there is none.
    pub(crate) fn seal(&mut self) -> Option<Facts> {
        let chunk = self.chunks.last_mut().filter(|chunk| chunk.state == ChunkState::Active)?;
        chunk.state = ChunkState::Sealed;
        Some(chunk.facts)
    }

    /// What the rows say after a change. Returns the numbers and sizes of the chunks that went.
    pub(crate) fn apply(&mut self, change: &Change) -> Vec<(i64, i64)> {
        let gone = match change {
            Change::Seal(_) | Change::SaveState { .. } | Change::BeginChunk(_) => &[],
            Change::NoteCompacted(compacted) => {
                self.compacted = *compacted;
                &[][..]
            }
            Change::Trim { log_start, dropped } => {
                self.bounds.log_start = self.bounds.log_start.max(*log_start);
                dropped
            }
            Change::Replace { facts, replaced, .. } => {
                let is_old = |chunk: &Chunk| replaced.contains(&chunk.facts.number);
                let at = self.chunks.iter().position(is_old).unwrap_or(self.chunks.len());
                if let Some(facts) = facts {
                    self.chunks.insert(at, Chunk { facts: *facts, state: ChunkState::Sealed });
                }
                replaced
            }
        };
        let went = self.chunks.extract_if(.., |chunk| gone.contains(&chunk.facts.number));
        let mut went: Vec<_> = went.map(|chunk| (chunk.facts.number, chunk.facts.bytes)).collect();
        if let Change::Replace { number, facts: None, .. } = change {
            went.push((*number, 0));
        }
        went
    }

    /// An offset that a caller got from somewhere else than the log.
    pub(crate) fn check_durable(&self, what: &str, offset: Offset) -> Result<(), StorageError> {
        let durable_end = self.bounds.durable_end;
        if offset <= durable_end {
            return Ok(());
        }
        let message = format!(
            "{what} lies past the durable end. {what}=`{offset}`, durable_end=`{durable_end}`"
        );
        Err(StorageError::new(ErrorKind::Invalid, message))
    }
}

/// What whoever was superseded is told.
pub(crate) fn fenced(id: PartitionId, owner: LeaderEpoch) -> StorageError {
    let message = format!("a later opener owns the log. partition=`{id}`, owner=`{owner}`");
    StorageError::new(ErrorKind::Fenced, message)
}

/// What the calls of a handle answer once `error` has happened to it.
fn answer_after(id: PartitionId, error: &StorageError) -> StorageError {
    if error.kind() == ErrorKind::Fenced {
        return error.clone();
    }
    let message = format!("log failed before and must be opened again. partition=`{id}`");
    StorageError::new(ErrorKind::Closed, message).caused_by(error.clone())
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.lock();
        f.debug_struct("Log")
            .field("id", &self.id)
            .field("epoch", &state.epoch)
            .field("bounds", &state.bounds)
            .finish_non_exhaustive()
    }
}
