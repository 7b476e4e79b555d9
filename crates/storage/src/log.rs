//! The commit log of a partition, and the store that opens, lists and removes such logs.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use strandline_model::{ByteCount, LeaderEpoch, Offset, PartitionId, Timestamp};
use strandline_records::SealedBatches;

use crate::{
    AppendError, BatchBytes, BoxFuture, Figure, ReadError, ReadLimit, StorageError, Ticket, Trouble,
};

/// The factory of commit logs, one per partition. Knows ids, offsets and sealed batches.
pub trait LogStore: Debug + Send + Sync {
    /// Opens a log, creating it when nothing was ever stored under that id.
    ///
    /// Claims an epoch (at least `at_least`, raised after an unclean stop) and fences every earlier
    /// opener. The claim is durable before the first append of that epoch is. A log that was never
    /// appended to costs no file. Fails with `Missing`, and never returns an empty log, when the
    /// engine's rows say that bytes existed; with `Corrupt`, now and later, when what was durable was
    /// found damaged; with `Invalid` once removal has begun, or while the log is in quarantine.
    fn open(&self, request: OpenLog) -> BoxFuture<'_, Result<Opened, StorageError>>;

    /// The epoch of the log's opener or, while it has none, the one that [`open`](Self::open) would
    /// claim as far as memory knows; `None` when it would have to look.
    fn epoch(&self, id: PartitionId) -> Option<LeaderEpoch>;

    /// What is stored of a log, as far as memory knows, without opening it or touching the disk: of
    /// an open one what its handle would say. `None` when nothing is known, or it can't be opened.
    fn stored(&self, id: PartitionId) -> Option<Stored>;

    /// Every partition that owns bytes or rows here, in quarantine or not: orphans are found by
    /// comparing.
    fn list(&self) -> BoxFuture<'_, Result<Vec<PartitionId>, StorageError>>;

    /// Removes up to `budget` bytes of a log that nobody will open again.
    ///
    /// Bounded, idempotent, resumable after a crash; the intent is durable before the first byte
    /// goes. An open handle of the log is closed. [`Removal::Done`] is durable when it is returned.
    fn remove_some(
        &self,
        id: PartitionId,
        budget: ByteCount,
    ) -> BoxFuture<'_, Result<Removal, StorageError>>;

    /// Takes a log that nobody knows out of service and sets aside what is stored of it.
    ///
    /// Durable when it returns, idempotent, completed by another call after a crash. An open handle of
    /// the log is closed; what it had submitted is kept. Nothing is lost: [`release`](Self::release)
    /// brings the log back, [`remove_some`](Self::remove_some) removes it. Of several calls the first
    /// `since` is kept. Does nothing when nothing is stored; `Invalid` once removal has begun.
    fn quarantine(
        &self,
        id: PartitionId,
        since: Timestamp,
    ) -> BoxFuture<'_, Result<(), StorageError>>;

    /// Ends the quarantine of a log, which is as it was before. Durable when it returns, idempotent,
    /// completed by another call after a crash; does nothing when the log is in none.
    fn release(&self, id: PartitionId) -> BoxFuture<'_, Result<(), StorageError>>;

    /// The logs in quarantine, in order.
    fn quarantined(&self) -> BoxFuture<'_, Result<Vec<Quarantined>, StorageError>>;

    /// The logs of which something durable is known to be gone, and those that could not be looked at,
    /// in order: by a look at what is there, not at what it holds. What is gone is never served as if it
    /// had not been there: an open handle of a log that has lost what it needs is ended, and whoever
    /// opens it again meets what an opening checks. What is only open any more is put back where it was.
    /// A log that could not be looked at is no failure of the look.
    fn lost(&self) -> BoxFuture<'_, Result<Vec<Lost>, StorageError>>;

    /// What lies among the logs and is no part of any, by names that people find it by: somebody put it
    /// there. It is told of and left alone; a bounded number of them, in order.
    fn foreign(&self) -> BoxFuture<'_, Result<Vec<String>, StorageError>>;

    /// Reads and checks everything of a log, changing nothing.
    fn verify(&self, id: PartitionId) -> BoxFuture<'_, Result<Vec<Finding>, StorageError>>;

