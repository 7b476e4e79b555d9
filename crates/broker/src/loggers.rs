//! Levels of loggers, which change while the broker runs (KIP-412). As in Kafka they end with the
//! process.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;
use strandline_model::config::{AlterOp, Alteration};

/// The logger above all others.
const ROOT: &str = "root";

/// The least that is logged. In Kafka's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLevel {
    /// Everything.
    Trace,
    /// What developers look for.
    Debug,
    /// Changes that an operator would ask about.
    Info,
    /// What was not expected.
    Warn,
    /// What an operator must act on.
    Error,
    /// Nothing: what ends the process is said in any case.
    Fatal,
}

impl LogLevel {
    const ALL: [Self; 6] =
        [Self::Debug, Self::Error, Self::Fatal, Self::Info, Self::Trace, Self::Warn];

    /// Kafka's name of it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Trace => "TRACE",
            Self::Debug => "DEBUG",
            Self::Info => "INFO",
            Self::Warn => "WARN",
            Self::Error => "ERROR",
            Self::Fatal => "FATAL",
        }
    }

    /// The level of a name, in capitals as Kafka wants it.
    pub fn of_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.name() == name)
    }
}

/// The loggers of the process.
pub trait Loggers: fmt::Debug + Send + Sync {
    /// The names of those that can have a level of their own.
    fn names(&self) -> &'static [&'static str];

    /// The level of all at the start.
    fn started_at(&self) -> LogLevel;

    /// Puts levels in effect: `own` where there is one, `root` for all others.
    fn set(&self, root: LogLevel, own: &BTreeMap<&'static str, LogLevel>);
}

/// A process that logs nothing, or whose levels stay as they are.
#[derive(Clone, Copy, Debug)]
pub struct NoLoggers;

impl Loggers for NoLoggers {
    fn names(&self) -> &'static [&'static str] {
        &[]
    }

    fn started_at(&self) -> LogLevel {
        LogLevel::Fatal
    }

    fn set(&self, _root: LogLevel, _own: &BTreeMap<&'static str, LogLevel>) {}
}

/// Why levels were not changed. In Kafka's words: tools show them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum LoggerError {
    #[error("Logger {0} does not exist!")]
    Unknown(String),
    #[error(
        "Cannot set the log level of {logger} to {level} as it is not a supported log level. Valid \
         log levels are DEBUG, ERROR, FATAL, INFO, TRACE, WARN"
    )]
    Level { logger: String, level: String },
    #[error("Removing the log level of the root logger is not allowed")]
    RootUnset,
    #[error("{0} operation is not allowed for the BROKER_LOGGER resource")]
    Operation(&'static str),
}

/// The levels of the loggers.
#[derive(Debug)]
pub(crate) struct LoggerLevels {
    loggers: Arc<dyn Loggers>,
    now: Mutex<Levels>,
}

#[derive(Clone, Debug)]
struct Levels {
    root: LogLevel,
    own: BTreeMap<&'static str, LogLevel>,
}

impl LoggerLevels {
    pub(crate) fn new(loggers: Arc<dyn Loggers>) -> Self {
        let levels = Levels { root: loggers.started_at(), own: BTreeMap::new() };
        Self { loggers, now: Mutex::new(levels) }
    }

    /// Every logger with the level that counts for it.
    pub(crate) fn described(&self) -> Vec<(&'static str, LogLevel)> {
        let now = self.now.lock();
        let named = self.loggers.names().iter();
        let of_each = named.map(|name| (*name, now.own.get(name).copied().unwrap_or(now.root)));
        std::iter::once((ROOT, now.root)).chain(of_each).collect()
    }

    /// Changes levels, all or none, or only checks whether it could.
    pub(crate) fn alter(
        &self,
        alterations: &[Alteration],
        validate_only: bool,
    ) -> Result<(), LoggerError> {
        let mut now = self.now.lock();
        let mut next = now.clone();
        for Alteration { name, op } in alterations {
            self.apply(&mut next, name, op)?;
        }
        if !validate_only {
            self.loggers.set(next.root, &next.own);
            *now = next;
        }
        Ok(())
    }

