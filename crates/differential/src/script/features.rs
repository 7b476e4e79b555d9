//! UpdateFeatures, DescribeQuorum and `UnregisterBroker`: what only controllers decide.

use strandline_wire::{Api, ApiKey, describe_quorum, unregister_broker, update_features};

use super::{text, versions};
use crate::run::Run;

const UPGRADE: i8 = 1;
const SAFE_DOWNGRADE: i8 = 2;
const UNSAFE_DOWNGRADE: i8 = 3;

pub(super) fn run(run: &mut Run) -> anyhow::Result<()> {
    let before = run.cases;
    for api in versions(ApiKey::UpdateFeatures) {
        updates(run, api);
    }
    for api in versions(ApiKey::DescribeQuorum) {
        quorums(run, api);
    }
    for api in versions(ApiKey::UnregisterBroker) {
        // Not the broker itself: Kafka leaves it running without a partition until its next start.
        for broker_id in [0, 77, -1, i32::MAX] {
            let case = format!("broker {broker_id}, which there is not");
            run.case(&case, api, |_| unregister_broker::Request {
                broker_id,
                ..Default::default()
            });
        }
    }
    anyhow::ensure!(run.cases > before, "nothing was asked");
    Ok(())
}

fn updates(run: &mut Run, api: Api) {
    // From 4.4-IV2, the highest level: Kafka goes back behind no level that changed its metadata.
    for wanted in [
        &[][..],
        &[("metadata.version", 33, UPGRADE)],
        &[("metadata.version", 33, SAFE_DOWNGRADE)],
        &[("metadata.version", 34, UPGRADE)],
        &[("metadata.version", 32, UPGRADE)],
        &[("metadata.version", 32, SAFE_DOWNGRADE)],
        &[("metadata.version", 7, SAFE_DOWNGRADE)],
        &[("metadata.version", 32, UNSAFE_DOWNGRADE)],
        &[("metadata.version", 6, UNSAFE_DOWNGRADE)],
        &[("metadata.version", 0, SAFE_DOWNGRADE)],
        &[("metadata.version", -1, SAFE_DOWNGRADE)],
        &[("metadata.version", 33, 0)],
        &[("metadata.version", 33, 4)],
        &[("no.such", 1, UPGRADE)],
        &[("no.such", 0, SAFE_DOWNGRADE)],
        &[("", 1, UPGRADE)],
        &[("metadata.version", 33, UPGRADE), ("no.such", 1, UPGRADE)],
        &[("metadata.version", 33, UPGRADE), ("metadata.version", 6, UPGRADE)],
    ] {
        for validate_only in if api.version() == 0 { &[false][..] } else { &[true, false] } {
            for allow_downgrade in if api.version() == 0 { &[false, true][..] } else { &[false] } {
                let update = |&(feature, level, upgrade_type): &(&str, i16, i8)| {
                    update_features::FeatureUpdateKey {
                        feature: text(feature),
                        max_version_level: level,
                        allow_downgrade: *allow_downgrade,
                        // Version 0 has no field for it.
                        upgrade_type: if api.version() == 0 { UPGRADE } else { upgrade_type },
                        ..Default::default()
                    }
                };
                let case = format!("{wanted:?}, validate only: {validate_only}");
                run.case(&case, api, |_| update_features::Request {
                    timeout_ms: 5_000,
                    feature_updates: wanted.iter().map(update).collect(),
                    validate_only: *validate_only,
                    ..Default::default()
                });
            }
        }
    }
}

fn quorums(run: &mut Run, api: Api) {
    for topics in [
        &[("__cluster_metadata", &[0][..])][..],
        &[("__cluster_metadata", &[0, 1])],
        &[("__cluster_metadata", &[])],
        &[("no.such", &[0])],
        &[("__cluster_metadata", &[0]), ("no.such", &[0])],
        &[],
    ] {
        let partition = |&partition_index: &i32| describe_quorum::PartitionData {
            partition_index,
            ..Default::default()
        };
        let topic = |&(name, indexes): &(&str, &[i32])| describe_quorum::TopicData {
            topic_name: text(name),
            partitions: indexes.iter().map(partition).collect(),
            ..Default::default()
        };
        run.case(&format!("the quorum of {topics:?}"), api, |_| describe_quorum::Request {
            topics: topics.iter().map(topic).collect(),
            ..Default::default()
        });
    }
}
