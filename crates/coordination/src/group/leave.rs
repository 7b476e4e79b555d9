//! LeaveGroup: members go, one or several, by member id or by instance id.

use std::sync::Arc;

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
        let mut has_left = false;
        let mut outcomes = Vec::with_capacity(members.len());
        for member in members {
            let outcome = self.leave_one(&member, turn);
            has_left |= outcome.is_ok();
            outcomes.push((member, outcome));
        }
        if has_left {
            match self.state {
                GroupState::Stable | GroupState::CompletingRebalance => {
                    self.prepare_rebalance(turn);
                }
                GroupState::PreparingRebalance => self.maybe_complete_join(turn),
                GroupState::Empty => {}
            }
        }
        outcomes
    }

    fn leave_one(&mut self, member: &LeavingMember, turn: &mut Turn<'_>) -> Result<(), GroupError> {
        if member.member.is_empty() {
            // An administrator removes a static member, whose member id it does not know.
            let instance = member.instance.as_ref();
            let id = instance.and_then(|instance| self.statics.get(instance)).map(Arc::clone);
            self.remove_leaving(&id.ok_or(GroupError::UnknownMember)?, turn);
            return Ok(());
        }
        if self.pending_joins.remove(&member.member) {
            turn.timers.cancel(&self.session_key(&member.member));
            return Ok(());
        }
        self.check_member(&member.member, member.instance.as_deref())?;
        self.remove_leaving(&member.member, turn);
        Ok(())
    }

    fn remove_leaving(&mut self, id: &MemberId, turn: &mut Turn<'_>) {
        turn.timers.cancel(&self.session_key(id));
        turn.drop_parked(self.members.take_parked(id));
        self.remove(id);
    }
}