    /// How much is stored and how much more may be.
    fn space(&self) -> Space;

    /// What keeps the engine from its work, as far as it knows without asking anybody; `None` while it
    /// knows of nothing. It ends by itself: whoever is refused meanwhile with
    /// [`Unavailable`](crate::ErrorKind::Unavailable) may try again.
    fn trouble(&self) -> Option<Trouble>;

    /// What the engine counts and measures beside [`space`](Self::space). Cheap; always the same names,
    /// in the same order.
    fn figures(&self) -> Vec<Figure>;

    /// Makes everything durable and marks the stop as clean. Later calls answer `Closed`.
    fn close(&self) -> BoxFuture<'_, Result<(), StorageError>>;
}

/// The commit log of one partition. One opener at a time writes; anybody who holds it reads.
///
/// Whoever needs it no more lets go of it. What was submitted goes on, the listener hears of no death,
/// and the next [`open`](LogStore::open) finds everything; until then [`stored`](LogStore::stored)
/// tells of it. An engine keeps little more than what is stored then.
pub trait CommitLog: Debug + Send + Sync {
    /// Where the log begins and ends. Cheap.
    fn bounds(&self) -> LogBounds;

    /// Appends, if the log still ends `at` the base offset of `batches`.
    ///
    /// Never blocks. Called in offset order, under the partition's lock; submits follow each other
    /// without waiting for earlier ones. When it fails nothing was written. The ticket resolves when
    /// the batches are durable as [`LogSettings::durability`] means it; after a failed ticket the
    /// handle is dead.
    fn submit(&self, at: Offset, batches: SealedBatches) -> Result<Ticket, AppendError>;

    /// Resolves when a submit that was refused with [`AppendError::Busy`] is worth trying again.
    fn ready(&self) -> BoxFuture<'_, ()>;

    /// A ticket for everything before `end`, which must not lie past the written end: what the
    /// answer to a duplicate waits for.
    fn durable(&self, end: Offset) -> Ticket;

    /// Whole batches from the one that holds `from` on, none of which begins at or after `upto`.
    ///
    /// `upto` must not lie past the durable end. At `from == durable end` the result is empty.
    fn read(
        &self,
        from: Offset,
        upto: Offset,
        limit: ReadLimit,
    ) -> BoxFuture<'_, Result<BatchBytes, ReadError>>;

    /// The first durable batch at or after the log start whose newest timestamp is at least `at`.
    fn find_timestamp(&self, at: Timestamp) -> BoxFuture<'_, Result<Option<BatchInfo>, ReadError>>;

    /// Closes the active chunk, so that retention may drop it. Does nothing when it is empty.
    fn roll(&self) -> BoxFuture<'_, Result<(), StorageError>>;

    /// Raises the log start to `log_start` (a lower one changes nothing) and drops the chunks that
    /// lie wholly below it. Durable when it returns. `log_start` must not lie past the durable end.
    fn trim(&self, log_start: Offset) -> BoxFuture<'_, Result<LogBounds, StorageError>>;

    /// The chunks, oldest first, the active one last; empty when nothing is stored.
    fn chunks(&self) -> Vec<ChunkInfo>;

    /// Takes new settings from the next append on.
    fn configure(&self, settings: LogSettings);

    /// Keeps `state` as what the log's readers derived from everything before `at`.
    ///
    /// Opaque to the engine; replaces the earlier one. `at` must not lie past the durable end.
    fn save_state(&self, at: Offset, state: Bytes) -> BoxFuture<'_, Result<(), StorageError>>;

    /// The last saved state. After a crash it may be an earlier one, never one above the durable end.
    fn load_state(&self) -> BoxFuture<'_, Result<Option<(Offset, Bytes)>, StorageError>>;

    /// Begins to replace the chunks from `first` to `last`, which are sealed and durable, by one that
    /// is written now: compaction. One rewrite of a log at a time; `Unavailable` while there is
    /// another, or when there are no such chunks.
    fn rewrite(
        &self,
        first: ChunkId,
        last: ChunkId,
    ) -> BoxFuture<'_, Result<Box<dyn ChunkRewrite>, StorageError>>;

