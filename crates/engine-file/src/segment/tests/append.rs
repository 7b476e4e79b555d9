use std::io;

use strandline_storage::{ChunkState, ErrorKind};

use super::*;
use crate::disk::Fault;
use crate::segment::Placement;

#[test]
fn nothing_exists_before_the_first_append() {
    let disk = TestDisk::new();
    let store = store_on(&disk);
    let log = open_empty(&store);
    assert!(log.chunks().is_empty());
    assert_eq!(disk.paths(), [] as [&std::path::Path; 0]);
    assert!(store.list().unwrap().is_empty());

    append(&log, &singles(0, 1));
    let names: Vec<_> = disk.paths().iter().map(|path| path.display().to_string()).collect();
    let expected = [
        "logs",
        "logs/BwcHBwcHBwcHBwcHBwcHBw",
        "logs/BwcHBwcHBwcHBwcHBwcHBw/0",
        "logs/BwcHBwcHBwcHBwcHBwcHBw/0/00000000000000000000.log",
    ];
    assert_eq!(names, expected);
    assert_eq!(store.list().unwrap(), [partition(0)]);
}

#[test]
fn a_file_holds_the_batches_byte_for_byte() {
    let disk = TestDisk::new();
    let log = open_empty(&store_on(&disk));
    let batches = singles(0, 5);
    append(&log, &batches);
    let file = disk.contents("logs/BwcHBwcHBwcHBwcHBwcHBw/0/00000000000000000000.log").unwrap();
    assert_eq!(file, bytes_of(&batches));
}

#[test]
fn one_segment_grows_and_a_full_one_is_followed_by_another() {
    let log = open_empty(&store_on(&TestDisk::new()));
    append(&log, &singles(0, 30));
    let chunks = log.chunks();
    assert!(chunks.len() > 2);
    for pair in chunks.windows(2) {
        assert_eq!(pair[0].state, ChunkState::Sealed);
        assert_eq!(pair[0].next_offset, pair[1].base_offset);
        assert!(pair[0].bytes.get() <= 1000);
    }
    let last = chunks.last().unwrap();
    assert_eq!(last.state, ChunkState::Active);
    assert_eq!(last.next_offset, Offset::new(30));
    assert_eq!(last.last_appended_at, Timestamp::from_millis(29));
    assert_eq!(chunks[0].name, "00000000000000000000.log");
    assert_eq!(chunks[0].first_appended_at, Timestamp::from_millis(0));
}

#[test]
fn many_placements_are_written_at_once_across_a_roll() {
    let log = open_empty(&store_on(&TestDisk::new()));
    let batches = singles(0, 30);
    let places: Vec<Placement> = batches.iter().map(|batch| log.place(batch).unwrap()).collect();
    assert!(places.iter().filter(|place| place.position == 0).count() > 2);
    let appends =
        places.iter().zip(&batches).map(|(place, batches)| Append { place: *place, batches });
    assert_eq!(log.written_end(), Offset::ZERO, "placed is not written");
    log.write(&appends.collect::<Vec<_>>()).unwrap();
    assert_eq!(read_all(&log, 0), bytes_of(&batches));
}

#[test]
fn a_roll_seals_now_or_when_what_was_placed_is_written() {
    let log = open_empty(&store_on(&TestDisk::new()));
    let batches = singles(0, 4);
    log.roll();
    append(&log, &batches[..1]);
    log.roll();
    assert_eq!(log.chunks()[0].state, ChunkState::Sealed);

    let place = log.place(&batches[1]).unwrap();
    assert_eq!(place, Placement { segment: Offset::new(1), position: 0 });
    log.roll();
    log.write(&[Append { place, batches: &batches[1] }]).unwrap();
    append(&log, &batches[2..]);
    let sizes: Vec<_> = log.chunks().iter().map(|chunk| (chunk.state, chunk.base_offset)).collect();
    let expected = [
        (ChunkState::Sealed, Offset::new(0)),
        (ChunkState::Sealed, Offset::new(1)),
        (ChunkState::Active, Offset::new(2)),
    ];
    assert_eq!(sizes, expected);
    assert_eq!(read_all(&log, 0), bytes_of(&batches));
}

#[test]
fn a_segment_is_rolled_by_age_at_the_next_append() {
    let log = open_empty(&store_on(&TestDisk::new()));
    log.configure(LogSettings { segment_age: Duration::from_millis(10), ..settings() });
    append(&log, &[batch(0, 1, 5, 100), batch(1, 1, 5, 109), batch(2, 1, 5, 110)]);
    let bases: Vec<_> = log.chunks().iter().map(|chunk| chunk.base_offset.get()).collect();
    assert_eq!(bases, [0, 2]);
}

