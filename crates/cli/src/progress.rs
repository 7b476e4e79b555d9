//! A bar for work that takes long, on stderr while somebody watches it.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::console;

/// Work that is done sooner shows no bar.
const SHOWN_AFTER: u64 = 2;

/// A bar; dropping it takes it off the screen.
#[derive(Debug)]
pub(crate) struct Progress(ProgressBar);

impl Progress {
    /// Work of so many steps. Few steps, or nobody to see them: nothing is shown.
    pub(crate) fn start(what: &'static str, steps: usize) -> Self {
        let steps = steps as u64;
        let watched = console::stderr_is_terminal() && steps >= SHOWN_AFTER;
        let bar = if watched {
            ProgressBar::with_draw_target(Some(steps), ProgressDrawTarget::stderr())
        } else {
            ProgressBar::hidden()
        };
        let style = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} {eta}")
            .expect("the template is one");
        bar.set_style(style);
        bar.set_message(what);
        if watched {
            bar.enable_steady_tick(Duration::from_millis(200));
        }
        Self(bar)
    }

    /// A count beside a command whose stdout is data, of so many steps, or of a number that nobody
    /// knows. Nothing is shown where the data goes to the terminal: it shows how far things are.
    pub(crate) fn beside_data(what: &'static str, steps: Option<u64>) -> Self {
        if console::stdout_is_terminal() || !console::stderr_is_terminal() {
            return Self(ProgressBar::hidden());
        }
        let bar = ProgressBar::with_draw_target(steps, ProgressDrawTarget::stderr());
        let template = match steps {
            Some(_) => "{msg} {wide_bar} {human_pos}/{human_len} {eta}",
            None => "{msg} {human_pos} ({per_sec})",
        };
        bar.set_style(ProgressStyle::with_template(template).expect("the template is one"));
        bar.set_message(what);
        bar.enable_steady_tick(Duration::from_millis(200));
        Self(bar)
    }

    /// One step is done.
    pub(crate) fn step(&self) {
        self.advance(1);
    }

    /// So many steps are done.
    pub(crate) fn advance(&self, steps: u64) {
        self.0.inc(steps);
    }

    /// Says a line for people above the bar.
    pub(crate) fn say(&self, text: &str) {
        self.0.suspend(|| console::say(text));
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
