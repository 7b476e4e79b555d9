//! Kafka's port: sockets in, frames to the broker, replies out.
//!
//! One acceptor hands connections round-robin to worker threads, each with a runtime of its own, so
//! a connection lives on one core and its requests run to completion there. Back-pressure is not
//! reading: a connection that owes too much, or a server that holds too many bytes of requests, does
//! not read until some are served.
//!
//! # Invariants
//! - Replies leave in the order of their requests.
//! - Nothing that a peer sends makes the process hold more than the bounds in `Limits`.
//! - A peer that breaks the protocol loses its connection, with the reason logged; nobody else does.

mod budget;
mod connection;
mod end;
mod environment;
mod inbox;
mod listener;
mod owed;
mod pace;
mod places;
mod pool;
mod refusal;
mod send;
mod server;
mod turn;
mod worker;

pub use environment::SystemEnvironment;
pub use listener::{BindError, Bound, bind};
pub use server::{Drained, Server, ServerConfig};
