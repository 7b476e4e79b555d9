//! Groups: what one write and one sync make durable together.

use std::ops::Range;

use bytes::{Buf, Bytes};
use crc_fast::{CrcAlgorithm, Digest};
use strandline_model::{LeaderEpoch, Offset, PartitionId, PartitionIndex, Timestamp, TopicId};
use strandline_records::crc32c;

use super::{BLOCK, Generation, GroupSequence, whole_blocks};
use crate::bytes::{Fields, length_field, split_front};
use crate::tables::TableNumber;

const MAGIC: [u8; 4] = *b"SLGR";
/// Bytes of a group before its first entry.
pub(crate) const GROUP_HEADER_BYTES: usize = 40;
const CHECKED_FROM: usize = 8;
const ENTRY_HEADER_BYTES: usize = 8;
/// Bytes of an append entry before its batches.
const APPEND_BYTES: usize = 72;
/// Bytes of a written entry behind its [`AppendHead`].
const WRITTEN_BYTES: usize = 8;
/// What an append costs in the journal beside its batches.
pub(crate) const APPEND_OVERHEAD_BYTES: u64 = (ENTRY_HEADER_BYTES + APPEND_BYTES) as u64;

/// Payloads smaller than this are copied behind their entry's header: cheaper than a slice of their
/// own in the system call. Larger ones go to the kernel from where they are.
const COPY_BYTES_MAX: usize = 8 * 1024;

static PADDING: [u8; BLOCK] = [0; BLOCK];

/// What an append entry says of its batches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AppendHead {
    pub(crate) partition: PartitionId,
    pub(crate) leader_epoch: LeaderEpoch,
    pub(crate) base_offset: Offset,
    pub(crate) next_offset: Offset,
    pub(crate) max_timestamp: Option<Timestamp>,
    pub(crate) appended_at: Timestamp,
    /// The base offset of the segment that holds the batches.
    pub(crate) segment: Offset,
    /// Where in the segment they begin.
    pub(crate) position: u64,
}

/// Batches that stand in their segment, synced before the entry that names them was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WrittenBytes {
    pub(crate) length: u32,
    pub(crate) checksum: u32,
}

impl WrittenBytes {
    /// Of batches, which one request carries: they are smaller than 4 GiB.
    pub(crate) fn of(batches: &[u8]) -> Self {
        let length = u32::try_from(batches.len()).expect("an append is smaller than 4 GiB");
        Self { length, checksum: crc32c(batches) }
    }

    /// Whether these are the bytes.
    pub(crate) fn are(self, bytes: &[u8]) -> bool {
        bytes.len() as u64 == u64::from(self.length) && crc32c(bytes) == self.checksum
    }
}

/// One entry of a group that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    Append(AppendHead, Bytes),
    Written(AppendHead, WrittenBytes),
    Put(TableNumber, Bytes, Bytes),
    Delete(TableNumber, Bytes),
    Checkpoint(GroupSequence),
}

/// Room that is kept from group to group. Reached: the next large group asks for its own again.
const KEPT_BYTES_MAX: usize = 4 * 1024 * 1024;
/// The same, of pieces.
const KEPT_PIECES_MAX: usize = 16 * 1024;

/// A group under construction. Reused from group to group.
#[derive(Debug, Default)]
pub(crate) struct GroupBuilder {
    /// Headers and small payloads, one behind another.
    small: Vec<u8>,
    pieces: Vec<Piece>,
    length: usize,
    entries_count: u32,
}

#[derive(Debug)]
enum Piece {
    Small(Range<usize>),
    Large(Bytes),
}

impl GroupBuilder {
    /// Forgets everything and begins anew.
    pub(crate) fn begin(&mut self) {
        self.small.clear();
        self.pieces.clear();
        self.length = 0;
        self.entries_count = 0;
        self.push(&[0; GROUP_HEADER_BYTES]);
    }

    #[cfg(test)]
    pub(crate) fn held_bytes(&self) -> usize {
        self.small.capacity()
    }

    /// Lets go of what it carried, and of the room that only a very large group needed.
    pub(crate) fn release(&mut self) {
        self.begin();
        self.small.shrink_to(KEPT_BYTES_MAX);
        self.pieces.shrink_to(KEPT_PIECES_MAX);
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.entries_count == 0
    }

    pub(crate) fn append(&mut self, head: &AppendHead, batches: &Bytes) {
        self.entry(1, APPEND_BYTES + batches.len());
        self.append_head(head);
        if batches.len() < COPY_BYTES_MAX {
            self.push(batches);
        } else {
            self.length += batches.len();
            self.pieces.push(Piece::Large(batches.clone()));
        }
    }

