//! What is counted and measured, under the names that dashboards know.

use std::sync::atomic::{AtomicU64, Ordering};

use strandline_storage::{Figure, FigureValue};

use crate::engine::Shared;

fn of(counter: &AtomicU64) -> u64 {
    counter.load(Ordering::Relaxed)
}

impl Shared {
    pub(crate) fn figures(&self) -> Vec<Figure> {
        let mut figures = self.of_connections();
        figures.extend(self.of_appends());
        figures.extend(self.of_memory());
        figures.extend(self.of_upkeep());
        figures
    }

    fn of_connections(&self) -> Vec<Figure> {
        let counts = &self.vitals().counts;
        let outcomes = |outcome, counter| {
            let help = "Statements whose answer was lost, by what was found out about them";
            Figure::count("outcomes_found", help, of(counter)).labelled("outcome", outcome)
        };
        let attempts = of(&counts.connection_attempts);
        let made = of(&counts.connections_made);
        let lost = of(&counts.connections_lost);
        let retried = of(&counts.statements_retried);
        let failovers = of(&counts.failovers);
        let moved = "Times that the database was found on another server, or in another history";
        let silence = self.vitals().silence();
        vec![
            Figure::count("connection_attempts", "Tries to connect to the database", attempts),
            Figure::count("connections_made", "Connections to the database", made),
            Figure::count("connections_lost", "Those that were lost while in use", lost),
            Figure::count("statements_retried", "Statements that were sent again", retried),
            outcomes("done", &counts.outcomes_done),
            outcomes("not_done", &counts.outcomes_not_done),
            Figure::count("failovers", moved, failovers),
            Figure::seconds("silence_seconds", "The age of the database's last answer", silence),
        ]
    }

    fn of_appends(&self) -> Vec<Figure> {
        let waiting = self.lanes.iter().map(|lane| lane.waiting());
        let (appends, bytes) = waiting.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let commits = *self.vitals().counts.commits.lock();
        vec![
            Figure {
                name: "commit_duration_seconds",
                help: "From the first try to append what waited to its commit",
                label: None,
                value: FigureValue::Times(commits),
            },
            Figure::level("appends_waiting", "Appends that wait to be sent", appends),
            Figure::level("appends_waiting_bytes", "Bytes of those", bytes),
        ]
    }

    fn of_memory(&self) -> Vec<Figure> {
        let counts = &self.vitals().counts;
        let reads = |from, counter| {
            let help = "Entries that were read, by where they came from";
            Figure::count("entry_reads", help, of(counter)).labelled("from", from)
        };
        let cache = |cache, bytes| {
            let help = "Bytes of entries in memory";
            Figure::level("cache_bytes", help, bytes).labelled("cache", cache)
        };
        vec![
            reads("tail", &counts.reads_of_tail),
            reads("past", &counts.reads_of_past),
            reads("rows", &counts.reads_of_rows),
            cache("tail", self.tail.bytes()),
            cache("past", self.past.bytes()),
        ]
    }

    fn of_upkeep(&self) -> Vec<Figure> {
        let upkeep = self.vitals().upkeep.seen();
        let restarted = of(&self.vitals().counts.tasks_restarted);
        let panicked = "Tasks of the engine that panicked and were started again";
        let dead = "Rows of the engine's tables that are of no use any more and still there";
        let age = "How many transactions ago the oldest one began that somebody may look back to";
        let open = "For how long the longest transaction in the database is open";
        let dropped = "Dropped chunks whose entries are not all gone";
        vec![
            Figure::count("tasks_restarted", panicked, restarted),
            Figure::level("dropped_chunks", dropped, self.sweeps.count()),
            Figure::level("dead_rows", dead, upkeep.dead_rows),
            Figure::level("oldest_transaction_age", age, upkeep.oldest_age),
            Figure::seconds("longest_transaction_seconds", open, upkeep.longest),
        ]
    }
}
