//! `strandline topic`: topics of any Kafka cluster, and what a Strandline broker keeps of them.

mod add_partitions;
mod alter;
mod create;
mod delete;
mod describe;
mod list;
mod offsets;
mod readers;
mod retention;
mod trim;
mod undelete;

use clap::Subcommand;

use super::OutputFormat;
use super::target::Target;
use crate::failure::Failure;

/// Creates, lists, describes, changes, trims and deletes topics, and tells what is kept of them.
#[derive(Debug, Subcommand)]
pub(crate) enum Topic {
    Create(create::Create),
    List(list::List),
    Describe(describe::Describe),
    Offsets(offsets::Offsets),
    Alter(alter::Alter),
    AddPartitions(add_partitions::AddPartitions),
    Trim(trim::Trim),
    Retention(retention::Retention),
    Segments(retention::Segments),
    Delete(delete::Delete),
    Undelete(undelete::Undelete),
}

impl Topic {
    pub(super) fn format(&self) -> OutputFormat {
        match self {
            Self::Create(create) => create.format,
            Self::List(list) => list.format,
            Self::Describe(describe) => describe.format,
            Self::Offsets(offsets) => offsets.format,
            Self::Alter(alter) => alter.format,
            Self::AddPartitions(add) => add.format,
            Self::Trim(trim) => trim.format,
            Self::Retention(retention) => retention.format,
            Self::Segments(segments) => segments.format,
            Self::Delete(delete) => delete.format,
            Self::Undelete(undelete) => undelete.format,
        }
    }

    pub(super) async fn run(self, target: &Target) -> Result<(), Failure> {
        match self {
            Self::Create(create) => create.run(target).await,
            Self::List(list) => list.run(target).await,
            Self::Describe(describe) => describe.run(target).await,
            Self::Offsets(offsets) => offsets.run(target).await,
            Self::Alter(alter) => alter.run(target).await,
            Self::AddPartitions(add) => add.run(target).await,
            Self::Trim(trim) => trim.run(target).await,
            Self::Retention(retention) => retention.run(target).await,
            Self::Segments(segments) => segments.run(target).await,
            Self::Delete(delete) => delete.run(target).await,
            Self::Undelete(undelete) => undelete.run(target).await,
        }
    }
}