    /// How far the log is compacted, as it was [noted](Self::note_compacted) last.
    fn compacted(&self) -> Compacted;

    /// Keeps how far the log is compacted. After a crash it may be what was noted before, never what
    /// was noted before a rewrite that is lost. The clean end must not lie past the durable end.
    fn note_compacted(&self, compacted: Compacted) -> BoxFuture<'_, Result<(), StorageError>>;
}

/// A chunk that is being written, to take the place of others.
///
/// Nobody reads it before it is [committed](Self::commit), and when it is dropped before that,
/// nothing has happened; what was written goes by itself.
pub trait ChunkRewrite: Debug + Send {
    /// Adds whole batches, sealed, behind those that were added before.
    ///
    /// Their checksums are checked. Offsets rise and lie within those of the chunks that are
    /// replaced; between batches there may be holes. After an error the rewrite is of no use.
    fn add(&mut self, batches: Bytes) -> BoxFuture<'_, Result<(), StorageError>>;

    /// Puts what was added in the place of the chunks, in one step: after a crash at any moment the
    /// log has either. Durable when it returns.
    ///
    /// Without any batch the chunks go without replacement. The end of the last chunk of a log never
    /// goes: its replacement ends where it ended, or is refused with `Invalid`. `Unavailable` when the
    /// chunks were dropped meanwhile; nothing is replaced then. After any other error either may have
    /// happened.
    fn commit(self: Box<Self>) -> BoxFuture<'static, Result<(), StorageError>>;
}

/// What an engine tells the owner of an open log. Called on the engine's own threads, in order and
/// without any lock of the engine held; must not block.
pub trait LogListener: Debug + Send + Sync {
    /// Everything before `end` is durable: the high watermark.
    ///
    /// [`CommitLog::bounds`] says so already, and the tickets of what lies before `end` resolve only
    /// after this call: a producer that was answered finds its records at once.
    fn durable_end_moved(&self, end: Offset);

    /// The handle is dead. Tickets fail with `error`; the log must be opened again.
    fn died(&self, error: &StorageError);
}

/// A request to open a log.
#[derive(Clone, Debug)]
pub struct OpenLog {
    /// Whose log.
    pub id: PartitionId,
    /// The lowest epoch to claim.
    pub at_least: LeaderEpoch,
    /// How to keep it.
    pub settings: LogSettings,
    /// Whom to tell of progress and death.
    pub listener: Arc<dyn LogListener>,
}

/// An open log.
#[derive(Clone, Debug)]
pub struct Opened {
    /// The handle.
    pub log: Arc<dyn CommitLog>,
    /// The epoch that was claimed: batches are sealed with it.
    pub epoch: LeaderEpoch,
    /// In what state the log was.
    pub found: Found,
}

/// What is stored of a log that need not be open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// Where it begins and ends.
    pub bounds: LogBounds,
    /// Its chunks, oldest first.
    pub chunks: Vec<ChunkInfo>,
    /// How far it is compacted.
    pub compacted: Compacted,
}

/// How far a log is compacted, in its owner's words: the engine only keeps them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Compacted {
    /// Everything below was compacted; 0: nothing was.
    pub clean_end: Offset,
    /// The earliest time at which some of it may go.
    pub delete_horizon: Option<Timestamp>,
}

/// In what state a log was when it was opened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// There was none.
    Created,
    /// It was closed cleanly, or nothing was ever lost.
    Clean,
    /// The last opener stopped without closing: the end was found by recovery.
    Unclean,
}

/// The borders of a log: `log_start <= durable_end <= written_end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogBounds {
    /// The first offset that may be read.
    pub log_start: Offset,
    /// The first offset that is not durable yet: the high watermark.
    pub durable_end: Offset,
    /// The first offset that is not assigned yet.
    pub written_end: Offset,
}

impl LogBounds {
    /// The bounds of a log that was never appended to.
    pub const EMPTY: Self =
        Self { log_start: Offset::ZERO, durable_end: Offset::ZERO, written_end: Offset::ZERO };
}

