//! The crash test: a mixed workload on a disk in memory, the power cut after its operations, and
//! an engine opened on what is left.
//!
//! One run of the workload serves all of its cuts: the disk remembers every operation, and a replay
//! makes the image that a crash after any of them leaves, with unsynced writes kept, dropped, or torn
//! at 512 bytes, or kept by a machine that goes on when the process dies. On each image a new engine must find everything that was acknowledged, take back
//! nothing that a reader saw, serve nothing torn, and have metadata commits whole or not at all. Some
//! images are cut again while that engine recovers, and after it has. A watchdog ends a test in which
//! nothing happens any more.
//!
//! `STRANDLINE_CRASH_CUTS` sets how many operations are cut (2 000), `STRANDLINE_CRASH_SEED` the seed
//! of the first workload. Threads interleave as they like, so a seed brings back the kind of a
//! failure, not its every step; `STRANDLINE_CRASH_TRACE` prints what happened to the files whose names
//! hold one of its comma-separated texts.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a failure is found again by its seed"
)]

mod check;
mod dice;
mod image;
mod oracle;
mod trace;
mod watchdog;
mod workload;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use strandline_engine_file::disk::{Crash, Operation, Replay, TestDisk};

use dice::Dice;
use image::Image;
use watchdog::Pulse;

/// Steps of one workload: enough for several checkpoints and each kind of fault.
const STEPS: usize = 260;

/// So many workloads that would prove little are no accident any more: one in some hundred is such.
const POOR_MAX: u64 = 3;

/// What ends the engine at a cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// The process dies. A later crash loses what it did not sync.
    Death,
    /// The power goes.
    PowerCut(Crash),
}

impl End {
    fn of(self, replay: &Replay) -> TestDisk {
        match self {
            Self::Death => replay.after_death(),
            Self::PowerCut(crash) => replay.after(crash),
        }
    }

    /// Whether the next engine finds everything as it was.
    fn keeps_pages(self) -> bool {
        matches!(self, Self::Death | Self::PowerCut(Crash::KeepAll))
    }
}

/// Which images of each cut are made.
const KINDS: [fn(u64) -> End; 3] =
    [|_| End::Death, |_| End::PowerCut(Crash::DropAll), |seed| End::PowerCut(Crash::Torn(seed))];

#[test]
fn nothing_acknowledged_is_lost_wherever_the_power_is_cut() {
    let cuts_wanted = from_environment("STRANDLINE_CRASH_CUTS").unwrap_or(2000);
    let seed = from_environment("STRANDLINE_CRASH_SEED").unwrap_or_else(any_seed);
    println!("crash test: first seed {seed}, {cuts_wanted} cuts");
    let pulse = Pulse::watched();
    let mut cuts = 0;
    let mut round = 0;
    let mut poor = 0;
    while cuts < cuts_wanted {
        match run_round(seed.wrapping_add(round), cuts_wanted - cuts, &pulse) {
            Some(done) => cuts += done,
            None => poor += 1,
        }
        round += 1;
        assert!(poor < POOR_MAX, "{poor} of {round} workloads would prove little");
    }
    println!("crash test: first seed {seed}, {cuts} cuts of {round} workloads, 3 images each");
}

/// Runs one workload and cuts it after up to `cuts_max` of its operations; says after how many. `None`:
/// it would prove little, and was not cut.
fn run_round(seed: u64, cuts_max: u64, pulse: &Pulse) -> Option<u64> {
    let (disk, oracle) = workload::run(seed, STEPS, pulse);
    let operations = disk.operations() as u64;
    trace::print(&disk);
    if !is_mixed(&disk) {
        return None;
    }
    // Evenly over the whole workload when not all of it is wanted.
    let cuts = cuts_max.min(operations);
    let is_cut = |done: u64| done * cuts / operations != (done + 1) * cuts / operations;
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut replay = Replay::of(&disk);
                let mut wanted = next.fetch_add(1, Ordering::Relaxed);
                while replay.step().is_some() {
                    if replay.done() - 1 != wanted {
                        continue;
                    }
                    if is_cut(wanted as u64) {
                        pulse.beat(format!("cut {} of seed {seed}", replay.done()));
                        for kind in KINDS {
                            let mut dice = Dice::new(seed ^ ((wanted as u64) << 20));
                            let end = kind(dice.next());
                            Image { seed, cut: replay.done(), end, oracle: &oracle }
                                .check(|| end.of(&replay), &mut dice);
                        }
                    }
                    wanted = next.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    Some(cuts)
}

/// Whether a workload has all that it is for: it rolls, checkpoints, removes and rewrites.
fn is_mixed(disk: &TestDisk) -> bool {
    let (mut segments, mut journals, mut snapshots, mut removed, mut replaced) = (0, 0, 0, 0, 0);
    let mut rewritten = 0;
    let mut replay = Replay::of(disk);
    while let Some(operation) = replay.step() {
        match operation {
            Operation::Create { path, .. } if is_rewritten(&path) => rewritten += 1,
            Operation::Create { path, .. } if trace::has_extension(&path, "log") => segments += 1,
            Operation::Create { path, .. } if trace::has_extension(&path, "journal") => {
                journals += 1;
            }
            Operation::Remove(path) if trace::has_extension(&path, "log") => removed += 1,
            Operation::Rename { to, .. } if trace::has_extension(&to, "log") => replaced += 1,
            Operation::Rename { .. } => snapshots += 1,
            _ => {}
        }
    }
    println!(
        "{segments} segments, {removed} removed, {replaced} replaced, {rewritten} rewritten, \
         {journals} journal files, {snapshots} snapshots"
    );
    segments > 8 && journals > 1 && snapshots > 3 && removed > 0 && rewritten > 0
}

/// Whether a file was written in the place of segments: its name has a generation.
fn is_rewritten(path: &std::path::Path) -> bool {
    trace::has_extension(path, "log")
        && path.file_stem().is_some_and(|stem| std::path::Path::new(stem).extension().is_some())
}

fn from_environment(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

fn any_seed() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970");
    u64::from(now.subsec_nanos()) ^ now.as_secs()
}
