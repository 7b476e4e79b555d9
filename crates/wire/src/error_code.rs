//! Kafka's error codes: number, name, whether clients try again, and what each means.
//!
//! One table makes the constants and the lookup. The domain knows nothing of it: outcomes become
//! codes in one place of the broker.

use std::fmt;

/// An error code as it stands on the wire; [`ErrorCode::NONE`] is success.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ErrorCode(i16);

/// What is known about one error code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ErrorInfo {
    /// The code.
    pub code: ErrorCode,
    /// Kafka's name for it.
    pub name: &'static str,
    /// Whether clients try the same request again without telling anybody.
    pub retriable: bool,
    /// One sentence for people.
    pub meaning: &'static str,
}

impl ErrorCode {
    /// A code from the wire; any number is possible, newer peers have newer codes.
    pub const fn from_wire(number: i16) -> Self {
        Self(number)
    }

    /// The number.
    pub const fn get(self) -> i16 {
        self.0
    }

    /// What is known about it; `None` for a number that Kafka has not given out.
    pub fn info(self) -> Option<&'static ErrorInfo> {
        TABLE.iter().find(|info| info.code == self)
    }

    /// The code that carries this name, whatever its case.
    pub fn by_name(name: &str) -> Option<&'static ErrorInfo> {
        TABLE.iter().find(|info| info.name.eq_ignore_ascii_case(name))
    }

    /// All codes, by number.
    pub const fn all() -> &'static [ErrorInfo] {
        &TABLE
    }

    /// Whether this is [`ErrorCode::NONE`].
    pub const fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Whether clients try again on their own.
    pub fn is_retriable(self) -> bool {
        self.info().is_some_and(|info| info.retriable)
    }
}

/// Kafka's name, or the bare number of an unknown code.
impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.info() {
            Some(info) => f.write_str(info.name),
            None => self.0.fmt(f),
        }
    }
}

impl fmt::Debug for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}({})", self.0)
    }
}

