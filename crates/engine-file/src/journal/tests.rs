//! The journal's bytes, its walk, and what damage does to it.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use proptest::prelude::*;
use strandline_model::{LeaderEpoch, Offset, PartitionId, PartitionIndex, Timestamp, TopicId};

use super::files::{JournalFiles, SpareFile};
use super::group::{AppendHead, Entry, Group, GroupBuilder, Parsed, WrittenBytes};
use super::header::{FileHeader, ParsedHeader};
use super::reader::{Journal, ReadFailure, WalkEnd, WalkStart};
use super::writer::{FileSizes, WriteFailure, Writer};
use super::{BLOCK_BYTES, FOLDER, Generation, GroupPosition, GroupSequence, Slot};
use crate::disk::{Crash, Disk, Fault, OpenMode, Persisted, TestDisk};
use crate::progress::OpenProgress;
use crate::tables::TableNumber;

const SIZES: FileSizes = FileSizes {
    first_bytes: 4 * BLOCK_BYTES,
    max_bytes: 8 * BLOCK_BYTES,
    spare_bytes_max: 64 * BLOCK_BYTES,
};

const START: WalkStart = WalkStart {
    position: GroupPosition { generation: Generation(1), position: 0 },
    sequence: GroupSequence(1),
};

fn new_disk() -> Arc<TestDisk> {
    let disk = TestDisk::new();
    disk.create_dir(Path::new(FOLDER)).unwrap();
    disk.sync_dir(Path::new("")).unwrap();
    Arc::new(disk)
}

fn writer(disk: &Arc<TestDisk>) -> Writer {
    let disk = Arc::clone(disk) as Arc<dyn Disk>;
    let files = JournalFiles::start(disk, Vec::new(), 0).unwrap();
    Writer::new(Arc::new(files), SIZES, GroupSequence(0), Generation(0))
}

fn value_of(number: u64, bytes: usize) -> Vec<u8> {
    number.to_be_bytes().into_iter().cycle().take(bytes).collect()
}

/// Writes the group `number`, which puts one row of `bytes`.
fn write(writer: &mut Writer, number: u64, bytes: usize) -> Result<(), WriteFailure> {
    let mut group = GroupBuilder::default();
    group.begin();
    group.put(TableNumber(1), &number.to_be_bytes(), &value_of(number, bytes));
    writer.write(&mut group)
}

fn commit(writer: &mut Writer, number: u64) {
    write(writer, number, 100).unwrap();
    writer.sync().unwrap();
}

/// The numbers of the groups that a walk finds.
fn walk(disk: &dyn Disk, start: WalkStart) -> Result<(Vec<u64>, WalkEnd), ReadFailure> {
    let mut numbers = Vec::new();
    let end =
        Journal::open(disk)?.walk::<ReadFailure>(start, &OpenProgress::default(), |group| {
            for entry in group.entries {
                let Entry::Put(_, key, value) = entry else { panic!("only rows were put") };
                let number = u64::from_be_bytes(key[..].try_into().unwrap());
                assert_eq!(value, value_of(number, value.len()));
                numbers.push(number);
            }
            Ok(())
        })?;
    Ok((numbers, end))
}

/// Turns every bit of a byte in the file of a slot.
fn damage(disk: &dyn Disk, slot: u32, position: u64) {
    let file = disk.open(&Slot(slot).path(), OpenMode::Existing).unwrap();
    let mut byte = [0];
    file.read_at(position, &mut byte).unwrap();
    file.write_at(position, &[&[!byte[0]]]).unwrap();
}

#[test]
fn groups_come_back_in_order_over_many_files() {
    let disk = new_disk();
    let mut writer = writer(&disk);
    (1..=30).for_each(|number| commit(&mut writer, number));
    let (numbers, end) = walk(&*disk, START).unwrap();
    assert_eq!(numbers, (1..=30).collect::<Vec<_>>());
    assert_eq!(end, WalkEnd { last: GroupSequence(30), torn_groups: 0 });
}

