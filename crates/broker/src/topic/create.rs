//! Creating topics and adding partitions: one metadata commit each, logs open lazily.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use strandline_model::config::StorageEngine;
use strandline_model::{InvalidTopicName, NodeId, Timestamp, TopicId, TopicName};
use strandline_storage::{CommitError, MetaBatch, StorageError, Table};

use super::{Registry, Topic, TopicRow, name_key, topic_key};
use crate::settings::InvalidSetting;

/// Partitions that one request may create, over all its topics: Kafka's own bound.
pub(crate) const PARTITIONS_PER_REQUEST_MAX: u64 = 10_000;

/// A topic as a client asks for it. The numbers are the wire's, unchecked.
#[derive(Clone, Debug)]
pub(crate) struct NewTopic {
    pub(crate) name: String,
    /// −1: the broker's default.
    pub(crate) partition_count: i32,
    /// −1: the broker's default.
    pub(crate) replication_factor: i16,
    /// Replicas by partition, when the client chose them.
    pub(crate) assignments: Vec<(i32, Vec<i32>)>,
    pub(crate) configs: Vec<(String, Option<String>)>,
}

/// Why a topic was not created; in Kafka's words, but for what one replica means here.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum CreateError {
    #[error(transparent)]
    Name(#[from] InvalidTopicName),
    #[error("Topic '{0}' already exists.")]
    Exists(TopicName),
    #[error("Topic '{name}' collides with existing topic: {other}")]
    Collides { name: TopicName, other: TopicName },
    #[error("Number of partitions was set to an invalid non-positive value.")]
    PartitionCount,
    #[error("Creation of internal topic {0} is prohibited.")]
    Internal(TopicName),
    #[error("Replication factor must be larger than 0, or -1 to use the default value.")]
    NoReplica,
    #[error(
        "Unable to replicate the partition {0} time(s): The target replication factor of {0} cannot be \
         reached because only 1 broker(s) are registered: this broker keeps one replica, its engine \
         keeps it safe"
    )]
    ReplicationFactor(i16),
    #[error("{0}")]
    Assignment(String),
    #[error("A manual partition assignment was specified, but {0} was not set to -1.")]
    CountsAndAssignments(&'static str),
    #[error("Excessively large number of partitions per request.")]
    TooManyPartitions,
    #[error(transparent)]
    Config(#[from] InvalidSetting),
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// Why partitions were not added, in Kafka's words.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum CreatePartitionsError {
    #[error("topic does not exist")]
    UnknownTopic,
    #[error("Topic already has {have} partition(s).")]
    Same { have: u32 },
    #[error(
        "The topic {topic} currently has {have} partition(s); {asked} would not be an increase."
    )]
    Fewer { topic: TopicName, have: u32, asked: i32 },
    #[error("Excessively large number of additional partitions per request.")]
    TooManyPartitions,
    #[error("{0}")]
    Assignment(String),
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// A topic that passed every check.
#[derive(Debug)]
pub(crate) struct PlannedTopic {
    id: TopicId,
    row: TopicRow,
}

impl PlannedTopic {
    pub(crate) const fn id(&self) -> TopicId {
        self.id
    }

    pub(crate) const fn partition_count(&self) -> u32 {
        self.row.partition_count
    }

    pub(crate) const fn configs(&self) -> &BTreeMap<String, String> {
        &self.row.configs
    }
}

impl Registry {
    /// Checks everything about a new topic but whether its name is still free at the commit.
    pub(crate) fn plan_topic(
        &self,
        new: &NewTopic,
        id: TopicId,
        node: NodeId,
        now: Timestamp,
    ) -> Result<PlannedTopic, CreateError> {
        let name = TopicName::new(&new.name)?;
        if name.is_reserved() {
            return Err(CreateError::Internal(name));
        }
        self.check_name_is_free(&name)?;
        let partition_count = self.planned_partition_count(new, node)?;
        let configs = self.settings.check_topic_configs(&new.configs)?;
        let engine = if name.is_internal() {
            // The broker's own are derived, and kept in memory.
            StorageEngine::Memory.name().to_owned()
        } else {
            self.settings.engine_of(&configs)
        };
        let row = TopicRow { name, engine, partition_count, created_at: now, configs };
        Ok(PlannedTopic { id, row })
    }

    fn check_name_is_free(&self, name: &TopicName) -> Result<(), CreateError> {
        let image = self.image.read();
        if image.by_name.contains_key(name) {
            return Err(CreateError::Exists(name.clone()));
        }
        match image.colliding(name) {
            Some(other) => Err(CreateError::Collides { name: name.clone(), other: other.clone() }),
            None => Ok(()),
        }
    }

    fn planned_partition_count(&self, new: &NewTopic, node: NodeId) -> Result<u32, CreateError> {
        let is_lenient = self.settings.broker().replication_factor_lenient;
        let count = if new.assignments.is_empty() {
            match new.replication_factor {
                -1 | 1 => {}
                2.. if is_lenient => {}
                factor @ 2.. => return Err(CreateError::ReplicationFactor(factor)),
                _ => return Err(CreateError::NoReplica),
            }
            match new.partition_count {
                -1 => self.settings.broker().num_partitions,
                count => u32::try_from(count).map_err(|_| CreateError::PartitionCount)?,
            }
        } else {
            if new.replication_factor != -1 {
                return Err(CreateError::CountsAndAssignments("replication factor"));
            }
            if new.partition_count != -1 {
                return Err(CreateError::CountsAndAssignments("numPartitions"));
            }
            let indexes = new.assignments.iter().map(|(index, _)| *index);
            check_consecutive(indexes, 0).map_err(CreateError::Assignment)?;
            let replicas = new.assignments.iter().map(|(_, replicas)| replicas.as_slice());
            check_replicas(replicas, node, is_lenient).map_err(CreateError::Assignment)?;
            u32::try_from(new.assignments.len()).map_err(|_| CreateError::TooManyPartitions)?
        };
        match count {
            0 => Err(CreateError::PartitionCount),
            _ if u64::from(count) > PARTITIONS_PER_REQUEST_MAX => {
                Err(CreateError::TooManyPartitions)
            }
            _ => Ok(count),
        }
    }

