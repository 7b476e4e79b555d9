//! SyncGroup and Heartbeat.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use super::cause::{RebalanceCause, Why};
use super::classic::ClassicGroup;
use super::command::{MemberId, MemberRequest, SyncRequest};
use super::error::GroupError;
use super::reply::{GroupReply, Synced};
use super::row::{GroupRow, MemberSnapshot};
use super::state::GroupState;
use super::turn::{TimerKey, Turn};
use crate::machine::ReplyToken;

impl ClassicGroup {
    pub(super) fn sync(&mut self, request: &SyncRequest, token: ReplyToken, turn: &mut Turn<'_>) {
        if let Err(error) = self.check_sync(request) {
            return turn.refuse_sync(token, error);
        }
        let id = &request.who.member;
        match self.state {
            GroupState::Empty => turn.refuse_sync(token, GroupError::UnknownMember),
            GroupState::PreparingRebalance => {
                turn.refuse_sync(token, GroupError::RebalanceInProgress);
            }
            GroupState::CompletingRebalance => {
                let member = self.members.get_mut(id).expect("the member was checked");
                turn.park_sync(member, token);
                self.has_synced(id, turn);
                if self.is_leader(id) {
                    self.assign(&request.assignments, turn);
                }
            }
            GroupState::Stable => {
                self.has_synced(id, turn);
                let reply = GroupReply::Sync(Ok(self.synced(id)));
                turn.out.reply(token, reply);
            }
        }
    }

    fn check_sync(&self, request: &SyncRequest) -> Result<(), GroupError> {
        if self.is_empty() {
            return Err(GroupError::UnknownMember);
        }
        self.check_generation(&request.who)?;
        let differs = |theirs: &Option<Arc<str>>, ours: &Option<Arc<str>>| {
            theirs.is_some() && ours.is_some() && theirs != ours
        };
        if differs(&request.protocol_type, &self.protocol_type)
            || differs(&request.protocol, &self.protocol)
        {
            return Err(GroupError::InconsistentProtocol);
        }
        Ok(())
    }

    /// Whether the member is who it says, and in the group's generation.
    pub(super) fn check_generation(&self, who: &MemberRequest) -> Result<(), GroupError> {
        self.check_member(&who.member, who.instance.as_deref())?;
        if who.generation == self.generation { Ok(()) } else { Err(GroupError::IllegalGeneration) }
    }

    fn has_synced(&mut self, id: &MemberId, turn: &mut Turn<'_>) {
        self.pending_syncs.remove(id);
        if self.pending_syncs.is_empty() {
            turn.timers.cancel(&TimerKey::Sync(Arc::clone(&self.id)));
        }
    }

    /// The leader has assigned: the generation is complete, kept, and told to everybody who waits.
    fn assign(&mut self, assignments: &[(MemberId, Bytes)], turn: &mut Turn<'_>) {
        let assignments: BTreeMap<&MemberId, &Bytes> =
            assignments.iter().map(|(member, share)| (member, share)).collect();
        for member in self.members.iter_mut() {
            let share = assignments.get(&member.id);
            member.assignment = share.map(|&share| share.clone()).unwrap_or_default();
        }
        let Some(row) = self.stable_row(turn.config.group_bytes_max) else {
            self.abandon_syncs(GroupError::GroupTooLarge, turn);
            return self.prepare_rebalance(Why::group(RebalanceCause::GroupTooLarge), turn);
        };
        turn.out.rows.push(row);
        let ids: Vec<MemberId> = self.members.ids().map(Arc::clone).collect();
        for id in ids {
            let synced = self.synced(&id);
            let member = self.members.get_mut(&id).expect("the ids are those of the members");
            if let Some(token) = member.awaiting_sync.take() {
                turn.out.reply(token, GroupReply::Sync(Ok(synced)));
                self.keep_alive(&self.members[&id], turn);
            }
        }
        self.transition_to(GroupState::Stable, turn.now.time);
    }

    /// What is kept of a generation; `None` when it is too much.
    pub(super) fn stable_row(&self, bytes_max: usize) -> Option<GroupRow> {
        let snapshot = self.snapshot();
        let size = |member: &MemberSnapshot| member.subscription.len() + member.assignment.len();
        let bytes: usize = snapshot.members.iter().map(size).sum();
        (bytes <= bytes_max).then(|| GroupRow::group(&self.id, snapshot))
    }

    fn synced(&self, id: &MemberId) -> Synced {
        Synced {
            protocol_type: self.protocol_type.clone(),
            protocol: self.protocol.clone(),
            assignment: self.members[id].assignment.clone(),
        }
    }

    pub(super) fn heartbeat(
        &self,
        who: &MemberRequest,
        turn: &mut Turn<'_>,
    ) -> Result<(), GroupError> {
        self.check_generation(who)?;
        if self.is_empty() {
            return Err(GroupError::UnknownMember);
        }
        self.keep_alive(&self.members[&who.member], turn);
        if self.state == GroupState::PreparingRebalance {
            return Err(GroupError::RebalanceInProgress);
        }
        Ok(())
    }
}
