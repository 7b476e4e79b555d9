//! Bytes that are no requests: answered, or the connection is closed, as Kafka does.

use strandline_wire::{ApiKey, served};

use super::versions;
use crate::broker::SILENCE;
use crate::run::Run;

pub(super) fn run(run: &mut Run) -> anyhow::Result<()> {
    frames(run)?;
    for row in served() {
        bodies(run, row.key);
    }
    Ok(())
}

/// A frame of a header with client id `c` and a body.
fn frame(key: i16, version: i16, rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    body.extend_from_slice(&key.to_be_bytes());
    body.extend_from_slice(&version.to_be_bytes());
    body.extend_from_slice(&1_i32.to_be_bytes());
    body.extend_from_slice(rest);
    let length = i32::try_from(body.len()).expect("short");
    [&length.to_be_bytes()[..], &body].concat()
}

fn frames(run: &mut Run) -> anyhow::Result<()> {
    let client = [0, 1, b'c'];
    let long = [&[0x7f, 0xff][..], &[b'c'; 100]].concat();
    let cases: Vec<(&str, Vec<u8>)> = vec![
        ("a length of -1", vec![0xff; 4]),
        ("a length of zero", vec![0; 4]),
        ("a length of one byte", vec![0, 0, 0, 1, 0]),
        ("a length of four bytes", vec![0, 0, 0, 4, 0, 3, 0, 0]),
        ("a length of seven bytes", vec![0, 0, 0, 7, 0, 3, 0, 0, 0, 0, 0]),
        ("a length of eight bytes", vec![0, 0, 0, 8, 0, 3, 0, 0, 0, 0, 0, 1]),
        (
            "a length of two gigabytes",
            [&[0x7f, 0xff, 0xff, 0xff][..], &[0, 0, 0, 9, 0, 0, 0, 1]].concat(),
        ),
        ("http", b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".to_vec()),
        ("tls", vec![0x16, 3, 1, 0, 200, 1, 0, 0, 196, 3, 3, 0, 0, 0, 0, 0]),
        ("an unknown key", frame(999, 0, &client)),
        ("a negative key", frame(-1, 0, &client)),
        ("a key of brokers among themselves", frame(4, 0, &client)),
        ("produce 0", frame(0, 0, &client)),
        ("produce 2", frame(0, 2, &client)),
        ("produce 99", frame(0, 99, &client)),
        ("fetch 3", frame(1, 3, &client)),
        ("metadata 99", frame(3, 99, &client)),
        ("metadata -1", frame(3, -1, &client)),
        ("api versions 99", frame(18, 99, &[0, 1, b'c', 0])),
        ("api versions -1", frame(18, -1, &client)),
        ("api versions without a client id", frame(18, 0, &[0xff, 0xff])),
        ("api versions with a client id that is cut short", frame(18, 0, &long)),
        ("a header without a client id", frame(3, 1, &[])),
        ("a client id of -2", frame(18, 0, &[0xff, 0xfe])),
        ("a client id that is no utf-8", frame(18, 0, &[0, 2, 0xc3, 0x28])),
    ];
    for (case, bytes) in cases {
        run.raw(case, &bytes, SILENCE)?;
    }
    Ok(())
}

/// Bodies that no version of any API can have.
fn bodies(run: &mut Run, key: ApiKey) {
    for api in versions(key) {
        run.body("no body", api, &[], SILENCE);
        run.body("a byte", api, &[0], SILENCE);
        run.body("all ones", api, &[0xff; 64], SILENCE);
        run.body("large counts", api, &[0x7f; 64], SILENCE);
        run.body("alternating", api, &[0x01, 0xfe].repeat(40), SILENCE);
    }
}
