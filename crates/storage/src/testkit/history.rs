//! Random histories of one log, compared with a model that is a list of batches.

use bytes::Bytes;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestError, TestRunner};
use strandline_model::{ByteCount, Offset, Timestamp};

use super::chunk::assert_chunks_describe;
use super::{Appended, Engine, Factory, Stop, Subject, TestBatch, run_blocking, runtime, settings};
use crate::{ChunkState, Found, LogSettings, Minimum, ReadLimit, Ticket};

const HISTORIES: u32 = 64;
const STEPS_MAX: usize = 50;

/// One thing that happens to a log. Offsets are given in 255ths of what the log holds.
#[derive(Clone, Debug)]
enum Step {
    Append(TestBatch),
    Submit(TestBatch),
    Settle,
    Trim(u8),
    Roll,
    /// Rewrite the sealed chunks from one part on, without those batches whose bit is not set.
    Rewrite {
        from: u8,
        count: usize,
        kept: u64,
    },
    Read {
        from: u8,
        upto: u8,
        bytes: u64,
        minimum: Minimum,
    },
    FindTimestamp(i64),
    SegmentBytes(u64),
    Save(u8),
    Reopen,
    Fence,
    Restart(Stop),
}

fn batch() -> impl Strategy<Value = TestBatch> {
    (1_u32..5, 0_usize..600, prop::option::of(0_i64..1000)).prop_map(|(records, size, stamp)| {
        TestBatch::of(records).value_bytes(size).stamped(stamp.map(Timestamp::from_millis))
    })
}

fn step() -> impl Strategy<Value = Step> {
    let minimum = prop_oneof![Just(Minimum::Nothing), Just(Minimum::OneBatch)];
    let read = (any::<u8>(), any::<u8>(), 0_u64..8000, minimum);
    prop_oneof![
        8 => batch().prop_map(Step::Append),
        8 => batch().prop_map(Step::Submit),
        2 => Just(Step::Settle),
        2 => any::<u8>().prop_map(Step::Trim),
        2 => Just(Step::Roll),
        3 => (any::<u8>(), 1..4_usize, any::<u64>())
            .prop_map(|(from, count, kept)| Step::Rewrite { from, count, kept }),
        6 => read.prop_map(|(from, upto, bytes, minimum)| Step::Read { from, upto, bytes, minimum }),
        2 => (0_i64..1100).prop_map(Step::FindTimestamp),
        1 => (1_u64..6000).prop_map(Step::SegmentBytes),
        2 => any::<u8>().prop_map(Step::Save),
        1 => Just(Step::Reopen),
        1 => Just(Step::Fence),
        1 => Just(Step::Restart(Stop::Clean)),
        1 => Just(Step::Restart(Stop::Crash)),
    ]
}

/// Plays random histories; the shortest that disagrees with the model is the failure.
///
/// # Panics
/// When a history disagrees, or hangs.
pub fn random_histories_agree_with_the_model<F: Factory>(make: impl Fn() -> F + Send + 'static) {
    run_blocking(move || {
        let config = Config { cases: HISTORIES, failure_persistence: None, ..Config::default() };
        let histories = prop::collection::vec(step(), 1..STEPS_MAX);
        let outcome = TestRunner::new(config).run(&histories, |steps| {
            runtime().block_on(play(make(), steps));
            Ok(())
        });
        match outcome {
            Ok(()) => {}
            Err(TestError::Fail(reason, steps)) => panic!("{reason}\nafter {steps:#?}"),
            Err(TestError::Abort(reason)) => panic!("{reason}"),
        }
    });
}

async fn play(mut factory: impl Factory, steps: Vec<Step>) {
    let mut player = Player::begin(factory.make().await).await;
    for step in steps {
        player = player.take(step, &mut factory).await;
        player.check();
    }
    player.settle().await;
    player.subject.assert_holds(&player.batches).await;
}

/// The log and its model.
struct Player {
    engine: Engine,
    subject: Subject,
    /// Everything that was appended and not lost, trimmed or not.
    batches: Vec<Appended>,
    log_start: Offset,
    acknowledged: Offset,
    pending: Vec<(Offset, Ticket)>,
    saved: Vec<(Offset, Bytes)>,
}

