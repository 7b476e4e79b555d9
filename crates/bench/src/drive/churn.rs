//! Groups that are never at rest, to run beside others: rebalances that hang, and a large group whose
//! members offer many protocols and join again and again.
//!
//! Paced, so that what the others lose is lost to what the broker makes of it and not to the
//! processor time that the load itself burns.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use super::groups::{Joining, Member, form, joined, synced};
use super::setup::{connect, read_frame};

/// How long a rebalance waits for the member that does not come back.
const HANG_MS: i32 = 500;
/// From one generation of the large group to the next, at least.
const GENERATION_PACE: Duration = Duration::from_millis(200);
/// Protocols that each member of the large group offers; the one that all have in common is the last.
const PROTOCOLS: usize = 100;

/// Running groups; they stop with the value.
#[derive(Debug)]
pub struct Churn {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<anyhow::Result<usize>>>,
}

impl Churn {
    /// Forms the groups, and starts their rebalances: `hanging` groups of a member that stays away
    /// from each rebalance, and one group of `crowd` members.
    pub fn start(broker: SocketAddr, hanging: usize, crowd: usize) -> anyhow::Result<Self> {
        let plain = ["range".to_owned()];
        let hangs = Joining { rebalance_timeout_ms: HANG_MS, protocols: &plain };
        let hanging = form(broker, "bench-hanging", hanging, 1, hangs)?;
        let offer = offer();
        let joins = Joining { rebalance_timeout_ms: 60_000, protocols: &offer };
        let crowd = form(broker, "bench-crowd", 1, crowd, joins)?;
        let stop = Arc::new(AtomicBool::new(false));
        let mut threads = Vec::new();
        let seen = Arc::clone(&stop);
        threads.push(std::thread::spawn(move || hang_again_and_again(broker, hanging, &seen)));
        let seen = Arc::clone(&stop);
        threads.push(std::thread::spawn(move || join_again_and_again(crowd, &seen)));
        Ok(Self { stop, threads })
    }

    /// Ends it. Fails when there was nothing to end.
    pub fn stop(mut self) -> anyhow::Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let generations = thread.join().expect("the groups do not panic")?;
            ensure!(generations > 2, "groups were at rest. generations=`{generations}`");
        }
        Ok(())
    }
}

impl Drop for Churn {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn offer() -> Vec<String> {
    let mut names: Vec<String> = (1..PROTOCOLS).map(|number| format!("own-{number:03}")).collect();
    names.push("common".to_owned());
    names
}

/// In each group a new member joins, and waits for the one that is there and does not come; it takes
/// its place when the time is up. Returns how often.
fn hang_again_and_again(
    broker: SocketAddr,
    mut silent: Vec<Member>,
    stop: &AtomicBool,
) -> anyhow::Result<usize> {
    let plain = ["range".to_owned()];
    let joining = Joining { rebalance_timeout_ms: HANG_MS, protocols: &plain };
    let mut frame = Vec::new();
    let mut generations = 0;
    while !stop.load(Ordering::Relaxed) {
        let mut waiting = Vec::with_capacity(silent.len());
        for member in &silent {
            let mut stream = connect(broker)?;
            stream.write_all(&joining.request(&member.group, ""))?;
            waiting.push(stream);
        }
        for (member, stream) in silent.iter_mut().zip(waiting) {
            read_frame(&stream, &mut frame).context("read the answer to a join that hung")?;
            let (generation, id, all) = joined(&frame).context("an answer is cut short")??;
            let group = std::mem::take(&mut member.group);
            *member = Member { stream, group, id, generation, is_leader: true };
            let sync = member.sync(&all);
            member.stream.write_all(&sync)?;
        }
        for member in &silent {
            // Refused when it came too late: the group is empty then, and its next rebalance waits
            // for whoever else may come.
            read_frame(&member.stream, &mut frame).context("read the answer to SyncGroup")?;
        }
        generations += 1;
    }
    Ok(generations)
}

/// All members join again, one after another, and share the work anew. Returns how often.
fn join_again_and_again(mut members: Vec<Member>, stop: &AtomicBool) -> anyhow::Result<usize> {
    let offer = offer();
    let joining = Joining { rebalance_timeout_ms: 60_000, protocols: &offer };
    let mut frame = Vec::new();
    let mut generations = 0;
    while !stop.load(Ordering::Relaxed) {
        let begun = Instant::now();
        // The leader is the first: its join always begins a generation.
        members.sort_by_key(|member| !member.is_leader);
        for member in &mut members {
            let join = joining.request(&member.group, &member.id);
            member.stream.write_all(&join)?;
        }
        for member in &mut members {
            read_frame(&member.stream, &mut frame).context("read the answer to a join again")?;
            let (generation, id, all) = joined(&frame).context("an answer is cut short")??;
            ensure!(id == member.id, "a member is another one now");
            member.generation = generation;
            member.is_leader = !all.is_empty();
            let sync = member.sync(&all);
            member.stream.write_all(&sync)?;
        }
        for member in &members {
            read_frame(&member.stream, &mut frame).context("read the answer to SyncGroup")?;
            synced(&frame)?;
        }
        generations += 1;
        std::thread::sleep(GENERATION_PACE.saturating_sub(begun.elapsed()));
    }
    Ok(generations)
}
