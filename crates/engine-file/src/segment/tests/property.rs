use proptest::prelude::*;
use strandline_records::batches as walk;
use strandline_storage::BatchBytes;

use super::*;

/// A batch to come: records, bytes of each value, timestamp if any, and whether a roll comes first.
type Plan = (i64, usize, Option<i64>, bool);

fn plans() -> impl Strategy<Value = Vec<Plan>> {
    let stamp = prop::option::weighted(0.9, 0..500_i64);
    let plan = (1..5_i64, 0..120_usize, stamp, prop::bool::weighted(0.05));
    prop::collection::vec(plan, 1..60)
}

fn sealed(plans: &[Plan]) -> Vec<(SealedBatches, bool)> {
    let mut at = 0;
    let seal = |(now, plan): (i64, &Plan)| {
        let (records_count, value_bytes, timestamp, rolls) = *plan;
        let batches = stamped(at, records_count, value_bytes, now, timestamp);
        at += records_count;
        (batches, rolls)
    };
    (0..).zip(plans).map(seal).collect()
}

fn written(store: &Arc<SegmentStore>, batches: &[(SealedBatches, bool)]) -> SegmentLog {
    let log = open_empty(store);
    for (batches, rolls) in batches {
        if *rolls {
            log.roll();
        }
        append(&log, std::slice::from_ref(batches));
    }
    log
}

/// What a read must return: the whole batches from the one that holds `from` on.
fn expected(
    batches: &[(SealedBatches, bool)],
    from: Offset,
    upto: Offset,
    limit: ReadLimit,
) -> Vec<u8> {
    let mut bytes = Vec::new();
    if from >= upto {
        return bytes;
    }
    for (batch, _) in batches {
        if batch.next_offset() <= from || batch.base_offset() >= upto {
            continue;
        }
        let fits = (bytes.len() + batch.bytes().len()) as u64 <= limit.bytes.get();
        if !(fits || bytes.is_empty() && limit.minimum == Minimum::OneBatch) {
            break;
        }
        bytes.extend_from_slice(batch.bytes());
        if !fits {
            break;
        }
    }
    bytes
}

