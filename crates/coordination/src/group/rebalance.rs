//! How a classic group comes from one generation to the next.
//!
//! ```text
//!            first join                            all joined, or
//!   Empty ───────────────▶ PreparingRebalance ──── time is up ────▶ CompletingRebalance
//!     ▲                      │      ▲   ▲                              │        │
//!     └──── nobody left ─────┘      │   └── join, leave, expiry ───────┘        │ leader syncs
//!                                   └────── join, leave, expiry ──── Stable ◀───┘
//! ```

use std::sync::Arc;

use bytes::Bytes;

use super::cause::{GroupEvent, RebalanceCause, Why};
use super::classic::{ClassicGroup, InitialDelay};
use super::command::MemberId;
use super::error::GroupError;
use super::reply::{GroupReply, Joined};
use super::row::GroupRow;
use super::state::GroupState;
use super::turn::{TimerKey, Turn};

/// How long static members that did not come are waited for at least, before they are looked for
/// again: their own word may be no time at all.
const STATICS_AWAITED_MS_MIN: u64 = 1_000;

impl ClassicGroup {
    /// Something changed that asks for a new generation, or that one under way may have waited for.
    pub(super) fn rebalance_or_complete_join(&mut self, why: Why, turn: &mut Turn<'_>) {
        if self.state == GroupState::PreparingRebalance {
            self.maybe_complete_join(turn);
        } else {
            self.prepare_rebalance(why, turn);
        }
    }

    /// Begins a rebalance. The group must not be preparing one.
    pub(super) fn prepare_rebalance(&mut self, why: Why, turn: &mut Turn<'_>) {
        let rebalance = why.at(turn.now.time, self.generation);
        self.rebalance = Some(rebalance.clone());
        turn.out.events.push(GroupEvent::Rebalances(Arc::clone(&self.id), rebalance));
        if self.state == GroupState::CompletingRebalance {
            self.abandon_syncs(GroupError::RebalanceInProgress, turn);
        }
        self.pending_syncs.clear();
        turn.timers.cancel(&TimerKey::Sync(Arc::clone(&self.id)));
        let was_empty = self.is_empty();
        self.transition_to(GroupState::PreparingRebalance, turn.now.time);
        if was_empty {
            let delay_ms = turn.config.initial_rebalance_delay_ms;
            let remaining_ms = self.rebalance_timeout_ms().saturating_sub(delay_ms);
            // As Kafka: what the flag says of an earlier rebalance counts for this one.
            let member_added = self.initial.member_added;
            self.initial = InitialDelay { delay_ms, remaining_ms, member_added };
            turn.set_timer(TimerKey::Join(Arc::clone(&self.id)), delay_ms);
        } else if self.all_joined() {
            self.complete_join(turn);
        } else {
            turn.set_timer(TimerKey::Join(Arc::clone(&self.id)), self.rebalance_timeout_ms());
        }
    }

    /// Goes on to the next generation if nobody is waited for any more.
    pub(super) fn maybe_complete_join(&mut self, turn: &mut Turn<'_>) {
        // The first rebalance waits for its delay, whoever is there.
        if self.state == GroupState::PreparingRebalance && !self.is_initial && self.all_joined() {
            self.complete_join(turn);
        }
    }

    /// The time to join is up.
    pub(super) fn join_deadline(&mut self, turn: &mut Turn<'_>) {
        if self.state != GroupState::PreparingRebalance {
            return;
        }
        let InitialDelay { delay_ms, remaining_ms, member_added } = self.initial;
        if self.is_initial && member_added && remaining_ms != 0 {
            let next_ms = turn.config.initial_rebalance_delay_ms.min(remaining_ms);
            self.initial = InitialDelay {
                delay_ms: next_ms,
                remaining_ms: remaining_ms.saturating_sub(delay_ms),
                member_added: false,
            };
            turn.set_timer(TimerKey::Join(Arc::clone(&self.id)), next_ms);
            return;
        }
        self.complete_join(turn);
    }

