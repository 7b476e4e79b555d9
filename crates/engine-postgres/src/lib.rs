//! The PostgreSQL engine: commit logs and metadata rows in one database.
//!
//! The database is what is durable and what decides who may write; the engine keeps in memory what was
//! appended or read last, and what there is to know of every log. Batches stand in rows as they came,
//! some appends to a row, and are never changed.
//!
//! [`PostgresEngine::open`] brings the schema up to date, several brokers at once if need be. From then
//! on some tasks, the *lanes*, append, each over a connection of its own; one sweeps what was dropped.
//!
//! # Invariants
//! - A statement is a transaction. It changes a log only while the log's row has the epoch and the
//!   session of whoever sent it: who was superseded, or whose connection was lost, changes nothing.
//! - When an answer is lost, the row says what became of the statement before anything else of that
//!   log is sent: nothing acknowledged is lost, nothing is there twice.
//! - What a ticket or a commit reported durable was committed with `synchronous_commit`.
//! - Values are parameters of statements, never text in them.
//! - A connection is encrypted and its server verified as it was asked for, or there is none.
//!
//! docs/adr/0024-postgres.md has the reasons.

mod advice;
mod background;
mod cache;
mod check;
mod config;
mod connection;
mod engine;
mod error;
mod facts;
mod failover;
mod figures;
mod gate;
mod handle;
mod lane;
mod load;
mod logs;
mod lost;
mod meta;
mod open;
mod password;
mod pulse;
mod queue;
mod read;
mod rewrite;
mod row;
mod schema;
mod sql;
mod state;
mod store;
mod supervise;
mod sweeper;
mod tls;
mod upkeep;
mod vitals;

pub use advice::Advice;
pub use check::{Check, Checked, Verdict, check};
pub use config::PostgresConfig;
pub use engine::{PostgresEngine, Started};
pub use error::OpenError;
pub use password::Password;
