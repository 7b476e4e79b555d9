//! How requests name topics, and how responses name leaders.

use kacrab_protocol::{KafkaString, KafkaUuid};
use strandline_model::TopicId;

use crate::DecodeError;
use crate::reader::Reader;
use crate::writer::{Writer, varint_len};

/// A topic as Produce and Fetch name it: by name up to version 12, by id from 13 on (KIP-516).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum TopicRef {
    /// By name; any text that a peer may send.
    Name(KafkaString),
    /// By id.
    Id(TopicId),
}

/// Who leads a partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Leader {
    /// The broker's id.
    pub id: i32,
    /// The partition's leader epoch.
    pub epoch: i32,
}

/// Where a broker listens; named beside a [`Leader`] that the client may not know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeEndpoint {
    /// The broker's id.
    pub node_id: i32,
    /// Its advertised host.
    pub host: KafkaString,
    /// Its advertised port.
    pub port: i32,
    /// Its rack.
    pub rack: Option<KafkaString>,
}

/// The topic id that the generated messages carry.
pub fn topic_id_to_wire(id: TopicId) -> KafkaUuid {
    KafkaUuid::from_uuid(id.to_uuid())
}

/// The topic id of a generated message.
pub fn topic_id_from_wire(id: KafkaUuid) -> TopicId {
    TopicId::from_bytes(*id.inner().as_bytes())
}

impl TopicRef {
    pub(crate) fn read(reader: &mut Reader, by_id: bool) -> Result<Self, DecodeError> {
        if by_id { reader.topic_id().map(Self::Id) } else { reader.text().map(Self::Name) }
    }

    /// Writes the name or the id, whichever the version has; the other kind becomes "none", as
    /// Kafka writes it when it does not know the topic.
    pub(crate) fn write(&self, writer: &mut Writer<'_>, by_id: bool) {
        match (self, by_id) {
            (Self::Id(id), true) => writer.bytes(id.as_bytes()),
            (Self::Name(_), true) => writer.bytes(TopicId::ZERO.as_bytes()),
            (Self::Name(name), false) => writer.text(name),
            (Self::Id(_), false) => writer.text(&KafkaString::default()),
        }
    }
}

impl Leader {
    /// Id, epoch, and no tagged fields.
    const BYTES: usize = 9;

    pub(crate) fn write_tagged(self, writer: &mut Writer<'_>, tag: u32) {
        writer.tag(tag, Self::BYTES);
        writer.int32(self.id);
        writer.int32(self.epoch);
        writer.no_tagged_fields();
    }
}

impl NodeEndpoint {
    fn encoded_len(&self) -> usize {
        let text = |text: &KafkaString| varint_len(text.len() + 1) + text.len();
        9 + text(&self.host) + self.rack.as_ref().map_or(1, text)
    }

    fn write(&self, writer: &mut Writer<'_>) {
        writer.int32(self.node_id);
        writer.text(&self.host);
        writer.int32(self.port);
        writer.nullable_text(self.rack.as_ref());
        writer.no_tagged_fields();
    }

    /// Writes the tagged fields that end a response of Produce or Fetch: these endpoints, or none.
    pub(crate) fn write_all(endpoints: &[Self], writer: &mut Writer<'_>) {
        if endpoints.is_empty() {
            return writer.no_tagged_fields();
        }
        writer.unsigned_varint(1);
        let elements: usize = endpoints.iter().map(Self::encoded_len).sum();
        writer.tag(0, varint_len(endpoints.len() + 1) + elements);
        writer.length(endpoints.len());
        for endpoint in endpoints {
            endpoint.write(writer);
        }
    }
}
