//! What a change of a group looks like in `__consumer_offsets`: the record formats of Kafka's group
//! coordinator, which monitoring tools read.
//!
//! Source: `OffsetCommitKey` v1, `OffsetCommitValue` v1 and v4, `GroupMetadataKey` v2 and
//! `GroupMetadataValue` v3 of Apache Kafka 4.4; the tests hold what it writes.

use bytes::{BufMut, Bytes, BytesMut};
use strandline_model::{Timestamp, TopicId};

use super::offsets::CommittedOffset;
use super::row::{GroupRow, GroupSnapshot, MemberSnapshot};

const OFFSET_KEY: i16 = 1;
const GROUP_KEY: i16 = 2;
/// The only version that carries a time of expiry, which clients stopped sending long ago.
const OFFSET_VALUE_EXPIRING: i16 = 1;
const OFFSET_VALUE: i16 = 4;
const GROUP_VALUE: i16 = 3;

/// A record of `__consumer_offsets`. Without a value it says that what the key names is gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedRecord {
    /// What it is about.
    pub key: Bytes,
    /// What is so from now on.
    pub value: Option<Bytes>,
}

impl GroupRow {
    /// The record that tells of this row; `topic` is the name of an offset's topic.
    ///
    /// `None` when some text is longer than the format can carry.
    pub fn feed_record(&self, topic: &str) -> Option<FeedRecord> {
        let mut key = BytesMut::new();
        let value = match self {
            Self::Offset(at, offset) => {
                key.put_i16(OFFSET_KEY);
                put_text(&mut key, &at.group)?;
                put_text(&mut key, topic)?;
                key.put_i32(at.partition);
                match offset {
                    Some(offset) => Some(offset_value(at.topic_id, offset)?),
                    None => None,
                }
            }
            Self::Group(group, snapshot) => {
                key.put_i16(GROUP_KEY);
                put_text(&mut key, group)?;
                match snapshot {
                    Some(snapshot) => Some(group_value(snapshot)?),
                    None => None,
                }
            }
        };
        Some(FeedRecord { key: key.freeze(), value })
    }

    /// The group that it is about.
    pub fn group_id(&self) -> &str {
        match self {
            Self::Group(group, _) => group,
            Self::Offset(key, _) => &key.group,
        }
    }
}

/// The partition of `__consumer_offsets`, of so many, that tells of a group: by Java's hash of its
/// id, so that a tool finds it where it expects it.
///
/// # Panics
/// When there are no partitions.
pub fn feed_partition(group: &str, partitions: u32) -> u32 {
    let hash = group
        .encode_utf16()
        .fold(0_i32, |hash, unit| hash.wrapping_mul(31).wrapping_add(i32::from(unit)));
    // Java's absolute value of the smallest number is taken as zero.
    hash.checked_abs().unwrap_or(0).unsigned_abs() % partitions
}

fn offset_value(topic_id: TopicId, offset: &CommittedOffset) -> Option<Bytes> {
    let mut value = BytesMut::new();
    if let Some(expires_at) = offset.expires_at {
        value.put_i16(OFFSET_VALUE_EXPIRING);
        value.put_i64(offset.offset);
        put_text(&mut value, &offset.metadata)?;
        put_time(&mut value, offset.committed_at);
        put_time(&mut value, expires_at);
        return Some(value.freeze());
    }
    value.put_i16(OFFSET_VALUE);
    value.put_i64(offset.offset);
    value.put_i32(offset.leader_epoch);
    put_compact_text(&mut value, &offset.metadata)?;
    put_time(&mut value, offset.committed_at);
    // One tagged field: number, length, the topic's id.
    value.put_slice(&[1, 0, 16]);
    value.put_slice(topic_id.as_bytes());
    Some(value.freeze())
}

fn group_value(snapshot: &GroupSnapshot) -> Option<Bytes> {
    let mut value = BytesMut::new();
    value.put_i16(GROUP_VALUE);
    put_text(&mut value, &snapshot.protocol_type)?;
    value.put_i32(snapshot.generation);
    put_optional_text(&mut value, snapshot.protocol.as_deref())?;
    put_optional_text(&mut value, snapshot.leader.as_deref())?;
    put_time(&mut value, snapshot.since);
    value.put_i32(i32::try_from(snapshot.members.len()).ok()?);
    for member in &snapshot.members {
        put_member(&mut value, member)?;
    }
    Some(value.freeze())
}

fn put_member(value: &mut BytesMut, member: &MemberSnapshot) -> Option<()> {
    put_text(value, &member.id)?;
    put_optional_text(value, member.instance.as_deref())?;
    put_text(value, &member.client_id)?;
    put_text(value, &member.client_host)?;
    value.put_i32(member.rebalance_timeout_ms);
    value.put_i32(member.session_timeout_ms);
    for bytes in [&member.subscription, &member.assignment] {
        value.put_i32(i32::try_from(bytes.len()).ok()?);
        value.put_slice(bytes);
    }
    Some(())
}

