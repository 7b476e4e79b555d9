//! Walks the journal at start: from a snapshot's position to where it ends.
//!
//! Two passes read it, one for the rows and one for the batches, so that memory holds one group at a
//! time. Where the journal ends, and whether that is the end, a torn tail or damage, is decided by
//! the table of docs/format.md; this module finds the facts for it.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use bytes::Bytes;

use super::files::SpareFile;
use super::group::{GROUP_HEADER_BYTES, Group, GroupHeader, Parsed};
use super::header::{FileHeader, ParsedHeader};
use super::{
    BLOCK, BLOCK_BYTES, FOLDER, Generation, GroupPosition, GroupSequence, Slot, whole_blocks,
};
use crate::disk::{Disk, DiskFile, OpenMode};
use crate::progress::OpenProgress;
use crate::recovery::table::{EndFacts, EndVerdict};

/// The files of the journal as a start finds them.
#[derive(Debug)]
pub(crate) struct Journal {
    files: BTreeMap<Generation, (SpareFile, FileHeader)>,
    /// Files without a valid header: blank, torn, damaged.
    headless: Vec<(SpareFile, ParsedHeader)>,
    /// Where trust in a file ends, from the header of the one that replaced it.
    abandoned: BTreeMap<Generation, u64>,
}

/// Why the journal can't be read.
#[derive(Debug)]
pub(crate) enum ReadFailure {
    Io(io::Error),
    /// A file of a newer version.
    Newer(u32),
    /// Two files say that they are the same one.
    Twice(Generation),
    /// A group that is whole and means nothing to this version.
    Unreadable {
        sequence: GroupSequence,
        at: GroupPosition,
    },
    /// What was synced is not there any more.
    Damaged {
        sequence: GroupSequence,
        at: GroupPosition,
    },
}

impl From<io::Error> for ReadFailure {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Where a walk begins: the place and the number of the first group to read.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WalkStart {
    pub(crate) position: GroupPosition,
    pub(crate) sequence: GroupSequence,
}

/// How a walk ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WalkEnd {
    /// The sequence of the last group.
    pub(crate) last: GroupSequence,
    /// Groups behind it that were written in part and never acknowledged.
    pub(crate) torn_groups: u64,
}

