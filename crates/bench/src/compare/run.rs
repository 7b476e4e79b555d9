//! One run: start a contender, load it, account for it.

use std::io;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Serialize;

use super::workload::{Crowd, Lands, Many, Metric, Shape, Side, Volume};
use super::{database_run, upkeep};
use crate::contender::{Contender, Programs, Running, topic_configs};
use crate::drive::batches::{self, Batches};
use crate::drive::estate::Estate;
use crate::drive::fetch::{self, Fetch};
use crate::drive::groups::{self, Groups};
use crate::drive::hostile::Hostile;
use crate::drive::unbatched::{self, Unbatched};
use crate::drive::{Load, idle, setup};
use crate::measure::account::{Account, own_cpu};
use crate::measure::disk;
use crate::measure::host::{HostTime, WarmMemory, wait_for_quiet};
use crate::postgres::server::Server;

const MIB: f64 = 1024.0 * 1024.0;
/// How long to wait for a quiet machine before a run is marked as disturbed.
const QUIET_PATIENCE: Duration = Duration::from_millis(1200);
pub(super) const WARM_UP: Duration = Duration::from_millis(500);
pub(super) const MEASURE: Duration = Duration::from_secs(2);
/// How long a broker idles before its resting memory and processor time are read.
pub(super) const REST: Duration = Duration::from_secs(1);
const BATCH_BYTES: usize = 1_000_000;
const FETCH_BYTES: usize = 8 * 1024 * 1024;
/// How often a consumer reads the whole log in a run.
const CONSUME_PASSES: usize = 4;
const FETCH_PASSES: usize = 16;
/// A broker also fills a journal and its spare files, whatever the load.
pub(super) const WARM_BYTES_MIN: usize = 1 << 30;
const WARM_BYTES_MAX: usize = 3 << 30;

/// The figures of one run.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Sample {
    /// What the driver saw.
    pub load: Load,
    /// The broker's processor time during the load.
    pub broker_cpu: Duration,
    /// The driver's.
    pub client_cpu: Duration,
    /// The share of one core that neither of them used but somebody did.
    pub others_cores: f64,
    /// Whether the machine was quiet before the run.
    pub quiet: bool,
    /// Device flushes during the load, whoever asked for them.
    pub flushes: Option<u64>,
    /// From the start of the process to its first answer.
    pub ready: Duration,
    /// Resident memory at the end.
    pub resident_bytes: Option<u64>,
    /// The most resident memory.
    pub resident_peak_bytes: Option<u64>,
    /// Page cache of the broker at the end.
    pub page_cache_bytes: Option<u64>,
    /// The most that memory and page cache were together.
    pub peak_bytes: Option<u64>,
    /// Resident memory per idle connection.
    pub bytes_per_connection: Option<f64>,
    /// Resident memory per idle partition.
    pub bytes_per_partition: Option<f64>,
    /// From the question for the metadata of all topics to the end of the answer.
    pub metadata: Option<Duration>,
    /// The same for their settings.
    pub described: Option<Duration>,
    /// From the request that changes all of them to its answer.
    pub altered: Option<Duration>,
    /// From the start of a process to its first answer, after `kill -9` of the one before.
    pub restarted: Option<Duration>,
    /// From a deletion until nine tenths of the topic's bytes were gone.
    pub removed: Option<Duration>,
    /// How long a pass over a log took beside others' load.
    pub passed: Option<Duration>,
    /// From the request that deletes a topic to its answer.
    pub deleted: Option<Duration>,
}

