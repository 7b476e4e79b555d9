//! Opens the engines that a plan asks for. The only place that knows them by name.

use std::io;
use std::path::Path;
use std::sync::Arc;

use strandline_broker::{Engines, Strangers, first_memory_offset};
use strandline_engine_file::disk::RealDisk;
use strandline_engine_file::{FileEngine, FileEngineConfig, OpenError};
use strandline_engine_postgres::PostgresEngine;
use strandline_model::ByteCount;
use strandline_model::config::{FsyncPolicy, StorageEngine};
use strandline_storage::{
    Durability, LogStore, MemoryEngine, MemoryOptions, MetaStore, StorageError,
};

use super::opening::Opening;
use super::plan::{Plan, Storage};
use super::postgres;
use super::run::chain;
use crate::console;
use crate::failure::{Exit, Failure};

/// What the memory engine may hold. Appends are refused beyond it.
const MEMORY_CAPACITY: ByteCount = ByteCount::gib(1);

/// The engines, and where metadata is kept.
#[derive(Debug)]
pub(crate) struct Opened {
    /// The log stores by name.
    pub(crate) engines: Engines,
    /// The metadata store.
    pub(crate) meta: Arc<dyn MetaStore>,
    /// What the start found, in one line.
    pub(crate) report: Option<String>,
}

/// Opens the engines.
pub(crate) async fn open(plan: &Plan, opening: &Opening) -> Result<Opened, Failure> {
    let options = MemoryOptions::with_capacity(MEMORY_CAPACITY);
    let memory = Arc::new(MemoryEngine::new(options, |task| {
        tokio::spawn(task);
    }));
    let memory_logs: Arc<dyn LogStore> = Arc::<MemoryEngine>::clone(&memory);
    let mut engines = Engines::new(StorageEngine::Memory.name(), memory_logs);
    let mut meta: Arc<dyn MetaStore> = Arc::<MemoryEngine>::clone(&memory);
    let mut reports = Vec::new();
    let store = plan.config.meta_store;
    if let Storage::Folder(folder) = &plan.storage {
        let (file, report) = open_file(folder, plan, opening).await?;
        let logs: Arc<dyn LogStore> = Arc::<FileEngine>::clone(&file);
        // Topics that are forgotten at each stop must not make strangers of the logs on disk.
        let strangers = match store {
            StorageEngine::File | StorageEngine::Postgres => Strangers::Quarantine,
            StorageEngine::Memory => Strangers::Report,
        };
        engines = engines.and_with(StorageEngine::File.name(), logs, strangers);
        if store == StorageEngine::File {
            meta = file;
        }
        reports.push(report);
    }
    if let Some(place) = &plan.config.postgres {
        let postgres = postgres::open(place, opening).await?;
        let logs: Arc<dyn LogStore> = Arc::<PostgresEngine>::clone(&postgres);
        // What others keep in the same database is none of a folder's business.
        let strangers = match store {
            StorageEngine::Postgres => Strangers::Quarantine,
            StorageEngine::File | StorageEngine::Memory => Strangers::Report,
        };
        engines = engines.and_with(StorageEngine::Postgres.name(), logs, strangers);
        if store == StorageEngine::Postgres {
            meta = postgres;
        }
        reports.push(format!("PostgreSQL answers, schema {}", place.schema));
    }
    if store != StorageEngine::Memory {
        let first = first_memory_offset(&*meta)
            .await
            .map_err(|error| Failure::new(Exit::Failed, "metadata", chain(&error)))?;
        memory.begin_logs_at(first);
    }
    let report = (!reports.is_empty()).then(|| reports.join("; "));
    Ok(Opened { engines, meta, report })
}

