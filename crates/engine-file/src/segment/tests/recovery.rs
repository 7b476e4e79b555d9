use std::path::Path;

use strandline_storage::{ErrorKind, Removal};

use super::*;
use crate::disk::OpenMode;

const LOG_0: &str = "logs/BwcHBwcHBwcHBwcHBwcHBw/0/00000000000000000000.log";

#[test]
fn bytes_and_files_beyond_what_is_believed_are_gone_after_opening() {
    let disk = TestDisk::new();
    let log = open_empty(&store_on(&disk));
    append(&log, &singles(0, 7));
    let believed = log.facts();
    assert_eq!(believed.len(), 1);
    append(&log, &singles(7, 30));

    let store = store_on(&disk);
    let log = store.open(partition(0), believed.clone(), Offset::new(7), settings()).unwrap();
    assert_eq!(log.written_end(), Offset::new(7));
    assert_eq!(disk.contents(LOG_0).unwrap().len() as u64, believed[0].bytes);
    let paths = disk.paths();
    let names = paths.iter().filter_map(|path| path.file_name()?.to_str());
    assert!(
        names
            .filter(|name| name.contains('.'))
            .all(|name| name.starts_with("00000000000000000000"))
    );
    assert_eq!(read_all(&log, 0), bytes_of(&singles(0, 7)));
    // What is written again may differ from what was there.
    let other = [batch(7, 3, 11, 900), batch(10, 2, 300, 901)];
    append(&log, &other);
    assert_eq!(read_all(&log, 7), bytes_of(&other));
}

#[test]
fn placements_of_a_journal_are_written_where_they_were() {
    let disk = TestDisk::new();
    let log = open_empty(&store_on(&disk));
    let batches = singles(0, 40);
    append(&log, &batches[..5]);
    let believed = log.facts();
    let placed: Vec<_> =
        batches[5..].iter().map(|batch| (log.place(batch).unwrap(), batch)).collect();
    log.write(&[Append { place: placed[0].0, batches: placed[0].1 }]).unwrap();

    let store = store_on(&disk);
    let recovered = store.open(partition(0), believed, Offset::new(5), settings()).unwrap();
    for (place, batches) in placed {
        recovered.write(&[Append { place, batches }]).unwrap();
    }
    assert_eq!(read_all(&recovered, 0), bytes_of(&batches));
    let next = singles(40, 1);
    append(&recovered, &next);
    assert_eq!(read_all(&recovered, 40), bytes_of(&next));
}

#[test]
fn a_missing_or_short_segment_is_damage() {
    let disk = TestDisk::new();
    let log = open_empty(&store_on(&disk));
    append(&log, &singles(0, 5));
    let facts = log.facts();
    let file = disk.open(Path::new(LOG_0), OpenMode::Existing).unwrap();
    file.set_len(facts[0].bytes - 1).unwrap();
    let open = || store_on(&disk).open(partition(0), facts.clone(), Offset::new(5), settings());
    assert_eq!(open().unwrap_err().kind(), ErrorKind::Corrupt);
    disk.remove_file(Path::new(LOG_0)).unwrap();
    assert_eq!(open().unwrap_err().kind(), ErrorKind::Corrupt);
}

