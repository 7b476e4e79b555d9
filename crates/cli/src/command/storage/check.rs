//! `strandline storage check`.

use clap::Args;

use crate::check::{self, Purpose};
use crate::command::OutputFormat;
use crate::console;
use crate::failure::Failure;
use crate::remark::Remark;
use crate::serve::{Plan, ServeOptions};

/// Says what is right and wrong with the storage that a broker with these settings would use: the
/// folder's rights, room and content; the database's connection, TLS, login, rights, version, settings
/// and schema. Changes nothing.
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  strandline storage check --data /var/lib/strandline\n  \
                        strandline storage check --config server.properties --format json\n  \
                        strandline storage check -c postgres.host=db.example.org -c \
                        storage.default=postgres -c meta.store=postgres\n\nSettings are read as \
                        serve reads them: file, environment, -c. Ends with 4 when a start would \
                        fail or not keep what it promises, with 3 when nobody answers; a warning \
                        ends with 0.")]
pub(crate) struct Check {
    /// The data folder [default: data.dir, else ./strandline-data].
    #[arg(long, value_name = "DIR")]
    data: Option<String>,
    /// A file of Kafka's server.properties form.
    #[arg(long, value_name = "FILE")]
    config: Option<String>,
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
    pub(super) async fn run(self) -> Result<(), Failure> {
        let format = self.format;
        let options = ServeOptions {
            data: self.data,
            config: self.config,
            assignments: self.assignments,
            lenient: self.lenient_config,
            ..ServeOptions::default()
        };
        let plan = Plan::make(options, std::env::vars_os())?;
        for notice in plan.settings.notices() {
            Remark::warning(notice.code(), notice.to_string()).say(format);
        }
        let checks = check::storage(&plan, Purpose::Look).await;
        match format {
            OutputFormat::Json => console::line(&check::json_of(&checks).to_string()),
            OutputFormat::Text => console::data(check::table(&checks).render().as_bytes()),
        }
        check::outcome(&checks)
    }
}
