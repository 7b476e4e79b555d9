//! Collects settings from every source, checks each where it stands, and keeps all of them: the
//! strongest counts, the others can be shown as shadowed.
//!
//! Precedence, weakest first: built-in, file, `KAFKA_*`, `STRANDLINE_*`, `-c`, flags. What is set
//! while the broker runs lies above all of these and is not seen here.

use std::collections::BTreeMap;
use std::fmt;

use strandline_model::config::{
    self, BrokerConfig, BrokerConfigError, BrokerLayers, ConfigKey, Effect, Overrides, Scope, Value,
};

use super::diagnostic::{Diagnostic, Origin, first_difference};
use super::environment::{self, Prefix, variable_of};
use super::properties;

/// Everything that settings are read from.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sources {
    /// The properties file.
    pub(crate) file: Option<SourceFile>,
    /// The environment, all of it.
    pub(crate) environment: Vec<(String, String)>,
    /// The arguments of `-c`: `key=value`.
    pub(crate) assignments: Vec<String>,
    /// Flags that set a key.
    pub(crate) flags: Vec<FlagSetting>,
    /// Whether an unknown key is a warning instead of an error.
    pub(crate) lenient: bool,
}

/// A properties file.
#[derive(Clone, Debug)]
pub(crate) struct SourceFile {
    /// As the user named it.
    pub(crate) path: String,
    /// What it says.
    pub(crate) contents: String,
}

/// A flag that sets a key.
#[derive(Clone, Debug)]
pub(crate) struct FlagSetting {
    /// The flag with its dashes.
    pub(crate) flag: &'static str,
    /// The key.
    pub(crate) name: &'static str,
    /// The value.
    pub(crate) text: String,
}

/// One setting of a key.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Setting {
    /// The value.
    pub(crate) value: Value,
    /// Where it was made.
    pub(crate) origin: Origin,
}

/// Something that the user should know and that stops nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    /// An unknown key that `--lenient-config` lets pass, or a variable that is nearly a key.
    Ignored(Diagnostic),
    /// A setting that another one overrides.
    Shadowed {
        /// The key.
        name: &'static str,
        /// The weaker setting.
        shadowed: (String, Origin),
        /// The one that counts.
        by: (String, Origin),
    },
}

impl Notice {
    /// A stable word for scripts.
    pub(crate) const fn code(&self) -> &'static str {
        match self {
            Self::Ignored(_) => "setting_ignored",
            Self::Shadowed { .. } => "setting_overridden",
        }
    }
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ignored(diagnostic) => write!(f, "{diagnostic}"),
            Self::Shadowed { name, shadowed: (weak, at), by: (strong, by) } => {
                write!(f, "{name}={weak} ({at}) is overridden by {name}={strong} ({by})")
            }
        }
    }
}

/// The settings of a broker, checked one by one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Settings {
    /// By key, the weakest first.
    made: BTreeMap<&'static str, Vec<Setting>>,
    /// Keys with a prefix for one listener or plugin, none of which has an effect yet.
    prefixed: BTreeMap<String, &'static str>,
    ignored: Vec<Diagnostic>,
}

impl Settings {
    /// Reads every source; fails with all faults at once.
    pub(crate) fn load(sources: &Sources) -> Result<Self, Vec<Diagnostic>> {
        let mut loader = Loader { lenient: sources.lenient, ..Loader::default() };
        if let Some(file) = &sources.file {
            loader.file(file);
        }
        let environment = sources.environment.iter().cloned();
        let mut variables = environment::variables(environment);
        variables.sort_by_key(|variable| variable.prefix == Prefix::Strandline);
        for variable in variables {
            loader.variable(variable);
        }
        for argument in &sources.assignments {
            loader.assignment(argument);
        }
        for FlagSetting { flag, name, text } in &sources.flags {
            loader.set(name, text, Origin::Flag { flag });
        }
        if loader.faults.is_empty() { Ok(loader.settings) } else { Err(loader.faults) }
    }

    /// The settings that count, as a broker's static layer.
    pub(crate) fn layers(&self) -> BrokerLayers {
        let mut static_broker = Overrides::default();
        for (name, settings) in &self.made {
            let key = config::broker_key(name).expect("only known keys are kept");
            let Some(strongest) = settings.last() else { continue };
            static_broker.insert(key, strongest.value.clone());
        }
        BrokerLayers { static_broker, ..BrokerLayers::default() }
    }

