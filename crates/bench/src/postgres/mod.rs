//! PostgreSQL as it is: a server of the bench's own, and what it does by itself.
//!
//! The [server] serves a broker with `storage.default=postgres`, and the [ideal] runs on the same
//! server what comes nearest to the broker's work without a broker: `pgbench` and COPY.

pub mod ideal;
pub mod server;
