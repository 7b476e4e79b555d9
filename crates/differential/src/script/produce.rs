//! Produce: good batches, batches that break each rule, and idempotent sequences.

use bytes::{Bytes, BytesMut};
use strandline_model::{ProducerEpoch, ProducerId, Sequence, Timestamp};
use strandline_records::{
    Attributes, BatchBuilder, Codec, Compression, NewRecord, ProducerStamp, crc32c,
};
use strandline_wire::produce::message::{PartitionProduceData, Request, TopicProduceData};
use strandline_wire::{Api, ApiKey, KafkaString, KafkaUuid};

use super::{create, patience, text, topic, versions};
use crate::broker::{Broker, SILENCE};
use crate::run::Run;

/// The time of the first record: long ago, and the same on both sides.
pub(super) const TIME: i64 = 1_700_000_000_000;

pub(super) fn run(run: &mut Run) -> anyhow::Result<()> {
    let topics = [
        topic("stamped", 1, &[("message.timestamp.type", "LogAppendTime")]),
        topic("compacted", 1, &[("cleanup.policy", "compact")]),
        topic("small", 1, &[("max.message.bytes", "500")]),
        topic("strict", 1, &[("message.timestamp.before.max.ms", "1000")]),
    ];
    create(run, "topics with rules of their own", &topics)?;
    for api in versions(ApiKey::Produce) {
        let name = format!("produced-{}", api.version());
        create(run, "a topic to produce to", &[topic(&name, 2, &[])])?;
        good(run, api, &name);
        bad_requests(run, api, &name);
        bad_batches(run, api, &name);
        other_topics(run, api);
        idempotent(run, api, &name);
    }
    Ok(())
}

/// A case whose base offsets are compared by their distances.
fn ask(run: &mut Run, case: &str, api: Api, request: impl Fn(&Broker) -> Request) {
    run.inspect(case, api, patience(), request, Broker::relate_offsets);
}

/// The same, when there may be no answer.
fn ask_briefly(run: &mut Run, case: &str, api: Api, request: impl Fn(&Broker) -> Request) {
    run.inspect(case, api, SILENCE, request, Broker::relate_offsets);
}

/// `count` records, one millisecond after another.
pub(super) fn builder(count: usize) -> BatchBuilder {
    let mut builder = BatchBuilder::new();
    for (value, time) in VALUES.iter().cycle().take(count).zip(TIME..) {
        builder.push(NewRecord {
            timestamp: Some(Timestamp::from_millis(time)),
            key: Some(b"key"),
            value: Some(value),
            headers: &[],
        });
    }
    builder
}

const VALUES: [&[u8]; 3] = [b"one", b"two", b"three"];

/// A request with one batch.
pub(super) fn one(
    broker: &Broker,
    api: Api,
    name: &str,
    partition: i32,
    records: Option<Bytes>,
) -> Request {
    Request {
        acks: -1,
        timeout_ms: 5000,
        topic_data: vec![topic_data(broker, api, name, vec![data(partition, records)])],
        ..Default::default()
    }
}

fn data(index: i32, records: Option<Bytes>) -> PartitionProduceData {
    PartitionProduceData { index, records, ..Default::default() }
}

fn topic_data(
    broker: &Broker,
    api: Api,
    name: &str,
    partition_data: Vec<PartitionProduceData>,
) -> TopicProduceData {
    let by_id = api.version() >= 13;
    TopicProduceData {
        name: if by_id { KafkaString::default() } else { text(name) },
        topic_id: if by_id { broker.topic_id(name) } else { KafkaUuid::ZERO },
        partition_data,
        ..Default::default()
    }
}

fn batch(count: usize) -> Bytes {
    builder(count).build().freeze()
}

fn good(run: &mut Run, api: Api, name: &str) {
    for acks in [-1, 1] {
        ask(run, &format!("a batch, acks {acks}"), api, |broker| Request {
            acks,
            ..one(broker, api, name, 0, Some(batch(3)))
        });
    }
    ask(run, "a batch for another partition", api, |broker| {
        one(broker, api, name, 1, Some(batch(1)))
    });
    ask(run, "two partitions at once", api, |broker| Request {
        topic_data: vec![topic_data(
            broker,
            api,
            name,
            vec![data(0, Some(batch(1))), data(1, Some(batch(2)))],
        )],
        ..one(broker, api, name, 0, None)
    });
    for compression in [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd]
    {
        let codec = Codec::at_default_level(compression);
        ask(run, &format!("compressed with {compression:?}"), api, |broker| {
            one(broker, api, name, 0, Some(builder(3).build_compressed(codec).freeze()))
        });
    }
    ask(run, "no time", api, |broker| {
        let mut builder = BatchBuilder::new();
        builder.push(NewRecord { value: Some(b"timeless"), ..NewRecord::default() });
        one(broker, api, name, 0, Some(builder.build().freeze()))
    });
    ask(run, "null key and null value", api, |broker| {
        let mut builder = BatchBuilder::new();
        builder.push(NewRecord::default());
        one(broker, api, name, 0, Some(builder.build().freeze()))
    });
    ask_briefly(run, "a batch, acks 0, is not answered", api, |broker| Request {
        acks: 0,
        ..one(broker, api, name, 0, Some(batch(1)))
    });
}