    /// The broker's configuration; a fault is shown at the setting that causes it.
    pub(crate) fn broker_config(&self) -> Result<BrokerConfig, Box<Diagnostic>> {
        self.layers().broker_config().map_err(|error| Box::new(self.locate(error)))
    }

    /// The settings of one key, the weakest first; empty when it was not set.
    pub(crate) fn of(&self, name: &str) -> &[Setting] {
        self.made.get(name).map_or(&[], Vec::as_slice)
    }

    /// Keys that were set and change nothing here, with why.
    pub(crate) fn without_effect(&self) -> impl Iterator<Item = (&str, &'static str)> {
        let known = self.made.keys().filter_map(|name| match config::broker_key(name)?.effect {
            Effect::None(why) => Some((*name, why)),
            Effect::Active | Effect::UnservedSecurity => None,
        });
        known.chain(self.prefixed.iter().map(|(name, why)| (name.as_str(), *why)))
    }

    /// What the user should know.
    pub(crate) fn notices(&self) -> Vec<Notice> {
        let mut notices: Vec<Notice> = self.ignored.iter().cloned().map(Notice::Ignored).collect();
        for (name, settings) in &self.made {
            let Some((strongest, weaker)) = settings.split_last() else { continue };
            for setting in weaker.iter().filter(|weak| weak.value != strongest.value) {
                notices.push(Notice::Shadowed {
                    name,
                    shadowed: (shown(name, &setting.value), setting.origin.clone()),
                    by: (shown(name, &strongest.value), strongest.origin.clone()),
                });
            }
        }
        notices
    }

    fn locate(&self, error: BrokerConfigError) -> Diagnostic {
        let message = format!("{}: {}", error.name, error.why);
        match self.of(error.name).last() {
            Some(setting) => Diagnostic {
                column: value_column(&setting.origin),
                origin: setting.origin.clone(),
                message,
                hint: None,
            },
            // A default at fault comes from a flag that changed what it depends on.
            None => Diagnostic {
                origin: Origin::Flag { flag: "configuration" },
                column: 1,
                message,
                hint: None,
            },
        }
    }
}

/// A value as it may be shown: secrets are not.
pub(super) fn shown(name: &str, value: &Value) -> String {
    match config::broker_key(name) {
        Some(key) if !key.is_sensitive() => value.to_string(),
        _ => HIDDEN.to_owned(),
    }
}

const HIDDEN: &str = "[hidden]";

#[derive(Default)]
struct Loader {
    lenient: bool,
    settings: Settings,
    faults: Vec<Diagnostic>,
}

impl Loader {
    fn file(&mut self, file: &SourceFile) {
        match properties::parse(&file.contents) {
            Ok(entries) => {
                for entry in entries {
                    let origin = Origin::File { path: file.path.clone(), position: entry.position };
                    self.set(&entry.key, &entry.value, origin);
                }
            }
            Err(bad) => {
                let column = bad.position.key_column;
                self.faults.push(Diagnostic {
                    origin: Origin::File { path: file.path.clone(), position: bad.position },
                    column,
                    message: "malformed \\uXXXX escape".to_owned(),
                    hint: None,
                });
            }
        }
    }

    fn variable(&mut self, variable: environment::Variable) {
        let origin = Origin::Environment { variable: variable.name };
        let is_key =
            config::broker_key(&variable.key).is_some() || prefix_of(&variable.key).is_some();
        if is_key || variable.prefix == Prefix::Strandline {
            self.set(&variable.key, &variable.value, origin);
        } else if let Some(near) = config::suggest(Scope::Broker, &variable.key) {
            self.settings.ignored.push(Diagnostic {
                origin,
                column: 1,
                message: format!("ignored, since no key is named \"{}\"", variable.key),
                hint: Some(format!("did you mean {}?", variable_of(Prefix::Kafka, near))),
            });
        } else {
            tracing::debug!(key = variable.key, "environment variable names no key");
        }
    }

    fn assignment(&mut self, argument: &str) {
        let origin = |argument: &str| Origin::Assignment { argument: argument.to_owned() };
        match argument.split_once('=') {
            Some((name, text)) => self.set(name.trim(), text, origin(argument)),
            None => self.faults.push(Diagnostic {
                origin: origin(argument),
                column: 1,
                message: "not key=value".to_owned(),
                hint: None,
            }),
        }
    }

