//! What becomes of a damaged log: which segments stay, which are written anew and of what, and what is
//! lost. Nothing is read or written here.
//!
//! # Invariants
//! - A batch keeps its offsets; none is in the log twice.
//! - The log ends where it ended: offsets that somebody was given are not given again.
//! - Each offset that the damage may have cost is in the report.

use std::collections::BTreeMap;
use std::ops::Range;

use strandline_model::{LeaderEpoch, Offset, Timestamp};

use super::{LostRange, Repair};
use crate::segment::{NewSegment, Piece, Run, Salvage, SegmentFacts, Source};

/// A segment that is written anew stays below this: positions in it are 32-bit numbers.
const SEGMENT_BYTES_MAX: u64 = 1 << 30;
/// Offsets of a segment are 32-bit numbers too, counted from its first.
const SEGMENT_OFFSETS_MAX: i64 = i32::MAX as i64;

/// What is known of a log.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) log_start: Offset,
    /// Where the log ended, as rows or journal said.
    pub(super) end: Offset,
    /// The newest epoch.
    pub(super) epoch: LeaderEpoch,
    /// What the rows believe, and what was found of it.
    pub(super) segments: Vec<(SegmentFacts, Salvage)>,
    /// By the name of their file, in the order of the journal.
    pub(super) rescued: Vec<(String, Salvage)>,
    /// What counts as append time of what has none.
    pub(super) now: Timestamp,
}

/// What is to be done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    /// Segments whose rows go.
    pub(super) dropped: Vec<SegmentFacts>,
    /// Segments that take their place.
    pub(super) new: Vec<NewSegment>,
}

/// Whether `run` can be the next part of a segment.
fn takes(segment: &NewSegment, run: &Run) -> bool {
    let base = segment.pieces.first().map_or(run.offsets.start, |first| first.run.offsets.start);
    let span = run.offsets.end.get().saturating_sub(base.get());
    let size: u64 = segment.pieces.iter().map(|piece| &piece.run).chain([run]).map(Run::size).sum();
    span <= SEGMENT_OFFSETS_MAX && size <= SEGMENT_BYTES_MAX
}

/// A segment without parts yet.
const fn begun_at(first: Timestamp, last: Timestamp) -> NewSegment {
    NewSegment { pieces: Vec::new(), first_appended_at: first, last_appended_at: last }
}

/// Plans the repair, and says what it comes to. `None`: there is nothing to repair.
pub(super) fn plan(known: &Known, reason: Option<String>) -> Option<(Plan, Repair)> {
    let is_whole = known.segments.iter().all(|(_, salvage)| salvage.faults.is_empty());
    if is_whole && reason.is_none() && known.rescued.is_empty() {
        return None;
    }
    let mut repair = Repair { reason, end: known.end, ..Repair::default() };
    let pieces = pieces(known, &mut repair);
    let stays = |facts: &SegmentFacts, salvage: &Salvage| {
        let range = facts.base_offset..facts.next_offset;
        let is_filled =
            pieces.range(range).any(|(_, piece)| piece.source != Source::Segment(*facts));
        salvage.faults.is_empty() && !is_filled
    };
    let dropped = known.segments.iter().filter(|(facts, salvage)| !stays(facts, salvage));
    let dropped: Vec<SegmentFacts> = dropped.map(|(facts, _)| *facts).collect();
    let mut new = grouped(known, &pieces, &dropped);
    let kept_end = pieces.last_key_value().map(|(_, piece)| piece.run.offsets.end);
    fill_end(known, kept_end, &mut new);
    tell_lost(known, &pieces, &mut repair);
    for piece in pieces.values() {
        repair.kept_batches += piece.run.batches;
        repair.kept_bytes += piece.run.size();
    }
    Some((Plan { dropped, new }, repair))
}

/// Everything that is whole, by its first offset, without overlaps.
fn pieces(known: &Known, repair: &mut Repair) -> BTreeMap<Offset, Piece> {
    let mut pieces = BTreeMap::new();
    for (facts, salvage) in &known.segments {
        for run in &salvage.runs {
            let piece = Piece { source: Source::Segment(*facts), run: run.clone() };
            pieces.insert(run.offsets.start, piece);
        }
    }
    for (name, salvage) in &known.rescued {
        for run in &salvage.runs {
            let Range { start, end } = run.offsets.clone();
            if end <= known.log_start {
                continue;
            }
            let before = pieces.range(..=start).next_back();
            let reached = before.map_or(Offset::ZERO, |(_, piece)| piece.run.offsets.end);
            let after = pieces.range(start..).next().map(|(base, _)| *base);
            if end <= reached {
                repair.twice_batches += run.batches;
            } else if start < reached || after.is_some_and(|after| after < end) {
                let what = format!("batch of {name} overlaps what the segments hold");
                let bytes = run.size();
                repair.lost.push(LostRange { offsets: start..end, bytes, what, certain: true });
            } else {
                repair.put_back_batches += run.batches;
                repair.put_back_bytes += run.size();
                let piece = Piece { source: Source::Rescued(name.clone()), run: run.clone() };
                pieces.insert(start, piece);
            }
        }
    }
    pieces
}

