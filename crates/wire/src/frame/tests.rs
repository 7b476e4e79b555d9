use proptest::prelude::*;

use super::*;
use crate::{api_versions, metadata};

const LIMITS: FrameLimits = FrameLimits { produce: 1 << 20, fetch: 1 << 16, other: 1 << 12 };

fn api(key: i16, version: i16) -> Api {
    match lookup(key, version) {
        Lookup::Served(api) => api,
        other => panic!("{key} v{version}: {other:?}"),
    }
}

fn request_frame(api: Api, correlation_id: i32, client_id: Option<&str>) -> BytesMut {
    let client_id = client_id.map(|text| KafkaString::from(text.to_owned()));
    let header = RequestHeader { api, correlation_id, client_id };
    let mut buf = BytesMut::new();
    write_request(&mut buf, &header, &metadata::Request::default()).unwrap();
    buf
}

/// A frame of any length, key and version, of which only the first bytes have arrived.
fn claim(length: i32, key: i16, version: i16) -> BytesMut {
    let mut buf = BytesMut::new();
    buf.extend_from_slice(&length.to_be_bytes());
    buf.extend_from_slice(&key.to_be_bytes());
    buf.extend_from_slice(&version.to_be_bytes());
    buf.extend_from_slice(&7_i32.to_be_bytes());
    buf
}

#[test]
fn requests_come_off_the_buffer_one_by_one_with_their_headers() {
    let mut buf = request_frame(api(3, 8), 1, None);
    buf.unsplit(request_frame(api(3, 12), 2, Some("größe")));
    for (correlation_id, version, client_id) in [(1, 8, None), (2, 12, Some("größe"))] {
        let Arrival::Request(header, body) = next_request(&mut buf, &LIMITS).unwrap() else {
            panic!("a whole frame is there");
        };
        assert_eq!(header.correlation_id, correlation_id);
        assert_eq!(header.api, api(3, version));
        assert_eq!(header.client_id.as_ref().map(KafkaString::as_str), client_id);
        metadata::Request::decode(body.freeze(), version).unwrap();
    }
    assert!(buf.is_empty());
}

#[test]
fn room_is_asked_for_as_bytes_arrive_not_as_they_are_claimed() {
    let mut buf = claim(1 << 20, 0, 9);
    let mut asked = 0;
    while buf.len() < 4 + (1 << 20) {
        let Arrival::Missing(room) = next_request(&mut buf, &LIMITS).unwrap() else {
            panic!("the frame is not whole");
        };
        assert!(room > 0 && room <= buf.len().max(16 * 1024));
        asked += 1;
        buf.resize(buf.len() + room, 0xff);
    }
    assert!(asked < 10, "room doubles: {asked} steps for 1 MiB");
}

#[test]
fn a_frame_is_refused_as_soon_as_its_header_shows_that_it_is_wrong() {
    for (buf, reason) in [
        (claim(-1, 0, 9), "frame length is impossible. length=`-1`"),
        (claim(7, 0, 9), "frame length is impossible. length=`7`"),
        (claim(i32::MIN, 18, 0), "frame length is impossible. length=`-2147483648`"),
        (
            claim((1 << 20) + 1, 0, 9),
            "Produce frame is over its limit. length=`1048577`, max=`1048576`",
        ),
        (claim(1 << 20, 1, 12), "Fetch frame is over its limit. length=`1048576`, max=`65536`"),
        (claim(1 << 16, 18, 99), "ApiVersions frame is over its limit. length=`65536`, max=`4096`"),
        (claim(100, 0, 2), "Produce version 2 is not served"),
        (claim(100, 3, 14), "Metadata version 14 is not served"),
        (claim(100, 999, 0), "api key is unknown. key=`999`, version=`0`"),
    ] {
        let mut buf = buf;
        let error = next_request(&mut buf, &LIMITS).unwrap_err();
        assert_eq!(error.to_string(), reason);
    }
}

#[test]
fn an_unknown_version_of_api_versions_keeps_the_connection() {
    for version in [-1, 5, i16::MAX] {
        let mut buf = claim(10, 18, version);
        assert!(matches!(next_request(&mut buf, &LIMITS), Ok(Arrival::Missing(2))));
        buf.extend_from_slice(&[0xff, 0xff]);
        let arrival = next_request(&mut buf, &LIMITS).unwrap();
        assert!(matches!(arrival, Arrival::UnknownApiVersions { correlation_id: 7 }));
        assert!(buf.is_empty());
    }
}