    fn set(&mut self, name: &str, text: &str, origin: Origin) {
        if let Some(key) = config::broker_key(name) {
            let origin = if key.is_sensitive() { masked(name, origin) } else { origin };
            return self.set_known(key, text, origin);
        }
        if let Some((inner, why)) = prefix_of(name) {
            return self.set_prefixed(name, inner, why, origin);
        }
        let fault = unknown(name, origin);
        if self.lenient {
            self.settings.ignored.push(fault);
        } else {
            self.faults.push(fault);
        }
    }

    fn set_known(&mut self, key: &'static ConfigKey, text: &str, origin: Origin) {
        match key.parse_with_units(text) {
            Ok(value) => {
                self.settings.made.entry(key.name).or_default().push(Setting { value, origin });
            }
            Err(invalid) => self.faults.push(Diagnostic {
                column: value_column(&origin),
                origin,
                message: format!("invalid value \"{}\" for {}", invalid.value, key.name),
                hint: Some(lower_first(&invalid.why)),
            }),
        }
    }

    fn set_prefixed(&mut self, name: &str, inner: &str, why: &'static str, origin: Origin) {
        let key = inner_key(inner);
        if key.is_some_and(|key| key.effect == Effect::UnservedSecurity) {
            let origin = masked(name, origin);
            self.faults.push(Diagnostic {
                column: value_column(&origin),
                origin,
                message: format!("{name} promises a security that is not served yet; remove it"),
                hint: None,
            });
        } else {
            self.settings.prefixed.insert(name.to_owned(), why);
        }
    }
}

/// What follows a prefix that opens a family of keys, and why the family has no effect.
fn prefix_of(name: &str) -> Option<(&str, &'static str)> {
    for (prefix, why) in [
        ("listener.name.", "settings of single listeners are not served yet"),
        ("rlmm.config.", "storage.engine says where a topic lives"),
        ("rsm.config.", "storage.engine says where a topic lives"),
        ("metrics.jmx.", "there is no Java class to load"),
    ] {
        if let Some(inner) = name.strip_prefix(prefix) {
            return Some((inner, why));
        }
    }
    None
}

/// The key at the end of `listener.name.<listener>.<key>` or
/// `listener.name.<listener>.<mechanism>.<key>`.
fn inner_key(inner: &str) -> Option<&'static ConfigKey> {
    let mut rest = inner;
    while let Some((_, after)) = rest.split_once('.') {
        if let Some(key) = config::broker_key(after) {
            return Some(key);
        }
        rest = after;
    }
    None
}

fn unknown(name: &str, origin: Origin) -> Diagnostic {
    let mut column = match &origin {
        Origin::File { position, .. } => position.key_column,
        _ => 1,
    };
    let of_topics = config::topic_key(name).map(|key| key.fallbacks.first());
    let hint = match (of_topics, config::suggest(Scope::Broker, name)) {
        (Some(Some(fallback)), _) => {
            Some(format!("it is a topic config; the default of topics is {}", fallback.name))
        }
        (Some(None), _) => Some("it is a topic config".to_owned()),
        (None, Some(near)) => {
            column += first_difference(name, near) - 1;
            Some(match &origin {
                Origin::Environment { .. } => {
                    format!("did you mean {}?", variable_of(Prefix::Strandline, near))
                }
                _ => format!("did you mean {near}?"),
            })
        }
        (None, None) => Some("strandline config reference lists every key".to_owned()),
    };
    Diagnostic { origin, column, message: format!("unknown key \"{name}\""), hint }
}

fn value_column(origin: &Origin) -> usize {
    match origin {
        Origin::File { position, .. } => position.value_column,
        _ => 1,
    }
}

/// The same place without the secret.
fn masked(name: &str, origin: Origin) -> Origin {
    match origin {
        Origin::File { path, mut position } => {
            position.text = format!("{name}={HIDDEN}");
            position.key_column = 1;
            position.value_column = name.chars().count() + 2;
            Origin::File { path, position }
        }
        Origin::Assignment { .. } => Origin::Assignment { argument: format!("{name}={HIDDEN}") },
        other => other,
    }
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first.to_lowercase().chain(chars).collect(),
        None => String::new(),
    }
}

#[cfg(test)]
#[path = "load_tests.rs"]
mod tests;
