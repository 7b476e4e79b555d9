//! The third pass over the journal, when logs were found damaged: what it holds of them is written to
//! files of their own, since its space is given up at the end of the recovery.

use std::collections::btree_map::Entry as MapEntry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use strandline_model::{Offset, PartitionId};
use strandline_storage::StorageError;

use super::decide::Decisions;
use super::replay::loss_of;
use super::report::OpenError;
use super::table::EntryVerdict;
use crate::journal::group::{AppendHead, Entry, Group};
use crate::rows::Rows;
use crate::segment::{Placement, RescueFile, SegmentStore};
use crate::tables::{self, DamageRow};

#[derive(Debug)]
pub(super) struct Rescue {
    decisions: Decisions,
    store: Arc<SegmentStore>,
    /// Why each is damaged.
    reasons: BTreeMap<PartitionId, String>,
    files: BTreeMap<PartitionId, (Offset, RescueFile)>,
}

impl Rescue {
    /// Of the logs that `reasons` names.
    pub(super) fn new(
        mut decisions: Decisions,
        store: Arc<SegmentStore>,
        reasons: BTreeMap<PartitionId, String>,
    ) -> Self {
        decisions.begin_again();
        Self { decisions, store, reasons, files: BTreeMap::new() }
    }

    /// Whether no log is damaged.
    pub(super) fn is_needless(&self) -> bool {
        self.reasons.is_empty()
    }

    pub(super) fn read(&mut self, group: &Group) -> Result<(), OpenError> {
        for entry in &group.entries {
            let (Entry::Append(head, _) | Entry::Written(head, _)) = entry else {
                self.decisions.pass(entry);
                continue;
            };
            if !self.reasons.contains_key(&head.partition)
                || self.decisions.decide(head, true) != EntryVerdict::Rescue
            {
                continue;
            }
            match entry {
                Entry::Append(_, bytes) => self.keep(head, bytes)?,
                Entry::Written(_, written) => {
                    let place = Placement { segment: head.segment, position: head.position };
                    let there = match self.store.bytes_at(head.partition, place, written.length) {
                        Err(error) if loss_of(&error).is_some() => None,
                        found => found?,
                    };
                    // Those that are not there are why the log is damaged.
                    if let Some(bytes) = there.filter(|bytes| written.are(bytes)) {
                        self.keep(head, &bytes)?;
                    }
                }
                Entry::Put(..) | Entry::Delete(..) | Entry::Checkpoint(_) => {}
            }
        }
        Ok(())
    }

    fn keep(&mut self, head: &AppendHead, bytes: &Bytes) -> Result<(), StorageError> {
        let (_, file) = match self.files.entry(head.partition) {
            MapEntry::Occupied(there) => there.into_mut(),
            MapEntry::Vacant(place) => {
                let file = self.store.begin_rescue(head.partition, head.base_offset)?;
                place.insert((head.base_offset, file))
            }
        };
        file.add(bytes)
    }

    /// Makes the files durable, but for their names, and marks the logs in the rows. Returns these, and
    /// which logs are damaged.
    pub(super) fn finish(mut self) -> Result<(Rows, BTreeSet<PartitionId>), OpenError> {
        let damaged = self.reasons.keys().copied().collect();
        for (id, reason) in self.reasons {
            let rescued = match self.files.remove(&id) {
                Some((base_offset, file)) => {
                    file.sync()?;
                    Some(base_offset)
                }
                None => None,
            };
            let key = Bytes::copy_from_slice(&tables::partition_key(id));
            let value = DamageRow { rescued, reason }.value();
            if let Some(end) = self.decisions.end_of(id) {
                let end = Bytes::copy_from_slice(&tables::offset_value(end));
                self.decisions.rows.change((tables::DAMAGED_ENDS, key.clone()), Some(end));
            }
            self.decisions.rows.change((tables::DAMAGES, key), Some(value));
        }
        Ok((self.decisions.rows, damaged))
    }
}
