//! The rows that describe groups: what is kept of them, and its bytes.
//!
//! # On disk
//!
//! All numbers big-endian; a text or byte string is its length (u32) and its bytes; an optional one
//! is a byte 0, or a byte 1 and the value.
//!
//! | row | key | value |
//! | --- | --- | --- |
//! | group | bucket u8, the group id | version u8 = 2, generation i32, protocol type text, protocol optional text, leader optional text, since i64, member count u32, then each: id text, instance optional text, client id text, client host text, session timeout i32, rebalance timeout i32, subscription bytes, assignment bytes; then the last rebalance: a byte 0, or a byte 1 and cause u8, at i64, generation i32, client's reason text, and a byte 0, or a byte 1 and of a member the id text, instance optional text, client id text, client host text. Version 1 ends before the last rebalance |
//! | offset | bucket u8, length of the group id u16, the group id, topic id (16 bytes), partition i32 | version u8 = 1, offset i64, leader epoch i32, committed at i64, expires at i64 (−1: as the broker says), metadata text |
//!
//! The bucket is a hash of the group id ([`bucket_of`]): an owner of some groups reads its rows
//! without reading those of others. A group's offsets are neighbours, and so are those of a topic
//! within it.
//!
//! A group's row is written when the group is made by a join, when its leader has assigned, when a
//! static member comes back, and when its last member has gone. So after a crash a group is in its
//! last complete generation, and members that were in it go on. See docs/adr/0014.

use std::sync::Arc;

use bytes::{Buf, BufMut, Bytes, BytesMut};
use strandline_model::{Timestamp, TopicId};

use super::cause::{Rebalance, RebalanceCause, RebalanceMember};
use super::command::{GroupId, MemberId};
use super::offsets::CommittedOffset;

const GROUP_VERSION: u8 = 2;
/// Without the last rebalance.
const GROUP_VERSION_OLD: u8 = 1;
const OFFSET_VERSION: u8 = 1;

/// The longest group id that can be kept, in bytes: what a classic Kafka string can carry.
pub const GROUP_ID_BYTES_MAX: usize = 32_767;

/// A change of what is kept. A value of `None` removes the row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupRow {
    /// A group.
    Group(GroupId, Option<Box<GroupSnapshot>>),
    /// A position.
    Offset(OffsetKey, Option<CommittedOffset>),
}

/// Which position.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OffsetKey {
    /// Of which group.
    pub group: GroupId,
    /// In which topic.
    pub topic_id: TopicId,
    /// In which partition, as the wire has it.
    pub partition: i32,
}

/// A group as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupSnapshot {
    /// What its members speak; empty when none ever did.
    pub protocol_type: Arc<str>,
    /// The generation.
    pub generation: i32,
    /// The chosen protocol; `None` for an empty group.
    pub protocol: Option<Arc<str>>,
    /// Who assigned.
    pub leader: Option<MemberId>,
    /// When the group came into its state.
    pub since: Timestamp,
    /// Why it left its last generation; nothing when it never did.
    pub rebalance: Option<Rebalance>,
    /// The members, with their assignments.
    pub members: Vec<MemberSnapshot>,
}

/// A member as it is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberSnapshot {
    /// Its id.
    pub id: MemberId,
    /// Its `group.instance.id`.
    pub instance: Option<Arc<str>>,
    /// Its client's name.
    pub client_id: Arc<str>,
    /// Where it was.
    pub client_host: Arc<str>,
    /// How long it may be silent.
    pub session_timeout_ms: i32,
    /// How long a rebalance waits for it.
    pub rebalance_timeout_ms: i32,
    /// What it said under the chosen protocol.
    pub subscription: Bytes,
    /// Its share.
    pub assignment: Bytes,
}

/// Bytes that are no row of ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GroupRowError {
    /// Written by a newer version of the broker.
    #[error("row has an unknown version. version=`{0}`")]
    Version(u8),
    /// The bytes end early or hold something impossible.
    #[error("row is damaged")]
    Damaged,
}

/// The bucket of a group's rows: the last byte of its id's FNV-1a hash of 32 bits.
pub fn bucket_of(group: &str) -> u8 {
    let hash = group
        .bytes()
        .fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    hash.to_be_bytes()[3]
}