fn put_time(buf: &mut BytesMut, at: Timestamp) {
    buf.put_i64(at.as_millis());
}

fn put_text(buf: &mut BytesMut, text: &str) -> Option<()> {
    buf.put_i16(i16::try_from(text.len()).ok()?);
    buf.put_slice(text.as_bytes());
    Some(())
}

fn put_optional_text(buf: &mut BytesMut, text: Option<&str>) -> Option<()> {
    if let Some(text) = text {
        return put_text(buf, text);
    }
    buf.put_i16(-1);
    Some(())
}

/// A text whose length, plus one, is an unsigned varint.
fn put_compact_text(buf: &mut BytesMut, text: &str) -> Option<()> {
    let mut rest = u32::try_from(text.len()).ok()?.checked_add(1)?;
    while rest >= 0x80 {
        buf.put_u8(rest.to_le_bytes()[0] | 0x80);
        rest >>= 7;
    }
    buf.put_u8(rest.to_le_bytes()[0]);
    buf.put_slice(text.as_bytes());
    Some(())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::OffsetKey;
    use super::*;

    fn hex(text: &str) -> Bytes {
        let digit = |at| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
        (0..text.len()).step_by(2).map(digit).collect()
    }

    /// As Apache Kafka 4.4 wrote them for a librdkafka consumer.
    #[test]
    fn records_are_what_kafka_writes() {
        let group: Arc<str> = Arc::from("g1");
        let topic_id = hex("a6e965958757489882d4a2f73ea4f085");
        let key = OffsetKey {
            group: Arc::clone(&group),
            topic_id: TopicId::from_bytes(topic_id[..].try_into().unwrap()),
            partition: 0,
        };
        let offset = CommittedOffset {
            offset: 1,
            leader_epoch: 0,
            metadata: Arc::from("meta\0"),
            committed_at: Timestamp::from_millis(0x1a2_2b95_1f51),
            expires_at: None,
        };
        let record = GroupRow::Offset(key.clone(), Some(offset)).feed_record("t1").unwrap();
        assert_eq!(record.key, hex("0001000267310002743100000000"));
        let value = "0004000000000000000100000000066d65746100000001a22b951f51010010\
                     a6e965958757489882d4a2f73ea4f085";
        assert_eq!(record.value.unwrap(), hex(value));
        let gone = GroupRow::Offset(key, None).feed_record("t1").unwrap();
        assert_eq!((gone.key, gone.value), (record.key, None));

        let id: Arc<str> = Arc::from("cid-28e4d130-4606-4e9f-8990-01746550921e");
        let member = MemberSnapshot {
            id: Arc::clone(&id),
            instance: None,
            client_id: Arc::from("cid"),
            client_host: Arc::from("/127.0.0.1"),
            session_timeout_ms: 20_000,
            rebalance_timeout_ms: 300_000,
            subscription: hex("000300000001000274310000000000000000ffffffff0000"),
            assignment: hex("0000"),
        };
        let snapshot = GroupSnapshot {
            protocol_type: Arc::from("consumer"),
            generation: 1,
            protocol: Some(Arc::from("range")),
            leader: Some(id),
            since: Timestamp::from_millis(0x1a2_2b95_1bee),
            rebalance: None,
            members: vec![member],
        };
        let record = GroupRow::Group(group, Some(Box::new(snapshot))).feed_record("").unwrap();
        assert_eq!(record.key, hex("000200026731"));
        let value = "00030008636f6e73756d657200000001000572616e6765\
                     00286369642d32386534643133302d343630362d346539662d383939302d303137343635353039323165\
                     000001a22b951bee00000001\
                     00286369642d32386534643133302d343630362d346539662d383939302d303137343635353039323165\
                     ffff0003636964000a2f3132372e302e302e31000493e000004e20\
                     00000018000300000001000274310000000000000000ffffffff0000000000020000";
        assert_eq!(record.value.unwrap(), hex(value));
    }

    #[test]
    fn a_group_is_told_of_where_java_would_look() {
        // (group, its Java hash modulo 50)
        for (group, partition) in [("", 0), ("g1", 42), ("polygenelubricants", 0), ("ä€😀", 1)]
        {
            assert_eq!(feed_partition(group, 50), partition, "{group}");
        }
        assert_eq!(feed_partition("g1", 4), 2, "as Kafka did");
    }

    #[test]
    fn what_the_format_cannot_carry_is_left_out() {
        let long: Arc<str> = Arc::from("x".repeat(40_000));
        assert_eq!(GroupRow::Group(long, None).feed_record(""), None);
    }
}
