use super::*;

fn path(text: &str) -> &Path {
    Path::new(text)
}

fn new_file(disk: &TestDisk, name: &str) -> Arc<dyn DiskFile> {
    disk.open(path(name), OpenMode::New).unwrap()
}

/// A disk with one durable, empty file `f`.
fn with_durable_file() -> (TestDisk, Arc<dyn DiskFile>) {
    let disk = TestDisk::new();
    let file = new_file(&disk, "f");
    disk.sync_dir(path("")).unwrap();
    (disk, file)
}

const TORN: Range<u64> = 0..64;

#[test]
fn an_unsynced_write_is_kept_dropped_or_torn_by_sectors() {
    let (disk, file) = with_durable_file();
    file.write_at(0, &[&[1; 4096]]).unwrap();
    file.sync_data().unwrap();
    file.write_at(256, &[&[2; 2048]]).unwrap();

    let mut all = vec![1; 4096];
    all[256..2304].fill(2);
    assert_eq!(disk.after(Crash::KeepAll).contents("f").unwrap(), all);
    assert_eq!(disk.after(Crash::DropAll).contents("f").unwrap(), vec![1; 4096]);

    let mut kinds = std::collections::BTreeSet::new();
    for seed in TORN {
        let torn = disk.after(Crash::Torn(seed)).contents("f").unwrap();
        assert_eq!(torn.len(), 4096);
        for (sector, (torn, written)) in torn.chunks(512).zip(all.chunks(512)).enumerate() {
            assert!(torn == written || torn == [1; 512], "seed {seed}, sector {sector}");
        }
        kinds.insert(torn);
    }
    assert!(kinds.len() > 16, "seeds tear in different places");
}

#[test]
fn a_torn_growth_leaves_zeros_and_any_length() {
    let (disk, file) = with_durable_file();
    file.write_at(0, &[&[7; 1536]]).unwrap();
    let mut lengths = std::collections::BTreeSet::new();
    for seed in TORN {
        let torn = disk.after(Crash::Torn(seed)).contents("f").unwrap();
        for sector in torn.chunks(512) {
            assert!(sector == [7; 512] || sector == [0; 512], "seed {seed}");
        }
        lengths.insert(torn.len());
    }
    assert_eq!(lengths.into_iter().collect::<Vec<_>>(), [0, 512, 1024, 1536]);
}

#[test]
fn a_name_is_durable_only_after_its_folder_was_synced() {
    let disk = TestDisk::new();
    disk.create_dir(path("d")).unwrap();
    let file = new_file(&disk, "d/a");
    file.write_at(0, &[b"x"]).unwrap();
    file.sync_data().unwrap();
    let names = |crash| disk.after(crash).paths();
    assert_eq!(names(Crash::KeepAll), [path("d"), path("d/a")]);
    assert!(names(Crash::DropAll).is_empty());

    disk.sync_dir(path("d")).unwrap();
    assert!(names(Crash::DropAll).is_empty(), "the folder itself has no durable name yet");
    disk.sync_dir(path("")).unwrap();
    assert_eq!(names(Crash::DropAll), [path("d"), path("d/a")]);

    disk.rename(path("d/a"), path("d/b")).unwrap();
    assert_eq!(names(Crash::DropAll), [path("d"), path("d/a")]);
    for seed in TORN {
        let left = names(Crash::Torn(seed));
        assert!(left == [path("d"), path("d/a")] || left == [path("d"), path("d/b")]);
    }
    disk.sync_dir(path("d")).unwrap();
    assert_eq!(names(Crash::DropAll), [path("d"), path("d/b")]);
    assert_eq!(disk.after(Crash::DropAll).contents("d/b").unwrap(), b"x");

    disk.remove_file(path("d/b")).unwrap();
    assert_eq!(names(Crash::DropAll), [path("d"), path("d/b")]);
    disk.sync_dir(path("d")).unwrap();
    assert_eq!(names(Crash::DropAll), [path("d")]);
}

#[test]
fn a_rename_between_folders_waits_for_both() {
    let disk = TestDisk::new();
    disk.create_dir(path("d")).unwrap();
    new_file(&disk, "a");
    disk.sync_dir(path("")).unwrap();
    disk.rename(path("a"), path("d/a")).unwrap();
    disk.sync_dir(path("d")).unwrap();
    assert_eq!(disk.after(Crash::DropAll).paths(), [path("a"), path("d")]);
    disk.sync_dir(path("")).unwrap();
    assert_eq!(disk.after(Crash::DropAll).paths(), [path("d"), path("d/a")]);
}

#[test]
fn after_a_failed_sync_bytes_read_well_but_no_later_sync_saves_them() {
    let (disk, file) = with_durable_file();
    file.write_at(0, &[&[1; 1024]]).unwrap();
    file.sync_data().unwrap();
    file.write_at(0, &[&[2; 512]]).unwrap();
    disk.inject("f", 0, Fault::Sync { persisted: Persisted::Nothing });
    file.sync_data().unwrap_err();
    file.write_at(512, &[&[3; 512]]).unwrap();
    assert!(file.sync_data().is_err(), "whoever holds the file hears of it");
    disk.open(path("f"), OpenMode::Existing).unwrap().sync_data().unwrap();

    let seen = [[2; 512], [3; 512]].concat();
    let saved = [[1; 512], [3; 512]].concat();
    assert_eq!(disk.contents("f").unwrap(), seen);
    for crash in [Crash::KeepAll, Crash::DropAll, Crash::Torn(1)] {
        assert_eq!(disk.after(crash).contents("f").unwrap(), saved);
    }
    // The pages count as clean: once the system forgets them, what was lost shows.
    file.drop_cache(0, 1024).unwrap();
    assert_eq!(disk.contents("f").unwrap(), saved);
}

