//! What `config show` prints: every value that is not the default, where it is from, and what it
//! hides.

use strandline_model::config::{self, Effect};

use super::load::{Settings, shown};

/// A key whose value was set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Shown {
    /// The key.
    pub(crate) name: &'static str,
    /// Its value.
    pub(crate) value: String,
    /// Where it was set.
    pub(crate) source: String,
    /// Weaker settings: value and where.
    pub(crate) shadowed: Vec<(String, String)>,
    /// Why it changes nothing, when it does not.
    pub(crate) no_effect: Option<&'static str>,
}

/// The keys that were set to something else than their default, or in more than one place.
pub(crate) fn show(settings: &Settings) -> Vec<Shown> {
    let mut keys = Vec::new();
    for key in config::broker_keys() {
        let Some((strongest, weaker)) = settings.of(key.name).split_last() else { continue };
        let value = strongest.value.to_string();
        if Some(value.as_str()) == key.default && weaker.is_empty() {
            continue;
        }
        keys.push(Shown {
            name: key.name,
            value: shown(key.name, &strongest.value),
            source: strongest.origin.to_string(),
            shadowed: weaker
                .iter()
                .rev()
                .map(|weak| (shown(key.name, &weak.value), weak.origin.to_string()))
                .collect(),
            no_effect: match key.effect {
                Effect::None(why) => Some(why),
                Effect::Active | Effect::UnservedSecurity => None,
            },
        });
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{SourceFile, Sources};

    #[test]
    fn what_differs_from_the_default_is_shown_with_what_it_hides() {
        let sources = Sources {
            file: Some(SourceFile {
                path: "f".to_owned(),
                contents: "num.partitions=3\nnode.id=1\nnum.io.threads=9".to_owned(),
            }),
            assignments: vec!["num.partitions=4".to_owned()],
            ..Sources::default()
        };
        let shown = show(&Settings::load(&sources).expect("good"));
        assert_eq!(
            shown,
            [
                Shown {
                    name: "num.io.threads",
                    value: "9".to_owned(),
                    source: "f:3".to_owned(),
                    shadowed: Vec::new(),
                    no_effect: Some("the runtime has one thread per core"),
                },
                Shown {
                    name: "num.partitions",
                    value: "4".to_owned(),
                    source: "-c num.partitions=4".to_owned(),
                    shadowed: vec![("3".to_owned(), "f:1".to_owned())],
                    no_effect: None,
                },
            ]
        );
    }
}
