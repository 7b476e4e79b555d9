//! How an engine does, and what it counts: for readiness checks and metrics, which know no engine.

use std::time::Duration;

/// What keeps an engine from its work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trouble {
    /// For how long.
    pub lasting: Duration,
    /// What, as a lower-case fact, with what was said last.
    pub what: String,
}

/// Something that an engine counts or measures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figure {
    /// Lower-case words and `_`, with the unit at the end; `strandline_storage_` comes before it and, for
    /// a [count](FigureValue::Count), `_total` behind it. Part of what is promised to dashboards.
    pub name: &'static str,
    /// What it says, in a line. Figures of one name have one text, and one kind of value.
    pub help: &'static str,
    /// What tells figures of one name apart.
    pub label: Option<(&'static str, &'static str)>,
    /// Its value now.
    pub value: FigureValue,
}

/// The value of a [`Figure`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum FigureValue {
    /// Only ever rises; 0 at the start.
    Count(u64),
    /// Rises and falls.
    Level(f64),
    /// How long things took.
    Times(Times),
}

/// The upper bounds of the parts of [`Times`]; a last part has none.
pub const TIMES_BOUNDS: [Duration; 13] = [
    Duration::from_millis(1),
    Duration::from_micros(2_500),
    Duration::from_millis(5),
    Duration::from_millis(10),
    Duration::from_millis(25),
    Duration::from_millis(50),
    Duration::from_millis(100),
    Duration::from_millis(250),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_millis(2_500),
    Duration::from_secs(5),
    Duration::from_secs(10),
];

/// How long things took, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// How many took at most as long as each of [`TIMES_BOUNDS`] and longer than the one before; in the
    /// last, those that took longer than all.
    pub counts: [u64; TIMES_BOUNDS.len() + 1],
    /// All together.
    pub sum: Duration,
}

impl Times {
    /// Counts one more.
    pub fn add(&mut self, took: Duration) {
        let part = TIMES_BOUNDS.partition_point(|bound| *bound < took);
        self.counts[part] += 1;
        self.sum += took;
    }
}

impl Figure {
    /// A number that only rises.
    pub const fn count(name: &'static str, help: &'static str, value: u64) -> Self {
        Self { name, help, label: None, value: FigureValue::Count(value) }
    }

    /// A number that rises and falls.
    #[expect(clippy::cast_precision_loss, reason = "a measure needs no more than 52 bits")]
    pub const fn level(name: &'static str, help: &'static str, value: u64) -> Self {
        Self { name, help, label: None, value: FigureValue::Level(value as f64) }
    }

    /// A time, in seconds.
    pub fn seconds(name: &'static str, help: &'static str, value: Duration) -> Self {
        Self { name, help, label: None, value: FigureValue::Level(value.as_secs_f64()) }
    }

    /// Told apart from others of its name.
    #[must_use]
    pub const fn labelled(mut self, name: &'static str, value: &'static str) -> Self {
        self.label = Some((name, value));
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_fall_into_the_part_that_holds_them() {
        let mut times = Times::default();
        for millis in [0, 1, 2, 3, 10_000, 10_001] {
            times.add(Duration::from_millis(millis));
        }
        assert_eq!((times.counts[0], times.counts[1], times.counts[2]), (2, 1, 1));
        assert_eq!((times.counts[12], times.counts[13]), (1, 1));
        assert_eq!(times.sum, Duration::from_millis(20_007));
        assert!(TIMES_BOUNDS.is_sorted());
    }
}
