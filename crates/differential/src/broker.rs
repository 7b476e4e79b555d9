//! One of the two brokers, as the script sees it: a connection, and what it has said so far.
//!
//! What a broker makes up (ids, ports, the time) can't be equal on both sides. It is remembered here
//! and replaced by a name in all answers: the same thing has the same name on both sides.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context;
use bytes::{Buf, Bytes, BytesMut};
use strandline_wire::produce::message::Response;
use strandline_wire::{
    Api, ApiKey, KafkaString, KafkaUuid, Message, RequestHeader, metadata, read_response,
    topic_id_from_wire, write_request,
};

use crate::socket::{Reply, Socket};
use crate::tree::{self, Fields};

/// How long an answer may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// After this long without a word a broker that should not answer has not.
pub(crate) const SILENCE: Duration = Duration::from_millis(300);

/// One of the two brokers.
#[derive(Debug)]
pub(crate) struct Broker {
    address: String,
    socket: Option<Socket>,
    next_correlation_id: i32,
    /// Topic ids by name.
    topics: BTreeMap<String, KafkaUuid>,
    /// Values that differ by nature, and what they are called instead.
    names: BTreeMap<String, String>,
    /// The fetch session of the last answer that opened one.
    pub(crate) session_id: i32,
    /// Ids of group members, by the name that the script knows them by.
    members: BTreeMap<String, KafkaString>,
    /// The base offset of the last batch that was appended, by topic, id and partition.
    bases: BTreeMap<(String, KafkaUuid, i32), i64>,
}

/// What a broker did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It answered; these are the fields.
    Answer(Fields),
    /// It answered with something that is no response.
    Garbled(String),
    /// It closed the connection.
    Closed,
    /// It said nothing.
    Silence,
}

impl Broker {
    pub(crate) fn new(address: &str) -> Self {
        Self {
            address: address.to_owned(),
            socket: None,
            next_correlation_id: 1,
            topics: BTreeMap::new(),
            names: BTreeMap::new(),
            session_id: 0,
            members: BTreeMap::new(),
            bases: BTreeMap::new(),
        }
    }