impl Journal {
    /// Opens all files and reads their headers. A folder that is not there holds none: its name may be
    /// lost while the first snapshot's, made after it, is kept.
    pub(crate) fn open(disk: &dyn Disk) -> Result<Self, ReadFailure> {
        let mut journal =
            Self { files: BTreeMap::new(), headless: Vec::new(), abandoned: BTreeMap::new() };
        let entries = match disk.list(Path::new(FOLDER)) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            listed => listed?,
        };
        for entry in entries {
            let Some(slot) = Slot::from_name(&entry.name) else { continue };
            let file = disk.open(&slot.path(), OpenMode::Existing)?;
            let mut block = vec![0; BLOCK];
            let read = file.read_at(0, &mut block)?;
            block.truncate(read);
            let bytes = file.size()? / BLOCK_BYTES * BLOCK_BYTES;
            let spare = SpareFile { slot, file, bytes };
            match FileHeader::parse(&block) {
                ParsedHeader::Newer(version) => return Err(ReadFailure::Newer(version)),
                ParsedHeader::Valid(header) => {
                    if let Some(abandoned) = header.abandoned {
                        journal.abandoned.insert(abandoned.generation, abandoned.position);
                    }
                    let twice = journal.files.insert(header.generation, (spare, header));
                    if twice.is_some() {
                        return Err(ReadFailure::Twice(header.generation));
                    }
                }
                other => journal.headless.push((spare, other)),
            }
        }
        Ok(journal)
    }

    /// Makes durable what is read from here on: whoever wrote it may have been killed before it did,
    /// and segments are cut by what the journal says.
    pub(crate) fn sync_from(&self, generation: Generation) -> io::Result<()> {
        self.files.range(generation..).try_for_each(|(_, (spare, _))| spare.file.sync_data())
    }

    /// Removes the files that hold nothing from `generation` on. One that can't be removed stays.
    pub(crate) fn discard_needless(&mut self, disk: &dyn Disk, generation: Generation) {
        let live = self.files.split_off(&generation);
        let old = std::mem::replace(&mut self.files, live);
        let blank = self.headless.extract_if(.., |(_, header)| *header == ParsedHeader::Blank);
        let needless: Vec<_> =
            old.into_values().map(|(file, _)| file).chain(blank.map(|(file, _)| file)).collect();
        for SpareFile { slot, file, bytes } in needless {
            drop(file);
            if let Err(error) = disk.remove_file(&slot.path()) {
                tracing::warn!(%error, slot = slot.0, bytes, "spare file of the journal stays");
            }
        }
    }

    /// The highest generation that a header names.
    pub(crate) fn generation_max(&self) -> Generation {
        self.files.keys().next_back().copied().unwrap_or(Generation(0))
    }

    /// All files, to be used again once nothing in them is needed, and the next free slot.
    pub(crate) fn into_spare(self) -> (Vec<SpareFile>, u32) {
        let headless = self.headless.into_iter().map(|(file, _)| file);
        let files: Vec<_> =
            self.files.into_values().map(|(file, _)| file).chain(headless).collect();
        let next_slot = files.iter().map(|file| file.slot.0 + 1).max().unwrap_or(0);
        (files, next_slot)
    }

    /// Bytes that may be walked from `start` on: those of its files, however far they are filled.
    pub(crate) fn bytes_from(&self, start: GroupPosition) -> u64 {
        let files = self.files.range(start.generation..);
        let bytes: u64 = files.map(|(_, (file, _))| file.bytes).sum();
        let begun = self.files.contains_key(&start.generation);
        if begun { bytes.saturating_sub(start.position) } else { bytes }
    }

    /// Visits every group from `start` on and finds out what the end of the journal means.
    pub(crate) fn walk<E: From<ReadFailure>>(
        &self,
        start: WalkStart,
        progress: &OpenProgress,
        mut visit: impl FnMut(Group) -> Result<(), E>,
    ) -> Result<WalkEnd, E> {
        let WalkStart { position: mut at, sequence: mut expected } = start;
        loop {
            if let Some(group) = self.group_at(at, expected)? {
                let bytes = whole_blocks(group.header.length as u64);
                at.position += bytes;
                expected = expected.next();
                visit(group)?;
                progress.advance(bytes);
                continue;
            }
            let next = self.file_after(at);
            let facts = match next {
                Some((_, header)) if header.first_sequence == expected => {
                    EndFacts { next_begins_here: true, ..EndFacts::default() }
                }
                _ => self.facts_beyond(start, at, expected).map_err(ReadFailure::from)?,
            };
            match facts.verdict() {
                EndVerdict::GoOn => {
                    let (generation, _) = next.expect("the next file begins here");
                    at = GroupPosition { generation, position: BLOCK_BYTES };
                }
                EndVerdict::Damage => {
                    return Err(ReadFailure::Damaged { sequence: expected, at }.into());
                }
                EndVerdict::TornTail | EndVerdict::End => {
                    let last = GroupSequence(expected.0 - 1);
                    return Ok(WalkEnd { last, torn_groups: facts.torn_groups });
                }
            }
        }
    }

    fn file_after(&self, at: GroupPosition) -> Option<(Generation, &FileHeader)> {
        // A position of zero stands before the generation, a file may not exist yet.
        let from = if at.position == 0 { at.generation } else { Generation(at.generation.0 + 1) };
        self.files.range(from..).next().map(|(generation, (_, header))| (*generation, header))
    }

    /// The group that lies at `at`, if it is whole and the one expected.
    fn group_at(
        &self,
        at: GroupPosition,
        expected: GroupSequence,
    ) -> Result<Option<Group>, ReadFailure> {
        let Some((file, _)) = self.files.get(&at.generation) else { return Ok(None) };
        let end = self.abandoned.get(&at.generation).map_or(file.bytes, |&end| end.min(file.bytes));
        if at.position < BLOCK_BYTES || at.position >= end {
            return Ok(None);
        }
        let is_expected = |header: &GroupHeader| {
            header.generation == at.generation && header.sequence == expected
        };
        match read_group(&*file.file, at.position, end)? {
            Parsed::Whole(group) if is_expected(&group.header) => Ok(Some(group)),
            // Not to be taken for a torn one: it may have been acknowledged.
            Parsed::Unreadable(header) if is_expected(&header) => {
                Err(ReadFailure::Unreadable { sequence: expected, at })
            }
            Parsed::Whole(_) | Parsed::Unreadable(_) | Parsed::Torn => Ok(None),
        }
    }

    /// What everything behind `at` says about groups from `expected` on.
    fn facts_beyond(
        &self,
        start: WalkStart,
        at: GroupPosition,
        expected: GroupSequence,
    ) -> io::Result<EndFacts> {
        let is_gone = at.position > 0 && !self.files.contains_key(&at.generation);
        let mut facts = EndFacts { cut_short: is_gone, ..EndFacts::default() };
        for (generation, (file, header)) in self.files.range(at.generation..) {
            facts.cut_short |=
                file.bytes < header.file_bytes && !self.abandoned.contains_key(generation);
            let later = *generation > at.generation || at.position == 0;
            facts.synced_beyond |= later && header.first_sequence > expected;
            let from = if later { BLOCK_BYTES } else { at.position.max(BLOCK_BYTES) };
            let end = self.abandoned.get(generation).map_or(file.bytes, |&end| end.min(file.bytes));
            // A file that goes on with the expected group is walked next.
            if later && header.first_sequence == expected {
                continue;
            }
            scan_groups(&*file.file, from, end, |header, whole| {
                if header.generation == *generation && header.sequence >= expected {
                    facts.torn_groups += 1;
                    facts.synced_beyond |= whole && header.synced >= expected;
                }
            })?;
        }
        for (file, header) in &self.headless {
            if *header != ParsedHeader::Blank {
                scan_groups(&*file.file, BLOCK_BYTES, file.bytes, |header, whole| {
                    let live = header.generation >= start.position.generation;
                    facts.homeless_group |= whole && live && header.sequence >= expected;
                })?;
            }
        }
        Ok(facts)
    }
}