#[test]
fn a_damaged_sealed_segment_shows_when_it_is_read_and_the_others_stay_readable() {
    let disk = TestDisk::new();
    let log = open_empty(&store_on(&disk));
    append(&log, &singles(0, 30));
    let sealed = log.facts()[0];
    let file = disk.open(Path::new(LOG_0), OpenMode::Existing).unwrap();
    file.set_len(sealed.bytes / 2).unwrap();
    let log = reopen(&store_on(&disk), &log);
    let error = log.read(Offset::ZERO, Offset::new(30), limit(900, Minimum::OneBatch)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    read_all(&log, sealed.next_offset.get());
    assert!(!log.verify().unwrap().is_empty());
}

#[test]
fn facts_that_contradict_each_other_are_refused() {
    let disk = TestDisk::new();
    let log = open_empty(&store_on(&disk));
    append(&log, &singles(0, 30));
    let facts = log.facts();
    let mut doubled = facts.clone();
    doubled.insert(0, facts[0]);
    let open = |facts, end| store_on(&disk).open(partition(0), facts, Offset::new(end), settings());
    assert_eq!(open(doubled, 30).unwrap_err().kind(), ErrorKind::Corrupt);
    assert_eq!(open(facts, 29).unwrap_err().kind(), ErrorKind::Corrupt);
}

#[test]
fn an_emptied_log_goes_on_above_its_old_end() {
    let disk = TestDisk::new();
    let log = open_empty(&store_on(&disk));
    append(&log, &singles(0, 5));
    let store = store_on(&disk);
    let log = store.open(partition(0), Vec::new(), Offset::new(100), settings()).unwrap();
    append(&log, &singles(100, 2));
    assert_eq!(read_all(&log, 100), bytes_of(&singles(100, 2)));
    assert_eq!(log.chunks()[0].base_offset, Offset::new(100));
}

#[test]
fn a_file_alone_tells_its_facts_and_where_its_tail_is_torn() {
    let disk = TestDisk::new();
    let log = open_empty(&store_on(&disk));
    append(&log, &singles(0, 5));
    let good = disk.contents(LOG_0).unwrap();
    let facts = log.facts()[0];
    let size = good.len() / 5;
    let file = disk.open(Path::new(LOG_0), OpenMode::Existing).unwrap();
    disk.set_time(Timestamp::from_millis(777));
    let whole = 3 * size;
    let tails: [(&str, Vec<u8>); 5] = [
        ("cut in a header", good[whole..whole + 20].to_vec()),
        ("cut in the records", good[whole..whole + size - 1].to_vec()),
        ("zeros", vec![0; 300]),
        ("garbage", vec![0xa7; 300]),
        ("an older batch", good[..size].to_vec()),
    ];
    for (what, tail) in tails {
        file.set_len(whole as u64).unwrap();
        file.write_at(whole as u64, &[&tail]).unwrap();
        let scan = store_on(&disk)
            .scan(partition(0), crate::segment::SegmentName::appended(Offset::ZERO))
            .unwrap();
        let found = scan.facts.unwrap();
        assert_eq!((found.bytes, found.next_offset.get()), (whole as u64, 3), "{what}");
        assert_eq!(found.first_appended_at, Timestamp::from_millis(777), "{what}");
        assert_eq!(scan.finding.unwrap().position, whole as u64, "{what}");
    }
    file.set_len(0).unwrap();
    file.write_at(0, &[&good]).unwrap();
    let scan = store_on(&disk)
        .scan(partition(0), crate::segment::SegmentName::appended(Offset::ZERO))
        .unwrap();
    assert_eq!(scan.finding, None);
    assert_eq!(scan.facts.unwrap().bytes, facts.bytes);
    // One flipped bit in the records.
    file.write_at(good.len() as u64 - 1, &[&[good[good.len() - 1] ^ 1]]).unwrap();
    let scan = store_on(&disk)
        .scan(partition(0), crate::segment::SegmentName::appended(Offset::ZERO))
        .unwrap();
    assert!(scan.finding.unwrap().message.contains("crc mismatch"));
}

#[test]
fn a_sound_log_has_no_findings_and_a_strange_file_is_one() {
    let disk = TestDisk::new();
    let log = open_empty(&store_on(&disk));
    append(&log, &singles(0, 30));
    assert_eq!(log.verify().unwrap(), []);
    let strange = Path::new("logs/BwcHBwcHBwcHBwcHBwcHBw/0/00000000000000000003.log");
    disk.open(strange, OpenMode::New).unwrap();
    assert_eq!(log.verify().unwrap().len(), 1);
}

#[test]
fn a_segment_that_was_superseded_is_removed() {
    let disk = TestDisk::new();
    let log = open_empty(&store_on(&disk));
    append(&log, &singles(0, 30));
    // Its unlinking was lost in a crash.
    let strange = Path::new("logs/BwcHBwcHBwcHBwcHBwcHBw/0/00000000000000000003.log");
    disk.open(strange, OpenMode::New).unwrap().write_at(0, &[&[1; 500]]).unwrap();
    let log = reopen(&store_on(&disk), &log);
    assert_eq!(log.verify().unwrap(), []);
    while log.remove_dropped(ByteCount::new(100)).unwrap() != Removal::Done {}
    assert!(disk.contents(strange).is_none());
    assert_eq!(read_all(&log, 0), bytes_of(&singles(0, 30)));
}
