//! A small Kafka client for our own commands and tests.
//!
//! It works with any Kafka broker of version 2.1 or newer, in the newest versions that both sides
//! know. It is no producer for applications: batches are built and sent by one task, and nothing
//! happens behind the caller's back. What it does on its own, a bounded number of times within the
//! call's deadline, is look up leaders again when a broker says that it is not one, and ask again for
//! a producer id while a broker is starting.
//!
//! ```no_run
//! use strandline_client::{Acks, Client, Config, Producer, ProducerSettings, SizeLimits};
//! use strandline_records::{Codec, NewRecord};
//!
//! # async fn example() -> Result<(), strandline_client::ClientError> {
//! let mut client = Client::connect(Config::new("localhost:9092")?).await?;
//! let settings = ProducerSettings { acks: Acks::All, idempotent: true, codec: Codec::None };
//! let mut producer = Producer::start(&mut client, settings).await?;
//! let record = NewRecord { value: Some(b"hello"), ..NewRecord::default() };
//! let appended = producer.send("greetings", 0, &[record]).await?;
//! let fetched = client.fetch("greetings", 0, appended.base_offset, SizeLimits::new()).await?;
//! # Ok(()) }
//! ```
//!
//! # Invariants
//! - Every call ends within its deadline, and holds no more than [`Config::response_bytes_max`].
//! - An answer of a broker that is an error is a [`ClientError::Broker`], with the broker's code.

mod address;
mod admin;
mod client;
mod cluster;
mod config;
mod connection;
mod error;
mod fetch;
mod offsets;
mod producer;

pub use address::{Address, ParseAddressError};
pub use admin::{ConfigEntry, CreatedTopic, NewTopic, TopicOutcome};
pub use client::Client;
pub use cluster::{Broker, Cluster, Partition, Topic};
pub use config::Config;
pub use connection::{Connection, Sent};
pub use error::{ClientError, Origin};
pub use fetch::{ConsumedRecord, Fetched, FetchedBatches, SizeLimits};
pub use offsets::{FoundOffset, OffsetAt};
pub use producer::{Acks, Appended, Producer, ProducerSettings};
