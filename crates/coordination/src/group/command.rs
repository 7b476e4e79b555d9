//! What groups are asked, in Kafka's words and without its wire.

use std::sync::Arc;

use bytes::Bytes;
use strandline_model::TopicId;

use super::offer::Offer;

/// A group's name.
pub type GroupId = Arc<str>;
/// A member's id; empty for one that has none yet.
pub type MemberId = Arc<str>;

/// A request to the coordinator.
#[derive(Clone, Debug)]
pub enum GroupCommand {
    /// Become a member, or stay one in the next generation.
    Join(Box<JoinRequest>),
    /// Fetch the assignment; from the leader: hand out the assignments.
    Sync(SyncRequest),
    /// Still alive.
    Heartbeat(MemberRequest),
    /// Members go.
    Leave(LeaveRequest),
    /// Keep positions.
    Commit(CommitRequest),
    /// Tell positions.
    Fetch(FetchRequest),
    /// Forget positions.
    DeleteOffsets(DeleteOffsetsRequest),
    /// Forget an empty group with all its positions.
    DeleteGroup(GroupId),
    /// Tell all of one group.
    Describe(GroupId),
    /// Tell of all groups.
    List,
    /// The topic is gone: its positions go too.
    ForgetTopic(TopicId),
    /// The topic is called so from now on: it was brought back, perhaps under another name.
    NameTopic(TopicId, Arc<str>),
}

/// A JoinGroup request.
#[derive(Clone, Debug)]
pub struct JoinRequest {
    /// Which group.
    pub group: GroupId,
    /// Empty for a member that has no id yet.
    pub member: MemberId,
    /// `group.instance.id` of a static member (KIP-345).
    pub instance: Option<Arc<str>>,
    /// The id that the member gets when it has none: fresh, minted by the driver.
    pub new_member: MemberId,
    /// The client's name of itself.
    pub client_id: Arc<str>,
    /// Where the client is, as Kafka prints an address.
    pub client_host: Arc<str>,
    /// How long the member may be silent.
    pub session_timeout_ms: i32,
    /// How long a rebalance waits for the member.
    pub rebalance_timeout_ms: i32,
    /// `consumer`, `connect`, ….
    pub protocol_type: Arc<str>,
    /// What it can use.
    pub offer: Offer,
    /// Whether a dynamic member without id must come again with the one that it is given (v4).
    pub requires_member_id: bool,
    /// Whether a leader that comes back can be told to keep the assignment (v9, KIP-814).
    pub may_skip_assignment: bool,
    /// Why the client joins, in its words (v8, KIP-800); empty when it does not say.
    pub reason: Arc<str>,
}

/// A member that names itself and the generation that it is in.
#[derive(Clone, Debug)]
pub struct MemberRequest {
    /// Which group.
    pub group: GroupId,
    /// Which member.
    pub member: MemberId,
    /// Its `group.instance.id`.
    pub instance: Option<Arc<str>>,
    /// The generation that it believes to be current.
    pub generation: i32,
}

/// A SyncGroup request.
#[derive(Clone, Debug)]
pub struct SyncRequest {
    /// Who asks.
    pub who: MemberRequest,
    /// What the member believes to be the group's; not checked when absent.
    pub protocol_type: Option<Arc<str>>,
    /// What the member believes to be the group's; not checked when absent.
    pub protocol: Option<Arc<str>>,
    /// The leader's assignments, by member.
    pub assignments: Vec<(MemberId, Bytes)>,
}

/// A LeaveGroup request.
#[derive(Clone, Debug)]
pub struct LeaveRequest {
    /// Which group.
    pub group: GroupId,
    /// Who leaves.
    pub members: Vec<LeavingMember>,
}

/// One that leaves: by member id, or, with an empty one, by instance id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeavingMember {
    /// Its member id, or empty.
    pub member: MemberId,
    /// Its `group.instance.id`.
    pub instance: Option<Arc<str>>,
    /// Why it leaves, in its client's words (v5, KIP-800); empty when that does not say.
    pub reason: Arc<str>,
}

/// An OffsetCommit request.
#[derive(Clone, Debug)]
pub struct CommitRequest {
    /// Who commits; generation −1 with an empty member id for a consumer that is in no group.
    pub who: MemberRequest,
    /// How long the offsets are to be kept (v2 to v4); `None` for as long as the broker says.
    pub retention_ms: Option<i64>,
    /// Whether the client knows the error for a group that does not exist (v9).
    pub knows_missing_group: bool,
    /// What is committed.
    pub topics: Vec<CommitTopic>,
}

/// Positions in one topic.
#[derive(Clone, Debug)]
pub struct CommitTopic {
    /// The topic's identity.
    pub topic_id: TopicId,
    /// Its name.
    pub name: Arc<str>,
    /// By partition.
    pub partitions: Vec<CommitPartition>,
}

/// A position in one partition.
#[derive(Clone, Debug)]
pub struct CommitPartition {
    /// The partition's index as the wire has it.
    pub index: i32,
    /// The next offset to read. Kafka keeps any number.
    pub offset: i64,
    /// The leader epoch of the record before it; −1 when unknown.
    pub leader_epoch: i32,
    /// A note of the client.
    pub metadata: Arc<str>,
}

/// An OffsetFetch request for one group.
#[derive(Clone, Debug)]
pub struct FetchRequest {
    /// Which group.
    pub group: GroupId,
    /// Which partitions; all that have a position for `None`.
    pub topics: Option<Vec<(TopicId, Vec<i32>)>>,
}

/// An OffsetDelete request.
#[derive(Clone, Debug)]
pub struct DeleteOffsetsRequest {
    /// Which group.
    pub group: GroupId,
    /// Of which partitions.
    pub topics: Vec<DeleteTopic>,
}

/// Partitions of one topic whose positions are to go.
#[derive(Clone, Debug)]
pub struct DeleteTopic {
    /// The topic's identity.
    pub topic_id: TopicId,
    /// Its name.
    pub name: Arc<str>,
    /// The partitions' indexes as the wire has them.
    pub partitions: Vec<i32>,
}
