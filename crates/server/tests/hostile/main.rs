//! Peers that break the protocol, or keep to it and do nothing: each may cost its own connection,
//! never the broker's memory, and an honest client beside them goes on.
//!
//! The broker is a process of its own, so that its memory can be told from that of the test.

mod broker;
mod counts;
mod crowd;
mod frames;
mod half_closed;
mod honest;
