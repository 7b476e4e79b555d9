//! `strandline topic undelete`.

use clap::Args;

use crate::command::OutputFormat;
use crate::command::deletions::{act, find, pending};
use crate::command::target::Target;
use crate::console;
use crate::failure::Failure;
use crate::http::escaped;

/// Brings a deleted topic back, with its records, settings and the positions of groups.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  strandline topic undelete orders\n  strandline topic undelete \
                  2nQv8sJPTEm1sWmLDt0zSg --as orders-old\n\nThat works until the removal of its \
                  bytes begins, which is not before deletion.grace.ms is over; strandline \
                  deletions list shows what can be brought back. Asks a Strandline broker's HTTP side \
                  (--http-url)."
)]
pub(crate) struct Undelete {
    /// The id of the deleted topic, or its name where that says enough.
    #[arg(value_name = "ID")]
    id: String,
    /// What it is called from now on, where its name is taken.
    #[arg(long = "as", value_name = "NAME")]
    name: Option<String>,
    /// How to print.
    #[arg(long, value_enum, default_value_t)]
    pub(super) format: OutputFormat,
}

impl Undelete {
    pub(super) async fn run(self, target: &Target) -> Result<(), Failure> {
        let all = pending(target).await?;
        let one = find(&all, &self.id)?;
        let id = one["id"].as_str().unwrap_or_default();
        let action = match &self.name {
            Some(name) => format!("undelete?as={}", escaped(name)),
            None => "undelete".to_owned(),
        };
        let undeleted = act(target, Some(id), &action).await.map_err(|failure| {
            if failure.code == "refused" && self.name.is_none() && one["can_undelete"] == true {
                failure.hint(format!("strandline topic undelete {id} --as NAME"))
            } else {
                failure
            }
        })?;
        let name = undeleted["topic"].as_str().unwrap_or_default();
        match self.format {
            OutputFormat::Json => {
                console::line(&serde_json::json!({ "id": id, "name": name }).to_string());
            }
            OutputFormat::Text => console::say(&format!("undeleted {name} (id {id})")),
        }
        Ok(())
    }
}
