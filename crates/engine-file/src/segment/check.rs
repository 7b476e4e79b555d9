//! Checking the files of a log that is not open, up to what its facts believe.

use std::collections::BTreeSet;
use std::io;

use strandline_model::PartitionId;
use strandline_storage::{Finding, StorageError};

use super::SegmentFacts;
use super::index_file::check_entries;
use super::name::{FileKey, FileKind, SegmentName};
use super::store::SegmentStore;
use super::verify::check_batches;

/// What a check of one log's files found.
#[derive(Debug, Default)]
pub(crate) struct Checked {
    /// Durable bytes that are gone or wrong.
    pub(crate) damage: Vec<Finding>,
    /// What is derived or superfluous: it is made anew, or removed, when the log is used.
    pub(crate) notes: Vec<Finding>,
    /// Bytes of batches that were read and are good.
    pub(crate) bytes: u64,
}

impl SegmentStore {
    /// Reads and checks what `facts` believe of a log, changing nothing. `expected` are segments that
    /// may be there besides: the journal has batches of them. Blocks.
    pub(crate) fn check_closed(
        &self,
        id: PartitionId,
        facts: &[SegmentFacts],
        expected: &BTreeSet<SegmentName>,
    ) -> Result<Checked, StorageError> {
        let mut checked = Checked::default();
        for facts in facts {
            self.check_segment(id, facts, &mut checked);
        }
        let named: BTreeSet<_> = facts.iter().map(SegmentFacts::name).collect();
        for segment in self.segments_of(id)? {
            if !named.contains(&segment) && !expected.contains(&segment) {
                let chunk = FileKey::new(id, segment, FileKind::Log).name();
                let message = "no row names this file; the next start removes it".to_owned();
                checked.notes.push(Finding { chunk, position: 0, message });
            }
        }
        Ok(checked)
    }

    fn check_segment(&self, id: PartitionId, facts: &SegmentFacts, checked: &mut Checked) {
        let key = FileKey::new(id, facts.name(), FileKind::Log);
        let mut damage = |position, message| {
            checked.damage.push(Finding { chunk: key.name(), position, message });
        };
        let opened = self.open_file(key).and_then(|file| Ok((file.size()?, file)));
        let (size, file) = match opened {
            Ok(opened) => opened,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return damage(0, "file is missing".to_owned());
            }
            Err(error) => return damage(0, format!("file can't be read. error=`{error}`")),
        };
        if size < facts.bytes {
            damage(size, format!("file is too short. expected=`{}`", facts.bytes));
        }
        let end = size.min(facts.bytes);
        let walk_bytes = self.options.walk_bytes;
        let (totals, fault) =
            match check_batches(&*file, facts.base_offset, end, walk_bytes, |_, _| Ok(())) {
                Ok(found) => found,
                Err(error) => return damage(0, format!("file can't be read. error=`{error}`")),
            };
        if let Some(message) = fault {
            damage(totals.bytes, message);
        } else if end == facts.bytes && totals.next_offset != facts.next_offset {
            let (expected, got) = (facts.next_offset, totals.next_offset);
            damage(end, format!("segment ends elsewhere. expected=`{expected}`, got=`{got}`"));
        }
        checked.bytes += totals.bytes;
        let believed = SegmentFacts { bytes: totals.bytes, ..*facts };
        check_entries(self, key, &believed, &mut checked.notes);
    }
}
