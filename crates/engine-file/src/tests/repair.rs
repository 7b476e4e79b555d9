//! Damaged logs that serve again: what is whole is kept where it was, and what is lost is said.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use strandline_model::{ByteCount, Offset, Timestamp};
use strandline_records::batches;
use strandline_storage::testkit::{Appended, Subject, TestBatch, partition, settings};
use strandline_storage::{ErrorKind, LogSettings};

use super::Running;
use super::damage::{Folder, HARMS, config, folder, path_of};
use crate::disk::{Crash, Disk, Fault, OpenMode, Persisted, Replay, TestDisk};
use crate::{Inspection, LostRange, Repair};

const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

async fn repair(running: &Running) -> Option<Repair> {
    running.file.repair(partition(0), NOW).await.unwrap()
}

/// What a log holds: by offset, each batch with records; and up to where batches reach.
async fn held(subject: &Subject) -> (BTreeMap<Offset, Vec<u8>>, Offset) {
    let bytes = subject.read_all(subject.log.bounds().log_start).await;
    let mut held = BTreeMap::new();
    let mut end = Offset::ZERO;
    for batch in batches(&bytes).map(Result::unwrap) {
        batch.check_crc().unwrap();
        let base = batch.base_offset().unwrap();
        assert!(base >= end, "offsets rise");
        end = batch.next_offset().unwrap();
        if batch.records_count() > 0 {
            held.insert(base, batch.bytes().to_vec());
        }
    }
    (held, end)
}

/// The log has what was appended, byte for byte, but for what `lost` names.
async fn assert_serves(subject: &Subject, all: &[Appended], lost: &[LostRange]) {
    let (held, end) = held(subject).await;
    let bounds = subject.log.bounds();
    assert_eq!(bounds.durable_end, all.last().unwrap().offsets.end, "no offset is given again");
    assert_eq!(end, bounds.durable_end, "readers get to the end");
    let is_lost = |one: &Appended| {
        lost.iter().any(|lost| {
            lost.offsets.start <= one.offsets.start.max(bounds.log_start)
                && one.offsets.end <= lost.offsets.end
        })
    };
    let kept = all.iter().filter(|one| one.offsets.end > bounds.log_start && !is_lost(one));
    let kept: BTreeMap<_, _> = kept.map(|one| (one.offsets.start, one.bytes.to_vec())).collect();
    assert!(held == kept, "{:?} instead of {:?}", held.keys(), kept.keys());
}

/// The offsets that a report calls lost, put together.
fn lost_offsets(repair: &Repair) -> Vec<i64> {
    let mut all = Vec::new();
    for lost in &repair.lost {
        all.extend(lost.offsets.start.get()..lost.offsets.end.get());
    }
    all.sort_unstable();
    let count = all.len();
    all.dedup();
    assert_eq!(all.len(), count, "each once: {:?}", repair.lost);
    all
}

/// A log that a start finds damaged, in each way, serves again what is whole.
#[tokio::test]
async fn a_damaged_log_serves_again_what_is_whole_of_it() {
    // Batches of before the checkpoint that each harm takes; of later ones it takes the large one.
    let first_lost = [0, 1, 3, 3, 0, 3];
    for ((reason, harm, _), first_lost) in HARMS.into_iter().zip(first_lost) {
        let Folder { disk, before, since, other } = folder().await;
        let large = since.iter().find(|one| one.bytes.len() > 1000).unwrap().clone();
        harm(&disk);
        let disk = Running::with(&disk, config()).close().await;

        let planned = {
            let inspection = Inspection::open(Arc::new(disk.clone())).unwrap();
            inspection.plan_repair(partition(0)).unwrap().unwrap()
        };
        let running = Running::with(&disk, config());
        let repaired = repair(&running).await.unwrap();
        assert_eq!(repaired, planned, "{reason}: a look tells what is done");
        assert!(repaired.reason.as_ref().unwrap().contains(reason), "{repaired:?}");
        assert_eq!(repair(&running).await, None, "{reason}: once");

        let all: Vec<_> = before.iter().chain(&since).cloned().collect();
        let gone = before[first_lost..].iter().chain([&large]);
        let gone: Vec<i64> =
            gone.flat_map(|one| one.offsets.start.get()..one.offsets.end.get()).collect();
        assert_eq!(lost_offsets(&repaired), gone, "{reason}: {:?}", repaired.lost);
        assert_eq!(repaired.put_back_batches, since.len() as u64 - 1);
        assert_eq!(repaired.kept_batches, (all.len() - 1 - (3 - first_lost)) as u64);
        assert_eq!(repaired.end, all.last().unwrap().offsets.end);

        let subject = running.open(0).await;
        assert_serves(&subject, &all, &repaired.lost).await;
        assert_eq!(path_of(&disk, ".rescued"), None);
        let next = subject.append(TestBatch::of(2)).await;
        assert_eq!(next.offsets.start, repaired.end);
        let all: Vec<_> = all.into_iter().chain([next]).collect();
        drop(subject);
        running.open(1).await.assert_holds(&other).await;
        for crash in [Crash::DropAll, Crash::Torn(7)] {
            let again = Running::with(&disk.after(crash), config());
            assert_eq!(again.report.damaged, [], "{reason}");
            assert_serves(&again.open(0).await, &all, &repaired.lost).await;
        }
        let disk = running.close().await;
        let inspection = Inspection::open(Arc::new(disk.clone())).unwrap();
        assert_eq!(inspection.verify(partition(0)).findings, [], "{reason}");
        assert_eq!(inspection.plan_repair(partition(0)).unwrap(), None, "{reason}");
    }
}

