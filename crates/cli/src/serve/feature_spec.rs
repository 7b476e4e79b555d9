//! `--feature NAME=LEVEL`.

use std::str::FromStr;

use strandline_model::SUPPORTED_FEATURES;

/// The level with which a feature begins in a folder that has none for it yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FeatureSpec {
    /// Kafka's name of the feature.
    pub(crate) name: String,
    /// The level, one that is supported.
    pub(crate) level: i16,
}

impl FromStr for FeatureSpec {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, level) = text.split_once('=').ok_or("a feature is NAME=LEVEL")?;
        let feature = SUPPORTED_FEATURES.iter().find(|feature| feature.name == name);
        let feature = feature.ok_or_else(|| {
            let known: Vec<&str> = SUPPORTED_FEATURES.iter().map(|feature| feature.name).collect();
            format!("there is no feature \"{name}\", only {}", known.join(", "))
        })?;
        let range = feature.min_level..=feature.max_level;
        match level.parse() {
            Ok(level) if range.contains(&level) => Ok(Self { name: name.to_owned(), level }),
            Ok(_) | Err(_) => {
                let (min, max) = range.into_inner();
                Err(format!("levels of {name} are {min} to {max}, not \"{level}\""))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn specs_are_read_and_wrong_ones_refused() {
        let wanted = FeatureSpec { name: "metadata.version".to_owned(), level: 7 };
        assert_eq!("metadata.version=7".parse(), Ok(wanted));
        for text in ["", "metadata.version", "metadata.version=6", "metadata.version=x", "no=1"] {
            assert!(text.parse::<FeatureSpec>().is_err(), "{text}");
        }
    }
}
