//! `strandline config check` and `show`: settings of a broker before it runs.

use clap::Args;

use crate::command::OutputFormat;
use crate::console;
use crate::failure::Failure;
use crate::remark::Remark;
use crate::serve::{Plan, ServeOptions};
use crate::settings::{Shown, show};

/// Where settings are read from.
#[derive(Debug, Args)]
pub(crate) struct Check {
    /// A file of Kafka's server.properties form.
    file: Option<String>,
    /// A setting that overrides the file and the environment.
    #[arg(short = 'c', value_name = "KEY=VALUE")]
    assignments: Vec<String>,
    /// Lets unknown keys pass with a warning.
    #[arg(long)]
    lenient_config: bool,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: OutputFormat,
}

impl Check {
    /// Says what the settings mean.
    pub(super) fn check(self) -> Result<(), Failure> {
        let format = self.format;
        let plan = self.plan()?;
        console::line(&match format {
            OutputFormat::Text => checked_text(&plan),
            OutputFormat::Json => checked_json(&plan).to_string(),
        });
        Ok(())
    }

    /// Prints what is not the default.
    pub(super) fn show(self) -> Result<(), Failure> {
        let format = self.format;
        let plan = self.plan()?;
        let shown = show(&plan.settings);
        match format {
            OutputFormat::Text => shown.iter().for_each(|key| console::line(&text(key))),
            OutputFormat::Json => {
                let keys: Vec<_> = shown.iter().map(json).collect();
                console::line(&serde_json::Value::from(keys).to_string());
            }
        }
        Ok(())
    }

    fn plan(self) -> Result<Plan, Failure> {
        let format = self.format;
        let options = ServeOptions {
            config: self.file,
            assignments: self.assignments,
            lenient: self.lenient_config,
            ..ServeOptions::default()
        };
        let plan = Plan::make(options, std::env::vars_os())?;
        for notice in plan.settings.notices() {
            Remark::warning(notice.code(), notice.to_string()).say(format);
        }
        Ok(plan)
    }
}

fn checked_text(plan: &Plan) -> String {
    let mut lines = vec!["good".to_owned()];
    for (name, value) in plan.meaning() {
        lines.push(format!("  {name:<10} {value}"));
    }
    let without: Vec<(&str, &str)> = plan.settings.without_effect().collect();
    if !without.is_empty() {
        lines.push("without effect here:".to_owned());
    }
    lines.extend(without.iter().map(|(name, why)| format!("  {name}: {why}")));
    lines.join("\n")
}

fn checked_json(plan: &Plan) -> serde_json::Value {
    let mut object = serde_json::Map::new();
    for (name, value) in plan.meaning() {
        object.insert(name.to_owned(), value.into());
    }
    let without = plan.settings.without_effect();
    let without = without.map(|(name, why)| serde_json::json!({"name": name, "why": why}));
    object.insert("without_effect".to_owned(), without.collect());
    object.into()
}

fn text(shown: &Shown) -> String {
    let mut text = format!("{}={}  ({})", shown.name, shown.value, shown.source);
    if let Some(why) = shown.no_effect {
        text += &format!("  no effect: {why}");
    }
    for (value, source) in &shown.shadowed {
        text += &format!("\n  hides {value}  ({source})");
    }
    text
}

fn json(shown: &Shown) -> serde_json::Value {
    let shadowed: Vec<_> = shown
        .shadowed
        .iter()
        .map(|(value, source)| serde_json::json!({"value": value, "source": source}))
        .collect();
    serde_json::json!({
        "name": shown.name,
        "value": shown.value,
        "source": shown.source,
        "shadowed": shadowed,
        "no_effect": shown.no_effect,
    })
}