impl GroupRow {
    pub(super) fn group(id: &GroupId, snapshot: GroupSnapshot) -> Self {
        Self::Group(Arc::clone(id), Some(Box::new(snapshot)))
    }

    /// The key of the row within its table.
    pub fn key(&self) -> Bytes {
        let mut buf = BytesMut::new();
        match self {
            Self::Group(id, _) => {
                buf.put_u8(bucket_of(id));
                buf.put_slice(id.as_bytes());
            }
            Self::Offset(key, _) => {
                buf.put_u8(bucket_of(&key.group));
                buf.put_u16(u16::try_from(key.group.len()).expect("checked when it came in"));
                buf.put_slice(key.group.as_bytes());
                buf.put_slice(key.topic_id.as_bytes());
                buf.put_i32(key.partition);
            }
        }
        buf.freeze()
    }

    /// The value of the row; `None` when it is removed.
    pub fn value(&self) -> Option<Bytes> {
        let mut buf = BytesMut::new();
        match self {
            Self::Group(_, snapshot) => {
                buf.put_u8(GROUP_VERSION);
                snapshot.as_ref()?.encode(&mut buf);
            }
            Self::Offset(_, offset) => {
                buf.put_u8(OFFSET_VERSION);
                encode_offset(offset.as_ref()?, &mut buf);
            }
        }
        Some(buf.freeze())
    }

    /// The row of the table of groups that these bytes are.
    pub fn decode_group(key: &[u8], value: Bytes) -> Result<Self, GroupRowError> {
        let (bucket, id) = key.split_first().ok_or(GroupRowError::Damaged)?;
        let id = group_id(*bucket, id)?;
        let snapshot = whole(value, |version, bytes| match version {
            GROUP_VERSION => GroupSnapshot::decode(bytes, take_rebalance),
            GROUP_VERSION_OLD => GroupSnapshot::decode(bytes, |_| Ok(None)),
            unknown => Err(GroupRowError::Version(unknown)),
        })?;
        Ok(Self::Group(id, Some(Box::new(snapshot))))
    }

    /// The row of the table of offsets that these bytes are.
    pub fn decode_offset(key: &[u8], value: Bytes) -> Result<Self, GroupRowError> {
        let (head, rest) = key.split_first_chunk::<3>().ok_or(GroupRowError::Damaged)?;
        let length = usize::from(u16::from_be_bytes([head[1], head[2]]));
        let (id, rest) = rest.split_at_checked(length).ok_or(GroupRowError::Damaged)?;
        let (topic_id, rest) = rest.split_first_chunk::<16>().ok_or(GroupRowError::Damaged)?;
        let partition = rest.try_into().map_err(|_| GroupRowError::Damaged)?;
        let key = OffsetKey {
            group: group_id(head[0], id)?,
            topic_id: TopicId::from_bytes(*topic_id),
            partition: i32::from_be_bytes(partition),
        };
        Ok(Self::Offset(
            key,
            Some(whole(value, |version, bytes| match version {
                OFFSET_VERSION => decode_offset(bytes),
                unknown => Err(GroupRowError::Version(unknown)),
            })?),
        ))
    }
}

fn group_id(bucket: u8, bytes: &[u8]) -> Result<GroupId, GroupRowError> {
    let id = str::from_utf8(bytes).map_err(|_| GroupRowError::Damaged)?;
    if bucket_of(id) == bucket && id.len() <= GROUP_ID_BYTES_MAX {
        Ok(Arc::from(id))
    } else {
        Err(GroupRowError::Damaged)
    }
}

/// Reads a value that must end where its content does.
fn whole<T>(
    mut value: Bytes,
    decode: impl FnOnce(u8, &mut Bytes) -> Result<T, GroupRowError>,
) -> Result<T, GroupRowError> {
    let version = value.try_get_u8().map_err(|_| GroupRowError::Damaged)?;
    let decoded = decode(version, &mut value)?;
    if value.has_remaining() { Err(GroupRowError::Damaged) } else { Ok(decoded) }
}

