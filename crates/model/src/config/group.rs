//! Group configs, and which broker config each falls back to.
//!
//! `group_config.rs` says within which bounds, broker configs too, a group may move.

use super::key::{ConfigKey, boolean, first_of, int, list, long, same, string};
use super::reason;

/// In the order of names.
pub(super) const KEYS: &[ConfigKey] = &[
    int("consumer.assignment.interval.ms", "1000")
        .at_least(0)
        .falls_back_to(&[same("group.consumer.assignment.interval.ms")])
        .ignored(reason::GROUPS)
        .doc("Time between two assignments of a consumer group."),
    boolean("consumer.assignor.offload.enable", "true")
        .falls_back_to(&[same("group.consumer.assignor.offload.enable")])
        .internal()
        .ignored(reason::GROUPS)
        .doc("Whether assignments are computed in the background."),
    int("consumer.heartbeat.interval.ms", "5000")
        .at_least(1)
        .falls_back_to(&[same("group.consumer.heartbeat.interval.ms")])
        .ignored(reason::GROUPS)
        .doc("Heartbeat interval of a consumer group's members."),
    int("consumer.session.timeout.ms", "45000")
        .at_least(1)
        .falls_back_to(&[same("group.consumer.session.timeout.ms")])
        .ignored(reason::GROUPS)
        .doc("How long a member of a consumer group may be silent."),
    boolean("errors.deadletterqueue.copy.record.enable", "false")
        .ignored(reason::SHARE_GROUPS)
        .doc(
            "Whether an undeliverable record is copied to the dead-letter topic, or only told of.",
        ),
    string("errors.deadletterqueue.topic.name", "")
        .ignored(reason::SHARE_GROUPS)
        .doc("The topic for undeliverable records; empty for none."),
    int("share.assignment.interval.ms", "1000")
        .at_least(0)
        .falls_back_to(&[same("group.share.assignment.interval.ms")])
        .ignored(reason::SHARE_GROUPS)
        .doc("Time between two assignments of a share group."),
    boolean("share.assignor.offload.enable", "true")
        .falls_back_to(&[same("group.share.assignor.offload.enable")])
        .internal()
        .ignored(reason::SHARE_GROUPS)
        .doc("Whether assignments are computed in the background."),
    string("share.auto.offset.reset", "latest")
        .offset_reset()
        .ignored(reason::SHARE_GROUPS)
        .doc("Where a share group begins in a partition that it has not read."),
    int("share.delivery.count.limit", "5")
        .at_least(2)
        .falls_back_to(&[same("group.share.delivery.count.limit")])
        .ignored(reason::SHARE_GROUPS)
        .doc("How often a record is delivered at most."),
    int("share.heartbeat.interval.ms", "5000")
        .at_least(1)
        .falls_back_to(&[same("group.share.heartbeat.interval.ms")])
        .ignored(reason::SHARE_GROUPS)
        .doc("Heartbeat interval of a share group's members."),
    string("share.isolation.level", "read_uncommitted")
        .one_of(&["read_committed", "read_uncommitted"])
        .ignored(reason::SHARE_GROUPS)
        .doc("Whether a share group gets records of open and aborted transactions."),
    int("share.partition.max.record.locks", "2000")
        .at_least(100)
        .falls_back_to(&[same("group.share.partition.max.record.locks")])
        .ignored(reason::SHARE_GROUPS)
        .doc("Records of a partition that a share group may have acquired at a time."),
    int("share.record.lock.duration.ms", "30000")
        .at_least(1_000)
        .falls_back_to(&[same("group.share.record.lock.duration.ms")])
        .ignored(reason::SHARE_GROUPS)
        .doc("How long an acquired record stays with its consumer."),
    boolean("share.renew.acknowledge.enable", "true")
        .ignored(reason::SHARE_GROUPS)
        .doc("Whether a consumer may renew its hold on a record."),
    int("share.session.timeout.ms", "45000")
        .at_least(1)
        .falls_back_to(&[same("group.share.session.timeout.ms")])
        .ignored(reason::SHARE_GROUPS)
        .doc("How long a member of a share group may be silent."),
    long("streams.acceptable.recovery.lag", "10000")
        .at_least(0)
        .falls_back_to(&[same("group.streams.acceptable.recovery.lag")])
        .internal()
        .ignored(reason::STREAMS_GROUPS)
        .doc("How far behind a member may be to take over an active task."),
    int("streams.assignment.interval.ms", "1000")
        .at_least(0)
        .falls_back_to(&[same("group.streams.assignment.interval.ms")])
        .ignored(reason::STREAMS_GROUPS)
        .doc("Time between two assignments of a streams group."),
    string("streams.assignor.name", "sticky")
        .falls_back_to(&[first_of("group.streams.assignors")])
        .ignored(reason::STREAMS_GROUPS)
        .doc("The assignor of a streams group: one of `group.streams.assignors`."),
    boolean("streams.assignor.offload.enable", "true")
        .falls_back_to(&[same("group.streams.assignor.offload.enable")])
        .internal()
        .ignored(reason::STREAMS_GROUPS)
        .doc("Whether assignments are computed in the background."),
    int("streams.heartbeat.interval.ms", "5000")
        .at_least(1)
        .falls_back_to(&[same("group.streams.heartbeat.interval.ms")])
        .ignored(reason::STREAMS_GROUPS)
        .doc("Heartbeat interval of a streams group's members."),
    int("streams.initial.rebalance.delay.ms", "3000")
        .at_least(0)
        .falls_back_to(&[same("group.streams.initial.rebalance.delay.ms")])
        .ignored(reason::STREAMS_GROUPS)
        .doc("How long a new streams group waits for more members."),
    int("streams.num.standby.replicas", "0")
        .at_least(0)
        .falls_back_to(&[same("group.streams.num.standby.replicas")])
        .ignored(reason::STREAMS_GROUPS)
        .doc("Standby replicas of each task."),
    int("streams.num.warmup.replicas", "2")
        .at_least(0)
        .falls_back_to(&[same("group.streams.num.warmup.replicas")])
        .internal()
        .ignored(reason::STREAMS_GROUPS)
        .doc("Replicas that are warmed up at a time."),
    list("streams.rack.aware.assignment.tags", "")
        .falls_back_to(&[same("group.streams.rack.aware.assignment.tags")])
        .ignored(reason::STREAMS_GROUPS)
        .doc("Tags of clients over which standby replicas are spread."),
    int("streams.session.timeout.ms", "45000")
        .at_least(1)
        .falls_back_to(&[same("group.streams.session.timeout.ms")])
        .ignored(reason::STREAMS_GROUPS)
        .doc("How long a member of a streams group may be silent."),
    int("streams.task.offset.interval.ms", "60000")
        .at_least(1)
        .falls_back_to(&[same("group.streams.task.offset.interval.ms")])
        .internal()
        .ignored(reason::STREAMS_GROUPS)
        .doc("How often members tell how far their tasks are."),
];
