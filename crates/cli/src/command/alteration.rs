//! Changing configuration: what was, what is, and where each value comes from.

use std::collections::BTreeMap;
use std::time::Duration;

use strandline_client::{Client, ClientError, ConfigChange, ConfigEntry, ConfigResource};
use strandline_model::config::{ConfigKey, Scope, key, suggest};
use strandline_wire::ErrorCode;
use tokio::time::{Instant, sleep};

use super::OutputFormat;
use super::target::Target;
use crate::console;
use crate::failure::{Exit, Failure};
use crate::table::plain;

/// How long a broker may take to show a change that it has acknowledged. Reached: what it shows is
/// printed.
const SETTLED_WITHIN: Duration = Duration::from_secs(1);
/// Between two looks.
const SETTLED_PAUSE: Duration = Duration::from_millis(50);

/// A resource before and after a change.
pub(super) struct Alteration {
    resource: ConfigResource,
    keys: Vec<KeyChange>,
    /// Whether it was done, or only tried.
    done: bool,
}

struct KeyChange {
    name: String,
    before: Option<ConfigEntry>,
    /// What it will be is not known when a value is to be taken away and nothing is done.
    after: Option<ConfigEntry>,
}

/// Changes keys of a resource, all or none; with `dry_run` only asks whether that could be done.
pub(super) async fn alter(
    target: &Target,
    client: &mut Client,
    resource: &ConfigResource,
    changes: &[ConfigChange],
    dry_run: bool,
) -> Result<Alteration, Failure> {
    let before = match client.describe_configs(resource).await {
        Ok(entries) => by_name(entries),
        Err(error) => return Err(explain_resource(target, client, resource, &error).await),
    };
    // Kafka takes nothing away, and says that it did.
    let scope = scope_of(resource);
    let is_unknown = |change: &&ConfigChange| {
        change.value.is_none()
            && !before.contains_key(&change.name)
            && key(scope, &change.name).is_none()
    };
    if let Some(change) = changes.iter().find(is_unknown) {
        let message = format!("{resource} has no key {}", change.name);
        let failure = Failure::new(Exit::Failed, "unknown_key", message);
        return Err(match suggest(scope, &change.name) {
            Some(near) => failure.hint(format!("did you mean {near}?")),
            None => failure,
        });
    }
    if let Err(error) = client.alter_configs(resource, changes, dry_run).await {
        let failure = explain_resource(target, client, resource, &error).await;
        return Err(with_suggestions(failure, resource, changes, &error));
    }
    let after = if dry_run {
        BTreeMap::new()
    } else {
        let entries = settled(client, resource, changes).await;
        entries.map_err(|error| target.explain(&error))?
    };
    let key_change = |change: &ConfigChange| KeyChange {
        name: change.name.clone(),
        before: before.get(&change.name).cloned(),
        after: match &change.value {
            Some(value) if dry_run => {
                Some(wished(resource, &change.name, value, before.get(&change.name)))
            }
            _ => after.get(&change.name).cloned(),
        },
    };
    let keys = changes.iter().map(key_change).collect();
    Ok(Alteration { resource: resource.clone(), keys, done: !dry_run })
}

/// What a key will be once it is set; like what it is now, where it is anything.
fn wished(
    resource: &ConfigResource,
    name: &str,
    value: &str,
    before: Option<&ConfigEntry>,
) -> ConfigEntry {
    // Of what is not set a broker tells nothing, not even that it is a secret.
    let is_secret = || key(scope_of(resource), name).is_some_and(ConfigKey::is_sensitive);
    let sensitive = before.map_or_else(is_secret, |entry| entry.sensitive);
    ConfigEntry {
        name: name.to_owned(),
        value: (!sensitive).then(|| value.to_owned()),
        source: resource_source(resource),
        read_only: before.is_some_and(|entry| entry.read_only),
        sensitive,
    }
}

/// The configuration once the broker shows the change: Kafka's brokers learn of it a moment after
/// their controller has acknowledged it.
async fn settled(
    client: &mut Client,
    resource: &ConfigResource,
    changes: &[ConfigChange],
) -> Result<BTreeMap<String, ConfigEntry>, ClientError> {
    let own = resource_source(resource);
    let deadline = Instant::now() + SETTLED_WITHIN;
    loop {
        let entries = by_name(client.describe_configs(resource).await?);
        let shows = |change: &ConfigChange| match (&change.value, entries.get(&change.name)) {
            (Some(_), None) => false,
            (Some(value), Some(entry)) => {
                entry.source == own && entry.value.as_ref() == Some(value)
            }
            (None, entry) => entry.is_none_or(|entry| entry.source != own),
        };
        // A value that the broker writes in another way is shown as the broker writes it.
        if changes.iter().all(shows) || Instant::now() >= deadline {
            return Ok(entries);
        }
        sleep(SETTLED_PAUSE).await;
    }
}

impl Alteration {
    /// Prints what changed.
    pub(super) fn show(alterations: &[Self], format: OutputFormat) {
        match format {
            OutputFormat::Text => {
                for alteration in alterations {
                    console::line(&alteration.text());
                }
            }
            OutputFormat::Json => {
                let all: Vec<_> = alterations.iter().map(Self::json).collect();
                console::line(&serde_json::Value::from(all).to_string());
            }
        }
    }

