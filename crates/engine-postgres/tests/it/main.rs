//! The PostgreSQL engine against a server of its own.

mod conformance;
mod outcome;
mod proxy;
mod server;
mod start;
