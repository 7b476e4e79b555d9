//! The index files of a segment: searched in place, loaded, saved, made anew.

use std::io;

use strandline_model::{Offset, OffsetDelta};
use strandline_storage::Finding;

use super::SegmentFacts;
use super::index::{Entry, Index, OffsetEntry, TimeEntry, encode_entries, parse_entries};
use super::name::{FileKey, FileKind};
use super::store::SegmentStore;
use super::walk::{Walk, WalkError};
use crate::disk::{DiskFile, OpenMode, read_exact_at};

/// Bytes read at a time when a whole segment is walked.
const SCAN_CHUNK_BYTES: usize = 256 * 1024;

/// How many entries of an index its files hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Saved {
    pub(super) offsets: usize,
    pub(super) times: usize,
}

/// The last entry for which `is_before` holds, in a file whose entries are in order.
///
/// In a file that is not, any entry: the caller checks the batch that it names.
pub(super) fn search<E: Entry>(
    file: &dyn DiskFile,
    is_before: impl Fn(E) -> bool,
) -> io::Result<Option<E>> {
    Ok(bisect(file, is_before)?.1)
}

/// How many entries come first for which `is_before` holds, and the last of them.
fn bisect<E: Entry>(
    file: &dyn DiskFile,
    is_before: impl Fn(E) -> bool,
) -> io::Result<(u64, Option<E>)> {
    let mut found = None;
    let (mut low, mut high) = (0, file.size()? / E::BYTES as u64);
    let mut bytes = [0; 16];
    while low < high {
        let middle = low.midpoint(high);
        let bytes = &mut bytes[..E::BYTES];
        read_exact_at(file, middle * E::BYTES as u64, bytes)?;
        match E::parse(bytes) {
            Some(entry) if is_before(entry) => {
                found = Some(entry);
                low = middle + 1;
            }
            _ => high = middle,
        }
    }
    Ok((low, found))
}

/// Cuts the entries of batches beyond the end: they were given up, and others come in their place.
pub(super) fn cut(store: &SegmentStore, log: FileKey, facts: &SegmentFacts) {
    let limit = (facts.next_offset - facts.base_offset).get();
    cut_entries(store, log.sibling(FileKind::OffsetIndex), |entry: OffsetEntry| {
        i64::from(entry.relative) < limit && u64::from(entry.position) < facts.bytes
    });
    cut_entries(store, log.sibling(FileKind::TimeIndex), |entry: TimeEntry| {
        i64::from(entry.relative) < limit
    });
}

fn cut_entries<E: Entry>(store: &SegmentStore, key: FileKey, is_believed: impl Fn(E) -> bool) {
    let cut = || -> io::Result<()> {
        let file = store.open_file(key)?;
        let end = bisect(&*file, is_believed)?.0 * E::BYTES as u64;
        if file.size()? > end { file.set_len(end) } else { Ok(()) }
    };
    match cut() {
        Err(error) if error.kind() != io::ErrorKind::NotFound => {
            // No index is better than one that speaks of other batches. When not even that works, the
            // disk is about to fail the append.
            drop(store.remove_file(key));
        }
        _ => {}
    }
}

/// Makes the index of a segment by walking all of it.
pub(super) fn scan(
    store: &SegmentStore,
    log: FileKey,
    facts: &SegmentFacts,
    interval: u64,
) -> Result<Index, WalkError> {
    extend(store, log, facts, interval, Index::default(), 0)
}

/// Walks from the batch at `position` to the end.
pub(super) fn extend(
    store: &SegmentStore,
    log: FileKey,
    facts: &SegmentFacts,
    interval: u64,
    mut index: Index,
    position: u64,
) -> Result<Index, WalkError> {
    let file = store.open_file(log).map_err(WalkError::Io)?;
    let mut walk = Walk::new(&*file, position, facts.bytes, SCAN_CHUNK_BYTES);
    while let Some((position, batch)) = walk.step()? {
        if batch.base_offset < facts.base_offset || batch.next_offset > facts.next_offset {
            let error = strandline_records::BatchError::Length(0);
            return Err(WalkError::Broken { position, error });
        }
        index.push(facts.base_offset, position, &batch, interval);
    }
    Ok(index)
}

/// The index of a segment that still grows: what its files hold, as far as it can be trusted, and
/// the rest from the batches.
///
/// Two files may have lost different parts of their ends. All that is needed of them is one time
/// entry whose batch is as it says: it knows the newest timestamp up to there, and everything behind
/// is walked again.
pub(super) fn load(
    store: &SegmentStore,
    log: FileKey,
    facts: &SegmentFacts,
    interval: u64,
) -> Result<(Index, Saved), WalkError> {
    let limit = (facts.next_offset - facts.base_offset).get();
    let times: Vec<TimeEntry> =
        read_entries(store, log.sibling(FileKind::TimeIndex), |entry: TimeEntry| {
            i64::from(entry.relative) < limit
        });
    let offsets: Vec<OffsetEntry> =
        read_entries(store, log.sibling(FileKind::OffsetIndex), |entry: OffsetEntry| {
            i64::from(entry.relative) < limit && u64::from(entry.position) < facts.bytes
        });
    if let Some(newest) = times.last().copied()
        && let Some(position) = find_named(store, log, facts, &offsets, newest)?
    {
        let kept = offsets.partition_point(|entry| u64::from(entry.position) < position);
        let offsets = offsets[..kept].to_vec();
        let saved = Saved { offsets: kept, times: times.len() };
        let known = Index::resumed(offsets, times, position);
        let index = extend(store, log, facts, interval, known, position)?;
        return Ok((index, saved));
    }
    Ok((scan(store, log, facts, interval)?, Saved::default()))
}

