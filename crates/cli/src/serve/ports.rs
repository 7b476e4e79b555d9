//! `--ports-file`: the ports that were taken, for a program that asked for free ones.

use std::io;
use std::path::Path;

/// Writes `{"kafka":…,"http":…}` so that a reader sees all of it or nothing.
pub(crate) fn write(file: &Path, kafka: u16, http: Option<u16>) -> io::Result<()> {
    let text = serde_json::json!({ "kafka": kafka, "http": http }).to_string();
    let mut unfinished = file.as_os_str().to_owned();
    unfinished.push(".tmp");
    std::fs::write(&unfinished, text + "\n")?;
    std::fs::rename(&unfinished, file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_written_whole() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("ports");
        write(&file, 9092, Some(9644)).expect("written");
        let text = std::fs::read_to_string(&file).expect("there");
        assert_eq!(text, "{\"http\":9644,\"kafka\":9092}\n");
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 1);
    }
}
