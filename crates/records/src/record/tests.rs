use proptest::prelude::*;

use super::*;

type OwnedHeader = (Vec<u8>, Option<Vec<u8>>);

#[derive(Clone, Debug)]
struct Owned {
    timestamp_delta: i64,
    offset_delta: i32,
    key: Option<Vec<u8>>,
    value: Option<Vec<u8>>,
    headers: Vec<OwnedHeader>,
}

fn bytes(max: usize) -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..max)
}

fn owned() -> impl Strategy<Value = Owned> {
    let header = (bytes(10), prop::option::of(bytes(10)));
    let headers = prop::collection::vec(header, 0..4);
    let fields =
        (any::<i64>(), any::<i32>(), prop::option::of(bytes(80)), prop::option::of(bytes(300)));
    (fields, headers).prop_map(|((timestamp_delta, offset_delta, key, value), headers)| Owned {
        timestamp_delta,
        offset_delta,
        key,
        value,
        headers,
    })
}

fn encoded(all: &[Owned]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut buf = EncodedHeaders::default();
    for owned in all {
        let headers: Vec<_> = owned
            .headers
            .iter()
            .map(|(key, value)| Header { key, value: value.as_deref() })
            .collect();
        let record = Record {
            offset_delta: 0,
            timestamp_delta: owned.timestamp_delta,
            key: owned.key.as_deref(),
            value: owned.value.as_deref(),
            headers: buf.encode(&headers),
        };
        record.write_at(&mut out, owned.offset_delta);
    }
    out
}

fn count(all: &[Owned]) -> i32 {
    i32::try_from(all.len()).unwrap()
}

/// One record: no key, value `v`, a header `h` with a null value.
const RECORD: [u8; 11] = [20, 0, 0, 0, 1, 2, b'v', 2, 2, b'h', 1];

#[test]
fn the_fields_stand_where_kafka_puts_them() {
    let expected = Record {
        offset_delta: 0,
        timestamp_delta: 0,
        key: None,
        value: Some(b"v"),
        headers: Headers { count: 1, bytes: &[2, b'h', 1] },
    };
    assert_eq!(records(&RECORD, 1).collect::<Vec<_>>(), [Ok(expected)]);
    let headers: Vec<_> = expected.headers.iter().collect();
    assert_eq!(headers, [Header { key: b"h", value: None }]);
}

#[test]
fn broken_records_are_refused_for_the_reason_that_breaks_them() {
    // (what is wrong, bytes, count, verdict after any good records)
    let cases: [(&str, &[u8], i32, RecordError); 15] = [
        ("no bytes", &[], 1, RecordError::Missing),
        ("one record where two are counted", &RECORD, 2, RecordError::Missing),
        ("a record where none is counted", &RECORD, 0, RecordError::Surplus),
        ("a negative count", &RECORD, -1, RecordError::Surplus),
        ("a negative count of no bytes", &[], -1, RecordError::Surplus),
        ("a negative length", &[1], 1, RecordError::NegativeLength),
        ("a length past the end", &[20, 0, 0], 1, RecordError::CutShort),
        ("a length of zero", &[0], 1, RecordError::CutShort),
        ("a length that is no number", &[0xff; 6], 1, RecordError::Varint),
        ("a key past the end", &[10, 0, 0, 0, 8, 1], 1, RecordError::CutShort),
        ("a value past the end", &[10, 0, 0, 0, 1, 8], 1, RecordError::CutShort),
        ("a key of length -2", &[12, 0, 0, 0, 3, 1, 0], 1, RecordError::NegativeLength),
        ("headers without end", &[12, 0, 0, 0, 1, 1, 20], 1, RecordError::HeaderCount),
        ("fewer headers than none", &[12, 0, 0, 0, 1, 1, 1], 1, RecordError::HeaderCount),
        (
            "a byte after the headers",
            &[14, 0, 0, 0, 1, 1, 0, 0],
            1,
            RecordError::LongerThanItsFields,
        ),
    ];
    for (what, bytes, count, error) in cases {
        assert_eq!(records(bytes, count).last(), Some(Err(error)), "{what}");
    }
}

#[test]
fn repeated_header_keys_are_kept_in_order() {
    let h = |key: &'static str, value: &'static str| {
        (key.as_bytes().to_vec(), Some(value.as_bytes().to_vec()))
    };
    let record = Owned {
        timestamp_delta: 0,
        offset_delta: 0,
        key: None,
        value: None,
        headers: vec![h("a", "1"), h("b", "2"), h("a", "3"), (Vec::new(), None)],
    };
    let bytes = encoded(std::slice::from_ref(&record));
    let read = records(&bytes, 1).next().unwrap().unwrap();
    let headers: Vec<OwnedHeader> = read
        .headers
        .iter()
        .map(|header| (header.key.to_vec(), header.value.map(<[u8]>::to_vec)))
        .collect();
    assert_eq!(headers, record.headers);
}

proptest! {
    #[test]
    fn what_is_written_is_read(all in prop::collection::vec(owned(), 0..5)) {
        let bytes = encoded(&all);
        let mut count = 0;
        for (read, owned) in records(&bytes, self::count(&all)).zip(&all) {
            let read = read.unwrap();
            count += 1;
            prop_assert_eq!(read.timestamp_delta, owned.timestamp_delta);
            prop_assert_eq!(read.offset_delta, owned.offset_delta);
            prop_assert_eq!(read.key, owned.key.as_deref());
            prop_assert_eq!(read.value, owned.value.as_deref());
            let headers: Vec<_> = read.headers.iter().map(|h| (h.key, h.value)).collect();
            let wanted: Vec<_> =
                owned.headers.iter().map(|(key, value)| (&key[..], value.as_deref())).collect();
            prop_assert_eq!(headers, wanted);
        }
        prop_assert_eq!(count, all.len());
    }

    #[test]
    fn records_cut_anywhere_are_an_error(
        all in prop::collection::vec(owned(), 1..4), cut: prop::sample::Index,
    ) {
        let bytes = encoded(&all);
        let cut = cut.index(bytes.len());
        let last = records(bytes.get(..cut).unwrap_or_default(), count(&all)).last();
        prop_assert!(matches!(last, Some(Err(_))));
    }

    #[test]
    fn any_bytes_are_read_without_panic_and_within_their_length(
        bytes in bytes(600), count in -1_i32..40,
    ) {
        let mut size = 0;
        for record in records(&bytes, count) {
            let Ok(record) = record else { break };
            size += record.key.map_or(0, <[u8]>::len) + record.value.map_or(0, <[u8]>::len);
            for header in record.headers {
                size += header.key.len() + header.value.map_or(0, <[u8]>::len);
            }
        }
        prop_assert!(size <= bytes.len());
    }

    #[test]
    fn mutated_records_are_read_without_panic(
        all in prop::collection::vec(owned(), 1..4), at: prop::sample::Index, with: u8,
    ) {
        let mut bytes = encoded(&all);
        let at = at.index(bytes.len());
        *bytes.get_mut(at).unwrap() ^= with;
        let read = records(&bytes, count(&all)).count();
        prop_assert!(read <= all.len() + 1);
    }
}