impl Sample {
    /// One figure; `None` when this kind of run does not have it.
    pub fn figure(&self, metric: Metric) -> Option<f64> {
        let records = (self.load.records > 0).then_some(self.load.records as f64);
        let mib = |bytes: Option<u64>| bytes.map(|bytes| bytes as f64 / MIB);
        match metric {
            Metric::RecordsPerSecond => records.map(|_| self.load.rate()),
            Metric::GigabytesPerSecond => records.map(|_| self.load.bytes_rate() / 1e9),
            Metric::CpuNanosPerRecord => {
                records.map(|records| self.broker_cpu.as_nanos() as f64 / records)
            }
            Metric::CpuSecondsPerGigabyte => {
                let bytes = (self.load.bytes > 0).then_some(self.load.bytes as f64);
                bytes.map(|bytes| self.broker_cpu.as_secs_f64() / bytes * 1e9)
            }
            Metric::P99Micros => self.load.latency.map(|latency| latency.p99_us),
            Metric::P50Micros => self.load.latency.map(|latency| latency.p50_us),
            Metric::DeleteMillis => self.deleted.map(|took| took.as_secs_f64() * 1e3),
            Metric::WorstMicros => self.load.latency.map(|latency| latency.max_us),
            Metric::RemovedMillis => self.removed.map(|took| took.as_secs_f64() * 1e3),
            Metric::PassMillis => self.passed.map(|took| took.as_secs_f64() * 1e3),
            Metric::ReadyMillis => Some(self.ready.as_secs_f64() * 1e3),
            Metric::ResidentMib => mib(self.resident_bytes),
            Metric::ResidentPeakMib => mib(self.resident_peak_bytes),
            Metric::PeakMib => mib(self.peak_bytes),
            Metric::KibPerConnection => self.bytes_per_connection.map(|bytes| bytes / 1024.0),
            Metric::KibPerPartition => self.bytes_per_partition.map(|bytes| bytes / 1024.0),
            Metric::MetadataMillis => self.metadata.map(|took| took.as_secs_f64() * 1e3),
            Metric::DescribeMillis => self.described.map(|took| took.as_secs_f64() * 1e3),
            Metric::AlterMillis => self.altered.map(|took| took.as_secs_f64() * 1e3),
            Metric::RestartMillis => self.restarted.map(|took| took.as_secs_f64() * 1e3),
        }
    }
}

/// Runs one side after another, each in a fresh folder and topic.
#[derive(Debug)]
pub struct Runner {
    programs: Programs,
    /// Kafka needs seconds to start and a warm-up: it stays, and gets a new topic each time.
    kafka: Option<Running>,
    /// Made when it is first needed; each run has a database of its own.
    postgres: Option<Server>,
    topics: usize,
}

impl Runner {
    /// A runner of these programs.
    pub const fn new(programs: Programs) -> Self {
        Self { programs, kafka: None, postgres: None, topics: 0 }
    }

    /// Runs one side once.
    pub fn run(&mut self, side: &Side) -> Result<Sample> {
        self.topics += 1;
        let topic = format!("bench-{}", self.topics);
        if let Shape::Database(task) = side.shape {
            return database_run::run(&self.programs, &mut self.postgres, side, task, &topic);
        }
        let is_restarted = matches!(side.shape, Shape::Estate(_));
        if side.contender == Contender::Kafka && !is_restarted {
            let kafka = match self.kafka.take() {
                Some(kafka) => kafka,
                None => self.warm_kafka(side)?,
            };
            let sample = run_on(&kafka, side, &topic);
            self.kafka = Some(kafka);
            return sample;
        }
        let mut running = self.programs.start(side.contender, side.durability)?;
        let ran = match side.shape {
            Shape::Estate(lands) => estate(&self.programs, &mut running, side, lands),
            _ => run_on(&running, side, &topic),
        };
        ran.with_context(|| format!("{}. log=`{}`", side.label, running.log_tail()))
    }

    fn warm_kafka(&self, side: &Side) -> Result<Running> {
        let kafka = self.programs.start(side.contender, side.durability)?;
        for value_bytes in [100, 1024] {
            let topic = format!("warm-up-{value_bytes}");
            let volume = Volume { value_bytes, records: 1_000_000, partitions: 1 };
            setup::create_topic(kafka.broker, &topic, 1, &[])?;
            for _ in 0..3 {
                produce_batches(&kafka, &topic, volume)?;
            }
        }
        Ok(kafka)
    }
}

