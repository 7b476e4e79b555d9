//! What `serve` is to start, worked out before anything is touched.
//!
//! Reading the file is the only I/O here; everything else is a pure function of the command line,
//! the file and the environment, and tested as one.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use strandline_model::config::{BrokerConfig, BrokerLayers, Listener, StorageEngine};

use super::{FeatureSpec, TopicSpec};
use crate::failure::{Exit, Failure};
use crate::settings::{Diagnostic, FlagSetting, Settings, SourceFile, Sources};

/// The folder when none is named.
const DEFAULT_FOLDER: &str = "./strandline-data";
const KAFKA_PORT: u16 = 9092;
const HTTP_PORT: u16 = 9644;

/// What was asked for on the command line.
#[derive(Clone, Debug, Default)]
pub(crate) struct ServeOptions {
    /// `--data`.
    pub(crate) data: Option<String>,
    /// `--ephemeral`.
    pub(crate) ephemeral: bool,
    /// `--config`.
    pub(crate) config: Option<String>,
    /// `-c`.
    pub(crate) assignments: Vec<String>,
    /// `--lenient-config`.
    pub(crate) lenient: bool,
    /// `--bind`.
    pub(crate) bind: Option<String>,
    /// `--port`.
    pub(crate) port: Option<u16>,
    /// `--http`.
    pub(crate) http: Option<u16>,
    /// `--topic`.
    pub(crate) topics: Vec<TopicSpec>,
    /// `--feature`.
    pub(crate) features: Vec<FeatureSpec>,
    /// `--ports-file`.
    pub(crate) ports_file: Option<String>,
    /// `--exit-with-parent`.
    pub(crate) exit_with_parent: bool,
    /// How often `-v` was given.
    pub(crate) verbosity: u8,
}

/// Where records and metadata are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Storage {
    /// In this folder.
    Folder(PathBuf),
    /// In memory alone.
    Memory,
    /// Nothing in a folder, and not all in memory: in this database.
    Database(String),
}

impl fmt::Display for Storage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Folder(folder) => folder.display().fmt(f),
            Self::Memory => f.write_str("memory, gone when the broker stops"),
            Self::Database(place) => f.write_str(place),
        }
    }
}

/// What to start.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// All settings with their origins.
    pub(crate) settings: Settings,
    /// The broker's configuration.
    pub(crate) config: BrokerConfig,
    /// Where everything is kept.
    pub(crate) storage: Storage,
    /// Topics to have.
    pub(crate) topics: Vec<TopicSpec>,
    /// Levels of features in a folder that has none for them yet.
    pub(crate) features: Vec<FeatureSpec>,
    /// Where to write the ports that were taken.
    pub(crate) ports_file: Option<PathBuf>,
    /// Whether to stop with the process that started us.
    pub(crate) exit_with_parent: bool,
    /// How often `-v` was given.
    pub(crate) verbosity: u8,
}

impl Plan {
    /// Works out what to start; reads the properties file.
    pub(crate) fn make(
        options: ServeOptions,
        environment: impl Iterator<Item = (OsString, OsString)>,
    ) -> Result<Self, Failure> {
        let file = options.config.as_deref().map(read).transpose()?;
        // Keys and values are text; a variable that is not can be no setting of ours.
        let environment = environment
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .collect();
        Self::from_sources(options, file, environment)
    }

    fn from_sources(
        options: ServeOptions,
        file: Option<SourceFile>,
        environment: Vec<(String, String)>,
    ) -> Result<Self, Failure> {
        let mut sources = Sources {
            file,
            environment,
            assignments: options.assignments.clone(),
            flags: Vec::new(),
            lenient: options.lenient,
        };
        let before_flags = Settings::load(&sources).map_err(faulty)?;
        sources.flags = flags(&options, &before_flags)?;
        let settings = Settings::load(&sources).map_err(faulty)?;
        let config = settings.broker_config().map_err(|fault| faulty(vec![*fault]))?;
        let storage = where_kept(&config);
        Ok(Self {
            settings,
            config,
            storage,
            topics: options.topics,
            features: options.features,
            ports_file: options.ports_file.map(PathBuf::from),
            exit_with_parent: options.exit_with_parent,
            verbosity: options.verbosity,
        })
    }

    /// The settings as a broker's layers.
    pub(crate) fn layers(&self) -> BrokerLayers {
        self.settings.layers()
    }

    /// The data folder, when something is kept in one.
    pub(crate) fn folder(&self) -> Option<&Path> {
        match &self.storage {
            Storage::Folder(folder) => Some(folder),
            Storage::Memory | Storage::Database(_) => None,
        }
    }

    /// Whether others than this machine may reach Kafka's port.
    pub(crate) fn is_open_to_others(&self) -> bool {
        self.config.listeners.iter().any(|listener| !is_loopback(listener))
    }
}

