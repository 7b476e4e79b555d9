//! Kafka's APIs for clients, and which versions of them the wire table serves.

use std::collections::BTreeMap;

use anyhow::{Context as _, bail, ensure};

/// The file with the one table of served versions.
pub(super) const TABLE: &str = "crates/wire/src/api.rs";

/// An API of Kafka's with its first and last stable version in 4.4.0.
#[derive(Debug)]
pub(super) struct KafkaApi {
    pub(super) key: i16,
    pub(super) name: &'static str,
    pub(super) first: i16,
    pub(super) last: i16,
}

const fn api(key: i16, name: &'static str, first: i16, last: i16) -> KafkaApi {
    KafkaApi { key, name, first, last }
}

/// What clients and tools send. APIs between brokers and controllers are left out.
pub(super) const KAFKA: &[KafkaApi] = &[
    api(0, "Produce", 3, 13),
    api(1, "Fetch", 4, 18),
    api(2, "ListOffsets", 1, 11),
    api(3, "Metadata", 0, 13),
    api(8, "OffsetCommit", 2, 10),
    api(9, "OffsetFetch", 1, 10),
    api(10, "FindCoordinator", 0, 6),
    api(11, "JoinGroup", 0, 9),
    api(12, "Heartbeat", 0, 4),
    api(13, "LeaveGroup", 0, 5),
    api(14, "SyncGroup", 0, 5),
    api(15, "DescribeGroups", 0, 6),
    api(16, "ListGroups", 0, 5),
    api(17, "SaslHandshake", 0, 1),
    api(18, "ApiVersions", 0, 5),
    api(19, "CreateTopics", 2, 7),
    api(20, "DeleteTopics", 1, 6),
    api(21, "DeleteRecords", 0, 2),
    api(22, "InitProducerId", 0, 5),
    api(23, "OffsetForLeaderEpoch", 2, 4),
    api(24, "AddPartitionsToTxn", 0, 5),
    api(25, "AddOffsetsToTxn", 0, 4),
    api(26, "EndTxn", 0, 5),
    api(27, "WriteTxnMarkers", 1, 2),
    api(28, "TxnOffsetCommit", 0, 6),
    api(29, "DescribeAcls", 1, 3),
    api(30, "CreateAcls", 1, 3),
    api(31, "DeleteAcls", 1, 3),
    api(32, "DescribeConfigs", 1, 4),
    api(33, "AlterConfigs", 0, 2),
    api(34, "AlterReplicaLogDirs", 1, 2),
    api(35, "DescribeLogDirs", 1, 5),
    api(36, "SaslAuthenticate", 0, 2),
    api(37, "CreatePartitions", 0, 3),
    api(38, "CreateDelegationToken", 1, 3),
    api(39, "RenewDelegationToken", 1, 2),
    api(40, "ExpireDelegationToken", 1, 2),
    api(41, "DescribeDelegationToken", 1, 3),
    api(42, "DeleteGroups", 0, 3),
    api(43, "ElectLeaders", 0, 2),
    api(44, "IncrementalAlterConfigs", 0, 1),
    api(45, "AlterPartitionReassignments", 0, 1),
    api(46, "ListPartitionReassignments", 0, 0),
    api(47, "OffsetDelete", 0, 0),
    api(48, "DescribeClientQuotas", 0, 1),
    api(49, "AlterClientQuotas", 0, 1),
    api(50, "DescribeUserScramCredentials", 0, 0),
    api(51, "AlterUserScramCredentials", 0, 0),
    api(55, "DescribeQuorum", 0, 2),
    api(57, "UpdateFeatures", 0, 2),
    api(60, "DescribeCluster", 0, 2),
    api(61, "DescribeProducers", 0, 0),
    api(64, "UnregisterBroker", 0, 0),
    api(65, "DescribeTransactions", 0, 0),
    api(66, "ListTransactions", 0, 2),
    api(68, "ConsumerGroupHeartbeat", 0, 1),
    api(69, "ConsumerGroupDescribe", 0, 1),
    api(71, "GetTelemetrySubscriptions", 0, 0),
    api(72, "PushTelemetry", 0, 0),
    api(74, "ListConfigResources", 0, 1),
    api(75, "DescribeTopicPartitions", 0, 0),
    api(76, "ShareGroupHeartbeat", 1, 1),
    api(77, "ShareGroupDescribe", 1, 1),
    api(78, "ShareFetch", 1, 2),
    api(79, "ShareAcknowledge", 1, 2),
    api(80, "AddRaftVoter", 0, 1),
    api(81, "RemoveRaftVoter", 0, 0),
    api(88, "StreamsGroupHeartbeat", 0, 1),
    api(89, "StreamsGroupDescribe", 0, 1),
    api(90, "DescribeShareGroupOffsets", 0, 1),
    api(91, "AlterShareGroupOffsets", 0, 0),
    api(92, "DeleteShareGroupOffsets", 0, 0),
    api(93, "StreamsGroupTopologyDescriptionUpdate", 0, 0),
    api(94, "UnregisterController", 0, 0),
];

/// APIs that no client and no tool sends, in groups with the reason: they are not in [`KAFKA`].
#[derive(Debug)]
pub(super) struct LeftOut {
    pub(super) why: &'static str,
    pub(super) apis: &'static [(i16, &'static str)],
}