/// Bytes read at once while looking for groups.
const SCAN_BYTES: u64 = 256 * 1024;

/// Looks at every block of `[from, end)` that begins like a group; says whether it is whole.
fn scan_groups(
    file: &dyn DiskFile,
    from: u64,
    end: u64,
    mut found: impl FnMut(&GroupHeader, bool),
) -> io::Result<()> {
    let mut chunk = vec![0; usize::try_from(SCAN_BYTES).expect("fits memory")];
    let mut at = from;
    while at < end {
        let read = file.read_at(at, &mut chunk)? as u64;
        if read == 0 {
            break;
        }
        for offset in (0..read.min(end - at)).step_by(BLOCK) {
            let start = usize::try_from(offset).expect("lies in the chunk");
            if let Some(header) = GroupHeader::parse(&chunk[start..]) {
                let whole = read_group(file, at + offset, end)? != Parsed::Torn;
                found(&header, whole);
            }
        }
        at += read.next_multiple_of(BLOCK_BYTES);
    }
    Ok(())
}

/// The group that begins at `position` and ends before `end`.
fn read_group(file: &dyn DiskFile, position: u64, end: u64) -> io::Result<Parsed> {
    let mut head = [0; GROUP_HEADER_BYTES];
    let read = file.read_at(position, &mut head)?;
    let Some(header) = GroupHeader::parse(&head[..read]) else { return Ok(Parsed::Torn) };
    if header.length as u64 > end - position {
        return Ok(Parsed::Torn);
    }
    let mut bytes = vec![0; header.length];
    let read = file.read_at(position, &mut bytes)?;
    bytes.truncate(read);
    Ok(Group::parse(&Bytes::from(bytes)))
}
