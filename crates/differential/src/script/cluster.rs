//! ApiVersions, `DescribeCluster`, `InitProducerId`: what needs no topic.

use strandline_wire::{ApiKey, KafkaString, api_versions, describe_cluster, init_producer_id};

use super::{newest, patience, text, versions};
use crate::run::Run;

#[expect(clippy::unnecessary_wraps, reason = "parts of the script share a signature")]
pub(super) fn run(run: &mut Run) -> anyhow::Result<()> {
    api_versions(run);
    describe_cluster(run);
    init_producer_id(run);
    Ok(())
}

fn api_versions(run: &mut Run) {
    for api in versions(ApiKey::ApiVersions) {
        let named = |name: &str, version: &str| {
            let flexible = api.version() >= 3;
            api_versions::Request {
                client_software_name: if flexible { text(name) } else { KafkaString::default() },
                client_software_version: if flexible {
                    text(version)
                } else {
                    KafkaString::default()
                },
                ..Default::default()
            }
        };
        run.case("a client says who it is", api, |_| named("differential", "1.0"));
        run.case("a client's name has a space", api, |_| named("two words", "1.0"));
        run.case("a client has no name", api, |_| named("", ""));
        run.case("a client's version begins with a dash", api, |_| named("client", "-1"));
    }
}

fn describe_cluster(run: &mut Run) {
    for api in versions(ApiKey::DescribeCluster) {
        for include in [false, true] {
            run.case(&format!("authorized operations: {include}"), api, |_| {
                describe_cluster::Request {
                    include_cluster_authorized_operations: include,
                    ..Default::default()
                }
            });
        }
        if api.version() < 1 {
            continue;
        }
        for endpoint_type in [0, 2, 3, -1] {
            run.case(&format!("endpoint type {endpoint_type}"), api, |_| {
                describe_cluster::Request { endpoint_type, ..Default::default() }
            });
        }
        if api.version() >= 2 {
            run.case("fenced brokers too", api, |_| describe_cluster::Request {
                include_fenced_brokers: true,
                ..Default::default()
            });
        }
    }
}

fn init_producer_id(run: &mut Run) {
    // A broker that has just started may not give out ids yet; that is not compared.
    let api = newest(ApiKey::InitProducerId);
    for broker in [&mut run.kafka, &mut run.ours] {
        for _ in 0..100 {
            let request = plain();
            let mut code = 0;
            broker.ask::<init_producer_id::Response>(api, &request, patience(), |_, answer, _| {
                code = answer.error_code;
            });
            if code == 0 {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
    }
    for api in versions(ApiKey::InitProducerId) {
        run.case("an idempotent producer", api, |_| plain());
        run.case("a timeout of zero", api, |_| init_producer_id::Request {
            transaction_timeout_ms: 0,
            ..plain()
        });
        run.case("an empty transactional id", api, |_| init_producer_id::Request {
            transactional_id: Some(KafkaString::default()),
            ..plain()
        });
        run.case("a transactional id", api, |_| init_producer_id::Request {
            transactional_id: Some(text("payments")),
            transaction_timeout_ms: 60_000,
            ..plain()
        });
        if api.version() >= 3 {
            for (id, epoch) in [(5, -1), (-1, 5), (999_999, 3)] {
                run.case(&format!("producer {id} at epoch {epoch} goes on"), api, |_| {
                    init_producer_id::Request { producer_id: id, producer_epoch: epoch, ..plain() }
                });
            }
        }
    }
}

fn plain() -> init_producer_id::Request {
    init_producer_id::Request {
        transactional_id: None,
        transaction_timeout_ms: i32::MAX,
        producer_id: -1,
        producer_epoch: -1,
        ..Default::default()
    }
}
