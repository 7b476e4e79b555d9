//! Consumer groups of the classic protocol: members that heartbeat and commit as fast as they are
//! answered, beside groups that hang.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, ensure};

use super::closed_loop::{self, Answer, Lane, Turn};
use super::idle::raise_open_files;
use super::setup::{connect, read_frame};
use super::{Latency, Load};
use crate::frame::{Api, Reader, request};

const SESSION_TIMEOUT_MS: i32 = 60_000;
/// Longer than any run: whoever waits for a member that does not come waits on.
const REBALANCE_TIMEOUT_MS: i32 = 300_000;

/// What load to make.
#[derive(Clone, Debug)]
pub struct Groups {
    /// The broker.
    pub broker: SocketAddr,
    /// The topic that positions are committed of.
    pub topic: String,
    /// Groups whose members work.
    pub groups: usize,
    /// Members of each.
    pub members: usize,
    /// Groups of which one member waits to join while another never comes back.
    pub hanging: usize,
    /// Whether members commit after each heartbeat.
    pub commits: bool,
    /// Answers before this do not count.
    pub warm_up: Duration,
    /// How long to measure after that.
    pub duration: Duration,
}

/// A member of a group, in a generation.
struct Member {
    stream: TcpStream,
    group: String,
    id: String,
    generation: i32,
}

/// Runs the load. The latency is that of heartbeats.
pub fn run(load: &Groups) -> anyhow::Result<Load> {
    raise_open_files((load.groups * load.members + load.hanging * 2) as u64 + 256)?;
    let hanging = hang(load)?;
    let members = form(load.broker, "bench-group", load.groups, load.members)?;
    let lanes = members.into_iter().map(|member| member.into_lane(load)).collect();
    let outcome = closed_loop::run(lanes, load.warm_up, load.duration)?;
    drop(hanging);
    let heartbeats = outcome.nanos.first().context("there is a member")?;
    let requests = outcome.nanos.iter().map(hdrhistogram::Histogram::len).sum();
    Ok(Load {
        records: requests,
        bytes: 0,
        requests,
        elapsed: outcome.elapsed,
        latency: Some(Latency::of(heartbeats)),
    })
}

/// Groups of one silent member each, with a second one that waits for it to join again.
fn hang(load: &Groups) -> anyhow::Result<Vec<TcpStream>> {
    let silent = form(load.broker, "bench-hanging", load.hanging, 1)?;
    let mut held = Vec::with_capacity(2 * load.hanging);
    for member in silent {
        let mut second = connect(load.broker)?;
        second.write_all(&join(&member.group))?;
        held.extend([second, member.stream]);
    }
    Ok(held)
}

/// Lets all groups form at once: a group waits a while for its first members.
fn form(
    broker: SocketAddr,
    prefix: &str,
    groups: usize,
    members: usize,
) -> anyhow::Result<Vec<Member>> {
    let mut joining = Vec::with_capacity(groups * members);
    for group in 0..groups {
        for _ in 0..members {
            let mut stream = connect(broker).context("connect a member")?;
            let group = format!("{prefix}-{group}");
            stream.write_all(&join(&group))?;
            joining.push((stream, group));
        }
    }
    let mut frame = Vec::new();
    let mut formed = Vec::with_capacity(joining.len());
    for (stream, group) in joining {
        read_frame(&stream, &mut frame).context("read the answer to JoinGroup")?;
        let (generation, id, all) =
            joined(&frame).context("the answer to JoinGroup is cut short")??;
        let mut member = Member { stream, group, id, generation };
        let sync = member.sync(&all);
        member.stream.write_all(&sync)?;
        formed.push(member);
    }
    for member in &formed {
        read_frame(&member.stream, &mut frame).context("read the answer to SyncGroup")?;
        let answer = simple(&frame).context("the answer to SyncGroup is cut short")?;
        ensure!(answer.code == 0, "sync was refused. code=`{}`", answer.code);
    }
    Ok(formed)
}

fn join(group: &str) -> Vec<u8> {
    request(Api::JoinGroup, 2, 1, |w| {
        w.string(false, group).i32(SESSION_TIMEOUT_MS).i32(REBALANCE_TIMEOUT_MS);
        w.string(false, "").string(false, "consumer");
        w.length(false, 1).string(false, "range").length(false, 4).raw(b"meta");
    })
}

type Joined = anyhow::Result<(i32, String, Vec<String>)>;

/// Generation, member id and, for the leader, all members.
fn joined(frame: &[u8]) -> Option<Joined> {
    let mut r = Reader::new(frame);
    r.i32()?;
    r.i32()?;
    let code = r.i16()?;
    if code != 0 {
        return Some(Err(anyhow::anyhow!("join was refused. code=`{code}`")));
    }
    let generation = r.i32()?;
    r.string(false)?;
    r.string(false)?;
    let id = r.string(false)?.to_owned();
    let mut all = Vec::new();
    for _ in 0..r.length(false)? {
        all.push(r.string(false)?.to_owned());
        let bytes = r.length(false)?;
        r.take(bytes)?;
    }
    Some(Ok((generation, id, all)))
}

/// An answer of a throttle time and an error code, and whatever follows.
fn simple(frame: &[u8]) -> Option<Answer> {
    let mut r = Reader::new(frame);
    let correlation = r.i32()?;
    r.i32()?;
    Some(Answer { correlation, code: r.i16()? })
}

/// The answer to a commit of one position.
fn committed(frame: &[u8]) -> Option<Answer> {
    let mut r = Reader::new(frame);
    let correlation = r.i32()?;
    r.i32()?;
    r.length(false)?;
    r.string(false)?;
    r.length(false)?;
    r.i32()?;
    Some(Answer { correlation, code: r.i16()? })
}

impl Member {
    fn sync(&self, all: &[String]) -> Vec<u8> {
        request(Api::SyncGroup, 2, 2, |w| {
            w.string(false, &self.group).i32(self.generation).string(false, &self.id);
            w.length(false, all.len());
            for member in all {
                w.string(false, member).length(false, 4).raw(b"part");
            }
        })
    }

    fn into_lane(self, load: &Groups) -> Lane {
        let heartbeat = request(Api::Heartbeat, 2, 3, |w| {
            w.string(false, &self.group).i32(self.generation).string(false, &self.id);
        });
        let mut turns = vec![Turn { request: heartbeat, read: simple }];
        if load.commits {
            let commit = request(Api::OffsetCommit, 6, 4, |w| {
                w.string(false, &self.group).i32(self.generation).string(false, &self.id);
                w.length(false, 1).string(false, &load.topic).length(false, 1);
                w.i32(0).i64(1).i32(-1).string(false, "");
            });
            turns.push(Turn { request: commit, read: committed });
        }
        Lane::new(self.stream, turns)
    }
}
