//! What a change of configuration makes of what was set before (KIP-339).

use std::collections::BTreeMap;
use std::fmt;

use super::key as key_of;
use super::key::{ConfigType, Scope};

/// What a client asks to do with one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alteration {
    /// The key's name, unchecked.
    pub name: String,
    /// What to do.
    pub op: AlterOp,
}

/// What to do with a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AlterOp {
    /// Set it to this text.
    Set(String),
    /// Forget what was set.
    Delete,
    /// Add these items, with commas between them, to what is set or else the default.
    Append(String),
    /// Take these items away.
    Subtract(String),
}

/// Items were to be added to or taken from a key that has none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotAList {
    /// Whose key it is.
    pub scope: Scope,
    /// The key's name.
    pub name: String,
    /// Whether items were to be added, not taken.
    pub is_append: bool,
    /// Whether there is such a key.
    pub is_known: bool,
}

/// In Kafka's words, which differ between brokers and everything else.
impl fmt::Display for NotAList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { scope, name, is_append, is_known } = self;
        match (scope, is_known) {
            (Scope::Broker, false) => write!(f, "Unknown config name: {name}"),
            (Scope::Broker, true) => {
                let op = if *is_append { "append" } else { "subtract" };
                write!(f, "Config value {op} is not allowed for config key: {name}")
            }
            (Scope::Topic | Scope::Group | Scope::ClientMetrics, _) => {
                let op = if *is_append { "APPEND" } else { "SUBTRACT" };
                write!(f, "Can't {op} to key {name} because its type is not LIST.")
            }
        }
    }
}

impl std::error::Error for NotAList {}

/// What is set after `alterations` of `kept`. Values are not checked.
pub fn alter(
    scope: Scope,
    kept: &BTreeMap<String, String>,
    alterations: &[Alteration],
) -> Result<BTreeMap<String, String>, NotAList> {
    let mut set = kept.clone();
    for Alteration { name, op } in alterations {
        match op {
            AlterOp::Set(text) => drop(set.insert(name.clone(), text.clone())),
            AlterOp::Delete => drop(set.remove(name)),
            AlterOp::Append(items) => {
                let mut parts = parts(scope, name, set.get(name), true)?;
                for item in items.split(',') {
                    if !parts.iter().any(|part| part == item) {
                        parts.push(item.to_owned());
                    }
                }
                set.insert(name.clone(), parts.join(","));
            }
            AlterOp::Subtract(items) => {
                let mut parts = parts(scope, name, set.get(name), false)?;
                for item in items.split(',') {
                    if let Some(at) = parts.iter().position(|part| part == item) {
                        parts.remove(at);
                    }
                }
                set.insert(name.clone(), parts.join(","));
            }
        }
    }
    Ok(set)
}

/// The items of what is set, or else of the default.
fn parts(
    scope: Scope,
    name: &str,
    set: Option<&String>,
    is_append: bool,
) -> Result<Vec<String>, NotAList> {
    let key = key_of(scope, name);
    let is_list = match scope {
        Scope::Topic | Scope::Broker => key.is_some_and(|key| key.kind == ConfigType::List),
        // Kafka's controller knows the types of topics and brokers only.
        Scope::Group | Scope::ClientMetrics => false,
    };
    if !is_list {
        let name = name.to_owned();
        return Err(NotAList { scope, name, is_append, is_known: key.is_some() });
    }
    let default = key.and_then(|key| key.default).unwrap_or_default();
    let text = set.map_or(default, String::as_str);
    Ok(text.split(',').filter(|part| !part.is_empty()).map(str::to_owned).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(kept: Option<&str>, op: AlterOp) -> Option<String> {
        let name = "cleanup.policy".to_owned();
        let kept = kept.map(|text| (name.clone(), text.to_owned())).into_iter().collect();
        let alteration = Alteration { name: name.clone(), op };
        let altered = alter(Scope::Topic, &kept, &[alteration]).expect("a list");
        altered.get(&name).cloned()
    }

    /// As Apache Kafka 4.4 answered.
    #[test]
    fn items_are_added_and_taken_as_kafka_does() {
        let append = |text: &str| AlterOp::Append(text.to_owned());
        let subtract = |text: &str| AlterOp::Subtract(text.to_owned());
        for (kept, op, after) in [
            (None, append("compact"), Some("delete,compact")),
            (Some("delete,compact"), append("compact"), Some("delete,compact")),
            (Some("delete,compact"), subtract("delete"), Some("compact")),
            (Some("compact"), subtract("delete"), Some("compact")),
            (Some("compact"), subtract("compact"), Some("")),
            (Some(""), append("compact"), Some("compact")),
            (Some("compact"), append(""), Some("compact,")),
            // Items are compared as they were given, spaces and all.
            (Some(" compact , delete "), subtract("delete"), Some(" compact , delete ")),
            (Some("compact"), AlterOp::Delete, None),
            (Some("compact"), AlterOp::Set("x".to_owned()), Some("x")),
        ] {
            assert_eq!(policy(kept, op.clone()).as_deref(), after, "{kept:?} {op:?}");
        }
    }

    #[test]
    fn only_lists_have_items() {
        let refused = |scope, name: &str, op| {
            let alteration = Alteration { name: name.to_owned(), op };
            alter(scope, &BTreeMap::new(), &[alteration]).expect_err("no list").to_string()
        };
        let append = || AlterOp::Append("7".to_owned());
        let subtract = || AlterOp::Subtract("7".to_owned());
        for (scope, name, op, words) in [
            (
                Scope::Topic,
                "retention.ms",
                append(),
                "Can't APPEND to key retention.ms because its type is not LIST.",
            ),
            (
                Scope::Topic,
                "no.such",
                subtract(),
                "Can't SUBTRACT to key no.such because its type is not LIST.",
            ),
            (
                Scope::Group,
                "streams.rack.aware.assignment.tags",
                append(),
                "Can't APPEND to key streams.rack.aware.assignment.tags because its type is not \
                 LIST.",
            ),
            (
                Scope::Broker,
                "log.retention.ms",
                append(),
                "Config value append is not allowed for config key: log.retention.ms",
            ),
            (Scope::Broker, "my.own", subtract(), "Unknown config name: my.own"),
        ] {
            assert_eq!(refused(scope, name, op), words);
        }
    }
}
