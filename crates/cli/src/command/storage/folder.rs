//! A data folder that is looked at while nobody serves it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use strandline_broker::{LoadError, Look};
use strandline_engine_file::disk::{ReadOnlyDisk, RealDisk};
use strandline_engine_file::{FileEngine, FileEngineConfig, Inspection, OpenError};
use strandline_model::PartitionId;
use strandline_model::config::StorageEngine;
use strandline_storage::StorageError;

use crate::command::OutputFormat;
use crate::console;
use crate::failure::{Exit, Failure};
use crate::serve::{cannot_open, chain};

/// Which folder.
#[derive(Debug, Args)]
pub(super) struct Folder {
    /// The data folder.
    #[arg(long, value_name = "DIR", default_value = "./strandline-data")]
    data: PathBuf,
}

/// What is in a folder, and what metadata says of it.
pub(super) struct Seen {
    pub(super) inspection: Inspection,
    pub(super) look: Look,
}

impl Folder {
    pub(super) fn path(&self) -> &Path {
        &self.data
    }

    /// Reads snapshot and journal; changes nothing. `Err` holds what is wrong with all of the folder.
    pub(super) async fn look(&self) -> Result<Result<Seen, String>, Failure> {
        let disk = ReadOnlyDisk::open(&self.data).map_err(|error| {
            let message = format!("cannot read {}: {error}", self.data.display());
            Failure::new(Exit::Failed, "folder", message)
                .hint("the folder that the broker was started with: --data DIR")
        })?;
        let inspection = match Inspection::open(Arc::new(disk)) {
            Ok(inspection) => inspection,
            Err(OpenError::Damaged { what }) => return Ok(Err(what)),
            Err(error) => return Err(self.cannot_open(&error)),
        };
        let listed = inspection.list().map_err(|error| self.unreadable(&error))?;
        let (quarantined, lost) = (inspection.quarantined(), inspection.lost());
        let engine = StorageEngine::File.name();
        let look = Look::of(engine, listed, quarantined, lost, &inspection).await;
        let look = look.map_err(|error| self.no_metadata(&error))?;
        Ok(Ok(Seen { inspection, look }))
    }

    /// Opens it as a start does, which brings back what a crash left.
    pub(super) fn open(&self, format: OutputFormat) -> Result<Arc<FileEngine>, Failure> {
        let disk = RealDisk::open(&self.data)
            .map_err(|source| OpenError::Io { what: "open the folder", source });
        let config = FileEngineConfig::production(Arc::new(move |error| {
            let message = format!("the journal can't be written: {error}");
            let failure = Failure::new(Exit::Failed, "journal_not_written", message);
            console::say(&failure.shown(format));
        }));
        let opened = disk.and_then(|disk| FileEngine::open(Arc::new(disk), config));
        let (engine, _) = opened.map_err(|error| self.cannot_open(&error))?;
        Ok(engine)
    }

    /// Why it is not opened.
    pub(super) fn cannot_open(&self, error: &OpenError) -> Failure {
        if let OpenError::InUse { .. } = error {
            let message = format!("{}: {error}", self.data.display());
            return Failure::new(Exit::Failed, "folder_in_use", message)
                .hint("this is for a broker that is stopped; a running one tells what it found itself: GET /v1/storage");
        }
        cannot_open(&self.data, error)
    }

    pub(super) fn unreadable(&self, error: &StorageError) -> Failure {
        let message = format!("{}: {}", self.data.display(), chain(error));
        Failure::new(Exit::Failed, "folder", message)
    }

    pub(super) fn no_metadata(&self, error: &LoadError) -> Failure {
        let message = format!("{}: {}", self.data.display(), chain(error));
        Failure::new(Exit::Failed, "metadata", message)
            .hint("nothing is known of any log while its topics can't be read")
    }
}

/// `orders-0`; the id stands for a topic without a name.
pub(super) fn shown(look: &Look, id: PartitionId) -> String {
    match look.metadata.name_of(id.topic_id) {
        Some(name) => format!("{name}-{}", id.index),
        None => id.to_string(),
    }
}
