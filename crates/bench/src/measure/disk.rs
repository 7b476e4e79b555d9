//! Cache flushes of the device below a folder: the one counter that a faked sync cannot move.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Column of "flush requests completed" in `/proc/diskstats`, counted from 0.
const FLUSHES: usize = 18;

/// Flushes that the device has completed since boot, whoever asked for them; `None` where the
/// kernel does not say (a partition, a stacked device).
pub fn flushes(folder: &Path) -> Option<u64> {
    let device = fs::metadata(folder).ok()?.dev();
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    find(&fs::read_to_string("/proc/diskstats").ok()?, major, minor)
}

fn find(diskstats: &str, major: u32, minor: u32) -> Option<u64> {
    diskstats.lines().find_map(|line| {
        let fields: Vec<_> = line.split_whitespace().collect();
        let [of_major, of_minor, ..] = fields.as_slice() else { return None };
        let here = of_major.parse() == Ok(major) && of_minor.parse() == Ok(minor);
        here.then(|| fields.get(FLUSHES)?.parse().ok()).flatten()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_flushes_are_the_last_but_one_column_of_the_right_device() {
        let text = "   7       0 loop0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 5 17\n \
                    254       0 vda 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 1601 17\n";
        assert_eq!(find(text, 254, 0), Some(1601));
        assert_eq!(find(text, 7, 0), Some(5));
        assert_eq!(find(text, 8, 0), None);
    }
}
