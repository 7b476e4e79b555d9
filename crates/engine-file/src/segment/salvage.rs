//! What is whole of a file of batches that may be damaged anywhere.
//!
//! A check ends at the first fault. Here the search goes on behind it, for the next bytes that are a
//! batch with a good checksum at a possible offset.
//!
//! A batch's offset lies outside its checksum. So one is believed only where it agrees with its
//! neighbours: behind the one before, and before the one behind.

use std::io;
use std::ops::Range;
use std::path::Path;

use strandline_model::{LeaderEpoch, Offset, PartitionId, Timestamp};
use strandline_records::{BatchHeader, BatchView, HEADER_BYTES};
use strandline_storage::{StorageError, is_lost};

use super::SegmentFacts;
use super::name::{FileKey, FileKind, is_rescue, partition_dir};
use super::store::SegmentStore;
use crate::disk::{DiskFile, OpenMode};

/// Bytes that are looked through at a time.
const WINDOW: usize = 256 * 1024;
/// What a bad sector costs.
const SECTOR: usize = 512;
/// Where the header says which version of batches it is; others are none of ours.
const MAGIC_AT: usize = 16;

/// Batches that stand one behind another in a file, without a hole in their offsets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    /// Where in the file.
    pub(crate) bytes: Range<u64>,
    pub(crate) offsets: Range<Offset>,
    pub(crate) batches: u64,
    pub(crate) max_timestamp: Option<Timestamp>,
    /// Of the last one.
    pub(crate) epoch: Option<LeaderEpoch>,
}

/// Bytes that should be batches and are none, and between which offsets they stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) bytes: Range<u64>,
    pub(crate) offsets: Range<Offset>,
    pub(crate) what: String,
}

/// What a file holds. Runs in the order of their offsets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Salvage {
    pub(crate) runs: Vec<Run>,
    pub(crate) faults: Vec<Fault>,
}

impl SegmentStore {
    /// Looks for everything that is whole of a segment. Fails only where a later try may read more.
    /// Blocks.
    pub(crate) fn salvage(
        &self,
        id: PartitionId,
        facts: &SegmentFacts,
    ) -> Result<Salvage, StorageError> {
        let path = FileKey::new(id, facts.name(), FileKind::Log).path();
        let offsets = facts.base_offset..facts.next_offset;
        let all_lost = |what: String| Salvage {
            runs: Vec::new(),
            faults: vec![Fault { bytes: 0..facts.bytes, offsets: offsets.clone(), what }],
        };
        let file = match self.disk.open(&path, OpenMode::Existing) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(all_lost("file is missing".to_owned()));
            }
            Err(error) if is_lost(&error) => return Ok(all_lost(error.to_string())),
            Err(error) => return Err(failed(&path, error)),
        };
        let size = file.size().map_err(|error| failed(&path, error))?;
        let end = size.min(facts.bytes);
        let batches = if facts.generation == 0 { Batches::Dense } else { Batches::Sparse };
        let mut search = Search::new(&*file, end, offsets.clone(), batches);
        search.is_cut = size < facts.bytes;
        search.run().map_err(|error| failed(&path, error))?;
        let Search { mut salvage, next, .. } = search;
        if size < facts.bytes {
            let what = format!("file is too short. expected=`{}`, got=`{size}`", facts.bytes);
            match salvage.faults.last_mut() {
                // It ends with what is broken.
                Some(last) if last.bytes.end == end && last.bytes.start < end => {
                    last.bytes.end = facts.bytes;
                    last.what = format!("{what}; {}", last.what);
                }
                _ => salvage.add_fault(end..facts.bytes, next..offsets.end, what),
            }
        } else if next != offsets.end && salvage.faults.last().is_none_or(|at| at.bytes.end < end) {
            salvage.add_fault(end..end, next..offsets.end, "segment ends elsewhere".to_owned());
        }
        let first = salvage.runs.first().map(|run| (run.bytes.start, run.offsets.start));
        if let Some((0, first)) = first
            && first != offsets.start
        {
            let what = "first batch is not the segment's".to_owned();
            salvage.faults.insert(0, Fault { bytes: 0..0, offsets: offsets.start..first, what });
        }
        Ok(salvage)
    }

    /// The names of the files of rescued batches that a partition has. Blocks.
    pub(crate) fn rescues_of(&self, id: PartitionId) -> Result<Vec<String>, StorageError> {
        let entries = self.entries_of(id)?;
        Ok(entries.into_iter().map(|entry| entry.name).filter(|name| is_rescue(name)).collect())
    }

    /// The same as [`salvage`](Self::salvage) of a file of rescued batches; each is a run. Blocks.
    pub(crate) fn salvage_rescued(
        &self,
        id: PartitionId,
        name: &str,
    ) -> Result<Salvage, StorageError> {
        let path = partition_dir(id).join(name);
        let all = Offset::ZERO..Offset::new(i64::MAX);
        let opened = self.disk.open(&path, OpenMode::Existing);
        let (file, size) = match opened.and_then(|file| Ok((file.size()?, file))) {
            Ok((size, file)) => (file, size),
            Err(error) if is_lost(&error) => {
                let fault = Fault { bytes: 0..0, offsets: all, what: error.to_string() };
                return Ok(Salvage { runs: Vec::new(), faults: vec![fault] });
            }
            Err(error) => return Err(failed(&path, error)),
        };
        let mut search = Search::new(&*file, size, all, Batches::Single);
        search.run().map_err(|error| failed(&path, error))?;
        Ok(search.salvage)
    }
}