    fn apply(&self, levels: &mut Levels, name: &str, op: &AlterOp) -> Result<(), LoggerError> {
        let text = match op {
            AlterOp::Set(text) => Some(text),
            AlterOp::Delete => None,
            AlterOp::Append(_) => return Err(LoggerError::Operation("APPEND")),
            AlterOp::Subtract(_) => return Err(LoggerError::Operation("SUBTRACT")),
        };
        let known = self.loggers.names().iter().find(|known| **known == name);
        if known.is_none() && name != ROOT {
            return Err(LoggerError::Unknown(name.to_owned()));
        }
        let level = |text: &String| {
            LogLevel::of_name(text)
                .ok_or_else(|| LoggerError::Level { logger: name.to_owned(), level: text.clone() })
        };
        match (known, text.map(level).transpose()?) {
            (None, None) => return Err(LoggerError::RootUnset),
            (None, Some(level)) => levels.root = level,
            (Some(known), None) => drop(levels.own.remove(known)),
            (Some(known), Some(level)) => drop(levels.own.insert(known, level)),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keeps what was put in effect.
    #[derive(Debug, Default)]
    struct Kept(Mutex<Vec<Put>>);

    type Put = (LogLevel, Vec<(&'static str, LogLevel)>);

    impl Loggers for Kept {
        fn names(&self) -> &'static [&'static str] {
            &["house", "garden"]
        }

        fn started_at(&self) -> LogLevel {
            LogLevel::Info
        }

        fn set(&self, root: LogLevel, own: &BTreeMap<&'static str, LogLevel>) {
            self.0.lock().push((root, own.iter().map(|(name, level)| (*name, *level)).collect()));
        }
    }

    fn op(name: &str, op: AlterOp) -> Vec<Alteration> {
        vec![Alteration { name: name.to_owned(), op }]
    }

    fn set(name: &str, level: &str) -> Vec<Alteration> {
        op(name, AlterOp::Set(level.to_owned()))
    }

    #[test]
    fn a_level_of_its_own_goes_before_that_of_root() {
        let kept = Arc::new(Kept::default());
        let levels = LoggerLevels::new(Arc::clone(&kept) as _);
        assert_eq!(levels.alter(&set("house", "DEBUG"), false), Ok(()));
        assert_eq!(levels.alter(&set("root", "FATAL"), false), Ok(()));
        let told =
            [("root", LogLevel::Fatal), ("house", LogLevel::Debug), ("garden", LogLevel::Fatal)];
        assert_eq!(levels.described(), told);
        assert_eq!(
            kept.0.lock().last(),
            Some(&(LogLevel::Fatal, vec![("house", LogLevel::Debug)]))
        );
        assert_eq!(levels.alter(&op("house", AlterOp::Delete), false), Ok(()));
        assert_eq!(levels.described()[1], ("house", LogLevel::Fatal));
        assert_eq!(kept.0.lock().last(), Some(&(LogLevel::Fatal, Vec::new())));
    }

    #[test]
    fn what_is_refused_or_only_tried_changes_nothing() {
        let kept = Arc::new(Kept::default());
        let levels = LoggerLevels::new(Arc::clone(&kept) as _);
        assert_eq!(levels.alter(&set("house", "TRACE"), true), Ok(()));
        let items = || "DEBUG".to_owned();
        for (alterations, words) in [
            (set("cellar", "DEBUG"), "Logger cellar does not exist!"),
            (set("house", "debug"), "Cannot set the log level of house to debug"),
            (set("house", "OFF"), "not a supported log level"),
            (op("root", AlterOp::Delete), "Removing the log level of the root logger"),
            (op("cellar", AlterOp::Delete), "Logger cellar does not exist!"),
            (op("house", AlterOp::Append(items())), "APPEND operation is not allowed"),
            (op("house", AlterOp::Subtract(items())), "SUBTRACT operation is not allowed"),
            ([set("root", "DEBUG"), set("cellar", "DEBUG")].concat(), "Logger cellar"),
        ] {
            let told = levels.alter(&alterations, false).expect_err(words).to_string();
            assert!(told.contains(words), "{told}");
        }
        assert!(kept.0.lock().is_empty());
        assert!(levels.described().iter().all(|(_, level)| *level == LogLevel::Info));
    }
}
