//! What every coordinator machine is: commands in, rows and replies out, deadlines named.
//!
//! A machine is fed one input at a time by its driver in `broker`, which owns the clock, the
//! randomness and the store. The driver makes the rows of a step durable before it releases the
//! step's replies, or any later ones. When that fails it drops the machine and builds a new one from
//! the rows that are durable: a machine never takes a step back.

use std::fmt::Debug;
use std::time::Duration;

use strandline_model::Timestamp;

/// A deterministic coordinator: no clock, no I/O, no randomness, no async.
pub trait Machine: Debug {
    /// What it is asked.
    type Command: Debug;
    /// What it answers.
    type Reply: Debug;
    /// What it wants kept.
    type Row: Debug;
    /// What it tells of that nobody waits for.
    type Event: Debug;

    /// The one entry point. `now` never goes backwards.
    fn step(
        &mut self,
        now: Now,
        input: Input<Self::Command>,
        out: &mut Effects<Self::Reply, Self::Row, Self::Event>,
    );

    /// Call [`step`](Self::step) with [`Input::DeadlinePassed`] when [`Now::elapsed`] has reached this.
    fn next_deadline(&self) -> Option<Duration>;
}

/// The time of a step.
///
/// Deadlines run on a clock that only ever counts up, so that setting the wall clock expires nobody.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Time since some fixed moment of this process.
    pub elapsed: Duration,
    /// The wall clock: for what is kept and told.
    pub time: Timestamp,
}

/// Names a reply that somebody waits for. The driver gives each command its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReplyToken(pub u64);

/// What a machine is fed.
#[derive(Clone, Debug)]
pub enum Input<C> {
    /// A command, answered under this token: in the same step, or a later one.
    Command(ReplyToken, C),
    /// A deadline has come.
    DeadlinePassed,
}

/// What a step wants done.
#[derive(Clone, Debug)]
pub struct Effects<R, W, E> {
    /// To be kept, in order: a later one replaces an earlier one of the same key. All or none up to
    /// 8 MiB; of more, a crash before the reply may leave the first part.
    pub rows: Vec<W>,
    /// To be answered once the rows of this and all earlier steps are durable.
    pub replies: Vec<(ReplyToken, R)>,
    /// What has happened, to be counted: of a step that is not kept, too.
    pub events: Vec<E>,
}

impl<R, W, E> Default for Effects<R, W, E> {
    fn default() -> Self {
        Self { rows: Vec::new(), replies: Vec::new(), events: Vec::new() }
    }
}

impl<R, W, E> Effects<R, W, E> {
    /// Answers `token`.
    pub fn reply(&mut self, token: ReplyToken, reply: R) {
        self.replies.push((token, reply));
    }
}
