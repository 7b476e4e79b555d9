//! The PostgreSQL engine against a server of its own.

mod conformance;
mod faults;
mod outcome;
mod proxy;
mod removal;
mod remove;
mod secrets;
mod server;
mod start;
mod tls;
