//! Machines that coordinate clients: deterministic, without a clock, I/O, randomness or async.
//!
//! `now`, ids and random bits are arguments; the driver in `broker` mints them. Today: fetch
//! sessions and classic consumer groups. Transactions and share groups follow in the same style.

#![deny(clippy::wildcard_enum_match_arm)]

mod fetch;
pub mod group;
mod machine;
mod timers;

pub use fetch::{
    FetchPartition, FetchSessions, Fetched, SessionContext, SessionError, SessionKey,
    SessionLimits, SessionRequest, TopicKey,
};
pub use machine::{Effects, Input, Machine, Now, ReplyToken};
