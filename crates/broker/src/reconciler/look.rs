//! One look at an engine beside what metadata says.

use strandline_model::PartitionId;
use strandline_partition::reconcile::{Comparison, Inventory, compare};
use strandline_storage::{LogStore, LossCertainty, Lost, MetaStore, Quarantined};

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
        let listed = store.list().await?;
        Self::of(engine, listed, store.quarantined().await?, store.lost().await?, meta).await
    }

    /// The same of what a store, or who looked at its files, has told before this is called.
    pub async fn of(
        engine: &str,
        listed: impl IntoIterator<Item = PartitionId>,
        quarantined: Vec<Quarantined>,
        lost: Vec<Lost>,
        meta: &dyn MetaStore,
    ) -> Result<Self, LoadError> {
        let of = |certainty| {
            let those = lost.iter().filter(move |lost| lost.certainty == certainty);
            those.map(|lost| (lost.id, lost.what.clone())).collect()
        };
        let inventory = Inventory {
            listed: listed.into_iter().collect(),
            quarantined: quarantined.iter().map(|one| (one.id, one.since)).collect(),
            lost: of(LossCertainty::Gone),
            damaged: of(LossCertainty::InPart),
            unreadable: of(LossCertainty::Unreadable),
        };
        let metadata = Metadata::read(meta).await?;
        let comparison = compare(&inventory, &metadata.claims(engine));
        Ok(Self { comparison, quarantined, metadata })
    }
}