fn where_kept(config: &BrokerConfig) -> Storage {
    match (config.storage_default, config.meta_store) {
        (StorageEngine::Memory, StorageEngine::Memory) => Storage::Memory,
        (StorageEngine::File, _) | (_, StorageEngine::File) => {
            let folder = config.data_dir.as_deref().unwrap_or(DEFAULT_FOLDER);
            Storage::Folder(PathBuf::from(folder))
        }
        (StorageEngine::Postgres, StorageEngine::Memory | StorageEngine::Postgres)
        | (StorageEngine::Memory, StorageEngine::Postgres) => {
            let place = config
                .postgres
                .as_ref()
                .map(|place| format!("postgres {}:{}/{}", place.host, place.port, place.database));
            Storage::Database(place.expect("the configuration names it"))
        }
    }
}

/// Whether only this machine reaches the listener.
pub(crate) fn is_loopback(listener: &Listener) -> bool {
    match listener.host.as_deref() {
        None => false,
        Some("localhost") => true,
        Some(host) => host.parse::<std::net::IpAddr>().is_ok_and(|ip| ip.is_loopback()),
    }
}

fn read(path: &str) -> Result<SourceFile, Failure> {
    match std::fs::read(path) {
        Ok(bytes) => {
            // Java reads these files as Latin-1; what matters in them is ASCII in both.
            let contents = String::from_utf8_lossy(&bytes).into_owned();
            Ok(SourceFile { path: path.to_owned(), contents })
        }
        Err(error) => Err(Failure::new(
            Exit::Usage,
            "config_unreadable",
            format!("cannot read {path}: {error}"),
        )),
    }
}

fn faulty(faults: Vec<Diagnostic>) -> Failure {
    let texts: Vec<String> = faults.iter().map(ToString::to_string).collect();
    Failure::new(Exit::Usage, "config", texts.join("\nerror: "))
}

/// The settings that flags mean. `--port` and `--bind` change the one listener that there is.
fn flags(options: &ServeOptions, before: &Settings) -> Result<Vec<FlagSetting>, Failure> {
    let mut flags = Vec::new();
    let mut set = |flag, name, text: &str| {
        flags.push(FlagSetting { flag, name, text: text.to_owned() });
    };
    if let Some(folder) = &options.data {
        set("--data", "data.dir", folder);
    }
    if options.ephemeral {
        set("--ephemeral", "storage.default", "memory");
        set("--ephemeral", "meta.store", "memory");
    }
    let flag = if options.bind.is_some() { "--bind" } else { "--port" };
    if options.bind.is_some() || options.port.is_some() {
        let kafka = configured(before, "listeners", "PLAINTEXT", KAFKA_PORT)
            .ok_or_else(|| ambiguous(flag, "listeners"))?;
        set(flag, "listeners", &moved(kafka, options.bind.as_deref(), options.port));
    }
    let http_is_set = !before.of("http.listeners").is_empty();
    if options.http.is_some() || (options.bind.is_some() && !http_is_set) {
        let flag = if options.http.is_some() { "--http" } else { "--bind" };
        let http = configured(before, "http.listeners", "HTTP", HTTP_PORT)
            .ok_or_else(|| ambiguous(flag, "http.listeners"))?;
        let bind = options.bind.as_deref().filter(|_| !http_is_set);
        set(flag, "http.listeners", &moved(http, bind, options.http));
    }
    Ok(flags)
}

/// The one listener that is set or the default one; `None` when several are set or none can be read.
fn configured(before: &Settings, name: &str, scheme: &str, port: u16) -> Option<Listener> {
    let Some(setting) = before.of(name).last() else {
        let host = Some("localhost".to_owned());
        return Some(Listener { name: scheme.to_owned(), host, port });
    };
    let controllers = before.of("controller.listener.names").last();
    let controllers = controllers.map(|setting| setting.value.to_string()).unwrap_or_default();
    let text = setting.value.to_string();
    let mut listeners = text.split(',').map(Listener::parse).filter(|parsed| {
        let is_controller = |listener: &Listener| {
            controllers.split(',').any(|name| name.eq_ignore_ascii_case(&listener.name))
        };
        !parsed.as_ref().is_ok_and(is_controller)
    });
    match (listeners.next(), listeners.next()) {
        (Some(Ok(listener)), None) => Some(listener),
        _ => None,
    }
}

fn moved(listener: Listener, bind: Option<&str>, port: Option<u16>) -> String {
    let host = match bind {
        // An address in brackets or not: people write both.
        Some(bind) => Some(bind.trim_start_matches('[').trim_end_matches(']').to_owned()),
        None => listener.host,
    };
    Listener { name: listener.name, host, port: port.unwrap_or(listener.port) }.to_string()
}

fn ambiguous(flag: &str, name: &str) -> Failure {
    Failure::usage(format!("{flag} needs one listener to change, and {name} has not exactly one"))
        .hint(format!("set {name} itself: -c {name}=…"))
}

#[cfg(test)]
#[path = "plan_tests.rs"]
mod tests;
