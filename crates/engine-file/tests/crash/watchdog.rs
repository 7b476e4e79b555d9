//! Ends a test that hangs with a word about where.
//!
//! What hangs is a thread of the engine or whoever waits for it, so there is nobody left to fail the
//! test in order: the process ends.

use std::io::Write;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

/// How long one step of a workload, or one cut, may take. All of them take milliseconds.
const QUIET_MAX: Duration = Duration::from_mins(1);

/// Tells a watchdog that the test gets on. The watchdog ends with the last of its clones.
#[derive(Clone, Debug)]
pub(crate) struct Pulse(Sender<String>);

impl Pulse {
    pub(crate) fn watched() -> Self {
        let (sender, pulses) = channel();
        let watch = move || {
            let mut last = "before the first step".to_owned();
            loop {
                match pulses.recv_timeout(QUIET_MAX) {
                    Ok(pulse) => last = pulse,
                    Err(RecvTimeoutError::Disconnected) => return,
                    Err(RecvTimeoutError::Timeout) => give_up(&last),
                }
            }
        };
        std::thread::Builder::new().name("watchdog".into()).spawn(watch).expect("a thread starts");
        Self(sender)
    }

    /// What begins now.
    pub(crate) fn beat(&self, what: String) {
        self.0.send(what).expect("the watchdog lives for as long as its pulses");
    }
}

fn give_up(last: &str) -> ! {
    let seconds = QUIET_MAX.as_secs();
    let text = format!("crash test hangs: nothing happened for {seconds} s since {last}\n");
    // Past the test harness, which would keep the text to itself when the process ends.
    drop(std::io::stderr().write_all(text.as_bytes()));
    std::process::abort();
}
