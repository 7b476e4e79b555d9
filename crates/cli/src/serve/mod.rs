//! Running a broker: what to start (a pure plan), starting it, and stopping it.

mod banner;
mod coordinators;
mod deletions;
mod dry_run;
mod feature_spec;
mod meaning;
mod opening;
mod parent;
mod plan;
mod port_owner;
mod ports;
mod postgres;
mod reconciliation;
mod run;
mod status;
mod stop;
mod storage;
mod tell;
mod topic_spec;

pub(crate) use dry_run::dry_run;
pub(crate) use feature_spec::FeatureSpec;
pub(crate) use plan::{Plan, ServeOptions};
pub(crate) use postgres::config as postgres_config;
pub(crate) use run::{chain, now, run};
pub(crate) use storage::cannot_open;
pub(crate) use topic_spec::TopicSpec;
