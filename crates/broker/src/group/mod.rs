//! The group coordinator: consumer groups over the machines of `strandline_coordination`.
//!
//! Groups are spread over a few owners by a hash of their id, each with a thread where the program
//! has given them some. Within an owner no group waits for what another one waits for, because a
//! machine never waits; it does wait for the steps of others, whose cost is that of the request, or
//! of the group where a generation begins or ends.

pub(crate) mod feed;
mod keeper;

use std::sync::Arc;
use std::time::Duration;

use strandline_coordination::group::{
    CommitOutcome, CommitRequest, DeleteOffsetsRequest, DeleteOutcome, FetchRequest, FetchedTopic,
    GroupCommand, GroupConfig, GroupDescription, GroupError, GroupId, GroupListing, GroupReply,
    Groups, JoinRefused, JoinRequest, Joined, LeaveRequest, LeavingMember, MemberRequest,
    SyncRequest, Synced, bucket_of,
};
use strandline_model::config::BrokerConfig;
use strandline_model::{Limits, TopicId};
use strandline_storage::StorageError;
use tokio_util::sync::CancellationToken;

use crate::drive::{Drivers, Mailbox, Unavailable};
use crate::metrics::Metrics;
use crate::topic::Registry;
use feed::OffsetsFeed;
use keeper::GroupKeeper;

/// How many tasks own groups.
const OWNERS: u8 = 8;
/// Runtimes that coordinators can use: one for each owner of groups, and one that tells of them.
pub const COORDINATORS: usize = OWNERS as usize + 1;
/// Which of them tells of groups.
pub(crate) const FEED_COORDINATOR: usize = COORDINATORS - 1;
/// Buckets of group ids that each of them owns.
const BUCKETS_PER_OWNER: u8 = 32;

/// See the [module](self).
#[derive(Debug)]
pub(crate) struct GroupCoordinator {
    owners: Vec<Mailbox<Groups>>,
    drivers: Drivers,
    commit_timeout: Duration,
    /// Cancelled: whoever waits for a rebalance is sent away.
    stop: CancellationToken,
}

impl GroupCoordinator {
    /// Reads all groups and starts their owners.
    pub(crate) async fn start(
        drivers: Drivers,
        config: &BrokerConfig,
        registry: &Arc<Registry>,
        metrics: &Arc<Metrics>,
        feed: &OffsetsFeed,
        stop: CancellationToken,
    ) -> Result<Arc<Self>, StorageError> {
        let mut owners = Vec::with_capacity(usize::from(OWNERS));
        for owner in 0..OWNERS {
            let first = owner * BUCKETS_PER_OWNER;
            let keeper = GroupKeeper {
                meta: Arc::clone(&drivers.meta),
                registry: Arc::clone(registry),
                metrics: Arc::clone(metrics),
                feed: feed.clone(),
                config: group_config(config),
                buckets: first..=first + (BUCKETS_PER_OWNER - 1),
            };
            owners.push(drivers.start("groups", usize::from(owner), Arc::new(keeper)).await?);
        }
        let commit_timeout = Duration::from_millis(config.offsets_commit_timeout_ms);
        Ok(Arc::new(Self { owners, drivers, commit_timeout, stop }))
    }

    /// Ends the owners, after what they are keeping is kept.
    pub(crate) async fn close(&self) {
        self.drivers.close().await;
    }

    fn owner_of(&self, group: &str) -> &Mailbox<Groups> {
        &self.owners[usize::from(bucket_of(group) / BUCKETS_PER_OWNER)]
    }

    /// Asks for what may have to wait for other members.
    async fn ask_parking(
        &self,
        group: &GroupId,
        command: GroupCommand,
    ) -> Result<GroupReply, Unavailable> {
        tokio::select! {
            reply = self.owner_of(group).ask(command) => reply,
            () = self.stop.cancelled() => Err(Unavailable),
        }
    }

    /// Asks for what waits for the disk at most, and for no longer than clients are told to wait.
    async fn ask_at(
        &self,
        owner: &Mailbox<Groups>,
        command: GroupCommand,
    ) -> Result<GroupReply, Unavailable> {
        tokio::select! {
            biased;
            reply = owner.ask(command) => reply,
            () = self.drivers.environment.sleep(self.commit_timeout) => Err(Unavailable),
        }
    }

    async fn ask(&self, group: &GroupId, command: GroupCommand) -> Result<GroupReply, Unavailable> {
        self.ask_at(self.owner_of(group), command).await
    }

    pub(crate) async fn join(
        &self,
        request: JoinRequest,
    ) -> Result<Result<Box<Joined>, JoinRefused>, Unavailable> {
        let group = GroupId::clone(&request.group);
        match self.ask_parking(&group, GroupCommand::Join(Box::new(request))).await? {
            GroupReply::Join(reply) => Ok(reply),
            other => mismatch(&other),
        }
    }

    pub(crate) async fn sync(
        &self,
        request: SyncRequest,
    ) -> Result<Result<Synced, GroupError>, Unavailable> {
        let group = GroupId::clone(&request.who.group);
        match self.ask_parking(&group, GroupCommand::Sync(request)).await? {
            GroupReply::Sync(reply) => Ok(reply),
            other => mismatch(&other),
        }
    }