#[test]
fn a_walk_begins_anywhere_and_old_groups_of_recycled_files_are_never_seen() {
    let disk = new_disk();
    let mut writer = writer(&disk);
    (1..=20).for_each(|number| commit(&mut writer, number));
    let start = WalkStart { position: writer.end(), sequence: GroupSequence(21) };
    writer.release(writer.last());
    (21..=50).for_each(|number| commit(&mut writer, number));
    let (numbers, end) = walk(&*disk, start).unwrap();
    assert_eq!(numbers, (21..=50).collect::<Vec<_>>());
    assert_eq!(end.torn_groups, 0);
    let files = disk.list(Path::new(FOLDER)).unwrap();
    assert!(files.len() <= 9, "released files are used again: {files:?}");
}

#[test]
fn a_group_larger_than_any_file_gets_one_of_its_own() {
    let disk = new_disk();
    let mut writer = writer(&disk);
    write(&mut writer, 1, 100_000).unwrap();
    commit(&mut writer, 2);
    assert_eq!(walk(&*disk, START).unwrap().0, [1, 2]);
}

#[test]
fn a_torn_tail_is_cut_and_counted() {
    for seed in 0..64 {
        let disk = new_disk();
        let mut writer = writer(&disk);
        commit(&mut writer, 1);
        // Two groups that nobody waited for: a crash may keep the second without the first.
        write(&mut writer, 2, 3000).unwrap();
        write(&mut writer, 3, 3000).unwrap();
        let crashed = disk.after(Crash::Torn(seed));
        let (numbers, end) = walk(&crashed, START).unwrap();
        assert_eq!(numbers, (1..=end.last.0).collect::<Vec<_>>());
        assert!(end.last.0 + end.torn_groups <= 3, "{end:?}");
    }
}

#[test]
fn damage_before_the_last_mark_is_reported() {
    let disk = new_disk();
    let mut writer = writer(&disk);
    (1..=3).for_each(|number| commit(&mut writer, number));
    damage(&*disk, 0, BLOCK_BYTES + 60);
    let failure = walk(&*disk, START).unwrap_err();
    assert!(matches!(failure, ReadFailure::Damaged { sequence: GroupSequence(1), .. }));
}

#[test]
fn damage_at_the_end_of_a_file_that_another_follows_is_reported() {
    let disk = new_disk();
    let mut writer = writer(&disk);
    (1..=4).for_each(|number| commit(&mut writer, number));
    damage(&*disk, 0, 3 * BLOCK_BYTES + 60);
    let failure = walk(&*disk, START).unwrap_err();
    assert!(matches!(failure, ReadFailure::Damaged { sequence: GroupSequence(3), .. }));
}

#[test]
fn a_damaged_header_of_a_live_file_is_reported() {
    let disk = new_disk();
    let mut writer = writer(&disk);
    commit(&mut writer, 1);
    damage(&*disk, 0, 20);
    assert!(matches!(walk(&*disk, START), Err(ReadFailure::Damaged { .. })));
}

/// What is left of a file that somebody cut is never taken for all of it: only what begins no file yet
/// can't be told from one that is not there.
#[test]
fn a_file_that_was_cut_anywhere_is_reported() {
    let whole = one_file();
    let all: Vec<_> = (1..=8).collect();
    assert_eq!(walk(&*disk_with(&whole), START).unwrap().0, all);
    for length in 0..whole.len() {
        let disk = disk_with(&whole[..length]);
        match walk(&*disk, START) {
            Ok((numbers, _)) => assert!(length < 72 && numbers.is_empty(), "{length}"),
            Err(failure) => {
                assert!(matches!(failure, ReadFailure::Damaged { .. }), "{length}: {failure:?}");
            }
        }
        // A snapshot that lies in the file knows that it was there.
        let position = GroupPosition { generation: Generation(1), position: 2 * BLOCK_BYTES };
        let start = WalkStart { position, sequence: GroupSequence(2) };
        let failure = walk(&*disk, start).unwrap_err();
        assert!(matches!(failure, ReadFailure::Damaged { .. }), "{length}: {failure:?}");
    }
}

