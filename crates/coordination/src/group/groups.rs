//! The machine: many groups, one deadline list.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use strandline_model::{Timestamp, TopicId};

use super::cause::{GroupEvent, RebalanceCause, Why};
use super::classic::ClassicGroup;
use super::command::{
    CommitRequest, DeleteOffsetsRequest, FetchRequest, GroupCommand, GroupId, JoinRequest,
    LeaveRequest, MemberRequest, SyncRequest,
};
use super::config::GroupConfig;
use super::error::GroupError;
use super::group::Group;
use super::reply::{CommitOutcome, DeleteOutcome, GroupReply};
use super::row::{GROUP_ID_BYTES_MAX, GroupRow};
use super::turn::{TimerKey, Turn};
use crate::machine::{Effects, Input, Machine, Now, ReplyToken};
use crate::timers::Timers;

/// Deadlines of one step. Further ones that are due have a step of their own.
const DEADLINES_PER_STEP: usize = 256;
/// Groups and positions, together, that one step looks through for what is not used any more. One
/// group is not divided.
const RETENTION_PER_STEP: usize = 4_096;

/// The coordinator of some groups.
#[derive(Clone, Debug)]
pub struct Groups {
    config: GroupConfig,
    all: BTreeMap<GroupId, Group>,
    timers: Timers<TimerKey>,
    /// The last group that the pass of retention under way has seen; `None` between two passes.
    retained_to: Option<GroupId>,
}

impl Groups {
    /// A coordinator without groups. Feed it what is kept, row by row, then call
    /// [`loaded`](Self::loaded).
    pub fn new(config: GroupConfig) -> Self {
        Self { config, all: BTreeMap::new(), timers: Timers::default(), retained_to: None }
    }

    /// Takes a row that is kept. `topic` is the name of the topic that an offset is of; `None` when
    /// there is no such topic any more. Rows may come in any order, before the first step only.
    pub fn restore(&mut self, now: Now, row: GroupRow, topic: Option<Arc<str>>) {
        match row {
            GroupRow::Group(id, Some(snapshot)) => {
                let offsets = self.all.remove(&id).map(|group| group.offsets).unwrap_or_default();
                let classic = ClassicGroup::restore(Arc::clone(&id), *snapshot);
                self.all.insert(id, Group::of(classic, offsets));
            }
            GroupRow::Offset(key, Some(offset)) => {
                let new = || Group::new(Arc::clone(&key.group), now.time);
                let group = self.all.entry(Arc::clone(&key.group)).or_insert_with(new);
                group.offsets.put(key.topic_id, topic, key.partition, offset);
            }
            GroupRow::Group(_, None) | GroupRow::Offset(_, None) => {}
        }
    }

    /// Every row was restored: members have their session timeout from now on.
    pub fn loaded(&mut self, now: Now, out: &mut Effects<GroupReply, GroupRow, GroupEvent>) {
        let Self { config, all: groups, timers, .. } = self;
        let mut turn = Turn { now, config, timers, out };
        turn.set_timer(TimerKey::Retention, turn.config.offsets_retention_check_interval_ms);
        for group in groups.values_mut() {
            let group = &mut group.classic;
            for member in group.members.iter() {
                group.keep_alive(member, &mut turn);
            }
            if group.members.len() > turn.config.max_size {
                let why = Why::group(RebalanceCause::GroupOverMaxSize);
                group.prepare_rebalance(why, &mut turn);
            }
        }
    }

    fn command(
        &mut self,
        command: GroupCommand,
        token: ReplyToken,
        now: Now,
        out: &mut Effects<GroupReply, GroupRow, GroupEvent>,
    ) {
        let Self { config, all: groups, timers, .. } = self;
        let mut turn = Turn { now, config, timers, out };
        let turn = &mut turn;
        let reply = match command {
            GroupCommand::Join(request) => return join(groups, &request, token, turn),
            GroupCommand::Sync(request) => return sync(groups, &request, token, turn),
            GroupCommand::Heartbeat(who) => GroupReply::Heartbeat(heartbeat(groups, &who, turn)),
            GroupCommand::Leave(request) => leave(groups, request, turn),
            GroupCommand::Commit(request) => GroupReply::Commit(commit(groups, &request, turn)),
            GroupCommand::Fetch(request) => fetch(groups, &request),
            GroupCommand::DeleteOffsets(request) => {
                GroupReply::DeleteOffsets(delete_offsets(groups, &request, turn))
            }
            GroupCommand::DeleteGroup(id) => GroupReply::DeleteGroup(delete(groups, &id, turn)),
            GroupCommand::Describe(id) => {
                let described = groups.get(&id).map(|group| Box::new(group.classic.description()));
                GroupReply::Describe(described)
            }
            GroupCommand::List => {
                GroupReply::List(groups.values().map(|group| group.classic.listing()).collect())
            }
            GroupCommand::ForgetTopic(topic_id) => {
                forget_topic(groups, topic_id, turn);
                GroupReply::Done
            }
            GroupCommand::NameTopic(topic_id, name) => {
                for group in groups.values_mut() {
                    group.offsets.name_topic(topic_id, &name);
                }
                GroupReply::Done
            }
        };
        turn.out.reply(token, reply);
    }

