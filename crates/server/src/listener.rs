//! Binding Kafka's port.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};

use socket2::{Domain, Protocol, Socket, Type};

/// The sockets that one `HOST:PORT` was bound to.
#[derive(Debug)]
pub struct Bound {
    listeners: Vec<TcpListener>,
    port: u16,
}

/// A port that could not be bound.
#[derive(Debug, thiserror::Error)]
#[error("cannot listen on {host}:{port}")]
pub struct BindError {
    /// The host as it was given.
    pub host: String,
    /// The port as it was given.
    pub port: u16,
    /// Why.
    #[source]
    pub error: io::Error,
}

impl Bound {
    /// The port, also when 0 was asked for.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The addresses, for people and for the ports file.
    pub fn addresses(&self) -> io::Result<Vec<SocketAddr>> {
        self.listeners.iter().map(TcpListener::local_addr).collect()
    }

    /// The sockets, for whoever serves them.
    pub fn into_listeners(self) -> Vec<TcpListener> {
        self.listeners
    }
}

/// Listens on `host:port`; port 0 picks a free one.
///
/// `localhost` means both loopback addresses on the same port (IPv6's only where there is one), an
/// empty host every address.
pub fn bind(host: &str, port: u16, backlog: u32) -> Result<Bound, BindError> {
    let failed = |error| BindError { host: host.to_owned(), port, error };
    let (first, second) = addresses(host).map_err(failed)?;
    // A free port of one address may be taken on the other: try others then.
    for _ in 0..16 {
        let listener = listen(SocketAddr::new(first, port), backlog).map_err(failed)?;
        let bound_port = listener.local_addr().map_err(failed)?.port();
        let Some(second) = second else {
            return Ok(Bound { listeners: vec![listener], port: bound_port });
        };
        match listen(SocketAddr::new(second, bound_port), backlog) {
            Ok(other) => {
                return Ok(Bound { listeners: vec![listener, other], port: bound_port });
            }
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && port == 0 => {}
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => return Err(failed(error)),
            // No IPv6 here.
            Err(_) => return Ok(Bound { listeners: vec![listener], port: bound_port }),
        }
    }
    Err(failed(io::ErrorKind::AddrInUse.into()))
}

fn addresses(host: &str) -> io::Result<(IpAddr, Option<IpAddr>)> {
    if host.is_empty() {
        return Ok((Ipv4Addr::UNSPECIFIED.into(), Some(Ipv6Addr::UNSPECIFIED.into())));
    }
    if host.eq_ignore_ascii_case("localhost") {
        return Ok((Ipv4Addr::LOCALHOST.into(), Some(Ipv6Addr::LOCALHOST.into())));
    }
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(ip) = bare.parse() {
        return Ok((ip, None));
    }
    let mut found = std::net::ToSocketAddrs::to_socket_addrs(&(host, 0))?;
    let first = found.next().ok_or(io::ErrorKind::NotFound)?;
    Ok((first.ip(), None))
}

fn listen(address: SocketAddr, backlog: u32) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        // IPv4 has a socket of its own.
        socket.set_only_v6(true)?;
    }
    socket.bind(&address.into())?;
    socket.listen(i32::try_from(backlog).unwrap_or(i32::MAX))?;
    socket.set_nonblocking(true)?;
    Ok(socket.into())
}