    /// An append whose batches are durable in their segment.
    pub(crate) fn written(&mut self, head: &AppendHead, bytes: WrittenBytes) {
        self.entry(5, APPEND_BYTES + WRITTEN_BYTES);
        self.append_head(head);
        self.push(&bytes.length.to_be_bytes());
        self.push(&bytes.checksum.to_be_bytes());
    }

    fn append_head(&mut self, head: &AppendHead) {
        self.push(head.partition.topic_id.as_bytes());
        self.push(&head.partition.index.get().to_be_bytes());
        self.push(&head.leader_epoch.get().to_be_bytes());
        for field in [
            head.base_offset.get(),
            head.next_offset.get(),
            head.max_timestamp.map_or(-1, Timestamp::as_millis),
            head.appended_at.as_millis(),
            head.segment.get(),
        ] {
            self.push(&field.to_be_bytes());
        }
        self.push(&head.position.to_be_bytes());
    }

    pub(crate) fn put(&mut self, table: TableNumber, key: &[u8], value: &[u8]) {
        self.entry(2, 8 + key.len() + value.len());
        self.push(&[table.0, 0, 0, 0]);
        self.push(&length_field(key.len()));
        self.push(key);
        self.push(value);
    }

    pub(crate) fn delete(&mut self, table: TableNumber, key: &[u8]) {
        self.entry(3, 4 + key.len());
        self.push(&[table.0, 0, 0, 0]);
        self.push(key);
    }

    pub(crate) fn checkpoint(&mut self, sequence: GroupSequence) {
        self.entry(4, 8);
        self.push(&sequence.0.to_be_bytes());
    }

    /// Bytes of the journal that the group will take.
    pub(crate) const fn whole_bytes(&self) -> u64 {
        whole_blocks(self.length as u64)
    }

    /// Writes the header and the checksum. Nothing is added afterwards.
    pub(crate) fn seal(
        &mut self,
        generation: Generation,
        sequence: GroupSequence,
        synced: GroupSequence,
    ) {
        let mut header = Vec::with_capacity(GROUP_HEADER_BYTES);
        header.extend(MAGIC);
        header.extend([0; 4]);
        for field in [generation.0, sequence.0, synced.0] {
            header.extend(field.to_be_bytes());
        }
        header.extend(length_field(self.length));
        header.extend(self.entries_count.to_be_bytes());
        self.small[..GROUP_HEADER_BYTES].copy_from_slice(&header);
        let mut digest = Digest::new(CrcAlgorithm::Crc32Iscsi);
        for (index, piece) in self.pieces.iter().enumerate() {
            let bytes = self.bytes_of(piece);
            digest.update(if index == 0 { &bytes[CHECKED_FROM..] } else { bytes });
        }
        let checksum = u32::try_from(digest.finalize()).expect("a 32-bit checksum fits 32 bits");
        self.small[MAGIC.len()..CHECKED_FROM].copy_from_slice(&checksum.to_be_bytes());
    }

    /// The sealed group with its padding, as slices to be written one behind another.
    pub(crate) fn slices(&self) -> Vec<&[u8]> {
        let mut slices: Vec<&[u8]> = Vec::with_capacity(self.pieces.len() + 1);
        slices.extend(self.pieces.iter().map(|piece| self.bytes_of(piece)));
        let padding = whole_blocks(self.length as u64) - self.length as u64;
        let padding = usize::try_from(padding).expect("less than a block");
        slices.push(&PADDING[..padding]);
        slices
    }

    fn bytes_of<'a>(&'a self, piece: &'a Piece) -> &'a [u8] {
        match piece {
            Piece::Small(range) => &self.small[range.clone()],
            Piece::Large(bytes) => bytes,
        }
    }

    fn entry(&mut self, kind: u8, body_bytes: usize) {
        self.entries_count += 1;
        self.push(&[kind, 0, 0, 0]);
        self.push(&length_field(body_bytes));
    }

    fn push(&mut self, bytes: &[u8]) {
        let start = self.small.len();
        self.small.extend_from_slice(bytes);
        self.length += bytes.len();
        match self.pieces.last_mut() {
            Some(Piece::Small(range)) => range.end = self.small.len(),
            _ => self.pieces.push(Piece::Small(start..self.small.len())),
        }
    }
}

/// The header of a group, not yet believed: its checksum covers the whole group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GroupHeader {
    pub(crate) generation: Generation,
    pub(crate) sequence: GroupSequence,
    pub(crate) synced: GroupSequence,
    /// Bytes of header and entries.
    pub(crate) length: usize,
    entries_count: u32,
}

