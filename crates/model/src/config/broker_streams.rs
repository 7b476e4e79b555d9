//! Broker configs: streams groups.

use super::key::{ConfigKey, INT_MAX, UNSET, boolean, class, int, list, long};
use super::reason;

/// In the order of Kafka's own areas.
pub(super) const KEYS: &[ConfigKey] = &[
    int("group.streams.session.timeout.ms", "45000")
        .at_least(1)
        .ignored(reason::STREAMS_GROUPS)
        .doc("Session timeout of streams groups."),
    int("group.streams.min.session.timeout.ms", "45000")
        .at_least(1)
        .ignored(reason::STREAMS_GROUPS)
        .doc("The shortest session timeout that a streams group may set."),
    int("group.streams.max.session.timeout.ms", "60000")
        .at_least(1)
        .ignored(reason::STREAMS_GROUPS)
        .doc("The longest session timeout that a streams group may set."),
    int("group.streams.heartbeat.interval.ms", "5000")
        .at_least(1)
        .ignored(reason::STREAMS_GROUPS)
        .doc("Heartbeat interval of streams groups."),
    int("group.streams.min.heartbeat.interval.ms", "5000")
        .at_least(1)
        .ignored(reason::STREAMS_GROUPS)
        .doc("The shortest heartbeat interval that a streams group may set."),
    int("group.streams.max.heartbeat.interval.ms", "15000")
        .at_least(1)
        .ignored(reason::STREAMS_GROUPS)
        .doc("The longest heartbeat interval that a streams group may set."),
    int("group.streams.assignment.interval.ms", "1000")
        .at_least(0)
        .cluster_wide()
        .ignored(reason::STREAMS_GROUPS)
        .doc("Time between two assignments of a streams group."),
    int("group.streams.min.assignment.interval.ms", "0")
        .at_least(0)
        .ignored(reason::STREAMS_GROUPS)
        .doc("The shortest assignment interval that a streams group may set."),
    int("group.streams.max.assignment.interval.ms", "15000")
        .at_least(0)
        .ignored(reason::STREAMS_GROUPS)
        .doc("The longest assignment interval that a streams group may set."),
    int("group.streams.initial.rebalance.delay.ms", "3000")
        .at_least(0)
        .ignored(reason::STREAMS_GROUPS)
        .doc("How long a new streams group waits for more members."),
    int("group.streams.max.size", INT_MAX)
        .at_least(1)
        .ignored(reason::STREAMS_GROUPS)
        .doc("Members of a streams group."),
    list("group.streams.assignors", "sticky")
        .ignored(reason::STREAMS_GROUPS)
        .doc("The assignors of streams groups."),
    boolean("group.streams.assignor.offload.enable", "true")
        .cluster_wide()
        .internal()
        .ignored(reason::STREAMS_GROUPS)
        .doc("Whether task assignments are computed in the background."),
    int("group.streams.num.standby.replicas", "0")
        .at_least(0)
        .ignored(reason::STREAMS_GROUPS)
        .doc("Standby copies of each task."),
    int("group.streams.max.standby.replicas", "2")
        .at_least(0)
        .ignored(reason::STREAMS_GROUPS)
        .doc("The most standby copies that a streams group may set."),
    int("group.streams.num.warmup.replicas", "2")
        .at_least(0)
        .internal()
        .ignored(reason::STREAMS_GROUPS)
        .doc("Tasks that warm up at a time."),
    int("group.streams.max.warmup.replicas", "20")
        .at_least(0)
        .internal()
        .ignored(reason::STREAMS_GROUPS)
        .doc("The most warm-up tasks that a streams group may set."),
    long("group.streams.acceptable.recovery.lag", "10000")
        .at_least(0)
        .internal()
        .ignored(reason::STREAMS_GROUPS)
        .doc("The lag at which a client counts as caught up."),
    list("group.streams.rack.aware.assignment.tags", "")
        .ignored(reason::STREAMS_GROUPS)
        .doc("Client tags that standby copies are spread over."),
    int("group.streams.task.offset.interval.ms", "60000")
        .at_least(1)
        .internal()
        .ignored(reason::STREAMS_GROUPS)
        .doc("How often clients report the offsets of their tasks."),
    int("group.streams.min.task.offset.interval.ms", "15000")
        .at_least(1)
        .internal()
        .ignored(reason::STREAMS_GROUPS)
        .doc("The shortest report interval that a streams group may set."),
    class("group.streams.topology.description.plugin.class", UNSET)
        .ignored(reason::JAVA_CLASS)
        .doc("A class that keeps descriptions of topologies."),
];
