//! Offset and time indexes: derived data, so that whatever stands in them, every record is found.

use std::path::{Path, PathBuf};

use super::{Left, Whole, files, try_folder};
use crate::target::Target;

pub(in crate::target) const TARGET: Target = Target { name: "index", seeds, repair: |_| {}, run };

/// The index files of the folder, in the order of their names.
fn indexes() -> Vec<(&'static PathBuf, &'static [u8])> {
    let is_index = |path: &Path| {
        path.extension().is_some_and(|extension| extension == "index" || extension == "timeindex")
    };
    let files = files(Left::Cleanly).iter().filter(|(path, _)| is_index(path));
    files.map(|(path, bytes)| (path, bytes.as_slice())).collect()
}

/// An input is the number of a file and the file.
fn seeds() -> Vec<Vec<u8>> {
    let numbered = indexes().into_iter().zip(0_u8..);
    numbered.map(|((_, bytes), number)| [&[number], bytes].concat()).collect()
}

fn run(input: &[u8]) -> u64 {
    let Some((number, bytes)) = input.split_first() else { return 0 };
    let indexes = indexes();
    let (path, _) = indexes[usize::from(*number) % indexes.len()];
    try_folder(Left::Cleanly, path, bytes, Whole::Required)
}
