//! Requests whose frames are honest and whose counts are not: gigabytes of elements claimed in a few
//! bytes, and as many of the smallest elements as the largest frame holds.

use std::io::Read;

use strandline_wire::{ApiKey, served};

use crate::broker::{Broker, Outcome, frame, header, outcome, send};

/// Every API in every version, with each of these bodies.
fn all_requests(body: &[u8]) -> impl Iterator<Item = (ApiKey, i16, Vec<u8>)> {
    served().iter().flat_map(move |api| {
        (api.min_version..=api.max_version).map(move |version| {
            (api.key, version, frame(&[header(api.key, version).as_slice(), body].concat()))
        })
    })
}

#[test]
fn claimed_counts_and_lengths_cost_nothing() {
    let broker = Broker::start();
    let varint_max = [0xff, 0xff, 0xff, 0xff, 0x0f];
    let bodies = [
        vec![],
        vec![0x7f; 64],
        vec![0xff; 64],
        vec![0x80; 64],
        [0x7f, 0xff, 0xff, 0xff].repeat(16),
        // The count of an array where most requests have one: first, or behind a few fields.
        varint_max.repeat(12),
        [&[0; 1][..], &varint_max.repeat(6)].concat(),
        [&[0; 7][..], &varint_max.repeat(6)].concat(),
        [&[0, 0, 0, 1][..], &[0x7f, 0xff, 0xff, 0xff].repeat(8)].concat(),
        [&[0, 0xff, 0xff, 0, 0, 0, 1][..], &[0x7f, 0xff, 0xff, 0xff].repeat(8)].concat(),
    ];
    for body in &bodies {
        for (key, version, request) in all_requests(body) {
            let mut stream = broker.connect();
            send(&mut stream, &request);
            // An answer or the end; a panic or a hang would be neither.
            let end = outcome(&mut stream);
            // The first versions of these have no fields, and nothing to be wrong.
            let may_be_empty = matches!(key, ApiKey::ApiVersions | ApiKey::ListGroups);
            if body.starts_with(&[0x7f; 64]) && !may_be_empty {
                assert_eq!(end, Outcome::Closed, "{key} {version}");
            }
        }
    }
    broker.assert_well();
}

/// A request that is valid but for its good sense: as many of the smallest elements as a frame holds.
struct Swollen {
    key: ApiKey,
    version: i16,
    before: &'static [u8],
    element: &'static [u8],
    after: &'static [u8],
    /// How many bytes a frame of this API may have.
    size: usize,
}

const ORDINARY: usize = (8 << 20) - 64;
const PRODUCE: usize = (100 << 20) - 64;

/// Layouts by hand, each in a version without compact lengths: the count is four bytes.
const SWOLLEN: [Swollen; 10] = [
    Swollen {
        key: ApiKey::Metadata,
        version: 4,
        before: &[],
        element: &[0, 1, b'a'],
        after: &[0],
        size: ORDINARY,
    },
    Swollen {
        key: ApiKey::DeleteTopics,
        version: 3,
        before: &[],
        element: &[0, 1, b'a'],
        after: &[0, 0, 0, 1],
        size: ORDINARY,
    },
    // A name, -1 partitions, -1 replicas, no assignments, no configs.
    Swollen {
        key: ApiKey::CreateTopics,
        version: 4,
        before: &[],
        element: &[0, 1, b'a', 255, 255, 255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0],
        after: &[0, 0, 0, 1, 1],
        size: ORDINARY,
    },
    // Topics without partitions.
    Swollen {
        key: ApiKey::ListOffsets,
        version: 1,
        before: &[255, 255, 255, 255],
        element: &[0, 1, b'a', 0, 0, 0, 0],
        after: &[],
        size: ORDINARY,
    },
    // One topic, whose partitions are all the same.
    Swollen {
        key: ApiKey::ListOffsets,
        version: 1,
        before: &[255, 255, 255, 255, 0, 0, 0, 1, 0, 1, b'a'],
        element: &[0, 0, 0, 0, 255, 255, 255, 255, 255, 255, 255, 255],
        after: &[],
        size: ORDINARY,
    },
    // No replica, no waiting; topics without partitions.
    Swollen {
        key: ApiKey::Fetch,
        version: 4,
        before: &[255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0],
        element: &[0, 1, b'a', 0, 0, 0, 0],
        after: &[],
        size: ORDINARY,
    },
    // A resource of type topic, every key.
    Swollen {
        key: ApiKey::DescribeConfigs,
        version: 1,
        before: &[],
        element: &[2, 0, 1, b'a', 255, 255, 255, 255],
        after: &[0],
        size: ORDINARY,
    },
    Swollen {
        key: ApiKey::CreatePartitions,
        version: 1,
        before: &[],
        element: &[0, 1, b'a', 0, 0, 0, 9, 255, 255, 255, 255],
        after: &[0, 0, 0, 1, 1],
        size: ORDINARY,
    },
    // No transaction, acks of all; topics without partitions.
    Swollen {
        key: ApiKey::Produce,
        version: 3,
        before: &[255, 255, 255, 255, 0, 0, 0, 1],
        element: &[0, 1, b'a', 0, 0, 0, 0],
        after: &[],
        size: PRODUCE,
    },
    // One topic, whose partitions are all the same and without records.
    Swollen {
        key: ApiKey::Produce,
        version: 3,
        before: &[255, 255, 255, 255, 0, 0, 0, 1, 0, 0, 0, 1, 0, 1, b'a'],
        element: &[0, 0, 0, 0, 255, 255, 255, 255],
        after: &[],
        size: PRODUCE,
    },
];

impl Swollen {
    /// The most elements that a frame holds.
    fn count_max(&self) -> usize {
        (self.size - self.frame(0).len()) / self.element.len()
    }

    fn frame(&self, count: usize) -> Vec<u8> {
        let header = header(self.key, self.version);
        let elements = self.element.repeat(count);
        let count = u32::try_from(count).expect("a frame holds fewer").to_be_bytes();
        frame(&[header.as_slice(), self.before, &count, &elements, self.after].concat())
    }
}

/// The largest frames, full of the smallest elements: a few bytes each on the wire, and many times
/// that in memory if all are taken apart at once.
#[test]
fn a_large_frame_of_tiny_elements_stays_within_the_bound() {
    let broker = Broker::start();
    for swollen in SWOLLEN {
        for count in [3, 1000, 20_000, 200_000, swollen.count_max()] {
            let mut stream = broker.connect();
            send(&mut stream, &swollen.frame(count));
            let end = outcome(&mut stream);
            // A few show that the request is a valid one.
            assert!(count > 3 || end == Outcome::Answered, "{} {end:?}", swollen.key);
        }
    }
    broker.assert_well();
}

/// A resource whose description is thousands of times as long as its name, named again and again.
#[test]
fn a_resource_that_is_named_again_is_not_described_again() {
    let broker = Broker::start();
    let every_key = Swollen {
        key: ApiKey::DescribeConfigs,
        version: 1,
        before: &[],
        element: &[4, 0, 1, b'1', 255, 255, 255, 255],
        after: &[1],
        size: ORDINARY,
    };
    let [one, many] = [1, 30_000].map(|count| {
        let mut stream = broker.connect();
        send(&mut stream, &every_key.frame(count));
        let mut length = [0; 4];
        stream.read_exact(&mut length).expect("an answer");
        i32::from_be_bytes(length)
    });
    assert!(one > 10_000, "every key is described: {one}");
    assert_eq!(many, one);
    broker.assert_well();
}
