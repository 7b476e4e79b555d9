//! The decisions of recovery, as tables: pure, and each input decided exactly once.
//!
//! docs/format.md carries the same tables in words. The tests walk every input.

/// What is found where the next group of the journal is not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct EndFacts {
    /// The file of the next generation begins with the expected group.
    pub(crate) next_begins_here: bool,
    /// Something live says that the expected group, or a later one, was synced.
    pub(crate) synced_beyond: bool,
    /// A whole live group lies in a file without a valid header.
    pub(crate) homeless_group: bool,
    /// A live file is shorter than it was when it was begun, or the one in which the walk began is gone.
    pub(crate) cut_short: bool,
    /// Beginnings of groups, torn or whole, from the expected one on.
    pub(crate) torn_groups: u64,
}

/// What the end of a walk means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndVerdict {
    /// It is none: go on in the next file.
    GoOn,
    /// Something durable is gone. Nothing is cut; an operator must look.
    Damage,
    /// What follows was never acknowledged.
    TornTail,
    /// Nothing follows.
    End,
}

impl EndFacts {
    pub(crate) const fn verdict(&self) -> EndVerdict {
        match (
            self.next_begins_here,
            self.synced_beyond || self.homeless_group || self.cut_short,
            self.torn_groups > 0,
        ) {
            (true, _, _) => EndVerdict::GoOn,
            (false, true, _) => EndVerdict::Damage,
            (false, false, true) => EndVerdict::TornTail,
            (false, false, false) => EndVerdict::End,
        }
    }
}

/// Where an append entry begins and ends, compared with what its log holds so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryPlace {
    /// It ends at or below the end.
    Before,
    /// It begins below the end and ends above it.
    Across,
    /// It begins at the end.
    At,
    /// It begins above the end.
    Behind,
}

/// What is known of an append entry once all rows are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EntryFacts {
    /// The removal of its log has begun.
    pub(crate) removed: bool,
    /// A trim dropped the segment that it went to.
    pub(crate) dropped: bool,
    /// A newer epoch begins at or below its base offset.
    pub(crate) overruled: bool,
    /// The log was found damaged: its segments take nothing any more.
    pub(crate) damaged: bool,
    /// An earlier entry of the log was cut.
    pub(crate) cut: bool,
    pub(crate) place: EntryPlace,
}

/// What becomes of an append entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryVerdict {
    /// Nobody may see it any more, or the snapshot has it.
    Skip,
    /// It failed, and the log went on without it in a newer epoch.
    Drop,
    /// It goes to its segment.
    Accept,
    /// There is a hole before it: it goes, with all that follow in its log.
    Cut,
    /// It is kept in a file of its own, beside the segments of its log.
    Rescue,
    /// The log and the journal contradict each other: the log is damaged.
    Damage,
}

impl EntryFacts {
    pub(crate) const fn verdict(self) -> EntryVerdict {
        if self.removed {
            return EntryVerdict::Skip;
        }
        // Before the trim: what was trimmed moves the end that the log goes on behind, and what failed
        // never was in the log.
        if self.overruled {
            return EntryVerdict::Drop;
        }
        if self.dropped {
            return EntryVerdict::Skip;
        }
        match (self.cut, self.damaged, self.place) {
            (true, _, _) | (false, _, EntryPlace::Behind) => EntryVerdict::Cut,
            (false, _, EntryPlace::Before) => EntryVerdict::Skip,
            (false, true, EntryPlace::At | EntryPlace::Across) => EntryVerdict::Rescue,
            (false, false, EntryPlace::Across) => EntryVerdict::Damage,
            (false, false, EntryPlace::At) => EntryVerdict::Accept,
        }
    }
}

/// What a start finds in the folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FolderFacts {
    pub(crate) snapshot: SnapshotFound,
    /// Files of a journal, or folders of logs.
    pub(crate) others: bool,
    /// The journal was used after the snapshot: groups follow, whole or torn, or a file was begun.
    pub(crate) tail: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SnapshotFound {
    None,
    /// Written by a newer version.
    Newer,
    /// Not readable.
    Damaged,
    /// Written by a checkpoint of a run.
    Running,
    /// Written by a clean stop.
    Clean,
}

/// How a start goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FolderVerdict {
    /// The folder is new: write the first snapshot.
    Create,
    /// Everything is in the snapshot: go on.
    Resume,
    /// Replay what follows the snapshot and write a new one.
    Recover,
    /// A newer version wrote it.
    RefuseNewer,
    /// What must be there is not.
    RefuseDamaged,
}

