//! All rows in memory, those of the metadata store and the engine's own.
//!
//! The commit thread is the only writer; it changes rows when their group is durable, so a reader
//! never sees what a crash can take back. A snapshot is taken by [`freeze`](Rows::freeze): the rows
//! stay as they are, shared with whoever writes them down, and changes go to a layer above until
//! [`thaw`](Rows::thaw).

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use bytes::Bytes;
use strandline_model::{Offset, PartitionId, Timestamp};
use strandline_storage::{Compacted, Page, Row};

use crate::segment::SegmentFacts;
use crate::tables::{self, DamageRow, EpochRow, OF_PARTITIONS, TableNumber};

/// The identity of a row.
pub(crate) type RowKey = (TableNumber, Bytes);

/// Rows as of one moment, in order.
pub(crate) type RowMap = BTreeMap<RowKey, Bytes>;

/// See the [module](self).
#[derive(Debug, Default)]
pub(crate) struct Rows {
    base: Arc<RowMap>,
    /// Changes since the freeze; `None` while nothing is frozen.
    above: Option<BTreeMap<RowKey, Option<Bytes>>>,
}

impl Rows {
    pub(crate) fn from_map(rows: RowMap) -> Self {
        Self { base: Arc::new(rows), above: None }
    }

    pub(crate) fn into_map(self) -> RowMap {
        Arc::unwrap_or_clone(self.base)
    }

    pub(crate) fn get(&self, table: TableNumber, key: &[u8]) -> Option<&Bytes> {
        let key = (table, Bytes::copy_from_slice(key));
        match self.above.as_ref().and_then(|above| above.get(&key)) {
            Some(changed) => changed.as_ref(),
            None => self.base.get(&key),
        }
    }

    /// Puts a row, or deletes it when there is no value. Neither should be a slice of something larger.
    pub(crate) fn change(&mut self, key: RowKey, value: Option<Bytes>) {
        match (&mut self.above, value) {
            (Some(above), value) => {
                above.insert(key, value);
            }
            (None, Some(value)) => {
                self.base_mut().insert(key, value);
            }
            (None, None) => {
                self.base_mut().remove(&key);
            }
        }
    }

    /// Rows of a table in order, after `after`, whose key begins with `prefix`.
    pub(crate) fn range<'a>(
        &'a self,
        table: TableNumber,
        after: Option<&[u8]>,
        prefix: &'a [u8],
    ) -> impl Iterator<Item = (&'a Bytes, &'a Bytes)> {
        let from = match after {
            Some(after) if after >= prefix => {
                Bound::Excluded((table, Bytes::copy_from_slice(after)))
            }
            _ => Bound::Included((table, Bytes::copy_from_slice(prefix))),
        };
        let base = self.base.range((from.clone(), Bound::Unbounded));
        let above = self.above.as_ref().map(|above| above.range((from, Bound::Unbounded)));
        Layers { base: base.peekable(), above: above.into_iter().flatten().peekable() }
            .take_while(move |(key, _)| key.0 == table && key.1.starts_with(prefix))
            .map(|(key, value)| (&key.1, value))
    }

    pub(crate) fn scan(&self, table: TableNumber, after: Option<&[u8]>, limit: usize) -> Page {
        let mut found = self.range(table, after, &[]);
        let rows = found
            .by_ref()
            .take(limit)
            .map(|(key, value)| Row { key: key.clone(), value: value.clone() })
            .collect();
        Page { rows, more: found.next().is_some() }
    }

    /// Shares the rows as they are now. Until [`thaw`](Self::thaw), changes go to a layer above.
    pub(crate) fn freeze(&mut self) -> Arc<RowMap> {
        assert!(self.above.is_none(), "one snapshot at a time");
        self.above = Some(BTreeMap::new());
        Arc::clone(&self.base)
    }

    /// Brings the changes made since [`freeze`](Self::freeze) down. The frozen rows must have been
    /// dropped by whoever got them; otherwise they are copied.
    pub(crate) fn thaw(&mut self) {
        for ((table, key), value) in self.above.take().into_iter().flatten() {
            match value {
                Some(value) => self.base_mut().insert((table, key), value),
                None => self.base_mut().remove(&(table, key)),
            };
        }
    }

    fn base_mut(&mut self) -> &mut RowMap {
        Arc::make_mut(&mut self.base)
    }
}

