//! Consumer groups of the classic protocol: members that heartbeat and commit as fast as they are
//! answered, beside groups that are never at rest.

use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use anyhow::{Context, ensure};

use super::churn::Churn;
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
    /// Groups beside them in which a member waits to join for one that does not come back, each time
    /// anew.
    pub hanging: usize,
    /// Members of one more group, who offer many protocols and join again and again. None: there is no
    /// such group.
    pub crowd: usize,
    /// Whether members commit after each heartbeat.
    pub commits: bool,
    /// Answers before this do not count.
    pub warm_up: Duration,
    /// How long to measure after that.
    pub duration: Duration,
}

/// A member of a group, in a generation.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) stream: TcpStream,
    pub(super) group: String,
    pub(super) id: String,
    pub(super) generation: i32,
    pub(super) is_leader: bool,
}

/// How a member joins.
#[derive(Clone, Copy, Debug)]
pub(super) struct Joining<'a> {
    pub(super) rebalance_timeout_ms: i32,
    /// Best first.
    pub(super) protocols: &'a [String],
}

impl Joining<'_> {
    /// A join; `member` is empty for one that has no id yet.
    pub(super) fn request(self, group: &str, member: &str) -> Vec<u8> {
        request(Api::JoinGroup, 2, 1, |w| {
            w.string(false, group).i32(SESSION_TIMEOUT_MS).i32(self.rebalance_timeout_ms);
            w.string(false, member).string(false, "consumer");
            w.length(false, self.protocols.len());
            for protocol in self.protocols {
                w.string(false, protocol).length(false, 4).raw(b"meta");
            }
        })
    }
}

/// Runs the load. The latency is that of heartbeats.
pub fn run(load: &Groups) -> anyhow::Result<Load> {
    raise_open_files((load.groups * load.members + load.hanging * 2 + load.crowd) as u64 + 256)?;
    let plain = ["range".to_owned()];
    let joining = Joining { rebalance_timeout_ms: REBALANCE_TIMEOUT_MS, protocols: &plain };
    let members = form(load.broker, "bench-group", load.groups, load.members, joining)?;
    let churn = (load.crowd > 0)
        .then(|| Churn::start(load.broker, load.hanging, load.crowd))
        .transpose()?;
    let lanes = members.into_iter().map(|member| member.into_lane(load)).collect();
    let outcome = closed_loop::run(lanes, load.warm_up, |elapsed| elapsed >= load.duration)?;
    churn.map_or(Ok(()), Churn::stop)?;
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

/// Lets all groups form at once: a group waits a while for its first members.
pub(super) fn form(
    broker: SocketAddr,
    prefix: &str,
    groups: usize,
    members: usize,
    how: Joining<'_>,
) -> anyhow::Result<Vec<Member>> {
    let mut joining = Vec::with_capacity(groups * members);
    for group in 0..groups {
        for _ in 0..members {
            let mut stream = connect(broker).context("connect a member")?;
            let group = format!("{prefix}-{group}");
            stream.write_all(&how.request(&group, ""))?;
            joining.push((stream, group));
        }
    }
    let mut frame = Vec::new();
    let mut formed = Vec::with_capacity(joining.len());
    for (stream, group) in joining {
        read_frame(&stream, &mut frame).context("read the answer to JoinGroup")?;
        let (generation, id, all) =
            joined(&frame).context("the answer to JoinGroup is cut short")??;
        let is_leader = !all.is_empty();
        let mut member = Member { stream, group, id, generation, is_leader };
        let sync = member.sync(&all);
        member.stream.write_all(&sync)?;
        formed.push(member);
    }
    for member in &formed {
        read_frame(&member.stream, &mut frame).context("read the answer to SyncGroup")?;
        synced(&frame)?;
    }
    Ok(formed)
}

/// Looks that a sync was answered without an error.
pub(super) fn synced(frame: &[u8]) -> anyhow::Result<()> {
    let answer = simple(frame).context("the answer to SyncGroup is cut short")?;
    ensure!(answer.code == 0, "sync was refused. code=`{}`", answer.code);
    Ok(())
}

pub(super) type Joined = anyhow::Result<(i32, String, Vec<String>)>;

/// Generation, member id and, for the leader, all members.
pub(super) fn joined(frame: &[u8]) -> Option<Joined> {
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
pub(super) fn simple(frame: &[u8]) -> Option<Answer> {
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
    pub(super) fn sync(&self, all: &[String]) -> Vec<u8> {
        request(Api::SyncGroup, 2, 2, |w| {
            w.string(false, &self.group).i32(self.generation).string(false, &self.id);
            w.length(false, all.len());
            for member in all {
                w.string(false, member).length(false, 4).raw(b"part");
            }
        })
    }

    pub(super) fn heartbeat(&self) -> Vec<u8> {
        request(Api::Heartbeat, 2, 3, |w| {
            w.string(false, &self.group).i32(self.generation).string(false, &self.id);
        })
    }

    fn into_lane(self, load: &Groups) -> Lane {
        let mut turns = vec![Turn { request: self.heartbeat(), read: simple }];
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