fn run_on(running: &Running, side: &Side, topic: &str) -> Result<Sample> {
    let partitions = match side.shape {
        Shape::Produce(volume)
        | Shape::Consume(volume)
        | Shape::Batches(volume)
        | Shape::Fetch(volume) => volume.partitions,
        Shape::Unbatched(many)
        | Shape::Besieged(many)
        | Shape::Retained(many, _)
        | Shape::Removal(many, _)
        | Shape::Compaction(many, _) => many.partitions,
        Shape::Groups(_) => 1,
        Shape::Start | Shape::Idle { .. } | Shape::Estate(_) | Shape::Database(_) => 0,
    };
    if partitions > 0 && side.contender != Contender::Journal {
        let configs = topic_configs(side.contender, side.durability);
        setup::create_topic(running.broker, topic, partitions, configs)?;
    }
    match side.shape {
        Shape::Produce(volume) => {
            account(running, twice(volume), || client_produce(running, topic, volume))
        }
        Shape::Batches(volume) => {
            account(running, twice(volume), || produce_batches(running, topic, volume))
        }
        Shape::Consume(volume) => {
            fill(running, topic, volume)?;
            let pass = || client_consume(running, topic, volume);
            account(running, WARM_BYTES_MIN, || repeat(CONSUME_PASSES, pass))
        }
        Shape::Fetch(volume) => {
            fill(running, topic, volume)?;
            let (broker, topic) = (running.broker, topic.to_owned());
            let load = Fetch { broker, topic, max_bytes: FETCH_BYTES, records: volume.records };
            account(running, WARM_BYTES_MIN, || repeat(FETCH_PASSES, || fetch::run(&load)))
        }
        Shape::Unbatched(many) => {
            account(running, WARM_BYTES_MIN, || unbatched_load(running, topic, many))
        }
        Shape::Besieged(many) => {
            let hostile = Hostile::start(running.broker);
            let sample = account(running, WARM_BYTES_MIN, || unbatched_load(running, topic, many));
            drop(hostile);
            sample
        }
        Shape::Retained(many, count) => upkeep::retained(running, side, topic, many, count),
        Shape::Removal(many, fate) => upkeep::removal(running, side, topic, many, fate),
        Shape::Compaction(many, pass) => upkeep::compaction(running, side, topic, many, pass),
        Shape::Groups(crowd) => {
            account(running, WARM_BYTES_MIN, || groups_load(running, topic, crowd))
        }
        Shape::Start => account(running, 0, || {
            std::thread::sleep(REST);
            Ok(Load::default())
        }),
        Shape::Idle { connections } => idle_connections(running, connections),
        Shape::Estate(_) => anyhow::bail!("an estate is measured over a restart"),
        Shape::Database(_) => anyhow::bail!("a database has runs of its own"),
    }
}

/// Several loads as one: a single pass over what a page cache keeps is over in 50 ms.
fn repeat(passes: usize, pass: impl Fn() -> Result<Load>) -> Result<Load> {
    let mut sum = Load::default();
    for _ in 0..passes {
        let load = pass()?;
        sum.records += load.records;
        sum.bytes += load.bytes;
        sum.requests += load.requests;
        sum.elapsed += load.elapsed;
    }
    Ok(sum)
}

/// Memory for what a run writes, twice: a broker may keep it in a journal and in segments.
fn twice(volume: Volume) -> usize {
    let twice = 2 * volume.value_bytes as u64 * volume.records;
    (twice as usize).clamp(WARM_BYTES_MIN, WARM_BYTES_MAX)
}

/// Produces what a consumer is to read.
fn fill(running: &Running, topic: &str, volume: Volume) -> Result<()> {
    let released = WarmMemory::take(twice(volume)).release();
    produce_batches(running, topic, volume)?;
    released.join().expect("releasing memory does not panic");
    Ok(())
}

pub(super) fn account(
    running: &Running,
    warm_bytes: usize,
    load: impl FnOnce() -> Result<Load>,
) -> Result<Sample> {
    let broker = running.account.as_ref().context("the broker is gone")?;
    let all: Vec<&Account> = [broker].into_iter().chain(running.database.as_deref()).collect();
    Ok(Sample {
        ready: running.ready,
        resident_bytes: broker.resident(),
        resident_peak_bytes: broker.resident_peak(),
        page_cache_bytes: broker.page_cache(),
        peak_bytes: broker.peak(),
        ..account_of(&all, running.folder(), warm_bytes, load)?
    })
}

/// Accounts for these processes, whose files are in `folder`; their memory is not looked at.
pub(super) fn account_of(
    accounts: &[&Account],
    folder: &Path,
    warm_bytes: usize,
    load: impl FnOnce() -> Result<Load>,
) -> Result<Sample> {
    let cpu = || accounts.iter().map(|account| account.cpu()).sum::<io::Result<Duration>>();
    let quiet = wait_for_quiet(QUIET_PATIENCE);
    let warm = WarmMemory::take(warm_bytes);
    let host = HostTime::now();
    let (client, broker) = (own_cpu()?, cpu()?);
    let flushes = disk::flushes(folder);
    let released = warm.release();
    let load = load()?;
    let broker_cpu = cpu()?.saturating_sub(broker);
    let client_cpu = own_cpu()?.saturating_sub(client);
    let now = HostTime::now();
    let others = now.busy.saturating_sub(host.busy).saturating_sub(broker_cpu + client_cpu);
    released.join().expect("releasing memory does not panic");
    let cores = std::thread::available_parallelism()?.get() as f64;
    let wall = now.total.saturating_sub(host.total).as_secs_f64().max(0.01) / cores;
    Ok(Sample {
        load,
        broker_cpu,
        client_cpu,
        others_cores: others.as_secs_f64() / wall,
        quiet,
        flushes: disk::flushes(folder).zip(flushes).map(|(now, then)| now - then),
        ..Sample::default()
    })
}