    fn deadline(
        &mut self,
        key: TimerKey,
        now: Now,
        out: &mut Effects<GroupReply, GroupRow, GroupEvent>,
    ) {
        let Self { config, all: groups, timers, retained_to } = self;
        let mut turn = Turn { now, config, timers, out };
        match key {
            TimerKey::Retention => {
                *retained_to = expire_some(groups, retained_to.take(), &mut turn);
                let interval_ms = turn.config.offsets_retention_check_interval_ms;
                let after_ms = if retained_to.is_some() { 0 } else { interval_ms };
                turn.set_timer(TimerKey::Retention, after_ms);
            }
            TimerKey::Session(id, member) => {
                if let Some(group) = groups.get_mut(&id) {
                    group.classic.session_deadline(&member, &mut turn);
                }
            }
            TimerKey::Join(id) => {
                if let Some(group) = groups.get_mut(&id) {
                    group.classic.join_deadline(&mut turn);
                }
            }
            TimerKey::Sync(id) => {
                if let Some(group) = groups.get_mut(&id) {
                    group.classic.sync_deadline(&mut turn);
                }
            }
        }
    }
}

impl Machine for Groups {
    type Command = GroupCommand;
    type Reply = GroupReply;
    type Row = GroupRow;
    type Event = GroupEvent;

    fn step(
        &mut self,
        now: Now,
        input: Input<GroupCommand>,
        out: &mut Effects<GroupReply, GroupRow, GroupEvent>,
    ) {
        match input {
            Input::Command(token, command) => self.command(command, token, now, out),
            Input::DeadlinePassed => {
                // As many as are due when it begins: one that sets another for now can't go on for ever.
                for _ in 0..self.timers.due_count(now.elapsed, DEADLINES_PER_STEP) {
                    let Some(key) = self.timers.pop_due(now.elapsed) else { return };
                    self.deadline(key, now, out);
                }
            }
        }
    }

    fn next_deadline(&self) -> Option<Duration> {
        self.timers.next()
    }
}

type Map = BTreeMap<GroupId, Group>;

/// Looks through the groups after `after` for what is not used any more, as many as a step may.
/// Returns the last one if there are more.
fn expire_some(groups: &mut Map, after: Option<GroupId>, turn: &mut Turn<'_>) -> Option<GroupId> {
    let from = after.map_or(Bound::Unbounded, Bound::Excluded);
    let mut unused = Vec::new();
    let mut seen = 0;
    let mut rest = None;
    for (id, group) in groups.range_mut((from, Bound::Unbounded)) {
        seen += 1 + group.offsets.count();
        if group.expire(turn) {
            group.remove_rows(turn);
            unused.push(Arc::clone(id));
        }
        if seen >= RETENTION_PER_STEP {
            rest = Some(Arc::clone(id));
            break;
        }
    }
    for id in unused {
        groups.remove(&id);
    }
    rest
}

