//! Consumer groups of the classic protocol: who is in a group, who reads what, and how far.
//!
//! One [`Groups`] machine holds a part of all groups, each on its own: what one group waits for
//! delays no other, and a request costs what it says, or what its group is where a generation begins
//! or is complete. It knows topics by id, and by name only where members name them.
//!
//! # Invariants
//! - A group's members are in the map of members, those with an instance id also in that of statics.
//! - A member that is not waited for has a session deadline; so has an id that was given out.
//! - A join is parked only in `PreparingRebalance`, a sync only in `CompletingRebalance`; a member has
//!   at most one of each, so what is parked is bounded by members.
//! - What is answered about positions has its row in this step or an earlier one.
//!
//! # States
//!
//! In `rebalance.rs`.

mod cause;
mod classic;
mod command;
mod commit;
mod config;
mod error;
mod feed;
#[expect(clippy::module_inception, reason = "one group, among what there is of groups")]
mod group;
mod groups;
mod join;
mod leave;
mod member;
mod offer;
mod offsets;
mod rebalance;
mod reply;
mod row;
mod state;
mod subscription;
mod sync;
mod turn;

pub use cause::{GroupEvent, Rebalance, RebalanceCause, RebalanceMember};
pub use command::{
    CommitPartition, CommitRequest, CommitTopic, DeleteOffsetsRequest, DeleteTopic, FetchRequest,
    GroupCommand, GroupId, JoinRequest, LeaveRequest, LeavingMember, MemberId, MemberRequest,
    SyncRequest,
};
pub use config::GroupConfig;
pub use error::GroupError;
pub use feed::{FeedRecord, feed_partition};
pub use groups::Groups;
pub use offer::Offer;
pub use offsets::CommittedOffset;
pub use reply::{
    CommitOutcome, DeleteOutcome, DescribedMember, FetchedTopic, GroupDescription, GroupListing,
    GroupReply, JoinRefused, Joined, JoinedMember, Synced,
};
pub use row::{
    GROUP_ID_BYTES_MAX, GroupRow, GroupRowError, GroupSnapshot, MemberSnapshot, OffsetKey,
    bucket_of,
};
pub use state::GroupState;
