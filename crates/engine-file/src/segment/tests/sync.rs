use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::disk::{Crash, Fault, Persisted};
use crate::segment::DurableWriteError;

#[test]
fn what_was_written_before_is_durable_after_the_sync() {
    let disk = TestDisk::new();
    let store = store_on(&disk);
    let log = open_empty(&store);
    append(&log, &singles(0, 30));
    assert!(store.unsynced_files() > 1);
    let believed = log.facts();
    let work = store.take_unsynced();
    assert_eq!(store.unsynced_files(), 0);
    append(&log, &singles(30, 1));
    assert_eq!(store.unsynced_files(), 1, "what comes later is for the next sync");
    assert!(work.run().is_empty());

    let store = store_on(&disk.after(Crash::DropAll));
    let log = store.open(partition(0), believed, Offset::new(30), settings()).unwrap();
    assert_eq!(read_all(&log, 0), bytes_of(&singles(0, 30)));
}

#[test]
fn many_files_are_synced_at_once_and_each_is_counted() {
    let disk = TestDisk::new();
    let store = store_on(&disk);
    for index in 0..5 {
        let log = store.open(partition(index), Vec::new(), Offset::ZERO, settings()).unwrap();
        append(&log, &singles(0, 1));
    }
    disk.inject("/1/", 0, Fault::Sync { persisted: Persisted::Nothing });
    let work = store.take_unsynced();
    let (there, counted) = (work.len(), AtomicUsize::new(0));
    assert!(there > 5, "files and their folders");
    let failures = work.run_at_once(|| {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    assert_eq!(counted.into_inner(), there, "the one that failed, too");
    assert_eq!(failures.len(), 1);
}

#[test]
fn a_failed_sync_names_its_segment_and_is_not_repeated() {
    let disk = TestDisk::new();
    let store = store_on(&disk);
    let log = open_empty(&store);
    let other = store.open(partition(1), Vec::new(), Offset::ZERO, settings()).unwrap();
    append(&log, &singles(0, 2));
    append(&other, &singles(0, 2));
    disk.inject("/1/", 0, Fault::Sync { persisted: Persisted::Nothing });
    let failures = store.take_unsynced().run();
    let segments: Vec<_> = failures.iter().map(|failure| failure.segment).collect();
    assert_eq!(segments, [Some((partition(1), Offset::ZERO))]);
    assert!(store.take_unsynced().run().is_empty());
}

#[test]
fn a_folder_that_is_not_synced_is_reported() {
    let disk = TestDisk::new();
    let store = store_on(&disk);
    append(&open_empty(&store), &singles(0, 1));
    disk.inject("/0", 0, Fault::SyncDir);
    let failures = store.take_unsynced().run();
    let segments: Vec<_> = failures.iter().map(|failure| failure.segment).collect();
    assert_eq!(segments, [None]);

    // Whoever comes later is told too, of any folder: an append must not count on names that are not
    // there because somebody else has met the error.
    let other = store.open(partition(1), Vec::new(), Offset::ZERO, settings()).unwrap();
    let batches = &singles(0, 1)[0];
    let place = other.place(batches).unwrap();
    let failed = other.write_durably(&[Append { place, batches }]).unwrap_err();
    assert!(matches!(failed, DurableWriteError::Names(_)), "{failed:?}");
    store.sync_removal(partition(0)).unwrap_err();
}

#[test]
fn open_files_are_few_but_unsynced_ones_stay() {
    let disk = TestDisk::new();
    let store = store_on(&disk);
    let logs: Vec<_> = (0..20)
        .map(|index| store.open(partition(index), Vec::new(), Offset::ZERO, settings()).unwrap())
        .collect();
    for log in &logs {
        append(log, &singles(0, 2));
    }
    assert_eq!(store.files.open_count(), 20, "unsynced files are not closed");
    assert!(store.take_unsynced().run().is_empty());
    for log in &logs {
        read_all(log, 0);
    }
    assert_eq!(store.files.open_count(), 20, "nothing was opened, so nothing was closed");
    let cold = store.open(partition(99), Vec::new(), Offset::ZERO, settings()).unwrap();
    append(&cold, &singles(0, 1));
    assert_eq!(store.files.open_count(), 4);
    for log in &logs {
        assert_eq!(read_all(log, 0), bytes_of(&singles(0, 2)));
        assert!(store.files.open_count() <= 4 + 1);
    }
}

#[test]
fn a_region_keeps_its_file_open_and_known() {
    let folder = tempfile::tempdir().unwrap();
    let disk: Arc<dyn Disk> = Arc::new(crate::disk::RealDisk::open(folder.path()).unwrap());
    let store = SegmentStore::new(disk, options());
    let held: Vec<_> = (0..10)
        .map(|index| {
            let log = store.open(partition(index), Vec::new(), Offset::ZERO, settings()).unwrap();
            append(&log, &singles(0, 2));
            assert!(store.take_unsynced().run().is_empty());
            log.read(Offset::ZERO, Offset::new(2), limit(1000, Minimum::OneBatch)).unwrap()
        })
        .collect();
    assert_eq!(store.files.open_count(), 10);
    drop(held);
    assert!(Path::new(folder.path()).join("logs").is_dir());
    let log = store.open(partition(10), Vec::new(), Offset::ZERO, settings()).unwrap();
    append(&log, &singles(0, 1));
    assert_eq!(store.files.open_count(), 4);
}