    /// Commits a planned topic; from then on it exists.
    pub(crate) async fn create_topic(&self, plan: PlannedTopic) -> Result<Arc<Topic>, CreateError> {
        let PlannedTopic { id, row } = plan;
        let batch = MetaBatch::new()
            .expect_absent(Table::TopicNames, name_key(&row.name))
            .put(Table::TopicNames, name_key(&row.name), topic_key(id))
            .put(Table::Topics, topic_key(id), row.encode());
        match self.meta.commit(batch).await {
            Ok(()) => {}
            // Somebody else was first since the plan was made.
            Err(CommitError::Unexpected { .. }) => return Err(CreateError::Exists(row.name)),
            Err(CommitError::Storage(error)) => return Err(error.into()),
        }
        let topic = Arc::new(row.into_topic(id, &self.settings));
        self.insert(Arc::clone(&topic));
        // A change of the broker's configuration goes through the topics that are known by then.
        topic.refresh_settings(&self.settings);
        tracing::info!(
            topic = %topic.name(), id = %id, partitions = topic.partition_count(), "topic created"
        );
        Ok(topic)
    }

    /// Checks that `topic` may grow to `total` partitions.
    pub(crate) fn plan_partitions(
        &self,
        topic: &Topic,
        total: i32,
        assignments: Option<&[Vec<i32>]>,
        node: NodeId,
    ) -> Result<u32, CreatePartitionsError> {
        let have = topic.partition_count();
        let total = match u32::try_from(total) {
            Ok(more) if more > have => more,
            Ok(same) if same == have => return Err(CreatePartitionsError::Same { have }),
            _ => {
                let topic = topic.name().clone();
                return Err(CreatePartitionsError::Fewer { topic, have, asked: total });
            }
        };
        if u64::from(total - have) > PARTITIONS_PER_REQUEST_MAX {
            return Err(CreatePartitionsError::TooManyPartitions);
        }
        if let Some(assignments) = assignments {
            if u32::try_from(assignments.len()) != Ok(total - have) {
                let (additional, assigned) = (total - have, assignments.len());
                return Err(CreatePartitionsError::Assignment(format!(
                    "Attempted to add {additional} additional partition(s), but only {assigned} \
                     assignment(s) were specified."
                )));
            }
            let is_lenient = self.settings.broker().replication_factor_lenient;
            check_replicas(assignments.iter().map(Vec::as_slice), node, is_lenient)
                .map_err(CreatePartitionsError::Assignment)?;
        }
        Ok(total)
    }

    /// Commits the growth of `topic` to `total` partitions.
    pub(crate) async fn grow_topic(
        &self,
        topic: &Arc<Topic>,
        total: u32,
    ) -> Result<(), CreatePartitionsError> {
        let old = self.row_of(topic).await?.ok_or(CreatePartitionsError::UnknownTopic)?;
        let have = old.partition_count;
        // Somebody else was first since the plan was made.
        let late = |have| CreatePartitionsError::Fewer {
            topic: topic.name().clone(),
            have,
            asked: i32::try_from(total).unwrap_or(i32::MAX),
        };
        if total <= have {
            return Err(late(have));
        }
        let key = topic_key(topic.id());
        let new = TopicRow { partition_count: total, ..old.clone() };
        let batch = MetaBatch::new().expect_equals(Table::Topics, key.clone(), old.encode()).put(
            Table::Topics,
            key,
            new.encode(),
        );
        match self.meta.commit(batch).await {
            Ok(()) => topic.grow_to(total),
            Err(CommitError::Unexpected { .. }) => return Err(late(topic.partition_count())),
            Err(CommitError::Storage(error)) => return Err(error.into()),
        }
        tracing::info!(topic = %topic.name(), partitions = total, "partitions added");
        Ok(())
    }
}

/// Partition indexes must be `first`, `first + 1`, … in any order, each once.
fn check_consecutive(indexes: impl Iterator<Item = i32>, first: i32) -> Result<(), String> {
    let mut indexes: Vec<i32> = indexes.collect();
    indexes.sort_unstable();
    let mut next = indexes.iter().skip(1);
    if let Some(twice) = indexes.iter().find(|index| next.next() == Some(index)) {
        return Err(format!("Found multiple manual partition assignments for partition {twice}"));
    }
    if indexes.into_iter().zip(first..).all(|(index, expected)| index == expected) {
        Ok(())
    } else {
        Err("partitions should be a consecutive 0-based integer sequence".to_owned())
    }
}

/// Each partition has exactly one replica, on this node; or, where that is let pass, any that a
/// cluster could have.
fn check_replicas<'a>(
    mut assignments: impl Iterator<Item = &'a [i32]>,
    node: NodeId,
    is_lenient: bool,
) -> Result<(), String> {
    assignments.try_for_each(|replicas| {
        if replicas.is_empty() {
            return Err(
                "The manual partition assignment includes an empty replica list.".to_owned()
            );
        }
        let mut seen = BTreeSet::new();
        for &id in replicas {
            if id != node.get() && !(is_lenient && id >= 0) {
                return Err(format!(
                    "The manual partition assignment includes broker {id}, but no such broker is \
                     registered."
                ));
            }
            if !seen.insert(id) {
                return Err(format!(
                    "The manual partition assignment includes the broker {id} more than once."
                ));
            }
        }
        Ok(())
    })
}