/// Every other key of 4.4.0.
pub(super) const LEFT_OUT: &[LeftOut] = &[
    LeftOut {
        why: "Kafka 4 has taken them out",
        apis: &[
            (4, "LeaderAndIsr"),
            (5, "StopReplica"),
            (6, "UpdateMetadata"),
            (7, "ControlledShutdown"),
        ],
    },
    LeftOut {
        why: "Between controllers, on their own listener",
        apis: &[
            (52, "Vote"),
            (53, "BeginQuorumEpoch"),
            (54, "EndQuorumEpoch"),
            (59, "FetchSnapshot"),
            (70, "ControllerRegistration"),
            (82, "UpdateRaftVoter"),
        ],
    },
    LeftOut {
        why: "From a broker to its controller, on the controller's listener",
        apis: &[
            (56, "AlterPartition"),
            (58, "Envelope"),
            (62, "BrokerRegistration"),
            (63, "BrokerHeartbeat"),
            (67, "AllocateProducerIds"),
            (73, "AssignReplicasToDirs"),
        ],
    },
    LeftOut {
        why: "From one broker to another that keeps the state of share groups",
        apis: &[
            (83, "InitializeShareGroupState"),
            (84, "ReadShareGroupState"),
            (85, "WriteShareGroupState"),
            (86, "DeleteShareGroupState"),
            (87, "ReadShareGroupStateSummary"),
        ],
    },
];

impl KafkaApi {
    /// What is said of it when these versions are served.
    pub(super) fn status(&self, served: Option<(i16, i16)>) -> String {
        let Some((first, last)) = served else { return "not served".to_owned() };
        let missing: Vec<String> = (self.first..=self.last)
            .filter(|v| !(first..=last).contains(v))
            .map(|v| v.to_string())
            .collect();
        if missing.is_empty() {
            "all versions".to_owned()
        } else {
            format!("not {}", missing.join(", "))
        }
    }
}

/// First and last served version by name, read from the rows of [`TABLE`]: `row(ApiKey::NAME, FIRST, LAST, …)`.
pub(super) fn served(source: &str) -> anyhow::Result<BTreeMap<String, (i16, i16)>> {
    let table = source.split_once("static SERVED: [ServedApi; ");
    let (declared, rows) = table
        .and_then(|(_, rest)| rest.split_once("] = ["))
        .with_context(|| format!("{TABLE} declares no table of served versions"))?;
    let declared: usize = declared.parse().context("the number of served APIs")?;
    let rows = rows.split("];").next().unwrap_or_default();
    let mut served = BTreeMap::new();
    for row in rows.split("row(ApiKey::").skip(1) {
        let inside = row.split(')').next().unwrap_or_default();
        let mut fields = inside.split(',').map(str::trim);
        let name = fields.next().unwrap_or_default();
        let mut number = || -> Option<i16> { fields.next()?.parse().ok() };
        let versions = number().zip(number());
        let versions = versions.with_context(|| format!("{TABLE}: a row with `{inside}`"))?;
        let Some(api) = KAFKA.iter().find(|api| api.name == name) else {
            bail!("{name} is served but no API of Kafka's for clients is called so");
        };
        ensure!(
            api.first <= versions.0 && versions.1 <= api.last,
            "{name} is served in versions that Kafka does not have"
        );
        served.insert(name.to_owned(), versions);
    }
    let read = served.len();
    ensure!(read == declared, "{TABLE} declares {declared} served APIs, {read} rows were read");
    Ok(served)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wire_table_is_read_whole() {
        let source = std::fs::read_to_string(crate::root().join(TABLE)).unwrap();
        let served = served(&source).unwrap();
        assert_eq!(served["Produce"], (3, 13));
        assert_eq!(served["ApiVersions"], (0, 4));
    }

    #[test]
    fn every_key_of_kafka_stands_in_the_table_or_is_left_out_with_a_reason() {
        let left_out = LEFT_OUT.iter().flat_map(|group| group.apis).map(|(key, _)| *key);
        let mut keys: Vec<i16> = KAFKA.iter().map(|api| api.key).chain(left_out).collect();
        keys.sort_unstable();
        assert_eq!(keys, (0..=94).collect::<Vec<i16>>());
    }

    #[test]
    fn versions_that_are_not_served_are_named() {
        let some = api(42, "DeleteGroups", 0, 3);
        assert_eq!(some.status(Some((0, 3))), "all versions");
        assert_eq!(some.status(Some((1, 2))), "not 0, 3");
        assert_eq!(some.status(None), "not served");
    }

    #[test]
    fn a_row_that_was_not_understood_is_an_error() {
        let source = "static SERVED: [ServedApi; 2] = [row(ApiKey::Fetch, 4, 18, 12)];";
        assert!(served(source).is_err());
        let source = "static SERVED: [ServedApi; 1] = [row(ApiKey::Fetch, 4, LAST, 12)];";
        assert!(served(source).is_err());
        let source = "static SERVED: [ServedApi; 1] = [row(ApiKey::Fetch, 4, 19, 12)];";
        assert!(served(source).is_err());
    }
}