    fn text(&self) -> String {
        let note = if self.done { "" } else { "  (nothing was changed)" };
        let mut text = format!("{}{note}", self.resource);
        for key in &self.keys {
            text += &format!(
                "\n  {}: {} -> {}",
                plain(&key.name),
                entry_text(key.before.as_ref()),
                match &key.after {
                    None if !self.done => "the default".to_owned(),
                    after => entry_text(after.as_ref()),
                }
            );
        }
        text
    }

    fn json(&self) -> serde_json::Value {
        let value =
            |entry: &Option<ConfigEntry>| entry.as_ref().and_then(|entry| entry.value.clone());
        let source =
            |entry: &Option<ConfigEntry>| entry.as_ref().map(|entry| source_name(entry.source));
        let key = |key: &KeyChange| {
            serde_json::json!({
                "name": key.name,
                "value_before": value(&key.before),
                "source_before": source(&key.before),
                "value": value(&key.after),
                "source": source(&key.after),
            })
        };
        serde_json::json!({
            "resource": self.resource.to_string(),
            "changed": self.done,
            "configs": self.keys.iter().map(key).collect::<Vec<_>>(),
        })
    }
}

fn by_name(entries: Vec<ConfigEntry>) -> BTreeMap<String, ConfigEntry> {
    entries.into_iter().map(|entry| (entry.name.clone(), entry)).collect()
}

fn entry_text(entry: Option<&ConfigEntry>) -> String {
    match entry {
        None => "not set".to_owned(),
        Some(entry) => {
            let value = plain(entry.shown());
            format!("{value} ({})", source_name(entry.source))
        }
    }
}

/// The number of a value that was set on the resource itself.
const fn resource_source(resource: &ConfigResource) -> i8 {
    match resource {
        ConfigResource::Topic(_) => 1,
        ConfigResource::Broker(_) => 2,
        ConfigResource::Cluster => 3,
        ConfigResource::ClientMetrics(_) => 7,
        ConfigResource::Group(_) => 8,
    }
}

/// Whose keys a resource has.
pub(super) const fn scope_of(resource: &ConfigResource) -> Scope {
    match resource {
        ConfigResource::Topic(_) => Scope::Topic,
        ConfigResource::Broker(_) | ConfigResource::Cluster => Scope::Broker,
        ConfigResource::Group(_) => Scope::Group,
        ConfigResource::ClientMetrics(_) => Scope::ClientMetrics,
    }
}

/// Where a value comes from, in a word; the numbers are Kafka's.
pub(super) const fn source_name(source: i8) -> &'static str {
    match source {
        1 => "topic",
        2 => "broker",
        3 => "cluster",
        // The file, the environment or the command line: Kafka's protocol tells them not apart.
        4 => "static",
        5 => "default",
        6 => "logger",
        7 => "client-metrics",
        8 => "group",
        _ => "unknown",
    }
}

/// Whether the value was set by somebody, rather than built in.
pub(super) const fn is_set(source: i8) -> bool {
    source != 5
}

/// A failure about a resource: with a suggestion when it is a topic that is not there.
pub(super) async fn explain_resource(
    target: &Target,
    client: &mut Client,
    resource: &ConfigResource,
    error: &ClientError,
) -> Failure {
    match resource {
        ConfigResource::Topic(name) => target.explain_topic(client, name, error).await,
        ConfigResource::Broker(id) if error.code() == Some(ErrorCode::BROKER_NOT_AVAILABLE) => {
            Failure::new(Exit::Failed, "unknown_broker", format!("there is no broker {id}"))
                .hint("list: strandline cluster info")
        }
        _ => target.explain(error),
    }
}

fn with_suggestions(
    mut failure: Failure,
    resource: &ConfigResource,
    changes: &[ConfigChange],
    error: &ClientError,
) -> Failure {
    if error.code() != Some(ErrorCode::INVALID_CONFIG) {
        return failure;
    }
    let scope = scope_of(resource);
    for change in changes {
        if key(scope, &change.name).is_none()
            && let Some(near) = suggest(scope, &change.name)
        {
            failure = failure.hint(format!("{}: did you mean {near}?", change.name));
        }
    }
    failure
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_is_set_nowhere_yet_is_shown_as_it_will_be() {
        let cluster = ConfigResource::Cluster;
        let after = wished(&cluster, "log.retention.ms", "604800000", None);
        let tried = Alteration {
            resource: cluster,
            keys: vec![KeyChange {
                name: "log.retention.ms".to_owned(),
                before: None,
                after: Some(after),
            }],
            done: false,
        };
        let text = tried.text();
        assert!(text.ends_with("log.retention.ms: not set -> 604800000 (cluster)"), "{text}");
        let json = tried.json();
        assert_eq!(json["configs"][0]["value"], "604800000");
        assert_eq!(json["configs"][0]["source"], "cluster");
        assert_eq!(json["configs"][0]["value_before"], serde_json::Value::Null);
    }

    #[test]
    fn what_a_broker_was_started_with_need_not_be_from_a_file() {
        assert_eq!(source_name(4), "static");
    }

    #[test]
    fn a_secret_is_not_shown_because_it_is_new() {
        let after = wished(&ConfigResource::Cluster, "ssl.key.password", "hush", None);
        assert_eq!((after.value.as_deref(), after.shown()), (None, "[hidden]"));
    }
}
