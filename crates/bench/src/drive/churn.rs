//! Groups that are never at rest, to run beside others: rebalances that hang, and a large group whose
//! members offer many protocols and join again and again.
//!
//! Paced, so that what the others lose is lost to what the broker makes of it and not to the
//! processor time that the load itself burns.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, bail, ensure};

use super::groups::{Joining, Member, form, joined, simple, synced};
use super::setup::{connect, read_frame};

/// How long a rebalance waits for the member that does not come back.
const HANG_MS: i32 = 500;
/// From one generation of the large group to the next, at least.
const GENERATION_PACE: Duration = Duration::from_millis(200);
/// Longer, and the broker is stuck.
const REBALANCE_BEGINS_WITHIN: Duration = Duration::from_secs(30);
const REBALANCE_IN_PROGRESS: i16 = 27;
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
    /// from each rebalance, and one group of `crowd` members, two at least.
    pub fn start(broker: SocketAddr, hanging: usize, crowd: usize) -> anyhow::Result<Self> {
        ensure!(crowd > 1, "one member is no crowd");
        let plain = ["range".to_owned()];
        let hangs = Joining { rebalance_timeout_ms: HANG_MS, protocols: &plain };
        let hanging = form(broker, "bench-hanging", hanging, 1, hangs)?;
        let spare = (hanging.iter()).map(|_| connect(broker)).collect::<Result<_, _>>()?;
        let offer = offer();
        let joins = Joining { rebalance_timeout_ms: 60_000, protocols: &offer };
        let crowd = form(broker, "bench-crowd", 1, crowd, joins)?;
        let stop = Arc::new(AtomicBool::new(false));
        let mut threads = Vec::new();
        let seen = Arc::clone(&stop);
        threads.push(std::thread::spawn(move || hang_again_and_again(hanging, spare, &seen)));
        let seen = Arc::clone(&stop);
        threads.push(std::thread::spawn(move || join_again_and_again(crowd, &seen)));
        Ok(Self { stop, threads })
    }

    /// Ends it. Fails when there was nothing to end.
    pub fn stop(mut self) -> anyhow::Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let generations = thread.join().expect("the groups do not panic")?;
            ensure!(generations > 0, "groups were at rest");
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
/// its place when the time is up. The two take turns with two connections. Returns how often.
fn hang_again_and_again(
    mut silent: Vec<Member>,
    mut waiting: Vec<TcpStream>,
    stop: &AtomicBool,
) -> anyhow::Result<usize> {
    let plain = ["range".to_owned()];
    let joining = Joining { rebalance_timeout_ms: HANG_MS, protocols: &plain };
    let mut frame = Vec::new();
    let mut generations = 0;
    while !stop.load(Ordering::Relaxed) {
        for (member, stream) in silent.iter().zip(&mut waiting) {
            stream.write_all(&joining.request(&member.group, ""))?;
        }
        for (member, stream) in silent.iter_mut().zip(&mut waiting) {
            read_frame(stream, &mut frame).context("read the answer to a join that hung")?;
            let (generation, id, all) = joined(&frame).context("an answer is cut short")??;
            std::mem::swap(&mut member.stream, stream);
            (member.generation, member.id) = (generation, id);
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

/// Sends heartbeats until one is told of a rebalance.
fn await_rebalance(member: &mut Member) -> anyhow::Result<()> {
    let heartbeat = member.heartbeat();
    let mut frame = Vec::new();
    let begun = Instant::now();
    loop {
        member.stream.write_all(&heartbeat)?;
        read_frame(&member.stream, &mut frame).context("read the answer to Heartbeat")?;
        match simple(&frame).context("an answer is cut short")?.code {
            REBALANCE_IN_PROGRESS => return Ok(()),
            0 => {}
            code => bail!("a heartbeat was refused. code=`{code}`"),
        }
        ensure!(begun.elapsed() < REBALANCE_BEGINS_WITHIN, "the leader's join began no rebalance");
    }
}

/// All members join again, one after another, and share the work anew. One of them knows a single
/// protocol of the others, so that no other is in common. Returns how often.
fn join_again_and_again(mut members: Vec<Member>, stop: &AtomicBool) -> anyhow::Result<usize> {
    let offer = offer();
    let joining = Joining { rebalance_timeout_ms: 60_000, protocols: &offer };
    let poor = Joining { rebalance_timeout_ms: 60_000, protocols: &offer[PROTOCOLS - 1..] };
    let poor_id = members.last().map(|member| member.id.clone()).unwrap_or_default();
    let mut frame = Vec::new();
    let mut generations = 0;
    while !stop.load(Ordering::Relaxed) {
        let begun = Instant::now();
        // The leader is the first: its join always begins a generation.
        members.sort_by_key(|member| !member.is_leader);
        let join = |member: &Member| {
            let how = if member.id == poor_id { poor } else { joining };
            how.request(&member.group, &member.id)
        };
        let (leader, others) = members.split_at_mut(1);
        let first = join(&leader[0]);
        leader[0].stream.write_all(&first)?;
        // A join that came before the leader's would be answered with the generation that is over.
        await_rebalance(&mut others[0])?;
        for member in others {
            let join = join(member);
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
