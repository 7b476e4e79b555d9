//! Who holds a port: the process behind "address already in use".
//!
//! Linux tells which socket listens on a port (`/proc/net/tcp`) and which process has the socket
//! open (`/proc/PID/fd`), the latter only for one's own processes. What can't be found is left out.

use std::fs;

/// A process that listens on a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Owner {
    /// Its id.
    pub(crate) pid: u32,
    /// Its name.
    pub(crate) name: String,
}

/// The process that listens on `port`, if it can be found.
pub(crate) fn owner_of(port: u16) -> Option<Owner> {
    let sockets: Vec<u64> = ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .filter_map(|table| fs::read_to_string(table).ok())
        .flat_map(|table| listening_inodes(&table, port))
        .collect();
    if sockets.is_empty() {
        return None;
    }
    let names: Vec<String> = sockets.iter().map(|inode| format!("socket:[{inode}]")).collect();
    fs::read_dir("/proc").ok()?.flatten().find_map(|entry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        let descriptors = fs::read_dir(entry.path().join("fd")).ok()?;
        let owns = descriptors.flatten().any(|descriptor| {
            fs::read_link(descriptor.path())
                .is_ok_and(|target| names.iter().any(|name| target.as_os_str() == name.as_str()))
        });
        let name = fs::read_to_string(entry.path().join("comm")).unwrap_or_default();
        owns.then(|| Owner { pid, name: name.trim_end().to_owned() })
    })
}

/// The inodes of the sockets that listen on `port`, from a table of Linux's.
fn listening_inodes(table: &str, port: u16) -> Vec<u64> {
    const LISTEN: &str = "0A";
    let inode = |line: &str| {
        let mut columns = line.split_ascii_whitespace();
        let local = columns.nth(1)?;
        let state = columns.nth(1)?;
        let inode = columns.nth(5)?;
        let (_, local_port) = local.rsplit_once(':')?;
        let is_ours = u16::from_str_radix(local_port, 16).ok()? == port && state == LISTEN;
        is_ours.then(|| inode.parse().ok())?
    };
    table.lines().skip(1).filter_map(inode).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listening_sockets_are_found_in_the_table() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   \
                     uid  timeout inode\n   \
                     0: 0100007F:2384 00000000:0000 0A 00000000:00000000 00:00000000 00000000  \
                     1000        0 4711 1 0000000000000000 100 0 0 10 0\n   \
                     1: 0100007F:2384 0100007F:9999 01 00000000:00000000 00:00000000 00000000  \
                     1000        0 4712 1 0000000000000000 100 0 0 10 0\n   \
                     2: garbage\n";
        assert_eq!(listening_inodes(table, 9092), [4711]);
        assert_eq!(listening_inodes(table, 9093), [] as [u64; 0]);
    }

    #[test]
    fn our_own_listener_is_found() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("bound").port();
        assert_eq!(owner_of(port).map(|owner| owner.pid), Some(std::process::id()));
    }
}
