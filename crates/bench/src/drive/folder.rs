//! The folder in which a broker keeps the one partition of a topic, watched from outside.
//!
//! Kafka's brokers and Strandline name segments alike: twenty digits of the first offset, and `.log`
//! somewhere behind them. So what becomes of a log is seen without asking either of them.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context;

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct LogFolder(PathBuf);

/// A file of records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SegmentFile {
    /// The first offset, by its name.
    pub base_offset: u64,
    /// Its length.
    pub bytes: u64,
}

/// All folders below one.
pub fn folders(below: &Path) -> io::Result<BTreeSet<PathBuf>> {
    let mut found = BTreeSet::new();
    let mut open = vec![below.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            if entry.file_type()?.is_dir() {
                open.push(entry.path());
            }
        }
        found.insert(folder);
    }
    Ok(found)
}

impl LogFolder {
    /// The folder below `below` that came since `before` and has the most records.
    pub fn since(before: &BTreeSet<PathBuf>, below: &Path) -> anyhow::Result<Self> {
        let mut found = None;
        for path in folders(below)?.difference(before) {
            let folder = Self(path.clone());
            found = found.max(Some((folder.bytes()?, folder.0)));
        }
        let (bytes, path) = found.context("no folder came with the topic")?;
        anyhow::ensure!(bytes > 0, "the topic has no records. folder=`{}`", path.display());
        Ok(Self(path))
    }

    /// The files of records in it, those too that are on their way in or out.
    pub fn segments(&self) -> io::Result<Vec<SegmentFile>> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.0)? {
            let entry = entry?;
            let Some(base_offset) = entry.file_name().to_str().and_then(base_offset) else {
                continue;
            };
            match entry.metadata() {
                Ok(metadata) => found.push(SegmentFile { base_offset, bytes: metadata.len() }),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
        Ok(found)
    }

    /// How many there are.
    pub fn count(&self) -> io::Result<usize> {
        let mut count = 0;
        for entry in fs::read_dir(&self.0)? {
            count += usize::from(entry?.file_name().to_str().and_then(base_offset).is_some());
        }
        Ok(count)
    }

    /// Bytes of all of them.
    pub fn bytes(&self) -> io::Result<u64> {
        Ok(self.segments()?.iter().map(|segment| segment.bytes).sum())
    }
}

/// The first offset in the name of a file of records; `None` of another file.
fn base_offset(name: &str) -> Option<u64> {
    let (offset, rest) = name.split_once('.')?;
    let is_log = rest.split('.').any(|part| part == "log");
    (is_log && offset.len() == 20).then(|| offset.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_records_are_known_by_their_names_whoever_wrote_them() {
        let cases = [
            ("00000000000000000042.log", Some(42)),
            ("00000000000000000042.7.log", Some(42)),
            ("00000000000000000042.log.deleted", Some(42)),
            ("00000000000000000042.log.cleaned", Some(42)),
            ("00000000000000000042.index", None),
            ("00000000000000000042.timeindex.deleted", None),
            ("leader-epoch-checkpoint", None),
            ("server.log", None),
        ];
        for (name, expected) in cases {
            assert_eq!(base_offset(name), expected, "{name}");
        }
    }

    #[test]
    fn the_folder_of_a_topic_is_the_one_that_came_with_its_records() {
        let root = tempfile::tempdir().unwrap();
        let write = |folder: &str, name: &str, bytes: usize| {
            fs::create_dir_all(root.path().join(folder)).unwrap();
            fs::write(root.path().join(folder).join(name), vec![0; bytes]).unwrap();
        };
        write("old-0", "00000000000000000000.log", 1000);
        let before = folders(root.path()).unwrap();
        assert!(LogFolder::since(&before, root.path()).is_err());
        write("producers-0", "00000000000000000000.log", 0);
        write("topics/new-0", "00000000000000000000.log", 10);
        write("topics/new-0", "00000000000000000007.log", 5);
        write("topics/new-0", "00000000000000000007.index", 500);
        let folder = LogFolder::since(&before, root.path()).unwrap();
        assert_eq!((folder.count().unwrap(), folder.bytes().unwrap()), (2, 15));
        let last = folder.segments().unwrap().into_iter().max();
        assert_eq!(last, Some(SegmentFile { base_offset: 7, bytes: 5 }));
    }
}
