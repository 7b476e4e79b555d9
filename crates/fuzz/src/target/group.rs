//! Rows of consumer groups: what the metadata store gives back as opaque bytes.
//!
//! An input is a row: its table (0 groups, else offsets), the length of its key, key and value.

use std::sync::Arc;

use bytes::Bytes;
use strandline_coordination::group::{
    CommittedOffset, GroupConfig, GroupRow, GroupRowError, GroupSnapshot, Groups, MemberSnapshot,
    OffsetKey, Rebalance, RebalanceCause, RebalanceMember,
};
use strandline_coordination::{Effects, Now};
use strandline_model::{Timestamp, TopicId};

use super::{Target, kind_of, magnitude};

pub(super) const TARGET: Target = Target { name: "group", seeds, repair: |_| {}, run };

fn seeds() -> Vec<Vec<u8>> {
    let empty = GroupSnapshot {
        protocol_type: Arc::from(""),
        generation: 0,
        protocol: None,
        leader: None,
        since: Timestamp::from_millis(1_700_000_000_000),
        rebalance: None,
        members: Vec::new(),
    };
    let member = |number: u8| MemberSnapshot {
        id: Arc::from(format!("client-{number}")),
        instance: number.is_multiple_of(2).then(|| Arc::from("instance")),
        client_id: Arc::from("client"),
        client_host: Arc::from("/127.0.0.1"),
        session_timeout_ms: 45_000,
        rebalance_timeout_ms: 300_000,
        subscription: Bytes::from_static(b"\0\x01\0\0\0\x01\0\x01t\xff\xff\xff\xff"),
        assignment: Bytes::from_static(b"\0\0\0\0\0\0\xff\xff\xff\xff"),
    };
    let stable = GroupSnapshot {
        protocol_type: Arc::from("consumer"),
        generation: 7,
        protocol: Some(Arc::from("range")),
        leader: Some(Arc::from("client-0")),
        rebalance: Some(Rebalance {
            cause: RebalanceCause::MemberLeft,
            at: Timestamp::from_millis(1_700_000_000_000),
            generation: 6,
            member: Some(RebalanceMember {
                id: Arc::from("client-9"),
                instance: Some(Arc::from("instance")),
                client_id: Arc::from("client"),
                client_host: Arc::from("/127.0.0.1"),
            }),
            client_reason: Arc::from("poll timeout"),
        }),
        members: (0..3).map(member).collect(),
        ..empty.clone()
    };
    let key = OffsetKey {
        group: Arc::from("orders"),
        topic_id: TopicId::from_bytes([7; 16]),
        partition: 3,
    };
    let offset = CommittedOffset {
        offset: 42,
        leader_epoch: 1,
        metadata: Arc::from("note"),
        committed_at: Timestamp::from_millis(1_700_000_000_000),
        expires_at: Some(Timestamp::from_millis(1_700_000_100_000)),
    };
    let rows = [
        GroupRow::Group(Arc::from("orders"), Some(Box::new(empty))),
        GroupRow::Group(Arc::from("orders"), Some(Box::new(stable))),
        GroupRow::Offset(key, Some(offset)),
    ];
    rows.iter().map(input).collect()
}

fn input(row: &GroupRow) -> Vec<u8> {
    let (key, value) = (row.key(), row.value().expect("the seeds have values"));
    let mut bytes = vec![u8::from(matches!(row, GroupRow::Offset(..)))];
    bytes.push(u8::try_from(key.len()).expect("the seeds are short"));
    bytes.extend_from_slice(&key);
    bytes.extend_from_slice(&value);
    bytes
}

fn run(input: &[u8]) -> u64 {
    let Some((&[table, length], rest)) = input.split_first_chunk() else { return 0 };
    let Some((key, value)) = rest.split_at_checked(usize::from(length)) else { return 1 };
    let value = Bytes::copy_from_slice(value);
    match decode(table, key, value) {
        Ok(row) => {
            let value = row.value().expect("a decoded row has a value");
            assert_eq!(decode(table, &row.key(), value), Ok(row.clone()), "changed on its way");
            restore(row)
        }
        Err(error) => kind_of(error),
    }
}

fn decode(table: u8, key: &[u8], value: Bytes) -> Result<GroupRow, GroupRowError> {
    if table == 0 {
        GroupRow::decode_group(key, value)
    } else {
        GroupRow::decode_offset(key, value)
    }
}

/// A machine takes any row that can be read.
fn restore(row: GroupRow) -> u64 {
    let kind = match &row {
        GroupRow::Group(_, group) => {
            magnitude(group.as_ref().map_or(0, |group| group.members.len()))
        }
        GroupRow::Offset(_, offset) => kind_of(offset.as_ref().map(|at| at.expires_at)).to_string(),
    };
    let mut groups = Groups::new(GroupConfig::default());
    groups.restore(Now::default(), row, None);
    groups.loaded(Now::default(), &mut Effects::default());
    kind_of(kind)
}
