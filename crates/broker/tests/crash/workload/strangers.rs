//! Topics whose rows go while their logs are there, as when metadata is older than they are.

use bytes::Bytes;
use strandline_storage::{LogStore, MetaBatch, MetaStore, Table};

use super::Workload;
use crate::promises::Phase;

/// The rows of a topic: its own, and that of its name.
struct TopicRows {
    id: Bytes,
    topic: Bytes,
    name: Bytes,
}

impl Workload {
    /// The topic comes back as it was.
    pub(super) async fn estrange_and_return(&mut self, life: usize) {
        let rows = self.estrange(life).await;
        let begun = self.begin(Phase::Release);
        self.promises.lives[life].changes.push(begun);
        let put = MetaBatch::new().put(Table::Topics, rows.id.clone(), rows.topic).put(
            Table::TopicNames,
            rows.name,
            rows.id,
        );
        self.world().engine.commit(put).await.expect("a healthy engine commits");
        let now = self.now();
        self.promises.lives[life].changes.last_mut().expect("just pushed").answered = Some(now);
        let cleanly = self.dice.one_in(2);
        self.restart(cleanly).await;
        self.begin(Phase::Release);
        self.world().reconcile().await;
        let partitions = self.promises.lives[life].partition_count;
        let name = self.promises.lives[life].name.clone();
        for partition in 0..partitions {
            // It is served, or this panics.
            self.client().bounds(&name, partition).await;
        }
    }

    /// The topic stays away for longer than its logs are kept.
    pub(super) async fn estrange_and_purge(&mut self, life: usize) {
        self.estrange(life).await;
        self.begin(Phase::PurgeStrangers);
        self.world().purge_strangers().await;
        let id = self.promises.lives[life].id.expect("it was created");
        let listed = self.world().engine.list().await.expect("it lists");
        assert!(listed.iter().all(|log| log.topic_id != id), "{id} is left of {listed:?}");
    }

    /// Takes the rows of a topic away, starts a broker that knows nothing of it, and lets it set aside
    /// what there is.
    async fn estrange(&mut self, life: usize) -> TopicRows {
        let id = self.promises.lives[life].id.expect("it was created");
        let key = Bytes::copy_from_slice(id.as_bytes());
        let name = Bytes::from(self.promises.lives[life].name.clone());
        let engine = &self.world().engine;
        let topic = engine.get(Table::Topics, key.clone()).await.unwrap().expect("it is there");
        let rows = TopicRows { id: key, topic, name };
        let begun = self.begin(Phase::Quarantine);
        self.promises.lives[life].changes.push(begun);
        self.promises.lives[life].estranged.get_or_insert(begun);
        let gone = MetaBatch::new()
            .delete(Table::Topics, rows.id.clone())
            .delete(Table::TopicNames, rows.name.clone());
        self.world().engine.commit(gone).await.expect("a healthy engine commits");
        let now = self.now();
        self.promises.lives[life].changes.last_mut().expect("just pushed").answered = Some(now);
        if self.dice.one_in(2) {
            // While a handle is open, and the journal has some of its batches.
            self.world().reconcile().await;
        }
        let cleanly = self.dice.one_in(2);
        self.restart(cleanly).await;
        self.begin(Phase::Quarantine);
        self.world().reconcile().await;
        let engine = &self.world().engine;
        let mut logs = engine.list().await.expect("it lists");
        logs.retain(|log| log.topic_id == id);
        let aside = engine.quarantined().await.expect("it lists");
        let aside: Vec<_> = aside.into_iter().map(|one| one.id).collect();
        assert!(logs.iter().all(|log| aside.contains(log)), "{logs:?} beside {aside:?}");
        rows
    }
}