impl GroupHeader {
    /// `None` when the bytes do not look like the beginning of a group.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let mut fields = Fields::of(bytes);
        if fields.array::<4>()? != MAGIC {
            return None;
        }
        fields.u32()?;
        let generation = Generation(fields.counter()?);
        let sequence = GroupSequence(fields.counter()?);
        let synced = GroupSequence(fields.counter()?);
        let length = fields.length()?;
        let entries_count = fields.u32()?;
        (length >= GROUP_HEADER_BYTES).then_some(Self {
            generation,
            sequence,
            synced,
            length,
            entries_count,
        })
    }
}

/// A whole group that was read and whose checksum is right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Group {
    pub(crate) header: GroupHeader,
    pub(crate) entries: Vec<Entry>,
}

/// What bytes are that begin like a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Parsed {
    /// A whole group.
    Whole(Group),
    /// A group as it was written, with entries that mean nothing to this version.
    Unreadable(GroupHeader),
    /// None, or a torn one.
    Torn,
}

impl Group {
    pub(crate) fn parse(bytes: &Bytes) -> Parsed {
        match Self::checked(bytes) {
            Some((header, bytes)) => match Self::read(header, &bytes) {
                Some(group) => Parsed::Whole(group),
                None => Parsed::Unreadable(header),
            },
            None => Parsed::Torn,
        }
    }

    /// The bytes of the group that `bytes` begin with, if its checksum is right.
    fn checked(bytes: &Bytes) -> Option<(GroupHeader, Bytes)> {
        let header = GroupHeader::parse(bytes)?;
        let bytes = bytes.get(..header.length).map(|group| bytes.slice_ref(group))?;
        let mut fields = Fields::of(&bytes);
        fields.take(MAGIC.len())?;
        let checksum = fields.u32()?;
        (checksum == crc32c(fields.rest())).then_some((header, bytes))
    }

    fn read(header: GroupHeader, bytes: &Bytes) -> Option<Self> {
        let mut rest = bytes.slice(GROUP_HEADER_BYTES..);
        let mut entries = Vec::new();
        while !rest.is_empty() {
            entries.push(Entry::split_off(&mut rest)?);
        }
        let count = u32::try_from(entries.len()).ok()?;
        (count == header.entries_count).then_some(Self { header, entries })
    }
}

impl Entry {
    /// Takes an entry off the front of `bytes`.
    fn split_off(bytes: &mut Bytes) -> Option<Self> {
        let head = split_front(bytes, ENTRY_HEADER_BYTES)?;
        let mut fields = Fields::of(&head);
        let kind = fields.u8()?;
        fields.take(3)?;
        let mut body = split_front(bytes, fields.length()?)?;
        match kind {
            1 => {
                let head = AppendHead::parse(&split_front(&mut body, APPEND_BYTES)?)?;
                Some(Self::Append(head, body))
            }
            2 => {
                let head = split_front(&mut body, 8)?;
                let mut fields = Fields::of(&head);
                let table = TableNumber(fields.u8()?);
                fields.take(3)?;
                let key = split_front(&mut body, fields.length()?)?;
                Some(Self::Put(table, key, body))
            }
            3 => {
                let table = TableNumber(*body.first()?);
                split_front(&mut body, 4)?;
                Some(Self::Delete(table, body))
            }
            4 => (body.remaining() == 8).then(|| Self::Checkpoint(GroupSequence(body.get_u64()))),
            5 => {
                let head = AppendHead::parse(&split_front(&mut body, APPEND_BYTES)?)?;
                let bytes = (body.remaining() == WRITTEN_BYTES)
                    .then(|| WrittenBytes { length: body.get_u32(), checksum: body.get_u32() })?;
                Some(Self::Written(head, bytes))
            }
            _ => None,
        }
    }
}

impl AppendHead {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let mut fields = Fields::of(bytes);
        let topic_id = TopicId::from_bytes(fields.array()?);
        let index = PartitionIndex::from_wire(fields.i32()?)?;
        let leader_epoch = fields.leader_epoch()?;
        let base_offset = Offset::from_wire(fields.i64()?)?;
        let next_offset = Offset::from_wire(fields.i64()?)?;
        let max_timestamp = Timestamp::from_wire(fields.i64()?);
        let appended_at = Timestamp::from_wire(fields.i64()?)?;
        let segment = Offset::from_wire(fields.i64()?)?;
        let position = fields.u64()?;
        (base_offset < next_offset && segment <= base_offset).then_some(Self {
            partition: PartitionId::new(topic_id, index),
            leader_epoch,
            base_offset,
            next_offset,
            max_timestamp,
            appended_at,
            segment,
            position,
        })
    }
}
