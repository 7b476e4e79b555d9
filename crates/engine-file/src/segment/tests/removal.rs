use std::io;
use std::path::Path;
use std::time::Instant;

use strandline_storage::Removal;

use super::*;
use crate::disk::{Fault, RealDisk};
use crate::sweeper::{ClosedLogs, Sweeper, Swept, run};

fn logs(disk: &TestDisk) -> Vec<String> {
    let paths = disk.paths();
    let logs = paths.iter().filter(|path| path.extension().is_some_and(|kind| kind == "log"));
    logs.map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect()
}

/// Runs `remove` until it says `Done`, with a bound; says how often it was asked.
fn until_done(mut remove: impl FnMut() -> Removal) -> usize {
    for count in 1..10_000 {
        if remove() == Removal::Done {
            return count;
        }
    }
    panic!("a removal comes to its end");
}

#[test]
fn dropped_segments_are_unread_at_once_and_removed_in_steps() {
    let disk = TestDisk::new();
    let log = open_empty(&store_on(&disk));
    append(&log, &singles(0, 40));
    let before = log.chunks();
    let start = before[2].base_offset;
    assert_eq!(log.drop_below(Offset::new(start.get() + 1)), 2);
    assert_eq!(log.chunks().len(), before.len() - 2);
    assert_eq!(logs(&disk).len(), before.len());

    let budget = ByteCount::new(100);
    let Removal::Remaining(left) = log.remove_dropped(budget).unwrap() else {
        panic!("more than one step is needed")
    };
    let dropped = before[0].bytes + before[1].bytes;
    assert_eq!(left, dropped - budget);
    let steps = until_done(|| log.remove_dropped(budget).unwrap());
    assert!(steps as u64 >= left.get() / 100);
    assert_eq!(logs(&disk).len(), before.len() - 2);
    assert_eq!(log.remove_dropped(budget).unwrap(), Removal::Done);
    assert_eq!(read_all(&log, start.get()), bytes_of(&singles(start.get(), 40 - start.get())));
}

#[test]
fn a_segment_that_can_not_be_removed_keeps_no_other_and_goes_later() {
    let disk = TestDisk::new();
    let log = open_empty(&store_on(&disk));
    append(&log, &singles(0, 40));
    let before = log.chunks();
    log.drop_below(before[3].base_offset);
    disk.inject(
        "00000000000000000000.log",
        0,
        Fault::Open { kind: io::ErrorKind::PermissionDenied },
    );
    log.remove_dropped(ByteCount::mib(1)).unwrap_err();
    assert_eq!(logs(&disk).len(), before.len() - 2, "the oldest is there, those behind it are not");
    until_done(|| log.remove_dropped(ByteCount::mib(1)).unwrap());
    assert_eq!(logs(&disk).len(), before.len() - 3);
}

#[test]
fn a_log_dropped_whole_goes_on_at_its_end() {
    let disk = TestDisk::new();
    let store = store_on(&disk);
    let log = open_empty(&store);
    append(&log, &singles(0, 12));
    log.drop_below(Offset::new(12));
    assert!(log.chunks().is_empty());
    until_done(|| log.remove_dropped(ByteCount::mib(1)).unwrap());
    assert!(logs(&disk).is_empty());
    append(&log, &singles(12, 3));
    assert_eq!(read_all(&log, 12), bytes_of(&singles(12, 3)));

    let log = reopen(&store_on(&disk), &log);
    assert_eq!(read_all(&log, 12), bytes_of(&singles(12, 3)));
}

#[test]
fn a_segment_with_placed_batches_is_not_dropped_before_they_are_written() {
    let log = open_empty(&store_on(&TestDisk::new()));
    append(&log, &singles(0, 2));
    let next = batch(2, 1, 30, 2);
    let place = log.place(&next).unwrap();
    assert_eq!(log.drop_below(Offset::new(2)), 0);
    log.write(&[Append { place, batches: &next }]).unwrap();
    assert_eq!(read_all(&log, 2), bytes_of(&[next]));
}

/// A start passes over every entry of a segment that was journaled to go: what is placed after that must
/// lie in another one.
#[test]
fn what_is_to_go_takes_no_more_batches_though_it_is_not_dropped_yet() {
    let log = open_empty(&store_on(&TestDisk::new()));
    append(&log, &singles(0, 2));
    let ended = log.end_below(Offset::new(2));
    assert_eq!(ended, [Offset::ZERO]);
    let next = batch(2, 1, 30, 2);
    let place = log.place(&next).unwrap();
    assert_eq!(place.segment, Offset::new(2));
    assert_eq!(log.end_below(Offset::new(2)), ended, "what comes is behind it");
    assert_eq!(log.drop_ended(&ended), 1);
    log.write(&[Append { place, batches: &next }]).unwrap();
    assert_eq!(read_all(&log, 2), bytes_of(&[next]));
}

