//! The storage engines that this broker has, by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use strandline_storage::{ErrorKind, LogStore, StorageError};

/// Log stores by the name that `storage.engine` pins a topic to.
#[derive(Clone, Debug)]
pub struct Engines(BTreeMap<String, Arc<dyn LogStore>>);

impl Engines {
    /// One engine under its name; more may follow.
    pub fn new(name: impl Into<String>, store: Arc<dyn LogStore>) -> Self {
        Self(BTreeMap::from([(name.into(), store)]))
    }

    /// Adds an engine.
    #[must_use]
    pub fn and(mut self, name: impl Into<String>, store: Arc<dyn LogStore>) -> Self {
        self.0.insert(name.into(), store);
        self
    }

    /// The engine `name`. A topic whose engine this broker does not have is unavailable, not gone.
    pub(crate) fn store(&self, name: &str) -> Result<Arc<dyn LogStore>, StorageError> {
        self.0.get(name).map(Arc::clone).ok_or_else(|| {
            let message =
                format!("storage engine is not configured on this broker. engine=`{name}`");
            StorageError::new(ErrorKind::Unavailable, message)
        })
    }

    /// Every engine.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Arc<dyn LogStore>)> {
        self.0.iter().map(|(name, store)| (name.as_str(), store))
    }
}