#[test]
fn a_file_that_is_gone_is_reported() {
    let disk = new_disk();
    let mut writer = writer(&disk);
    (1..=12).for_each(|number| commit(&mut writer, number));
    let start = WalkStart { position: writer.end(), sequence: GroupSequence(13) };
    commit(&mut writer, 13);
    let names = disk.list(Path::new(FOLDER)).unwrap();
    for (at, name) in names.iter().enumerate() {
        let image = disk.after(Crash::KeepAll);
        image.remove_file(&Path::new(FOLDER).join(&name.name)).unwrap();
        let is_last = writer.end().generation.0 == at as u64 + 1;
        match walk(&image, START) {
            // Nothing is left that knew of it; where the snapshot lies in it, that does.
            Ok((numbers, _)) if is_last => {
                assert!(numbers.len() < 13);
                let failure = walk(&image, start).unwrap_err();
                assert!(matches!(failure, ReadFailure::Damaged { .. }), "{failure:?}");
            }
            // A spare one.
            Ok((numbers, _)) => assert_eq!(numbers.len(), 13, "{}", name.name),
            Err(failure) => assert!(matches!(failure, ReadFailure::Damaged { .. }), "{failure:?}"),
        }
    }
}

#[test]
fn a_newer_file_is_named_so() {
    let mut block = FileHeader {
        generation: Generation(1),
        first_sequence: GroupSequence(1),
        file_bytes: 0,
        abandoned: None,
    }
    .encode();
    block[12..16].copy_from_slice(&7_u32.to_be_bytes());
    let checksum = strandline_records::crc32c(&block[12..72]);
    block[8..12].copy_from_slice(&checksum.to_be_bytes());
    assert_eq!(FileHeader::parse(&block), ParsedHeader::Newer(7));
}

#[test]
fn an_abandoned_file_is_read_to_its_last_synced_group_only() {
    for persisted in [Persisted::Nothing, Persisted::Torn(1), Persisted::Torn(2)] {
        let disk = new_disk();
        let mut writer = writer(&disk);
        commit(&mut writer, 1);
        write(&mut writer, 2, 100).unwrap();
        disk.inject("journal", 0, Fault::Sync { persisted });
        writer.sync().unwrap_err();
        writer.abandon().unwrap();
        // The second group still reads well from memory; its number goes to another one.
        commit(&mut writer, 77);
        commit(&mut writer, 78);
        for crash in [Crash::KeepAll, Crash::DropAll] {
            assert_eq!(walk(&disk.after(crash), START).unwrap().0, [1, 77, 78]);
        }
    }
}

#[test]
fn an_append_says_where_its_batches_go() {
    let head = AppendHead {
        partition: PartitionId::new(TopicId::from_bytes([7; 16]), PartitionIndex::new(3)),
        leader_epoch: LeaderEpoch::new(4),
        base_offset: Offset::new(50),
        next_offset: Offset::new(60),
        max_timestamp: None,
        appended_at: Timestamp::from_millis(99),
        segment: Offset::new(40),
        position: 1234,
    };
    let (small, large) = (Bytes::from(vec![1; 10]), Bytes::from(vec![2; 50_000]));
    let mut group = GroupBuilder::default();
    group.begin();
    assert!(group.is_empty());
    group.append(&head, &small);
    group.append(&head, &large);
    group.written(&head, WrittenBytes::of(&large));
    group.delete(TableNumber(9), b"key");
    group.checkpoint(GroupSequence(5));
    group.seal(Generation(1), GroupSequence(2), GroupSequence(1));
    let bytes = Bytes::from(group.slices().concat());
    assert_eq!(bytes.len() as u64, group.whole_bytes());
    let Parsed::Whole(Group { entries, .. }) = Group::parse(&bytes) else { panic!("it is whole") };
    let expected = [
        Entry::Append(head, small),
        Entry::Append(head, large.clone()),
        Entry::Written(head, WrittenBytes::of(&large)),
        Entry::Delete(TableNumber(9), Bytes::from_static(b"key")),
        Entry::Checkpoint(GroupSequence(5)),
    ];
    assert_eq!(entries, expected);
    assert!(WrittenBytes::of(&large).are(&large));
    assert!(!WrittenBytes::of(&large).are(&large[1..]));
    assert!(!WrittenBytes::of(&large).are(&vec![3; 50_000]));
}

