use std::path::PathBuf;

use strandline_storage::BatchInfo;

use super::*;
use crate::disk::OpenMode;

const DIR: &str = "logs/BwcHBwcHBwcHBwcHBwcHBw/0";

fn file(name: &str) -> PathBuf {
    PathBuf::from(DIR).join(name)
}

fn overwrite(disk: &TestDisk, name: &str, bytes: &[u8]) {
    let file = disk.open(&file(name), OpenMode::Either).unwrap();
    file.set_len(0).unwrap();
    file.write_at(0, &[bytes]).unwrap();
}

/// A log of one sealed segment with entries in both indexes, and one that grows.
fn sealed() -> (TestDisk, Arc<SegmentStore>, SegmentLog) {
    let disk = TestDisk::new();
    let store = store_on(&disk);
    let log = open_empty(&store);
    log.configure(LogSettings { segment_bytes: ByteCount::mib(1), ..settings() });
    append(&log, &singles(0, 200));
    log.roll();
    append(&log, &singles(200, 1));
    (disk, store, log)
}

#[test]
fn index_files_are_kafkas() {
    let (disk, ..) = sealed();
    let size = u32::try_from(batch(0, 1, 30, 0).size().get()).unwrap();
    let index = disk.contents(file("00000000000000000000.index")).unwrap();
    // The first entry is made by the first batch that finds more than 100 bytes before it.
    let entry = 100 / size + 1;
    let expected = [entry.to_be_bytes(), (entry * size).to_be_bytes()].concat();
    assert_eq!(index[..8], expected);
    let times = disk.contents(file("00000000000000000000.timeindex")).unwrap();
    let expected = [&i64::from(entry).to_be_bytes()[..], &entry.to_be_bytes()].concat();
    assert_eq!(times[..12], expected);
    // Sealing adds the newest timestamp of all.
    let expected = [&199_i64.to_be_bytes()[..], &199_u32.to_be_bytes()].concat();
    assert_eq!(times[times.len() - 12..], expected);
}

#[test]
fn every_damage_of_an_index_is_repaired_and_never_changes_an_answer() {
    type Damage = fn(&[u8]) -> Vec<u8>;
    let (disk, _, log) = sealed();
    let good = ["00000000000000000000.index", "00000000000000000000.timeindex"]
        .map(|name| (name, disk.contents(file(name)).unwrap()));
    let facts = log.facts();
    let damages: [(&str, Damage); 7] = [
        ("empty", |_| Vec::new()),
        ("cut in an entry", |bytes| bytes[..bytes.len() / 2 - 3].to_vec()),
        ("zeroed", |bytes| vec![0; bytes.len()]),
        ("overlong with zeros", |bytes| [bytes, &[0; 480]].concat()),
        ("overlong with noise", |bytes| [bytes, &[0x5a; 480]].concat()),
        ("noise", |bytes| bytes.iter().map(|byte| byte.wrapping_mul(31) ^ 0x3c).collect()),
        ("shifted by one entry", |bytes| [&[0, 0, 0, 9, 0, 0, 0, 9, 0, 0, 0, 9], bytes].concat()),
    ];
    for (damage, apply) in damages {
        for (name, bytes) in &good {
            for (name, bytes) in &good {
                overwrite(&disk, name, bytes);
            }
            overwrite(&disk, name, &apply(bytes));
            let store = store_on(&disk);
            let log =
                store.open(partition(0), facts.clone(), Offset::new(201), settings()).unwrap();
            for offset in (0..200).rev() {
                let found = find_offset(&log, offset).unwrap();
                assert_eq!(found.base_offset.get(), offset, "{name} {damage}");
                let at = Timestamp::from_millis(offset);
                let by_time = log.find_timestamp(at, Offset::ZERO, Offset::new(201)).unwrap();
                assert_eq!(by_time.unwrap().base_offset.get(), offset, "{name} {damage}");
            }
        }
    }
}

#[test]
fn a_missing_index_is_made_anew_by_the_first_reader() {
    let (disk, _, log) = sealed();
    let good = disk.contents(file("00000000000000000000.index")).unwrap();
    let times = disk.contents(file("00000000000000000000.timeindex")).unwrap();
    disk.remove_file(&file("00000000000000000000.index")).unwrap();
    disk.remove_file(&file("00000000000000000000.timeindex")).unwrap();
    let store = store_on(&disk);
    let log = reopen(&store, &log);
    assert_eq!(find_offset(&log, 150).unwrap().base_offset.get(), 150);
    assert_eq!(disk.contents(file("00000000000000000000.index")).unwrap(), good);
    assert_eq!(disk.contents(file("00000000000000000000.timeindex")).unwrap(), times);
}

#[test]
fn an_index_that_can_not_be_saved_is_kept_in_memory() {
    let (disk, _, log) = sealed();
    disk.remove_file(&file("00000000000000000000.index")).unwrap();
    disk.set_capacity(Some(ByteCount::ZERO));
    let log = reopen(&store_on(&disk), &log);
    assert_eq!(find_offset(&log, 150).unwrap().base_offset.get(), 150);
    assert!(disk.contents(file("00000000000000000000.index")).unwrap_or_default().is_empty());
    assert_eq!(find_offset(&log, 140).unwrap().base_offset.get(), 140);
}

