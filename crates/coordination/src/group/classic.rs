//! A classic group: its members, its generation, and what may be asked of it.
//!
//! The moves between states are in `rebalance.rs`; what requests do is in `join.rs`, `sync.rs` and
//! `leave.rs`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use strandline_model::Timestamp;

use super::cause::Rebalance;
use super::command::{GroupId, MemberId};
use super::error::GroupError;
use super::member::{Member, Members};
use super::offer::Offer;
use super::reply::{GroupDescription, GroupListing};
use super::row::{GroupSnapshot, MemberSnapshot};
use super::state::GroupState;
use super::subscription::subscribed_topics;
use super::turn::{TimerKey, Turn};

/// What Kafka's consumers call their protocols.
const CONSUMER: &str = "consumer";

/// See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct ClassicGroup {
    pub(super) id: GroupId,
    pub(super) state: GroupState,
    /// When the group came into its state.
    pub(super) since: Timestamp,
    /// Why it left its last generation; nothing before it first did.
    pub(super) rebalance: Option<Rebalance>,
    /// The rebalance under way is the first since the group was empty.
    pub(super) is_initial: bool,
    pub(super) generation: i32,
    pub(super) protocol_type: Option<Arc<str>>,
    pub(super) protocol: Option<Arc<str>>,
    pub(super) leader: Option<MemberId>,
    pub(super) members: Members,
    /// Member ids by `group.instance.id`.
    pub(super) statics: BTreeMap<Arc<str>, MemberId>,
    /// Ids that were given out and did not join yet (KIP-394).
    pub(super) pending_joins: BTreeSet<MemberId>,
    /// Members of this generation that did not fetch their assignment yet.
    pub(super) pending_syncs: BTreeSet<MemberId>,
    /// The topics that consumers read; `None` when that is not known.
    pub(super) subscribed: Option<BTreeSet<String>>,
    /// How long an initial rebalance may still be put off, and whether somebody came meanwhile.
    pub(super) initial: InitialDelay,
}

/// How an initial rebalance waits for more members.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct InitialDelay {
    /// The delay under way.
    pub(super) delay_ms: u64,
    /// What may be added.
    pub(super) remaining_ms: u64,
    /// Whether a member was added during the delay.
    pub(super) member_added: bool,
}