impl FolderFacts {
    pub(crate) const fn verdict(self) -> FolderVerdict {
        match (self.snapshot, self.others, self.tail) {
            (SnapshotFound::Newer, _, _) => FolderVerdict::RefuseNewer,
            (SnapshotFound::Damaged, _, _) | (SnapshotFound::None, true, _) => {
                FolderVerdict::RefuseDamaged
            }
            (SnapshotFound::None, false, _) => FolderVerdict::Create,
            (SnapshotFound::Running, _, _) | (SnapshotFound::Clean, _, true) => {
                FolderVerdict::Recover
            }
            (SnapshotFound::Clean, _, false) => FolderVerdict::Resume,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: [bool; 2] = [false, true];

    /// `None` stands for "whatever".
    struct Case<F, V>(&'static str, F, V);

    fn fits(pattern: Option<bool>, input: bool) -> bool {
        pattern.is_none_or(|wanted| wanted == input)
    }

    /// Exactly one row of `rows` must match, and its verdict must be `verdict`.
    fn check<F, V: PartialEq + std::fmt::Debug + Copy>(
        rows: &[Case<F, V>],
        matches: impl Fn(&F) -> bool,
        verdict: V,
    ) {
        let found: Vec<_> = rows.iter().filter(|row| matches(&row.1)).collect();
        let labels: Vec<_> = found.iter().map(|row| row.0).collect();
        assert_eq!(labels.len(), 1, "{labels:?}");
        assert_eq!(found[0].2, verdict, "{labels:?}");
    }

    #[test]
    fn every_end_of_the_journal_is_decided_once() {
        const X: Option<bool> = None;
        const Y: Option<bool> = Some(true);
        const N: Option<bool> = Some(false);
        // next begins here, synced beyond, homeless group, cut short, torn groups
        let rows = [
            Case("next file", [Y, X, X, X, X], EndVerdict::GoOn),
            Case("a mark names it", [N, Y, X, X, X], EndVerdict::Damage),
            Case("its file lost the header", [N, N, Y, X, X], EndVerdict::Damage),
            Case("its file was cut", [N, N, N, Y, X], EndVerdict::Damage),
            Case("torn", [N, N, N, N, Y], EndVerdict::TornTail),
            Case("nothing", [N, N, N, N, N], EndVerdict::End),
        ];
        for bits in 0..32_u8 {
            let input = [1, 2, 4, 8, 16].map(|bit| bits & bit != 0);
            let [next_begins_here, synced_beyond, homeless_group, cut_short, torn] = input;
            let torn_groups = u64::from(torn) * 3;
            let facts = EndFacts {
                next_begins_here,
                synced_beyond,
                homeless_group,
                cut_short,
                torn_groups,
            };
            let matches = |row: &[Option<bool>; 5]| {
                row.iter().zip(input).all(|(pattern, input)| fits(*pattern, input))
            };
            check(&rows, matches, facts.verdict());
        }
    }

    #[test]
    fn every_append_entry_is_decided_once() {
        use EntryPlace::{Across, At, Before, Behind};
        const X: Option<bool> = None;
        const Y: Option<bool> = Some(true);
        const N: Option<bool> = Some(false);
        const ANY: &[EntryPlace] = &[Before, Across, At, Behind];
        // removed, dropped, overruled, cut, damaged; place
        type Pattern = ([Option<bool>; 5], &'static [EntryPlace]);
        let rows: [Case<Pattern, _>; 9] = [
            Case("log is removed", ([Y, X, X, X, X], ANY), EntryVerdict::Skip),
            Case("older epoch", ([N, X, Y, X, X], ANY), EntryVerdict::Drop),
            Case("trimmed", ([N, Y, N, X, X], ANY), EntryVerdict::Skip),
            Case("behind a cut", ([N, N, N, Y, X], ANY), EntryVerdict::Cut),
            Case("snapshot has it", ([N, N, N, N, X], &[Before]), EntryVerdict::Skip),
            Case("overlaps", ([N, N, N, N, N], &[Across]), EntryVerdict::Damage),
            Case("next", ([N, N, N, N, N], &[At]), EntryVerdict::Accept),
            Case("of a damaged log", ([N, N, N, N, Y], &[At, Across]), EntryVerdict::Rescue),
            Case("hole", ([N, N, N, N, X], &[Behind]), EntryVerdict::Cut),
        ];
        for bits in 0..32_u8 {
            let [removed, dropped, overruled, cut, damaged] =
                [1, 2, 4, 8, 16].map(|bit| bits & bit != 0);
            for &place in ANY {
                let facts = EntryFacts { removed, dropped, overruled, damaged, cut, place };
                let input = [removed, dropped, overruled, cut, damaged];
                let matches = |(row, places): &Pattern| {
                    places.contains(&place)
                        && row.iter().zip(input).all(|(pattern, input)| fits(*pattern, input))
                };
                check(&rows, matches, facts.verdict());
            }
        }
    }

    #[test]
    fn every_folder_is_decided_once() {
        use SnapshotFound::{Clean, Damaged, Newer, None as Absent, Running};
        const X: Option<bool> = None;
        const Y: Option<bool> = Some(true);
        const N: Option<bool> = Some(false);
        // snapshot; others, tail
        let rows = [
            Case("newer version", (Newer, [X, X]), FolderVerdict::RefuseNewer),
            Case("damaged snapshot", (Damaged, [X, X]), FolderVerdict::RefuseDamaged),
            Case("snapshot is gone", (Absent, [Y, X]), FolderVerdict::RefuseDamaged),
            Case("new folder", (Absent, [N, X]), FolderVerdict::Create),
            Case("crash", (Running, [X, X]), FolderVerdict::Recover),
            Case("crash after a clean stop", (Clean, [X, Y]), FolderVerdict::Recover),
            Case("clean stop", (Clean, [X, N]), FolderVerdict::Resume),
        ];
        for snapshot in [Absent, Newer, Damaged, Running, Clean] {
            for (others, tail) in BOTH.map(|a| BOTH.map(|b| (a, b))).concat() {
                let facts = FolderFacts { snapshot, others, tail };
                let matches = |(wanted, row): &(SnapshotFound, [Option<bool>; 2])| {
                    *wanted == snapshot && fits(row[0], others) && fits(row[1], tail)
                };
                check(&rows, matches, facts.verdict());
            }
        }
    }
}