fn bad_requests(run: &mut Run, api: Api, name: &str) {
    ask(run, "acks 2", api, |broker| Request {
        acks: 2,
        ..one(broker, api, name, 0, Some(batch(1)))
    });
    ask(run, "no topics", api, |_| Request { acks: -1, timeout_ms: 1000, ..Default::default() });
    ask(run, "no partitions", api, |broker| Request {
        topic_data: vec![topic_data(broker, api, name, Vec::new())],
        ..one(broker, api, name, 0, None)
    });
    ask(run, "an unknown topic", api, |broker| one(broker, api, "never-made", 0, Some(batch(1))));
    ask(run, "an impossible name", api, |broker| one(broker, api, "two words", 0, Some(batch(1))));
    for partition in [2, -1, i32::MAX] {
        ask(run, &format!("partition {partition}"), api, |broker| {
            one(broker, api, name, partition, Some(batch(1)))
        });
    }
    ask(run, "a partition twice", api, |broker| Request {
        topic_data: vec![topic_data(
            broker,
            api,
            name,
            vec![data(0, Some(batch(1))), data(0, Some(batch(1)))],
        )],
        ..one(broker, api, name, 0, None)
    });
    ask(run, "a good and an unknown partition", api, |broker| Request {
        topic_data: vec![topic_data(
            broker,
            api,
            name,
            vec![data(0, Some(batch(1))), data(9, Some(batch(1)))],
        )],
        ..one(broker, api, name, 0, None)
    });
    ask(run, "an unknown topic, acks 0, ends the connection", api, |broker| Request {
        acks: 0,
        ..one(broker, api, "never-made", 0, Some(batch(1)))
    });
    ask(run, "an internal topic", api, |broker| {
        one(broker, api, "__consumer_offsets", 0, Some(batch(1)))
    });
    ask(run, "a transactional id without a transaction", api, |broker| Request {
        transactional_id: Some(text("payments")),
        ..one(broker, api, name, 0, Some(batch(1)))
    });
    ask(run, "a transactional batch without an id", api, |broker| {
        let stamped = builder(1).producer(stamp(1, 0, 0)).transactional();
        one(broker, api, name, 0, Some(stamped.build().freeze()))
    });
}

/// A batch with some bytes of it changed, and its checksum made right again.
fn patched(at: usize, bytes: &[u8]) -> Bytes {
    let mut batch = builder(3).build();
    batch[at..at + bytes.len()].copy_from_slice(bytes);
    let crc = crc32c(&batch[21..]);
    batch[17..21].copy_from_slice(&crc.to_be_bytes());
    batch.freeze()
}

fn bad_batches(run: &mut Run, api: Api, name: &str) {
    let mut wrong_crc = BytesMut::from(&batch(3)[..]);
    wrong_crc[17] ^= 1;
    let mut wrong_value = BytesMut::from(&batch(3)[..]);
    wrong_value[70] ^= 1;
    let cut = batch(3).slice(..70);
    let header_only = batch(3).slice(..61);
    let two = [batch(1), batch(1)].concat();
    let followed = [&batch(1)[..], b"more"].concat();
    let control = builder(1).attributes(Attributes::from_bits(0x20));
    let append_time = builder(1).attributes(Attributes::from_bits(0x08));
    let unknown_codec = builder(1).attributes(Attributes::from_bits(0x05));
    let not_gzip = builder(1).attributes(Attributes::from_bits(0x01));
    for (case, records) in [
        ("no bytes", Some(Bytes::new())),
        ("bytes that are no batch", Some(Bytes::from_static(b"these are no record batches"))),
        ("a wrong checksum", Some(wrong_crc.freeze())),
        ("a changed record", Some(wrong_value.freeze())),
        ("a batch that is cut short", Some(cut)),
        ("a header without records", Some(header_only)),
        ("two batches", Some(two.into())),
        ("a batch and more", Some(followed.into())),
        ("magic 0", Some(patched(16, &[0]))),
        ("magic 1", Some(patched(16, &[1]))),
        ("magic 3", Some(patched(16, &[3]))),
        ("a base offset of 5", Some(patched(0, &5_i64.to_be_bytes()))),
        ("a base offset of -1", Some(patched(0, &(-1_i64).to_be_bytes()))),
        ("a length that is too small", Some(patched(8, &10_i32.to_be_bytes()))),
        ("a negative length", Some(patched(8, &(-1_i32).to_be_bytes()))),
        ("a length that is too large", Some(patched(8, &9999_i32.to_be_bytes()))),
        ("a leader epoch of 7", Some(patched(12, &7_i32.to_be_bytes()))),
        ("a last offset delta of 5", Some(patched(23, &5_i32.to_be_bytes()))),
        ("a last offset delta of -1", Some(patched(23, &(-1_i32).to_be_bytes()))),
        ("a count of 2 for 3", Some(patched(57, &2_i32.to_be_bytes()))),
        ("a count of 4 for 3", Some(patched(57, &4_i32.to_be_bytes()))),
        ("a count of 0", Some(patched(57, &0_i32.to_be_bytes()))),
        ("a count of -1", Some(patched(57, &(-1_i32).to_be_bytes()))),
        ("a maximum timestamp that is too low", Some(patched(35, &TIME.to_be_bytes()))),
        ("the control bit", Some(control.build().freeze())),
        ("the log append time bit", Some(append_time.build().freeze())),
        ("an unknown codec", Some(unknown_codec.build().freeze())),
        ("plain records called gzip", Some(not_gzip.build().freeze())),
    ] {
        ask(run, case, api, |broker| one(broker, api, name, 0, records.clone()));
    }
    ask_briefly(run, "null", api, |broker| one(broker, api, name, 0, None));
}