    /// The id of a topic that [`Broker::learn`] has met; the all-zero id for others.
    pub(crate) fn topic_id(&self, name: &str) -> KafkaUuid {
        self.topics.get(name).copied().unwrap_or(KafkaUuid::ZERO)
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// Whether [`Broker::learn`] has met a topic, all of whose partitions have a leader.
    pub(crate) fn has_topic(&self, name: &str) -> bool {
        self.topics.contains_key(name)
    }

    /// Asks for the ids of all topics, and remembers them by name.
    pub(crate) fn learn(&mut self) -> anyhow::Result<()> {
        let api = ApiKey::Metadata.served().at(12).context("Metadata 12 is served")?;
        let request = metadata::Request { topics: None, ..Default::default() };
        let frame = self.exchange(api, &request, PATIENCE);
        let Reply::Frame(frame) = frame else { anyhow::bail!("no metadata: {frame:?}") };
        let (_, response): (_, metadata::Response) = read_response(Bytes::from(frame), api)?;
        if let Some(id) = response.cluster_id {
            self.names.insert(id.to_string(), "<cluster>".to_owned());
        }
        self.topics.clear();
        for topic in response.topics {
            let name = topic.name.context("a topic has a name")?.to_string();
            self.call_topic(topic.topic_id, &name);
            if topic.error_code == 0 && topic.partitions.iter().all(|found| found.leader_id >= 0) {
                self.topics.insert(name, topic.topic_id);
            }
        }
        Ok(())
    }

    /// Names a topic id, however it is printed.
    pub(crate) fn call_topic(&mut self, id: KafkaUuid, name: &str) {
        if id == KafkaUuid::ZERO {
            return;
        }
        let called = format!("<id of {name}>");
        self.names.insert(id.inner().to_string(), called.clone());
        self.names.insert(topic_id_from_wire(id).to_string(), called);
    }

    /// Names a member's id that the broker has made up.
    pub(crate) fn call_member(&mut self, id: &KafkaString, name: &str) {
        // One that the script itself has chosen needs no name.
        if id.len() > 8 {
            self.names.insert(id.to_string(), format!("<member {name}>"));
        }
        self.members.insert(name.to_owned(), id.clone());
    }

    /// The id of a member that was named; its name for one that was not.
    pub(crate) fn member(&self, name: &str) -> KafkaString {
        self.members.get(name).cloned().unwrap_or_else(|| KafkaString::from(name.to_owned()))
    }

    /// Tells base offsets by their distance from the one before: a batch that only one side took
    /// is one difference, not one in each answer after it.
    pub(crate) fn relate_offsets(&mut self, response: &Response, fields: &mut Fields) {
        fields.retain(|path, _| !path.ends_with(".base_offset"));
        for topic in &response.responses {
            for partition in &topic.partition_responses {
                let at = (topic.name.to_string(), topic.topic_id, partition.index);
                let path = format!("base_offset[{}][{}]", topic.name, partition.index);
                let told = if partition.base_offset < 0 {
                    "none".to_owned()
                } else {
                    let last = self.bases.insert(at, partition.base_offset).unwrap_or(0);
                    format!("{:+}", partition.base_offset - last)
                };
                fields.insert(path, told);
            }
        }
    }

    /// Sends a request and decodes its answer.
    pub(crate) fn ask<M: Message>(
        &mut self,
        api: Api,
        request: &impl Message,
        patience: Duration,
        inspect: impl FnOnce(&mut Self, &M, &mut Fields),
    ) -> Outcome {
        match self.exchange(api, request, patience) {
            Reply::Closed => Outcome::Closed,
            Reply::Silence => Outcome::Silence,
            Reply::Frame(frame) => match read_response::<M>(Bytes::from(frame), api) {
                Err(error) => Outcome::Garbled(error.to_string()),
                Ok((_, message)) => {
                    let mut fields = tree::fields(&message);
                    inspect(self, &message, &mut fields);
                    Outcome::Answer(self.named(fields))
                }
            },
        }
    }

    /// Sends a header with any body and says only whether there was an answer.
    pub(crate) fn provoke(&mut self, api: Api, body: &[u8], patience: Duration) -> Reply {
        let mut frame = self.header(api);
        frame.extend_from_slice(body);
        self.deliver(&frame, patience)
    }

    /// Sends bytes on a connection of their own and says what came of it.
    pub(crate) fn provoke_raw(
        &mut self,
        bytes: &[u8],
        patience: Duration,
    ) -> anyhow::Result<Reply> {
        let mut socket = Socket::connect(&self.address)?;
        if !socket.send_raw(bytes) {
            return Ok(Reply::Closed);
        }
        Ok(socket.receive(patience))
    }

    fn exchange(&mut self, api: Api, request: &impl Message, patience: Duration) -> Reply {
        let mut body = BytesMut::new();
        request.encode(&mut body, api.version()).expect("the script fits its versions");
        self.provoke(api, &body, patience)
    }

    fn deliver(&mut self, frame: &[u8], patience: Duration) -> Reply {
        let mut socket = match self.socket.take() {
            Some(socket) => socket,
            None => match Socket::connect(&self.address) {
                Ok(socket) => socket,
                Err(_) => return Reply::Closed,
            },
        };
        if !socket.send(frame) {
            return Reply::Closed;
        }
        let reply = socket.receive(patience);
        // After silence the connection would be out of step.
        if matches!(reply, Reply::Frame(_)) {
            self.socket = Some(socket);
        }
        reply
    }

    /// A request header of any version.
    fn header(&mut self, api: Api) -> BytesMut {
        let correlation_id = self.next_correlation_id;
        self.next_correlation_id += 1;
        let client_id = Some(KafkaString::from_static("differential"));
        let header = RequestHeader { api, correlation_id, client_id };
        let mut frame = BytesMut::new();
        write_request(&mut frame, &header, &Nothing).expect("a header always fits");
        frame.advance(4);
        frame
    }

    /// Replaces what differs by nature by its name.
    fn named(&self, fields: Fields) -> Fields {
        let rename = |text: String| match self.names.get(&text) {
            Some(name) => name.clone(),
            None => text,
        };
        let path = |path: String| {
            if !path.contains('[') {
                return path;
            }
            self.names.iter().filter(|(value, _)| value.len() > 8).fold(
                path,
                |path, (value, name)| {
                    let path = path.replace(&format!("[{value}]"), &format!("[{name}]"));
                    path.replace(&format!("[{value}#"), &format!("[{name}#"))
                },
            )
        };
        fields.into_iter().map(|(at, value)| (path(at), rename(value))).collect()
    }
}

/// A request without a body: what follows the header is the script's.
#[derive(Debug)]
struct Nothing;

impl Message for Nothing {
    const KEY: ApiKey = ApiKey::ApiVersions;

    fn decode(_: Bytes, _: i16) -> Result<Self, strandline_wire::DecodeError> {
        Ok(Self)
    }

    fn encode(&self, _: &mut BytesMut, _: i16) -> Result<(), strandline_wire::EncodeError> {
        Ok(())
    }

    fn encoded_len(&self, _: i16) -> Result<usize, strandline_wire::EncodeError> {
        Ok(0)
    }
}