async fn open_file(
    folder: &Path,
    plan: &Plan,
    opening: &Opening,
) -> Result<(Arc<FileEngine>, String), Failure> {
    let config = FileEngineConfig {
        metadata: durability(plan.config.storage_file_fsync),
        progress: opening.folder(),
        ..FileEngineConfig::production(Arc::new(end_process))
    };
    let root = folder.to_owned();
    // Recovery blocks, and HTTP must be able to say that it is under way.
    let opened = tokio::task::spawn_blocking(move || open_folder(&root, config)).await;
    let opened = opened.expect("opening a folder never panics, and nobody cancels it");
    opened.map_err(|error| cannot_open(folder, &error))
}

fn open_folder(
    root: &Path,
    config: FileEngineConfig,
) -> Result<(Arc<FileEngine>, String), OpenError> {
    let disk =
        RealDisk::open(root).map_err(|source| OpenError::Io { what: "make the folder", source })?;
    // A volume that can't tell is large.
    let total = disk.total_space().unwrap_or(ByteCount::new(u64::MAX));
    let (engine, report) = FileEngine::open(Arc::new(disk), config.fitted_to(total))?;
    Ok((engine, report.to_string()))
}

/// What an acknowledgement waits for, in the engine's words.
const fn durability(policy: FsyncPolicy) -> Durability {
    match policy {
        FsyncPolicy::Commit => Durability::Commit,
        FsyncPolicy::Interval(span) => Durability::Interval(span),
        FsyncPolicy::Never => Durability::Never,
    }
}

/// The journal can't be written any more: nothing can be acknowledged, and only a start on a disk
/// that works makes it better.
fn end_process(error: &StorageError) {
    tracing::error!(error = chain(error), "the journal can't be written; the broker ends");
    console::say(&format!("error: the journal can't be written: {}", chain(error)));
    std::process::exit(1);
}

pub(crate) fn cannot_open(folder: &Path, error: &OpenError) -> Failure {
    let at = folder.display();
    let fail = |code, why: String| Failure::new(Exit::Failed, code, format!("{at}: {why}"));
    match error {
        OpenError::InUse { .. } => fail("folder_in_use", error.to_string())
            .hint("stop that process, or take another folder: strandline serve --data DIR"),
        OpenError::Newer { .. } => fail("folder_newer", error.to_string()),
        OpenError::Damaged { .. } => fail("folder_damaged", error.to_string())
            .hint("bring it back from a backup, or keep it and start with another folder"),
        OpenError::Io { source, .. } if source.kind() == io::ErrorKind::PermissionDenied => {
            fail("folder_not_writable", "the data folder is not writable".to_owned())
                .hint("change its owner, or take another folder: strandline serve --data DIR")
        }
        OpenError::Io { source, .. }
            if matches!(
                source.kind(),
                io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists
            ) =>
        {
            fail("folder_is_a_file", "there is a file where the data folder should be".to_owned())
                .hint("take another folder: strandline serve --data DIR")
        }
        // The text names its cause.
        OpenError::Io { .. } => fail("folder", error.to_string()),
        OpenError::Storage(_) => fail("folder", chain(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opened_twice(folder: &Path) -> Failure {
        let config = || FileEngineConfig::production(Arc::new(|_| {}));
        let _first = open_folder(folder, config()).expect("an empty folder");
        let second = open_folder(folder, config()).expect_err("locked");
        cannot_open(folder, &second)
    }

    #[test]
    fn a_folder_in_use_names_the_process() {
        let folder = tempfile::tempdir().expect("a folder");
        let failure = opened_twice(folder.path());
        let us = format!("data folder is in use by process {}", std::process::id());
        assert!(failure.message.ends_with(&us), "{failure}");
        assert_eq!(failure.code, "folder_in_use");
    }

    #[test]
    fn a_file_in_the_folders_place_is_told_as_one() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let folder = file.path().join("data");
        let config = || FileEngineConfig::production(Arc::new(|_| {}));
        for folder in [folder.as_path(), file.path()] {
            let error = open_folder(folder, config()).expect_err("there is a file");
            let failure = cannot_open(folder, &error);
            assert_eq!(failure.code, "folder_is_a_file", "{failure}");
        }
    }
}