    /// Begins the next generation with those that have joined.
    pub(super) fn complete_join(&mut self, turn: &mut Turn<'_>) {
        turn.timers.cancel(&TimerKey::Join(Arc::clone(&self.id)));
        let late: Vec<MemberId> = (self.members.iter())
            .filter(|member| !member.has_joined() && member.instance.is_none())
            .map(|member| Arc::clone(&member.id))
            .collect();
        for id in late {
            turn.timers.cancel(&self.session_key(&id));
            self.remove(&id);
        }
        if !self.elect_joined_leader() && !self.members.is_empty() {
            // Only static members are left, and none of them came: wait until they do or expire.
            let again_ms = self.rebalance_timeout_ms().max(STATICS_AWAITED_MS_MIN);
            turn.set_timer(TimerKey::Join(Arc::clone(&self.id)), again_ms);
            return;
        }
        // Kafka's number wraps too.
        self.generation = self.generation.wrapping_add(1);
        self.protocol = self.select_protocol();
        self.subscribed = self.compute_subscribed();
        self.pending_syncs.clear();
        if self.members.is_empty() {
            self.transition_to(GroupState::Empty, turn.now.time);
            turn.out.rows.push(GroupRow::group(&self.id, self.snapshot()));
            return;
        }
        self.transition_to(GroupState::CompletingRebalance, turn.now.time);
        self.answer_joins(turn);
        turn.set_timer(TimerKey::Sync(Arc::clone(&self.id)), self.rebalance_timeout_ms());
    }

    fn answer_joins(&mut self, turn: &mut Turn<'_>) {
        let ids: Vec<MemberId> = self.members.ids().map(Arc::clone).collect();
        for id in ids {
            let joined = self.joined(&id, self.is_leader(&id));
            let Some(member) = self.members.get_mut(&id) else { continue };
            member.is_new = false;
            if let Some(token) = self.members.take_join(&id) {
                turn.out.reply(token, GroupReply::Join(Ok(Box::new(joined))));
            }
            self.keep_alive(&self.members[&id], turn);
            self.pending_syncs.insert(id);
        }
    }

    /// What `member` is told of the current generation.
    pub(super) fn joined(&self, member: &MemberId, with_members: bool) -> Joined {
        let protocol = self.protocol.as_deref().unwrap_or_default();
        let members = self.members.iter().map(|member| member.joined(protocol));
        Joined {
            generation: self.generation,
            protocol_type: self.protocol_type.clone(),
            protocol: self.protocol.clone(),
            leader: self.leader.clone().unwrap_or_default(),
            member: Arc::clone(member),
            members: if with_members { members.collect() } else { Vec::new() },
            skip_assignment: false,
        }
    }

    /// A rebalance begins before the leader has assigned: who waits for an assignment joins again.
    pub(super) fn abandon_syncs(&mut self, error: GroupError, turn: &mut Turn<'_>) {
        let mut alive = Vec::new();
        for member in self.members.iter_mut() {
            member.assignment = Bytes::new();
            if let Some(token) = member.awaiting_sync.take() {
                turn.refuse_sync(token, error);
                alive.push(Arc::clone(&member.id));
            }
        }
        for id in alive {
            self.keep_alive(&self.members[&id], turn);
        }
    }

    /// The time to fetch assignments is up: who did not is out.
    pub(super) fn sync_deadline(&mut self, turn: &mut Turn<'_>) {
        let is_on = matches!(self.state, GroupState::CompletingRebalance | GroupState::Stable);
        if !is_on || self.pending_syncs.is_empty() {
            return;
        }
        let mut why = Why::group(RebalanceCause::AssignmentNotFetched);
        // The last one removed is the first by id.
        for id in std::mem::take(&mut self.pending_syncs).into_iter().rev() {
            turn.timers.cancel(&self.session_key(&id));
            if let Some(member) = self.remove(&id) {
                why = Why::of(RebalanceCause::AssignmentNotFetched, &member, "");
            }
        }
        self.prepare_rebalance(why, turn);
    }

    /// A member, or an id that was given out, was silent for too long.
    pub(super) fn session_deadline(&mut self, id: &MemberId, turn: &mut Turn<'_>) {
        if self.pending_joins.remove(id) {
            if self.state == GroupState::PreparingRebalance && self.all_joined() {
                self.complete_join(turn);
            }
            return;
        }
        let Some(member) = self.members.get(id) else { return };
        if member.is_waiting_for_us() {
            return;
        }
        let why = Why::of(RebalanceCause::SessionExpired, member, "");
        turn.drop_parked(self.members.take_parked(id));
        self.remove(id);
        match self.state {
            GroupState::Stable | GroupState::CompletingRebalance => {
                self.prepare_rebalance(why, turn);
            }
            GroupState::PreparingRebalance if self.all_joined() => self.complete_join(turn),
            GroupState::PreparingRebalance | GroupState::Empty => {}
        }
    }
}
