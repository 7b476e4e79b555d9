//! JoinGroup.

use std::sync::Arc;

use super::cause::{RebalanceCause, Why};
use super::classic::ClassicGroup;
use super::command::{JoinRequest, MemberId};
use super::error::GroupError;
use super::member::Member;
use super::reply::GroupReply;
use super::state::GroupState;
use super::turn::Turn;
use crate::machine::ReplyToken;

impl ClassicGroup {
    /// A join of this group, which the caller has made if the member has no id yet.
    pub(super) fn join(&mut self, request: &JoinRequest, token: ReplyToken, turn: &mut Turn<'_>) {
        let no_member = MemberId::default();
        if !self.accepts(&request.member, turn.config.max_size) {
            self.forget_refused(&request.member, turn);
            turn.refuse_join(token, &no_member, GroupError::GroupFull);
            self.maybe_complete_join(turn);
        } else if !self.supports(&request.protocol_type, &request.offer) {
            turn.refuse_join(token, &request.member, GroupError::InconsistentProtocol);
        } else if !self.has_room_for_offer(request, turn.config.offer_bytes_max) {
            turn.refuse_join(token, &request.member, GroupError::GroupFull);
        } else if request.member.is_empty() {
            self.join_without_id(request, token, turn);
        } else {
            self.join_with_id(request, token, turn);
        }
    }

    /// Whether there is room for `member`.
    fn accepts(&self, member: &str, max_size: usize) -> bool {
        if member.is_empty() && self.pending_joins.len() >= max_size {
            return false;
        }
        let known = self.members.get(member);
        match self.state {
            GroupState::Empty => true,
            // Counted by those that have joined: so a group that is too large shrinks with the next
            // generation, and whoever comes last is out.
            GroupState::PreparingRebalance => {
                known.is_some_and(Member::has_joined) || self.members.joined_count() < max_size
            }
            GroupState::CompletingRebalance | GroupState::Stable => {
                known.is_some() || self.members.len() < max_size
            }
        }
    }

    /// Whether what all members offer stays within bounds with this join.
    fn has_room_for_offer(&self, request: &JoinRequest, bytes_max: usize) -> bool {
        let instance = request.instance.as_ref();
        let former = instance.and_then(|instance| self.statics.get(instance));
        let replaced = self.members.get(former.unwrap_or(&request.member));
        self.members.offer_bytes_with(replaced, &request.offer) <= bytes_max
    }

    /// A member that comes too late for a full group is none any more.
    fn forget_refused(&mut self, member: &MemberId, turn: &mut Turn<'_>) {
        turn.drop_parked(self.members.take_parked(member));
        if !member.is_empty() {
            turn.timers.cancel(&self.session_key(member));
        }
        self.remove(member);
    }

    fn join_without_id(&mut self, request: &JoinRequest, token: ReplyToken, turn: &mut Turn<'_>) {
        let id = &request.new_member;
        if let Some(instance) = &request.instance {
            match self.statics.get(instance).map(Arc::clone) {
                Some(old) => self.replace_static(&old, request, token, turn),
                None => self.add_and_rebalance(id, request, token, turn),
            }
        } else if request.requires_member_id {
            self.pending_joins.insert(Arc::clone(id));
            let timeout_ms = u64::try_from(request.session_timeout_ms).unwrap_or(0);
            turn.set_timer(self.session_key(id), timeout_ms);
            turn.refuse_join(token, id, GroupError::MemberIdRequired);
        } else {
            self.add_and_rebalance(id, request, token, turn);
        }
    }

    fn join_with_id(&mut self, request: &JoinRequest, token: ReplyToken, turn: &mut Turn<'_>) {
        let id = &request.member;
        if self.pending_joins.contains(id) && request.instance.is_none() {
            return self.add_and_rebalance(id, request, token, turn);
        }
        if let Err(error) = self.check_member(id, request.instance.as_deref()) {
            return turn.refuse_join(token, id, error);
        }
        let is_same = *self.members[id].offer() == request.offer;
        match self.state {
            // The leader may have seen something that the members' metadata does not show, such as
            // new partitions: its join always begins a rebalance.
            GroupState::Stable if self.is_leader(id) => {
                let leader = RebalanceCause::LeaderRejoined;
                let cause = if is_same { leader } else { RebalanceCause::MetadataChanged };
                self.update_and_rebalance(request, cause, token, turn);
            }
            // Its first answer was lost, most likely.
            GroupState::CompletingRebalance | GroupState::Stable if is_same => {
                let with_members = self.is_leader(id);
                let joined = self.joined(id, with_members);
                turn.out.reply(token, GroupReply::Join(Ok(Box::new(joined))));
            }
            GroupState::PreparingRebalance
            | GroupState::CompletingRebalance
            | GroupState::Stable => {
                self.update_and_rebalance(request, RebalanceCause::MetadataChanged, token, turn);
            }
            GroupState::Empty => turn.refuse_join(token, id, GroupError::UnknownMember),
        }
    }

