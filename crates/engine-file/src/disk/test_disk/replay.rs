//! A walk over what happened to a disk.

use super::{Crash, Medium, Operation, TestDisk};

/// Walks the operations that a [`TestDisk`] recorded and makes the disk that a crash leaves after
/// each of them.
#[derive(Clone, Debug)]
pub struct Replay {
    medium: Medium,
    history: std::vec::IntoIter<Operation>,
    done: usize,
}

impl Replay {
    /// At the state of `disk` when its recording began.
    pub fn of(disk: &TestDisk) -> Self {
        let state = disk.state.lock();
        Self { medium: state.origin.clone(), history: state.history.clone().into_iter(), done: 0 }
    }

    /// Lets the next operation happen; `None` after the last.
    pub fn step(&mut self) -> Option<Operation> {
        let operation = self.history.next()?;
        self.medium.apply(&operation);
        self.done += 1;
        Some(operation)
    }

    /// How many operations happened.
    pub const fn done(&self) -> usize {
        self.done
    }

    /// The disk that a crash at this point leaves.
    #[must_use]
    pub fn after(&self, crash: Crash) -> TestDisk {
        TestDisk::from_medium(self.medium.after(crash))
    }

    /// The disk of a machine that goes on when the process dies at this point.
    #[must_use]
    pub fn after_death(&self) -> TestDisk {
        TestDisk::outliving(&self.medium)
    }
}