/// The engine's own rows, typed. Values that do not parse are damage that the checksums of journal
/// and snapshot would have shown; they count as absent.
impl Rows {
    pub(crate) fn segments(&self, id: PartitionId) -> Vec<SegmentFacts> {
        let prefix = tables::partition_key(id);
        self.range(tables::SEGMENTS, None, &prefix)
            .filter_map(|(key, value)| tables::parse_segment(key, value))
            .collect()
    }

    /// The segments of a log of which every row can be read: only then may the files that the rows do not
    /// name be called leftovers.
    pub(crate) fn all_segments(&self, id: PartitionId) -> Option<Vec<SegmentFacts>> {
        let prefix = tables::partition_key(id);
        self.range(tables::SEGMENTS, None, &prefix)
            .map(|(key, value)| tables::parse_segment(key, value))
            .collect()
    }

    pub(crate) fn put_segment(&mut self, id: PartitionId, facts: &SegmentFacts) {
        let key = tables::segment_key(id, facts.base_offset);
        let value = tables::segment_value(facts);
        self.change((tables::SEGMENTS, Bytes::copy_from_slice(&key)), Some(value));
    }

    /// Where a log ends: behind its last segment, or at its start when it was emptied.
    pub(crate) fn end(&self, id: PartitionId) -> Offset {
        let log_start = self.log_start(id).unwrap_or(Offset::ZERO);
        self.segments(id).last().map_or(log_start, |last| last.next_offset.max(log_start))
    }

    pub(crate) fn epoch(&self, id: PartitionId) -> Option<EpochRow> {
        self.get(tables::EPOCHS, &tables::partition_key(id))
            .and_then(|value| EpochRow::parse(value))
    }

    pub(crate) fn log_start(&self, id: PartitionId) -> Option<Offset> {
        self.get(tables::LOG_STARTS, &tables::partition_key(id))
            .and_then(|value| tables::parse_offset(value))
    }

    /// Whether the log has any row.
    pub(crate) fn has_log(&self, id: PartitionId) -> bool {
        !self.keys_of(id).is_empty()
    }

    /// Whether the log has the row of a segment, or one of what it once had.
    pub(crate) fn has_segments(&self, id: PartitionId) -> bool {
        !self.segments(id).is_empty() || self.log_start(id).is_some()
    }

    /// The rows of a log.
    pub(crate) fn keys_of(&self, id: PartitionId) -> Vec<RowKey> {
        let prefix = tables::partition_key(id);
        let mut keys = Vec::new();
        for table in OF_PARTITIONS {
            keys.extend(self.range(table, None, &prefix).map(|(key, _)| (table, key.clone())));
        }
        keys
    }

    /// Bytes of the segments of those logs that `counts` names.
    pub(crate) fn segment_bytes(&self, counts: impl Fn(PartitionId) -> bool) -> u64 {
        self.range(tables::SEGMENTS, None, &[])
            .filter(|(key, _)| tables::key_partition(key).is_some_and(&counts))
            .filter_map(|(key, value)| tables::parse_segment(key, value))
            .map(|facts| facts.bytes)
            .sum()
    }

    pub(crate) fn is_removed(&self, id: PartitionId) -> bool {
        self.get(tables::REMOVALS, &tables::partition_key(id)).is_some()
    }

    /// Why the log stays closed, if it does.
    pub(crate) fn damage(&self, id: PartitionId) -> Option<DamageRow> {
        let value = self.get(tables::DAMAGES, &tables::partition_key(id));
        value.map(|value| DamageRow::parse(value))
    }

    /// Where a damaged log ends: nothing may be appended below.
    pub(crate) fn damaged_end(&self, id: PartitionId) -> Option<Offset> {
        let value = self.get(tables::DAMAGED_ENDS, &tables::partition_key(id));
        value.and_then(|value| tables::parse_offset(value))
    }

    /// Since when the log is in quarantine, if it is.
    pub(crate) fn quarantined(&self, id: PartitionId) -> Option<Timestamp> {
        let value = self.get(tables::QUARANTINES, &tables::partition_key(id));
        value.map(|value| tables::parse_quarantine(value))
    }

    /// All logs in quarantine, in order, and since when.
    pub(crate) fn all_quarantined(&self) -> Vec<(PartitionId, Timestamp)> {
        let rows = self.range(tables::QUARANTINES, None, &[]);
        let parsed = rows.filter_map(|(key, value)| {
            Some((tables::key_partition(key)?, tables::parse_quarantine(value)))
        });
        parsed.collect()
    }

