//! Log levels that change while the broker runs.

use std::collections::BTreeMap;

use strandline_broker::{LogLevel, Loggers};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::{Registry, reload};

/// The crates that log, by what their lines call themselves.
const NAMES: [&str; 5] = [
    "strandline",
    "strandline_broker",
    "strandline_console",
    "strandline_engine_file",
    "strandline_server",
];

/// What decides which lines are written, in place of the subscriber's own.
pub(crate) type Filter = reload::Layer<Targets, Registry>;

/// The way to the filter of the running subscriber.
#[derive(Debug)]
pub(crate) struct LogLevels {
    started_at: LogLevel,
    handle: reload::Handle<Targets, Registry>,
}

impl LogLevels {
    /// A filter that lets `level` and above through, and the way to change it.
    pub(crate) fn new(level: LevelFilter) -> (Filter, Self) {
        let (filter, handle) = reload::Layer::new(Targets::new().with_default(level));
        (filter, Self { started_at: of_filter(level), handle })
    }
}

impl Loggers for LogLevels {
    fn names(&self) -> &'static [&'static str] {
        &NAMES
    }

    fn started_at(&self) -> LogLevel {
        self.started_at
    }

    fn set(&self, root: LogLevel, own: &BTreeMap<&'static str, LogLevel>) {
        // Each by name: one name begins as all others do, and would count for them too.
        let level = |name: &'static str| own.get(name).copied().unwrap_or(root);
        let targets = NAMES.map(|name| (name, to_filter(level(name))));
        let filter = Targets::new().with_default(to_filter(root)).with_targets(targets);
        if let Err(error) = self.handle.reload(filter) {
            tracing::error!(%error, "log levels were not changed");
        }
    }
}

const fn to_filter(level: LogLevel) -> LevelFilter {
    match level {
        LogLevel::Trace => LevelFilter::TRACE,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Fatal => LevelFilter::OFF,
    }
}

fn of_filter(level: LevelFilter) -> LogLevel {
    let levels = [
        LogLevel::Trace,
        LogLevel::Debug,
        LogLevel::Info,
        LogLevel::Warn,
        LogLevel::Error,
        LogLevel::Fatal,
    ];
    let same = levels.into_iter().find(|known| to_filter(*known) == level);
    same.expect("every filter is that of a level")
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex, MutexGuard};

    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Written {
        fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
            self.0.lock().expect("no writer panics")
        }
    }

    impl io::Write for Written {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.bytes().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn levels_take_effect_at_once_and_for_their_logger_alone() {
        let (filter, levels) = LogLevels::new(LevelFilter::INFO);
        assert_eq!(levels.started_at(), LogLevel::Info);
        let written = Written::default();
        let writer = written.clone();
        let lines = tracing_subscriber::fmt::layer().with_writer(move || writer.clone());
        let subscriber = tracing_subscriber::registry().with(filter).with(lines);
        tracing::subscriber::with_default(subscriber, || {
            let log = || {
                tracing::debug!(target: "strandline::serve", "outer");
                tracing::debug!(target: "strandline_broker::group", "inner");
            };
            log();
            assert!(written.bytes().is_empty());
            levels.set(LogLevel::Info, &BTreeMap::from([("strandline", LogLevel::Debug)]));
            log();
            let text = String::from_utf8(written.bytes().clone()).expect("lines are text");
            assert!(text.contains("outer") && !text.contains("inner"), "{text}");
        });
    }
}