impl GroupSnapshot {
    fn encode(&self, buf: &mut BytesMut) {
        buf.put_i32(self.generation);
        put_bytes(buf, self.protocol_type.as_bytes());
        put_optional(buf, self.protocol.as_deref());
        put_optional(buf, self.leader.as_deref());
        buf.put_i64(self.since.as_millis());
        put_length(buf, self.members.len());
        for member in &self.members {
            put_bytes(buf, member.id.as_bytes());
            put_optional(buf, member.instance.as_deref());
            put_bytes(buf, member.client_id.as_bytes());
            put_bytes(buf, member.client_host.as_bytes());
            buf.put_i32(member.session_timeout_ms);
            buf.put_i32(member.rebalance_timeout_ms);
            put_bytes(buf, &member.subscription);
            put_bytes(buf, &member.assignment);
        }
        put_rebalance(buf, self.rebalance.as_ref());
    }

    fn decode(
        bytes: &mut Bytes,
        rebalance: impl FnOnce(&mut Bytes) -> Result<Option<Rebalance>, GroupRowError>,
    ) -> Result<Self, GroupRowError> {
        let generation = take_i32(bytes)?;
        let protocol_type = take_text(bytes)?;
        let protocol = take_optional(bytes)?;
        let leader = take_optional(bytes)?;
        let since = Timestamp::from_wire(take_i64(bytes)?).ok_or(GroupRowError::Damaged)?;
        let mut members = Vec::new();
        for _ in 0..take_length(bytes)? {
            members.push(MemberSnapshot {
                id: take_text(bytes)?,
                instance: take_optional(bytes)?,
                client_id: take_text(bytes)?,
                client_host: take_text(bytes)?,
                session_timeout_ms: take_i32(bytes)?,
                rebalance_timeout_ms: take_i32(bytes)?,
                subscription: take_bytes(bytes)?,
                assignment: take_bytes(bytes)?,
            });
        }
        let rebalance = rebalance(bytes)?;
        Ok(Self { protocol_type, generation, protocol, leader, since, rebalance, members })
    }
}

fn put_rebalance(buf: &mut BytesMut, rebalance: Option<&Rebalance>) {
    buf.put_u8(u8::from(rebalance.is_some()));
    let Some(Rebalance { cause, at, generation, member, client_reason }) = rebalance else {
        return;
    };
    buf.put_u8(cause.number());
    buf.put_i64(at.as_millis());
    buf.put_i32(*generation);
    put_bytes(buf, client_reason.as_bytes());
    buf.put_u8(u8::from(member.is_some()));
    if let Some(member) = member {
        put_bytes(buf, member.id.as_bytes());
        put_optional(buf, member.instance.as_deref());
        put_bytes(buf, member.client_id.as_bytes());
        put_bytes(buf, member.client_host.as_bytes());
    }
}

fn take_rebalance(bytes: &mut Bytes) -> Result<Option<Rebalance>, GroupRowError> {
    if !take_presence(bytes)? {
        return Ok(None);
    }
    let cause = bytes.try_get_u8().map_err(|_| GroupRowError::Damaged)?;
    Ok(Some(Rebalance {
        cause: RebalanceCause::of_number(cause).ok_or(GroupRowError::Damaged)?,
        at: Timestamp::from_wire(take_i64(bytes)?).ok_or(GroupRowError::Damaged)?,
        generation: take_i32(bytes)?,
        client_reason: take_text(bytes)?,
        member: if take_presence(bytes)? {
            Some(RebalanceMember {
                id: take_text(bytes)?,
                instance: take_optional(bytes)?,
                client_id: take_text(bytes)?,
                client_host: take_text(bytes)?,
            })
        } else {
            None
        },
    }))
}

fn encode_offset(offset: &CommittedOffset, buf: &mut BytesMut) {
    buf.put_i64(offset.offset);
    buf.put_i32(offset.leader_epoch);
    buf.put_i64(offset.committed_at.as_millis());
    buf.put_i64(offset.expires_at.map_or(-1, Timestamp::as_millis));
    put_bytes(buf, offset.metadata.as_bytes());
}

fn decode_offset(bytes: &mut Bytes) -> Result<CommittedOffset, GroupRowError> {
    Ok(CommittedOffset {
        offset: take_i64(bytes)?,
        leader_epoch: take_i32(bytes)?,
        committed_at: Timestamp::from_wire(take_i64(bytes)?).ok_or(GroupRowError::Damaged)?,
        expires_at: Timestamp::from_wire(take_i64(bytes)?),
        metadata: take_text(bytes)?,
    })
}

