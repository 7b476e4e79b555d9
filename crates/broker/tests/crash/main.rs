//! The lives of topics, cut anywhere: a broker on the file engine, on a disk in memory that loses its
//! power after each of its operations.
//!
//! One run of the workload serves all of its cuts, as in the crash test of the engine: topics are
//! created, filled, trimmed by retention and by request, compacted, read by groups, deleted, brought back,
//! purged and created again under the same names, while the broker is stopped and killed; their rows go
//! and come back, files fail and the disk fills. On what each cut leaves another broker is started, which
//! must agree with everything that was answered before the cut: topics, records, log starts, positions.
//! Then its purger and its reconciliation work, and nothing may be left of what is gone: no pending
//! deletion, no log that no topic has, in quarantine or not, no position in one; and each name can be
//! used anew.
//!
//! What a new kind of work must add: a step in `workload.rs` under a name of its own in [`Phase`], and in
//! `promises.rs` what it lets go. The final checks of `image.rs` stay.
//!
//! `STRANDLINE_CRASH_CUTS` sets how many operations are cut (300), `STRANDLINE_CRASH_SEED` the seed of
//! the first workload.

#![expect(clippy::print_stderr, reason = "a failure is found again by its seed")]
#![expect(clippy::unwrap_used, reason = "tests panic")]

mod client;
#[path = "../../../engine-file/tests/crash/dice.rs"]
mod dice;
mod image;
mod promises;
mod workload;
mod world;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use strandline_engine_file::disk::{Crash, Replay, TestDisk};

use dice::Dice;
use image::Image;
use promises::{Phase, Promises};

/// Steps of one workload: each name has several lives in it.
const STEPS: usize = 160;

/// What ends the broker at a cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The process dies. A later crash loses what it did not sync.
    Death,
    /// The power goes.
    PowerCut(Crash),
}

impl End {
    fn any(dice: &mut Dice) -> Self {
        match dice.below(3) {
            0 => Self::Death,
            1 => Self::PowerCut(Crash::DropAll),
            _ => Self::PowerCut(Crash::Torn(dice.next())),
        }
    }

    fn of(self, replay: &Replay) -> TestDisk {
        match self {
            Self::Death => replay.after_death(),
            Self::PowerCut(crash) => replay.after(crash),
        }
    }
}

#[test]
fn disk_and_metadata_agree_wherever_the_power_is_cut() {
    let cuts_wanted = from_environment("STRANDLINE_CRASH_CUTS").unwrap_or(300);
    let seed = from_environment("STRANDLINE_CRASH_SEED").unwrap_or_else(any_seed);
    println!("lives of topics: first seed {seed}, {cuts_wanted} cuts");
    let (mut cuts, mut round) = (0, 0);
    let mut by_phase = BTreeMap::new();
    while cuts < cuts_wanted {
        cuts += run_round(seed.wrapping_add(round), cuts_wanted - cuts, &mut by_phase);
        round += 1;
    }
    println!("lives of topics: first seed {seed}, {cuts} cuts of {round} workloads: {by_phase:?}");
    let missed: Vec<_> = Phase::ALL.iter().filter(|phase| !by_phase.contains_key(phase)).collect();
    assert!(missed.is_empty(), "nothing was cut in {missed:?}");
}

/// Runs one workload and cuts it after up to `cuts_max` of its operations; says after how many.
fn run_round(seed: u64, cuts_max: u64, by_phase: &mut BTreeMap<Phase, u64>) -> u64 {
    let (disk, promises) = workload::run(seed, STEPS);
    let mut by_kind: BTreeMap<Phase, Vec<usize>> = BTreeMap::new();
    for operation in 1..=disk.operations() {
        by_kind.entry(promises.phase_at(operation)).or_default().push(operation);
    }
    let cuts = chosen(by_kind.into_values().collect(), cuts_max);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    let counted = Mutex::new(by_phase);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut replay = Replay::of(&disk);
                while let Some(at) = cuts.get(next.fetch_add(1, Ordering::Relaxed)) {
                    while replay.done() < *at {
                        replay.step().expect("cuts lie within the workload");
                    }
                    cut(seed, &replay, &promises);
                    *counted.lock().unwrap().entry(promises.phase_at(*at)).or_default() += 1;
                }
            });
        }
    });
    cuts.len() as u64
}

/// Where to cut, in order: in each phase after every operation of it, or after as many, evenly, as in
/// the others when that would be more than `cuts_max` together.
fn chosen(mut phases: Vec<Vec<usize>>, cuts_max: u64) -> Vec<usize> {
    phases.sort_by_key(Vec::len);
    let mut left = usize::try_from(cuts_max).unwrap_or(usize::MAX);
    let mut cuts = Vec::new();
    let count = phases.len();
    for (index, operations) in phases.into_iter().enumerate() {
        let share = operations.len().min(left / (count - index));
        cuts.extend((0..share).map(|one| operations[one * operations.len() / share]));
        left -= share;
    }
    cuts.sort_unstable();
    cuts
}

fn cut(seed: u64, replay: &Replay, promises: &Promises) {
    let cut = replay.done();
    let mut dice = Dice::new(seed ^ ((cut as u64) << 20));
    let end = End::any(&mut dice);
    Image { seed, cut, end, promises }.check(end.of(replay), &mut dice);
}

fn from_environment(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

fn any_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap();
    u64::from(now.subsec_nanos()) ^ now.as_secs()
}
