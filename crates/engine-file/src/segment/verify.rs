//! Reading a log whole and checking everything that can be checked.

use std::collections::BTreeSet;
use std::error::Error;
use std::io;

use strandline_model::{Offset, PartitionId, Timestamp};
use strandline_records::{BatchHeader, BatchView};
use strandline_storage::{ErrorKind, Finding, StorageError};

use super::SegmentFacts;
use super::index_file::check_entries;
use super::live::Segment;
use super::log::SegmentLog;
use super::name::{FileKey, FileKind, SegmentName};
use super::store::SegmentStore;
use super::walk::{Walk, WalkError};
use crate::disk::{DiskFile, read_exact_at};

/// What a file holds, read from it alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Scan {
    /// The whole batches from its start on, as far as each follows the one before. Append times stand
    /// in no batch: both are the file's time of modification.
    pub facts: Option<SegmentFacts>,
    /// What ended the scan before the end of the file.
    pub finding: Option<Finding>,
}

impl SegmentStore {
    /// Reads a segment and checks every batch. Blocks.
    pub(crate) fn scan(&self, id: PartitionId, name: SegmentName) -> Result<Scan, StorageError> {
        let SegmentName { base_offset, generation } = name;
        let key = FileKey::new(id, name, FileKind::Log);
        let failed = |error| {
            StorageError::io(format!("scan segment. file=`{}`", key.path().display()), error)
        };
        let file = self.open_file(key).map_err(failed)?;
        let modified = file.modified().map_err(failed)?;
        let size = file.size().map_err(failed)?;
        let checked =
            check_batches(&*file, base_offset, size, self.options.walk_bytes, |_, _| Ok(()));
        let (totals, fault) = checked.map_err(failed)?;
        let facts = (totals.bytes > 0).then_some(SegmentFacts {
            base_offset,
            generation,
            bytes: totals.bytes,
            next_offset: totals.next_offset,
            max_timestamp: totals.max_timestamp,
            first_appended_at: modified,
            last_appended_at: modified,
        });
        let finding =
            fault.map(|message| Finding { chunk: key.name(), position: totals.bytes, message });
        Ok(Scan { facts, finding })
    }

    /// Checks the segments of a log that is not open against `facts`. Blocks.
    pub(crate) fn verify_closed(&self, id: PartitionId, facts: &[SegmentFacts]) -> Vec<Finding> {
        let mut findings = Vec::new();
        for facts in facts {
            let chunk = FileKey::new(id, facts.name(), FileKind::Log).name();
            let (bytes, finding) = match self.scan(id, facts.name()) {
                Ok(scan) => (scan.facts.map_or(0, |found| found.bytes), scan.finding),
                Err(error) if error.kind() == ErrorKind::Missing => {
                    let message = "file is missing".to_owned();
                    (0, Some(Finding { chunk: chunk.clone(), position: 0, message }))
                }
                Err(error) => {
                    let cause = error.source().map_or_else(String::new, ToString::to_string);
                    let message = format!("file can't be read. error=`{cause}`");
                    (0, Some(Finding { chunk: chunk.clone(), position: 0, message }))
                }
            };
            let is_short = finding.is_none() && bytes < facts.bytes;
            findings.extend(finding);
            if is_short {
                let message = format!("file is too short. expected=`{}`", facts.bytes);
                findings.push(Finding { chunk, position: bytes, message });
            }
        }
        findings
    }

    /// The segments that a partition has files of, in order. Blocks.
    pub(crate) fn segments_of(&self, id: PartitionId) -> Result<Vec<SegmentName>, StorageError> {
        let keys = self.files_of(id)?;
        let logs = keys.into_iter().filter(|key| key.kind == FileKind::Log);
        Ok(logs.map(|key| key.segment).collect())
    }
}

impl SegmentLog {
    /// Reads and checks everything of the log, changing nothing. Blocks.
    pub(crate) fn verify(&self) -> Result<Vec<Finding>, StorageError> {
        let mut findings = Vec::new();
        let segments = self.segments();
        // Asked before the folder and again after: files come and go meanwhile.
        let known_before = self.known();
        for segment in &segments {
            self.verify_batches(segment, &mut findings);
            let log = segment.key(FileKind::Log);
            let facts = segment.facts();
            check_entries(&self.store, log, &facts, &mut findings);
        }
        for name in self.store.segments_of(self.id)? {
            if !known_before.contains(&name) && !self.known().contains(&name) {
                let chunk = FileKey::new(self.id, name, FileKind::Log).name();
                let message = "file is not of this log".to_owned();
                findings.push(Finding { chunk, position: 0, message });
            }
        }
        Ok(findings)
    }