fn memory(read: BatchBytes) -> Vec<u8> {
    read.read_to_memory().unwrap().to_vec()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_offset_reads_back_with_every_limit(plans in plans(), reopened: bool) {
        let batches = sealed(&plans);
        let disk = TestDisk::new();
        let mut log = written(&store_on(&disk), &batches);
        if reopened {
            log = reopen(&store_on(&disk), &log);
        }
        let end = log.written_end();
        for from in (0..=end.get()).map(Offset::new) {
            for bytes in [0, 1, 61, 150, 151, 400, 1000, 1 << 20] {
                for minimum in [Minimum::Nothing, Minimum::OneBatch] {
                    for upto in [end, Offset::new(from.get().midpoint(end.get()))] {
                        let limit = limit(bytes, minimum);
                        let read = memory(log.read(from, upto, limit).unwrap());
                        if let Some(at_once) = log.read_at_once(from, upto, limit) {
                            // It may end with its segment.
                            let at_once = memory(at_once);
                            prop_assert!(read.starts_with(&at_once));
                            prop_assert_eq!(at_once.is_empty(), read.is_empty());
                        }
                        prop_assert_eq!(
                            read, expected(&batches, from, upto, limit),
                            "from {} upto {} {:?}", from, upto, limit
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn every_timestamp_is_found_as_a_walk_finds_it(plans in plans(), reopened: bool, from in 0..50_i64) {
        let batches = sealed(&plans);
        let disk = TestDisk::new();
        let mut log = written(&store_on(&disk), &batches);
        if reopened {
            log = reopen(&store_on(&disk), &log);
        }
        let end = log.written_end();
        let from = Offset::new(from.min(end.get()));
        for at in (0..=500).step_by(7).map(Timestamp::from_millis) {
            let by_walk = batches.iter().map(|(batch, _)| batch).find(|batch| {
                batch.next_offset() > from && batch.max_timestamp() >= Some(at)
            });
            let found = log.find_timestamp(at, from, end).unwrap();
            prop_assert_eq!(
                found.map(|batch| batch.base_offset),
                by_walk.map(SealedBatches::base_offset)
            );
        }
    }

    #[test]
    fn an_index_made_anew_is_the_one_that_was_written(plans in plans()) {
        let batches = sealed(&plans);
        let disk = TestDisk::new();
        let log = written(&store_on(&disk), &batches);
        for segment in log.segments() {
            segment.seal(&log.store);
        }
        let indexes = || {
            let paths = disk.paths();
            let indexes = paths.into_iter().filter(|path| {
                path.extension().is_some_and(|kind| kind != "log")
            });
            indexes.map(|path| (disk.contents(&path).unwrap(), path)).collect::<Vec<_>>()
        };
        let first = indexes();
        for segment in log.segments() {
            segment.rebuild_index(&log.store, 100).unwrap();
        }
        prop_assert_eq!(first, indexes());
    }

    #[test]
    fn a_damaged_index_changes_no_answer(
        plans in plans(),
        damage in prop::collection::vec((any::<u16>(), any::<u8>()), 1..20),
        cut in prop::option::of(any::<u16>()),
    ) {
        let batches = sealed(&plans);
        let disk = TestDisk::new();
        let log = written(&store_on(&disk), &batches);
        log.save_index();
        for path in disk.paths() {
            if path.extension().is_some_and(|kind| kind == "index") {
                let file = disk.open(&path, crate::disk::OpenMode::Existing).unwrap();
                let size = file.size().unwrap();
                for (at, byte) in &damage {
                    if size > 0 {
                        file.write_at(u64::from(*at) % size, &[&[*byte]]).unwrap();
                    }
                }
                if let Some(cut) = cut {
                    file.set_len(u64::from(cut) % (size + 16)).unwrap();
                }
            }
        }
        let log = reopen(&store_on(&disk), &log);
        let end = log.written_end();
        for from in (0..end.get()).map(Offset::new) {
            let limit = limit(300, Minimum::OneBatch);
            let read = memory(log.read(from, end, limit).unwrap());
            prop_assert_eq!(read, expected(&batches, from, end, limit));
        }
    }

    #[test]
    fn a_scan_of_any_tail_believes_whole_batches_only(
        plans in plans(),
        cut in any::<prop::sample::Index>(),
        tail in prop::collection::vec(any::<u8>(), 0..200),
        zeroed: bool,
    ) {
        let batches = sealed(&plans);
        let disk = TestDisk::new();
        let store = store_on(&disk);
        let log = open_empty(&store);
        log.configure(LogSettings { segment_bytes: ByteCount::mib(1), ..settings() });
        for (batches, _) in &batches {
            append(&log, std::slice::from_ref(batches));
        }
        let path = "logs/BwcHBwcHBwcHBwcHBwcHBw/0/00000000000000000000.log";
        let good = disk.contents(path).unwrap();
        let cut = cut.index(good.len() + 1);
        let file = disk.open(path.as_ref(), crate::disk::OpenMode::Existing).unwrap();
        file.set_len(cut as u64).unwrap();
        let tail = if zeroed { vec![0; tail.len()] } else { tail };
        file.write_at(cut as u64, &[&tail]).unwrap();
        let scan = store.scan(partition(0), crate::segment::SegmentName::appended(Offset::ZERO)).unwrap();
        let believed = scan.facts.map_or(0, |facts| facts.bytes);
        let whole = walk(&good)
            .map(Result::unwrap)
            .scan(0, |end, batch| {
                *end += batch.bytes().len();
                Some(*end)
            })
            .take_while(|end| *end <= cut)
            .last()
            .unwrap_or(0);
        // Noise may complete the batch that was cut, if it happens to be what was there.
        let is_lucky = disk.contents(path).unwrap().starts_with(&good[..usize::try_from(believed).unwrap()]);
        prop_assert!(believed == whole as u64 || believed > whole as u64 && is_lucky);
        prop_assert_eq!(scan.finding.is_some(), believed < (cut + tail.len()) as u64);
    }
}
