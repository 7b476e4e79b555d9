//! The rows of groups in the metadata store.

use std::ops::RangeInclusive;
use std::sync::Arc;

use bytes::Bytes;
use strandline_coordination::Now;
use strandline_coordination::group::{
    GroupConfig, GroupEvent, GroupRow, GroupRowError, GroupSnapshot, Groups,
};
use strandline_storage::{BoxFuture, Change, ErrorKind, MetaStore, Row, StorageError, Table};

use super::feed::OffsetsFeed;
use crate::drive::{EffectsOf, Keeper, Loaded};
use crate::metrics::Metrics;
use crate::topic::Registry;

/// Rows read at a time.
const SCAN_ROWS: usize = 1_000;

/// What the driver knows of one owner's groups.
#[derive(Debug)]
pub(super) struct GroupKeeper {
    pub(super) meta: Arc<dyn MetaStore>,
    pub(super) registry: Arc<Registry>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) feed: OffsetsFeed,
    pub(super) config: GroupConfig,
    /// The owner's share of the rows: their keys begin with the bucket.
    pub(super) buckets: RangeInclusive<u8>,
}

impl GroupKeeper {
    async fn build(&self, now: Now) -> Result<Loaded<Groups>, StorageError> {
        let mut groups = Groups::new(self.config.clone());
        for table in [Table::Groups, Table::GroupOffsets] {
            // No key is as short as this one, so it is before all of the first bucket.
            let mut after = Some(Bytes::copy_from_slice(&[*self.buckets.start()]));
            'pages: loop {
                let page = self.meta.scan(table, after, SCAN_ROWS).await?;
                for row in &page.rows {
                    if row.key.first().is_some_and(|bucket| bucket > self.buckets.end()) {
                        break 'pages;
                    }
                    self.restore(&mut groups, now, table, row)?;
                }
                after = page.rows.last().map(|row| row.key.clone());
                if !page.more {
                    break;
                }
            }
        }
        let mut effects = EffectsOf::<Groups>::default();
        groups.loaded(now, &mut effects);
        Ok((groups, effects))
    }

    /// A row that can't be read is told of and left alone: the other groups are served.
    /// One of a newer version is not: what it says must not be overwritten.
    fn restore(
        &self,
        groups: &mut Groups,
        now: Now,
        table: Table,
        row: &Row,
    ) -> Result<(), StorageError> {
        match decode(table, row) {
            Ok(row) => {
                let topic = match &row {
                    GroupRow::Offset(key, _) => self.registry.by_id(key.topic_id),
                    GroupRow::Group(..) => None,
                };
                groups.restore(now, row, topic.map(|topic| Arc::from(topic.name().as_str())));
            }
            Err(error @ GroupRowError::Version(_)) => {
                let message = "row of a group was written by a newer version";
                return Err(StorageError::new(ErrorKind::Corrupt, message).caused_by(error));
            }
            Err(error @ GroupRowError::Damaged) => {
                let key = row.key.escape_ascii();
                tracing::error!(?table, %key, %error, "row of a group can't be read, served without it");
            }
        }
        Ok(())
    }
}

impl Keeper for GroupKeeper {
    type Machine = Groups;

    fn load(&self, now: Now) -> BoxFuture<'_, Result<Loaded<Groups>, StorageError>> {
        Box::pin(self.build(now))
    }

    fn change(&self, row: &GroupRow) -> Change {
        let table = match row {
            GroupRow::Group(..) => Table::Groups,
            GroupRow::Offset(..) => Table::GroupOffsets,
        };
        match row.value() {
            Some(value) => Change::Put(table, row.key(), value),
            None => Change::Delete(table, row.key()),
        }
    }

    fn durable(&self, rows: &[GroupRow]) {
        self.feed.tell(rows);
        for row in rows {
            match row {
                GroupRow::Offset(_, Some(_)) => self.metrics.offsets_committed.add(1),
                GroupRow::Offset(_, None) => self.metrics.offsets_removed.add(1),
                GroupRow::Group(group, Some(snapshot)) => tell_generation(group, snapshot),
                GroupRow::Group(group, None) => tracing::info!(%group, "group is gone"),
            }
        }
    }

    fn happened(&self, events: &[GroupEvent]) {
        for GroupEvent::Rebalances(_, why) in events {
            self.metrics.group_rebalances.add(why.cause);
        }
    }
}

/// With why the generation before it ended.
fn tell_generation(group: &str, snapshot: &GroupSnapshot) {
    let (generation, members) = (snapshot.generation, snapshot.members.len());
    let Some(why) = &snapshot.rebalance else {
        return tracing::info!(%group, generation, members, "group has a new generation");
    };
    let (reason, client_reason) = (why.cause.name(), &*why.client_reason);
    let member = why.member.as_ref();
    let client_id = member.map_or("", |member| &member.client_id);
    let host = member.map_or("", |member| member.client_host.trim_start_matches('/'));
    let member = member.map_or("", |member| &member.id);
    tracing::info!(
        %group, generation, members, reason, member, client_id, host, client_reason,
        "group has a new generation"
    );
}

fn decode(table: Table, row: &Row) -> Result<GroupRow, GroupRowError> {
    match table {
        Table::Groups => GroupRow::decode_group(&row.key, row.value.clone()),
        _ => GroupRow::decode_offset(&row.key, row.value.clone()),
    }
}
