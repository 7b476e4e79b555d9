//! `strandline explain`: error codes, config keys, reasons of retention and states of deletions, from
//! the tables that define them.

use clap::Args;
use strandline_broker::{deletion_states, retention_reasons};
use strandline_model::config::{
    ConfigKey, Effect, Scope, Update, broker_keys, group_keys, key, nearest, topic_keys,
};
use strandline_wire::{ErrorCode, ErrorInfo};

use super::OutputFormat;
use super::advice::advice;
use super::error_word::by_short_word;
use crate::console;
use crate::failure::{Exit, Failure};

/// Says what an error code, a config key, a reason of retention or a state of a deletion means.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  strandline explain 37\n  strandline explain not_leader_or_follower\n  \
                  strandline explain retention.ms --format json"
)]
pub(crate) struct Explain {
    /// A number or a name of a Kafka error code, a config key, a reason of `topic retention`, or a state
    /// of `deletions list`.
    #[arg(value_name = "CODE|KEY", allow_negative_numbers = true)]
    word: String,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: OutputFormat,
}

/// What a word means.
enum Meaning {
    Code(&'static ErrorInfo),
    Key(Scope, &'static ConfigKey),
    /// Why a segment is still there, and what that means.
    Reason(&'static str, &'static str),
    /// How a deletion stands, and what that means.
    State(&'static str, &'static str),
}

impl Explain {
    pub(super) fn run(self) -> Result<(), Failure> {
        let meanings = meanings(&self.word);
        if meanings.is_empty() {
            return Err(unknown(&self.word));
        }
        match self.format {
            OutputFormat::Text => {
                let texts: Vec<String> = meanings.iter().map(Meaning::text).collect();
                console::data(texts.join("\n").as_bytes());
            }
            OutputFormat::Json => {
                let meanings: Vec<_> = meanings.iter().map(Meaning::json).collect();
                console::line(&serde_json::Value::from(meanings).to_string());
            }
        }
        Ok(())
    }
}

/// A key may belong to topics, brokers and more, with a meaning each.
fn meanings(word: &str) -> Vec<Meaning> {
    let code = match word.parse() {
        Ok(number) => ErrorCode::from_wire(number).info(),
        Err(_) => ErrorCode::by_name(word).or_else(|| by_short_word(word)),
    };
    let scopes = [Scope::Topic, Scope::Broker, Scope::Group, Scope::ClientMetrics].into_iter();
    let keys = scopes.filter_map(|scope| Some(Meaning::Key(scope, key(scope, word)?)));
    let reasons = retention_reasons().filter(|(code, _)| *code == word);
    let reasons = reasons.map(|(code, meaning)| Meaning::Reason(code, meaning));
    let states = deletion_states().filter(|(code, _)| *code == word);
    let states = states.map(|(code, meaning)| Meaning::State(code, meaning));
    code.map(Meaning::Code).into_iter().chain(keys).chain(reasons).chain(states).collect()
}

fn unknown(word: &str) -> Failure {
    let codes = ErrorCode::all().iter().map(|info| info.name);
    let keys = topic_keys().chain(broker_keys()).chain(group_keys()).map(|key| key.name);
    let message = format!(
        "\"{word}\" is no error code, no config key, no reason of retention and no state of a deletion"
    );
    let failure = Failure::new(Exit::Failed, "unknown_word", message);
    let reasons = retention_reasons().map(|(code, _)| code);
    let states = deletion_states().map(|(code, _)| code);
    match nearest(word, codes.chain(keys).chain(reasons).chain(states)) {
        Some(near) => failure.hint(format!("did you mean {near}?")),
        None => failure.hint("all keys: strandline config reference"),
    }
}

impl Meaning {
    fn name(&self) -> &'static str {
        match self {
            Self::Code(info) => info.name,
            Self::Key(_, key) => key.name,
            Self::Reason(code, _) | Self::State(code, _) => code,
        }
    }

    fn text(&self) -> String {
        let mut text = match self {
            Self::Code(info) => {
                let again = if info.retriable { "yes, on their own" } else { "no" };
                format!(
                    "{} ({})  Kafka error code\n  {}\n  clients try again: {again}\n",
                    info.name,
                    info.code.get(),
                    info.meaning
                )
            }
            Self::Key(scope, key) => key_text(*scope, key),
            Self::Reason(code, meaning) => {
                format!("{code}  why a segment is still there\n  {meaning}\n")
            }
            Self::State(code, meaning) => {
                format!("{code}  how a deletion stands\n  {meaning}\n")
            }
        };
        for line in advice(self.name()) {
            text += &format!("  {line}\n");
        }
        text
    }

    fn json(&self) -> serde_json::Value {
        let advice = advice(self.name());
        match self {
            Self::Code(info) => serde_json::json!({
                "kind": "error_code",
                "name": info.name,
                "code": info.code.get(),
                "meaning": info.meaning,
                "retriable": info.retriable,
                "advice": advice,
            }),
            Self::Key(scope, key) => serde_json::json!({
                "kind": kind(*scope),
                "name": key.name,
                "type": key.kind.name(),
                "default": key.default,
                "valid_values": key.valid_values(),
                "meaning": key.doc,
                "changes_at_run_time": changes(*scope, key),
                "no_effect": no_effect(key),
                "advice": advice,
            }),
            Self::Reason(code, meaning) => serde_json::json!({
                "kind": "retention_reason",
                "name": code,
                "meaning": meaning,
                "advice": advice,
            }),
            Self::State(code, meaning) => serde_json::json!({
                "kind": "deletion_state",
                "name": code,
                "meaning": meaning,
                "advice": advice,
            }),
        }
    }
}

fn kind(scope: Scope) -> &'static str {
    match scope {
        Scope::Topic => "topic_config",
        Scope::Broker => "broker_config",
        Scope::Group => "group_config",
        Scope::ClientMetrics => "client_metrics_config",
    }
}

