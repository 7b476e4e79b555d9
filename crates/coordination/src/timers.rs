//! The deadlines of a machine, by what they are for.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Deadlines, at most one for each key.
#[derive(Clone, Debug)]
pub(crate) struct Timers<K> {
    at: BTreeMap<K, Duration>,
    order: BTreeSet<(Duration, K)>,
}

impl<K> Default for Timers<K> {
    fn default() -> Self {
        Self { at: BTreeMap::new(), order: BTreeSet::new() }
    }
}

impl<K: Ord + Clone> Timers<K> {
    /// Sets the deadline of `key`, in place of an older one.
    pub(crate) fn set(&mut self, key: K, at: Duration) {
        if let Some(old) = self.at.insert(key.clone(), at) {
            self.order.remove(&(old, key.clone()));
        }
        self.order.insert((at, key));
    }

    /// Forgets the deadline of `key`.
    pub(crate) fn cancel(&mut self, key: &K) {
        if let Some(old) = self.at.remove(key) {
            self.order.remove(&(old, key.clone()));
        }
    }

    /// The earliest deadline.
    pub(crate) fn next(&self) -> Option<Duration> {
        self.order.first().map(|(at, _)| *at)
    }

    /// How many deadlines are not after `now`, up to `max`.
    pub(crate) fn due_count(&self, now: Duration, max: usize) -> usize {
        self.order.iter().take(max).take_while(|(at, _)| *at <= now).count()
    }

    /// Takes the earliest key whose deadline is not after `now`.
    pub(crate) fn pop_due(&mut self, now: Duration) -> Option<K> {
        if self.next()? > now {
            return None;
        }
        let (_, key) = self.order.pop_first()?;
        self.at.remove(&key);
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_has_its_latest_deadline_and_comes_once() {
        let mut timers = Timers::default();
        let at = Duration::from_millis;
        timers.set("a", at(5));
        timers.set("b", at(3));
        timers.set("a", at(1));
        assert_eq!(timers.next(), Some(at(1)));
        assert_eq!(timers.pop_due(at(0)), None);
        assert_eq!(timers.pop_due(at(9)), Some("a"));
        timers.cancel(&"b");
        assert_eq!(timers.pop_due(at(9)), None);
        assert_eq!(timers.next(), None);
    }
}
