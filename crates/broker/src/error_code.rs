//! The one place where what happened becomes one of Kafka's error codes.
//!
//! A choice that is not obvious says why: mostly what the Java client does on the code.

use strandline_coordination::group::GroupError;
use strandline_coordination::{SessionError, TopicKey};
use strandline_model::LeaderEpoch;
use strandline_model::config::{ClientMetricsError, DynamicError};
use strandline_partition::Rejected;
use strandline_records::{InvalidBatch, RejectionReason};
use strandline_storage::{ErrorKind, StorageError};
use strandline_wire::{ErrorCode, TopicRef};

use crate::configs::AlterError;
use crate::drive::Unavailable;
use crate::features::UpdateError;
use crate::loggers::LoggerError;
use crate::partition::SlotError;
use crate::topic::{CreateError, CreatePartitionsError, DeleteError};

/// A failure of an engine, seen from a data request.
pub(crate) fn storage(error: &StorageError) -> ErrorCode {
    match error.kind() {
        // Retriable, and sends the client to fetch metadata: by then the log is open again.
        ErrorKind::Unavailable | ErrorKind::Closed | ErrorKind::Full | ErrorKind::Invalid => {
            ErrorCode::KAFKA_STORAGE_ERROR
        }
        // Another broker owns the log: the client must look for it.
        ErrorKind::Fenced => ErrorCode::NOT_LEADER_OR_FOLLOWER,
        // Kafka takes the partition offline; clients retry until an operator has looked.
        ErrorKind::Corrupt | ErrorKind::Missing => ErrorCode::KAFKA_STORAGE_ERROR,
    }
}

/// A failure of an engine, seen from a request that changes metadata.
pub(crate) fn meta(error: &StorageError) -> ErrorCode {
    match error.kind() {
        ErrorKind::Fenced => ErrorCode::NOT_CONTROLLER,
        ErrorKind::Unavailable | ErrorKind::Closed | ErrorKind::Full | ErrorKind::Invalid => {
            ErrorCode::COORDINATOR_NOT_AVAILABLE
        }
        ErrorKind::Corrupt | ErrorKind::Missing => ErrorCode::UNKNOWN_SERVER_ERROR,
    }
}

/// There is no such topic, in the words that fit how the client named it.
pub(crate) const fn unknown_topic(topic: &TopicRef) -> ErrorCode {
    match topic {
        TopicRef::Name(_) => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
        TopicRef::Id(_) => ErrorCode::UNKNOWN_TOPIC_ID,
    }
}

/// As [`unknown_topic`], of a fetch session's topic.
pub(crate) const fn unknown_session_topic(topic: &TopicKey) -> ErrorCode {
    match topic {
        TopicKey::Name(_) => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
        TopicKey::Id(_) => ErrorCode::UNKNOWN_TOPIC_ID,
    }
}

/// A request that the rules of groups refuse.
pub(crate) const fn group(error: GroupError) -> ErrorCode {
    match error {
        GroupError::InvalidGroupId => ErrorCode::INVALID_GROUP_ID,
        GroupError::GroupNotFound => ErrorCode::GROUP_ID_NOT_FOUND,
        GroupError::NonEmptyGroup => ErrorCode::NON_EMPTY_GROUP,
        GroupError::InvalidSessionTimeout => ErrorCode::INVALID_SESSION_TIMEOUT,
        GroupError::MemberIdRequired => ErrorCode::MEMBER_ID_REQUIRED,
        GroupError::UnknownMember => ErrorCode::UNKNOWN_MEMBER_ID,
        GroupError::FencedInstance => ErrorCode::FENCED_INSTANCE_ID,
        GroupError::IllegalGeneration => ErrorCode::ILLEGAL_GENERATION,
        GroupError::InconsistentProtocol => ErrorCode::INCONSISTENT_GROUP_PROTOCOL,
        GroupError::GroupFull => ErrorCode::GROUP_MAX_SIZE_REACHED,
        GroupError::RebalanceInProgress => ErrorCode::REBALANCE_IN_PROGRESS,
        // Kafka has no bound of its own; what it can't read as a request it calls so.
        GroupError::TooManyProtocols => ErrorCode::INVALID_REQUEST,
        // As Kafka, where the group's record does not fit into a batch of its offsets topic.
        GroupError::GroupTooLarge => ErrorCode::UNKNOWN_SERVER_ERROR,
    }
}

