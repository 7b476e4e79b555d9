//! One look at an engine beside what metadata says.

use strandline_partition::reconcile::{Comparison, Inventory, compare};
use strandline_storage::{LogStore, MetaStore, Quarantined};

use super::Metadata;
use crate::topic::LoadError;

/// What was found at one moment.
#[derive(Debug)]
pub struct Look {
    /// Each log, by what is to become of it.
    pub comparison: Comparison,
    /// What is in quarantine, of topics that exist too.
    pub quarantined: Vec<Quarantined>,
    /// What metadata said.
    pub metadata: Metadata,
}

impl Look {
    /// Looks at `store`, which metadata calls `engine`.
    ///
    /// The store first, metadata afterwards: a log has bytes only after its topic was committed.
    pub async fn at(
        engine: &str,
        store: &dyn LogStore,
        meta: &dyn MetaStore,
    ) -> Result<Self, LoadError> {
        let quarantined = store.quarantined().await?;
        let inventory = Inventory {
            listed: store.list().await?.into_iter().collect(),
            quarantined: quarantined.iter().map(|one| (one.id, one.since)).collect(),
            lost: store.lost().await?.into_iter().map(|lost| (lost.id, lost.what)).collect(),
        };
        let metadata = Metadata::read(meta).await?;
        let comparison = compare(&inventory, &metadata.claims(engine));
        Ok(Self { comparison, quarantined, metadata })
    }
}
