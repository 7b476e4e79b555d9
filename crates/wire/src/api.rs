//! The APIs that are served, and in which versions: the one table of it.
//!
//! What stands here is advertised and works in every version of its range; what does not stand
//! here is not advertised. `ApiVersions`, the dispatcher, the compatibility table and the tests are
//! all made from these rows.

/// A served API. The numbers are Kafka's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(i16)]
pub enum ApiKey {
    /// Appends record batches.
    Produce = 0,
    /// Reads record batches.
    Fetch = 1,
    /// Finds offsets by time.
    ListOffsets = 2,
    /// Describes brokers and topics; may create topics.
    Metadata = 3,
    /// Keeps how far a group has read.
    OffsetCommit = 8,
    /// Tells how far a group has read.
    OffsetFetch = 9,
    /// Finds the broker that coordinates a group or a transaction.
    FindCoordinator = 10,
    /// Makes a client a member of a group's next generation.
    JoinGroup = 11,
    /// Keeps a member alive.
    Heartbeat = 12,
    /// Removes members from a group.
    LeaveGroup = 13,
    /// Hands out and fetches assignments.
    SyncGroup = 14,
    /// Describes groups.
    DescribeGroups = 15,
    /// Lists groups.
    ListGroups = 16,
    /// Says what is served. The first request of a connection.
    ApiVersions = 18,
    /// Creates topics.
    CreateTopics = 19,
    /// Deletes topics.
    DeleteTopics = 20,
    /// Deletes the oldest records of partitions.
    DeleteRecords = 21,
    /// Gives a producer its id and epoch.
    InitProducerId = 22,
    /// Finds where a leader epoch ends.
    OffsetForLeaderEpoch = 23,
    /// Reads configuration.
    DescribeConfigs = 32,
    /// Replaces configuration as a whole.
    AlterConfigs = 33,
    /// Moves replicas between folders.
    AlterReplicaLogDirs = 34,
    /// Tells how much partitions store, and where.
    DescribeLogDirs = 35,
    /// Adds partitions to topics.
    CreatePartitions = 37,
    /// Deletes groups.
    DeleteGroups = 42,
    /// Elects leaders of partitions.
    ElectLeaders = 43,
    /// Changes configuration, key by key.
    IncrementalAlterConfigs = 44,
    /// Moves partitions between brokers.
    AlterPartitionReassignments = 45,
    /// Lists partitions that move between brokers.
    ListPartitionReassignments = 46,
    /// Forgets how far a group has read.
    OffsetDelete = 47,
    /// Describes quotas of clients.
    DescribeClientQuotas = 48,
    /// Changes quotas of clients.
    AlterClientQuotas = 49,
    /// Describes the quorum of controllers.
    DescribeQuorum = 55,
    /// Raises and lowers the levels of features.
    UpdateFeatures = 57,
    /// Describes the cluster.
    DescribeCluster = 60,
    /// Describes the producers of partitions.
    DescribeProducers = 61,
    /// Forgets a broker that is gone for good.
    UnregisterBroker = 64,
    /// Describes groups of the consumer protocol (KIP-848).
    ConsumerGroupDescribe = 69,
    /// Lists what has configuration of its own.
    ListConfigResources = 74,
    /// Describes topics, page by page.
    DescribeTopicPartitions = 75,
}

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ServedApi {
    /// Which API.
    pub key: ApiKey,
    /// The first version that `ApiVersions` names.
    pub advertised_from: i16,
    /// The first version that is served.
    pub min_version: i16,
    /// The last version that is served, and that `ApiVersions` names.
    pub max_version: i16,
    /// The first version with compact lengths and tagged fields (KIP-482).
    pub flexible_from: i16,
}

/// What a request's key and version lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// Served.
    Served(Api),
    /// The API is served, but not in this version.
    UnsupportedVersion(ApiKey),
    /// No served API has this key.
    UnknownKey,
}

/// A served API in a served version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Api {
    key: ApiKey,
    version: i16,
    flexible: bool,
}

const fn row(key: ApiKey, min_version: i16, max_version: i16, flexible_from: i16) -> ServedApi {
    ServedApi { key, advertised_from: min_version, min_version, max_version, flexible_from }
}

