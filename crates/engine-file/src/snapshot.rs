//! The snapshot: all rows as of one sequence of the journal, and the root of the folder.
//!
//! docs/format.md, "The snapshot", has the byte table. It is replaced by a rename, so a crash leaves
//! the old one or the new one.

use std::io;
use std::path::Path;

use bytes::{Bytes, BytesMut};
use crc_fast::{CrcAlgorithm, Digest};
use strandline_records::crc32c;

use crate::bytes::{Fields, length_field};
use crate::disk::{Disk, DiskFile, OpenMode};
use crate::journal::{Generation, GroupPosition, GroupSequence};
use crate::rows::RowMap;
use crate::tables::TableNumber;

const NAME: &str = "snapshot";
const NEW_NAME: &str = "snapshot.new";
const MAGIC: [u8; 8] = *b"SLSNAPSH";
/// The version of the folder that this code writes. It reads the older ones too: docs/format.md, "Versions".
pub(crate) const VERSION: u32 = 2;
const HEADER_BYTES: usize = 96;
const CHECKED_FROM: usize = 12;
/// Rows are handed to the disk in pieces of about this size.
const PIECE_BYTES: usize = 256 * 1024;

/// What a snapshot says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SnapshotHead {
    /// The rows are as of exactly this one.
    pub(crate) sequence: GroupSequence,
    /// Where the group after it lies, unless a later generation begins with it.
    pub(crate) position: GroupPosition,
    pub(crate) generation_max: Generation,
    /// Counts the starts of the engine.
    pub(crate) run: u64,
    /// The last run that did not stop cleanly; 0 for none.
    pub(crate) unclean_run: u64,
    /// Written by a clean stop.
    pub(crate) clean: bool,
}

/// What is found under the snapshot's name.
#[derive(Debug)]
pub(crate) enum LoadedSnapshot {
    None,
    Newer(u32),
    Damaged,
    /// With the version that it was written in.
    Found(SnapshotHead, RowMap, u32),
}

/// Writes a snapshot, durably, in place of the one before.
pub(crate) fn write(disk: &dyn Disk, head: &SnapshotHead, rows: &RowMap) -> io::Result<()> {
    let new_name = Path::new(NEW_NAME);
    if let Err(error) = write_new(disk, head, rows) {
        // It may be what fills the disk. One that stays is overwritten by the next.
        drop(disk.remove_file(new_name));
        return Err(error);
    }
    disk.rename(new_name, Path::new(NAME))?;
    disk.sync_dir(Path::new(""))
}

fn write_new(disk: &dyn Disk, head: &SnapshotHead, rows: &RowMap) -> io::Result<()> {
    let file = disk.open(Path::new(NEW_NAME), OpenMode::Either)?;
    file.set_len(0)?;
    let (rows_bytes, rows_checksum) = write_rows(&*file, rows)?;
    file.write_at(0, &[&head.encode(rows.len() as u64, rows_bytes, rows_checksum)])?;
    file.sync_data()
}

/// Says how many bytes the rows take and what their checksum is.
fn write_rows(file: &dyn DiskFile, rows: &RowMap) -> io::Result<(u64, u32)> {
    let mut digest = Digest::new(CrcAlgorithm::Crc32Iscsi);
    let mut position = HEADER_BYTES as u64;
    let mut piece = Vec::with_capacity(PIECE_BYTES);
    let mut flush = |piece: &mut Vec<u8>| {
        digest.update(piece);
        file.write_at(position, &[piece])?;
        position += piece.len() as u64;
        piece.clear();
        io::Result::Ok(())
    };
    for ((table, key), value) in rows {
        piece.push(table.0);
        piece.extend(length_field(key.len()));
        piece.extend(length_field(value.len()));
        piece.extend_from_slice(key);
        piece.extend_from_slice(value);
        if piece.len() >= PIECE_BYTES {
            flush(&mut piece)?;
        }
    }
    flush(&mut piece)?;
    let checksum = u32::try_from(digest.finalize()).expect("a 32-bit checksum fits 32 bits");
    Ok((position - HEADER_BYTES as u64, checksum))
}

/// Reads and checks the snapshot.
pub(crate) fn load(disk: &dyn Disk) -> io::Result<LoadedSnapshot> {
    let file = match disk.open(Path::new(NAME), OpenMode::Existing) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(LoadedSnapshot::None),
        Err(error) => return Err(error),
    };
    let size = usize::try_from(file.size()?).map_err(|_| io::ErrorKind::OutOfMemory)?;
    let mut bytes = vec![0; size];
    let read = file.read_at(0, &mut bytes)?;
    bytes.truncate(read);
    Ok(parse(&bytes).unwrap_or(LoadedSnapshot::Damaged))
}

