//! LeaveGroup: members go, one or several, by member id or by instance id.

use std::sync::Arc;

use super::cause::{RebalanceCause, Why};
use super::classic::ClassicGroup;
use super::command::{LeavingMember, MemberId};
use super::error::GroupError;
use super::state::GroupState;
use super::turn::Turn;

impl ClassicGroup {
    pub(super) fn leave(
        &mut self,
        members: Vec<LeavingMember>,
        turn: &mut Turn<'_>,
    ) -> Vec<(LeavingMember, Result<(), GroupError>)> {
        let mut why = None;
        let mut outcomes = Vec::with_capacity(members.len());
        for member in members {
            let outcome = self.leave_one(&member, turn);
            let outcome = outcome.map(|left| {
                why.get_or_insert(left);
            });
            outcomes.push((member, outcome));
        }
        if let Some(why) = why {
            match self.state {
                GroupState::Stable | GroupState::CompletingRebalance => {
                    self.prepare_rebalance(why, turn);
                }
                GroupState::PreparingRebalance => self.maybe_complete_join(turn),
                GroupState::Empty => {}
            }
        }
        outcomes
    }

    /// What is told of it if the others rebalance.
    fn leave_one(
        &mut self,
        member: &LeavingMember,
        turn: &mut Turn<'_>,
    ) -> Result<Why, GroupError> {
        if member.member.is_empty() {
            // An administrator removes a static member, whose member id it does not know.
            let instance = member.instance.as_ref();
            let id = instance.and_then(|instance| self.statics.get(instance)).map(Arc::clone);
            let id = id.ok_or(GroupError::UnknownMember)?;
            return Ok(self.remove_leaving(&id, &member.reason, turn));
        }
        if self.pending_joins.remove(&member.member) {
            turn.timers.cancel(&self.session_key(&member.member));
            return Ok(Why::of_id(RebalanceCause::MemberLeft, &member.member, &member.reason));
        }
        self.check_member(&member.member, member.instance.as_deref())?;
        Ok(self.remove_leaving(&member.member, &member.reason, turn))
    }

    fn remove_leaving(&mut self, id: &MemberId, reason: &str, turn: &mut Turn<'_>) -> Why {
        turn.timers.cancel(&self.session_key(id));
        turn.drop_parked(self.members.take_parked(id));
        match self.remove(id) {
            Some(member) => Why::of(RebalanceCause::MemberLeft, &member, reason),
            None => Why::of_id(RebalanceCause::MemberLeft, id, reason),
        }
    }
}
