//! Coordination machines, told as stories.

#![expect(clippy::unwrap_used, reason = "tests panic")]

mod fetch_sessions;
mod groups;
