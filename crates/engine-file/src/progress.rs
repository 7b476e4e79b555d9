//! How far the opening of a folder is, for whoever waits for it.

use std::fmt;

use parking_lot::Mutex;
use strandline_model::ByteCount;

/// Shared by the thread that opens a folder and those who tell of it.
#[derive(Debug, Default)]
pub struct OpenProgress(Mutex<OpenStep>);

/// What is done now, and how much of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenStep {
    /// What is done.
    pub work: OpenWork,
    /// How much of it, in the unit of the work.
    pub done: u64,
    /// How much there is: at most, where nobody can know before the end.
    pub total: u64,
}

/// What an opening does, in this order; after a clean stop the first two only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum OpenWork {
    /// Reads the snapshot of the rows. Not counted.
    #[default]
    ReadSnapshot,
    /// Reads the rows in the journal, in bytes of it.
    ReadRows,
    /// Brings back the records in the journal, in bytes of it.
    BringBack,
    /// Keeps what the journal has of damaged logs, in bytes of it.
    Rescue,
    /// Makes what was brought back durable, in files and folders.
    Sync,
    /// The folder is open.
    Done,
}

impl OpenProgress {
    /// What is done now.
    pub fn now(&self) -> OpenStep {
        *self.0.lock()
    }

    pub(crate) fn begin(&self, work: OpenWork, total: u64) {
        *self.0.lock() = OpenStep { work, done: 0, total };
    }

    /// Does other work in the midst of one, which then goes on where it was.
    pub(crate) fn aside<T>(&self, work: OpenWork, total: u64, act: impl FnOnce() -> T) -> T {
        let before = self.now();
        self.begin(work, total);
        let outcome = act();
        *self.0.lock() = before;
        outcome
    }

    pub(crate) fn advance(&self, more: u64) {
        self.0.lock().done += more;
    }
}

impl fmt::Display for OpenStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { work, done, total } = *self;
        let journal = |f: &mut fmt::Formatter<'_>, what: &str| {
            let mib = |bytes: u64| bytes / ByteCount::mib(1).get();
            let (done, total) = (mib(done), mib(total).max(1));
            write!(f, "{what}: {done} of at most {total} MiB of the journal")
        };
        match work {
            OpenWork::ReadSnapshot => f.write_str("reading the snapshot"),
            OpenWork::ReadRows => journal(f, "reading metadata"),
            OpenWork::BringBack => journal(f, "bringing back records"),
            OpenWork::Rescue => journal(f, "keeping records of damaged partitions"),
            OpenWork::Sync => write!(f, "making files durable: {done} of {total}"),
            OpenWork::Done => f.write_str("the data folder is open"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_told_in_words() {
        let progress = OpenProgress::default();
        assert_eq!(progress.now().to_string(), "reading the snapshot");
        progress.begin(OpenWork::BringBack, ByteCount::mib(64).get());
        progress.advance(ByteCount::mib(5).get());
        progress.advance(ByteCount::mib(7).get());
        let told = "bringing back records: 12 of at most 64 MiB of the journal";
        assert_eq!(progress.now().to_string(), told);
        progress.aside(OpenWork::Sync, 4000, || {
            progress.advance(120);
            assert_eq!(progress.now().to_string(), "making files durable: 120 of 4000");
        });
        assert_eq!(progress.now().to_string(), told, "it goes on where it was");
    }
}
