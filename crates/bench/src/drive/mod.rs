//! Load drivers: each runs one kind of load against an address and says what came of it.

pub mod batches;
pub mod churn;
pub mod closed_loop;
pub mod compacted;
pub mod estate;
pub mod fetch;
pub mod folder;
pub mod groups;
pub mod hostile;
pub mod idle;
#[cfg(feature = "librdkafka")]
pub mod librdkafka;
pub mod removal;
pub mod segments;
pub mod setup;
pub mod unbatched;

use std::time::Duration;

use hdrhistogram::Histogram;
use serde::Serialize;

/// What a driver did.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Load {
    /// Records acknowledged, or consumed.
    pub records: u64,
    /// Bytes of their values.
    pub bytes: u64,
    /// Requests, where the driver knows; else 0.
    pub requests: u64,
    /// From the first byte sent to the last answer.
    pub elapsed: Duration,
    /// Request latency, where the driver measures it.
    pub latency: Option<Latency>,
}

impl Load {
    /// Records per second.
    pub fn rate(&self) -> f64 {
        self.records as f64 / self.elapsed.as_secs_f64()
    }

    /// Bytes of values per second.
    pub fn bytes_rate(&self) -> f64 {
        self.bytes as f64 / self.elapsed.as_secs_f64()
    }
}

/// Latencies in microseconds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Latency {
    /// Half of the requests were faster.
    pub p50_us: f64,
    /// 99 % were.
    pub p99_us: f64,
    /// 99.9 % were.
    pub p999_us: f64,
    /// The slowest.
    pub max_us: f64,
}

/// A histogram of nanoseconds, from one to a minute.
pub(crate) fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 60_000_000_000, 3).expect("the bounds are right")
}

impl Latency {
    pub(crate) fn of(nanos: &Histogram<u64>) -> Self {
        let at = |q| nanos.value_at_quantile(q) as f64 / 1e3;
        Self { p50_us: at(0.5), p99_us: at(0.99), p999_us: at(0.999), max_us: at(1.0) }
    }
}
