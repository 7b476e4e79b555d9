//! Runs of producers beside the upkeep of other logs: retention, deletion, compaction.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context, Result};

use super::run::{
    MEASURE, REST, Sample, WARM_BYTES_MIN, WARM_UP, account, one_record_a_request, produce_batches,
};
use super::workload::{Fate, Many, Pass, Side, Volume};
use crate::contender::{Contender, Running, removed_configs};
use crate::drive::compacted::CompactedLog;
use crate::drive::removal;
use crate::drive::segments::Segments;
use crate::drive::{Load, setup, unbatched};

/// How long producers are watched that nothing disturbs.
const QUIET: Duration = Duration::from_secs(5);
/// A deletion is watched for so long at least: what is looked at is the longest of many waits.
const MEASURE_REMOVAL: Duration = Duration::from_secs(8);
/// What is deleted: 4 GiB.
const REMOVED: Volume = Volume { value_bytes: 16 * 1024, records: 256 * 1024, partitions: 4 };

/// Producers beside a log of many segments that a pass of retention removes; with none, quiet.
pub(super) fn retained(
    running: &Running,
    side: &Side,
    topic: &str,
    many: Many,
    count: usize,
) -> Result<Sample> {
    if count == 0 {
        return quiet(running, topic, many);
    }
    if side.contender == Contender::Strandline {
        // Kafka can't change it at run time, and was started with one that is as good.
        let key = "log.retention.check.interval.ms";
        setup::set(running.broker, setup::Resource::Brokers, key, "100")?;
    }
    let large = format!("{topic}-segments");
    let configs = removed_configs(side.contender);
    let segments = Segments::fill(running.broker, &large, configs, running.folder(), count)?;
    removal::settle(running.folder())?;
    let sample = beside(running, topic, many, MEASURE, || segments.remove())?;
    clear(running, side, &large)?;
    Ok(sample)
}

/// A log that is compacted, alone or beside producers; or producers beside a log that is not.
pub(super) fn compaction(
    running: &Running,
    side: &Side,
    topic: &str,
    many: Many,
    pass: Pass,
) -> Result<Sample> {
    let large = format!("{topic}-compacted");
    let configs = removed_configs(side.contender);
    let log = CompactedLog::fill(running.broker, &large, configs, running.folder())?;
    removal::settle(running.folder())?;
    let sample = match pass {
        Pass::None => quiet(running, topic, many),
        Pass::Alone => alone(running, &log),
        Pass::Beside => beside(running, topic, many, MEASURE, || log.compact()),
    }?;
    if pass != Pass::None {
        log.check()?;
    }
    clear(running, side, &large)?;
    Ok(sample)
}

/// Producers beside a large topic, which may be deleted meanwhile.
pub(super) fn removal(
    running: &Running,
    side: &Side,
    topic: &str,
    many: Many,
    fate: Fate,
) -> Result<Sample> {
    let large = format!("{topic}-large");
    let configs = removed_configs(side.contender);
    setup::create_topic(running.broker, &large, REMOVED.partitions, configs)?;
    produce_batches(running, &large, REMOVED)?;
    removal::settle(running.folder())?;
    if fate == Fate::Stays {
        let load = one_record_a_request(running, topic, many, MEASURE_REMOVAL);
        let sample = account(running, WARM_BYTES_MIN, || unbatched::run(&load))?;
        clear(running, side, &large)?;
        return Ok(sample);
    }
    let bytes = REMOVED.value_bytes as u64 * REMOVED.records;
    let mut sample = beside(running, topic, many, MEASURE_REMOVAL, || {
        removal::remove(running.broker, &large, running.folder(), bytes)
    })?;
    sample.removed = sample.passed.take();
    Ok(sample)
}

/// Deletes what the next run is not to stumble over, where the broker stays.
fn clear(running: &Running, side: &Side, topic: &str) -> Result<()> {
    match side.contender {
        Contender::Kafka => setup::delete_topic(running.broker, topic),
        Contender::Null | Contender::Journal | Contender::Strandline | Contender::Postgres => {
            Ok(())
        }
    }
}

fn quiet(running: &Running, topic: &str, many: Many) -> Result<Sample> {
    let load = one_record_a_request(running, topic, many, QUIET);
    account(running, WARM_BYTES_MIN, || unbatched::run(&load))
}

/// Producers until some work is done, which begins when they are warm, and for so long at least.
pub(super) fn beside(
    running: &Running,
    topic: &str,
    many: Many,
    at_least: Duration,
    work: impl FnOnce() -> Result<Duration> + Send,
) -> Result<Sample> {
    let load = one_record_a_request(running, topic, many, at_least);
    let is_done = AtomicBool::new(false);
    let mut passed = None;
    let mut sample = account(running, WARM_BYTES_MIN, || {
        std::thread::scope(|scope| {
            let worker = scope.spawn(|| {
                std::thread::sleep(WARM_UP);
                let worked = work();
                is_done.store(true, Ordering::Relaxed);
                worked
            });
            let is_over = |elapsed| elapsed >= load.duration && is_done.load(Ordering::Relaxed);
            let loaded = unbatched::run_until(&load, is_over);
            passed = Some(worker.join().expect("the work does not panic")?);
            loaded
        })
    })?;
    sample.passed = passed;
    Ok(sample)
}

/// A pass over a log while nobody asks for anything; its processor time without that of idling.
fn alone(running: &Running, log: &CompactedLog) -> Result<Sample> {
    let account_of_broker = running.account.as_ref().context("the broker is gone")?;
    let before = account_of_broker.cpu()?;
    std::thread::sleep(REST);
    let idle = account_of_broker.cpu()?.saturating_sub(before).as_secs_f64() / REST.as_secs_f64();
    let mut sample = account(running, WARM_BYTES_MIN, || {
        let elapsed = log.compact()?;
        Ok(Load { records: log.records, bytes: log.bytes, elapsed, ..Load::default() })
    })?;
    let idled = sample.load.elapsed.mul_f64(idle);
    sample.broker_cpu = sample.broker_cpu.saturating_sub(idled);
    Ok(sample)
}