fn idle_connections(running: &Running, connections: usize) -> Result<Sample> {
    let account = running.account.as_ref().context("the broker is gone")?;
    let before = account.resident().context("resident memory is not known")?;
    let held = idle::open(running.broker, connections)?;
    let mut sample = self::account(running, 0, || {
        std::thread::sleep(REST);
        Ok(Load::default())
    })?;
    let after = sample.resident_bytes.context("resident memory is not known")?;
    sample.bytes_per_connection = Some((after as f64 - before as f64) / connections as f64);
    drop(held);
    Ok(sample)
}

fn groups_load(running: &Running, topic: &str, crowd: Crowd) -> Result<Load> {
    groups::run(&Groups {
        broker: running.broker,
        topic: topic.to_owned(),
        groups: crowd.groups,
        members: crowd.members,
        hanging: crowd.hanging,
        crowd: crowd.crowd,
        commits: crowd.commits,
        warm_up: WARM_UP,
        duration: MEASURE,
    })
}

fn estate(
    programs: &Programs,
    running: &mut Running,
    side: &Side,
    Lands { topics, partitions, written }: Lands,
) -> Result<Sample> {
    let resident = |running: &Running| {
        let account = running.account.as_ref().context("the broker is gone")?;
        account.resident().context("resident memory is not known")
    };
    let estate = |running: &Running| Estate { broker: running.broker, topics, partitions };
    let before = resident(running)?;
    let created = estate(running).create()?;
    if written {
        estate(running).write()?;
        if side.contender == Contender::Strandline {
            estate(running).let_rest()?;
        }
    }
    let metadata = estate(running).metadata()?;
    let mut sample = account(running, 0, || {
        std::thread::sleep(REST);
        Ok(Load { records: topics as u64, elapsed: created, ..Load::default() })
    })?;
    let held = resident(running)?.saturating_sub(before) as f64;
    sample.bytes_per_partition = Some(held / (topics * partitions) as f64);
    sample.metadata = Some(metadata);
    sample.described = Some(estate(running).describe()?);
    sample.altered = Some(estate(running).alter()?);
    running.restart(programs, side.contender, side.durability)?;
    sample.restarted = Some(running.ready);
    // They are all there again.
    estate(running).metadata()?;
    Ok(sample)
}

pub(super) fn produce_batches(running: &Running, topic: &str, volume: Volume) -> Result<Load> {
    batches::run(&Batches {
        broker: running.broker,
        topic: topic.to_owned(),
        partitions: volume.partitions,
        value_bytes: volume.value_bytes,
        batch_bytes: BATCH_BYTES,
        records: volume.records,
    })
}

fn unbatched_load(running: &Running, topic: &str, many: Many) -> Result<Load> {
    unbatched::run(&one_record_a_request(running, topic, many, MEASURE))
}

pub(super) fn one_record_a_request(
    running: &Running,
    topic: &str,
    many: Many,
    duration: Duration,
) -> Unbatched {
    Unbatched {
        broker: running.broker,
        topic: topic.to_owned(),
        partitions: many.partitions,
        connections: many.connections,
        value_bytes: 100,
        warm_up: WARM_UP,
        duration,
    }
}

#[cfg(feature = "librdkafka")]
fn client(running: &Running, topic: &str, volume: Volume) -> crate::drive::librdkafka::Client {
    crate::drive::librdkafka::Client {
        broker: running.broker,
        topic: topic.to_owned(),
        partitions: volume.partitions,
        value_bytes: volume.value_bytes,
        records: volume.records,
    }
}

#[cfg(feature = "librdkafka")]
fn client_produce(running: &Running, topic: &str, volume: Volume) -> Result<Load> {
    client(running, topic, volume).produce()
}

#[cfg(feature = "librdkafka")]
fn client_consume(running: &Running, topic: &str, volume: Volume) -> Result<Load> {
    client(running, topic, volume).consume()
}

#[cfg(not(feature = "librdkafka"))]
fn client_produce(_: &Running, _: &str, _: Volume) -> Result<Load> {
    anyhow::bail!("built without the feature `librdkafka`")
}

#[cfg(not(feature = "librdkafka"))]
fn client_consume(_: &Running, _: &str, _: Volume) -> Result<Load> {
    anyhow::bail!("built without the feature `librdkafka`")
}
