//! What groups answer.

use std::sync::Arc;

use bytes::Bytes;
use strandline_model::TopicId;

use super::cause::Rebalance;
use super::command::{LeavingMember, MemberId};
use super::error::GroupError;
use super::offsets::CommittedOffset;
use super::state::GroupState;

/// The answer to a [`GroupCommand`](super::GroupCommand).
#[derive(Clone, Debug)]
pub enum GroupReply {
    /// To a join.
    Join(Result<Box<Joined>, JoinRefused>),
    /// To a sync.
    Sync(Result<Synced, GroupError>),
    /// To a heartbeat.
    Heartbeat(Result<(), GroupError>),
    /// To a leave: each member with what came of it.
    Leave(Vec<(LeavingMember, Result<(), GroupError>)>),
    /// To a commit: for each topic and partition of the request, in its order.
    Commit(Result<Vec<Vec<CommitOutcome>>, GroupError>),
    /// To a fetch; nothing when there is no such group.
    Fetch(Vec<FetchedTopic>),
    /// To a deletion of offsets: for each topic whether its offsets are gone.
    DeleteOffsets(Result<Vec<DeleteOutcome>, GroupError>),
    /// To a deletion of a group.
    DeleteGroup(Result<(), GroupError>),
    /// To a description; `None` when there is no such group.
    Describe(Option<Box<GroupDescription>>),
    /// To a listing.
    List(Vec<GroupListing>),
    /// It is done.
    Done,
}

/// A member of the current generation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Joined {
    /// The generation.
    pub generation: i32,
    /// What the group speaks.
    pub protocol_type: Option<Arc<str>>,
    /// What was chosen.
    pub protocol: Option<Arc<str>>,
    /// Who assigns.
    pub leader: MemberId,
    /// Who is answered.
    pub member: MemberId,
    /// Everybody, for the leader only.
    pub members: Vec<JoinedMember>,
    /// Whether the leader is to keep the assignment as it is.
    pub skip_assignment: bool,
}

/// A member as the leader sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinedMember {
    /// Its id.
    pub member: MemberId,
    /// Its `group.instance.id`.
    pub instance: Option<Arc<str>>,
    /// What it said under the chosen protocol.
    pub metadata: Bytes,
}

/// A join that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JoinRefused {
    /// The id that the answer names.
    pub member: MemberId,
    /// Why.
    pub error: GroupError,
}

/// An assignment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Synced {
    /// What the group speaks.
    pub protocol_type: Option<Arc<str>>,
    /// What was chosen.
    pub protocol: Option<Arc<str>>,
    /// The member's share, opaque.
    pub assignment: Bytes,
}

/// What came of committing one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommitOutcome {
    /// Kept.
    Committed,
    /// Not kept: the note is too long.
    MetadataTooLarge,
}

/// What came of deleting the offsets of one topic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeleteOutcome {
    /// They are gone, if there were any.
    Deleted,
    /// A member reads the topic.
    Subscribed,
}

/// Positions in one topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FetchedTopic {
    /// The topic's identity.
    pub topic_id: TopicId,
    /// By partition; `None` where there is none.
    pub partitions: Vec<(i32, Option<CommittedOffset>)>,
}

/// All that is told of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupDescription {
    /// Its state.
    pub state: GroupState,
    /// Its generation, or the last one that it had.
    pub generation: i32,
    /// Why it left its last generation; nothing when it never did.
    pub rebalance: Option<Rebalance>,
    /// What its members speak; empty when none ever did.
    pub protocol_type: Arc<str>,
    /// What was chosen; empty when the group is not stable.
    pub protocol: Arc<str>,
    /// Its members.
    pub members: Vec<DescribedMember>,
}

/// All that is told of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DescribedMember {
    /// Its id.
    pub member: MemberId,
    /// Its `group.instance.id`.
    pub instance: Option<Arc<str>>,
    /// Its client's name.
    pub client_id: Arc<str>,
    /// Where it is.
    pub client_host: Arc<str>,
    /// What it said under the chosen protocol; empty when the group is not stable.
    pub metadata: Bytes,
    /// Its share of the last assignment.
    pub assignment: Bytes,
}

/// A line of a listing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupListing {
    /// The group.
    pub group: Arc<str>,
    /// What its members speak; empty when none ever did.
    pub protocol_type: Arc<str>,
    /// Its state.
    pub state: GroupState,
}
