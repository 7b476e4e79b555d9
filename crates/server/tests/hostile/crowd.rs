//! Many peers at once: silent, slow, or gone without a word.

use std::io::Read;
use std::net::TcpStream;
use std::time::{Duration, Instant};

use strandline_client::{Acks, Client, Config, Producer, ProducerSettings};
use strandline_records::{Codec, NewRecord};
use strandline_wire::ApiKey;

use crate::broker::{Broker, Outcome, PATIENCE, frame, header, outcome, send};

const IDLE_PEERS: u64 = 10_000;

fn api_versions() -> Vec<u8> {
    frame(&header(ApiKey::ApiVersions, 0))
}

#[test]
fn ten_thousand_idle_connections_cost_little() {
    let broker = Broker::start();
    let before = broker.resident_kib();
    let mut streams = Vec::new();
    for _ in 0..IDLE_PEERS {
        let mut stream = broker.connect();
        // Half of them said something once.
        if streams.len() % 2 == 0 {
            send(&mut stream, &api_versions());
        }
        streams.push(stream);
    }
    for stream in streams.iter_mut().step_by(2) {
        assert_eq!(outcome(stream), Outcome::Answered);
    }
    let each_kib = broker.resident_kib().saturating_sub(before) / IDLE_PEERS;
    println!("an idle connection costs about {each_kib} KiB");
    assert!(each_kib <= 16, "{each_kib} KiB for an idle connection");
    // They are connections like any other still.
    let last = streams.last_mut().expect("many");
    send(last, &api_versions());
    assert_eq!(outcome(last), Outcome::Answered);
    drop(streams);
    broker.assert_well();
}

/// Ten thousand peers that sent a part of a frame each hold little, and hold up nobody.
#[test]
fn ten_thousand_half_frames_cost_little() {
    let broker = Broker::start();
    let before = broker.resident_kib();
    let length = (100_i32 << 20).to_be_bytes();
    let mut half = [length.as_slice(), &header(ApiKey::Produce, 9)].concat();
    half.resize(32 * 1024, 1);
    let streams = (0..IDLE_PEERS).map(|_| {
        let mut stream = broker.connect();
        send(&mut stream, &half);
        stream
    });
    let streams = streams.collect::<Vec<_>>();
    let mut last = broker.connect();
    send(&mut last, &api_versions());
    assert_eq!(outcome(&mut last), Outcome::Answered);
    let grown = broker.resident_kib().saturating_sub(before);
    println!("{IDLE_PEERS} half frames cost {} MiB", grown / 1024);
    assert!(grown <= 192 * 1024, "{grown} KiB for half frames");
    drop(streams);
    broker.assert_well();
}

#[test]
fn peers_that_come_and_go_leave_nothing_behind() {
    let broker = Broker::start();
    let mut after_first = 0;
    for round in 0..10 {
        let streams = (0..500).map(|_| {
            let mut stream = broker.connect();
            send(&mut stream, &api_versions());
            stream
        });
        // Closed with an answer on its way: for many peers that is a reset.
        drop(streams.collect::<Vec<_>>());
        if round == 0 {
            after_first = broker.resident_kib();
        }
    }
    let begin = Instant::now();
    while broker.resident_kib() > after_first + 16 * 1024 {
        assert!(begin.elapsed() < PATIENCE, "5000 peers left {} KiB", broker.resident_kib());
        std::thread::yield_now();
    }
    broker.assert_well();
}

/// Fills a topic with `count` times half a megabyte.
pub(crate) fn fill(broker: &Broker, topic: &str, count: usize) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime starts").block_on(async {
        let config = Config::new(&broker.address.to_string()).expect("an address");
        let mut client = Client::connect(config).await.expect("the broker answers");
        let settings = ProducerSettings { acks: Acks::All, idempotent: false, codec: Codec::None };
        let mut producer = Producer::start(&mut client, settings).await.expect("no identity");
        let value = vec![7; 500_000];
        for _ in 0..count {
            let record = NewRecord { value: Some(&value), ..NewRecord::default() };
            producer.send(topic, 0, &[record]).await.expect("it is appended");
        }
    });
}

/// A fetch of everything in `topic`, version 4.
fn fetch(topic: &str) -> Vec<u8> {
    fetch_for(topic, 100, 1)
}

/// As [`fetch`], but for more than there is.
pub(crate) fn fetch_waiting(topic: &str, max_wait_ms: i32) -> Vec<u8> {
    fetch_for(topic, max_wait_ms, i32::MAX)
}

fn fetch_for(topic: &str, max_wait_ms: i32, min_bytes: i32) -> Vec<u8> {
    let mut body = header(ApiKey::Fetch, 4);
    body.extend((-1_i32).to_be_bytes());
    body.extend(max_wait_ms.to_be_bytes());
    body.extend(min_bytes.to_be_bytes());
    body.extend(i32::MAX.to_be_bytes());
    body.push(0);
    body.extend(1_i32.to_be_bytes());
    body.extend(i16::try_from(topic.len()).expect("a short name").to_be_bytes());
    body.extend(topic.as_bytes());
    body.extend(1_i32.to_be_bytes());
    body.extend(0_i32.to_be_bytes());
    body.extend(0_i64.to_be_bytes());
    body.extend(i32::MAX.to_be_bytes());
    frame(&body)
}

/// Two hundred peers ask for 32 MiB a hundred times each. Half of them take nothing of it and are
/// hung up on; the others take a little now and then, and live.
#[test]
fn slow_readers_hold_nothing_and_silent_ones_are_hung_up_on() {
    let broker = Broker::start();
    fill(&broker, "large", 64);
    let requests = fetch("large").repeat(100);
    let before = broker.descriptors();
    let mut streams = (0..200)
        .map(|_| {
            let mut stream = broker.connect();
            send(&mut stream, &requests);
            stream
        })
        .collect::<Vec<TcpStream>>();
    let begin = Instant::now();
    // A few descriptors come and go beside the peers'.
    while broker.descriptors() > before + 110 {
        assert!(begin.elapsed() < PATIENCE, "silent readers keep their connections");
        for stream in streams.iter_mut().step_by(2) {
            take_some(stream);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    for stream in streams.iter_mut().step_by(2) {
        assert_eq!(outcome(stream), Outcome::Answered);
    }
    broker.assert_well();
}

/// Reads at most a megabyte: less makes no room in the window that the peer would tell of.
fn take_some(stream: &mut TcpStream) {
    let mut buf = vec![0; 1 << 20];
    let taken = stream.read(&mut buf).expect("a reader that reads keeps its connection");
    assert!(taken > 0, "a reader that reads keeps its connection");
}