impl ClassicGroup {
    /// A group that nobody has joined.
    pub(super) fn new(id: GroupId, now: Timestamp) -> Self {
        Self {
            id,
            state: GroupState::Empty,
            since: now,
            rebalance: None,
            is_initial: false,
            generation: 0,
            protocol_type: None,
            protocol: None,
            leader: None,
            members: Members::default(),
            statics: BTreeMap::new(),
            pending_joins: BTreeSet::new(),
            pending_syncs: BTreeSet::new(),
            subscribed: None,
            initial: InitialDelay { delay_ms: 0, remaining_ms: 0, member_added: false },
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.state == GroupState::Empty
    }

    pub(super) fn is_leader(&self, member: &str) -> bool {
        self.leader.as_deref() == Some(member)
    }

    pub(super) fn uses_consumer_protocol(&self) -> bool {
        self.protocol_type.as_deref() == Some(CONSUMER)
    }

    /// Whether every member waits to join the next generation, and nobody is expected besides.
    pub(super) fn all_joined(&self) -> bool {
        self.pending_joins.is_empty() && self.members.all_joined()
    }

    /// The longest that any member asks a rebalance to wait.
    pub(super) fn rebalance_timeout_ms(&self) -> u64 {
        let longest = self.members.iter().map(|member| member.rebalance_timeout_ms).max();
        u64::try_from(longest.unwrap_or(0)).unwrap_or(0)
    }

    /// Whether `member` is who it says it is.
    pub(super) fn check_member(
        &self,
        member: &str,
        instance: Option<&str>,
    ) -> Result<(), GroupError> {
        if let Some(instance) = instance {
            match self.statics.get(instance) {
                None => return Err(GroupError::UnknownMember),
                Some(current) if &**current != member => return Err(GroupError::FencedInstance),
                Some(_) => {}
            }
        }
        if self.members.contains(member) { Ok(()) } else { Err(GroupError::UnknownMember) }
    }

    /// Whether a member that speaks these protocols can be in the group.
    pub(super) fn supports(&self, protocol_type: &str, offer: &Offer) -> bool {
        if self.is_empty() {
            return !protocol_type.is_empty() && !offer.is_empty();
        }
        self.protocol_type.as_deref() == Some(protocol_type)
            && self.members.have_in_common(offer, self.protocol.as_deref())
    }

    /// See [`Members::favourite`].
    pub(super) fn select_protocol(&self) -> Option<Arc<str>> {
        self.members.favourite(self.leader.as_deref())
    }

    /// Adds a member that is in none of the maps.
    pub(super) fn add(&mut self, member: Member, protocol_type: &Arc<str>) {
        if self.members.is_empty() {
            self.protocol_type = Some(Arc::clone(protocol_type));
        }
        if let Some(instance) = &member.instance {
            self.statics.insert(Arc::clone(instance), Arc::clone(&member.id));
        }
        self.leader.get_or_insert_with(|| Arc::clone(&member.id));
        self.pending_joins.remove(&member.id);
        self.members.insert(member);
    }

    /// Removes a member, whose parked requests must have been answered.
    pub(super) fn remove(&mut self, id: &str) -> Option<Member> {
        let removed = self.members.remove(id);
        if let Some(instance) = removed.as_ref().and_then(|member| member.instance.as_ref()) {
            self.statics.remove(instance);
        }
        if self.is_leader(id) {
            self.leader = self.members.ids().next().map(Arc::clone);
        }
        self.pending_joins.remove(id);
        self.pending_syncs.remove(id);
        removed
    }

    /// Whether the next generation has a leader that has joined; makes another one leader if need be.
    pub(super) fn elect_joined_leader(&mut self) -> bool {
        let Some(leader) = self.leader.as_ref().and_then(|id| self.members.get(id)) else {
            return false;
        };
        if leader.has_joined() {
            return true;
        }
        let joined = self.members.iter().find(|member| member.has_joined());
        let Some(joined) = joined.map(|member| Arc::clone(&member.id)) else { return false };
        self.leader = Some(joined);
        true
    }

    pub(super) fn transition_to(&mut self, state: GroupState, now: Timestamp) {
        self.is_initial = self.is_empty() && state == GroupState::PreparingRebalance;
        self.state = state;
        self.since = now;
    }

    /// Whether consumers of the group read the topic, as far as that is known.
    pub(super) fn is_subscribed_to(&self, topic: &str) -> bool {
        match &self.subscribed {
            Some(topics) => topics.contains(topic),
            None => self.uses_consumer_protocol(),
        }
    }

    pub(super) fn compute_subscribed(&self) -> Option<BTreeSet<String>> {
        if !self.uses_consumer_protocol() {
            return None;
        }
        if self.members.is_empty() {
            return Some(BTreeSet::new());
        }
        let protocol = self.protocol.as_ref()?;
        let mut topics = BTreeSet::new();
        for member in self.members.iter() {
            topics.extend(subscribed_topics(&member.metadata(protocol))?);
        }
        Some(topics)
    }

    /// Sets the time at which `member` is given up if it stays silent.
    pub(super) fn keep_alive(&self, member: &Member, turn: &mut Turn<'_>) {
        let timeout_ms = u64::try_from(member.session_timeout_ms).unwrap_or(0);
        turn.set_timer(self.session_key(&member.id), timeout_ms);
    }

    pub(super) fn session_key(&self, member: &MemberId) -> TimerKey {
        TimerKey::Session(Arc::clone(&self.id), Arc::clone(member))
    }

    pub(super) fn listing(&self) -> GroupListing {
        GroupListing {
            group: Arc::clone(&self.id),
            protocol_type: self.protocol_type.clone().unwrap_or_default(),
            state: self.state,
        }
    }

    pub(super) fn description(&self) -> GroupDescription {
        let protocol = self.protocol.clone().filter(|_| self.state == GroupState::Stable);
        GroupDescription {
            state: self.state,
            generation: self.generation,
            rebalance: self.rebalance.clone(),
            protocol_type: self.protocol_type.clone().unwrap_or_default(),
            members: (self.members.iter())
                .map(|member| member.described(protocol.as_deref()))
                .collect(),
            protocol: protocol.unwrap_or_default(),
        }
    }

    /// What is kept of the group: its members only as far as they have an assignment.
    pub(super) fn snapshot(&self) -> GroupSnapshot {
        let protocol = self.protocol.as_deref().unwrap_or_default();
        GroupSnapshot {
            protocol_type: self.protocol_type.clone().unwrap_or_default(),
            generation: self.generation,
            protocol: self.protocol.clone(),
            leader: self.leader.clone(),
            since: self.since,
            rebalance: self.rebalance.clone(),
            members: (self.members.iter())
                .map(|member| MemberSnapshot {
                    id: Arc::clone(&member.id),
                    instance: member.instance.clone(),
                    client_id: Arc::clone(&member.client_id),
                    client_host: Arc::clone(&member.client_host),
                    session_timeout_ms: member.session_timeout_ms,
                    rebalance_timeout_ms: member.rebalance_timeout_ms,
                    subscription: member.metadata(protocol),
                    assignment: member.assignment.clone(),
                })
                .collect(),
        }
    }

    /// The group that a snapshot describes: stable with its members, or empty.
    pub(super) fn restore(id: GroupId, snapshot: GroupSnapshot) -> Self {
        let mut group = Self::new(id, snapshot.since);
        let name = snapshot.protocol.clone().unwrap_or_default();
        for member in snapshot.members {
            let member = Member::restored(member, &name);
            group.add(member, &snapshot.protocol_type);
        }
        if !group.members.is_empty() {
            group.state = GroupState::Stable;
        }
        group.generation = snapshot.generation;
        group.rebalance = snapshot.rebalance;
        group.protocol_type = Some(snapshot.protocol_type).filter(|kind| !kind.is_empty());
        group.protocol = snapshot.protocol;
        group.leader = snapshot.leader;
        group.subscribed = group.compute_subscribed();
        group
    }
}