fn put_length(buf: &mut BytesMut, length: usize) {
    buf.put_u32(u32::try_from(length).expect("it came in a frame of less than 4 GiB"));
}

fn put_bytes(buf: &mut BytesMut, bytes: &[u8]) {
    put_length(buf, bytes.len());
    buf.put_slice(bytes);
}

fn put_optional(buf: &mut BytesMut, text: Option<&str>) {
    buf.put_u8(u8::from(text.is_some()));
    if let Some(text) = text {
        put_bytes(buf, text.as_bytes());
    }
}

fn take_length(bytes: &mut Bytes) -> Result<usize, GroupRowError> {
    let length = bytes.try_get_u32().map_err(|_| GroupRowError::Damaged)?;
    usize::try_from(length).map_err(|_| GroupRowError::Damaged)
}

fn take_bytes(bytes: &mut Bytes) -> Result<Bytes, GroupRowError> {
    let length = take_length(bytes)?;
    if bytes.remaining() < length {
        return Err(GroupRowError::Damaged);
    }
    Ok(bytes.split_to(length))
}

fn take_text(bytes: &mut Bytes) -> Result<Arc<str>, GroupRowError> {
    let text = take_bytes(bytes)?;
    str::from_utf8(&text).map(Arc::from).map_err(|_| GroupRowError::Damaged)
}

fn take_presence(bytes: &mut Bytes) -> Result<bool, GroupRowError> {
    match bytes.try_get_u8() {
        Ok(0) => Ok(false),
        Ok(1) => Ok(true),
        Ok(_) | Err(_) => Err(GroupRowError::Damaged),
    }
}

fn take_optional(bytes: &mut Bytes) -> Result<Option<Arc<str>>, GroupRowError> {
    if take_presence(bytes)? { take_text(bytes).map(Some) } else { Ok(None) }
}

fn take_i32(bytes: &mut Bytes) -> Result<i32, GroupRowError> {
    bytes.try_get_i32().map_err(|_| GroupRowError::Damaged)
}

fn take_i64(bytes: &mut Bytes) -> Result<i64, GroupRowError> {
    bytes.try_get_i64().map_err(|_| GroupRowError::Damaged)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snapshot(rebalance: Option<Rebalance>) -> GroupRow {
        let snapshot = GroupSnapshot {
            protocol_type: Arc::from("consumer"),
            generation: 7,
            protocol: Some(Arc::from("range")),
            leader: Some(Arc::from("m")),
            since: Timestamp::from_millis(5),
            rebalance,
            members: Vec::new(),
        };
        GroupRow::group(&Arc::from("g"), snapshot)
    }

    #[test]
    fn a_row_from_before_rebalances_were_kept_is_read_and_one_of_the_future_is_not() {
        let row = snapshot(None);
        let mut old = row.value().unwrap().to_vec();
        assert_eq!(old.pop(), Some(0), "no rebalance");
        old[0] = GROUP_VERSION_OLD;
        assert_eq!(GroupRow::decode_group(&row.key(), Bytes::from(old)), Ok(row.clone()));
        let mut newer = row.value().unwrap().to_vec();
        newer[0] = GROUP_VERSION + 1;
        let refused = GroupRow::decode_group(&row.key(), Bytes::from(newer));
        assert_eq!(refused, Err(GroupRowError::Version(GROUP_VERSION + 1)));
    }

    #[test]
    fn each_cause_is_read_as_it_was_written() {
        let member = RebalanceMember {
            id: Arc::from("m"),
            instance: Some(Arc::from("i")),
            client_id: Arc::from("app"),
            client_host: Arc::from("/10.0.0.7"),
        };
        for cause in RebalanceCause::ALL {
            for member in [None, Some(member.clone())] {
                let row = snapshot(Some(Rebalance {
                    cause,
                    at: Timestamp::from_millis(9),
                    generation: 6,
                    member,
                    client_reason: Arc::from("poll timeout"),
                }));
                let value = row.value().unwrap();
                assert_eq!(GroupRow::decode_group(&row.key(), value), Ok(row));
            }
        }
    }
}
