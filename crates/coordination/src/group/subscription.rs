//! The topics in a consumer's subscription.

use std::collections::BTreeSet;

/// The topics that a consumer's metadata names (`ConsumerProtocolSubscription`); `None` when it
/// can't be read.
///
/// Read as version 0, of which every later version is a continuation.
pub(super) fn subscribed_topics(metadata: &[u8]) -> Option<BTreeSet<String>> {
    let mut rest = metadata;
    if take_i16(&mut rest)? < 0 {
        return None;
    }
    let count = take_i32(&mut rest)?;
    let mut topics = BTreeSet::new();
    // Not reserved: the count is the client's word.
    for _ in 0..count.max(0) {
        let length = usize::try_from(take_i16(&mut rest)?).ok()?;
        let (topic, after) = rest.split_at_checked(length)?;
        topics.insert(String::from_utf8_lossy(topic).into_owned());
        rest = after;
    }
    let user_data = take_i32(&mut rest)?;
    let is_there = usize::try_from(user_data).is_ok_and(|bytes| bytes <= rest.len());
    (user_data == -1 || is_there).then_some(topics)
}

fn take_i16(rest: &mut &[u8]) -> Option<i16> {
    let (bytes, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(i16::from_be_bytes(*bytes))
}

fn take_i32(rest: &mut &[u8]) -> Option<i32> {
    let (bytes, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(i32::from_be_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topics(metadata: &[u8]) -> Option<Vec<String>> {
        subscribed_topics(metadata).map(|topics| topics.into_iter().collect())
    }

    #[test]
    fn topics_are_read_from_every_version() {
        let v0 = b"\0\0\0\0\0\x02\0\x01b\0\x01a\xff\xff\xff\xff";
        assert_eq!(topics(v0).unwrap(), ["a", "b"]);
        let v3 = b"\0\x03\0\0\0\x01\0\x01a\0\0\0\x02xx\0\0\0\0\0\0\0\x07\xff\xff";
        assert_eq!(topics(v3).unwrap(), ["a"]);
    }

    #[test]
    fn what_is_no_subscription_is_not_known() {
        for bad in
            [&b""[..], b"\0", b"\xff\xff\0\0\0\0\0\0\0\0", b"\0\0\x7f\xff\xff\xff\0\x01a", b"meta"]
        {
            assert_eq!(topics(bad), None, "{bad:?}");
        }
    }
}
