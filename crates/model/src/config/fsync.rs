//! When the file engine makes records durable: the values of `storage.file.fsync`.

use std::fmt;
use std::time::Duration;

/// What an acknowledgement waits for in the file engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FsyncPolicy {
    /// The disk.
    Commit,
    /// Nothing; the disk has it within this time.
    Interval(Duration),
    /// Nothing; the disk has it when the kernel pleases.
    Never,
}

impl FsyncPolicy {
    /// `commit`, `never`, `interval:` and a number of `ms` or `s`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        match text {
            "commit" => return Some(Self::Commit),
            "never" => return Some(Self::Never),
            _ => {}
        }
        let span = text.strip_prefix("interval:")?;
        let (number, factor) = match span.strip_suffix("ms") {
            Some(number) => (number, 1),
            None => (span.strip_suffix('s')?, 1000),
        };
        let millis = number.parse::<u32>().ok().filter(|number| *number > 0)?;
        Some(Self::Interval(Duration::from_millis(u64::from(millis) * factor)))
    }
}

impl fmt::Display for FsyncPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Commit => f.write_str("commit"),
            Self::Interval(span) => write!(f, "interval:{}ms", span.as_millis()),
            Self::Never => f.write_str("never"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_are_read_and_printed() {
        for (text, policy, printed) in [
            ("commit", FsyncPolicy::Commit, "commit"),
            ("never", FsyncPolicy::Never, "never"),
            ("interval:100ms", FsyncPolicy::Interval(Duration::from_millis(100)), "interval:100ms"),
            ("interval:2s", FsyncPolicy::Interval(Duration::from_secs(2)), "interval:2000ms"),
        ] {
            assert_eq!(FsyncPolicy::parse(text), Some(policy), "{text}");
            assert_eq!(policy.to_string(), printed);
        }
    }

    #[test]
    fn other_words_are_no_policy() {
        for text in ["", "always", "interval", "interval:", "interval:0ms", "interval:5", "5s"] {
            assert_eq!(FsyncPolicy::parse(text), None, "{text}");
        }
    }
}