/// A coordinator that can't answer now. Retriable: the client looks for it again.
pub(crate) const fn unavailable(Unavailable: Unavailable) -> ErrorCode {
    ErrorCode::COORDINATOR_NOT_AVAILABLE
}

/// A partition that can't be used, asked for by a fetch.
pub(crate) fn slot_by(topic: &TopicKey, error: &SlotError) -> ErrorCode {
    match error {
        SlotError::Deleted => unknown_session_topic(topic),
        SlotError::Storage(error) => storage(error),
    }
}

/// A partition that can't be used, asked for by name.
pub(crate) fn slot(error: &SlotError) -> ErrorCode {
    match error {
        SlotError::Deleted => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
        SlotError::Storage(error) => storage(error),
    }
}

/// A batch that the partition refuses (KIP-98).
pub(crate) const fn rejected(rejected: &Rejected) -> ErrorCode {
    match rejected {
        Rejected::OutOfOrder { .. } => ErrorCode::OUT_OF_ORDER_SEQUENCE_NUMBER,
        Rejected::StaleEpoch { .. } => ErrorCode::INVALID_PRODUCER_EPOCH,
        Rejected::NoTransaction => ErrorCode::INVALID_TXN_STATE,
    }
}

/// A client that knows another leader epoch than ours (KIP-320); `None` when it agrees or knows none.
pub(crate) fn epoch_mismatch(ours: LeaderEpoch, theirs: i32) -> Option<ErrorCode> {
    // Only −1 means "unknown": Kafka compares every other number, negative ones too.
    if theirs == -1 {
        return None;
    }
    match theirs.cmp(&ours.get()) {
        std::cmp::Ordering::Less => Some(ErrorCode::FENCED_LEADER_EPOCH),
        std::cmp::Ordering::Equal => None,
        std::cmp::Ordering::Greater => Some(ErrorCode::UNKNOWN_LEADER_EPOCH),
    }
}

/// A fetch session that can't go on (KIP-227).
pub(crate) const fn session(error: SessionError) -> ErrorCode {
    match error {
        SessionError::UnknownId => ErrorCode::FETCH_SESSION_ID_NOT_FOUND,
        SessionError::WrongEpoch => ErrorCode::INVALID_FETCH_SESSION_EPOCH,
        SessionError::MixedTopics => ErrorCode::FETCH_SESSION_TOPIC_ID_ERROR,
    }
}

/// A topic that was not created.
pub(crate) fn create(error: &CreateError) -> ErrorCode {
    match error {
        CreateError::Name(_) | CreateError::Collides { .. } => ErrorCode::INVALID_TOPIC_EXCEPTION,
        CreateError::Exists(_) => ErrorCode::TOPIC_ALREADY_EXISTS,
        CreateError::PartitionCount => ErrorCode::INVALID_PARTITIONS,
        CreateError::NoReplica | CreateError::ReplicationFactor(_) => {
            ErrorCode::INVALID_REPLICATION_FACTOR
        }
        CreateError::Assignment(_) => ErrorCode::INVALID_REPLICA_ASSIGNMENT,
        CreateError::CountsAndAssignments(_) | CreateError::Internal(_) => {
            ErrorCode::INVALID_REQUEST
        }
        // What Kafka's controller answers to an excessive request.
        CreateError::TooManyPartitions => ErrorCode::POLICY_VIOLATION,
        CreateError::Config(_) => ErrorCode::INVALID_CONFIG,
        CreateError::Storage(error) => meta(error),
    }
}