#[test]
fn other_protocols_are_told_by_their_first_bytes_where_nothing_else_can_be_made_of_them() {
    let cases: [(&[u8], Option<Foreign>); 7] = [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\x00", Some(Foreign::Tls)),
        (b"GET / HTTP/1.1\r\n\r\n", Some(Foreign::Http)),
        (b"POST /topics HTTP/1.1\r\n", Some(Foreign::Http)),
        (b"PRI * HTTP/2.0\r\n\r\n", Some(Foreign::Http)),
        (b"SSH-2.0-OpenSSH_9.9\r\n", Some(Foreign::Ssh)),
        (b"\x16\x03\x09\x02\x00\x01\x00\x01\xfc\x03\x03\x00", None),
        (b"GETTING NOWHERE", None),
    ];
    for (bytes, expected) in cases {
        let error = next_request(&mut BytesMut::from(bytes), &LIMITS).unwrap_err();
        let found = match error {
            FrameError::Foreign(foreign) => Some(foreign),
            _ => None,
        };
        assert_eq!(found, expected, "{}", bytes.escape_ascii());
    }
    // A produce request of 369 MB begins as TLS does, and is one where it may be so large.
    let large = FrameLimits { produce: 1 << 30, ..LIMITS };
    let arrival = next_request(&mut claim(0x1603_0100, 0, 9), &large);
    assert!(matches!(arrival, Ok(Arrival::Missing(_))));
}

#[test]
fn a_header_that_is_cut_short_is_refused() {
    for client_id in [&[0x7f, 0xff][..], &[0], &[0, 2, 0x61]] {
        let mut buf = claim(8 + i32::try_from(client_id.len()).unwrap(), 3, 8);
        buf.extend_from_slice(client_id);
        let error = next_request(&mut buf, &LIMITS).unwrap_err();
        assert!(matches!(error, FrameError::Header(_)), "{client_id:?}: {error}");
    }
}

#[test]
fn a_client_is_called_as_well_as_its_bytes_allow() {
    for (bytes, name) in [
        (&[0xff, 0xff][..], None),
        (&[0xff, 0xfe], None),
        (&[0, 0], Some("")),
        (&[0, 2, b'a', 0xe9], Some("a\u{fffd}")),
    ] {
        let mut buf = claim(8 + i32::try_from(bytes.len()).unwrap(), 3, 8);
        buf.extend_from_slice(bytes);
        let Ok(Arrival::Request(header, _)) = next_request(&mut buf, &LIMITS) else {
            panic!("{bytes:?} is a client id");
        };
        assert_eq!(header.client_id.as_ref().map(KafkaString::as_str), name);
    }
}

#[test]
fn the_response_header_of_api_versions_is_never_flexible() {
    let response = api_versions::Response::default();
    let mut buf = BytesMut::new();
    write_response(&mut buf, api(18, 3), 9, &response).unwrap();
    let body = buf.split_off(8);
    assert_eq!(&buf[..], [0, 0, 0, u8::try_from(body.len() + 4).unwrap(), 0, 0, 0, 9]);
    assert_eq!(api_versions::Response::decode(body.freeze(), 3).unwrap(), response);
}

#[test]
fn a_message_that_its_version_cant_carry_leaves_the_buffer_alone() {
    let request =
        metadata::Request { allow_auto_topic_creation: false, ..metadata::Request::default() };
    let header = RequestHeader { api: api(3, 0), correlation_id: 1, client_id: None };
    let mut buf = BytesMut::from(&b"before"[..]);
    let error = write_request(&mut buf, &header, &request).unwrap_err();
    assert_eq!(error.to_string(), "Metadata version 0 can't carry the message");
    assert_eq!(&buf[..], b"before");
}

proptest! {
    #[test]
    fn arbitrary_bytes_lead_to_a_verdict(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut buf = BytesMut::from(&bytes[..]);
        if let Ok(Arrival::Missing(room)) = next_request(&mut buf, &LIMITS) {
            prop_assert!(room > 0);
        }
    }

    #[test]
    fn a_response_is_read_back(correlation_id: i32, version in 0_i16..=4, code in -1_i16..140) {
        let response = api_versions::Response { error_code: code, ..Default::default() };
        let mut buf = BytesMut::new();
        write_response(&mut buf, api(18, version), correlation_id, &response).unwrap();
        buf.advance(4);
        let read = read_response::<api_versions::Response>(buf.freeze(), api(18, version)).unwrap();
        prop_assert_eq!(read, (correlation_id, response));
    }
}
