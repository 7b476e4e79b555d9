//! `--storage`: where the brokers of a run keep topics and metadata.
//!
//! With `postgres` a run starts one server, and each broker has a schema of its own there: `launch` makes its name.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, bail, ensure};

use crate::ci::{Context, provision};

/// The script that starts a server and holds it.
const SERVER: &str = "tests/peers/postgres/postgres";
/// What tells `launch` of it.
const VARIABLE: &str = "CONFORMANCE_POSTGRES";

/// Where topics and metadata are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Storage {
    /// In the folder of each broker.
    #[default]
    File,
    /// In a PostgreSQL server of the run's own.
    Postgres,
}

impl Storage {
    /// The storage of that name.
    pub(super) fn named(name: &str) -> anyhow::Result<Self> {
        Ok(match name {
            "file" => Self::File,
            "postgres" => Self::Postgres,
            _ => bail!("--storage is `file` or `postgres`, not `{name}`"),
        })
    }

    /// The folder below `target/conformance` for what a run leaves.
    pub(super) fn folder(self) -> &'static str {
        match self {
            Self::File => ".",
            Self::Postgres => "postgres",
        }
    }
}

/// A storage that is ready for brokers.
#[derive(Debug)]
pub(super) struct Store {
    server: Option<Server>,
}

#[derive(Debug)]
struct Server {
    holder: Child,
    /// Port and password file, as the script prints them.
    address: String,
}

impl Store {
    /// Starts what the storage needs; a server's log goes into `folder`.
    pub(super) fn start(
        context: &Context,
        storage: Storage,
        folder: &Path,
    ) -> anyhow::Result<Self> {
        let server = match storage {
            Storage::File => None,
            Storage::Postgres => {
                provision::postgres(context)?;
                Some(Server::start(context.root(), folder)?)
            }
        };
        Ok(Self { server })
    }

    /// What `launch` must find in its environment, by name and value.
    pub(super) fn variables(&self) -> Option<(&'static str, &str)> {
        self.server.as_ref().map(|server| (VARIABLE, server.address.as_str()))
    }
}

impl Server {
    fn start(root: &Path, folder: &Path) -> anyhow::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").context("find a free port")?;
        let port = listener.local_addr().context("find a free port")?.port();
        drop(listener);
        std::fs::create_dir_all(folder).with_context(|| format!("make {}", folder.display()))?;
        let path = folder.join("postgres.log");
        let log =
            std::fs::File::create(&path).with_context(|| format!("make {}", path.display()))?;
        let mut holder = Command::new(root.join(SERVER))
            .args(["hold", &port.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()
            .context("start PostgreSQL")?;
        let out = holder.stdout.take().expect("it is piped");
        let mut address = String::new();
        let read = BufReader::new(out).read_line(&mut address);
        let server = Self { holder, address: address.trim().to_owned() };
        read.context("read where PostgreSQL is")?;
        ensure!(!server.address.is_empty(), "PostgreSQL did not start, see {}", path.display());
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The script stops its server when its input ends.
        drop(self.holder.stdin.take());
        let _ended = self.holder.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_storage_has_a_name_and_others_are_refused() {
        assert_eq!(Storage::named("file").unwrap(), Storage::default());
        assert_eq!(Storage::named("postgres").unwrap(), Storage::Postgres);
        assert!(Storage::named("tape").unwrap_err().to_string().contains("tape"));
    }
}
