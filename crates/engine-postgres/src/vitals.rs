//! When the database was heard last, what is wrong with it, and what is counted of it.
//!
//! # Invariants
//! - A statement that is answered, be it with a refusal, is a sign of life of the moment at which it was
//!   sent: whatever happened to the database later, it had not happened then.
//! - Once the last sign is older than the lease nothing is read from memory: somebody else may own the
//!   logs by then, and have replaced what they held.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use strandline_storage::{ErrorKind, StorageError, Times, Trouble};
use tokio::time::Instant;

use crate::error::Failure;
use crate::upkeep::Upkeep;

/// A refusal to write that was not met again for so long is looked into.
const REFUSAL_STANDS: Duration = Duration::from_secs(10);

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct Vitals {
    begun: Instant,
    lease: Duration,
    /// When the statement was sent that was answered last, in milliseconds since the start.
    heard_at: AtomicU64,
    is_gone: AtomicBool,
    gone: Mutex<Option<Fault>>,
    is_refusing: AtomicBool,
    refusing: Mutex<Option<Fault>>,
    pub(crate) counts: Counts,
    pub(crate) upkeep: Upkeep,
}

/// Something that goes on being wrong.
#[derive(Clone, Debug)]
struct Fault {
    since: Instant,
    /// When it was met last.
    met: Instant,
    what: Arc<str>,
}

/// What is counted since the start.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Tries to connect.
    pub(crate) connection_attempts: AtomicU64,
    /// Connections that were made.
    pub(crate) connections_made: AtomicU64,
    /// Connections that were lost while somebody waited for an answer.
    pub(crate) connections_lost: AtomicU64,
    /// Statements that were sent again.
    pub(crate) statements_retried: AtomicU64,
    /// Appends and commits whose answer was lost and that turned out to have happened.
    pub(crate) outcomes_done: AtomicU64,
    /// Those that turned out not to have happened.
    pub(crate) outcomes_not_done: AtomicU64,
    /// Entries that were read from the end that memory holds, from what was read before, and from rows.
    pub(crate) reads_of_tail: AtomicU64,
    pub(crate) reads_of_past: AtomicU64,
    pub(crate) reads_of_rows: AtomicU64,
    /// Tasks that panicked and were started again.
    pub(crate) tasks_restarted: AtomicU64,
    /// Changes of the server's identity or timeline.
    pub(crate) failovers: AtomicU64,
    /// Appends, from the first try to the answer.
    pub(crate) commits: Mutex<Times>,
}

/// Counts one more.
pub(crate) fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

impl Vitals {
    pub(crate) fn new(lease: Duration) -> Self {
        Self {
            begun: Instant::now(),
            lease,
            heard_at: AtomicU64::new(0),
            is_gone: AtomicBool::new(false),
            gone: Mutex::new(None),
            is_refusing: AtomicBool::new(false),
            refusing: Mutex::new(None),
            counts: Counts::default(),
            upkeep: Upkeep::default(),
        }
    }

    /// A statement that was sent at `sent` was answered.
    pub(crate) fn heard(&self, sent: Instant) {
        let at = sent.saturating_duration_since(self.begun).as_millis();
        self.heard_at.fetch_max(u64::try_from(at).unwrap_or(u64::MAX), Ordering::AcqRel);
        if self.is_gone.load(Ordering::Acquire)
            && let Some(fault) = Self::end(&self.is_gone, &self.gone)
        {
            let after_ms = millis(fault.since.elapsed());
            tracing::info!(after_ms, "PostgreSQL answers again");
        }
    }

    /// Nobody answers, or no longer.
    pub(crate) fn lost(&self, what: &str) {
        if Self::note(&self.is_gone, &self.gone, what) {
            tracing::warn!(reason = what, "PostgreSQL is not reached");
        }
    }

    /// Something was written.
    pub(crate) fn wrote(&self) {
        if self.is_refusing.load(Ordering::Acquire)
            && let Some(fault) = Self::end(&self.is_refusing, &self.refusing)
        {
            let after_ms = millis(fault.since.elapsed());
            tracing::info!(after_ms, "PostgreSQL takes writes again");
        }
    }

    /// The server refused to write for a reason that is none of the statement's.
    pub(crate) fn refused(&self, failure: &Failure) {
        let Some(what) = failure.refuses_writes() else { return };
        if Self::note(&self.is_refusing, &self.refusing, &what) {
            tracing::warn!(reason = %what, "PostgreSQL takes no writes");
        }
    }

