//! Peers that do as they please: each costs its connection, and nobody else anything.

use std::time::Duration;

use strandline_console::Scope;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

use crate::{Answer, PATIENCE, Running};

/// Whatever the peer is sent until its connection ends.
async fn until_the_end(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    // A reset is an end too.
    drop(timeout(PATIENCE, stream.read_to_end(&mut bytes)).await.expect("not ended"));
    String::from_utf8_lossy(&bytes).into_owned()
}

#[tokio::test]
async fn garbage_ends_the_connection() {
    let console = Running::start(Scope::Everything, 8).await;
    let mut kafka = Vec::from([0, 0, 0, 20]);
    kafka.extend([0; 20]);
    let tls = [0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3];
    for garbage in [kafka.as_slice(), &tls, b"GET\r\n\r\n", b"\xff\xff\xff\xff\r\n\r\n"] {
        let mut stream = console.connect().await;
        stream.write_all(garbage).await.unwrap();
        let got = until_the_end(&mut stream).await;
        assert!(got.is_empty() || Answer::parsed(&got).code == 400, "{got}");
        assert_eq!(console.get("/livez").await.code, 200);
    }
    console.stop().await;
}

#[tokio::test]
async fn a_head_that_is_too_large_is_refused() {
    let console = Running::start(Scope::Everything, 8).await;
    let long_header = format!("GET /livez HTTP/1.1\r\nx: {}\r\n\r\n", "y".repeat(100_000));
    let long_path = format!("GET /{} HTTP/1.1\r\n\r\n", "y".repeat(100_000));
    let many_headers = format!("GET /livez HTTP/1.1\r\n{}\r\n", "x: y\r\n".repeat(1000));
    for head in [long_header, long_path, many_headers] {
        let mut stream = console.connect().await;
        // The console may hang up before it has all of it.
        drop(stream.write_all(head.as_bytes()).await);
        let got = until_the_end(&mut stream).await;
        assert!(got.is_empty() || [414, 431].contains(&Answer::parsed(&got).code), "{got}");
        assert_eq!(console.get("/livez").await.code, 200);
    }
    console.stop().await;
}

#[tokio::test]
async fn a_body_is_never_waited_for() {
    let console = Running::start(Scope::Everything, 8).await;
    let mut stream = console.connect().await;
    let claim = "POST /metrics HTTP/1.1\r\nhost: x\r\ncontent-length: 1000000000000\r\n\r\n";
    stream.write_all(claim.as_bytes()).await.unwrap();
    let got = until_the_end(&mut stream).await;
    assert_eq!(Answer::parsed(&got).code, 405);
    console.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_full_console_serves_again_when_a_place_is_free() {
    let console = Running::start(Scope::Everything, 2).await;
    let begin = Instant::now();
    let _silent = (console.connect().await, console.connect().await);
    // Connections are taken in order: both places are gone until the silent are hung up on. Time
    // passes by itself while everybody waits.
    assert_eq!(console.get("/livez").await.code, 200);
    assert!(begin.elapsed() >= Duration::from_secs(10), "served beyond the bound");
    console.stop().await;
}

#[tokio::test(start_paused = true)]
async fn a_silent_peer_is_hung_up_on() {
    let console = Running::start(Scope::Everything, 8).await;
    let mut nothing = console.connect().await;
    let mut half = console.connect().await;
    half.write_all(b"GET /livez HTTP/1.1\r\nhost").await.unwrap();
    for stream in [&mut nothing, &mut half] {
        let mut bytes = Vec::new();
        drop(stream.read_to_end(&mut bytes).await);
        let got = String::from_utf8_lossy(&bytes).into_owned();
        assert!(got.is_empty() || Answer::parsed(&got).code == 408, "{got}");
    }
    console.stop().await;
}

#[tokio::test]
async fn a_stop_ends_idle_connections_at_once() {
    let console = Running::start(Scope::Everything, 8).await;
    let mut idle = console.connect().await;
    idle.write_all(b"GET /livez HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
    let mut first = [0; 12];
    idle.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    let address = console.address;
    console.stop().await;
    until_the_end(&mut idle).await;
    assert!(TcpStream::connect(address).await.is_err(), "nobody listens any more");
}
