//! The names of folders and files. Topics' names never appear: a name may be reused, an id is not.

use std::path::{Path, PathBuf};

use strandline_model::{Offset, PartitionId, PartitionIndex, TopicId};

use crate::disk::{DirEntry, EntryKind};

/// The folder of all logs.
pub(super) const LOGS: &str = "logs";

/// The folder of what is set aside, laid out like that of the logs.
pub(super) const QUARANTINE: &str = "quarantine";

/// The name of a segment in its log. No two segments of a log ever have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct SegmentName {
    /// The offset of its first record.
    pub(crate) base_offset: Offset,
    /// 0 for one that was appended to; of one that was written in the place of others a number that
    /// no file of the log had before.
    pub(crate) generation: u64,
}

impl SegmentName {
    /// Of a segment that appends made.
    pub(crate) const fn appended(base_offset: Offset) -> Self {
        Self { base_offset, generation: 0 }
    }
}

/// A file of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct FileKey {
    pub(super) id: PartitionId,
    pub(super) segment: SegmentName,
    pub(super) kind: FileKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum FileKind {
    Log,
    OffsetIndex,
    TimeIndex,
}

impl FileKind {
    pub(super) const ALL: [Self; 3] = [Self::Log, Self::OffsetIndex, Self::TimeIndex];

    const fn extension(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::OffsetIndex => "index",
            Self::TimeIndex => "timeindex",
        }
    }
}

impl FileKey {
    pub(super) const fn new(id: PartitionId, segment: SegmentName, kind: FileKind) -> Self {
        Self { id, segment, kind }
    }

    pub(super) const fn sibling(self, kind: FileKind) -> Self {
        Self { kind, ..self }
    }

    pub(super) fn name(self) -> String {
        let SegmentName { base_offset, generation } = self.segment;
        let (base_offset, extension) = (base_offset.get(), self.kind.extension());
        match generation {
            0 => format!("{base_offset:020}.{extension}"),
            _ => format!("{base_offset:020}.{generation}.{extension}"),
        }
    }

    pub(super) fn path(self) -> PathBuf {
        partition_dir(self.id).join(self.name())
    }
}

/// What the copy of a file is called until it takes the place of the file.
const COPY_SUFFIX: &str = ".new";

/// Where a copy of a file is made.
pub(super) fn copy_path(key: FileKey) -> PathBuf {
    partition_dir(key.id).join(key.name() + COPY_SUFFIX)
}

/// Whether a name in a partition's folder is that of a copy that was never finished, or is being made.
pub(super) fn is_copy(name: &str) -> bool {
    name.strip_suffix(COPY_SUFFIX).is_some_and(|name| parse_file(name).is_some())
}

/// What follows the base offset in the name of rescued batches.
const RESCUE_EXTENSION: &str = "rescued";

/// The file of rescued batches that begin with an offset, in their partition's folder.
pub(crate) fn rescue_name(base_offset: Offset) -> String {
    format!("{:020}.{RESCUE_EXTENSION}", base_offset.get())
}

/// Whether a name in a partition's folder is that of rescued batches.
pub(super) fn is_rescue(name: &str) -> bool {
    name.split_once('.').is_some_and(|(digits, extension)| {
        extension == RESCUE_EXTENSION && parse_offset(digits).is_some()
    })
}

/// Whether what has a name in a partition's folder is a file that we made.
pub(super) fn is_ours(entry: &DirEntry) -> bool {
    let name = &entry.name;
    entry.kind == EntryKind::File
        && (parse_file(name).is_some() || is_copy(name) || is_rescue(name))
}

pub(super) fn topic_dir(topic_id: TopicId) -> PathBuf {
    Path::new(LOGS).join(topic_id.to_string())
}

pub(super) fn partition_dir(id: PartitionId) -> PathBuf {
    topic_dir(id.topic_id).join(id.index.to_string())
}

/// Where what is stored of a topic is set aside.
pub(super) fn quarantine_topic_dir(topic_id: TopicId) -> PathBuf {
    Path::new(QUARANTINE).join(topic_id.to_string())
}

/// The same of a partition.
pub(super) fn quarantine_dir(id: PartitionId) -> PathBuf {
    quarantine_topic_dir(id.topic_id).join(id.index.to_string())
}

/// The file that a name in a partition's folder stands for, if it is one of ours.
pub(super) fn parse_file(name: &str) -> Option<(SegmentName, FileKind)> {
    let (digits, rest) = name.split_once('.')?;
    let (generation, extension) = match rest.split_once('.') {
        Some((generation, extension)) => (parse_generation(generation)?, extension),
        None => (0, rest),
    };
    let kind = FileKind::ALL.into_iter().find(|kind| kind.extension() == extension)?;
    Some((SegmentName { base_offset: parse_offset(digits)?, generation }, kind))
}

fn parse_generation(digits: &str) -> Option<u64> {
    let generation: u64 = digits.parse().ok()?;
    (generation > 0 && generation.to_string() == digits).then_some(generation)
}

fn parse_offset(digits: &str) -> Option<Offset> {
    let is_canonical = digits.len() == 20 && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_canonical.then(|| digits.parse().ok())?.and_then(Offset::from_wire)
}

/// The partition that a folder of a topic stands for.
pub(super) fn parse_partition(name: &str) -> Option<PartitionIndex> {
    let index: i32 = name.parse().ok()?;
    let partition = PartitionIndex::from_wire(index)?;
    (partition.to_string() == name).then_some(partition)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_spelling_is_ours() {
        let ours = [
            ("00000000000000000042.log", 42, 0, FileKind::Log),
            ("09223372036854775807.index", i64::MAX, 0, FileKind::OffsetIndex),
            ("00000000000000000000.timeindex", 0, 0, FileKind::TimeIndex),
            ("00000000000000000042.7.log", 42, 7, FileKind::Log),
            (
                "00000000000000000042.18446744073709551615.index",
                42,
                u64::MAX,
                FileKind::OffsetIndex,
            ),
        ];
        let id = PartitionId::new(TopicId::from_bytes([1; 16]), PartitionIndex::new(0));
        for (name, offset, generation, kind) in ours {
            let segment = SegmentName { base_offset: Offset::new(offset), generation };
            assert_eq!(parse_file(name), Some((segment, kind)), "{name}");
            assert_eq!(FileKey::new(id, segment, kind).name(), name);
        }
        for name in [
            "42.log",
            "00000000000000000042",
            "00000000000000000042.log.deleted",
            "00000000000000000042.log.new",
            "00000000000000000042.rescued",
            "00000000000000000042.txnindex",
            "-0000000000000000042.log",
            "+0000000000000000042.log",
            "99999999999999999999.log",
            "00000000000000000042.0.log",
            "00000000000000000042.07.log",
            "00000000000000000042.+7.log",
            "00000000000000000042.7.7.log",
            "00000000000000000042..log",
            "00000000000000000042.18446744073709551616.log",
        ] {
            assert_eq!(parse_file(name), None, "{name}");
        }
        assert!(is_copy("00000000000000000042.log.new"));
        assert!(
            ["42.log.new", "00000000000000000042.log", "x.new"]
                .into_iter()
                .all(|name| !is_copy(name))
        );
        assert!(is_rescue(&rescue_name(Offset::new(42))));
        for name in ["42.rescued", "00000000000000000042.log", "00000000000000000042.rescued.new"] {
            assert!(!is_rescue(name), "{name}");
        }
        assert_eq!(parse_partition("7"), Some(PartitionIndex::new(7)));
        for name in ["07", "+7", "-1", "", "x", "4294967296"] {
            assert_eq!(parse_partition(name), None, "{name}");
        }
    }
}