static SERVED: [ServedApi; 39] = [
    // Versions 0 to 2 are named, not served: librdkafka takes a broker without them for one that
    // knows no compression and silently stops compressing (KAFKA-18659). Kafka does the same.
    ServedApi { advertised_from: 0, ..row(ApiKey::Produce, 3, 13, 9) },
    row(ApiKey::Fetch, 4, 18, 12),
    row(ApiKey::ListOffsets, 1, 11, 6),
    row(ApiKey::Metadata, 0, 13, 9),
    row(ApiKey::OffsetCommit, 2, 10, 8),
    row(ApiKey::OffsetFetch, 1, 10, 6),
    row(ApiKey::FindCoordinator, 0, 6, 3),
    row(ApiKey::JoinGroup, 0, 9, 6),
    row(ApiKey::Heartbeat, 0, 4, 4),
    row(ApiKey::LeaveGroup, 0, 5, 4),
    row(ApiKey::SyncGroup, 0, 5, 4),
    row(ApiKey::DescribeGroups, 0, 6, 5),
    row(ApiKey::ListGroups, 0, 5, 3),
    row(ApiKey::ApiVersions, 0, 4, 3),
    row(ApiKey::CreateTopics, 2, 7, 5),
    row(ApiKey::DeleteTopics, 1, 6, 4),
    row(ApiKey::DeleteRecords, 0, 2, 2),
    row(ApiKey::InitProducerId, 0, 5, 2),
    row(ApiKey::OffsetForLeaderEpoch, 2, 4, 4),
    row(ApiKey::DescribeConfigs, 1, 4, 4),
    row(ApiKey::AlterConfigs, 0, 2, 2),
    row(ApiKey::AlterReplicaLogDirs, 1, 2, 2),
    row(ApiKey::DescribeLogDirs, 1, 5, 2),
    row(ApiKey::CreatePartitions, 0, 3, 2),
    row(ApiKey::DeleteGroups, 0, 2, 2),
    row(ApiKey::ElectLeaders, 0, 2, 2),
    row(ApiKey::IncrementalAlterConfigs, 0, 1, 1),
    row(ApiKey::AlterPartitionReassignments, 0, 1, 0),
    row(ApiKey::ListPartitionReassignments, 0, 0, 0),
    // No version of it is flexible.
    row(ApiKey::OffsetDelete, 0, 0, 1),
    row(ApiKey::DescribeClientQuotas, 0, 1, 1),
    row(ApiKey::AlterClientQuotas, 0, 1, 1),
    row(ApiKey::DescribeQuorum, 0, 2, 0),
    row(ApiKey::UpdateFeatures, 0, 2, 0),
    row(ApiKey::DescribeCluster, 0, 2, 0),
    row(ApiKey::DescribeProducers, 0, 0, 0),
    row(ApiKey::UnregisterBroker, 0, 0, 0),
    row(ApiKey::ListConfigResources, 0, 1, 0),
    row(ApiKey::DescribeTopicPartitions, 0, 0, 0),
];

/// Spoken by our client, served by other brokers only.
static SPOKEN: [ServedApi; 1] = [row(ApiKey::ConsumerGroupDescribe, 0, 1, 0)];

/// The served APIs, by key.
pub const fn served() -> &'static [ServedApi] {
    &SERVED
}

/// What a request's key and version lead to.
pub fn lookup(key: i16, version: i16) -> Lookup {
    match SERVED.iter().find(|row| row.key.number() == key) {
        None => Lookup::UnknownKey,
        Some(row) => row.at(version).map_or(Lookup::UnsupportedVersion(row.key), Lookup::Served),
    }
}

/// Kafka's name for the API of this number, whether anybody here speaks it or not; `None` for one
/// that Kafka 4.3 does not have.
pub fn api_name(number: i16) -> Option<String> {
    kacrab_protocol::generated::ApiKey::from_i16(number).map(|key| format!("{key:?}"))
}

impl ApiKey {
    /// Kafka's number for it.
    pub const fn number(self) -> i16 {
        self as i16
    }