/// The new segments: one for each that is dropped, as far as anything of it is left, and others for what
/// was rescued beside them.
fn grouped(
    known: &Known,
    pieces: &BTreeMap<Offset, Piece>,
    dropped: &[SegmentFacts],
) -> Vec<NewSegment> {
    let mut new: Vec<(Option<Offset>, NewSegment)> = Vec::new();
    for piece in pieces.values() {
        if let Source::Segment(facts) = &piece.source
            && !dropped.contains(facts)
        {
            // It stays where it is; what comes behind it is a segment of its own.
            new.push((None, begun_at(known.now, known.now)));
            continue;
        }
        let start = piece.run.offsets.start;
        let owner = known.segments.iter().map(|(facts, _)| facts);
        let mut owner =
            owner.filter(|facts| (facts.base_offset..facts.next_offset).contains(&start));
        let owner = owner.next();
        let place = Some(owner.map_or(Offset::new(i64::MAX), |facts| facts.base_offset));
        match new.last_mut() {
            Some((of, segment)) if *of == place && takes(segment, &piece.run) => {
                segment.pieces.push(piece.clone());
            }
            _ => {
                let (first, last) = append_times(known, owner, start);
                let mut segment = begun_at(first, last);
                segment.pieces.push(piece.clone());
                new.push((place, segment));
            }
        }
    }
    let new = new.into_iter().map(|(_, segment)| segment);
    new.filter(|segment| !segment.pieces.is_empty()).collect()
}

/// When what stands at `start` was appended: as its segment says, or the one before, or now.
fn append_times(
    known: &Known,
    owner: Option<&SegmentFacts>,
    start: Offset,
) -> (Timestamp, Timestamp) {
    if let Some(facts) = owner {
        return (facts.first_appended_at, facts.last_appended_at);
    }
    let before = known.segments.iter().rev().find(|(facts, _)| facts.next_offset <= start);
    let last = before.map_or(known.now, |(facts, _)| facts.last_appended_at);
    (last.min(known.now), known.now)
}

/// Lets the log end where it ended, when what stood there is gone.
fn fill_end(known: &Known, kept_end: Option<Offset>, new: &mut Vec<NewSegment>) {
    let from = kept_end.unwrap_or(known.log_start).max(known.log_start);
    let epoch = known.epoch;
    for (offsets, bytes) in strandline_records::hole(from..known.end, epoch) {
        let run = Run {
            bytes: 0..bytes.len() as u64,
            offsets: offsets.clone(),
            batches: 1,
            max_timestamp: None,
            epoch: Some(epoch),
        };
        let piece = Piece { source: Source::Hole(epoch), run };
        // Behind the last piece only when it is what the log ends with.
        let ends_log = |segment: &NewSegment| {
            segment.pieces.last().is_some_and(|last| last.run.offsets.end == offsets.start)
        };
        match new.last_mut() {
            Some(segment) if ends_log(segment) && takes(segment, &piece.run) => {
                segment.pieces.push(piece);
            }
            _ => {
                let (_, last) = append_times(known, None, offsets.start);
                let mut segment = begun_at(last, last);
                segment.pieces.push(piece);
                new.push(segment);
            }
        }
    }
}

/// Says which offsets the damage may have cost.
fn tell_lost(known: &Known, pieces: &BTreeMap<Offset, Piece>, repair: &mut Repair) {
    for (facts, salvage) in &known.segments {
        for fault in &salvage.faults {
            let name = facts.name();
            let what = format!("segment {}: {}", name.base_offset, fault.what);
            let bytes = fault.bytes.end - fault.bytes.start;
            // Compaction leaves holes, so that not every offset need have had a record.
            let certain = facts.generation == 0;
            let from = fault.offsets.start.max(known.log_start);
            let missing = uncovered(pieces, from..fault.offsets.end);
            let mut bytes = Some(bytes);
            if missing.is_empty() && from < fault.offsets.end {
                continue;
            }
            let of_none = missing.is_empty().then_some(from..from);
            for offsets in missing.into_iter().chain(of_none) {
                let bytes = bytes.take().unwrap_or(0);
                let what = what.clone();
                repair.lost.push(LostRange { offsets, bytes, what, certain });
            }
        }
    }
    let rows_end = known.segments.last().map_or(Offset::ZERO, |(facts, _)| facts.next_offset);
    for offsets in uncovered(pieces, rows_end.max(known.log_start)..known.end) {
        let what = "the journal named batches that are not there".to_owned();
        repair.lost.push(LostRange { offsets, bytes: 0, what, certain: true });
    }
    for (name, salvage) in &known.rescued {
        for fault in &salvage.faults {
            let bytes = fault.bytes.end - fault.bytes.start;
            let what = format!("{name}: {}", fault.what);
            let none = known.end..known.end;
            repair.lost.push(LostRange { offsets: none, bytes, what, certain: true });
        }
    }
}

/// The parts of `range` that no piece has.
fn uncovered(pieces: &BTreeMap<Offset, Piece>, range: Range<Offset>) -> Vec<Range<Offset>> {
    let mut missing = Vec::new();
    let mut from = range.start;
    let before = pieces.range(..=from).next_back();
    from = from.max(before.map_or(from, |(_, piece)| piece.run.offsets.end));
    if from >= range.end {
        return missing;
    }
    for (base, piece) in pieces.range(from..range.end) {
        if from < *base {
            missing.push(from..*base);
        }
        from = piece.run.offsets.end;
    }
    if from < range.end {
        missing.push(from..range.end);
    }
    missing
}
