//! The codecs against each other, against real clients' bytes, and against garbage.

#![expect(clippy::unwrap_used, reason = "a step that fails is a test that fails")]

mod each_message;
mod fetch;
mod garbage;
mod golden;
mod produce;
mod strategy;