#[test]
fn forgetting_pages_keeps_dirty_ones() {
    let (disk, file) = with_durable_file();
    file.write_at(0, &[b"synced"]).unwrap();
    file.sync_data().unwrap();
    file.write_at(2, &[b"DIRTY"]).unwrap();
    file.drop_cache(0, 100).unwrap();
    assert_eq!(disk.contents("f").unwrap(), b"syDIRTY");
}

#[test]
fn an_unsynced_cut_comes_back() {
    let (disk, file) = with_durable_file();
    file.write_at(0, &[b"abcdef"]).unwrap();
    file.sync_data().unwrap();
    file.set_len(2).unwrap();
    assert_eq!(disk.after(Crash::KeepAll).contents("f").unwrap(), b"ab");
    assert_eq!(disk.after(Crash::DropAll).contents("f").unwrap(), b"abcdef");
    file.sync_data().unwrap();
    assert_eq!(disk.after(Crash::DropAll).contents("f").unwrap(), b"ab");
}

#[test]
fn a_fault_waits_for_its_file_and_its_turn_and_happens_once() {
    let (disk, file) = with_durable_file();
    let other = new_file(&disk, "g");
    disk.inject("f", 1, Fault::Write { kind: io::ErrorKind::StorageFull, written: 3 });
    other.write_at(0, &[b"other"]).unwrap();
    file.write_at(0, &[b"first"]).unwrap();
    let error = file.write_at(5, &[b"sec", b"ond"]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    assert_eq!(disk.contents("f").unwrap(), b"firstsec", "a short write stays");
    file.write_at(5, &[b"second"]).unwrap();
    assert_eq!(disk.contents("f").unwrap(), b"firstsecond");
}

#[test]
fn a_full_disk_takes_what_fits_and_overwrites_still() {
    let (disk, file) = with_durable_file();
    disk.set_capacity(Some(ByteCount::new(8)));
    file.write_at(0, &[b"12345"]).unwrap();
    let error = file.write_at(5, &[b"67890"]).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    assert_eq!(disk.contents("f").unwrap(), b"12345678");
    assert_eq!(disk.free_space().unwrap(), ByteCount::ZERO);
    file.write_at(2, &[b"ab"]).unwrap();
    disk.remove_file(path("f")).unwrap();
    assert_eq!(disk.free_space().unwrap(), ByteCount::new(8));
}

#[test]
fn a_replay_shows_every_moment() {
    let (disk, file) = with_durable_file();
    file.write_at(0, &[b"a"]).unwrap();
    file.sync_data().unwrap();
    file.write_at(1, &[b"b"]).unwrap();
    let mut replay = Replay::of(&disk);
    let mut seen = Vec::new();
    loop {
        let kept = replay.after(Crash::KeepAll).contents("f");
        let durable = replay.after(Crash::DropAll).contents("f");
        seen.push((kept, durable));
        if replay.step().is_none() {
            break;
        }
    }
    let some = |text: &str| Some(text.as_bytes().to_vec());
    let expected = [
        (None, None),
        (some(""), None),
        (some(""), some("")),
        (some("a"), some("")),
        (some("a"), some("a")),
        (some("ab"), some("a")),
    ];
    assert_eq!(seen, expected);
    assert_eq!(replay.done(), disk.operations());
}

#[test]
fn an_image_is_a_disk_of_its_own_that_can_be_cut_again() {
    let (disk, file) = with_durable_file();
    file.write_at(0, &[b"abc"]).unwrap();
    let image = disk.after(Crash::KeepAll);
    let reopened = image.open(path("f"), OpenMode::Existing).unwrap();
    reopened.write_at(0, &[b"X"]).unwrap();
    assert_eq!(image.contents("f").unwrap(), b"Xbc");
    assert_eq!(image.after(Crash::DropAll).contents("f").unwrap(), b"abc");
    assert_eq!(disk.contents("f").unwrap(), b"abc");
    assert_eq!(Replay::of(&image).after(Crash::KeepAll).contents("f").unwrap(), b"abc");
}

#[test]
fn without_power_nothing_changes() {
    let (disk, file) = with_durable_file();
    disk.power_off_after(disk.operations() + 1);
    file.write_at(0, &[b"a"]).unwrap();
    file.write_at(1, &[b"b"]).unwrap_err();
    file.sync_data().unwrap_err();
    disk.create_dir(path("d")).unwrap_err();
    assert_eq!(disk.contents("f").unwrap(), b"a");
    assert_eq!(disk.after(Crash::DropAll).contents("f").unwrap(), b"");
}

#[test]
fn the_disk_has_one_owner() {
    let disk = TestDisk::new();
    let lock = disk.lock().unwrap();
    assert_eq!(disk.lock().unwrap_err().kind(), io::ErrorKind::WouldBlock);
    assert!(disk.after(Crash::DropAll).lock().is_ok(), "a crash frees the lock");
    drop(lock);
    disk.lock().unwrap();
}
