//! Connections that do nothing, after one request each.

use std::net::{SocketAddr, TcpStream};

use anyhow::Context;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::setup;

/// Opens `count` connections and asks each for the API versions once.
pub fn open(broker: SocketAddr, count: usize) -> anyhow::Result<Vec<TcpStream>> {
    raise_open_files(count as u64 + 256)?;
    let open = || -> std::io::Result<TcpStream> {
        let mut stream = setup::connect(broker)?;
        setup::ask_api_versions(&mut stream)?;
        Ok(stream)
    };
    (0..count).map(|_| open()).collect::<Result<_, _>>().context("open idle connections")
}

pub(super) fn raise_open_files(need: u64) -> anyhow::Result<()> {
    let now = getrlimit(Resource::Nofile);
    if now.current.is_some_and(|current| current < need) {
        let maximum = now.maximum.map(|maximum| maximum.max(need));
        setrlimit(Resource::Nofile, Rlimit { current: Some(need), maximum })
            .with_context(|| format!("raise the number of open files. need=`{need}`"))?;
    }
    Ok(())
}