    /// The segments that have files: those in use, and those that wait for their removal.
    fn known(&self) -> BTreeSet<SegmentName> {
        let state = self.state.lock();
        let all = state.segments.iter().chain(&state.dropped);
        all.map(|segment| segment.name()).collect()
    }

    fn verify_batches(&self, segment: &Segment, findings: &mut Vec<Finding>) {
        let key = segment.key(FileKind::Log);
        let facts = segment.facts();
        let mut report = |position, message| {
            findings.push(Finding { chunk: key.name(), position, message });
        };
        let opened = self.store.open_file(key);
        let size = opened.as_ref().map_or(Ok(0), |file| file.size());
        let (file, size) = match (opened, size) {
            (Ok(file), Ok(size)) => (file, size),
            // Dropped meanwhile.
            _ if !self.known().contains(&segment.name()) => return,
            (Err(error), _) | (_, Err(error)) => {
                report(0, format!("file can't be read. error=`{error}`"));
                return;
            }
        };
        if size < facts.bytes {
            report(size, format!("file is too short. expected=`{}`", facts.bytes));
        }
        let end = size.min(facts.bytes);
        let walk_bytes = self.store.options.walk_bytes;
        let checked = check_batches(&*file, segment.base_offset, end, walk_bytes, |_, _| Ok(()));
        let (totals, fault) = match checked {
            Ok(checked) => checked,
            Err(error) => {
                report(0, format!("file can't be read. error=`{error}`"));
                return;
            }
        };
        if let Some(message) = fault {
            report(totals.bytes, message);
        } else if end == facts.bytes && totals.next_offset != facts.next_offset {
            let expected = facts.next_offset;
            let got = totals.next_offset;
            report(end, format!("segment ends elsewhere. expected=`{expected}`, got=`{got}`"));
        }
    }
}

/// What whole, good batches amount to.
#[derive(Debug)]
pub(super) struct Totals {
    pub(super) bytes: u64,
    pub(super) next_offset: Offset,
    pub(super) max_timestamp: Option<Timestamp>,
}

/// Checks the batches in the first `end` bytes, up to the first that is wrong; says what is wrong.
/// `each` gets every good one.
pub(super) fn check_batches(
    file: &dyn DiskFile,
    base_offset: Offset,
    end: u64,
    chunk_bytes: usize,
    mut each: impl FnMut(&BatchHeader, &[u8]) -> io::Result<()>,
) -> io::Result<(Totals, Option<String>)> {
    let mut totals = Totals { bytes: 0, next_offset: base_offset, max_timestamp: None };
    let mut walk = Walk::new(file, 0, end, chunk_bytes);
    let mut batch_bytes = Vec::new();
    loop {
        let (position, batch) = match walk.step() {
            Ok(Some(step)) => step,
            Ok(None) => return Ok((totals, None)),
            Err(WalkError::Broken { error, .. }) => return Ok((totals, Some(error.to_string()))),
            Err(WalkError::Io(error)) => return Err(error),
        };
        if let Some(fault) = misplaced(base_offset, &totals, &batch) {
            return Ok((totals, Some(fault)));
        }
        // The walk has made sure that the batch lies within the file.
        let size = usize::try_from(batch.size).map_err(|_| io::ErrorKind::OutOfMemory)?;
        batch_bytes.resize(size, 0);
        read_exact_at(file, position, &mut batch_bytes)?;
        // The header again: it lies outside the checksum, and was read by itself before.
        let checked = BatchView::exactly(&batch_bytes)
            .and_then(|view| view.check_crc())
            .and_then(|()| BatchHeader::parse(&batch_bytes));
        match checked {
            Ok(again) if again == batch => each(&batch, &batch_bytes)?,
            Ok(_) => return Ok((totals, Some("batch changes while it is read".to_owned()))),
            Err(error) => return Ok((totals, Some(error.to_string()))),
        }
        totals.bytes = position + batch.size;
        totals.next_offset = batch.next_offset;
        totals.max_timestamp = totals.max_timestamp.max(batch.max_timestamp);
    }
}

/// Why a batch can't stand where it does. Holes between batches are not wrong: compaction makes them.
fn misplaced(base_offset: Offset, totals: &Totals, batch: &BatchHeader) -> Option<String> {
    let expected = totals.next_offset;
    let got = batch.base_offset;
    if totals.bytes == 0 && got != base_offset {
        return Some(format!(
            "first batch is not the segment's. expected=`{expected}`, got=`{got}`"
        ));
    }
    (got < expected).then(|| format!("offsets go back. expected=`{expected}`, got=`{got}`"))
}
