//! The image of all topics, and the one place that changes it.
//!
//! The metadata store is the truth; the image is what this broker knows of it, changed after the
//! commit that makes a change true and before the reply that tells of it.
//!
//! # Invariants
//! - A name leads to the topic that owns it; the same name may lead to another topic later.
//! - A topic whose deletion was committed is in no map, and marked as deleted for who still holds it.

use std::sync::Arc;

use bytes::Bytes;
use hashbrown::HashMap;
use parking_lot::RwLock;
use strandline_model::{TopicId, TopicName};
use strandline_storage::{MetaStore, StorageError, Table};

use super::{Topic, TopicRow};
use crate::row_codec::RowError;
use crate::settings::SettingsSource;

/// Rows read at a time.
const SCAN_ROWS: usize = 1_000;

/// Every topic.
#[derive(Debug)]
pub(crate) struct Registry {
    pub(super) meta: Arc<dyn MetaStore>,
    pub(super) settings: Arc<SettingsSource>,
    pub(super) image: RwLock<Image>,
}

#[derive(Debug, Default)]
pub(super) struct Image {
    by_id: HashMap<TopicId, Arc<Topic>>,
    pub(super) by_name: HashMap<TopicName, Arc<Topic>>,
    /// Names with a dot, by what they may not be confused with.
    names_by_collision_key: HashMap<String, TopicName>,
}

/// Why the topics could not be read at start.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The metadata store failed.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// A row makes no sense.
    #[error("metadata row can't be read. table=`{table:?}`, key=`{key:02x?}`")]
    Row {
        /// In which table.
        table: Table,
        /// Which row.
        key: Bytes,
        /// What is wrong with it.
        #[source]
        error: RowError,
    },
}

impl Registry {
    /// Reads all topics.
    pub(crate) async fn load(
        meta: Arc<dyn MetaStore>,
        settings: Arc<SettingsSource>,
    ) -> Result<Self, LoadError> {
        let mut image = Image::default();
        let mut after = None;
        loop {
            let page = meta.scan(Table::Topics, after, SCAN_ROWS).await?;
            for row in &page.rows {
                let bad =
                    |error| LoadError::Row { table: Table::Topics, key: row.key.clone(), error };
                let id = row.key.as_ref().try_into().map_err(|_| bad(RowError::Damaged))?;
                let topic = TopicRow::decode(row.value.clone()).map_err(bad)?;
                image.insert(Arc::new(topic.into_topic(TopicId::from_bytes(id), &settings)));
            }
            after = page.rows.last().map(|row| row.key.clone());
            if !page.more {
                return Ok(Self { meta, settings, image: RwLock::new(image) });
            }
        }
    }

    pub(crate) fn by_name(&self, name: &str) -> Option<Arc<Topic>> {
        self.image.read().by_name.get(name).map(Arc::clone)
    }

    pub(crate) fn by_id(&self, id: TopicId) -> Option<Arc<Topic>> {
        self.image.read().by_id.get(&id).map(Arc::clone)
    }

    /// All topics, by name.
    pub(crate) fn all(&self) -> Vec<Arc<Topic>> {
        let mut topics: Vec<_> = self.image.read().by_id.values().map(Arc::clone).collect();
        topics.sort_unstable_by(|a, b| a.name().cmp(b.name()));
        topics
    }

    /// How many topics there are.
    pub(crate) fn len(&self) -> usize {
        self.image.read().by_id.len()
    }

    pub(super) fn insert(&self, topic: Arc<Topic>) {
        self.image.write().insert(topic);
    }

    pub(super) fn remove(&self, topic: &Arc<Topic>) {
        let mut image = self.image.write();
        image.by_id.remove(&topic.id());
        // The name may belong to a new topic already.
        if image.by_name.get(topic.name()).is_some_and(|named| Arc::ptr_eq(named, topic)) {
            image.by_name.remove(topic.name());
            image.names_by_collision_key.remove(&topic.name().collision_key());
        }
    }
}

impl Image {
    /// A topic whose name differs from this one in `.` and `_` only.
    pub(super) fn colliding(&self, name: &TopicName) -> Option<&TopicName> {
        let key = name.collision_key();
        let dotted = self.names_by_collision_key.get(&key);
        dotted.or_else(|| self.by_name.get_key_value(key.as_str()).map(|(plain, _)| plain))
    }

    fn insert(&mut self, topic: Arc<Topic>) {
        let name = topic.name().clone();
        // Of most names it is the name itself.
        let key = name.collision_key();
        if key != name.as_str() {
            self.names_by_collision_key.insert(key, name.clone());
        }
        self.by_name.insert(name, Arc::clone(&topic));
        self.by_id.insert(topic.id(), topic);
    }
}

impl TopicRow {
    /// The topic that this row describes.
    pub(super) fn into_topic(self, id: TopicId, settings: &SettingsSource) -> Topic {
        let resolved = settings.shared_topic(self.configs);
        Topic::new(id, self.name, self.engine, self.partition_count, resolved)
    }
}