    /// Kafka's name for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Produce => "Produce",
            Self::Fetch => "Fetch",
            Self::ListOffsets => "ListOffsets",
            Self::Metadata => "Metadata",
            Self::OffsetCommit => "OffsetCommit",
            Self::OffsetFetch => "OffsetFetch",
            Self::FindCoordinator => "FindCoordinator",
            Self::JoinGroup => "JoinGroup",
            Self::Heartbeat => "Heartbeat",
            Self::LeaveGroup => "LeaveGroup",
            Self::SyncGroup => "SyncGroup",
            Self::DescribeGroups => "DescribeGroups",
            Self::ListGroups => "ListGroups",
            Self::ApiVersions => "ApiVersions",
            Self::CreateTopics => "CreateTopics",
            Self::DeleteTopics => "DeleteTopics",
            Self::DeleteRecords => "DeleteRecords",
            Self::InitProducerId => "InitProducerId",
            Self::OffsetForLeaderEpoch => "OffsetForLeaderEpoch",
            Self::DescribeConfigs => "DescribeConfigs",
            Self::AlterConfigs => "AlterConfigs",
            Self::CreatePartitions => "CreatePartitions",
            Self::DeleteGroups => "DeleteGroups",
            Self::IncrementalAlterConfigs => "IncrementalAlterConfigs",
            Self::OffsetDelete => "OffsetDelete",
            Self::DescribeQuorum => "DescribeQuorum",
            Self::UpdateFeatures => "UpdateFeatures",
            Self::DescribeCluster => "DescribeCluster",
            Self::ConsumerGroupDescribe => "ConsumerGroupDescribe",
            Self::ListConfigResources => "ListConfigResources",
            Self::AlterReplicaLogDirs => "AlterReplicaLogDirs",
            Self::DescribeLogDirs => "DescribeLogDirs",
            Self::ElectLeaders => "ElectLeaders",
            Self::AlterPartitionReassignments => "AlterPartitionReassignments",
            Self::ListPartitionReassignments => "ListPartitionReassignments",
            Self::DescribeProducers => "DescribeProducers",
            Self::UnregisterBroker => "UnregisterBroker",
            Self::DescribeClientQuotas => "DescribeClientQuotas",
            Self::AlterClientQuotas => "AlterClientQuotas",
            Self::DescribeTopicPartitions => "DescribeTopicPartitions",
        }
    }

    /// Its row of the table.
    ///
    /// # Panics
    /// For an API that only our client speaks.
    pub fn served(self) -> &'static ServedApi {
        SERVED.iter().find(|row| row.key == self).expect("a served API has its row")
    }

    /// The versions that our client speaks: those that are served, where the API is.
    ///
    /// # Panics
    /// Never: every key stands in one of the tables, and a test walks both.
    pub fn spoken(self) -> &'static ServedApi {
        let mut rows = SERVED.iter().chain(&SPOKEN);
        rows.find(|row| row.key == self).expect("every key has its row")
    }
}

impl std::fmt::Display for ApiKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl ServedApi {
    /// This API in `version`, or `None` when that is not served.
    pub fn at(&self, version: i16) -> Option<Api> {
        (self.min_version..=self.max_version).contains(&version).then_some(Api {
            key: self.key,
            version,
            flexible: version >= self.flexible_from,
        })
    }
}

impl Api {
    /// Which API.
    pub const fn key(self) -> ApiKey {
        self.key
    }

    /// Which version of it.
    pub const fn version(self) -> i16 {
        self.version
    }

    /// Whether bodies have compact lengths and tagged fields, and the request's header has tagged
    /// fields too (header version 2).
    pub const fn is_flexible(self) -> bool {
        self.flexible
    }

    /// Whether the response's header has tagged fields (header version 1). Never in `ApiVersions`:
    /// its client does not know yet what the broker speaks (KIP-511).
    pub const fn has_flexible_response_header(self) -> bool {
        self.flexible && !matches!(self.key, ApiKey::ApiVersions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_sorted_and_make_sense() {
        assert!(SERVED.is_sorted_by_key(|row| row.key));
        for row in served() {
            assert!(row.advertised_from <= row.min_version, "{}", row.key);
            assert!(row.min_version <= row.max_version, "{}", row.key);
            assert_eq!(row.key.served(), row);
        }
    }

    #[test]
    fn what_only_our_client_speaks_is_not_served() {
        assert!(SPOKEN.is_sorted_by_key(|row| row.key));
        for row in &SPOKEN {
            assert!(row.min_version <= row.max_version, "{}", row.key);
            assert_eq!(row.key.spoken(), row);
            assert!(served().iter().all(|served| served.key != row.key), "{}", row.key);
            assert_eq!(lookup(row.key.number(), row.max_version), Lookup::UnknownKey);
        }
    }

    #[test]
    fn lookup_tells_old_and_new_versions_from_unknown_keys() {
        assert!(matches!(lookup(0, 3), Lookup::Served(api) if api.version() == 3));
        assert_eq!(lookup(0, 2), Lookup::UnsupportedVersion(ApiKey::Produce));
        assert_eq!(lookup(0, 14), Lookup::UnsupportedVersion(ApiKey::Produce));
        assert_eq!(lookup(18, -1), Lookup::UnsupportedVersion(ApiKey::ApiVersions));
        assert_eq!(lookup(999, 0), Lookup::UnknownKey);
        assert_eq!(lookup(-1, 0), Lookup::UnknownKey);
    }

    #[test]
    fn the_codec_has_kafkas_names() {
        for row in SERVED.iter().chain(&SPOKEN) {
            assert_eq!(api_name(row.key.number()).as_deref(), Some(row.key.name()));
        }
        assert_eq!(api_name(76).as_deref(), Some("ShareGroupHeartbeat"));
        assert_eq!(api_name(9_999), None);
    }

    #[test]
    fn api_versions_never_has_a_flexible_response_header() {
        for row in served() {
            for version in row.min_version..=row.max_version {
                let api = row.at(version).unwrap();
                let flexible = api.is_flexible() && row.key != ApiKey::ApiVersions;
                assert_eq!(api.has_flexible_response_header(), flexible, "{} v{version}", row.key);
            }
        }
    }
}
