//! What keeps the database from tidying up: a transaction that stays open keeps every row that was removed
//! or changed since it began, and with them grow the tables, and the time of everything that reads them.

use std::time::Duration;

use parking_lot::Mutex;
use tokio_postgres::Row;

/// A transaction that is open for so long is warned of.
const LONG: Duration = Duration::from_mins(10);

/// What was seen last.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    /// Rows of the engine's tables that are of no use any more and still there.
    pub(crate) dead_rows: u64,
    /// How many transactions ago the oldest one began that somebody may still look back to.
    pub(crate) oldest_age: u64,
    /// For how long the longest transaction is open.
    pub(crate) longest: Duration,
}

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Upkeep {
    seen: Mutex<Seen>,
}

impl Upkeep {
    pub(crate) fn seen(&self) -> Seen {
        *self.seen.lock()
    }

    /// Takes what [`Query::Upkeep`](crate::sql::Query::Upkeep) says.
    pub(crate) fn take(&self, row: &Row) {
        let count = |column: usize| row.get::<_, i64>(column).max(0).cast_unsigned();
        let longest = Duration::try_from_secs_f64(row.get(2)).unwrap_or_default();
        self.note(Seen { dead_rows: count(0), oldest_age: count(1), longest });
    }

    /// Whether that was worth a warning.
    fn note(&self, now: Seen) -> bool {
        let before = std::mem::replace(&mut *self.seen.lock(), now);
        let is_worth_it = before.longest < LONG && now.longest >= LONG;
        if is_worth_it {
            let seconds = now.longest.as_secs();
            let Seen { dead_rows, oldest_age, .. } = now;
            tracing::warn!(
                seconds,
                oldest_age,
                dead_rows,
                "a transaction is open for long in PostgreSQL: until it ends no dead row is removed"
            );
        }
        is_worth_it
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_transaction_is_warned_of_once() {
        let upkeep = Upkeep::default();
        let warns = |minutes| {
            upkeep.note(Seen { longest: Duration::from_mins(minutes), ..Seen::default() })
        };
        let warned: Vec<_> = [9, 10, 11, 60, 1, 10].into_iter().map(warns).collect();
        assert_eq!(warned, [false, true, false, false, false, true]);
    }
}
