use std::path::Path;

use super::*;
use crate::disk::RealDisk;

/// In a folder of the file system: whoever holds a part of the old file keeps it, and everybody else
/// finds the copy.
#[test]
fn a_replaced_segment_goes_on_in_the_copy() {
    let folder = tempfile::tempdir().unwrap();
    let disk: Arc<dyn Disk> = Arc::new(RealDisk::open(folder.path()).unwrap());
    let store = SegmentStore::new(disk, options());
    let log = open_empty(&store);
    append(&log, &singles(0, 4));
    let [believed] = log.facts()[..] else { panic!("{:?}", log.facts()) };
    // Written, and never believed.
    append(&log, &singles(4, 1));
    let held = log.read(Offset::ZERO, Offset::new(4), limit(1000, Minimum::OneBatch)).unwrap();
    store.replace(partition(0), &believed, |batch| batch.base_offset < Offset::new(4)).unwrap();
    assert_eq!(store.unsynced_files(), 0, "nobody needs what was unsynced of the old file");

    let log = store.open(partition(0), vec![believed], Offset::new(4), settings()).unwrap();
    append(&log, &singles(4, 2));
    assert_eq!(read_all(&log, 0), bytes_of(&singles(0, 6)));
    assert_eq!(held.read_to_memory().unwrap(), bytes_of(&singles(0, 4)));
    assert!(store.take_unsynced().run().is_empty());
    let names = std::fs::read_dir(folder.path().join(partition_folder())).unwrap();
    let copies = names.filter(|entry| {
        let name = entry.as_ref().unwrap().file_name();
        Path::new(&name).extension().is_some_and(|extension| extension == "new")
    });
    assert_eq!(copies.count(), 0);
}

#[test]
fn a_batch_that_does_not_belong_is_not_copied() {
    let disk = TestDisk::new();
    let store = store_on(&disk);
    let log = open_empty(&store);
    append(&log, &singles(0, 4));
    let before = disk.contents(Path::new(&partition_folder()).join("00000000000000000000.log"));
    let facts = log.facts()[0];
    let refused = store.replace(partition(0), &facts, |batch| batch.base_offset < Offset::new(2));
    assert_eq!(refused.unwrap_err().kind(), strandline_storage::ErrorKind::Corrupt);
    let longer = SegmentFacts { bytes: facts.bytes + 1, ..facts };
    store.replace(partition(0), &longer, |_| true).unwrap_err();
    let further = SegmentFacts { next_offset: Offset::new(9), ..facts };
    let refused = store.replace(partition(0), &further, |_| true);
    assert_eq!(refused.unwrap_err().kind(), strandline_storage::ErrorKind::Corrupt);
    let after = disk.contents(Path::new(&partition_folder()).join("00000000000000000000.log"));
    assert_eq!(before, after);
    // A later try begins anew.
    store.replace(partition(0), &facts, |_| true).unwrap();
    assert_eq!(read_all(&reopen(&store, &log), 0), bytes_of(&singles(0, 4)));
}

fn partition_folder() -> String {
    format!("logs/{}/0", partition(0).topic_id)
}
