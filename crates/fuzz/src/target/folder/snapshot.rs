//! The snapshot: all rows of a folder, and its root.

use std::path::Path;

use strandline_records::crc32c;

use super::{Left, Whole, files, try_folder};
use crate::target::Target;

pub(in crate::target) const TARGET: Target = Target { name: "snapshot", seeds, repair, run };

const NAME: &str = "snapshot";
const HEADER_BYTES: usize = 96;
const ROWS_BYTES_AT: usize = 80;
const ROWS_CRC_AT: usize = 88;

fn seeds() -> Vec<Vec<u8>> {
    [Left::Cleanly, Left::ByAPowerFailure]
        .into_iter()
        .flat_map(files)
        .filter(|(path, _)| path == Path::new(NAME))
        .map(|(_, bytes)| bytes.clone())
        .collect()
}

/// Makes the length of the rows and both checksums right.
fn repair(input: &mut [u8]) {
    let Some((header, rows)) = input.split_at_mut_checked(HEADER_BYTES) else { return };
    header[ROWS_BYTES_AT..ROWS_BYTES_AT + 8].copy_from_slice(&(rows.len() as u64).to_be_bytes());
    header[ROWS_CRC_AT..ROWS_CRC_AT + 4].copy_from_slice(&crc32c(rows).to_be_bytes());
    let checksum = crc32c(&header[12..]);
    header[8..12].copy_from_slice(&checksum.to_be_bytes());
}

fn run(input: &[u8]) -> u64 {
    try_folder(Left::Cleanly, Path::new(NAME), input, Whole::NotRequired)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_snapshot_of_the_workload_is_repaired_to_what_it_was() {
        for snapshot in seeds() {
            let mut repaired = snapshot.clone();
            repair(&mut repaired);
            assert!(snapshot == repaired, "checksums stand elsewhere than the target believes");
        }
    }
}
