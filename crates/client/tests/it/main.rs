//! The client against brokers that misbehave, scripted byte by byte on a loopback socket.

#![expect(clippy::unwrap_used, reason = "a step that fails is a test that fails")]

mod fake;
mod hostile;
mod negotiation;
mod old_broker;