#[test]
fn the_growing_segment_resumes_its_index_from_what_was_saved() {
    let disk = TestDisk::new();
    let store = store_on(&disk);
    let log = open_empty(&store);
    log.configure(LogSettings { segment_bytes: ByteCount::mib(1), ..settings() });
    append(&log, &singles(0, 100));
    log.save_index();
    append(&log, &singles(100, 100));
    let half = disk.contents(file("00000000000000000000.index")).unwrap().len();

    let log = reopen(&store_on(&disk), &log);
    log.configure(LogSettings { segment_bytes: ByteCount::mib(1), ..settings() });
    append(&log, &singles(200, 1));
    log.save_index();
    log.roll();
    append(&log, &singles(201, 1));
    let resumed = ["index", "timeindex"]
        .map(|kind| disk.contents(file(&format!("00000000000000000000.{kind}"))).unwrap());
    assert!(resumed[0].len() > half);

    let (unbroken, ..) = {
        let disk = TestDisk::new();
        let log = open_empty(&store_on(&disk));
        log.configure(LogSettings { segment_bytes: ByteCount::mib(1), ..settings() });
        append(&log, &singles(0, 201));
        log.roll();
        append(&log, &singles(201, 1));
        (disk, log)
    };
    let expected = ["index", "timeindex"]
        .map(|kind| unbroken.contents(file(&format!("00000000000000000000.{kind}"))).unwrap());
    assert_eq!(resumed, expected);
}

#[test]
fn timestamps_out_of_order_are_found_by_the_first_batch_that_is_new_enough() {
    let log = open_empty(&store_on(&TestDisk::new()));
    let stamps = [Some(50), Some(10), None, Some(70), Some(60), None, Some(90), Some(20)];
    let batches: Vec<_> = (0..).zip(stamps).map(|(at, ts)| stamped(at, 1, 200, at, ts)).collect();
    append(&log, &batches);
    assert!(log.chunks().len() > 1);
    let find = |at, from, upto| {
        let at = Timestamp::from_millis(at);
        log.find_timestamp(at, Offset::new(from), Offset::new(upto)).unwrap()
    };
    let offset = |found: Option<BatchInfo>| found.map(|batch| batch.base_offset.get());
    let cases = [
        (0, 0, 8, Some(0)),
        (50, 0, 8, Some(0)),
        (51, 0, 8, Some(3)),
        (71, 0, 8, Some(6)),
        (91, 0, 8, None),
        (5, 1, 8, Some(1)),
        (15, 1, 8, Some(3)),
        (71, 0, 6, None),
        (60, 4, 8, Some(4)),
        (15, 7, 8, Some(7)),
    ];
    for (at, from, upto, expected) in cases {
        assert_eq!(offset(find(at, from, upto)), expected, "at {at} in {from}..{upto}");
    }
}

#[test]
fn an_append_neither_walks_what_is_there_nor_minds_its_damage() {
    let disk = TestDisk::new();
    let log = open_empty(&store_on(&disk));
    log.configure(LogSettings { segment_bytes: ByteCount::mib(1), ..settings() });
    append(&log, &singles(0, 200));
    let segment = disk.open(&file("00000000000000000000.log"), OpenMode::Existing).unwrap();
    segment.write_at(0, &[&[0x5a; 60]]).unwrap();

    let log = reopen(&store_on(&disk), &log);
    log.configure(LogSettings { segment_bytes: ByteCount::mib(1), ..settings() });
    append(&log, &singles(200, 100));
    log.save_index();
    log.roll();
    append(&log, &singles(300, 1));
    let found = find_offset(&log, 290).unwrap();
    assert_eq!(found.base_offset.get(), 290);
    assert!(find_offset(&log, 3).is_err());
}

#[test]
fn entries_of_batches_that_were_given_up_are_cut_before_others_take_their_place() {
    let disk = TestDisk::new();
    let log = open_empty(&store_on(&disk));
    log.configure(LogSettings { segment_bytes: ByteCount::mib(1), ..settings() });
    append(&log, &singles(0, 100));
    let facts = log.facts();
    let stamps = |new_at: i64| {
        (100..200).map(move |at| stamped(at, 1, 30, at, Some(if at == new_at { 900 } else { 500 })))
    };
    append(&log, &stamps(190).collect::<Vec<_>>());
    log.save_index();

    // The end is at 100 again, and what comes now is as new much earlier.
    let log = store_on(&disk).open(partition(0), facts, Offset::new(100), settings()).unwrap();
    log.configure(LogSettings { segment_bytes: ByteCount::mib(1), ..settings() });
    append(&log, &stamps(110).collect::<Vec<_>>());
    for saved in [false, true] {
        let find = |at| {
            let at = Timestamp::from_millis(at);
            log.find_timestamp(at, Offset::ZERO, Offset::new(200)).unwrap().unwrap().base_offset
        };
        assert_eq!(find(900), Offset::new(110), "saved {saved}");
        assert_eq!(find(400), Offset::new(100), "saved {saved}");
        log.save_index();
    }
}
