//! The levels of features, kept in one row.
//!
//! # On disk
//!
//! Written as `row_codec.rs` says.
//!
//! | row | key | value |
//! | --- | --- | --- |
//! | levels | `features` | version u8 = 1, epoch i64, count u16, then for each feature its name and its level i16 |
//!
//! # Invariants
//! - A level that is told is durable, and the epoch rises with each change.

use std::collections::BTreeMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use bytes::{Buf, BufMut, Bytes, BytesMut};
use strandline_model::{FeatureError, FeatureLevels, FeatureUpdate};
use strandline_storage::{CommitError, MetaBatch, MetaStore, StorageError, Table};
use tokio::sync::Semaphore;

use crate::Broker;
use crate::row_codec::{RowError, check_version, put_text, take_text};
use crate::topic::LoadError;

const KEY: &[u8] = b"features";
const VERSION: u8 = 1;

/// The levels in force.
#[derive(Debug)]
pub(crate) struct Features {
    meta: Arc<dyn MetaStore>,
    now: ArcSwap<FeatureLevels>,
    /// One change at a time.
    changing: Semaphore,
}

/// Why levels were not changed.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UpdateError {
    #[error("{0}")]
    Refused(FeatureError),
    #[error(transparent)]
    Storage(#[from] StorageError),
}

impl Features {
    /// Reads the row. Features without a level in it begin with the one in `wanted`, or their default.
    pub(crate) async fn load(
        meta: Arc<dyn MetaStore>,
        wanted: &BTreeMap<String, i16>,
    ) -> Result<Self, LoadError> {
        let kept = match meta.get(Table::Cluster, Bytes::from_static(KEY)).await? {
            None => FeatureLevels::default(),
            Some(value) => decode(value).map_err(|error| {
                let key = Bytes::from_static(KEY);
                LoadError::Row { table: Table::Cluster, key, error }
            })?,
        };
        let levels = kept.complete(wanted);
        if levels != kept {
            commit(meta.as_ref(), &levels).await?;
        }
        Ok(Self { meta, now: ArcSwap::from_pointee(levels), changing: Semaphore::new(1) })
    }

    /// The levels in force.
    pub(crate) fn now(&self) -> Arc<FeatureLevels> {
        self.now.load_full()
    }
}

impl Broker {
    /// Changes levels, all or none, or only checks whether it could. In force, and durable, when it
    /// returns.
    pub(crate) async fn update_features(
        self: &Arc<Self>,
        updates: Vec<FeatureUpdate>,
        validate_only: bool,
    ) -> Result<(), UpdateError> {
        let broker = Arc::clone(self);
        let updated = async move {
            let features = broker.features();
            let permit = features.changing.acquire().await.expect("the semaphore is never closed");
            let now = features.now();
            let next = now.updated(&updates, broker.node_id()).map_err(UpdateError::Refused)?;
            if !validate_only && next != *now {
                commit(features.meta.as_ref(), &next).await?;
                tracing::info!(levels = ?next.levels(), epoch = next.epoch(), "features changed");
                features.now.store(Arc::new(next));
            }
            drop(permit);
            Ok(())
        };
        self.to_the_end("update features", updated).await?
    }
}

async fn commit(meta: &dyn MetaStore, levels: &FeatureLevels) -> Result<(), StorageError> {
    let key = Bytes::from_static(KEY);
    match meta.commit(MetaBatch::new().put(Table::Cluster, key, encode(levels))).await {
        Ok(()) => Ok(()),
        Err(CommitError::Storage(error)) => Err(error),
        Err(CommitError::Unexpected { .. }) => unreachable!("nothing is expected"),
    }
}

fn encode(levels: &FeatureLevels) -> Bytes {
    let mut buf = BytesMut::new();
    buf.put_u8(VERSION);
    buf.put_i64(levels.epoch());
    buf.put_u16(u16::try_from(levels.levels().len()).expect("there are fewer features"));
    for (name, level) in levels.levels() {
        put_text(&mut buf, name);
        buf.put_i16(*level);
    }
    buf.freeze()
}

fn decode(mut value: Bytes) -> Result<FeatureLevels, RowError> {
    check_version(&mut value, VERSION)?;
    let damaged = |_| RowError::Damaged;
    let epoch = value.try_get_i64().map_err(damaged)?;
    let mut levels = BTreeMap::new();
    for _ in 0..value.try_get_u16().map_err(damaged)? {
        levels.insert(take_text(&mut value)?, value.try_get_i16().map_err(damaged)?);
    }
    if value.has_remaining() {
        return Err(RowError::Damaged);
    }
    Ok(FeatureLevels::kept(levels, epoch))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_round_trip_and_damage_is_told() {
        let levels = BTreeMap::from([("a".to_owned(), 7), ("later".to_owned(), 0)]);
        let levels = FeatureLevels::kept(levels, 12);
        let whole = encode(&levels);
        assert_eq!(decode(whole.clone()), Ok(levels));
        for end in 0..whole.len() {
            assert!(decode(whole.slice(..end)).is_err(), "{end}");
        }
        assert_eq!(decode(Bytes::from_static(&[2])), Err(RowError::Version(2)));
    }
}
