//! The configuration reference, rendered from the tables.

use std::fmt::Write;

use super::key::{ConfigKey, Effect, Update};
use super::{broker_areas, client_metrics_keys, group_keys, topic_keys};

const INTRODUCTION: &str = "\
# Configuration

<!-- Rendered by `strandline config reference` from crates/model/src/config; do not edit. -->

Strandline reads one flat file of Kafka's `server.properties` form, the environment and flags; the
later wins. Kafka's keys keep Kafka's names, types and defaults.
Where a key ends in `.bytes`, `.ms`, `.minutes` or `.hours`, the file, the environment and `-c` also
take a unit (`512MiB`, `7d`); Kafka's protocol carries plain numbers.
An unknown key is an error.

";

/// `docs/configuration.md`.
pub fn reference_markdown() -> String {
    let mut text = INTRODUCTION.to_owned();
    section(&mut text, "Topic configs", topic_keys());
    section(&mut text, "Group configs", group_keys());
    section(&mut text, "Client metrics configs", client_metrics_keys());
    for (area, keys) in broker_areas() {
        section(&mut text, &format!("Broker configs: {area}"), keys.iter());
    }
    text
}

fn section<'a>(text: &mut String, title: &str, keys: impl Iterator<Item = &'a ConfigKey>) {
    let write = |text: &mut String, line: std::fmt::Arguments<'_>| {
        text.write_fmt(line).expect("a string takes every text");
    };
    write(text, format_args!("## {title}\n"));
    for key in keys {
        write(text, format_args!("\n### `{}`\n\n{}\n\n", key.name, key.doc));
        if let Effect::None(why) = key.effect {
            write(text, format_args!("- no effect: {why}\n"));
        }
        if key.effect == Effect::UnservedSecurity {
            write(
                text,
                format_args!("- not served yet: any value but the default stops the start\n"),
            );
        }
        write(text, format_args!("- type: {}\n", key.kind.name()));
        write(text, format_args!("- default: {}\n", default(key)));
        let valid = key.valid_values();
        if !valid.is_empty() {
            write(text, format_args!("- values: {valid}\n"));
        }
        if !key.fallbacks.is_empty() {
            let chain: Vec<String> =
                key.fallbacks.iter().map(|fallback| format!("`{}`", fallback.name)).collect();
            write(text, format_args!("- when unset: {}\n", chain.join(", then ")));
        }
        match key.update {
            Update::ReadOnly => {}
            Update::PerBroker => write(text, format_args!("- changes at run time: per broker\n")),
            Update::ClusterWide => write(text, format_args!("- changes at run time: yes\n")),
        }
    }
    text.push('\n');
}

fn default(key: &ConfigKey) -> String {
    match key.default {
        None => "unset".to_owned(),
        Some("") => "empty".to_owned(),
        Some(text) => format!("`{text}`"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `UPDATE_EXPECT=1 cargo test -p strandline-model` rewrites the file.
    #[test]
    fn the_committed_reference_is_fresh() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            std::fs::write(path, reference_markdown()).expect("write the reference");
        }
        let committed = std::fs::read_to_string(path).expect("docs/configuration.md is committed");
        assert!(
            committed == reference_markdown(),
            "docs/configuration.md is stale; run with UPDATE_EXPECT=1"
        );
    }
}
