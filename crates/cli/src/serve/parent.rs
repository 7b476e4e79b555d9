//! `--exit-with-parent`: notices the end of the process that started us.
//!
//! A test harness that is killed can't stop its brokers. The kernel's "signal me when my parent
//! dies" fires when the *thread* that started us ends, which is wrong for runtimes with many; a
//! descriptor of the process becomes readable exactly when the process ends. A thread waits for it,
//! and ends with our process.

use std::io;
use std::os::fd::OwnedFd;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{PidfdFlags, getppid, pidfd_open};
use tokio::sync::oneshot;

/// Resolves when the process that started us has ended.
pub(crate) fn watch() -> io::Result<oneshot::Receiver<()>> {
    let (ended, receiver) = oneshot::channel();
    // Dropping `ended` resolves the receiver, too: the parent had ended before we looked.
    let Some(pid) = getppid() else { return Ok(receiver) };
    let process = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(process) => process,
        Err(Errno::SRCH) => return Ok(receiver),
        Err(error) => return Err(error.into()),
    };
    if getppid() == Some(pid) {
        let thread = std::thread::Builder::new().name("parent".to_owned());
        thread.spawn(move || {
            wait_for_end(&process);
            // Nobody listens any more when the broker is stopping already.
            let _ = ended.send(());
        })?;
    }
    Ok(receiver)
}

fn wait_for_end(process: &OwnedFd) {
    let mut descriptors = [PollFd::new(process, PollFlags::IN)];
    // Every other error means that the process can't be watched, which only its end explains.
    while poll(&mut descriptors, None) == Err(Errno::INTR) {}
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn the_end_of_a_process_is_noticed() {
        let child = Command::new("cat").stdin(Stdio::piped()).spawn();
        let mut child = child.expect("cat is everywhere");
        let pid = rustix::process::Pid::from_child(&child);
        let process = pidfd_open(pid, PidfdFlags::empty()).expect("it runs");
        drop(child.stdin.take());
        wait_for_end(&process);
        assert!(child.wait().expect("a child").success());
    }

    #[test]
    fn a_living_parent_is_watched() {
        let mut receiver = watch().expect("watched");
        assert_eq!(receiver.try_recv(), Err(oneshot::error::TryRecvError::Empty));
    }
}