    fn add_and_rebalance(
        &mut self,
        id: &MemberId,
        request: &JoinRequest,
        token: ReplyToken,
        turn: &mut Turn<'_>,
    ) {
        let member = Member::joining(Arc::clone(id), request, token);
        if self.state == GroupState::PreparingRebalance && self.is_initial {
            self.initial.member_added = true;
        }
        let why = Why::of(RebalanceCause::MemberJoined, &member, &request.reason);
        self.add(member, &request.protocol_type);
        // It can't send heartbeats before it is answered. If its client is gone, this ends it.
        turn.set_timer(self.session_key(id), turn.config.new_member_join_timeout_ms);
        self.rebalance_or_complete_join(why, turn);
    }

    fn update_and_rebalance(
        &mut self,
        request: &JoinRequest,
        cause: RebalanceCause,
        token: ReplyToken,
        turn: &mut Turn<'_>,
    ) {
        self.update(&request.member, request, token, turn);
        let why = Why::of(cause, &self.members[&request.member], &request.reason);
        self.rebalance_or_complete_join(why, turn);
    }

    fn update(
        &mut self,
        id: &MemberId,
        request: &JoinRequest,
        token: ReplyToken,
        turn: &mut Turn<'_>,
    ) {
        let Some(member) = self.members.get_mut(id) else { return };
        member.session_timeout_ms = request.session_timeout_ms;
        member.rebalance_timeout_ms = request.rebalance_timeout_ms;
        self.members.offer(id, request.offer.clone());
        // A join of the same member that is parked already ends: its client has sent another one
        // since, most likely on another connection.
        if let Some(old) = self.members.park_join(id, token) {
            turn.refuse_join(old, id, GroupError::RebalanceInProgress);
        }
    }

    /// A static member comes back without an id: it takes the place of its former self (KIP-345).
    fn replace_static(
        &mut self,
        old: &MemberId,
        request: &JoinRequest,
        token: ReplyToken,
        turn: &mut Turn<'_>,
    ) {
        let old_leader = self.leader.clone().unwrap_or_default();
        let id = &request.new_member;
        self.rename_static(old, id, turn);
        self.update(id, request, token, turn);
        let cause = RebalanceCause::StaticMemberReturned;
        let why = Why::of(cause, &self.members[id], &request.reason);
        match self.state {
            GroupState::Stable => {
                if self.select_protocol() == self.protocol {
                    self.readmit_static(id, request, &old_leader, turn);
                } else {
                    self.prepare_rebalance(why, turn);
                }
            }
            // The leader may be assigning to the old id just now.
            GroupState::CompletingRebalance => self.prepare_rebalance(why, turn),
            GroupState::PreparingRebalance => self.maybe_complete_join(turn),
            GroupState::Empty => unreachable!("an empty group has no static members"),
        }
    }

    fn rename_static(&mut self, old: &MemberId, new: &MemberId, turn: &mut Turn<'_>) {
        let parked_join = self.members.take_join(old);
        let Some(mut member) = self.members.remove(old) else { return };
        if let Some(token) = parked_join {
            turn.refuse_join(token, old, GroupError::FencedInstance);
        }
        if let Some(token) = member.awaiting_sync.take() {
            turn.refuse_sync(token, GroupError::FencedInstance);
        }
        turn.timers.cancel(&self.session_key(old));
        // As Kafka: who has not fetched its assignment yet is not waited for under its new id.
        self.pending_syncs.remove(old);
        member.id = Arc::clone(new);
        member.is_new = false;
        if let Some(instance) = &member.instance {
            self.statics.insert(Arc::clone(instance), Arc::clone(new));
        }
        if self.is_leader(old) {
            self.leader = Some(Arc::clone(new));
        }
        self.keep_alive(&member, turn);
        self.members.insert(member);
    }

    /// Nothing that matters changed: the member goes on in the current generation, and nobody
    /// rebalances.
    fn readmit_static(
        &mut self,
        id: &MemberId,
        request: &JoinRequest,
        old_leader: &MemberId,
        turn: &mut Turn<'_>,
    ) {
        let Some(row) = self.stable_row(turn.config.group_bytes_max) else {
            // The new generation tells everybody that the group is too large.
            return self.prepare_rebalance(Why::group(RebalanceCause::GroupTooLarge), turn);
        };
        turn.out.rows.push(row);
        let is_leader = self.is_leader(id);
        let mut joined = self.joined(id, is_leader && request.may_skip_assignment);
        if request.may_skip_assignment {
            joined.skip_assignment = is_leader;
        } else {
            // A client that knows nothing of it must not believe that it is to assign: it is told
            // the leader's old id.
            joined.leader = Arc::clone(old_leader);
        }
        if let Some(token) = self.members.take_join(id) {
            turn.out.reply(token, GroupReply::Join(Ok(Box::new(joined))));
        }
    }
}