// The macro is what keeps constant, name and meaning one row: three lists would drift apart.
macro_rules! error_codes {
    ($count:literal: $($number:literal $name:ident $class:ident $meaning:literal)*) => {
        #[doc = "The codes."]
        impl ErrorCode {
            $(#[doc = $meaning] pub const $name: Self = Self($number);)*
        }

        static TABLE: [ErrorInfo; $count] = [$(ErrorInfo {
            code: ErrorCode::$name,
            name: stringify!($name),
            retriable: retriable!($class),
            meaning: $meaning,
        }),*];
    };
}

macro_rules! retriable {
    (again) => {
        true
    };
    (final) => {
        false
    };
}

error_codes! { 138:
    -1 UNKNOWN_SERVER_ERROR final "The server failed in a way that it did not expect."
    0 NONE final "All is well."
    1 OFFSET_OUT_OF_RANGE final "The offset lies before the log's start or past its end."
    2 CORRUPT_MESSAGE again "The batch's checksum, size or structure is wrong."
    3 UNKNOWN_TOPIC_OR_PARTITION again "This server does not host that topic or partition."
    4 INVALID_FETCH_SIZE final "The requested fetch size is impossible."
    5 LEADER_NOT_AVAILABLE again "The partition has no leader for the moment."
    6 NOT_LEADER_OR_FOLLOWER again "This broker is not the one that serves the partition."
    7 REQUEST_TIMED_OUT again "The work was not done within the request's timeout."
    8 BROKER_NOT_AVAILABLE final "The broker is not available."
    9 REPLICA_NOT_AVAILABLE again "The replica is not available on this broker."
    10 MESSAGE_TOO_LARGE final "The batch is larger than the topic allows (`max.message.bytes`)."
    11 STALE_CONTROLLER_EPOCH final "The controller has moved to another broker."
    12 OFFSET_METADATA_TOO_LARGE final "The text beside a committed offset is too long."
    13 NETWORK_EXCEPTION again "The connection broke before an answer came."
    14 COORDINATOR_LOAD_IN_PROGRESS again "The coordinator is still reading its state."
    15 COORDINATOR_NOT_AVAILABLE again "The coordinator is not available for the moment."
    16 NOT_COORDINATOR again "This broker is not the coordinator of that group or transaction."
    17 INVALID_TOPIC_EXCEPTION final "The topic's name is not allowed, or nobody may write to it."
    18 RECORD_LIST_TOO_LARGE final "The batches are larger together than a segment may be."
    19 NOT_ENOUGH_REPLICAS again "Fewer replicas are in sync than the topic requires; nothing was written."
    20 NOT_ENOUGH_REPLICAS_AFTER_APPEND again "The records were written, but to fewer replicas than the topic requires."
    21 INVALID_REQUIRED_ACKS final "`acks` is none of -1, 0 and 1."
    22 ILLEGAL_GENERATION final "The member speaks of a generation that its group has left behind."
    23 INCONSISTENT_GROUP_PROTOCOL final "The member shares no assignment protocol with its group."
    24 INVALID_GROUP_ID final "The group's id is not allowed."
    25 UNKNOWN_MEMBER_ID final "The group does not know that member."
    26 INVALID_SESSION_TIMEOUT final "The session timeout is outside what the broker allows."
    27 REBALANCE_IN_PROGRESS final "The group is rebalancing: the member must join again."
    28 INVALID_COMMIT_OFFSET_SIZE final "The commit is larger than the broker stores."
    29 TOPIC_AUTHORIZATION_FAILED final "The principal may not do this with the topic."
    30 GROUP_AUTHORIZATION_FAILED final "The principal may not do this with the group."
    31 CLUSTER_AUTHORIZATION_FAILED final "The principal may not do this in the cluster."
    32 INVALID_TIMESTAMP final "A record's timestamp is outside the range that the topic allows."
    33 UNSUPPORTED_SASL_MECHANISM final "The broker does not offer that SASL mechanism."
    34 ILLEGAL_SASL_STATE final "The request is not allowed at this point of authentication."
    35 UNSUPPORTED_VERSION final "The broker does not serve that version of the API."
    36 TOPIC_ALREADY_EXISTS final "A topic of that name exists."
    37 INVALID_PARTITIONS final "The number of partitions is not allowed."
    38 INVALID_REPLICATION_FACTOR final "The replication factor is below 1 or above the number of brokers."
    39 INVALID_REPLICA_ASSIGNMENT final "The assignment of replicas to brokers is not allowed."
    40 INVALID_CONFIG final "A configuration key or value is not allowed."
    41 NOT_CONTROLLER again "This broker is not the controller."
    42 INVALID_REQUEST final "The request contradicts itself or misses something."
    43 UNSUPPORTED_FOR_MESSAGE_FORMAT final "The stored message format can't do that."
    44 POLICY_VIOLATION final "A policy of the cluster forbids it."
    45 OUT_OF_ORDER_SEQUENCE_NUMBER final "The producer's sequence number leaves a gap or goes back."
    46 DUPLICATE_SEQUENCE_NUMBER final "The batch was appended before, too long ago to tell where."
    47 INVALID_PRODUCER_EPOCH final "A newer producer has taken over this producer id."
    48 INVALID_TXN_STATE final "The transaction is not in a state that allows this."
    49 INVALID_PRODUCER_ID_MAPPING final "The producer id does not belong to that transactional id."
    50 INVALID_TRANSACTION_TIMEOUT final "The transaction timeout is above what the broker allows."
    51 CONCURRENT_TRANSACTIONS again "The previous transaction of that id is still being completed."
    52 TRANSACTION_COORDINATOR_FENCED final "A newer transaction coordinator has taken over."
    53 TRANSACTIONAL_ID_AUTHORIZATION_FAILED final "The principal may not use that transactional id."
    54 SECURITY_DISABLED final "The feature needs security that is not configured."
    55 OPERATION_NOT_ATTEMPTED final "It was not tried, because another part of the request failed."
    56 KAFKA_STORAGE_ERROR again "The broker could not reach the partition's log on its disk."
    57 LOG_DIR_NOT_FOUND final "The broker has no such log directory."
    58 SASL_AUTHENTICATION_FAILED final "The credentials were refused."
    59 UNKNOWN_PRODUCER_ID final "The broker remembers nothing of that producer id."
    60 REASSIGNMENT_IN_PROGRESS final "The partition's replicas are being moved."
    61 DELEGATION_TOKEN_AUTH_DISABLED final "Delegation tokens are not enabled."
    62 DELEGATION_TOKEN_NOT_FOUND final "There is no such delegation token."
    63 DELEGATION_TOKEN_OWNER_MISMATCH final "The principal does not own that delegation token."
    64 DELEGATION_TOKEN_REQUEST_NOT_ALLOWED final "Delegation tokens can't be managed over this connection."
    65 DELEGATION_TOKEN_AUTHORIZATION_FAILED final "The principal may not do this with the delegation token."
    66 DELEGATION_TOKEN_EXPIRED final "The delegation token has expired."
    67 INVALID_PRINCIPAL_TYPE final "The principal's type is not supported."
    68 NON_EMPTY_GROUP final "The group has members."
    69 GROUP_ID_NOT_FOUND final "There is no such group."
    70 FETCH_SESSION_ID_NOT_FOUND again "The broker has dropped that fetch session."
    71 INVALID_FETCH_SESSION_EPOCH again "The fetch session is at another epoch."
    72 LISTENER_NOT_FOUND again "The leader has no listener that matches this one."
    73 TOPIC_DELETION_DISABLED final "The cluster does not allow topics to be deleted."
    74 FENCED_LEADER_EPOCH again "The client's leader epoch is older than the broker's."
    75 UNKNOWN_LEADER_EPOCH again "The client's leader epoch is newer than the broker's."
    76 UNSUPPORTED_COMPRESSION_TYPE final "This version of the API can't carry that compression."
    77 STALE_BROKER_EPOCH final "The broker's epoch has changed."
    78 OFFSET_NOT_AVAILABLE again "A new leader does not know the high watermark yet."
    79 MEMBER_ID_REQUIRED final "The member must join again with the id that it was given."
    80 PREFERRED_LEADER_NOT_AVAILABLE again "The preferred leader is not available."
    81 GROUP_MAX_SIZE_REACHED final "The group has as many members as the broker allows."
    82 FENCED_INSTANCE_ID final "Another member has taken over this `group.instance.id`."
    83 ELIGIBLE_LEADERS_NOT_AVAILABLE again "No replica that may lead is available."
    84 ELECTION_NOT_NEEDED again "The partition has the leader that it should have."
    85 NO_REASSIGNMENT_IN_PROGRESS final "The partition's replicas are not being moved."
    86 GROUP_SUBSCRIBED_TO_TOPIC final "The group's members consume the topic, so its offsets can't be deleted."
    87 INVALID_RECORD final "A record breaks the rules that the broker checks."
    88 UNSTABLE_OFFSET_COMMIT again "A transaction that commits these offsets is still open."
    89 THROTTLING_QUOTA_EXCEEDED again "A quota on changes is used up."
    90 PRODUCER_FENCED final "A newer producer has taken over this transactional id."
    91 RESOURCE_NOT_FOUND final "What the request names does not exist."
    92 DUPLICATE_RESOURCE final "What the request names exists, or is named twice."
    93 UNACCEPTABLE_CREDENTIAL final "The credential does not meet the requirements."
    94 INCONSISTENT_VOTER_SET final "The voter sets of sender and receiver differ."
    95 INVALID_UPDATE_VERSION final "The update does not fit the current version."
    96 FEATURE_UPDATE_FAILED final "The feature could not be changed."
    97 PRINCIPAL_DESERIALIZATION_FAILURE final "The forwarded principal could not be read."
    98 SNAPSHOT_NOT_FOUND final "There is no such snapshot."
    99 POSITION_OUT_OF_RANGE final "The position lies outside the snapshot."
    100 UNKNOWN_TOPIC_ID again "This server does not host a topic of that id."
    101 DUPLICATE_BROKER_REGISTRATION final "Another broker has registered with that id."
    102 BROKER_ID_NOT_REGISTERED final "No broker has registered with that id."
    103 INCONSISTENT_TOPIC_ID again "The topic's id differs from the one in the log."
    104 INCONSISTENT_CLUSTER_ID final "The request names another cluster."
    105 TRANSACTIONAL_ID_NOT_FOUND final "There is no such transactional id."
    106 FETCH_SESSION_TOPIC_ID_ERROR again "A fetch session mixes requests with and without topic ids."
    107 INELIGIBLE_REPLICA final "The new in-sync set holds a replica that may not join it."
    108 NEW_LEADER_ELECTED final "The change made another broker the leader."
    109 OFFSET_MOVED_TO_TIERED_STORAGE final "The offset is in tiered storage only."
    110 FENCED_MEMBER_EPOCH final "The group has moved past the member's epoch: the member must join again."
    111 UNRELEASED_INSTANCE_ID final "A living member holds this `group.instance.id`."
    112 UNSUPPORTED_ASSIGNOR final "The group coordinator does not offer that assignor."
    113 STALE_MEMBER_EPOCH final "The member's epoch is behind: try again with the newest."
    114 MISMATCHED_ENDPOINT_TYPE final "The request came to the wrong kind of endpoint."
    115 UNSUPPORTED_ENDPOINT_TYPE final "This kind of endpoint is not known."
    116 UNKNOWN_CONTROLLER_ID final "No controller has that id."
    117 UNKNOWN_SUBSCRIPTION_ID final "The telemetry subscription has changed."
    118 TELEMETRY_TOO_LARGE final "The pushed metrics are too large."
    119 INVALID_REGISTRATION final "The controller refused the broker's registration."
    120 TRANSACTION_ABORTABLE final "The transaction failed and must be aborted; the producer may go on."
    121 INVALID_RECORD_STATE final "The record is not acquired by that member."
    122 SHARE_SESSION_NOT_FOUND again "The broker has dropped that share session."
    123 INVALID_SHARE_SESSION_EPOCH again "The share session is at another epoch."
    124 FENCED_STATE_EPOCH final "A newer owner of the share state has taken over."
    125 INVALID_VOTER_KEY final "The voter key does not match the receiver's."
    126 DUPLICATE_VOTER final "The voter is in the set."
    127 VOTER_NOT_FOUND final "The voter is not in the set."
    128 INVALID_REGULAR_EXPRESSION final "The regular expression can't be read."
    129 REBOOTSTRAP_REQUIRED final "The client's picture of the cluster is stale: it must bootstrap again."
    130 STREAMS_INVALID_TOPOLOGY final "The topology is not valid."
    131 STREAMS_INVALID_TOPOLOGY_EPOCH final "The topology's epoch is not valid."
    132 STREAMS_TOPOLOGY_FENCED final "A newer topology has taken over."
    133 SHARE_SESSION_LIMIT_REACHED again "The broker holds as many share sessions as it allows."
    134 GROUP_DELETION_FAILED final "The group could not be deleted."
    135 STREAMS_TOPOLOGY_DESCRIPTION_UPDATE_FAILED final "The description of the topology could not be updated."
    136 CONTROLLER_ID_NOT_REGISTERED final "No controller has registered with that id."
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_from_minus_one_to_136_has_its_row() {
        let numbers = ErrorCode::all().iter().map(|info| info.code.get());
        assert!(numbers.eq(-1..=136), "rows are sorted and without a gap");
    }

    #[test]
    fn names_lead_to_codes_and_back() {
        for info in ErrorCode::all() {
            assert_eq!(ErrorCode::by_name(&info.name.to_lowercase()), Some(info));
            assert_eq!(info.code.to_string(), info.name);
            assert!(info.meaning.ends_with('.'), "{} is explained in a sentence", info.name);
        }
        assert_eq!(ErrorCode::by_name("NO_SUCH_CODE"), None);
    }

    #[test]
    fn a_code_of_the_future_prints_its_number() {
        assert_eq!(format!("{}", ErrorCode::from_wire(999)), "999");
        assert!(!ErrorCode::from_wire(999).is_retriable());
    }
}