/// Where the batch stands that a time entry names; `None` when it is not as the entry says.
fn find_named(
    store: &SegmentStore,
    log: FileKey,
    facts: &SegmentFacts,
    offsets: &[OffsetEntry],
    wanted: TimeEntry,
) -> Result<Option<u64>, WalkError> {
    let behind = offsets.partition_point(|entry| entry.relative <= wanted.relative);
    let start = behind.checked_sub(1).map(|last| offsets[last]);
    let position = start.map_or(0, |entry| u64::from(entry.position));
    let file = store.open_file(log).map_err(WalkError::Io)?;
    let mut walk = Walk::new(&*file, position, facts.bytes, store.options.walk_bytes);
    let mut checked = start.is_none();
    loop {
        let (position, batch) = match walk.step() {
            Ok(Some(step)) => step,
            Ok(None) | Err(WalkError::Broken { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        if !checked && start.is_some_and(|entry| !entry.names(facts.base_offset, &batch)) {
            return Ok(None);
        }
        checked = true;
        if wanted.names(facts.base_offset, &batch) {
            return Ok(Some(position));
        }
        let last = batch.next_offset + OffsetDelta::new(-1);
        if last >= facts.base_offset + OffsetDelta::new(i64::from(wanted.relative)) {
            return Ok(None);
        }
    }
}

/// The entries of an index file; none when there is no such file or it can't be read.
fn read_entries<E: Entry>(
    store: &SegmentStore,
    key: FileKey,
    accept: impl FnMut(E) -> bool,
) -> Vec<E> {
    let read = || -> io::Result<Vec<u8>> {
        let file = store.open_file(key)?;
        let size = usize::try_from(file.size()?).unwrap_or(usize::MAX);
        // No honest index is longer than its segment is: an overlong file is not read to its end.
        let mut bytes = vec![0; size.min(INDEX_BYTES_MAX)];
        let count = file.read_at(0, &mut bytes)?;
        bytes.truncate(count);
        Ok(bytes)
    };
    // An index that can't be read is made anew.
    read().map_or_else(|_| Vec::new(), |bytes| parse_entries(&bytes, accept))
}

/// Bytes of an index file that are read. Reached: the rest is walked instead.
const INDEX_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Entries that the files of an index lack.
#[derive(Debug)]
pub(super) struct Unsaved {
    offsets: Vec<OffsetEntry>,
    times: Vec<TimeEntry>,
}

impl Unsaved {
    pub(super) fn of(index: &Index, saved: Saved) -> Self {
        Self {
            offsets: index.offsets[saved.offsets..].to_vec(),
            times: index.times[saved.times..].to_vec(),
        }
    }
}

/// Writes the entries behind the `saved` ones, and cuts the files behind them.
pub(super) fn save(
    store: &SegmentStore,
    log: FileKey,
    unsaved: &Unsaved,
    saved: Saved,
) -> io::Result<Saved> {
    let Unsaved { offsets, times } = unsaved;
    save_entries(store, log.sibling(FileKind::OffsetIndex), offsets, saved.offsets)?;
    save_entries(store, log.sibling(FileKind::TimeIndex), times, saved.times)?;
    Ok(Saved { offsets: saved.offsets + offsets.len(), times: saved.times + times.len() })
}

fn save_entries<E: Entry>(
    store: &SegmentStore,
    key: FileKey,
    unsaved: &[E],
    saved: usize,
) -> io::Result<()> {
    let file = store.files.open(key, OpenMode::Either)?;
    let bytes = encode_entries(unsaved);
    let position = (saved * E::BYTES) as u64;
    let end = position + bytes.len() as u64;
    if file.size()? > end {
        file.set_len(end)?;
    }
    if bytes.is_empty() {
        return Ok(());
    }
    file.write_at(position, &[&bytes])
}

/// The offset at which an entry's batch ends, inclusive.
pub(super) fn named_offset(base_offset: Offset, relative: u32) -> Offset {
    base_offset + OffsetDelta::new(i64::from(relative))
}

/// Checks that every entry of the index files names a batch that is there.
pub(super) fn check_entries(
    store: &SegmentStore,
    log: FileKey,
    facts: &SegmentFacts,
    findings: &mut Vec<Finding>,
) {
    let Ok(file) = store.open_file(log) else { return };
    let key = log.sibling(FileKind::OffsetIndex);
    let offsets: Vec<OffsetEntry> = read_entries(store, key, |_| true);
    for (index, entry) in offsets.iter().enumerate() {
        let position = u64::from(entry.position);
        let mut walk = Walk::new(&*file, position, facts.bytes, 0);
        let names =
            matches!(walk.step(), Ok(Some((_, batch))) if entry.names(facts.base_offset, &batch));
        if !names {
            let position = (index * OffsetEntry::BYTES) as u64;
            let message = "index entry names no batch; the index will be made anew".to_owned();
            findings.push(Finding { chunk: key.name(), position, message });
        }
    }
}
