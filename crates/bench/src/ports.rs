//! The ports file: how a broker that was started on port 0 tells where it listens.

use std::fs;
use std::io;
use std::path::Path;

/// Writes the Kafka port, whole or not at all.
pub fn write(path: &Path, port: u16) -> io::Result<()> {
    let part = path.with_extension("part");
    fs::write(&part, format!("kafka={port}\n"))?;
    fs::rename(&part, path)
}

/// The Kafka port in the text of a ports file, once it is there: the digits that end its line.
pub fn parse(text: &str) -> Option<u16> {
    let line = text.lines().find(|line| line.to_ascii_lowercase().contains("kafka"))?;
    let line = line.trim_end_matches([' ', ',', '"', '}']);
    let digits = line.len() - line.bytes().rev().take_while(u8::is_ascii_digit).count();
    line[digits..].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_found_in_the_forms_that_brokers_write() {
        assert_eq!(parse("kafka=9092\nhttp=9644\n"), Some(9092));
        assert_eq!(parse("http=127.0.0.1:1\nkafka=127.0.0.1:40001\n"), Some(40001));
        assert_eq!(parse("{\n  \"kafka\": \"127.0.0.1:5\",\n  \"http\": 7\n}"), Some(5));
        assert_eq!(parse("http=9644\n"), None);
    }
}
