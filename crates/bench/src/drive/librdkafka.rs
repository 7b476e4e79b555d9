//! A real client: one librdkafka producer, or consumer, through the `rdkafka` crate.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};
use rdkafka::client::ClientContext;
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::Message;
use rdkafka::producer::{BaseProducer, BaseRecord, DeliveryResult, Producer, ProducerContext};
use rdkafka::topic_partition_list::{Offset, TopicPartitionList};

use super::Load;

/// No progress for so long ends the run.
const STALL: Duration = Duration::from_secs(30);

/// What load to make.
#[derive(Clone, Debug)]
pub struct Client {
    /// The broker.
    pub broker: SocketAddr,
    /// The topic.
    pub topic: String,
    /// The partitions, in turn, record by record.
    pub partitions: usize,
    /// Bytes of each record's value.
    pub value_bytes: usize,
    /// How many records.
    pub records: u64,
}

#[derive(Debug, Default)]
struct Delivered {
    good: AtomicU64,
    bad: AtomicU64,
}

impl ClientContext for Delivered {}

impl ProducerContext for Delivered {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        let counter = if result.is_ok() { &self.good } else { &self.bad };
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

impl Client {
    fn config(&self) -> ClientConfig {
        let mut config = ClientConfig::new();
        config.set("bootstrap.servers", self.broker.to_string());
        config.set("broker.address.family", "v4");
        config
    }

    /// Produces with acks=all, linger 5 ms and otherwise librdkafka's defaults.
    pub fn produce(&self) -> anyhow::Result<Load> {
        let producer: BaseProducer<Delivered> = self
            .config()
            .set("acks", "all")
            .set("linger.ms", "5")
            .set("message.max.bytes", "2000000")
            .set("queue.buffering.max.messages", "1000000")
            .set("queue.buffering.max.kbytes", "262144")
            .create_with_context(Delivered::default())
            .context("create the producer")?;
        let metadata = producer.client().fetch_metadata(Some(&self.topic), STALL)?;
        let known = metadata.topics().first().map_or(0, |topic| topic.partitions().len());
        ensure!(known >= self.partitions, "the topic has too few partitions. count=`{known}`");
        let value: Vec<u8> = (0..self.value_bytes).map(|at| (at * 131) as u8).collect();
        let begin = Instant::now();
        for record in 0..self.records {
            let partition = (record % self.partitions as u64) as i32;
            let mut message =
                BaseRecord::<(), [u8]>::to(&self.topic).partition(partition).payload(&value);
            while let Err((error, back)) = producer.send(message) {
                match error {
                    KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull) => {
                        producer.poll(Duration::from_millis(1));
                        message = back;
                    }
                    other => return Err(other).context("queue a record"),
                }
            }
            if record % 1024 == 0 {
                producer.poll(Duration::ZERO);
            }
        }
        producer.flush(STALL).context("flush")?;
        let elapsed = begin.elapsed();
        let good = producer.context().good.load(Ordering::Relaxed);
        let bad = producer.context().bad.load(Ordering::Relaxed);
        ensure!(bad == 0 && good == self.records, "records failed. good=`{good}`, bad=`{bad}`");
        Ok(self.load(elapsed))
    }

    /// Consumes partition 0 from its start.
    pub fn consume(&self) -> anyhow::Result<Load> {
        let consumer: BaseConsumer = self
            .config()
            .set("group.id", "bench")
            .set("enable.auto.commit", "false")
            .set("queued.min.messages", "1000000")
            .set("queued.max.messages.kbytes", "262144")
            .set("fetch.message.max.bytes", "8388608")
            .create()
            .context("create the consumer")?;
        consumer.fetch_metadata(Some(&self.topic), STALL)?;
        let mut assignment = TopicPartitionList::new();
        assignment.add_partition_offset(&self.topic, 0, Offset::Offset(0))?;
        let begin = Instant::now();
        consumer.assign(&assignment)?;
        let mut next = 0;
        while next < self.records {
            let Some(message) = consumer.poll(STALL) else { bail!("no record. next=`{next}`") };
            let message = message?;
            ensure!(message.offset() as u64 == next, "a hole. offset=`{}`", message.offset());
            ensure!(message.payload_len() == self.value_bytes, "a record of another size");
            next += 1;
        }
        Ok(self.load(begin.elapsed()))
    }

    const fn load(&self, elapsed: Duration) -> Load {
        let bytes = self.records * self.value_bytes as u64;
        Load { records: self.records, bytes, requests: 0, elapsed, latency: None }
    }
}
