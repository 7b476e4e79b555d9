//! What decoding costs in memory.
//!
//! A binary of its own with one test, because the counters are global: another test beside it would
//! be counted too.

use std::alloc::System;

use bytes::{BufMut, Bytes, BytesMut};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};
use strandline_wire::{
    Api, ApiKey, KafkaString, Message, create_topics, describe_configs, fetch, list_offsets,
    metadata, produce,
};

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

struct Cost {
    allocations: usize,
    bytes: usize,
}

fn cost<T>(work: impl FnOnce() -> T) -> Cost {
    let region = Region::new(ALLOCATOR);
    let result = work();
    let change = region.change();
    drop(result);
    // Growth of a reallocation counts among the allocated bytes, so that they are at least the peak.
    Cost { allocations: change.allocations + change.reallocations, bytes: change.bytes_allocated }
}

fn api(key: ApiKey, version: i16) -> Api {
    key.served().at(version).expect("served")
}

fn one_batch(version: i16) -> BytesMut {
    let request = produce::message::Request {
        topic_data: vec![produce::message::TopicProduceData {
            name: if version < 13 {
                KafkaString::from_static("orders")
            } else {
                KafkaString::default()
            },
            partition_data: vec![produce::message::PartitionProduceData {
                records: Some(Bytes::from_static(&[7; 1000])),
                ..Default::default()
            }],
            ..Default::default()
        }],
        ..Default::default()
    };
    let mut body = BytesMut::new();
    request.encode(&mut body, version).expect("it fits its version");
    body
}

#[test]
fn decoding_costs_little_memory() {
    a_produce_request_for_one_partition_costs_one_allocation();
    small_elements_grow_at_most_as_far_as_the_frame_limits_assume();
    our_own_codecs_bound_their_elements();
    garbage_allocates_no_more_than_a_multiple_of_its_size();
}

fn a_produce_request_for_one_partition_costs_one_allocation() {
    for version in 3..=13 {
        let body = one_batch(version);
        let cost = cost(|| {
            produce::Request::decode(body, api(ApiKey::Produce, version)).expect("well-formed")
        });
        // The buffer becomes a shared one; in the broker the frame is shared already.
        assert!(cost.allocations <= 1, "v{version}: {} allocations", cost.allocations);
    }
}

/// Bodies that are all small elements: what grows most when it is decoded.
fn amplifiers(elements: u32) -> Vec<(Api, BytesMut)> {
    let compact = |buf: &mut BytesMut| {
        // An unsigned varint of elements + 1, in four bytes.
        let value = elements + 1;
        for shift in [0, 7, 14] {
            buf.put_u8(u8::try_from(value >> shift & 0x7f).expect("seven bits") | 0x80);
        }
        buf.put_u8(u8::try_from(value >> 21 & 0x7f).expect("seven bits"));
    };
    let body = |head: &[u8], element: &[u8], tail: &[u8]| {
        let mut buf = BytesMut::from(head);
        compact(&mut buf);
        for _ in 0..elements {
            buf.put_slice(element);
        }
        buf.put_slice(tail);
        buf
    };
    vec![
        // An empty name, no partitions, no tagged fields.
        (api(ApiKey::Produce, 9), body(&[0; 7], &[1, 1, 0], &[0; 8])),
        (api(ApiKey::Fetch, 12), body(&[0; 25], &[1, 1, 0], &[1, 1, 0])),
        (api(ApiKey::ListOffsets, 6), body(&[0; 5], &[1, 1, 0], &[0; 8])),
        (api(ApiKey::Metadata, 9), body(&[], &[1, 0], &[0; 8])),
        (api(ApiKey::CreateTopics, 5), body(&[], &[1, 0, 0, 0, 0, 0, 0, 1, 1, 0], &[0; 8])),
        (api(ApiKey::DescribeConfigs, 4), body(&[], &[2, 1, 0, 0], &[0; 8])),
    ]
}

fn decode(api: Api, body: BytesMut) -> bool {
    let version = api.version();
    match api.key() {
        ApiKey::Produce => produce::Request::decode(body, api).is_ok(),
        ApiKey::Fetch => fetch::Request::decode(body, api).is_ok(),
        ApiKey::ListOffsets => list_offsets::Request::decode(body.freeze(), version).is_ok(),
        ApiKey::Metadata => metadata::Request::decode(body.freeze(), version).is_ok(),
        ApiKey::CreateTopics => create_topics::Request::decode(body.freeze(), version).is_ok(),
        ApiKey::DescribeConfigs => {
            describe_configs::Request::decode(body.freeze(), version).is_ok()
        }
        key => panic!("no amplifier for {key}"),
    }
}

fn small_elements_grow_at_most_as_far_as_the_frame_limits_assume() {
    for (api, body) in amplifiers(100_000) {
        let length = body.len();
        let key = api.key();
        let mut decoded = false;
        let cost = cost(|| decoded = decode(api, body));
        assert!(decoded, "{key} is a well-formed request");
        let factor = cost.bytes / length;
        // `FrameLimits::OTHER_MAX` counts on this.
        assert!(factor <= 50, "{key}: {length} bytes became {} ({factor}-fold)", cost.bytes);
    }
}

fn our_own_codecs_bound_their_elements() {
    for (api, body) in amplifiers(300_000).into_iter().take(2) {
        let key = api.key();
        let mut decoded = true;
        let cost = cost(|| decoded = decode(api, body));
        assert!(!decoded, "{key} has too many elements");
        assert!(cost.bytes < 4096, "{key}: refused before anything is allocated");
    }
}

fn garbage_allocates_no_more_than_a_multiple_of_its_size() {
    let byte = prop_oneof![any::<u8>(), 0_u8..4, Just(0xff)];
    let garbage = (prop::collection::vec(byte, 0..400), 0_usize..6);
    let checked = TestRunner::default().run(&garbage, |(bytes, which)| {
        let (api, _) = amplifiers(0).swap_remove(which);
        let body = BytesMut::from(&bytes[..]);
        let cost = cost(|| decode(api, body));
        // Each level of nesting may make room for as many elements as bytes are left, 1024 at most.
        prop_assert!(cost.bytes <= 400 * bytes.len() + 512, "{}: {} bytes", api.key(), cost.bytes);
        Ok(())
    });
    checked.expect("no garbage costs more");
}
