//! The storage engines that this broker has, by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use strandline_storage::{ErrorKind, LogStore, StorageError};

/// Log stores by the name that `storage.engine` pins a topic to.
#[derive(Clone, Debug)]
pub struct Engines(BTreeMap<String, Engine>);

#[derive(Clone, Debug)]
struct Engine {
    store: Arc<dyn LogStore>,
    strangers: Strangers,
}

/// What becomes of logs that no topic knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Strangers {
    /// They are set aside and, later, removed.
    Quarantine,
    /// They are told of and left alone: metadata does not live as long as they do, so nobody can know
    /// whose they are.
    Report,
}

impl Engines {
    /// One engine under its name; more may follow.
    pub fn new(name: impl Into<String>, store: Arc<dyn LogStore>) -> Self {
        Self(BTreeMap::new()).and(name, store)
    }

    /// Adds an engine, whose logs live no longer than metadata does.
    #[must_use]
    pub fn and(self, name: impl Into<String>, store: Arc<dyn LogStore>) -> Self {
        self.and_with(name, store, Strangers::Quarantine)
    }

    /// Adds an engine.
    #[must_use]
    pub fn and_with(
        mut self,
        name: impl Into<String>,
        store: Arc<dyn LogStore>,
        strangers: Strangers,
    ) -> Self {
        self.0.insert(name.into(), Engine { store, strangers });
        self
    }

    /// The engine `name`. A topic whose engine this broker does not have is unavailable, not gone.
    pub(crate) fn store(&self, name: &str) -> Result<Arc<dyn LogStore>, StorageError> {
        self.0.get(name).map(|engine| Arc::clone(&engine.store)).ok_or_else(|| {
            let message =
                format!("storage engine is not configured on this broker. engine=`{name}`");
            StorageError::new(ErrorKind::Unavailable, message)
        })
    }

    /// Every engine.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &Arc<dyn LogStore>)> {
        self.0.iter().map(|(name, engine)| (name.as_str(), &engine.store))
    }

    /// Every engine, and what becomes of its logs that no topic knows.
    pub(crate) fn with_strangers(
        &self,
    ) -> impl Iterator<Item = (&str, &Arc<dyn LogStore>, Strangers)> {
        self.0.iter().map(|(name, engine)| (name.as_str(), &engine.store, engine.strangers))
    }
}