/// The end of the log is gone, and nobody gives its offsets again.
#[tokio::test]
async fn a_lost_end_is_spanned_by_a_batch_without_records() {
    let disk = TestDisk::new();
    let running = Running::with(&disk, config());
    let subject = running.open(0).await;
    let mut all = subject.append_some(2).await;
    subject.log.roll().await.unwrap();
    all.extend(subject.append_some(3).await);
    drop(subject);
    let disk = running.close().await;
    disk.remove_file(&path_of(&disk, "/0/00000000000000000003.log").unwrap()).unwrap();
    let running = Running::with(&disk, config());
    let repaired = repair(&running).await.unwrap();
    assert_eq!(lost_offsets(&repaired), (3..9).collect::<Vec<_>>());
    let bytes: usize = all[2..].iter().map(|one| one.bytes.len()).sum();
    assert_eq!(repaired.lost[0].bytes, bytes as u64);
    assert_eq!((repaired.reason, repaired.put_back_batches), (None, 0));
    let subject = running.open(0).await;
    assert_serves(&subject, &all, &repaired.lost).await;
    all.push(subject.append(TestBatch::of(1)).await);
    assert_serves(&subject, &all, &repaired.lost).await;

    // All of it is gone.
    drop(subject);
    let disk = running.close().await;
    for path in disk.paths() {
        if path.to_string_lossy().contains("/0/") {
            disk.remove_file(&path).unwrap();
        }
    }
    let running = Running::with(&disk, config());
    let repaired = repair(&running).await.unwrap();
    assert_eq!(lost_offsets(&repaired), (0..10).collect::<Vec<_>>());
    let subject = running.open(0).await;
    assert_serves(&subject, &all, &repaired.lost).await;
    assert_eq!(subject.append(TestBatch::of(1)).await.offsets.start, Offset::new(10));
}

#[tokio::test]
async fn a_whole_log_is_left_alone() {
    let Folder { disk, .. } = folder().await;
    let running = Running::with(&disk, config());
    let before = disk.operations();
    assert_eq!(repair(&running).await, None);
    assert_eq!(running.file.repair(partition(7), NOW).await.unwrap(), None, "of none, nothing");
    assert_eq!(disk.operations(), before);
    let open = running.open(0).await;
    let refused = running.file.repair(partition(0), NOW).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Invalid);
    drop(open);
}

/// A full disk refuses, and the log is as it was.
#[tokio::test]
async fn a_repair_without_room_changes_nothing() {
    let Folder { disk, .. } = folder().await;
    HARMS[2].1(&disk);
    let disk = Running::with(&disk, config()).close().await;
    let running = Running::with(&disk, config());
    let before = disk.paths();
    disk.set_capacity(Some(ByteCount::new(1)));
    let refused = running.file.repair(partition(0), NOW).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Full);
    assert_eq!(disk.paths(), before);
    disk.set_capacity(None);
    assert!(repair(&running).await.is_some());
}

/// Without a snapshot that has the repair, a start finds it in the journal, and what was appended since.
#[tokio::test]
async fn what_is_appended_after_a_repair_whose_checkpoint_failed_is_kept() {
    for harm in [HARMS[0], HARMS[2], HARMS[4]] {
        let Folder { disk, before, since, .. } = folder().await;
        harm.1(&disk);
        let disk = Running::with(&disk, config()).close().await;
        let planned = {
            let inspection = Inspection::open(Arc::new(disk.clone())).unwrap();
            inspection.plan_repair(partition(0)).unwrap().unwrap().lost
        };
        let running = Running::with(&disk, config());
        for _ in 0..50 {
            disk.inject("snapshot.new", 0, Fault::Sync { persisted: Persisted::Nothing });
        }

        running.file.repair(partition(0), NOW).await.unwrap_err();
        let subject = running.open(0).await;
        let mut all: Vec<_> = before.into_iter().chain(since).collect();
        all.extend(subject.append_some(3).await);
        assert_serves(&subject, &all, &planned).await;
        for crash in [Crash::KeepAll, Crash::DropAll] {
            let again = Running::with(&disk.after(crash), config());
            assert_eq!(again.report.damaged, []);
            assert_serves(&again.open(0).await, &all, &planned).await;
        }
    }
}

