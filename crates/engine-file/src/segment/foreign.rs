//! What lies among the logs and is no part of any: it is told of, and left alone.

use std::path::Path;

use strandline_model::TopicId;

use super::name::{LOGS, QUARANTINE, is_ours, parse_partition};
use super::store::SegmentStore;
use crate::disk::{DirEntry, EntryKind};

/// Names that are told. Reached: there are more, of which nothing is said.
const FOREIGN_MAX: usize = 1_000;

/// Some file systems have it in the root of each volume.
const LOST_AND_FOUND: &str = "lost+found";

impl SegmentStore {
    /// The paths of what is none of ours below `logs/` and `quarantine/`, in order. A folder that can't be
    /// read is told of by whoever needs it. Blocks.
    pub(crate) fn foreign(&self) -> Vec<String> {
        let mut found = Vec::new();
        for root in [LOGS, QUARANTINE].map(Path::new) {
            let is_topic =
                |entry: &DirEntry| is_dir(entry) && entry.name.parse::<TopicId>().is_ok();
            for topic in self.sort_out(root, is_topic, &mut found) {
                let topic = root.join(topic);
                let is_partition =
                    |entry: &DirEntry| is_dir(entry) && parse_partition(&entry.name).is_some();
                for partition in self.sort_out(&topic, is_partition, &mut found) {
                    self.sort_out(&topic.join(partition), is_ours, &mut found);
                }
            }
        }
        found
    }

    /// The names in a folder that are ours; the paths of the others go to `foreign`.
    fn sort_out(
        &self,
        folder: &Path,
        is_ours: impl Fn(&DirEntry) -> bool,
        foreign: &mut Vec<String>,
    ) -> Vec<String> {
        let entries = self.disk.list(folder).unwrap_or_default();
        let (ours, others): (Vec<_>, Vec<_>) = entries.into_iter().partition(is_ours);
        let others = others.into_iter().filter(|entry| entry.name != LOST_AND_FOUND);
        let room = FOREIGN_MAX.saturating_sub(foreign.len());
        let paths = others.map(|entry| folder.join(entry.name).to_string_lossy().into_owned());
        foreign.extend(paths.take(room));
        ours.into_iter().map(|entry| entry.name).collect()
    }

    /// Whether a partition's folder holds something of ours, or nothing at all: then it is ours too.
    pub(super) fn is_ours(&self, folder: &Path) -> std::io::Result<bool> {
        let entries = self.disk.list(folder)?;
        Ok(entries.is_empty() || entries.iter().any(is_ours))
    }
}

fn is_dir(entry: &DirEntry) -> bool {
    entry.kind == EntryKind::Dir
}
