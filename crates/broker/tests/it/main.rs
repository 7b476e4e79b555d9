//! The broker behind its connections, on the memory engine: requests in, replies out.

#![expect(clippy::unwrap_used, reason = "tests panic")]

mod administering;
mod compaction;
mod configuring;
mod counting;
mod deletion;
mod failures;
mod features;
mod fetching;
mod groups;
mod harness;
mod idling;
mod internal_topics;
mod oddities;
mod producing;
mod purging;
mod reconciling;
mod repeated;
mod retention;
mod undeleting;
mod versions;
