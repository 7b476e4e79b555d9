//! What a member of a classic consumer group was assigned: bytes that only clients understand.

use bytes::{Buf, Bytes};
use strandline_model::PartitionIndex;

/// The partitions of each topic in a `ConsumerProtocolAssignment`, any version; `None` for bytes of
/// another protocol. What follows the partitions (user data) is not looked at.
pub(crate) fn assigned(mut bytes: Bytes) -> Option<Vec<(String, Vec<i32>)>> {
    let _version = bytes.try_get_i16().ok()?;
    let count = length(bytes.try_get_i32().ok()?)?;
    let mut topics = Vec::new();
    for _ in 0..count {
        let name_length = usize::try_from(bytes.try_get_i16().ok()?).ok()?;
        if bytes.remaining() < name_length {
            return None;
        }
        let name = String::from_utf8(bytes.split_to(name_length).to_vec()).ok()?;
        let partition_count = length(bytes.try_get_i32().ok()?)?;
        let mut partitions = Vec::new();
        for _ in 0..partition_count {
            let partition = bytes.try_get_i32().ok()?;
            PartitionIndex::from_wire(partition)?;
            partitions.push(partition);
        }
        topics.push((name, partitions));
    }
    Some(topics)
}

/// The length of an array; a null one is empty.
fn length(length: i32) -> Option<usize> {
    if length == -1 { Some(0) } else { usize::try_from(length).ok() }
}

#[cfg(test)]
mod tests {
    use bytes::{BufMut, BytesMut};

    use super::*;

    fn encoded() -> BytesMut {
        let mut bytes = BytesMut::new();
        bytes.put_i16(3);
        bytes.put_i32(1);
        bytes.put_i16(3);
        bytes.put_slice(b"abc");
        bytes.put_i32(2);
        bytes.put_i32(0);
        bytes.put_i32(7);
        bytes.put_i32(-1);
        bytes
    }

    #[test]
    fn partitions_are_read() {
        let expected = vec![("abc".to_owned(), vec![0, 7])];
        assert_eq!(assigned(encoded().freeze()), Some(expected));
    }

    #[test]
    fn bytes_that_are_cut_or_of_another_protocol_are_nothing() {
        let whole = encoded().freeze();
        // The user data behind the partitions is not looked at.
        for length in 0..whole.len() - 4 {
            assert_eq!(assigned(whole.slice(..length)), None, "{length}");
        }
        assert_eq!(assigned(Bytes::from_static(b"\x00\x00\x7f\xff\xff\xff{}")), None);
        assert_eq!(assigned(Bytes::from_static(b"\x00\x00\xff\xff\xff\xfe")), None);
    }
}