    /// How far the log is compacted. A row that is not there, or does not parse, costs a pass.
    pub(crate) fn compacted(&self, id: PartitionId) -> Compacted {
        let value = self.get(tables::COMPACTED, &tables::partition_key(id));
        value.and_then(|value| tables::parse_compacted(value)).unwrap_or_default()
    }

    pub(crate) fn state(&self, id: PartitionId) -> Option<(Offset, Bytes)> {
        self.get(tables::STATES, &tables::partition_key(id)).and_then(tables::parse_state)
    }

    /// Every partition that has a row of its own here, in order.
    pub(crate) fn partitions(&self) -> Vec<PartitionId> {
        let mut ids = Vec::new();
        for table in OF_PARTITIONS {
            let found =
                self.range(table, None, &[]).filter_map(|(key, _)| tables::key_partition(key));
            ids.extend(found);
        }
        ids.sort_unstable();
        ids.dedup();
        ids
    }
}

/// Two layers walked together; the upper one wins.
struct Layers<B: Iterator, A: Iterator> {
    base: std::iter::Peekable<B>,
    above: std::iter::Peekable<A>,
}

impl<'a, B, A> Iterator for Layers<B, A>
where
    B: Iterator<Item = (&'a RowKey, &'a Bytes)>,
    A: Iterator<Item = (&'a RowKey, &'a Option<Bytes>)>,
{
    type Item = (&'a RowKey, &'a Bytes);

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let (below, above) = match (self.base.peek(), self.above.peek()) {
                (_, None) => return self.base.next(),
                (None, Some(_)) => (false, true),
                (Some((base, _)), Some((above, _))) => (base <= above, above <= base),
            };
            match (below, above) {
                (true, false) => return self.base.next(),
                // A row of both layers: the lower one is hidden.
                (hidden, _) => {
                    if hidden {
                        self.base.next();
                    }
                    if let Some((key, Some(value))) = self.above.next() {
                        return Some((key, value));
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TABLE: TableNumber = TableNumber(1);

    fn put(rows: &mut Rows, table: TableNumber, key: &[u8], value: &[u8]) {
        let value = Some(Bytes::copy_from_slice(value));
        rows.change((table, Bytes::copy_from_slice(key)), value);
    }

    fn delete(rows: &mut Rows, key: &[u8]) {
        rows.change((TABLE, Bytes::copy_from_slice(key)), None);
    }

    fn all(rows: &Rows) -> Vec<(Vec<u8>, Vec<u8>)> {
        rows.range(TABLE, None, &[]).map(|(k, v)| (k.to_vec(), v.to_vec())).collect()
    }

    #[test]
    fn a_scan_goes_on_after_a_key_that_is_gone() {
        let mut rows = Rows::default();
        for key in [b"a", b"b", b"c", b"d"] {
            put(&mut rows, TABLE, key, key);
        }
        put(&mut rows, TableNumber(2), b"e", b"");
        delete(&mut rows, b"b");
        let page = rows.scan(TABLE, Some(b"b"), 1);
        assert_eq!(page.rows[0].key, "c");
        assert!(page.more);
        assert!(!rows.scan(TABLE, Some(b"b"), 2).more);
    }

    proptest! {
        #[test]
        fn layers_read_like_one_map_and_what_is_frozen_stays(
            changes in prop::collection::vec((0..12_u8, any::<Option<u8>>(), 0..8_u8), 0..120),
        ) {
            let mut rows = Rows::default();
            let mut model = BTreeMap::new();
            let mut frozen: Option<(Arc<RowMap>, RowMap)> = None;
            for (key, value, event) in changes {
                match (event, frozen.take()) {
                    (0, None) => {
                        let shared = rows.freeze();
                        frozen = Some((Arc::clone(&shared), (*shared).clone()));
                    }
                    (1, Some((shared, copy))) => {
                        prop_assert_eq!(&*shared, &copy);
                        drop(shared);
                        rows.thaw();
                    }
                    (_, kept) => frozen = kept,
                }
                if let Some(value) = value {
                    put(&mut rows, TABLE, &[key], &[value]);
                    model.insert(vec![key], vec![value]);
                } else {
                    delete(&mut rows, &[key]);
                    model.remove(&vec![key]);
                }
                prop_assert_eq!(rows.get(TABLE, &[key]).map(|v| v.to_vec()), model.get(&vec![key]).cloned());
                prop_assert_eq!(all(&rows), model.clone().into_iter().collect::<Vec<_>>());
            }
        }
    }
}
