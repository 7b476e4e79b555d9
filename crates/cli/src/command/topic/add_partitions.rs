//! `strandline topic add-partitions`.

use std::str::FromStr;

use clap::Args;

use crate::command::OutputFormat;
use crate::command::target::{Target, unknown_topic};
use crate::console;
use crate::failure::Failure;
use crate::format::counted;

/// Gives a topic more partitions. They can't be taken away again, and keys move to other partitions.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  strandline topic add-partitions orders -p 12\n  strandline topic \
                  add-partitions orders -p +3"
)]
pub(crate) struct AddPartitions {
    /// The topic.
    #[arg(value_name = "NAME")]
    name: String,
    /// How many partitions it has afterwards; +3 adds three.
    #[arg(short, long, value_name = "N")]
    partitions: Count,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: OutputFormat,
}

/// How many partitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Count {
    Total(i32),
    More(i32),
}

impl FromStr for Count {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let positive = |digits: &str| digits.parse().ok().filter(|count: &i32| *count > 0);
        let count = match text.strip_prefix('+') {
            Some(digits) if digits.starts_with(|c: char| c.is_ascii_digit()) => {
                positive(digits).map(Self::More)
            }
            Some(_) => None,
            None => positive(text).map(Self::Total),
        };
        count.ok_or_else(|| format!("\"{text}\" is no number of partitions; write 12 or +3"))
    }
}

impl AddPartitions {
    pub(super) async fn run(self, target: &Target) -> Result<(), Failure> {
        let mut client = target.connect().await?;
        let cluster = client.cluster(None).await.map_err(|error| target.explain(&error))?;
        let Some(topic) = cluster.topics.iter().find(|topic| topic.name == self.name) else {
            let known = cluster.topics.iter().map(|topic| topic.name.as_str());
            return Err(unknown_topic(&self.name, known));
        };
        let before = i32::try_from(topic.partitions.len()).unwrap_or(i32::MAX);
        let total = match self.partitions {
            Count::Total(total) => total,
            Count::More(more) => before.saturating_add(more),
        };
        if let Err(error) = client.create_partitions(&self.name, total).await {
            return Err(target.explain(&error));
        }
        match self.format {
            OutputFormat::Text => {
                let partitions = counted(u64::from(total.unsigned_abs()), "partition");
                console::say(&format!("{} has {partitions}, {before} before", self.name));
            }
            OutputFormat::Json => {
                let object = serde_json::json!({
                    "name": self.name, "partitions_before": before, "partitions": total,
                });
                console::line(&object.to_string());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plus_adds() {
        assert_eq!("12".parse(), Ok(Count::Total(12)));
        assert_eq!("+3".parse(), Ok(Count::More(3)));
        for wrong in ["", "+", "0", "+0", "-1", "++3", "x"] {
            assert!(wrong.parse::<Count>().is_err(), "{wrong}");
        }
    }
}