    pub(crate) async fn heartbeat(
        &self,
        who: MemberRequest,
    ) -> Result<Result<(), GroupError>, Unavailable> {
        let group = GroupId::clone(&who.group);
        match self.ask(&group, GroupCommand::Heartbeat(who)).await? {
            GroupReply::Heartbeat(reply) => Ok(reply),
            other => mismatch(&other),
        }
    }

    pub(crate) async fn leave(
        &self,
        request: LeaveRequest,
    ) -> Result<Vec<(LeavingMember, Result<(), GroupError>)>, Unavailable> {
        let group = GroupId::clone(&request.group);
        match self.ask(&group, GroupCommand::Leave(request)).await? {
            GroupReply::Leave(reply) => Ok(reply),
            other => mismatch(&other),
        }
    }

    pub(crate) async fn commit(
        &self,
        request: CommitRequest,
    ) -> Result<Result<Vec<Vec<CommitOutcome>>, GroupError>, Unavailable> {
        let group = GroupId::clone(&request.who.group);
        match self.ask(&group, GroupCommand::Commit(request)).await? {
            GroupReply::Commit(reply) => Ok(reply),
            other => mismatch(&other),
        }
    }

    pub(crate) async fn fetch(
        &self,
        request: FetchRequest,
    ) -> Result<Vec<FetchedTopic>, Unavailable> {
        let group = GroupId::clone(&request.group);
        match self.ask(&group, GroupCommand::Fetch(request)).await? {
            GroupReply::Fetch(reply) => Ok(reply),
            other => mismatch(&other),
        }
    }

    pub(crate) async fn delete_offsets(
        &self,
        request: DeleteOffsetsRequest,
    ) -> Result<Result<Vec<DeleteOutcome>, GroupError>, Unavailable> {
        let group = GroupId::clone(&request.group);
        match self.ask(&group, GroupCommand::DeleteOffsets(request)).await? {
            GroupReply::DeleteOffsets(reply) => Ok(reply),
            other => mismatch(&other),
        }
    }

    pub(crate) async fn delete(
        &self,
        group: &GroupId,
    ) -> Result<Result<(), GroupError>, Unavailable> {
        match self.ask(group, GroupCommand::DeleteGroup(GroupId::clone(group))).await? {
            GroupReply::DeleteGroup(reply) => Ok(reply),
            other => mismatch(&other),
        }
    }

    pub(crate) async fn describe(
        &self,
        group: &GroupId,
    ) -> Result<Option<Box<GroupDescription>>, Unavailable> {
        match self.ask(group, GroupCommand::Describe(GroupId::clone(group))).await? {
            GroupReply::Describe(reply) => Ok(reply),
            other => mismatch(&other),
        }
    }

    /// All groups, by id.
    pub(crate) async fn list(&self) -> Result<Vec<GroupListing>, Unavailable> {
        let mut all = Vec::new();
        for owner in &self.owners {
            match self.ask_at(owner, GroupCommand::List).await? {
                GroupReply::List(groups) => all.extend(groups),
                other => mismatch(&other),
            }
        }
        all.sort_unstable_by(|a, b| a.group.cmp(&b.group));
        Ok(all)
    }

    /// Forgets the positions in a topic that is gone. They are durably gone when this returns.
    pub(crate) async fn forget_topic(&self, topic_id: TopicId) -> Result<(), Unavailable> {
        for owner in &self.owners {
            match owner.ask(GroupCommand::ForgetTopic(topic_id)).await? {
                GroupReply::Done => {}
                other => mismatch(&other),
            }
        }
        Ok(())
    }

    /// A topic that was deleted is there again, under this name.
    pub(crate) async fn name_topic(
        &self,
        topic_id: TopicId,
        name: Arc<str>,
    ) -> Result<(), Unavailable> {
        for owner in &self.owners {
            match owner.ask(GroupCommand::NameTopic(topic_id, Arc::clone(&name))).await? {
                GroupReply::Done => {}
                other => mismatch(&other),
            }
        }
        Ok(())
    }
}

fn mismatch(reply: &GroupReply) -> ! {
    unreachable!("each command has its own kind of reply, not {reply:?}")
}

fn group_config(config: &BrokerConfig) -> GroupConfig {
    let limits = Limits::production();
    GroupConfig {
        initial_rebalance_delay_ms: config.group_initial_rebalance_delay_ms,
        min_session_timeout_ms: config.group_min_session_timeout_ms,
        max_session_timeout_ms: config.group_max_session_timeout_ms,
        max_size: (config.group_max_size as usize).min(limits.group_members_max),
        member_protocols_max: limits.member_protocols_max,
        group_bytes_max: usize::try_from(limits.group_bytes_max.get()).unwrap_or(usize::MAX),
        offer_bytes_max: usize::try_from(limits.group_offer_bytes_max.get()).unwrap_or(usize::MAX),
        offset_metadata_max: config.offset_metadata_max_bytes,
        offsets_retention_ms: config.offsets_retention_ms,
        offsets_retention_check_interval_ms: config.offsets_retention_check_interval_ms,
        ..GroupConfig::default()
    }
}
