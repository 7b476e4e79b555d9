//! `--topic NAME[:PARTITIONS]`.

use std::str::FromStr;

/// A topic that `serve` is told to have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TopicSpec {
    /// Its name.
    pub(crate) name: String,
    /// How many partitions it gets; `None` for `num.partitions`.
    pub(crate) partition_count: Option<u32>,
}

impl FromStr for TopicSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, count) = match text.split_once(':') {
            Some((name, count)) => (name, Some(count)),
            None => (text, None),
        };
        strandline_model::TopicName::new(name).map_err(|error| error.to_string())?;
        let partition_count = match count {
            None => None,
            Some(count) => match count.parse::<u32>() {
                Ok(count) if count > 0 && count <= i32::MAX.unsigned_abs() => Some(count),
                Ok(_) | Err(_) => return Err(format!("\"{count}\" is no count of partitions")),
            },
        };
        Ok(Self { name: name.to_owned(), partition_count })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specs_are_read() {
        let spec =
            |name: &str, partition_count| Ok(TopicSpec { name: name.to_owned(), partition_count });
        assert_eq!("orders".parse(), spec("orders", None));
        assert_eq!("orders:6".parse(), spec("orders", Some(6)));
    }

    #[test]
    fn wrong_specs_are_refused() {
        for text in ["", ":6", "a:", "a:0", "a:x", "a:-1", "a b", "a:1:2", "a:4294967295"] {
            assert!(text.parse::<TopicSpec>().is_err(), "{text}");
        }
    }
}