/// How to keep a log. Every field may change at run time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogSettings {
    /// A chunk is closed before it would grow past this (`segment.bytes`).
    pub segment_bytes: ByteCount,
    /// A chunk is closed before an append that would make it span more offsets than this; one append
    /// alone may. `u64::MAX`: no limit.
    pub segment_records: u64,
    /// A chunk is closed when its first append is older than this (`segment.ms`).
    pub segment_age: Duration,
    /// Bytes between two entries of the offset index (`index.interval.bytes`).
    pub index_interval_bytes: ByteCount,
    /// What an acknowledgement waits for.
    pub durability: Durability,
}

/// What "durable" means: what a ticket, and the high watermark, wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// On stable storage: synced, or committed in the shared engine. Survives power loss.
    Commit,
    /// Written; synced within the interval. Survives the process, not power loss.
    Interval(Duration),
    /// Written; synced when the engine sees fit. Survives the process, not power loss.
    Never,
}

/// A batch found by a lookup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BatchInfo {
    /// The offset of its first record.
    pub base_offset: Offset,
    /// The offset after its last record.
    pub next_offset: Offset,
    /// The newest timestamp of its records.
    pub max_timestamp: Timestamp,
    /// The epoch it was appended in.
    pub leader_epoch: LeaderEpoch,
}

/// The identity of a chunk within its log: the offset of its first record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChunkId(pub Offset);

/// A unit of removal: a segment file, an extent, an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChunkInfo {
    /// Which one.
    pub id: ChunkId,
    /// What people find it by: a file's name.
    pub name: String,
    /// Whether it still grows.
    pub state: ChunkState,
    /// Bytes of its batches.
    pub bytes: ByteCount,
    /// The offset of its first record.
    pub base_offset: Offset,
    /// The offset after its last record.
    pub next_offset: Offset,
    /// The newest timestamp of its records; `None` when none has one.
    pub max_timestamp: Option<Timestamp>,
    /// When its first batch was appended, by the broker's clock.
    pub first_appended_at: Timestamp,
    /// When its last batch was appended, by the broker's clock.
    pub last_appended_at: Timestamp,
}

/// Whether a chunk still grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkState {
    /// Appends go here.
    Active,
    /// Never written again.
    Sealed,
}

/// What is left after a step of removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Removal {
    /// Nothing of the log is left, durably.
    Done,
    /// About this many bytes.
    Remaining(ByteCount),
}

/// A log in quarantine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quarantined {
    /// Which one.
    pub id: PartitionId,
    /// Since when, by the clock of whoever put it there.
    pub since: Timestamp,
    /// Bytes that are set aside.
    pub bytes: ByteCount,
}

/// A log of which something durable is gone, or may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    /// Which one.
    pub id: PartitionId,
    /// What, as a lower-case fact.
    pub what: String,
    /// Whether that is known.
    pub certainty: LossCertainty,
}

/// What a look at a log could tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossCertainty {
    /// Something is gone, and the log is served to nobody for it.
    Gone,
    /// A part of it is gone; the rest is there to be read, and the log goes on.
    InPart,
    /// Nobody knows: the log could not be looked at. It may be whole.
    Unreadable,
}

/// Something wrong that [`LogStore::verify`] found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The chunk, by its display name.
    pub chunk: String,
    /// Where in it, in bytes from its start.
    pub position: u64,
    /// What is wrong, as a lower-case fact.
    pub message: String,
}

/// How much an engine holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Space {
    /// Bytes that the engine occupies.
    pub used: ByteCount,
    /// Bytes of dropped chunks that are still there, beside `used`: somebody reads them, or their
    /// removal is under way.
    pub dropped: ByteCount,
    /// Bytes that may still be written; `None` when the engine can't know.
    pub free: Option<ByteCount>,
    /// Bytes below which appends are refused, so that metadata and removals still fit.
    pub reserve: ByteCount,
}

impl Space {
    /// Bytes that appends may still fill; `None` when the engine can't know.
    pub fn room(&self) -> Option<ByteCount> {
        self.free.map(|free| free.saturating_sub(self.reserve))
    }

    /// Whether appends are refused for lack of space.
    pub fn is_full(&self) -> bool {
        self.room() == Some(ByteCount::ZERO)
    }
}