/// Partitions that were not added.
pub(crate) fn create_partitions(error: &CreatePartitionsError) -> ErrorCode {
    match error {
        CreatePartitionsError::UnknownTopic => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
        CreatePartitionsError::Same { .. } | CreatePartitionsError::Fewer { .. } => {
            ErrorCode::INVALID_PARTITIONS
        }
        CreatePartitionsError::TooManyPartitions => ErrorCode::POLICY_VIOLATION,
        CreatePartitionsError::Assignment(_) => ErrorCode::INVALID_REPLICA_ASSIGNMENT,
        CreatePartitionsError::Storage(error) => meta(error),
    }
}

/// A topic that was not deleted.
pub(crate) fn delete(error: &DeleteError) -> ErrorCode {
    match error {
        DeleteError::UnknownTopic => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
        DeleteError::Disabled => ErrorCode::TOPIC_DELETION_DISABLED,
        DeleteError::Storage(error) => meta(error),
    }
}

/// Configuration that was not changed.
pub(crate) fn alter_configs(error: &AlterError) -> ErrorCode {
    match error {
        AlterError::UnknownResource(_)
        | AlterError::Name(_)
        | AlterError::BrokerName(_)
        | AlterError::OtherBroker { .. }
        | AlterError::Logger(LoggerError::RootUnset | LoggerError::Operation(_))
        // KAFKA-13609: Kafka has this one for brokers' values, not INVALID_CONFIG.
        | AlterError::Dynamic(
            DynamicError::ReadOnly(_)
            | DynamicError::PerListener(_)
            | DynamicError::Invalid(_)
            | DynamicError::PerBroker(_)
            | DynamicError::Conflict(_)
            | DynamicError::Change(_),
        )
        | AlterError::ClientMetrics(ClientMetricsError::Interval(_))
        | AlterError::UnknownClientMetrics(_)
        | AlterError::Quota(_) => ErrorCode::INVALID_REQUEST,
        AlterError::TopicName(_) => ErrorCode::INVALID_TOPIC_EXCEPTION,
        AlterError::UnknownTopic(_) => ErrorCode::UNKNOWN_TOPIC_OR_PARTITION,
        AlterError::NotAList(_)
        | AlterError::Logger(LoggerError::Unknown(_) | LoggerError::Level { .. })
        | AlterError::Setting(_)
        | AlterError::Dynamic(DynamicError::Unknown(_))
        | AlterError::Group(_)
        | AlterError::ClientMetrics(ClientMetricsError::Pattern(_)) => ErrorCode::INVALID_CONFIG,
        AlterError::Storage(error) => meta(error),
    }
}

/// Levels of features that were not changed.
pub(crate) fn update_features(error: &UpdateError) -> ErrorCode {
    match error {
        UpdateError::Refused(_) => ErrorCode::INVALID_UPDATE_VERSION,
        UpdateError::Storage(error) => meta(error),
    }
}

/// A batch that breaks the rules of its topic.
pub(crate) const fn invalid_batch(invalid: &InvalidBatch) -> ErrorCode {
    match invalid {
        InvalidBatch::NoBatch
        | InvalidBatch::SeveralBatches
        // Kafka has no code of its own for the formats that it dropped.
        | InvalidBatch::OldFormat { .. }
        | InvalidBatch::Header(_)
        | InvalidBatch::Content(_) => ErrorCode::INVALID_RECORD,
        InvalidBatch::Corrupt(_) => ErrorCode::CORRUPT_MESSAGE,
        InvalidBatch::TooLarge(_) => ErrorCode::MESSAGE_TOO_LARGE,
        InvalidBatch::LargerThanSegment(_) => ErrorCode::RECORD_LIST_TOO_LARGE,
        InvalidBatch::Records(rejected) => match rejected.reason {
            RejectionReason::Timestamps => ErrorCode::INVALID_TIMESTAMP,
            RejectionReason::Keys => ErrorCode::INVALID_RECORD,
        },
    }
}