/// How batches stand in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Batches {
    /// Each begins at the offset where the one before ends. Neighbours become one run.
    Dense,
    /// Each begins there or above. Neighbours become one run.
    Sparse,
    /// At any offset. Each is a run.
    Single,
}

struct Search<'a> {
    file: &'a dyn DiskFile,
    end: u64,
    /// The offset that the next batch begins at, or above.
    next: Offset,
    offsets_end: Offset,
    batches: Batches,
    /// Whether the file is shorter than it was.
    is_cut: bool,
    salvage: Salvage,
}

impl<'a> Search<'a> {
    fn new(file: &'a dyn DiskFile, end: u64, offsets: Range<Offset>, batches: Batches) -> Self {
        let salvage = Salvage::default();
        let Range { start: next, end: offsets_end } = offsets;
        Self { file, end, next, offsets_end, batches, is_cut: false, salvage }
    }

    fn run(&mut self) -> io::Result<()> {
        let mut position = 0;
        while position < self.end {
            let found = match self.batch_at(position)? {
                Ok(header) => self.placed(position, header, true)?,
                broken => broken,
            };
            match found {
                Ok(header) => position = self.take(position, &header),
                Err(what) => {
                    let found = self.find(position + 1)?;
                    let (at, after) = match &found {
                        Some((at, header)) => (*at, header.base_offset),
                        None => (self.end, self.offsets_end),
                    };
                    self.salvage.add_fault(position..at, self.next..after, what);
                    position = found.map_or(at, |(at, header)| self.take(at, &header));
                }
            }
        }
        Ok(())
    }

    fn take(&mut self, position: u64, header: &BatchHeader) -> u64 {
        let end = position + header.size;
        let offsets = header.base_offset..header.next_offset;
        self.next = if self.batches == Batches::Single { self.next } else { offsets.end };
        match self.salvage.runs.last_mut() {
            Some(run)
                if self.batches != Batches::Single
                    && run.bytes.end == position
                    && run.offsets.end == offsets.start =>
            {
                run.bytes.end = end;
                run.offsets.end = offsets.end;
                run.batches += 1;
                run.max_timestamp = run.max_timestamp.max(header.max_timestamp);
                run.epoch = header.leader_epoch;
            }
            _ => self.salvage.runs.push(Run {
                bytes: position..end,
                offsets,
                batches: 1,
                max_timestamp: header.max_timestamp,
                epoch: header.leader_epoch,
            }),
        }
        end
    }

    /// The whole batch at a position, or why there is none.
    fn batch_at(&self, position: u64) -> io::Result<Result<BatchHeader, String>> {
        let mut head = [0; HEADER_BYTES];
        let have = usize::try_from(self.end - position).unwrap_or(usize::MAX).min(HEADER_BYTES);
        if let Err(error) = self.read(position, &mut head[..have]) {
            return lost(error);
        }
        let header = match BatchHeader::parse(&head[..have]) {
            Ok(header) => header,
            Err(error) => return Ok(Err(error.to_string())),
        };
        if header.size > self.end - position {
            return Ok(Err(format!("batch is cut short. need=`{}`", header.size)));
        }
        if header.base_offset < self.next || header.next_offset > self.offsets_end {
            let Range { start, end } = self.next..self.offsets_end;
            let got = header.base_offset;
            return Ok(Err(format!(
                "batch is out of place. expected=`{start}..{end}`, got=`{got}`"
            )));
        }
        let mut bytes =
            vec![0; usize::try_from(header.size).map_err(|_| io::ErrorKind::OutOfMemory)?];
        if let Err(error) = self.read(position, &mut bytes) {
            return lost(error);
        }
        let checked = BatchView::exactly(&bytes).and_then(|view| view.check_crc());
        Ok(checked.map(|()| header).map_err(|error| error.to_string()))
    }

