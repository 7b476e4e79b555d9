//! A segment that the disk damaged: read, searched and verified without a panic.

use std::path::PathBuf;

use super::{Left, Whole, files, try_folder};
use crate::target::{Target, batch};

pub(in crate::target) const TARGET: Target =
    Target { name: "segment", seeds, repair: batch::repair, run };

/// The segments of the folder, in the order of their names.
fn segments() -> Vec<(&'static PathBuf, &'static [u8])> {
    let files = files(Left::Cleanly).iter();
    let logs = files.filter(|(path, _)| path.extension().is_some_and(|name| name == "log"));
    logs.map(|(path, bytes)| (path, bytes.as_slice())).collect()
}

fn seeds() -> Vec<Vec<u8>> {
    segments().into_iter().map(|(_, bytes)| bytes.to_vec()).collect()
}

fn run(input: &[u8]) -> u64 {
    // A segment's own base offset chooses the file that it replaces; any will do.
    let segments = segments();
    let (path, _) = segments[input.len() % segments.len()];
    try_folder(Left::Cleanly, path, input, Whole::NotRequired)
}