#[test]
fn segments_dropped_before_a_crash_are_found_again() {
    let disk = TestDisk::new();
    let log = open_empty(&store_on(&disk));
    append(&log, &singles(0, 40));
    log.drop_below(log.chunks()[3].base_offset);
    let log = reopen(&store_on(&disk), &log);
    assert!(matches!(log.remove_dropped(ByteCount::new(1)).unwrap(), Removal::Remaining(_)));
    until_done(|| log.remove_dropped(ByteCount::new(500)).unwrap());
    assert_eq!(logs(&disk).len(), log.chunks().len());
}

#[test]
fn a_log_is_removed_bit_by_bit_until_nothing_is_left() {
    let disk = TestDisk::new();
    let store = store_on(&disk);
    let log = open_empty(&store);
    append(&log, &singles(0, 40));
    let other = store.open(partition(1), Vec::new(), Offset::ZERO, settings()).unwrap();
    append(&other, &singles(0, 1));
    drop(log);
    // Each step by a process of its own, as after a crash.
    let steps =
        until_done(|| store_on(&disk).remove_some(partition(0), ByteCount::new(300)).unwrap());
    assert!(steps > 5);
    assert_eq!(store.list().unwrap(), [partition(1)]);
    assert_eq!(store.remove_some(partition(0), ByteCount::new(1)).unwrap(), Removal::Done);
    drop(other);
    until_done(|| store.remove_some(partition(1), ByteCount::mib(1)).unwrap());
    assert_eq!(disk.paths(), [Path::new("logs")]);
}

#[test]
fn a_removal_is_durable_after_the_next_sync() {
    let disk = TestDisk::new();
    let store = store_on(&disk);
    append(&open_empty(&store), &singles(0, 9));
    assert!(store.take_unsynced().run().is_empty());
    until_done(|| store.remove_some(partition(0), ByteCount::mib(1)).unwrap());
    let crash = crate::disk::Crash::DropAll;
    assert!(!logs(&disk.after(crash)).is_empty());
    assert!(store.take_unsynced().run().is_empty());
    assert!(disk.after(crash).paths().iter().all(|path| path == Path::new("logs")));
}

#[test]
fn nothing_is_cut_under_a_reader() {
    let folder = tempfile::tempdir().unwrap();
    let disk: Arc<dyn Disk> = Arc::new(RealDisk::open(folder.path()).unwrap());
    let store = SegmentStore::new(disk, options());
    let log = open_empty(&store);
    let batches = singles(0, 40);
    append(&log, &batches);
    assert!(store.take_unsynced().run().is_empty());
    let end = log.written_end();
    let held = log.read(Offset::ZERO, end, limit(500, Minimum::OneBatch)).unwrap();
    log.drop_below(end);
    let budget = ByteCount::mib(1);
    let Removal::Remaining(left) = log.remove_dropped(budget).unwrap() else {
        panic!("the first segment is being read")
    };
    assert!(left.get() >= held.size().get());
    drop(log);
    let removal = store.remove_some(partition(0), budget).unwrap();
    assert!(matches!(removal, Removal::Remaining(_)));
    let bytes = held.read_to_memory().unwrap();
    assert!(bytes_of(&batches).starts_with(&bytes));
    until_done(|| store.remove_some(partition(0), budget).unwrap());
    assert!(store.list().unwrap().is_empty());
}

#[test]
fn a_removal_of_files_that_no_row_names_is_made_durable_by_itself() {
    let disk = TestDisk::new();
    let store = store_on(&disk);
    append(&open_empty(&store), &singles(0, 9));
    assert!(store.take_unsynced().run().is_empty());
    until_done(|| store.remove_some(partition(0), ByteCount::mib(1)).unwrap());
    store.sync_removal(partition(0)).unwrap();
    let left = store_on(&disk.after(crate::disk::Crash::DropAll));
    assert!(left.list().unwrap().is_empty());
    store.sync_removal(partition(5)).unwrap();
}

