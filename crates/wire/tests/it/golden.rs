//! Frames that real clients and a real broker exchanged: read, written again, compared bit by bit.
//!
//! `tests/golden/API-vVERSION-DIRECTION-CLIENT.bin` holds one frame with its length: requests of
//! librdkafka 2.x (kcat) and of the Java clients and tools of Apache Kafka 4.4, and what that broker
//! answered; `hand` marks requests that no client sent in the capture and that were put together.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use bytes::{Buf, Bytes, BytesMut};
use strandline_model::ByteCount;
use strandline_wire::{
    Api, ApiKey, Arrival, FrameLimits, Message, RequestHeader, fetch, next_request, produce,
    read_response, served, write_request, write_response,
};

use crate::each_message::each_message;

struct Golden {
    name: String,
    api: &'static str,
    version: i16,
    is_request: bool,
    frame: Bytes,
}

fn golden() -> Vec<Golden> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut files: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files
        .into_iter()
        .map(|path| {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let parts: Vec<&str> = name.split('-').collect();
            let [api, version, direction, _client] = parts[..] else { panic!("{name}") };
            let row = served().iter().find(|row| row.key.name() == api).expect("a served API");
            Golden {
                api: row.key.name(),
                version: version.trim_start_matches('v').parse().unwrap(),
                is_request: direction == "request",
                frame: fs::read(&path).unwrap().into(),
                name,
            }
        })
        .collect()
}

fn limits() -> FrameLimits {
    FrameLimits::new(ByteCount::mib(100), ByteCount::mib(8))
}

/// Decodes a request and writes it again.
fn rewrite_request(header: &RequestHeader, body: BytesMut) -> BytesMut {
    fn generated<M: Message>(header: &RequestHeader, body: BytesMut) -> BytesMut {
        write(header, &M::decode(body.freeze(), header.api.version()).unwrap())
    }
    fn write(header: &RequestHeader, message: &impl Message) -> BytesMut {
        let mut buf = BytesMut::new();
        write_request(&mut buf, header, message).unwrap();
        buf
    }
    let rewrite = each_message!(
        header.api.key(),
        Request,
        ApiKey::Produce => {
            let request = produce::Request::decode(body, header.api).unwrap();
            return write(header, &crate::produce::generated(request));
        },
        ApiKey::Fetch => {
            let request = fetch::Request::decode(body, header.api).unwrap();
            return write(header, &crate::fetch::generated(&request, header.api));
        },
    );
    rewrite(header, body)
}

/// Decodes a response and writes it again.
fn rewrite_response(api: Api, frame: Bytes) -> BytesMut {
    fn generated<M: Message>(api: Api, frame: Bytes) -> BytesMut {
        let (correlation_id, message) = read_response::<M>(frame, api).unwrap();
        let mut buf = BytesMut::new();
        write_response(&mut buf, api, correlation_id, &message).unwrap();
        buf
    }
    let rewrite = each_message!(
        api.key(),
        Response,
        ApiKey::Produce => {
            let (correlation_id, message) = read_response(frame, api).unwrap();
            let mut buf = BytesMut::new();
            crate::produce::ours(message).write_frame(&mut buf, api, correlation_id).unwrap();
            return buf;
        },
        ApiKey::Fetch => {
            let (correlation_id, message) = read_response(frame, api).unwrap();
            let (response, records) = crate::fetch::ours(message);
            return crate::fetch::sent(&response, &records, api, correlation_id);
        },
    );
    rewrite(api, frame)
}

#[test]
fn real_requests_come_out_as_they_went_in() {
    for golden in golden().iter().filter(|golden| golden.is_request) {
        let mut buf = BytesMut::from(&golden.frame[..]);
        match next_request(&mut buf, &limits()).unwrap() {
            Arrival::Request(header, body) => {
                assert_eq!(header.api.version(), golden.version, "{}", golden.name);
                assert_eq!(rewrite_request(&header, body), golden.frame, "{}", golden.name);
            }
            Arrival::UnknownApiVersions { .. } => {
                assert_eq!(golden.api, "ApiVersions", "{}", golden.name);
                assert!(golden.version > ApiKey::ApiVersions.served().max_version);
            }
            Arrival::Missing(_) => panic!("{} is a whole frame", golden.name),
        }
        assert!(buf.is_empty(), "{}", golden.name);
    }
}

#[test]
fn real_responses_come_out_as_they_went_in() {
    for golden in golden().iter().filter(|golden| !golden.is_request) {
        let row = served().iter().find(|row| row.key.name() == golden.api).unwrap();
        let api = row.at(golden.version).expect("a served version");
        let mut frame = golden.frame.clone();
        frame.advance(4);
        assert_eq!(rewrite_response(api, frame), golden.frame, "{}", golden.name);
    }
}

#[test]
fn every_api_has_a_golden_request_and_response() {
    let golden = golden();
    for is_request in [true, false] {
        let seen: BTreeSet<&str> = golden
            .iter()
            .filter(|golden| golden.is_request == is_request)
            .map(|golden| golden.api)
            .collect();
        assert_eq!(seen, served().iter().map(|row| row.key.name()).collect());
    }
}
