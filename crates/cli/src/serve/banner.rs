//! What `serve` says when it is ready, to a person at a terminal.

use std::fmt::Write;
use std::time::Duration;

/// The facts of the banner.
#[derive(Clone, Debug)]
pub(crate) struct Banner<'a> {
    /// The cluster's id.
    pub(crate) cluster_id: &'a str,
    /// The broker's id.
    pub(crate) node_id: i32,
    /// Kafka's address.
    pub(crate) kafka: &'a str,
    /// Whether others than this machine reach it.
    pub(crate) open_to_others: bool,
    /// The HTTP address, if it is served.
    pub(crate) http: Option<&'a str>,
    /// Where everything is kept.
    pub(crate) data: &'a str,
    /// How: the engine, what an acknowledgement waits for, what space is left.
    pub(crate) how: &'a str,
    /// Where settings come from and what is worth knowing of them.
    pub(crate) config: &'a str,
    /// Time from the process's start.
    pub(crate) ready_after: Duration,
}

impl Banner<'_> {
    /// The text.
    pub(crate) fn render(&self) -> String {
        let reach = if self.open_to_others {
            "plaintext, no authentication: everybody who reaches this machine"
        } else {
            "plaintext, this machine only"
        };
        let mut text = format!(
            "strandline {}   cluster {}   node {}\n\n",
            env!("CARGO_PKG_VERSION"),
            self.cluster_id,
            self.node_id
        );
        let mut row = |name: &str, value: &str, remark: &str| {
            let row = format!("  {name:<10} {value:<22} {remark}");
            writeln!(text, "{}", row.trim_end()).expect("a string takes every text");
        };
        row("Kafka", self.kafka, reach);
        if let Some(http) = self.http {
            row("HTTP", http, "health and metrics");
        }
        row("Data", self.data, self.how);
        row("Config", self.config, "");
        let bootstrap = if self.kafka.ends_with(":9092") && self.kafka.starts_with("localhost:") {
            String::new()
        } else {
            format!(" -b {}", self.kafka)
        };
        write!(
            text,
            "\nReady in {} ms. In another terminal:\n\n  \
             echo hello | strandline produce{bootstrap} demo\n  \
             strandline consume{bootstrap} demo\n  \
             kcat -b {} -L\n  \
             strandline examples\n\nCtrl-C stops cleanly.",
            self.ready_after.as_millis(),
            self.kafka,
        )
        .expect("a string takes every text");
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn banner() -> Banner<'static> {
        Banner {
            cluster_id: "4L6g3nShT-eMCtK--X86sw",
            node_id: 1,
            kafka: "localhost:9092",
            open_to_others: false,
            http: Some("http://localhost:9644"),
            data: "./strandline-data",
            how: "file engine, every acknowledged record is on disk (fsync), 12.4 GiB free",
            config: "defaults; topics are created on first use (auto.create.topics.enable=true)",
            ready_after: Duration::from_millis(43),
        }
    }

    #[test]
    fn the_banner_says_where_and_what_next() {
        let expected = format!(
            "strandline {}   cluster 4L6g3nShT-eMCtK--X86sw   node 1

  Kafka      localhost:9092         plaintext, this machine only
  HTTP       http://localhost:9644  health and metrics
  Data       ./strandline-data      file engine, every acknowledged record is on disk (fsync), 12.4 GiB free
  Config     defaults; topics are created on first use (auto.create.topics.enable=true)

Ready in 43 ms. In another terminal:

  echo hello | strandline produce demo
  strandline consume demo
  kcat -b localhost:9092 -L
  strandline examples

Ctrl-C stops cleanly.",
            env!("CARGO_PKG_VERSION")
        );
        assert_eq!(banner().render(), expected);
    }

    #[test]
    fn another_address_is_part_of_what_to_type_next() {
        let banner = Banner { kafka: "localhost:19092", open_to_others: true, ..banner() };
        let text = banner.render();
        assert!(text.contains("strandline consume -b localhost:19092 demo"), "{text}");
        assert!(text.contains("no authentication"), "{text}");
    }
}
