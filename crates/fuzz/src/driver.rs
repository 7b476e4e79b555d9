//! The loop: take an input, change it, try it, remember it when its answer is of a new kind.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, Once, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::time::{ClockId, clock_gettime};

use crate::corpus;
use crate::mutate::{INPUT_BYTES_MAX, mutate};
use crate::random::Random;
use crate::target::Target;

/// An input of at most 64 KiB that takes longer than this is a way to stop a broker.
const SLOW: Duration = Duration::from_secs(2);

/// Memory of the whole process: an allocation on the word of a length field meets it and aborts.
const MEMORY_BYTES: u64 = 2 << 30;

/// Inputs with a new kind of answer that are mutated further, at most.
const POOL_MAX: usize = 4096;

/// Holds this process to [`MEMORY_BYTES`].
pub(crate) fn limit_memory() -> anyhow::Result<()> {
    let maximum = getrlimit(Resource::As).maximum;
    let limit = Rlimit { current: Some(MEMORY_BYTES), maximum };
    setrlimit(Resource::As, limit).context("limit the memory of this process")
}

/// Where the input that is being tried is written down first.
pub(crate) fn current_input(target: &Target) -> PathBuf {
    corpus::root().join("target").join(format!("fuzz-{}.input", target.name))
}

/// What a run did.
#[derive(Debug)]
pub(crate) struct Report {
    tried: u64,
    kept_inputs: usize,
    kinds: usize,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { tried, kept_inputs, kinds } = self;
        write!(f, "{tried} inputs tried, {kept_inputs} of them known, {kinds} kinds of answer")
    }
}

/// Tries the known inputs, then changed ones until the time is over. With `keep`, inputs that got a new
/// kind of answer join the corpus.
pub(crate) fn fuzz(
    target: &Target,
    duration: Duration,
    seed: u64,
    keep: bool,
) -> anyhow::Result<Report> {
    let began = Instant::now();
    let mut attempt = Attempt::new(target)?;
    let mut pool = corpus::load(target)?;
    let mut kinds = BTreeSet::new();
    for input in &pool {
        kinds.insert(attempt.run(input)?);
    }
    let mut report = Report { tried: pool.len() as u64, kept_inputs: pool.len(), kinds: 0 };
    let mut random = Random::new(seed);
    let mut input = Vec::with_capacity(INPUT_BYTES_MAX);
    while began.elapsed() < duration {
        input.clone_from(random.pick(&pool));
        let other = random.below(pool.len());
        mutate(&mut input, &pool[other], &mut random);
        // Most changes are made to fit the outermost lengths and checksums, to reach what lies inside.
        if !random.one_in(4) {
            (target.repair)(&mut input);
        }
        report.tried += 1;
        if kinds.insert(attempt.run(&input)?) && pool.len() < POOL_MAX {
            if keep {
                corpus::keep(target, &input)?;
            }
            pool.push(input.clone());
        }
    }
    report.kinds = kinds.len();
    Ok(report)
}

/// Tries one input after another and saves the one that must not be.
struct Attempt<'a> {
    target: &'a Target,
    current: File,
}

impl<'a> Attempt<'a> {
    fn new(target: &'a Target) -> anyhow::Result<Self> {
        let path = current_input(target);
        let folder = path.parent().expect("the file lies in a folder");
        std::fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
        let current = File::create(&path).with_context(|| format!("make {}", path.display()))?;
        watch_panics();
        Ok(Self { target, current })
    }

    /// What kind of answer the input got.
    fn run(&mut self, input: &[u8]) -> anyhow::Result<u64> {
        self.current.set_len(0).context("empty the input file")?;
        self.current.write_all_at(input, 0).context("write the input down")?;
        let began = processor_time();
        let answer = catch_unwind(AssertUnwindSafe(|| (self.target.run)(input)));
        // Not by the wall clock: on a busy machine an input waits for others.
        let took = processor_time().saturating_sub(began);
        // An engine's own threads panic without us.
        let panicked = PANICKED.swap(false, Ordering::SeqCst);
        let Some(kind) = answer.ok().filter(|_| !panicked) else {
            let file = corpus::save(self.target, "crash", input)?;
            let message = LAST_PANIC.lock().unwrap_or_else(PoisonError::into_inner);
            bail!("{}: {message}\n  the input is {}", self.target.name, file.display());
        };
        if took > SLOW {
            let file = corpus::save(self.target, "slow", input)?;
            bail!("{}: took {took:?}\n  the input is {}", self.target.name, file.display());
        }
        Ok(kind)
    }
}

/// What all threads of this process have used.
fn processor_time() -> Duration {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(u64::try_from(used.tv_sec).unwrap_or(0), u32::try_from(used.tv_nsec).unwrap_or(0))
}

static PANICKED: AtomicBool = AtomicBool::new(false);
static LAST_PANIC: Mutex<String> = Mutex::new(String::new());

/// Keeps the message of a panic on any thread, to be told with the input instead of at once.
fn watch_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let usual = take_hook();
        set_hook(Box::new(move |panic| {
            if cfg!(test) {
                usual(panic); // a test that fails is told in the usual way
            }
            PANICKED.store(true, Ordering::SeqCst);
            *LAST_PANIC.lock().unwrap_or_else(PoisonError::into_inner) = panic.to_string();
        }));
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::TARGETS;

    /// Panics are watched in the whole process: one run at a time.
    static ALONE: Mutex<()> = Mutex::new(());

    /// What was found once stays found: every kept input, and a moment of new ones.
    #[test]
    fn every_target_survives_its_corpus_and_a_fixed_seed() {
        let _alone = ALONE.lock();
        for target in TARGETS {
            // Longer where the machine is slow, until there was time for what is new.
            let goes_beyond = [1, 10, 100].into_iter().any(|halves| {
                let time = Duration::from_millis(500 * halves);
                let report = fuzz(target, time, 1, false).expect("no finding");
                report.tried > report.kept_inputs as u64
            });
            assert!(goes_beyond, "{}: there was no time for new inputs", target.name);
        }
    }

    #[test]
    fn a_panic_is_found() {
        let _alone = ALONE.lock();
        let target = Target {
            name: "test-panic",
            seeds: || vec![b"harmless".to_vec()],
            repair: |_| {},
            run: |input| {
                assert!(input.starts_with(b"h"), "not an h");
                0
            },
        };
        let found = fuzz(&target, Duration::from_secs(20), 1, false);
        std::fs::remove_dir_all(corpus::folder(&target)).expect("the crash was saved");
        let text = format!("{:#}", found.expect_err("the target panics"));
        assert!(text.contains("not an h"), "{text}");
    }
}
