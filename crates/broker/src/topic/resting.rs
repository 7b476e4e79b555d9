//! Names of topics that were deleted a moment ago: naming such a topic does not bring it back.
//!
//! Producers and monitors ask for a deleted topic by its name at once. Where topics are created on
//! first use that would put an empty one with default settings in its place, before whoever deleted it
//! can create it anew. `CreateTopics` is not held up.

use std::time::Duration;

use hashbrown::HashMap;
use parking_lot::Mutex;
use strandline_model::TopicName;

/// How long a name rests.
const REST: Duration = Duration::from_secs(5);
/// Names that rest at a time. Reached: further ones do not rest.
const NAMES_MAX: usize = 10_000;

/// Resting names, with the times (of [`crate::Environment::monotonic`]) from which on they may be used.
#[derive(Debug, Default)]
pub(crate) struct RestingNames {
    until: Mutex<HashMap<TopicName, Duration>>,
}

impl RestingNames {
    /// Lets a name rest from `now` on.
    pub(crate) fn add(&self, name: TopicName, now: Duration) {
        let mut names = self.until.lock();
        if names.len() >= NAMES_MAX {
            names.retain(|_, until| *until > now);
        }
        if names.len() < NAMES_MAX {
            names.insert(name, now + REST);
        }
    }

    /// Whether a name rests.
    pub(crate) fn contains(&self, name: &str, now: Duration) -> bool {
        self.until.lock().get(name).is_some_and(|until| *until > now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> TopicName {
        TopicName::new(text).unwrap()
    }

    #[test]
    fn a_name_rests_for_a_while() {
        let names = RestingNames::default();
        let now = Duration::from_secs(100);
        names.add(name("t"), now);
        assert!(names.contains("t", now + Duration::from_millis(4_999)));
        assert!(!names.contains("t", now + REST));
        assert!(!names.contains("other", now));
    }

    #[test]
    fn names_that_have_rested_make_room() {
        let names = RestingNames::default();
        let now = Duration::from_secs(100);
        for index in 0..NAMES_MAX {
            names.add(name(&format!("t{index}")), now);
        }
        names.add(name("late"), now);
        assert!(!names.contains("late", now), "there is no room");
        names.add(name("later"), now + REST);
        assert!(names.contains("later", now + REST));
        assert_eq!(names.until.lock().len(), 1);
    }
}