impl Player {
    async fn begin(engine: Engine) -> Self {
        let subject = Subject::open(&engine, 0).await;
        Self {
            engine,
            subject,
            batches: Vec::new(),
            log_start: Offset::ZERO,
            acknowledged: Offset::ZERO,
            pending: Vec::new(),
            saved: Vec::new(),
        }
    }

    async fn take(mut self, step: Step, factory: &mut impl Factory) -> Self {
        let log = &self.subject.log;
        match step {
            Step::Append(batch) => {
                self.submit(batch).await;
                self.settle().await;
            }
            Step::Submit(batch) => self.submit(batch).await,
            Step::Settle => self.settle().await,
            Step::Trim(part) => {
                let log_start = self.offset(part);
                log.trim(log_start).await.expect("trims");
                self.log_start = log_start;
            }
            Step::Roll => log.roll().await.expect("rolls"),
            Step::Rewrite { from, count, kept } => self.rewrite(from, count, kept).await,
            Step::Read { from, upto, bytes, minimum } => {
                let limit = ReadLimit { bytes: ByteCount::new(bytes), minimum };
                self.read(self.offset(from), self.offset(upto), limit).await;
            }
            Step::FindTimestamp(millis) => self.find(Timestamp::from_millis(millis)).await,
            Step::SegmentBytes(bytes) => {
                log.configure(LogSettings { segment_bytes: ByteCount::new(bytes), ..settings() });
            }
            Step::Save(part) => {
                let at = self.offset(part);
                let state = Bytes::from(format!("state {} at {at}", self.saved.len()));
                log.save_state(at, state.clone()).await.expect("saves");
                self.saved.push((at, state));
            }
            Step::Reopen => {
                drop(std::mem::replace(&mut self.subject, Subject::open(&self.engine, 1).await));
                self.reopen().await;
            }
            Step::Fence => self.reopen().await,
            Step::Restart(stop) => return self.restart(factory, stop).await,
        }
        self
    }

    /// The offset that lies `part` 255ths on the way from the log start to the durable end.
    fn offset(&self, part: u8) -> Offset {
        let begin = self.log_start.get();
        let span = self.subject.log.bounds().durable_end.get() - begin;
        Offset::new(begin + span * i64::from(part) / 255)
    }

    async fn submit(&mut self, batch: TestBatch) {
        let (appended, ticket) = self.subject.submit(batch).await;
        self.pending.push((appended.offsets.end, ticket));
        self.batches.push(appended);
    }

    async fn settle(&mut self) {
        for (end, ticket) in self.pending.drain(..) {
            ticket.await.expect("durable");
            self.acknowledged = self.acknowledged.max(end);
        }
    }

    async fn rewrite(&mut self, from: u8, count: usize, kept: u64) {
        self.settle().await;
        let mut chunks = self.subject.log.chunks();
        chunks.retain(|chunk| chunk.state == ChunkState::Sealed);
        let skip = chunks.len() * usize::from(from) / 256;
        let part: Vec<_> = chunks.into_iter().skip(skip).take(count).collect();
        let Some(end) = part.last().map(|last| last.next_offset) else { return };
        let begin = part[0].base_offset;
        let mut index = 0_u32;
        let log_start = self.log_start;
        let stays = |batch: &Appended| {
            index += 1;
            // Nobody can read what lies below the log start.
            let is_readable = batch.offsets.end > log_start;
            batch.offsets.end == end || is_readable && kept >> (index % 64) & 1 == 1
        };
        let is_in = |batch: &Appended| batch.offsets.start >= begin && batch.offsets.end <= end;
        let old: Vec<_> = self.batches.iter().filter(|batch| is_in(batch)).cloned().collect();
        let mut new = old.clone();
        new.retain(stays);
        self.subject.rewrite(&part, &new).await.expect("rewrites");
        self.batches.retain(|batch| !old.contains(batch) || new.contains(batch));
    }