#[test]
fn a_segment_whose_removal_began_is_opened_by_no_reader() {
    let disk = TestDisk::new();
    let store = store_on(&disk);
    let log = open_empty(&store);
    append(&log, &singles(0, 40));
    assert!(store.take_unsynced().run().is_empty());
    let removal = store.remove_some(partition(0), ByteCount::new(1)).unwrap();
    assert!(matches!(removal, Removal::Remaining(_)));
    // Who found the segment before would get bytes that are cut a moment later, or are gone.
    let refused = log.read(Offset::ZERO, log.written_end(), limit(5000, Minimum::OneBatch));
    assert_eq!(refused.unwrap_err().kind(), strandline_storage::ErrorKind::Missing);
    until_done(|| store.remove_some(partition(0), ByteCount::mib(1)).unwrap());
    let again = open_empty(&store);
    append(&again, &singles(0, 3));
    assert_eq!(find_offset(&again, 2).unwrap().base_offset, Offset::new(2));
}

#[test]
fn rescued_batches_go_in_steps_too() {
    let disk = TestDisk::new();
    let store = store_on(&disk);
    let mut file = store.begin_rescue(partition(0), Offset::new(7)).unwrap();
    file.add(&[1; 200]).unwrap();
    file.add(&[2; 100]).unwrap();
    file.sync().unwrap();
    assert!(store.take_unsynced().run().is_empty());
    let store = store_on(&disk.after(crate::disk::Crash::DropAll));
    for left in [180, 60] {
        let removal = store.remove_some(partition(0), ByteCount::new(120)).unwrap();
        assert_eq!(removal, Removal::Remaining(ByteCount::new(left)));
    }
    assert_eq!(store.remove_some(partition(0), ByteCount::new(120)).unwrap(), Removal::Done);
    assert_eq!(store.list().unwrap(), []);
}

/// Nobody closes a log here.
struct NoneClosed;

impl ClosedLogs for NoneClosed {
    fn list(&self) -> Result<Vec<PartitionId>, StorageError> {
        Ok(Vec::new())
    }

    fn sweep(&self, id: PartitionId, _: ByteCount) -> Result<Swept, StorageError> {
        panic!("{id} is open")
    }
}

#[test]
fn what_is_left_of_a_closed_log_goes_in_steps_and_nothing_else() {
    let disk = TestDisk::new();
    let store = store_on(&disk);
    let log = open_empty(&store);
    append(&log, &singles(0, 80));
    let before = log.chunks();
    log.drop_below(before[3].base_offset);
    let (facts, end) = (log.facts(), log.written_end());
    drop(log);
    let left = |facts, budget| {
        store.remove_leftovers(partition(0), facts, end, ByteCount::new(budget)).unwrap()
    };
    let dropped: ByteCount = before[..3].iter().map(|chunk| chunk.bytes).sum();
    assert_eq!(left(&facts, 100), Removal::Remaining(dropped - ByteCount::new(100)));
    until_done(|| left(&facts, 100));
    assert_eq!(logs(&disk).len(), facts.len());
    // Each of what is named is there, and is read.
    let again = store.open(partition(0), facts.clone(), end, settings()).unwrap();
    let from = before[3].base_offset.get();
    assert_eq!(read_all(&again, from), bytes_of(&singles(from, 80 - from)));
    drop(again);

    // Where one that is named is missing, all is evidence.
    let missing = disk.paths().into_iter().find(|path| path.ends_with(&before[4].name)).unwrap();
    disk.remove_file(&missing).unwrap();
    assert_eq!(left(&facts[1..], 1 << 20), Removal::Done);
    assert_eq!(logs(&disk).len(), facts.len() - 1);
    assert_eq!(left(&facts[2..], 1 << 20), Removal::Done);
    assert_eq!(logs(&disk).len(), facts.len() - 2);
}

#[test]
fn however_many_logs_wait_to_be_swept_each_is() {
    let disk = TestDisk::new();
    let store = store_on(&disk);
    let (sweeper, to_sweep) = Sweeper::new();
    let open = |index| {
        let log = store.open(partition(index), Vec::new(), Offset::ZERO, settings()).unwrap();
        append(&log, &singles(0, 1));
        assert_eq!(log.drop_below(Offset::new(1)), 1);
        Arc::new(log)
    };
    let dropped: Vec<_> = (0..1500).map(open).collect();
    for log in &dropped {
        sweeper.sweep(log);
    }
    let thread = std::thread::spawn(move || run(&to_sweep, &NoneClosed));
    let deadline = Instant::now() + Duration::from_secs(30);
    while !logs(&disk).is_empty() {
        assert!(Instant::now() < deadline, "{} files are left", logs(&disk).len());
        std::thread::sleep(Duration::from_millis(5));
    }
    sweeper.stop();
    thread.join().unwrap();
}
