//! Frames that are none, that never end, or that claim what nobody has.

use std::net::TcpStream;
use std::time::Duration;

use strandline_wire::ApiKey;

use crate::broker::{Broker, Outcome, frame, header, outcome, send, wait_for_end};

/// Bytes that look random and are the same in every run.
fn noise(seed: u64, length: usize) -> Vec<u8> {
    let mut word = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = || {
        word = word.rotate_left(9).wrapping_mul(0xd134_2543_de82_ef95).wrapping_add(1);
        word.to_be_bytes()[0]
    };
    std::iter::repeat_with(next).take(length).collect()
}

#[test]
fn what_is_no_kafka_is_hung_up_on() {
    let broker = Broker::start();
    let http = b"GET / HTTP/1.1\r\nhost: localhost:9092\r\n\r\n".to_vec();
    let tls = [&[0x16, 3, 1, 2, 0, 1, 0, 1, 0xfc, 3, 3][..], &noise(1, 500)].concat();
    let ssh = b"SSH-2.0-OpenSSH_9.9\r\n".to_vec();
    let zeros = vec![0; 100];
    let ones = vec![0xff; 100];
    for garbage in [http, tls, ssh, zeros, ones] {
        let mut stream = broker.connect();
        send(&mut stream, &garbage);
        assert_eq!(outcome(&mut stream), Outcome::Closed, "{garbage:?}");
    }
    // Whatever it is taken for, it is an end or an answer, and neither takes long.
    for seed in 0..300 {
        let mut stream = broker.connect();
        send(&mut stream, &frame(&noise(seed, 200)));
        outcome(&mut stream);
    }
    broker.assert_well();
}

#[test]
fn frames_over_the_limit_are_refused_before_they_arrive() {
    let broker = Broker::start();
    let produce = header(ApiKey::Produce, 9);
    let metadata = header(ApiKey::Metadata, 12);
    let over = [
        (i32::MAX, &produce),
        (i32::MAX, &metadata),
        (100 * 1024 * 1024 + 1, &produce),
        (8 * 1024 * 1024 + 1, &metadata),
        (-1, &metadata),
        (i32::MIN, &produce),
        (0, &metadata),
        (7, &metadata),
    ];
    for (length, header) in over {
        let mut stream = broker.connect();
        send(&mut stream, &[&length.to_be_bytes(), header.as_slice()].concat());
        assert_eq!(outcome(&mut stream), Outcome::Closed, "length {length}");
    }
    broker.assert_well();
}

/// A thousand peers claim 100 MiB each and send a few bytes of it.
#[test]
fn a_claimed_size_costs_nothing() {
    let broker = Broker::start();
    let before = broker.resident_kib();
    let length = (100_i32 << 20).to_be_bytes();
    let claim = [length.as_slice(), &header(ApiKey::Produce, 9)].concat();
    let streams = (0..1000).map(|_| {
        let mut stream = broker.connect();
        send(&mut stream, &claim);
        stream
    });
    let streams = streams.collect::<Vec<TcpStream>>();
    // An answer to the last of them shows that the others were read.
    let mut last = broker.connect();
    send(&mut last, &frame(&header(ApiKey::ApiVersions, 0)));
    assert_eq!(outcome(&mut last), Outcome::Answered);
    let grown = broker.resident_kib().saturating_sub(before);
    assert!(grown < 64 * 1024, "{grown} KiB for 1000 claims");
    drop(streams);
    broker.assert_well();
}

/// Peers that really send most of a large frame, and never its end. Together they have twenty times
/// what the broker may hold.
#[test]
fn large_frames_that_never_end_wait_within_the_bound() {
    let broker = Broker::start();
    let address = broker.address;
    let peers = (0..64).map(|seed| {
        std::thread::spawn(move || {
            let mut stream = TcpStream::connect(address).expect("the broker accepts");
            // Past this the broker does not read: it is waiting for room, or hung up.
            stream.set_write_timeout(Some(Duration::from_secs(5))).expect("a timeout can be set");
            let length = (100_i32 << 20).to_be_bytes();
            let mut part = [length.as_slice(), &header(ApiKey::Produce, 9)].concat();
            for _ in 0..80 {
                if std::io::Write::write_all(&mut stream, &part).is_err() {
                    break;
                }
                part = noise(seed, 1 << 20);
            }
            stream
        })
    });
    let peers = peers.collect::<Vec<_>>();
    let streams = peers.into_iter().map(|peer| peer.join().expect("no peer panics"));
    drop(streams.collect::<Vec<_>>());
    broker.assert_well();
}

/// Half a request, then silence: the frame's length, its header, or part of its body.
#[test]
fn half_a_request_is_given_half_a_minute() {
    let broker = Broker::start();
    let whole = frame(&[header(ApiKey::Metadata, 12), vec![1, 0, 0, 0]].concat());
    let mut streams = Vec::new();
    for length in 1..whole.len() {
        let mut stream = broker.connect();
        send(&mut stream, &whole[..length]);
        streams.push(stream);
    }
    for mut stream in streams {
        wait_for_end(&mut stream);
    }
    broker.assert_well();
}
