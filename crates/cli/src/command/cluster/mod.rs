//! `strandline cluster`: what a Kafka cluster consists of and speaks.

mod apis;
mod health;
mod info;

use clap::Subcommand;

use super::OutputFormat;
use super::target::Target;
use crate::failure::Failure;

/// Shows the cluster: its id, nodes, features, versions, health.
#[derive(Debug, Subcommand)]
pub(crate) enum Cluster {
    Info(info::Info),
    Apis(apis::Apis),
    Health(health::Health),
}

impl Cluster {
    pub(super) fn format(&self) -> OutputFormat {
        match self {
            Self::Info(info) => info.format,
            Self::Apis(apis) => apis.format,
            Self::Health(health) => health.format,
        }
    }

    pub(super) async fn run(self, target: &Target) -> Result<(), Failure> {
        match self {
            Self::Info(info) => info.run(target).await,
            Self::Apis(apis) => apis.run(target).await,
            Self::Health(health) => health.run(target).await,
        }
    }
}