/// `None` for bytes that are no snapshot.
fn parse(bytes: &[u8]) -> Option<LoadedSnapshot> {
    let (header, rest) = bytes.split_at_checked(HEADER_BYTES)?;
    let mut fields = Fields::of(header);
    let (magic, checksum) = (fields.array::<8>()?, fields.u32()?);
    if magic != MAGIC || checksum != crc32c(fields.rest()) {
        return None;
    }
    let version = fields.u32()?;
    if version > VERSION {
        return Some(LoadedSnapshot::Newer(version));
    }
    let sequence = GroupSequence(fields.counter()?);
    let position =
        GroupPosition { generation: Generation(fields.counter()?), position: fields.u64()? };
    let generation_max = Generation(fields.counter()?);
    let (run, unclean_run) = (fields.counter()?, fields.counter()?);
    let clean = fields.u64()? == 1;
    let head = SnapshotHead { sequence, position, generation_max, run, unclean_run, clean };
    let rows_count = usize::try_from(fields.u64()?).ok()?;
    let rows_bytes = usize::try_from(fields.u64()?).ok()?;
    let rows = rest.get(..rows_bytes)?;
    if fields.u32()? != crc32c(rows) {
        return None;
    }
    let rows = parse_rows(rows)?;
    (rows.len() == rows_count).then_some(LoadedSnapshot::Found(head, rows, version))
}

fn parse_rows(bytes: &[u8]) -> Option<RowMap> {
    let mut fields = Fields::of(bytes);
    let mut rows = Vec::new();
    while !fields.is_empty() {
        let table = TableNumber(fields.u8()?);
        let (key_bytes, value_bytes) = (fields.length()?, fields.length()?);
        let key = Bytes::copy_from_slice(fields.take(key_bytes)?);
        let value = Bytes::copy_from_slice(fields.take(value_bytes)?);
        rows.push(((table, key), value));
    }
    // Sorted already: the map is built in one go.
    Some(rows.into_iter().collect())
}

impl SnapshotHead {
    fn encode(&self, rows_count: u64, rows_bytes: u64, rows_checksum: u32) -> BytesMut {
        let mut header = BytesMut::with_capacity(HEADER_BYTES);
        header.extend(MAGIC);
        header.extend([0; 4]);
        header.extend(VERSION.to_be_bytes());
        for field in [
            self.sequence.0,
            self.position.generation.0,
            self.position.position,
            self.generation_max.0,
            self.run,
            self.unclean_run,
            u64::from(self.clean),
            rows_count,
            rows_bytes,
        ] {
            header.extend(field.to_be_bytes());
        }
        header.extend(rows_checksum.to_be_bytes());
        header.resize(HEADER_BYTES, 0);
        let checksum = crc32c(&header[CHECKED_FROM..]);
        header[MAGIC.len()..CHECKED_FROM].copy_from_slice(&checksum.to_be_bytes());
        header
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::disk::TestDisk;

    const HEAD: SnapshotHead = SnapshotHead {
        sequence: GroupSequence(5),
        position: GroupPosition { generation: Generation(2), position: 8192 },
        generation_max: Generation(3),
        run: 4,
        unclean_run: 1,
        clean: true,
    };

    fn rows_of(list: &[(u8, Vec<u8>, Vec<u8>)]) -> RowMap {
        let row = |(table, key, value): &(u8, Vec<u8>, Vec<u8>)| {
            ((TableNumber(*table), Bytes::from(key.clone())), Bytes::from(value.clone()))
        };
        list.iter().map(row).collect()
    }

    #[test]
    fn a_folder_without_a_snapshot_is_told_from_one_with_a_damaged_one() {
        let disk = TestDisk::new();
        assert!(matches!(load(&disk).unwrap(), LoadedSnapshot::None));
        write(&disk, &HEAD, &rows_of(&[(1, vec![2], vec![3])])).unwrap();
        let file = disk.open(Path::new(NAME), OpenMode::Existing).unwrap();
        for position in 0..file.size().unwrap() {
            let mut byte = [0];
            file.read_at(position, &mut byte).unwrap();
            file.write_at(position, &[&[byte[0] ^ 4]]).unwrap();
            assert!(matches!(load(&disk).unwrap(), LoadedSnapshot::Damaged), "{position}");
            file.write_at(position, &[&byte]).unwrap();
        }
    }

    #[test]
    fn a_newer_folder_is_named_so() {
        let disk = TestDisk::new();
        write(&disk, &HEAD, &RowMap::new()).unwrap();
        let file = disk.open(Path::new(NAME), OpenMode::Existing).unwrap();
        let mut header = disk.contents(NAME).unwrap();
        header[12..16].copy_from_slice(&(VERSION + 1).to_be_bytes());
        let checksum = crc32c(&header[CHECKED_FROM..HEADER_BYTES]);
        header[8..12].copy_from_slice(&checksum.to_be_bytes());
        file.write_at(0, &[&header]).unwrap();
        assert!(
            matches!(load(&disk).unwrap(), LoadedSnapshot::Newer(version) if version == VERSION + 1)
        );
    }

    proptest! {
        #[test]
        fn rows_come_back(
            list in prop::collection::vec((any::<u8>(), prop::collection::vec(any::<u8>(), 0..9),
                prop::collection::vec(any::<u8>(), 0..300)), 0..50),
        ) {
            let disk = TestDisk::new();
            write(&disk, &HEAD, &RowMap::from([])).unwrap();
            let rows = rows_of(&list);
            write(&disk, &HEAD, &rows).unwrap();
            let LoadedSnapshot::Found(head, found, VERSION) = load(&disk).unwrap() else {
                panic!("it was written")
            };
            prop_assert_eq!(head, HEAD);
            prop_assert_eq!(found, rows);
        }

        #[test]
        fn any_bytes_are_read_without_a_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            drop(parse(&bytes));
            drop(parse_rows(&bytes));
        }
    }
}
