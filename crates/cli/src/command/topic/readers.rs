//! Which groups read a topic.

use std::fmt;

use strandline_client::{Client, ClientError, ListedGroup};
use strandline_wire::ErrorCode;

use crate::command::group::called;
use crate::format::counted;
use crate::progress::Progress;

/// Groups that are looked at: each takes some requests.
const GROUPS_MAX: usize = 1_000;

/// A group that reads a topic, or has read it.
#[derive(Debug)]
pub(super) struct Reader {
    /// Its id.
    pub(super) group: String,
    /// Whether it has members, so that nobody else may move its offsets.
    pub(super) is_active: bool,
    /// How many members it has.
    pub(super) members: usize,
    /// Whether it was told to begin new partitions at their start.
    pub(super) from_start: bool,
}

impl fmt::Display for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.members {
            0 => f.write_str(called(&self.group)),
            members => {
                write!(f, "{} ({})", called(&self.group), counted(members as u64, "member"))
            }
        }
    }
}

/// The groups that read a topic.
#[derive(Debug)]
pub(super) struct Readers {
    /// Those that were found, by id.
    pub(super) found: Vec<Reader>,
    /// Why there may be others.
    pub(super) unknown: Option<String>,
}

/// The groups that have committed offsets in a topic, or whose members were assigned its
/// partitions. What can't be found out is no reason to fail: it is told.
pub(super) async fn readers(client: &mut Client, topic: &str) -> Readers {
    let listed = match client.list_groups().await {
        Ok(listed) => listed,
        Err(error) => return Readers { found: Vec::new(), unknown: Some(error.to_string()) },
    };
    // Other kinds do not commit offsets as consumers do.
    let consumes =
        |group: &&ListedGroup| matches!(group.kind.as_str(), "" | "classic" | "consumer");
    let groups: Vec<&ListedGroup> = listed.iter().filter(consumes).collect();
    let mut readers = Readers { found: Vec::new(), unknown: None };
    if groups.len() > GROUPS_MAX {
        let not_asked = counted((groups.len() - GROUPS_MAX) as u64, "group");
        readers.unknown = Some(format!("{not_asked} more than {GROUPS_MAX} were not asked"));
    }
    let progress = Progress::start("looking at groups", groups.len().min(GROUPS_MAX));
    for group in groups.into_iter().take(GROUPS_MAX) {
        match reader(client, &group.id, topic).await {
            Ok(reader) => readers.found.extend(reader),
            Err(error) => readers.unknown = Some(error.to_string()),
        }
        progress.step();
    }
    readers
}

async fn reader(
    client: &mut Client,
    group: &str,
    topic: &str,
) -> Result<Option<Reader>, ClientError> {
    let described = match client.describe_group(group).await {
        Ok(described) => described,
        // It went meanwhile.
        Err(error) if error.code() == Some(ErrorCode::GROUP_ID_NOT_FOUND) => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut assigned = described.members.iter().flat_map(|member| &member.assigned);
    let reads = assigned.any(|(name, _)| name == topic)
        || client.committed(group).await?.iter().any(|offset| offset.topic == topic);
    Ok(reads.then(|| Reader {
        group: group.to_owned(),
        is_active: described.is_active(),
        members: described.members.len(),
        from_start: false,
    }))
}
