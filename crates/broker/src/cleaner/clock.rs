//! The time that retention goes by, and the one that appends are dated by; over restarts too.
//!
//! # On disk
//!
//! Written as `row_codec.rs` says, while the wall clock is not believed.
//!
//! | row | key | value |
//! | --- | --- | --- |
//! | disbelief | `retention.clock` | version u8 = 1, believed i64, least i64, held u64: milliseconds |

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use parking_lot::Mutex;
use strandline_model::Timestamp;
use strandline_partition::retention::{Disbelief, TrustedClock};
use strandline_storage::{CommitError, MetaBatch, MetaStore, StorageError, Table};

use crate::environment::Environment;
use crate::row_codec::{RowError, check_version};

const KEY: &[u8] = b"retention.clock";
const VERSION: u8 = 1;

/// Between two writes of the row.
const KEPT_EVERY: Duration = Duration::from_mins(1);

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Clock {
    environment: Arc<dyn Environment>,
    meta: Arc<dyn MetaStore>,
    trusted: Mutex<TrustedClock>,
    /// Appends are dated no earlier than this, in milliseconds: the newest append that is believed.
    floor_ms: AtomicI64,
    kept: Mutex<Kept>,
}

/// What the row says.
#[derive(Clone, Copy, Debug, Default)]
struct Kept {
    disbelief: Option<Disbelief>,
    /// When it was written, by the monotonic clock.
    at: Duration,
}

impl Clock {
    pub(super) fn new(environment: Arc<dyn Environment>, meta: Arc<dyn MetaStore>) -> Self {
        Self {
            environment,
            meta,
            trusted: Mutex::default(),
            floor_ms: AtomicI64::new(0),
            kept: Mutex::default(),
        }
    }

    /// Begins with what was kept, and with the newest append that the logs know of.
    pub(super) async fn start(&self, newest_append: Option<Timestamp>) {
        let disbelief = match self.load().await {
            Ok(disbelief) => disbelief,
            Err(error) => {
                tracing::warn!(%error, "what was kept of the clock can't be read");
                None
            }
        };
        let (wall, monotonic) = (self.environment.now(), self.environment.monotonic());
        *self.trusted.lock() = TrustedClock::start(disbelief, newest_append, wall, monotonic);
        *self.kept.lock() = Kept { disbelief, at: monotonic };
        let now = self.now();
        if now < wall {
            tracing::warn!(
                clock = %wall, believed = %now,
                "the clock is far ahead of the newest records: retention.ms removes by the earlier \
                 time for an hour"
            );
        }
        // What a clock dated that was not believed then is not believed now.
        let is_believed = disbelief.is_none();
        let floor = newest_append.map(|newest| if is_believed { newest } else { newest.min(now) });
        self.raise_floor(floor);
    }

    /// The time that retention goes by.
    pub(super) fn now(&self) -> Timestamp {
        self.trusted.lock().now(self.environment.now(), self.environment.monotonic())
    }

    /// The latest that any clock says.
    pub(super) fn latest(&self, now: Timestamp) -> Timestamp {
        now.max(self.environment.now())
    }

    /// Time that never jumps.
    pub(super) fn monotonic(&self) -> Duration {
        self.environment.monotonic()
    }

    /// The time that an append is dated by: a clock that is behind, at a start or later, does not
    /// make what comes now older than what is there.
    pub(super) fn append_time(&self) -> Timestamp {
        self.environment.now().max(Timestamp::from_millis(self.floor_ms.load(Ordering::Relaxed)))
    }

    /// Takes note of the newest append, as far as `now` is believed to have passed.
    pub(super) fn saw_append(&self, newest: Option<Timestamp>, now: Timestamp) {
        self.raise_floor(newest.map(|newest| newest.min(now)));
    }

    fn raise_floor(&self, to: Option<Timestamp>) {
        if let Some(to) = to {
            self.floor_ms.fetch_max(to.as_millis(), Ordering::Relaxed);
        }
    }

    /// Keeps what the next start must know, at times. A failure is told and made up for later.
    pub(super) async fn keep(&self) {
        let monotonic = self.environment.monotonic();
        let disbelief = self.trusted.lock().disbelief(monotonic);
        let kept = *self.kept.lock();
        let is_due = monotonic.saturating_sub(kept.at) >= KEPT_EVERY;
        if disbelief.is_none() && kept.disbelief.is_none()
            || disbelief.is_some() && kept.disbelief.is_some() && !is_due
        {
            return;
        }
        match self.save(disbelief).await {
            Ok(()) => *self.kept.lock() = Kept { disbelief, at: monotonic },
            Err(error) => tracing::warn!(%error, "the clock's jump was not kept"),
        }
    }

    async fn load(&self) -> Result<Option<Disbelief>, LoadError> {
        let value = self.meta.get(Table::Cluster, Bytes::from_static(KEY)).await?;
        Ok(value.map(decode).transpose()?)
    }

    async fn save(&self, disbelief: Option<Disbelief>) -> Result<(), StorageError> {
        let key = Bytes::from_static(KEY);
        let batch = match disbelief {
            Some(disbelief) => MetaBatch::new().put(Table::Cluster, key, encode(&disbelief)),
            None => MetaBatch::new().delete(Table::Cluster, key),
        };
        match self.meta.commit(batch).await {
            Ok(()) => Ok(()),
            Err(CommitError::Storage(error)) => Err(error),
            Err(CommitError::Unexpected { .. }) => unreachable!("nothing is expected"),
        }
    }
}

/// Why the row was not read.
#[derive(Debug, thiserror::Error)]
enum LoadError {
    #[error(transparent)]
    Row(#[from] RowError),
    #[error(transparent)]
    Storage(#[from] StorageError),
}

fn encode(disbelief: &Disbelief) -> Bytes {
    let mut buf = BytesMut::new();
    buf.put_u8(VERSION);
    buf.put_i64(disbelief.believed.as_millis());
    buf.put_i64(disbelief.least.as_millis());
    buf.put_u64(u64::try_from(disbelief.held.as_millis()).unwrap_or(u64::MAX));
    buf.freeze()
}

fn decode(mut value: Bytes) -> Result<Disbelief, RowError> {
    check_version(&mut value, VERSION)?;
    let damaged = |_| RowError::Damaged;
    let mut time = || {
        let millis = value.try_get_i64().map_err(damaged)?;
        if millis < 0 { Err(RowError::Damaged) } else { Ok(Timestamp::from_millis(millis)) }
    };
    let (believed, least) = (time()?, time()?);
    let held = Duration::from_millis(value.try_get_u64().map_err(damaged)?);
    if value.has_remaining() {
        return Err(RowError::Damaged);
    }
    Ok(Disbelief { believed, least, held })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_row_round_trips_and_damage_is_told() {
        let disbelief = Disbelief {
            believed: Timestamp::from_millis(5),
            least: Timestamp::from_millis(77_000),
            held: Duration::from_millis(9),
        };
        let row = encode(&disbelief);
        assert_eq!(decode(row.clone()).unwrap(), disbelief);
        for cut in 0..row.len() {
            assert!(decode(row.slice(..cut)).is_err(), "{cut}");
        }
        let mut longer = BytesMut::from(&row[..]);
        longer.put_u8(0);
        assert!(decode(longer.freeze()).is_err());
        let mut negative = BytesMut::from(&row[..]);
        negative[1] = 0xff;
        assert!(decode(negative.freeze()).is_err());
    }
}