/// Cut after each operation: damaged as before, or repaired.
#[tokio::test]
async fn a_crash_during_a_repair_leaves_the_log_as_it_was_or_repaired() {
    for harm in [HARMS[0], HARMS[2], HARMS[4]] {
        let Folder { disk, before, since, other } = folder().await;
        harm.1(&disk);
        let disk = Running::with(&disk, config()).close().await.after(Crash::KeepAll);
        let all: Vec<_> = before.into_iter().chain(since).collect();
        let running = Running::with(&disk, config());
        let repaired = repair(&running).await.unwrap();
        drop(running);
        let (mut closed, mut open) = (0, 0);
        let mut replay = Replay::of(&disk);
        while replay.step().is_some() {
            let seed = replay.done() as u64;
            for image in [
                replay.after(Crash::DropAll),
                replay.after(Crash::Torn(seed)),
                replay.after_death(),
            ] {
                let running = Running::with(&image, config());
                if running.report.damaged.is_empty() {
                    open += 1;
                    assert_eq!(repair(&running).await, None);
                } else {
                    closed += 1;
                    assert_eq!(repair(&running).await.as_ref(), Some(&repaired));
                }
                assert_serves(&running.open(0).await, &all, &repaired.lost).await;
                running.open(1).await.assert_holds(&other).await;
                assert_eq!(path_of(&image, ".rescued"), None);
                // What is served is durable.
                let again = Running::with(&image.after(Crash::DropAll), config());
                assert_serves(&again.open(0).await, &all, &repaired.lost).await;
            }
        }
        assert!(closed > 5 && open > 1, "{closed} {open}");
    }
}

/// Random numbers from a seed.
fn random(seed: &mut u64, below: u32) -> u32 {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    let high = u32::try_from(*seed >> 33).unwrap();
    high % below
}

fn random_size(seed: &mut u64, below: u32) -> usize {
    usize::try_from(random(seed, below)).unwrap()
}

fn segments(disk: &TestDisk) -> Vec<PathBuf> {
    let mut paths = disk.paths();
    paths.retain(|path| {
        let text = path.to_string_lossy();
        text.contains("/0/") && text.ends_with(".log")
    });
    paths
}

/// Changes, cuts or removes something of a segment.
fn harm_any(disk: &TestDisk, seed: &mut u64) {
    let paths = segments(disk);
    let count = u32::try_from(paths.len().max(1)).unwrap();
    let Some(path) = paths.get(random_size(seed, count)) else { return };
    let file = disk.open(path, OpenMode::Existing).unwrap();
    let size = file.size().unwrap();
    let at = u64::from(random(seed, u32::try_from(size.max(1)).unwrap()));
    match random(seed, 5) {
        0 => disk.remove_file(path).unwrap(),
        1 => file.set_len(at).unwrap(),
        2 => disk.spoil(&path.to_string_lossy(), at..at + 1 + u64::from(random(seed, 600))),
        3 => {
            let left = usize::try_from(size - at).unwrap();
            file.write_at(at, &[&vec![0; random_size(seed, 300).min(left)]]).unwrap();
        }
        _ => {
            let mut byte = [0];
            if file.read_at(at, &mut byte).unwrap_or(0) == 1 {
                file.write_at(at, &[&[byte[0] ^ 4]]).unwrap();
            }
        }
    }
}

/// Whatever is wrong: what is whole is served, and what is not is told.
#[tokio::test]
async fn whatever_is_wrong_the_rest_is_served_and_the_loss_is_told() {
    let mut told = 0;
    for start in 0..40 {
        let mut seed = start;
        let disk = TestDisk::new();
        let running = Running::with(&disk, config());
        let subject = running.open(0).await;
        subject.log.configure(LogSettings { segment_bytes: ByteCount::new(900), ..settings() });
        let mut all = Vec::new();
        for _ in 0..20 {
            let batch = TestBatch::of(1 + random(&mut seed, 3));
            all.push(subject.append(batch.value_bytes(random_size(&mut seed, 200))).await);
        }
        if random(&mut seed, 2) == 0 {
            subject.log.trim(Offset::new(random(&mut seed, 20).into())).await.unwrap();
        }
        drop(subject);
        let disk = running.close().await;
        for _ in 0..=random(&mut seed, 3) {
            harm_any(&disk, &mut seed);
        }
        let running = Running::with(&disk, config());
        let Some(repaired) = repair(&running).await else {
            assert_serves(&running.open(0).await, &all, &[]).await;
            continue;
        };
        told += 1;
        // A batch that is hurt in its header may be a good one elsewhere: it is not taken for it.
        let subject = running.open(0).await;
        let lost: Vec<_> = repaired.lost.clone();
        assert_serves(&subject, &all, &lost).await;
        let (held, _) = held(&subject).await;
        let is_held = |offset: i64| {
            let before = held.range(..=Offset::new(offset)).next_back();
            before.is_some_and(|(base, _)| {
                let one = all.iter().find(|one| one.offsets.start == *base).unwrap();
                one.offsets.end.get() > offset
            })
        };
        for offset in lost_offsets(&repaired) {
            assert!(!is_held(offset), "seed {start}: {offset} is there");
        }
        drop(subject);
        let disk = running.close().await;
        let inspection = Inspection::open(Arc::new(disk)).unwrap();
        let findings = inspection.verify(partition(0)).findings;
        assert!(
            findings.iter().all(|(severity, _)| *severity == crate::Severity::Note),
            "seed {start}: {findings:?}"
        );
    }
    assert!(told > 20, "{told}");
}
