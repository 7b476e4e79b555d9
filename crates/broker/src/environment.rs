//! Time, waiting and randomness: what the broker takes from outside, so that a simulator can give it.

use std::fmt::Debug;
use std::time::Duration;

use strandline_model::{Timestamp, TopicId};
use strandline_storage::BoxFuture;

/// The world as the broker sees it.
pub trait Environment: Debug + Send + Sync {
    /// The wall clock.
    fn now(&self) -> Timestamp;

    /// Time since some fixed moment, which never goes back: for measuring.
    fn monotonic(&self) -> Duration;

    /// Resolves after `duration`.
    fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()>;

    /// 128 random bits that nobody can guess or draw again.
    fn random_bits(&self) -> u128;
}

/// A random UUID as text, of version 4.
pub(crate) fn new_uuid(environment: &dyn Environment) -> String {
    TopicId::from_bytes(version_4(environment).to_be_bytes()).to_uuid().to_string()
}

/// Random bits with version 4, variant 1, as Kafka's ids are.
fn version_4(environment: &dyn Environment) -> u128 {
    environment.random_bits() & !(0xf << 76 | 0x3 << 62) | 4 << 76 | 2 << 62
}

/// A new topic id: random, and never one that is reserved or reads as a command-line flag.
pub(crate) fn new_topic_id(environment: &dyn Environment) -> TopicId {
    // Each draw fails with a probability of 1 in 64, so the bound is never met.
    for _ in 0..64 {
        let id = TopicId::from_bytes(version_4(environment).to_be_bytes());
        if id.is_usable() {
            return id;
        }
    }
    panic!("64 random ids in a row were unusable: the random source is broken");
}