fn changes(scope: Scope, key: &ConfigKey) -> &'static str {
    match (scope, key.update) {
        (Scope::Topic | Scope::Group | Scope::ClientMetrics, _)
        | (Scope::Broker, Update::ClusterWide) => "yes",
        (Scope::Broker, Update::PerBroker) => "per broker",
        (Scope::Broker, Update::ReadOnly) => "no",
    }
}

fn no_effect(key: &ConfigKey) -> Option<&'static str> {
    match key.effect {
        Effect::Active => None,
        Effect::None(why) => Some(why),
        Effect::UnservedSecurity => {
            Some("not served yet: any value but the default stops the start")
        }
    }
}

fn key_text(scope: Scope, key: &ConfigKey) -> String {
    let kind = kind(scope).replace('_', " ");
    let mut text = format!("{}  {kind}\n  {}\n", key.name, key.doc);
    if let Some(why) = no_effect(key) {
        text += &format!("  no effect: {why}\n");
    }
    text += &format!("  type: {}\n", key.kind.name());
    text += &format!("  default: {}\n", key.default.unwrap_or("unset"));
    let valid = key.valid_values();
    if !valid.is_empty() {
        text += &format!("  values: {valid}\n");
    }
    if !key.fallbacks.is_empty() {
        let chain: Vec<&str> = key.fallbacks.iter().map(|fallback| fallback.name).collect();
        text += &format!("  when unset: {}\n", chain.join(", then "));
    }
    text + &format!("  changes at run time: {}\n", changes(scope, key))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(word: &str) -> Vec<&'static str> {
        meanings(word).iter().map(Meaning::name).collect()
    }

    #[test]
    fn numbers_names_and_keys_are_known() {
        assert_eq!(names("37"), ["INVALID_PARTITIONS"]);
        assert_eq!(names("-1"), ["UNKNOWN_SERVER_ERROR"]);
        assert_eq!(names("not_leader_or_follower"), ["NOT_LEADER_OR_FOLLOWER"]);
        assert_eq!(names("retention.ms"), ["retention.ms"]);
        assert_eq!(names("compression.type").len(), 2, "of topics and of brokers");
        assert_eq!(names("behind_blocker"), ["behind_blocker"]);
        assert_eq!(names("backing_off"), ["backing_off"]);
        assert_eq!(names("9999"), Vec::<&str>::new());
    }

    #[test]
    fn every_code_and_key_is_explained() {
        for info in ErrorCode::all() {
            let text = Meaning::Code(info).text();
            assert!(text.contains(info.meaning), "{text}");
        }
        let topic = topic_keys().map(|key| (Scope::Topic, key));
        for (scope, key) in topic.chain(group_keys().map(|key| (Scope::Group, key))) {
            assert!(Meaning::Key(scope, key).text().contains("  type: "), "{}", key.name);
        }
    }

    #[test]
    fn advice_belongs_to_words_that_there_are() {
        for word in ["OFFSET_OUT_OF_RANGE", "NON_EMPTY_GROUP", "advertised.listeners"] {
            assert_eq!(names(word), [word]);
            assert!(!advice(word).is_empty());
        }
    }

    #[test]
    fn a_typo_comes_with_the_word_that_was_meant() {
        assert_eq!(unknown("retention.mss").hints, ["did you mean retention.ms?"]);
    }
}
