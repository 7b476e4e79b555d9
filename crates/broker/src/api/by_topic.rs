//! An answer that is put together topic by topic, however its topics come.

use std::hash::Hash;

use hashbrown::HashMap;

/// The topics of an answer in the order in which they began; each is found by its key at once, so that
/// an answer about many costs what it holds.
pub(super) struct ByTopic<K, T> {
    topics: Vec<T>,
    /// Where the last topic of a key is.
    last: HashMap<K, usize>,
}

impl<K, T> Default for ByTopic<K, T> {
    fn default() -> Self {
        Self { topics: Vec::new(), last: HashMap::new() }
    }
}

impl<K: Eq + Hash, T> ByTopic<K, T> {
    /// The last topic of that key, which begins here when there is none.
    pub(super) fn topic(&mut self, key: K, new: impl FnOnce() -> T) -> &mut T {
        let topics = &mut self.topics;
        let place = *self.last.entry(key).or_insert_with(|| {
            topics.push(new());
            topics.len() - 1
        });
        &mut self.topics[place]
    }

    /// Begins a topic, though there may be one of that key.
    pub(super) fn begin(&mut self, key: K, new: T) {
        self.last.insert(key, self.topics.len());
        self.topics.push(new);
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.topics.is_empty()
    }

    pub(super) fn into_topics(self) -> Vec<T> {
        self.topics
    }
}
