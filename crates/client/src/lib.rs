//! A small Kafka client for our own commands and tests.
//!
//! It works with any Kafka broker of version 2.1 or newer, in the newest versions that both sides
//! know. It is no producer for applications: batches are built and sent by one task, and nothing
//! happens behind the caller's back. What it does on its own, a bounded number of times within the
//! call's deadline, is look up leaders and coordinators again when a broker says that it is not one,
//! and ask again while a broker is starting.
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
mod assignment;
mod client;
mod cluster;
mod committed;
mod config;
mod configs;
mod connection;
mod coordinator;
mod error;
mod features;
mod fetch;
mod group;
mod offsets;
mod producer;

pub use address::{Address, ParseAddressError};
pub use admin::{CreatedTopic, NewTopic, TopicOutcome};
pub use client::Client;
pub use cluster::{Broker, Cluster, Partition, Topic};
pub use committed::{CommittedOffset, PartitionOutcome};
pub use config::Config;
pub use configs::{ConfigChange, ConfigEntry, ConfigResource};
pub use connection::{Connection, Sent};
pub use error::{ClientError, Origin};
pub use features::{ApiRange, Feature, NodeVersions};
pub use fetch::{ConsumedRecord, Fetched, FetchedBatches, SizeLimits};
pub use group::{Group, GroupKind, GroupMember, ListedGroup};
pub use offsets::{FoundOffset, OffsetAt, OffsetQuestion};
pub use producer::{Acks, Appended, Producer, ProducerSettings};