#[test]
fn after_a_failed_write_the_log_is_dead_and_shows_nothing_of_it() {
    let disk = TestDisk::new();
    let store = store_on(&disk);
    let log = open_empty(&store);
    append(&log, &singles(0, 2));
    disk.inject(".log", 0, Fault::Write { kind: io::ErrorKind::StorageFull, written: 9 });
    let next = batch(2, 1, 30, 2);
    let place = log.place(&next).unwrap();
    let error = log.write(&[Append { place, batches: &next }]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Full);
    assert_eq!(log.written_end(), Offset::new(2));
    assert_eq!(log.place(&batch(3, 1, 30, 3)).unwrap_err().kind(), ErrorKind::Closed);
    assert_eq!(
        log.write(&[Append { place, batches: &next }]).unwrap_err().kind(),
        ErrorKind::Closed
    );
    assert_eq!(read_all(&log, 0), bytes_of(&singles(0, 2)));

    let log = reopen(&store, &log);
    append(&log, &singles(2, 3));
    assert_eq!(read_all(&log, 0), bytes_of(&singles(0, 5)));
}

#[test]
fn a_write_that_leaves_a_hole_is_refused() {
    let log = open_empty(&store_on(&TestDisk::new()));
    append(&log, &singles(0, 1));
    let size = singles(0, 1)[0].size().get();
    for (segment, position, at) in [(0, size + 1, 1), (0, size, 2), (1, 5, 1), (0, 0, 0), (2, 0, 1)]
    {
        let log = open_empty(&store_on(&TestDisk::new()));
        append(&log, &singles(0, 1));
        let place = Placement { segment: Offset::new(segment), position };
        let batches = batch(at, 1, 30, 0);
        let error = log.write(&[Append { place, batches: &batches }]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{place:?} {at}");
    }
}

#[test]
fn readers_follow_while_the_log_grows_and_loses_its_oldest_segments() {
    let folder = tempfile::tempdir().unwrap();
    let disk: Arc<dyn Disk> = Arc::new(crate::disk::RealDisk::open(folder.path()).unwrap());
    let store = SegmentStore::new(disk, options());
    let log = open_empty(&store);
    let count = 600;
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut from = 0;
                while from < count {
                    let upto = log.written_end();
                    let read = log.read(Offset::new(from), upto, limit(700, Minimum::OneBatch));
                    // Dropped between two reads: go on at the oldest that is left.
                    let bytes = match read.map(|read| read.read_to_memory().unwrap()) {
                        Ok(bytes) => bytes,
                        Err(error) => {
                            assert_eq!(error.kind(), ErrorKind::Missing, "{error:?}");
                            continue;
                        }
                    };
                    for batch in strandline_records::batches(&bytes) {
                        let batch = batch.unwrap();
                        batch.check_crc().unwrap();
                        let base = batch.base_offset().unwrap().get();
                        assert!(base >= from, "offsets never go back");
                        from = base + 1;
                    }
                }
            });
        }
        for at in 0..count {
            append(&log, &singles(at, 1));
            if at % 50 == 49 {
                log.drop_below(Offset::new(at - 40));
                log.remove_dropped(ByteCount::mib(1)).unwrap();
                assert!(store.take_unsynced().run().is_empty());
            }
        }
    });
    assert_eq!(log.written_end(), Offset::new(count));
}

#[test]
fn a_reader_at_the_end_needs_no_disk() {
    let disk = TestDisk::new();
    let log = open_empty(&store_on(&disk));
    log.configure(LogSettings { segment_bytes: ByteCount::mib(1), ..settings() });
    append(&log, &singles(0, 100));
    let end = log.written_end();
    disk.inject("", 0, Fault::Open { kind: io::ErrorKind::PermissionDenied });
    for from in 80..100 {
        let read = log.read_at_once(Offset::new(from), end, limit(1 << 20, Minimum::OneBatch));
        let bytes = read.expect("memory knows the tail").read_to_memory().unwrap();
        assert_eq!(bytes, bytes_of(&singles(from, 100 - from)));
        let one = log.read_at_once(Offset::new(from), end, limit(1, Minimum::OneBatch)).unwrap();
        assert_eq!(one.read_to_memory().unwrap(), bytes_of(&singles(from, 1)));
    }
    disk.clear_faults();
    // A reader that comes from far behind is remembered where it stopped.
    let first = log.read(Offset::ZERO, end, limit(300, Minimum::OneBatch)).unwrap();
    let bytes = first.read_to_memory().unwrap();
    let next = strandline_records::batches(&bytes).last().unwrap().unwrap().next_offset().unwrap();
    assert!(log.read_at_once(next, end, limit(1 << 20, Minimum::OneBatch)).is_some());
    assert!(log.read_at_once(next.next(), end, limit(1 << 20, Minimum::OneBatch)).is_none());
}

#[test]
fn what_is_appended_during_a_read_is_no_part_of_it() {
    let disk = TestDisk::new();
    let store = store_on(&disk);
    let pairs = |at: i64| [batch(at, 2, 30, at), batch(at + 2, 2, 30, at)];
    let first = open_empty(&store);
    append(&first, &pairs(0));

    // Known by its facts alone: the read must walk, and the segment grows while it does.
    let log = Arc::new(reopen(&store, &first));
    let grows = Arc::clone(&log);
    disk.during_next_read(move || append(&grows, &pairs(4)));
    let read = log.read(Offset::ZERO, Offset::new(3), limit(1 << 20, Minimum::Nothing)).unwrap();
    assert_eq!(read.read_to_memory().unwrap(), bytes_of(&pairs(0)));
    assert_eq!(log.written_end(), Offset::new(8));
}
