//! The null broker: the least that a Kafka client accepts as a broker, and so the ceiling for one.
//!
//! A thread per connection parses requests, checks each batch's CRC, gives it its offset, appends it
//! to the partition's one file in pieces of 256 KiB, syncs when asked (with everything that other
//! connections wrote meanwhile) and acknowledges. Fetch is `sendfile`. There is no index on disk, no
//! recovery, no limit on anything: never run it for data that matters.

mod ask;
mod commit;
mod connection;
mod log;

use std::io;
use std::net::TcpListener;
use std::path::PathBuf;
use std::sync::Arc;

use self::commit::Committer;
use self::log::Logs;

/// How to run the null broker.
#[derive(Clone, Debug)]
pub struct NullOptions {
    /// Where the partitions' files go.
    pub data: PathBuf,
    /// Partitions of a topic that is created by being named.
    pub partitions: usize,
    /// Whether an acknowledgement waits for `fdatasync`.
    pub sync: bool,
}

#[derive(Debug)]
struct Null {
    logs: Logs,
    committer: Committer,
    sync: bool,
    port: u16,
}

/// Serves `listener` until the process ends.
pub fn serve(listener: &TcpListener, options: NullOptions) -> io::Result<()> {
    let null = Arc::new(Null {
        logs: Logs::new(options.data, options.partitions),
        committer: Committer::default(),
        sync: options.sync,
        port: listener.local_addr()?.port(),
    });
    loop {
        let (stream, _) = listener.accept()?;
        stream.set_nodelay(true)?;
        let null = Arc::clone(&null);
        std::thread::Builder::new().stack_size(256 * 1024).spawn(move || {
            // A client that hangs up in the middle is the normal end of a benchmark.
            connection::serve(&null, &stream).ok();
        })?;
    }
}