fn join(groups: &mut Map, request: &JoinRequest, token: ReplyToken, turn: &mut Turn<'_>) {
    if !is_name(&request.group) {
        return turn.refuse_join(token, &request.member, GroupError::InvalidGroupId);
    }
    let session_ms = i64::from(request.session_timeout_ms);
    let bounds = turn.config.min_session_timeout_ms..=turn.config.max_session_timeout_ms;
    if !bounds.contains(&session_ms) {
        return turn.refuse_join(token, &request.member, GroupError::InvalidSessionTimeout);
    }
    if request.offer.len() > turn.config.member_protocols_max {
        return turn.refuse_join(token, &request.member, GroupError::TooManyProtocols);
    }
    let is_new = !groups.contains_key(&request.group);
    if is_new && !request.member.is_empty() {
        return turn.refuse_join(token, &request.member, GroupError::UnknownMember);
    }
    let new = || Group::new(Arc::clone(&request.group), turn.now.time);
    let group = groups.entry(Arc::clone(&request.group)).or_insert_with(new);
    let rows_before = turn.out.rows.len();
    group.classic.join(request, token, turn);
    if is_new && turn.out.rows.len() == rows_before {
        // As Kafka: a group that was asked for is there, even when the join came to nothing.
        let fresh = ClassicGroup::new(Arc::clone(&request.group), turn.now.time);
        turn.out.rows.push(GroupRow::group(&request.group, fresh.snapshot()));
    }
}

fn sync(groups: &mut Map, request: &SyncRequest, token: ReplyToken, turn: &mut Turn<'_>) {
    if request.who.group.is_empty() {
        return turn.refuse_sync(token, GroupError::InvalidGroupId);
    }
    match groups.get_mut(&request.who.group) {
        Some(group) => group.classic.sync(request, token, turn),
        None => turn.refuse_sync(token, GroupError::UnknownMember),
    }
}

fn heartbeat(groups: &Map, who: &MemberRequest, turn: &mut Turn<'_>) -> Result<(), GroupError> {
    if who.group.is_empty() {
        return Err(GroupError::InvalidGroupId);
    }
    let group = groups.get(&who.group).ok_or(GroupError::UnknownMember)?;
    group.classic.heartbeat(who, turn)
}

fn leave(groups: &mut Map, request: LeaveRequest, turn: &mut Turn<'_>) -> GroupReply {
    let outcomes = if let Some(group) = groups.get_mut(&request.group) {
        group.classic.leave(request.members, turn)
    } else {
        let unknown = |member| (member, Err(GroupError::UnknownMember));
        request.members.into_iter().map(unknown).collect()
    };
    GroupReply::Leave(outcomes)
}

fn commit(
    groups: &mut Map,
    request: &CommitRequest,
    turn: &mut Turn<'_>,
) -> Result<Vec<Vec<CommitOutcome>>, GroupError> {
    let id = &request.who.group;
    // As Kafka, which lets old consumers commit for the group without a name.
    if id.len() > GROUP_ID_BYTES_MAX {
        return Err(GroupError::InvalidGroupId);
    }
    if !groups.contains_key(id) {
        if request.who.generation >= 0 {
            return Err(if request.knows_missing_group {
                GroupError::GroupNotFound
            } else {
                GroupError::IllegalGeneration
            });
        }
        groups.insert(Arc::clone(id), Group::new(Arc::clone(id), turn.now.time));
    }
    let group = groups.get_mut(id).expect("it is there, or was just made");
    group.commit(request, turn)
}

fn fetch(groups: &Map, request: &FetchRequest) -> GroupReply {
    let asked = request.topics.as_deref();
    let found = match groups.get(&request.group) {
        Some(group) => group.fetch(asked),
        None => Group::new(Arc::clone(&request.group), Timestamp::default()).fetch(asked),
    };
    GroupReply::Fetch(found)
}

fn delete_offsets(
    groups: &mut Map,
    request: &DeleteOffsetsRequest,
    turn: &mut Turn<'_>,
) -> Result<Vec<DeleteOutcome>, GroupError> {
    if request.group.is_empty() {
        return Err(GroupError::InvalidGroupId);
    }
    let group = groups.get_mut(&request.group).ok_or(GroupError::GroupNotFound)?;
    group.delete_offsets(request, turn)
}

fn delete(groups: &mut Map, id: &GroupId, turn: &mut Turn<'_>) -> Result<(), GroupError> {
    groups.get_mut(id).ok_or(GroupError::GroupNotFound)?.delete(turn)?;
    groups.remove(id);
    Ok(())
}

fn forget_topic(groups: &mut Map, topic_id: TopicId, turn: &mut Turn<'_>) {
    for (id, group) in groups {
        turn.out.rows.extend(group.offsets.remove_topic(id, topic_id));
    }
}

fn is_name(group: &str) -> bool {
    !group.is_empty() && group.len() <= GROUP_ID_BYTES_MAX
}
