//! Where words go: data to stdout, everything else to stderr.
//!
//! The only place that prints. A reader that goes away (`strandline topic list | head -1`) ends the
//! command quietly, as it ends every good filter.

use std::io::{self, ErrorKind, IsTerminal, Write};

/// Writes data to stdout. Ends the process when nobody reads any more.
pub(crate) fn data(bytes: &[u8]) {
    let mut stdout = io::stdout().lock();
    if let Err(error) = stdout.write_all(bytes).and_then(|()| stdout.flush()) {
        if error.kind() == ErrorKind::BrokenPipe {
            std::process::exit(0);
        }
        say(&format!("error: cannot write to stdout: {error}"));
        std::process::exit(1);
    }
}

/// Writes a line of data to stdout.
pub(crate) fn line(text: &str) {
    data(format!("{text}\n").as_bytes());
}

/// Writes a line for people to stderr. When stderr is gone there is nobody to tell.
pub(crate) fn say(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Whether somebody watches stdout.
pub(crate) fn stdout_is_terminal() -> bool {
    io::stdout().is_terminal()
}

/// Whether somebody watches stderr.
pub(crate) fn stderr_is_terminal() -> bool {
    io::stderr().is_terminal()
}