    /// A whole batch, or why its neighbours say that it has another offset.
    fn placed(
        &self,
        position: u64,
        header: BatchHeader,
        follows: bool,
    ) -> io::Result<Result<BatchHeader, String>> {
        let is_next = header.base_offset == self.next;
        if is_next || self.batches == Batches::Single {
            return Ok(Ok(header));
        }
        let got = header.base_offset;
        let wrong =
            Ok(Err(format!("batch is out of place. expected=`{}`, got=`{got}`", self.next)));
        if follows && self.batches == Batches::Dense {
            return wrong;
        }
        let behind = position + header.size;
        if behind >= self.end {
            // Of a file that was cut nobody knows what came behind.
            let is_end = self.is_cut || header.next_offset == self.offsets_end;
            return if is_end { Ok(Ok(header)) } else { wrong };
        }
        let after = self.batch_at(behind)?.ok().map(|after| after.base_offset);
        let is_wrong = after.is_some_and(|after| match self.batches {
            Batches::Dense => after != header.next_offset,
            Batches::Sparse | Batches::Single => after < header.next_offset,
        });
        if is_wrong { wrong } else { Ok(Ok(header)) }
    }

    fn read(&self, position: u64, buf: &mut [u8]) -> io::Result<()> {
        crate::disk::read_exact_at(self.file, position, buf)
    }

    /// The next whole batch at `from` or behind.
    fn find(&self, from: u64) -> io::Result<Option<(u64, BatchHeader)>> {
        let mut window = vec![0; WINDOW + HEADER_BYTES];
        let mut begin = from;
        while begin + (HEADER_BYTES as u64) <= self.end {
            let left = usize::try_from(self.end - begin).unwrap_or(usize::MAX);
            let window = &mut window[..left.min(WINDOW + HEADER_BYTES)];
            self.read_around_holes(begin, window)?;
            let starts = window.len() - HEADER_BYTES + 1;
            for at in 0..starts.min(WINDOW) {
                let header = &window[at..at + HEADER_BYTES];
                if header[MAGIC_AT] != 2 {
                    continue;
                }
                let Ok(header) = BatchHeader::parse(header) else { continue };
                if header.base_offset < self.next || header.next_offset > self.offsets_end {
                    continue;
                }
                let position = begin + at as u64;
                if let Ok(header) = self.batch_at(position)?
                    && let Ok(header) = self.placed(position, header, false)?
                {
                    return Ok(Some((position, header)));
                }
            }
            begin += WINDOW as u64;
        }
        Ok(None)
    }

    /// Reads what can be read; bad sectors are zeros, which are no batch.
    fn read_around_holes(&self, position: u64, buf: &mut [u8]) -> io::Result<()> {
        match self.read(position, buf) {
            Err(error) if is_lost(&error) => {}
            done => return done,
        }
        let mut at = 0;
        while at < buf.len() {
            let begin = position + at as u64;
            // To the end of the sector that this is in.
            let in_sector = usize::try_from(begin % SECTOR as u64).expect("below a sector");
            let end = (at + SECTOR - in_sector).min(buf.len());
            let sector = &mut buf[at..end];
            match self.read(begin, sector) {
                Err(error) if is_lost(&error) => sector.fill(0),
                done => done?,
            }
            at = end;
        }
        Ok(())
    }
}

impl Salvage {
    fn add_fault(&mut self, bytes: Range<u64>, offsets: Range<Offset>, what: String) {
        self.faults.push(Fault { bytes, offsets, what });
    }
}

/// What the disk has lost is damage of the batch; anything else may pass.
fn lost(error: io::Error) -> io::Result<Result<BatchHeader, String>> {
    if is_lost(&error) { Ok(Err(error.to_string())) } else { Err(error) }
}

fn failed(path: &Path, error: io::Error) -> StorageError {
    StorageError::io(format!("look for whole batches. file=`{}`", path.display()), error)
}
