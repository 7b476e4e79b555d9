//! Peers that shut their side down, or leave, while they are owed something.

use std::io::Read;
use std::net::Shutdown;
use std::time::Instant;

use strandline_wire::ApiKey;

use crate::broker::Outcome;
use crate::broker::{Broker, PATIENCE, frame, header, outcome, send, wait_for_end};
use crate::crowd::{fetch_waiting, fill};

#[test]
fn what_was_asked_before_the_end_is_answered() {
    let broker = Broker::start();
    let requests = [
        frame(&header(ApiKey::ApiVersions, 0)),
        frame(&[header(ApiKey::Metadata, 12), vec![1, 1, 0, 0]].concat()),
        frame(&header(ApiKey::ApiVersions, 0)),
    ];
    for _ in 0..50 {
        let mut stream = broker.connect();
        send(&mut stream, &requests.concat());
        stream.shutdown(Shutdown::Write).expect("it is open");
        let mut answers = Vec::new();
        stream.read_to_end(&mut answers).expect("answers, then the end");
        assert_eq!(count_whole_frames(&answers), requests.len());
    }
    broker.assert_well();
}

/// Answers that are there already do not wait for one that is not.
#[test]
fn a_waiting_fetch_keeps_no_answer_before_it() {
    let broker = Broker::start();
    fill(&broker, "small", 1);
    let mut stream = broker.connect();
    let answered = frame(&header(ApiKey::ApiVersions, 0)).repeat(100);
    send(&mut stream, &[answered, fetch_waiting("small", i32::MAX)].concat());
    let mut answers = Vec::new();
    let mut buf = vec![0; 1 << 16];
    while count_whole_frames(&answers) < 100 {
        let read = stream.read(&mut buf).expect("answers come while the fetch waits");
        assert!(read > 0, "the broker hung up");
        answers.extend(buf.iter().take(read));
    }
    broker.assert_well();
}

fn count_whole_frames(mut bytes: &[u8]) -> usize {
    let mut count = 0;
    while let Some((length, rest)) = bytes.split_first_chunk::<4>() {
        let length = usize::try_from(i32::from_be_bytes(*length)).expect("a length");
        let Some(rest) = rest.get(length..) else { return count };
        bytes = rest;
        count += 1;
    }
    count
}

/// The requests behind the fetch are not read while it waits, and still the end is seen.
#[test]
fn a_waiting_fetch_does_not_outlive_its_peer() {
    let broker = Broker::start();
    fill(&broker, "small", 1);
    let before = broker.descriptors();
    let behind = frame(&header(ApiKey::ApiVersions, 0)).repeat(2000);
    let streams = (0..50).map(|_| {
        let mut stream = broker.connect();
        send(&mut stream, &[fetch_waiting("small", i32::MAX), behind.clone()].concat());
        stream
    });
    let streams = streams.collect::<Vec<_>>();
    let begin = Instant::now();
    // Not all: the connection that filled the topic may have been counted before it was closed.
    while broker.descriptors() < before + 40 {
        assert!(begin.elapsed() < PATIENCE, "they are connected");
        std::thread::yield_now();
    }
    drop(streams);
    while broker.descriptors() > before + 10 {
        assert!(begin.elapsed() < PATIENCE, "fetches outlive their peers");
        std::thread::yield_now();
    }
    broker.assert_well();
}

/// Large requests of an API that answers them without reading them hold nothing once answered.
#[test]
fn an_answered_request_gives_its_memory_back() {
    let broker = Broker::start();
    let mut unknown_version = Vec::new();
    unknown_version.extend(ApiKey::ApiVersions.number().to_be_bytes());
    unknown_version.extend(99_i16.to_be_bytes());
    unknown_version.extend(7_i32.to_be_bytes());
    unknown_version.resize(2 << 20, 0);
    let unknown_version = frame(&unknown_version);
    let streams = (0..100).map(|_| {
        let mut stream = broker.connect();
        send(&mut stream, &unknown_version);
        assert_eq!(outcome(&mut stream), Outcome::Answered);
        stream
    });
    let streams = streams.collect::<Vec<_>>();
    fill(&broker, "after", 1);
    drop(streams);
    broker.assert_well();
}

/// A byte now and then does not keep half of a frame.
#[test]
fn a_trickle_ends() {
    let broker = Broker::start();
    let length = (100_i32 << 20).to_be_bytes();
    let mut half = [length.as_slice(), &header(ApiKey::Produce, 9)].concat();
    half.resize(1 << 20, 1);
    let mut stream = broker.connect();
    send(&mut stream, &half);
    let mut trickle = stream.try_clone().expect("descriptors are left");
    let trickling = std::thread::spawn(move || {
        let begin = Instant::now();
        while std::io::Write::write_all(&mut trickle, &[1]).is_ok() {
            assert!(begin.elapsed() < PATIENCE, "a trickle keeps its connection");
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
    });
    wait_for_end(&mut stream);
    trickling.join().expect("no panic");
    broker.assert_well();
}
