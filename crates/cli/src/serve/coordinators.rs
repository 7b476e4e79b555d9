//! Threads for coordinators: what a group costs is taken from them, not from whoever accepts
//! connections, answers HTTP or serves requests, and the system shares the cores between them.

use std::io;
use std::thread::JoinHandle;

use tokio::runtime::{Builder, Handle};
use tokio_util::sync::CancellationToken;

/// Threads with a runtime each.
#[derive(Debug)]
pub(super) struct Coordinators {
    runtimes: Vec<Handle>,
    threads: Vec<JoinHandle<()>>,
    stop: CancellationToken,
}

impl Coordinators {
    /// Starts so many threads. They do nothing but what is spawned on their runtimes.
    pub(super) fn start(threads: usize) -> io::Result<Self> {
        let stop = CancellationToken::new();
        let mut started = Self { runtimes: Vec::new(), threads: Vec::new(), stop };
        for index in 0..threads {
            let runtime = Builder::new_current_thread().enable_time().build()?;
            started.runtimes.push(runtime.handle().clone());
            let stop = started.stop.clone();
            let thread = std::thread::Builder::new().name(format!("groups-{index}"));
            started.threads.push(thread.spawn(move || runtime.block_on(stop.cancelled()))?);
        }
        Ok(started)
    }

    pub(super) fn runtimes(&self) -> &[Handle] {
        &self.runtimes
    }

    /// Ends the threads. What still runs on them is dropped.
    pub(super) fn stop(mut self) {
        self.stop.cancel();
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("coordinator thread panicked");
            }
        }
    }
}

impl Drop for Coordinators {
    /// After an error of the start: nobody waits for them.
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_runtime_has_a_thread_and_one_that_is_busy_holds_up_no_other() {
        let coordinators = Coordinators::start(3).unwrap();
        let (busy, free) = std::sync::mpsc::channel::<()>();
        let blocked = coordinators.runtimes()[0].spawn(async move { free.recv().is_err() });
        let name = || async { std::thread::current().name().map(str::to_owned) };
        let names: BTreeSet<_> = (coordinators.runtimes()[1..].iter())
            .map(|runtime| {
                let (sender, answer) = std::sync::mpsc::channel();
                runtime.spawn(async move { sender.send(name().await) });
                answer.recv().unwrap().unwrap()
            })
            .collect();
        assert_eq!(names, BTreeSet::from(["groups-1".to_owned(), "groups-2".to_owned()]));
        assert!(!blocked.is_finished());
        drop(busy);
        coordinators.stop();
    }
}
