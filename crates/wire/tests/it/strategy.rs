//! Random parts of messages.

use bytes::BytesMut;
use proptest::prelude::*;
use strandline_wire::{
    Api, ApiKey, KafkaString, Leader, NodeEndpoint, TopicRef, topic_id_from_wire,
};
use strandline_wire::{KafkaUuid, Message};

/// Any served version of `key`.
pub(crate) fn versions(key: ApiKey) -> impl Strategy<Value = Api> {
    let row = key.served();
    (row.min_version..=row.max_version).prop_map(|version| row.at(version).expect("served"))
}

pub(crate) fn text() -> impl Strategy<Value = KafkaString> {
    // Long enough that compact lengths need two bytes now and then.
    prop_oneof![9 => "[a-zü._-]{0,20}", 1 => "x{100,300}"].prop_map(KafkaString::from)
}

pub(crate) fn uuid() -> impl Strategy<Value = KafkaUuid> {
    any::<(u64, u64)>().prop_map(|(high, low)| KafkaUuid::from_parts(high, low))
}

/// Named as the version names topics.
pub(crate) fn topic(by_id: bool) -> BoxedStrategy<TopicRef> {
    if by_id {
        uuid().prop_map(|id| TopicRef::Id(topic_id_from_wire(id))).boxed()
    } else {
        text().prop_map(TopicRef::Name).boxed()
    }
}

pub(crate) fn leader() -> impl Strategy<Value = Leader> {
    (0_i32.., 0_i32..).prop_map(|(id, epoch)| Leader { id, epoch })
}

pub(crate) fn node_endpoint() -> impl Strategy<Value = NodeEndpoint> {
    (any::<i32>(), text(), any::<i32>(), prop::option::of(text()))
        .prop_map(|(node_id, host, port, rack)| NodeEndpoint { node_id, host, port, rack })
}

pub(crate) fn encoded(message: &impl Message, api: Api) -> BytesMut {
    let mut buf = BytesMut::new();
    message.encode(&mut buf, api.version()).expect("the message fits its version");
    buf
}