fn other_topics(run: &mut Run, api: Api) {
    for count in [1, 3] {
        ask(run, &format!("{count} records, stamped by the broker"), api, |broker| {
            one(broker, api, "stamped", 0, Some(batch(count)))
        });
    }
    ask(run, "keys for a compacted topic", api, |broker| {
        one(broker, api, "compacted", 0, Some(batch(2)))
    });
    ask(run, "no keys for a compacted topic", api, |broker| {
        let mut builder = builder(1);
        builder.push(NewRecord { value: Some(b"keyless"), ..NewRecord::default() });
        one(broker, api, "compacted", 0, Some(builder.build().freeze()))
    });
    for size in [300, 429, 430, 431, 432, 433, 434, 435, 436, 600] {
        ask(run, &format!("{size} bytes for a small topic"), api, |broker| {
            let mut builder = BatchBuilder::new();
            let value = vec![7; size];
            builder.push(NewRecord { value: Some(&value), ..NewRecord::default() });
            one(broker, api, "small", 0, Some(builder.build().freeze()))
        });
    }
    ask(run, "an old record for a strict topic", api, |broker| {
        one(broker, api, "strict", 0, Some(batch(2)))
    });
    ask(run, "a record of the far future", api, |broker| {
        let mut builder = builder(1);
        let timestamp = Some(Timestamp::from_millis(TIME * 10));
        builder.push(NewRecord { timestamp, ..NewRecord::default() });
        one(broker, api, "strict", 0, Some(builder.build().freeze()))
    });
}

fn stamp(id: i64, epoch: i16, sequence: i32) -> ProducerStamp {
    ProducerStamp {
        id: ProducerId::new(id),
        epoch: ProducerEpoch::from_wire(epoch).expect("not negative"),
        base_sequence: Sequence::from_wire(sequence),
    }
}

fn idempotent(run: &mut Run, api: Api, name: &str) {
    let mut send = |case: &str, id: i64, epoch: i16, sequence: i32, count: usize| {
        ask(run, case, api, |broker| {
            let batch = builder(count).producer(stamp(id, epoch, sequence)).build();
            one(broker, api, name, 0, Some(batch.freeze()))
        });
    };
    // The ids are the script's: a broker takes any that it has not seen in the partition.
    let id = 7_000_000 + i64::from(api.version());
    send("the first sequence", id, 0, 0, 2);
    send("the same again", id, 0, 0, 2);
    send("the next sequence", id, 0, 2, 3);
    send("an older one again", id, 0, 0, 2);
    send("a gap", id, 0, 9, 1);
    send("an overlap", id, 0, 4, 2);
    send("the same start, fewer records", id, 0, 2, 1);
    for sequence in 5..11 {
        send("one more", id, 0, sequence, 1);
    }
    send("one that is five batches old", id, 0, 6, 1);
    send("one that is forgotten", id, 0, 0, 2);
    send("a new epoch from 1", id, 1, 1, 1);
    send("a new epoch from 0", id, 1, 0, 1);
    send("the old epoch", id, 0, 11, 1);
    send("a new producer from 40", id + 1000, 0, 40, 1);
    send("it goes on", id + 1000, 0, 41, 1);
    send("no sequence", id + 2000, 0, -1, 1);
    send("the last sequence", id + 3000, 0, i32::MAX, 1);
    send("it wraps around", id + 3000, 0, 0, 1);
}