    /// Whether it is time to find out whether writes are still refused.
    pub(crate) fn doubts_refusal(&self) -> bool {
        let refusing = self.refusing.lock();
        refusing.as_ref().is_some_and(|fault| fault.met.elapsed() >= REFUSAL_STANDS)
    }

    /// For how long nobody answers; `None` while somebody does.
    pub(crate) fn gone_for(&self) -> Option<Duration> {
        if !self.is_gone.load(Ordering::Acquire) {
            return None;
        }
        self.gone.lock().as_ref().map(|fault| fault.since.elapsed())
    }

    /// How old the last sign of life is.
    pub(crate) fn silence(&self) -> Duration {
        let heard_at = Duration::from_millis(self.heard_at.load(Ordering::Acquire));
        self.begun.elapsed().saturating_sub(heard_at)
    }

    /// Refuses to read from memory once the lease is over.
    pub(crate) fn check_lease(&self) -> Result<(), StorageError> {
        let silence = self.silence();
        if silence <= self.lease {
            return Ok(());
        }
        let seconds = silence.as_secs();
        let message =
            format!("the database was not heard for {seconds} s: another broker may own the log");
        Err(StorageError::new(ErrorKind::Unavailable, message))
    }

    pub(crate) fn trouble(&self) -> Option<Trouble> {
        let told = |fault: &Mutex<Option<Fault>>, words: &str| {
            let fault = fault.lock().clone()?;
            let (lasting, what) = (fault.since.elapsed(), &fault.what);
            Some(Trouble { lasting, what: format!("{words}: {what}") })
        };
        told(&self.gone, "the database is not reached")
            .or_else(|| {
                let lasting = self.silence();
                let what = "the database does not answer".to_owned();
                (lasting > self.lease).then_some(Trouble { lasting, what })
            })
            .or_else(|| told(&self.refusing, "the database takes no writes"))
    }

    /// Whether that is new.
    fn note(flag: &AtomicBool, fault: &Mutex<Option<Fault>>, what: &str) -> bool {
        let mut fault = fault.lock();
        let now = Instant::now();
        let is_new = fault.is_none();
        let known = fault.get_or_insert_with(|| Fault { since: now, met: now, what: what.into() });
        known.met = now;
        if &*known.what != what {
            known.what = what.into();
        }
        flag.store(true, Ordering::Release);
        is_new
    }

    fn end(flag: &AtomicBool, fault: &Mutex<Option<Fault>>) -> Option<Fault> {
        let mut fault = fault.lock();
        flag.store(false, Ordering::Release);
        fault.take()
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;
    use tokio_postgres::error::SqlState;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_lease_lasts_from_the_moment_at_which_what_was_answered_was_sent() {
        let vitals = Vitals::new(Duration::from_secs(10));
        let sent = Instant::now();
        advance(Duration::from_secs(9)).await;
        vitals.heard(sent);
        vitals.check_lease().expect("nine seconds");
        advance(Duration::from_secs(2)).await;
        let error = vitals.check_lease().expect_err("eleven");
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(vitals.trouble().is_some(), "silence is trouble, though nothing failed");
        vitals.heard(Instant::now());
        vitals.check_lease().expect("heard");
        assert_eq!(vitals.trouble(), None);
    }

    #[tokio::test(start_paused = true)]
    async fn trouble_lasts_from_the_first_failure_to_the_next_answer_and_has_the_last_words() {
        let vitals = Vitals::new(Duration::from_secs(10));
        vitals.lost("reset");
        advance(Duration::from_secs(3)).await;
        vitals.lost("refused");
        let trouble = vitals.trouble().expect("it is lost");
        assert_eq!(trouble.lasting, Duration::from_secs(3));
        assert_eq!(trouble.what, "the database is not reached: refused");
        assert_eq!(vitals.gone_for(), Some(Duration::from_secs(3)));
        vitals.heard(Instant::now());
        assert_eq!((vitals.trouble(), vitals.gone_for()), (None, None));
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_stands_until_something_is_written() {
        let vitals = Vitals::new(Duration::from_mins(1));
        let refused = |state| Failure::Refused { state, message: "no".into() };
        vitals.refused(&refused(SqlState::UNIQUE_VIOLATION));
        assert_eq!(vitals.trouble(), None, "that is the statement's own fault");
        vitals.refused(&refused(SqlState::READ_ONLY_SQL_TRANSACTION));
        vitals.heard(Instant::now());
        assert_eq!(vitals.trouble().expect("read-only").what, "the database takes no writes: no");
        assert!(!vitals.doubts_refusal());
        advance(REFUSAL_STANDS).await;
        assert!(vitals.doubts_refusal());
        vitals.wrote();
        assert_eq!(vitals.trouble(), None);
    }
}
