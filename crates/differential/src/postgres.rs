//! A PostgreSQL server for as long as this program runs.

use std::io::{BufRead as _, BufReader};
use std::net::TcpListener;
use std::process::{Child, Command, Stdio};

use anyhow::Context;

use crate::peer::root;

/// A server that `tests/peers/postgres/postgres` holds: it ends when its input does.
#[derive(Debug)]
pub(crate) struct Postgres {
    holder: Child,
    port: String,
    password_file: String,
}

impl Postgres {
    /// Starts one in a fresh folder, on a free port.
    pub(crate) fn start() -> anyhow::Result<Self> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut holder = Command::new(root().join("tests/peers/postgres/postgres"))
            .args(["hold", &port.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("start PostgreSQL")?;
        let out = holder.stdout.take().expect("it is piped");
        let mut server = Self { holder, port: String::new(), password_file: String::new() };
        let mut line = String::new();
        BufReader::new(out).read_line(&mut line).context("read where PostgreSQL is")?;
        let found = line.trim().split_once(' ');
        let (port, file) =
            found.context("PostgreSQL did not start: `apt-get install postgresql`")?;
        (server.port, server.password_file) = (port.to_owned(), file.to_owned());
        Ok(server)
    }

    /// A broker's, for everything in this server.
    pub(crate) fn properties(&self) -> [String; 6] {
        [
            "storage.default=postgres".to_owned(),
            "meta.store=postgres".to_owned(),
            "postgres.host=127.0.0.1".to_owned(),
            format!("postgres.port={}", self.port),
            "postgres.database=postgres".to_owned(),
            format!("postgres.password.file={}", self.password_file),
        ]
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        drop(self.holder.stdin.take());
        // It stops its server first; however that went, nothing else can be done here.
        drop(self.holder.wait());
    }
}