    async fn read(&self, from: Offset, upto: Offset, limit: ReadLimit) {
        if from >= upto {
            return;
        }
        let mut left = limit.bytes.get();
        let mut owed = limit.minimum == Minimum::OneBatch;
        let expected = self
            .batches
            .iter()
            .filter(|batch| batch.offsets.end > from && batch.offsets.start < upto)
            .take_while(|batch| {
                let size = batch.bytes.len() as u64;
                let fits = size <= left || owed;
                owed = false;
                left = left.saturating_sub(size);
                fits
            })
            .collect::<Vec<_>>();
        let bytes = self.subject.read(from, upto, limit).await;
        let whole = expected.iter().flat_map(|batch| batch.bytes.to_vec()).collect::<Bytes>();
        if bytes != whole {
            // A read may end early, but only where a chunk does.
            assert!(!bytes.is_empty() && whole.starts_with(&bytes), "{from}..{upto} {limit:?}");
            let last = strandline_records::batches(&bytes).last().expect("not empty");
            let end = last.expect("whole batches").next_offset().expect("sealed");
            let chunks = self.subject.log.chunks();
            assert!(
                chunks.iter().any(|chunk| chunk.next_offset == end),
                "{from}..{upto} {limit:?}"
            );
        }
    }

    async fn find(&self, at: Timestamp) {
        let found = self.subject.log.find_timestamp(at).await.expect("looks");
        // What is not acknowledged may be durable or not: only what is settled must be found.
        let expected = self
            .batches
            .iter()
            .filter(|batch| batch.offsets.end > self.log_start)
            .find(|batch| batch.timestamp >= Some(at));
        match (found, expected) {
            (Some(found), Some(batch)) => {
                assert_eq!(found.base_offset..found.next_offset, batch.offsets);
            }
            (None, Some(batch)) => assert!(batch.offsets.end > self.acknowledged, "{batch:?}"),
            (found, None) => assert_eq!(found, None),
        }
    }

    /// Opens the log again; what was pending may be lost, from some batch on.
    async fn reopen(&mut self) {
        self.subject = Subject::open(&self.engine, 0).await;
        // A crash may have taken all that was not acknowledged.
        if self.acknowledged > Offset::ZERO {
            assert_ne!(self.subject.found, Found::Created);
        }
        let bounds = self.subject.log.bounds();
        assert_eq!(bounds.durable_end, bounds.written_end, "what opening finds is durable");
        self.batches.retain(|batch| batch.offsets.start < bounds.written_end);
        for (end, ticket) in self.pending.drain(..) {
            if ticket.await.is_ok() {
                self.acknowledged = self.acknowledged.max(end);
            }
        }
        assert!(bounds.written_end >= self.acknowledged, "{bounds:?}");
        self.acknowledged = bounds.durable_end;
        self.subject.assert_holds(&self.batches).await;
        self.check_saved().await;
    }

    async fn restart(mut self, factory: &mut impl Factory, stop: Stop) -> Self {
        match stop {
            Stop::Clean => self.settle().await,
            Stop::Crash => self.pending.clear(),
        }
        let Self { engine, subject, batches, log_start, acknowledged, pending, saved } = self;
        drop(subject);
        let engine = match engine.restarted_or_new(factory, stop).await {
            Ok(engine) => engine,
            Err(fresh) => return Self::begin(fresh).await,
        };
        // Any other log: the one in question is opened below.
        let subject = Subject::open(&engine, 1).await;
        let mut player = Self { engine, subject, batches, log_start, acknowledged, pending, saved };
        player.reopen().await;
        player
    }

    /// What is loaded is the last state that was saved or, after a crash, an earlier one.
    async fn check_saved(&mut self) {
        let loaded = self.subject.log.load_state().await.expect("loads");
        let position = loaded.as_ref().map(|state| {
            self.saved.iter().position(|saved| saved == state).expect("a state that was saved")
        });
        self.saved.truncate(position.map_or(0, |position| position + 1));
    }

    fn check(&self) {
        let bounds = self.subject.log.bounds();
        assert_eq!(bounds.log_start, self.log_start);
        assert!(bounds.durable_end >= self.acknowledged, "{bounds:?}");
        let end = self.batches.last().map_or(Offset::ZERO, |batch| batch.offsets.end);
        assert_eq!(bounds.written_end, end);
        assert_chunks_describe(&self.subject.log.chunks(), bounds, &self.batches);
    }
}

impl Engine {
    /// The engine after a restart, or a new one in `Err` when nothing outlives a stop.
    async fn restarted_or_new(self, factory: &mut impl Factory, stop: Stop) -> Result<Self, Self> {
        match self.restarted(factory, stop).await {
            Some(engine) => Ok(engine),
            None => Err(factory.make().await),
        }
    }
}
