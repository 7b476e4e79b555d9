//! Which error codes stand in an answer, so that they are counted.
//!
//! The same codes that Kafka's metric `ErrorsPerSec` counts: that of the answer as a whole, where it
//! has one, and that of each thing that was asked for.

use std::iter::{empty, once};

use strandline_wire::{
    alter_client_quotas, alter_configs, alter_partition_reassignments, alter_replica_log_dirs,
    api_versions, create_partitions, create_topics, delete_groups, delete_records, delete_topics,
    describe_client_quotas, describe_cluster, describe_configs, describe_groups, describe_log_dirs,
    describe_producers, describe_quorum, describe_topic_partitions, elect_leaders, fetch,
    find_coordinator, heartbeat, incremental_alter_configs, init_producer_id, join_group,
    leave_group, list_config_resources, list_groups, list_offsets, list_partition_reassignments,
    metadata, offset_commit, offset_delete, offset_fetch, offset_for_leader_epoch, produce,
    sync_group, unregister_broker, update_features,
};

/// An answer with error codes.
pub(crate) trait Codes {
    /// Its codes, `NONE` too.
    fn codes(&self) -> impl Iterator<Item = i16>;
}

/// Answers with one code for all.
macro_rules! whole {
    ($($api:ident)+) => {$(
        impl Codes for $api::Response {
            fn codes(&self) -> impl Iterator<Item = i16> {
                once(self.error_code)
            }
        }
    )+};
}

/// Answers with a code for each of what they list, and one for all where `and` says so.
macro_rules! each {
    ($($api:ident: $list:ident $(. $inner:ident)? $(and $whole:ident)?;)+) => {$(
        impl Codes for $api::Response {
            fn codes(&self) -> impl Iterator<Item = i16> {
                let each = self.$list.iter()$(.flat_map(|one| &one.$inner))?;
                empty()$(.chain(once(self.$whole)))?.chain(each.map(|one| one.error_code))
            }
        }
    )+};
}

whole! {
    api_versions describe_client_quotas describe_cluster heartbeat init_producer_id join_group
    list_config_resources list_groups list_partition_reassignments sync_group
    unregister_broker
}

each! {
    alter_client_quotas: entries;
    alter_configs: responses;
    alter_partition_reassignments: responses.partitions and error_code;
    alter_replica_log_dirs: results.partitions;
    create_partitions: results;
    create_topics: topics;
    delete_groups: results;
    delete_records: topics.partitions;
    delete_topics: responses;
    describe_configs: results;
    describe_groups: groups;
    describe_log_dirs: results and error_code;
    describe_producers: topics.partitions;
    describe_quorum: topics.partitions and error_code;
    elect_leaders: replica_election_results.partition_result and error_code;
    incremental_alter_configs: responses;
    leave_group: members and error_code;
    list_offsets: topics.partitions;
    offset_commit: topics.partitions;
    offset_delete: topics.partitions and error_code;
    offset_for_leader_epoch: topics.partitions;
    update_features: results and error_code;
}

impl Codes for produce::Response {
    fn codes(&self) -> impl Iterator<Item = i16> {
        let partitions = self.topics.iter().flat_map(|topic| &topic.partitions);
        partitions.map(|partition| partition.error.get())
    }
}

impl Codes for fetch::Response {
    fn codes(&self) -> impl Iterator<Item = i16> {
        let partitions = self.topics.iter().flat_map(|topic| &topic.partitions);
        once(self.error.get()).chain(partitions.map(|partition| partition.error.get()))
    }
}

impl Codes for metadata::Response {
    fn codes(&self) -> impl Iterator<Item = i16> {
        let of_topic = |topic: &metadata::MetadataResponseTopic| topic.error_code;
        let partitions = self.topics.iter().flat_map(|topic| &topic.partitions);
        let whole = once(self.error_code).filter(|code| *code != 0);
        whole
            .chain(self.topics.iter().map(of_topic))
            .chain(partitions.map(|partition| partition.error_code))
    }
}

impl Codes for describe_topic_partitions::Response {
    fn codes(&self) -> impl Iterator<Item = i16> {
        let partitions = self.topics.iter().flat_map(|topic| &topic.partitions);
        let topics = self.topics.iter().map(|topic| topic.error_code);
        topics.chain(partitions.map(|partition| partition.error_code))
    }
}

impl Codes for find_coordinator::Response {
    /// From version 4 on there is a list, before it a code.
    fn codes(&self) -> impl Iterator<Item = i16> {
        let whole = once(self.error_code).filter(|_| self.coordinators.is_empty());
        whole.chain(self.coordinators.iter().map(|one| one.error_code))
    }
}

impl Codes for offset_fetch::Response {
    /// From version 8 on there are groups, before it a code and partitions.
    fn codes(&self) -> impl Iterator<Item = i16> {
        let whole = once(self.error_code).filter(|_| self.groups.is_empty());
        let partitions = self.topics.iter().flat_map(|topic| &topic.partitions);
        let of_groups = self.groups.iter().flat_map(|group| &group.topics);
        whole
            .chain(partitions.map(|partition| partition.error_code))
            .chain(self.groups.iter().map(|group| group.error_code))
            .chain(of_groups.flat_map(|topic| &topic.partitions).map(|one| one.error_code))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_list_is_walked() {
        let partition = |error_code| offset_fetch::OffsetFetchResponsePartitions {
            error_code,
            ..Default::default()
        };
        let topic = offset_fetch::OffsetFetchResponseTopics {
            partitions: vec![partition(0), partition(3)],
            ..Default::default()
        };
        let group = offset_fetch::OffsetFetchResponseGroup {
            topics: vec![topic],
            error_code: 16,
            ..Default::default()
        };
        let response = offset_fetch::Response { groups: vec![group], ..Default::default() };
        assert_eq!(response.codes().collect::<Vec<_>>(), [16, 0, 3]);
        let response = offset_fetch::Response { error_code: 15, ..Default::default() };
        assert_eq!(response.codes().collect::<Vec<_>>(), [15]);
    }

    #[test]
    fn the_code_of_the_whole_comes_first() {
        let member = leave_group::MemberResponse { error_code: 25, ..Default::default() };
        let response =
            leave_group::Response { error_code: 0, members: vec![member], ..Default::default() };
        assert_eq!(response.codes().collect::<Vec<_>>(), [0, 25]);
    }
}