/// A journal of eight synced groups in one file and the bytes of that file.
fn one_file() -> Vec<u8> {
    let disk = new_disk();
    let files = JournalFiles::start(Arc::clone(&disk) as Arc<dyn Disk>, Vec::new(), 0).unwrap();
    let sizes = FileSizes { first_bytes: 12 * BLOCK_BYTES, ..SIZES };
    let mut writer = Writer::new(Arc::new(files), sizes, GroupSequence(0), Generation(0));
    (1..=8).for_each(|number| commit(&mut writer, number));
    let file = disk.open(&Slot(0).path(), OpenMode::Existing).unwrap();
    let mut bytes = vec![0; usize::try_from(file.size().unwrap()).unwrap()];
    file.read_at(0, &mut bytes).unwrap();
    bytes
}

fn disk_with(bytes: &[u8]) -> Arc<TestDisk> {
    let disk = new_disk();
    let file = disk.open(&Slot(0).path(), OpenMode::New).unwrap();
    file.write_at(0, &[bytes]).unwrap();
    disk
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_a_panic(
        header: bool, bytes in prop::collection::vec(any::<u8>(), 0..20_000),
    ) {
        let mut file = if header { one_file()[..4096].to_vec() } else { Vec::new() };
        file.extend(bytes);
        drop(walk(&*disk_with(&file), START));
    }

    #[test]
    fn changed_bytes_give_a_prefix_or_a_report_never_anything_else(
        changes in prop::collection::vec((0..36_864_usize, any::<u8>()), 1..6),
    ) {
        let mut file = one_file();
        let intact = file.clone();
        for (at, byte) in changes {
            file[at] = byte;
        }
        // Bytes of a group proper, not its padding, in a group that the next one says was synced.
        let hurt = |range: std::ops::Range<usize>| file[range.clone()] != intact[range];
        let synced_hurt = (1..8).any(|group| hurt(group * 4096..group * 4096 + 40 + 124));
        match walk(&*disk_with(&file), START) {
            Ok((numbers, _)) => {
                prop_assert!(!synced_hurt || hurt(0..4096) || hurt(8 * 4096..9 * 4096));
                prop_assert_eq!(&numbers, &(1..=numbers.len() as u64).collect::<Vec<_>>());
            }
            Err(failure) => {
                let reported = matches!(failure, ReadFailure::Damaged { .. } | ReadFailure::Newer(_));
                prop_assert!(reported, "{:?}", failure);
            }
        }
    }
}

#[test]
fn spare_files_are_what_a_journal_leaves() {
    let disk = new_disk();
    let mut writer = writer(&disk);
    (1..=4).for_each(|number| commit(&mut writer, number));
    drop(writer);
    let (spare, next_slot) = Journal::open(&*disk).unwrap().into_spare();
    assert!(spare.iter().all(|SpareFile { slot, bytes, .. }| slot.0 < next_slot && *bytes > 0));
    assert!(spare.len() >= 2);
}

#[test]
fn a_builder_lets_go_of_what_a_very_large_group_needed() {
    let mut builder = GroupBuilder::default();
    builder.begin();
    builder.put(TableNumber(1), b"key", &vec![7; 32 * 1024 * 1024]);
    assert!(builder.held_bytes() >= 32 * 1024 * 1024);
    builder.release();
    assert!(builder.held_bytes() <= 8 * 1024 * 1024, "{}", builder.held_bytes());
    assert!(builder.is_empty());
}

#[test]
fn a_group_of_another_version_is_no_torn_one() {
    let disk = new_disk();
    let mut writer = writer(&disk);
    (1..=3).for_each(|number| commit(&mut writer, number));
    drop(writer);
    // The kind of the last group's entry becomes one that nobody knows, and its checksum right again.
    let file = disk.open(&Slot(0).path(), OpenMode::Existing).unwrap();
    let at = 3 * BLOCK_BYTES;
    let mut group = vec![0; 4096];
    file.read_at(at, &mut group).unwrap();
    let length = u32::from_be_bytes(group[32..36].try_into().unwrap()) as usize;
    group[40] = 99;
    let checksum = strandline_records::crc32c(&group[8..length]);
    group[4..8].copy_from_slice(&checksum.to_be_bytes());
    file.write_at(at, &[&group]).unwrap();
    let failure = walk(&*disk, START).unwrap_err();
    let sequence = GroupSequence(3);
    assert!(matches!(failure, ReadFailure::Unreadable { sequence: s, .. } if s == sequence));
}
