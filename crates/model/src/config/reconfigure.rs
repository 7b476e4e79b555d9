//! What a broker that runs does not change to, though it might have started with it (KIP-226): counts
//! of threads below half or above double of what runs, and no connections at all.
//!
//! Counts of threads have no effect here. They are bounded all the same: a tool that raises one step
//! by step, and relies on being told, meets what it meets at Kafka.

use super::broker_key;
use super::dynamic::DynamicError;
use super::resolve::BrokerLayers;
use super::value::Value;

/// Kafka's counts that it changes while running, in the order in which it looks at them.
const COUNTS: [&str; 10] = [
    "background.threads",
    "num.io.threads",
    "num.recovery.threads.per.data.dir",
    "num.replica.fetchers",
    "log.cleaner.threads",
    "num.network.threads",
    "remote.log.reader.threads",
    "remote.log.manager.copier.thread.pool.size",
    "remote.log.manager.expiration.thread.pool.size",
    "remote.log.manager.follower.thread.pool.size",
];
/// The one with words of its own, and the only one that may be zero by itself.
const CLEANER: &str = "log.cleaner.threads";
/// Limits of connections that shut everybody out at zero.
const LIMITS: [&str; 2] = ["max.connections", "max.connection.creation.rate"];

impl BrokerLayers {
    /// Whether a broker that runs with these layers may change to `after`.
    pub fn check_change(&self, after: &Self) -> Result<(), DynamicError> {
        for name in COUNTS {
            let (Some(current), Some(wanted)) = (self.count(name), after.count(name)) else {
                continue;
            };
            if let Some(why) = out_of_bounds(name, current, wanted) {
                return Err(DynamicError::Change(why));
            }
        }
        for name in LIMITS {
            if after.count(name) == Some(0) && self.count(name) != Some(0) {
                return Err(DynamicError::Change(format!("Invalid {name} 0")));
            }
        }
        Ok(())
    }

    fn count(&self, name: &str) -> Option<i64> {
        match self.value(broker_key(name)?)? {
            (Value::Number(count), _) => Some(count),
            _ => None,
        }
    }
}

/// What is wrong with so many threads, in Kafka's words.
fn out_of_bounds(name: &str, current: i64, wanted: i64) -> Option<String> {
    if name == CLEANER {
        return if wanted < 1 {
            Some("Log cleaner threads should be at least 1".to_owned())
        } else if wanted < current / 2 {
            let bound = "Log cleaner threads cannot be reduced to less than half the current value";
            Some(format!("{bound} {current}"))
        } else if wanted > current.saturating_mul(2) {
            let bound = "Log cleaner threads cannot be increased to more than double the current";
            Some(format!("{bound} value {current}"))
        } else {
            None
        };
    }
    let bound = if wanted < current / 2 {
        "be at least half"
    } else if wanted > current.saturating_mul(2) {
        "not be greater than double"
    } else {
        return None;
    };
    Some(format!(
        "Dynamic thread count update validation failed for {name}={wanted}, value should {bound} \
         the current value {current}"
    ))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::config::{ConfigKey, DynamicLayer, Scope};

    fn layers(settings: &[(&str, &str)]) -> BrokerLayers {
        let mut layers = BrokerLayers::default();
        for (name, text) in settings {
            layers.static_broker.set(Scope::Broker, name, text).expect("a good value");
        }
        layers
    }

    fn set(from: &BrokerLayers, name: &str, count: i64) -> Result<BrokerLayers, String> {
        let texts = BTreeMap::from([(name.to_owned(), count.to_string())]);
        let (after, _) =
            from.with_dynamic(DynamicLayer::Broker, &texts).map_err(|error| error.to_string())?;
        from.check_change(&after).map_err(|error| error.to_string())?;
        Ok(after)
    }

    /// As Apache Kafka 4.4 answered.
    #[test]
    fn a_count_goes_to_half_and_to_double_of_what_runs() {
        for name in COUNTS {
            let default = broker_key(name).and_then(|key: &ConfigKey| key.default);
            let current: i64 = default.and_then(|text| text.parse().ok()).expect("a count");
            for wanted in [(current / 2).max(1), current, current * 2] {
                set(&layers(&[]), name, wanted).expect("within the bounds");
            }
            set(&layers(&[]), name, current * 2 + 1).expect_err("beyond double");
            if current / 2 > 1 {
                set(&layers(&[]), name, current / 2 - 1).expect_err("below half");
            }
        }
        for (name, wanted, why) in [
            (
                "num.io.threads",
                3,
                "Dynamic thread count update validation failed for num.io.threads=3, value should \
                 be at least half the current value 8",
            ),
            (
                "num.io.threads",
                17,
                "Dynamic thread count update validation failed for num.io.threads=17, value \
                 should not be greater than double the current value 8",
            ),
            (
                "log.cleaner.threads",
                3,
                "Log cleaner threads cannot be increased to more than double the current value 1",
            ),
            ("max.connections", 0, "Invalid max.connections 0"),
            ("max.connection.creation.rate", 0, "Invalid max.connection.creation.rate 0"),
        ] {
            let words = format!(
                "Invalid value org.apache.kafka.common.config.ConfigException: {why} for \
                 configuration Invalid dynamic configuration"
            );
            assert_eq!(set(&layers(&[]), name, wanted), Err(words));
        }
    }

    #[test]
    fn what_runs_counts_wherever_it_was_set_and_what_is_hidden_does_not() {
        let doubled = set(&layers(&[("num.io.threads", "20")]), "num.io.threads", 40);
        let doubled = doubled.expect("double of the file's");
        set(&doubled, "num.io.threads", 80).expect("double of what runs");
        // Forgetting it would go back to the file's, which is half of it, and then to less.
        let far = set(&doubled, "num.io.threads", 80).expect("double of what runs");
        let (after, _) =
            far.with_dynamic(DynamicLayer::Broker, &BTreeMap::new()).expect("good by itself");
        far.check_change(&after).expect_err("20 is less than half of 80");
        // Below the broker's own a value for all brokers changes nothing, whatever it is.
        let hidden = BTreeMap::from([("num.io.threads".to_owned(), "1000".to_owned())]);
        let (after, _) = far.with_dynamic(DynamicLayer::Default, &hidden).expect("good");
        far.check_change(&after).expect("what runs stays");
    }
}
