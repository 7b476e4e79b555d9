//! Why a group rebalances.

use std::sync::Arc;

use strandline_model::Timestamp;

use super::command::{GroupId, MemberId};
use super::member::Member;

/// The most that is kept of what a client says about it, in bytes.
const CLIENT_REASON_BYTES_MAX: usize = 256;

/// What happened that a group left its generation for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RebalanceCause {
    /// A member came.
    MemberJoined,
    /// A member went, of its own will or because an administrator removed it. A consumer that does not
    /// poll for `max.poll.interval.ms` leaves, too.
    MemberLeft,
    /// A member was silent for longer than its session lasts.
    SessionExpired,
    /// A member joined again and offers something else: other topics, other assignors, other
    /// partitions that it owns.
    MetadataChanged,
    /// The leader joined again: it may have seen new partitions.
    LeaderRejoined,
    /// A static member came back in the middle of a rebalance, or with another offer.
    StaticMemberReturned,
    /// A member did not fetch its assignment in time.
    AssignmentNotFetched,
    /// What members say and are assigned is too large to be kept.
    GroupTooLarge,
    /// The broker started with a smaller `group.max.size` than the group has members.
    GroupOverMaxSize,
}

impl RebalanceCause {
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 9] = [
        Self::MemberJoined,
        Self::MemberLeft,
        Self::SessionExpired,
        Self::MetadataChanged,
        Self::LeaderRejoined,
        Self::StaticMemberReturned,
        Self::AssignmentNotFetched,
        Self::GroupTooLarge,
        Self::GroupOverMaxSize,
    ];

    /// What it is called where it is told of.
    pub const fn name(self) -> &'static str {
        match self {
            Self::MemberJoined => "member_joined",
            Self::MemberLeft => "member_left",
            Self::SessionExpired => "session_expired",
            Self::MetadataChanged => "metadata_changed",
            Self::LeaderRejoined => "leader_rejoined",
            Self::StaticMemberReturned => "static_member_returned",
            Self::AssignmentNotFetched => "assignment_not_fetched",
            Self::GroupTooLarge => "group_too_large",
            Self::GroupOverMaxSize => "group_over_max_size",
        }
    }

    /// Its number in a row of the store; these are never given anew.
    pub(super) const fn number(self) -> u8 {
        self as u8
    }

    pub(super) fn of_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number)).copied()
    }
}

/// The last time that a group left its generation. What else happens until the next one begins does
/// not change it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rebalance {
    /// What happened.
    pub cause: RebalanceCause,
    /// When.
    pub at: Timestamp,
    /// The generation that was left.
    pub generation: i32,
    /// Of whom that is told; the first of several, nobody where it is about the group.
    pub member: Option<RebalanceMember>,
    /// What the client said about it, shortened to 256 bytes; empty when it said nothing.
    pub client_reason: Arc<str>,
}

/// A member that a group rebalanced for, as it was then.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RebalanceMember {
    /// Its id.
    pub id: MemberId,
    /// Its `group.instance.id`.
    pub instance: Option<Arc<str>>,
    /// Its client's name; empty for one that never joined.
    pub client_id: Arc<str>,
    /// Where it was; empty for one that never joined.
    pub client_host: Arc<str>,
}

/// What a group has done that nobody waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupEvent {
    /// It has left its generation.
    Rebalances(GroupId, Rebalance),
}

/// Why a rebalance is to begin.
#[derive(Clone, Debug)]
pub(super) struct Why {
    cause: RebalanceCause,
    member: Option<RebalanceMember>,
    client_reason: Arc<str>,
}

impl Why {
    /// Something about the group as a whole.
    pub(super) fn group(cause: RebalanceCause) -> Self {
        Self { cause, member: None, client_reason: Arc::default() }
    }

    /// Something about a member, and what its client says of it.
    pub(super) fn of(cause: RebalanceCause, member: &Member, client_reason: &str) -> Self {
        let member = RebalanceMember {
            id: Arc::clone(&member.id),
            instance: member.instance.clone(),
            client_id: Arc::clone(&member.client_id),
            client_host: Arc::clone(&member.client_host),
        };
        Self { cause, member: Some(member), client_reason: shortened(client_reason) }
    }

    /// Something about an id that was given to a client which has not joined with it.
    pub(super) fn of_id(cause: RebalanceCause, id: &MemberId, client_reason: &str) -> Self {
        let member = RebalanceMember { id: Arc::clone(id), ..RebalanceMember::default() };
        Self { cause, member: Some(member), client_reason: shortened(client_reason) }
    }

    pub(super) fn at(self, at: Timestamp, generation: i32) -> Rebalance {
        let Self { cause, member, client_reason } = self;
        Rebalance { cause, at, generation, member, client_reason }
    }
}

fn shortened(text: &str) -> Arc<str> {
    Arc::from(&text[..text.floor_char_boundary(CLIENT_REASON_BYTES_MAX)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_has_its_number_and_its_name() {
        for (number, cause) in RebalanceCause::ALL.into_iter().enumerate() {
            assert_eq!(usize::from(cause.number()), number);
            assert_eq!(RebalanceCause::of_number(cause.number()), Some(cause));
        }
        assert_eq!(RebalanceCause::of_number(9), None);
        let mut names: Vec<&str> = RebalanceCause::ALL.map(RebalanceCause::name).to_vec();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), RebalanceCause::ALL.len());
    }

    #[test]
    fn what_clients_say_is_shortened_between_characters() {
        assert_eq!(&*shortened("poll timeout"), "poll timeout");
        let long = "é".repeat(200);
        assert_eq!(&*shortened(&format!("a{long}")), format!("a{}", "é".repeat(127)));
    }
}
