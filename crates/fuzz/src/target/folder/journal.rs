//! The journal after a power failure: the file that brings acknowledged records back.
//!
//! An input is the newest file of the journal without its padding: the file's header, then one group
//! behind another. Most of a file is padding, where a change would change nothing.

use std::path::PathBuf;

use strandline_records::crc32c;

use super::{Left, Whole, files, try_folder};
use crate::target::Target;

pub(in crate::target) const TARGET: Target = Target { name: "journal", seeds, repair, run };

const BLOCK: usize = 4096;
const FILE_MAGIC: &[u8] = b"SLJOURNL";
const FILE_HEADER_BYTES: usize = 72;
const GROUP_HEADER_BYTES: usize = 40;
const GROUP_LENGTH_AT: usize = 32;

/// The newest file: only its end may be torn, and everything in it is read.
fn journal() -> (&'static PathBuf, &'static [u8]) {
    let written = files(Left::ByAPowerFailure).iter().filter(|(_, b)| b.starts_with(FILE_MAGIC));
    let generation = |bytes: &[u8]| bytes.get(16..24).map(<[u8]>::to_vec);
    let (path, bytes) = written.max_by_key(|(_, bytes)| generation(bytes)).expect("a journal");
    (path, bytes)
}

/// The lengths of the groups that stand one behind another; the last may be cut short.
fn group_lengths(mut groups: &[u8]) -> Vec<usize> {
    let mut lengths = Vec::new();
    while !groups.is_empty() {
        let field = groups.get(GROUP_LENGTH_AT..).and_then(|tail| tail.first_chunk().copied());
        let claimed = usize::try_from(field.map_or(0, u32::from_be_bytes)).unwrap_or(usize::MAX);
        let length = claimed.max(GROUP_HEADER_BYTES).min(groups.len());
        lengths.push(length);
        groups = &groups[length..];
    }
    lengths
}

/// Takes the padding out of a file.
fn packed(file: &[u8]) -> Vec<u8> {
    let mut input = file[..FILE_HEADER_BYTES].to_vec();
    let mut at = BLOCK;
    while file.get(at..).is_some_and(|group| group.starts_with(b"SLGR")) {
        let length = group_lengths(&file[at..])[0];
        input.extend_from_slice(&file[at..at + length]);
        at += length.next_multiple_of(BLOCK);
    }
    input
}

/// Puts the padding back.
fn unpacked(input: &[u8], file_bytes: usize) -> Vec<u8> {
    let (header, mut groups) = input.split_at(FILE_HEADER_BYTES.min(input.len()));
    let mut file = header.to_vec();
    file.resize(BLOCK, 0);
    for length in group_lengths(groups) {
        let (group, rest) = groups.split_at(length);
        file.extend_from_slice(group);
        file.resize(file.len().next_multiple_of(BLOCK), 0);
        groups = rest;
    }
    // The file has its length from the beginning.
    file.resize(file_bytes, 0);
    file
}

fn seeds() -> Vec<Vec<u8>> {
    let whole = packed(journal().1);
    let groups = &whole[FILE_HEADER_BYTES..];
    let first: usize = group_lengths(groups).iter().take(2).sum();
    let short = whole[..FILE_HEADER_BYTES + first].to_vec();
    vec![whole, short]
}

/// Makes the checksums of the file's header and of every group right.
fn repair(input: &mut [u8]) {
    let Some((header, mut groups)) = input.split_at_mut_checked(FILE_HEADER_BYTES) else { return };
    let checksum = crc32c(&header[12..]);
    header[8..12].copy_from_slice(&checksum.to_be_bytes());
    for length in group_lengths(groups) {
        let (group, rest) = groups.split_at_mut(length);
        if length >= GROUP_HEADER_BYTES {
            let checksum = crc32c(&group[8..]);
            group[4..8].copy_from_slice(&checksum.to_be_bytes());
        }
        groups = rest;
    }
}

fn run(input: &[u8]) -> u64 {
    let (path, bytes) = journal();
    let file = unpacked(input, bytes.len());
    try_folder(Left::ByAPowerFailure, path, &file, Whole::NotRequired)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packing_and_repairing_the_workloads_journal_changes_nothing() {
        let (_, file) = journal();
        let mut input = packed(file);
        assert!(group_lengths(&input[FILE_HEADER_BYTES..]).len() > 3);
        assert!(unpacked(&input, file.len()) == file, "bytes were lost");
        let before = input.clone();
        repair(&mut input);
        assert!(input == before, "checksums stand elsewhere than the target believes");
    }
}
