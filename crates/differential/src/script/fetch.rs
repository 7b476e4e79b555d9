//! Fetch: offsets, limits, sessions, epochs.

use strandline_records::{BatchView, Codec, Compression, batches};
use strandline_wire::fetch::message::{
    FetchPartition, FetchTopic, ForgottenTopic, Request, Response,
};
use strandline_wire::{Api, ApiKey, KafkaString, KafkaUuid};

use super::produce::{builder, one};
use super::{create, newest, patience, text, topic, versions};
use crate::broker::Broker;
use crate::run::Run;
use crate::tree::Fields;

pub(super) fn run(run: &mut Run) -> anyhow::Result<()> {
    let stamped = [("message.timestamp.type", "LogAppendTime")];
    let topics = [topic("read", 2, &[]), topic("read-stamped", 1, &stamped), topic("bare", 1, &[])];
    create(run, "topics to read", &topics)?;
    let produce = newest(ApiKey::Produce);
    for count in [3, 1, 2] {
        for name in ["read", "read-stamped"] {
            run.case("records to read", produce, |broker| {
                one(broker, produce, name, 0, Some(builder(count).build().freeze()))
            });
        }
    }
    let zstd = [("compression.type", "zstd")];
    create(run, "topics with zstd", &[topic("made-zstd", 1, &zstd), topic("sent-zstd", 1, &[])])?;
    let codec = Codec::at_default_level(Compression::Zstd);
    for name in ["made-zstd", "sent-zstd"] {
        run.case("records of zstd", produce, |broker| {
            one(broker, produce, name, 0, Some(builder(2).build_compressed(codec).freeze()))
        });
    }
    for api in versions(ApiKey::Fetch) {
        positions(run, api);
        for name in ["made-zstd", "sent-zstd"] {
            ask(run, api, &format!("zstd from {name}"), |broker| {
                request(broker, api, name, vec![position(0, 0)])
            });
        }
        limits(run, api);
        if api.version() >= 7 {
            sessions(run, api);
        }
        if api.version() >= 9 {
            epochs(run, api);
        }
    }
    Ok(())
}

fn position(partition: i32, fetch_offset: i64) -> FetchPartition {
    FetchPartition { partition, fetch_offset, partition_max_bytes: 1 << 20, ..Default::default() }
}

fn topic_of(broker: &Broker, api: Api, name: &str, partitions: Vec<FetchPartition>) -> FetchTopic {
    let by_id = api.version() >= 13;
    FetchTopic {
        topic: if by_id { KafkaString::default() } else { text(name) },
        topic_id: if by_id { broker.topic_id(name) } else { KafkaUuid::ZERO },
        partitions,
        ..Default::default()
    }
}

/// A request that does not wait, without a session.
fn request(broker: &Broker, api: Api, name: &str, partitions: Vec<FetchPartition>) -> Request {
    Request {
        max_wait_ms: 0,
        min_bytes: 1,
        max_bytes: 10 << 20,
        topics: vec![topic_of(broker, api, name, partitions)],
        ..Default::default()
    }
}

fn ask(run: &mut Run, api: Api, case: &str, make: impl Fn(&Broker) -> Request) {
    run.inspect(case, api, patience(), make, |broker, response, fields| {
        if response.session_id > 0 {
            broker.session_id = response.session_id;
        }
        describe_records(response, fields);
    });
}

/// Replaces the records' bytes by the fields of their batches, without what the time changes.
fn describe_records(response: &Response, fields: &mut Fields) {
    fields.retain(|path, _| !path.ends_with(".records"));
    for topic in &response.responses {
        let name = match topic.topic.as_str() {
            "" => topic.topic_id.inner().to_string(),
            name => name.to_owned(),
        };
        for partition in &topic.partitions {
            let path = format!("records[{name}][{}]", partition.partition_index);
            let Some(records) = &partition.records else {
                fields.insert(path, "null".to_owned());
                continue;
            };
            let mut bytes = 0;
            for (position, batch) in batches(records).enumerate() {
                let described = match batch {
                    Ok(batch) => {
                        bytes += batch.bytes().len();
                        describe_batch(&batch)
                    }
                    Err(_) => "cut short".to_owned(),
                };
                fields.insert(format!("{path}.batch[{position}]"), described);
            }
            fields.insert(format!("{path}.bytes"), bytes.to_string());
        }
    }
}

fn describe_batch(batch: &BatchView<'_>) -> String {
    let attributes = batch.attributes();
    let by_broker = attributes.bits() & 0x08 != 0;
    let time = |millis: i64| if by_broker { "<now>".to_owned() } else { millis.to_string() };
    format!(
        "base {} epoch {:?} attributes {} delta {} time {}..{} producer {:?} count {} crc {} records {:?}",
        batch.raw_base_offset(),
        batch.leader_epoch(),
        attributes.bits(),
        batch.last_offset_delta(),
        batch.base_timestamp(),
        time(batch.max_timestamp().map_or(-1, strandline_model::Timestamp::as_millis)),
        batch.producer(),
        batch.records_count(),
        batch.check_crc().is_ok(),
        batch.records_bytes(),
    )
}

fn positions(run: &mut Run, api: Api) {
    for offset in [0, 1, 2, 3, 4, 5, 6, 7, -1, -2, i64::MIN, i64::MAX] {
        ask(run, api, &format!("from {offset}"), |broker| {
            request(broker, api, "read", vec![position(0, offset)])
        });
    }
    ask(run, api, "of an empty partition", |broker| {
        request(broker, api, "read", vec![position(1, 0)])
    });
    ask(run, api, "past an empty partition's end", |broker| {
        request(broker, api, "read", vec![position(1, 1)])
    });
    ask(run, api, "of two partitions", |broker| {
        request(broker, api, "read", vec![position(1, 0), position(0, 0)])
    });
    ask(run, api, "of a topic stamped by the broker", |broker| {
        request(broker, api, "read-stamped", vec![position(0, 0)])
    });
    ask(run, api, "of an unknown topic", |broker| {
        request(broker, api, "never-read", vec![position(0, 0)])
    });
    ask(run, api, "of an unknown topic and a known one", |broker| Request {
        topics: vec![
            topic_of(broker, api, "never-read", vec![position(0, 0)]),
            topic_of(broker, api, "read", vec![position(0, 0)]),
        ],
        ..request(broker, api, "read", Vec::new())
    });
    for partition in [9, -1] {
        ask(run, api, &format!("of partition {partition}"), |broker| {
            request(broker, api, "read", vec![position(partition, 0)])
        });
    }
    ask(run, api, "of a partition twice", |broker| {
        request(broker, api, "read", vec![position(0, 0), position(0, 3)])
    });
    ask(run, api, "of nothing", |broker| Request {
        topics: Vec::new(),
        ..request(broker, api, "read", Vec::new())
    });
}

fn limits(run: &mut Run, api: Api) {
    for max in [0, 1, 60, 100, 150, 200, 250, 300, -1] {
        ask(run, api, &format!("at most {max} bytes of the partition"), |broker| {
            let partition = FetchPartition { partition_max_bytes: max, ..position(0, 0) };
            request(broker, api, "read", vec![partition])
        });
        ask(run, api, &format!("at most {max} bytes"), |broker| Request {
            max_bytes: max,
            ..request(broker, api, "read", vec![position(0, 0)])
        });
    }
    for isolation_level in [1, 2, -1] {
        ask(run, api, &format!("isolation level {isolation_level}"), |broker| Request {
            isolation_level,
            ..request(broker, api, "read", vec![position(0, 0)])
        });
    }
    ask(run, api, "more bytes than there are, for 20 ms", |broker| Request {
        max_wait_ms: 20,
        min_bytes: 1 << 20,
        ..request(broker, api, "read", vec![position(0, 0)])
    });
    ask(run, api, "no bytes at all are enough", |broker| Request {
        max_wait_ms: 9_000,
        min_bytes: 0,
        ..request(broker, api, "read", vec![position(1, 0)])
    });
    ask(run, api, "an error does not wait", |broker| Request {
        max_wait_ms: 9_000,
        min_bytes: 1 << 20,
        ..request(broker, api, "read", vec![position(0, 99)])
    });
    ask(run, api, "a negative wait", |broker| Request {
        max_wait_ms: -1,
        ..request(broker, api, "read", vec![position(1, 0)])
    });
}

fn sessions(run: &mut Run, api: Api) {
    let with = |broker: &Broker, id: i32, epoch: i32, partitions: Vec<FetchPartition>| Request {
        session_id: id,
        session_epoch: epoch,
        ..request(broker, api, "read", partitions)
    };
    let nothing = |broker: &Broker, id: i32, epoch: i32| Request {
        topics: Vec::new(),
        ..with(broker, id, epoch, Vec::new())
    };
    ask(run, api, "an unknown session", |broker| with(broker, 4711, 1, vec![position(0, 0)]));
    ask(run, api, "a session that does not exist ends", |broker| nothing(broker, 4711, -1));
    ask(run, api, "a new session", |broker| {
        with(broker, 0, 0, vec![position(0, 0), position(1, 0)])
    });
    ask(run, api, "the session goes on", |broker| nothing(broker, broker.session_id, 1));
    ask(run, api, "the session's position moves", |broker| {
        with(broker, broker.session_id, 2, vec![position(0, 6)])
    });
    ask(run, api, "the session has nothing new", |broker| nothing(broker, broker.session_id, 3));
    ask(run, api, "the wrong epoch", |broker| nothing(broker, broker.session_id, 9));
    ask(run, api, "a partition leaves", |broker| Request {
        forgotten_topics_data: vec![forgotten(broker, api, "read", vec![1])],
        ..nothing(broker, broker.session_id, 4)
    });
    ask(run, api, "an unknown topic joins", |broker| Request {
        topics: vec![topic_of(broker, api, "never-read", vec![position(0, 0)])],
        ..nothing(broker, broker.session_id, 5)
    });
    ask(run, api, "a wrong offset joins", |broker| {
        with(broker, broker.session_id, 6, vec![position(1, 77)])
    });
    ask(run, api, "the session ends", |broker| nothing(broker, broker.session_id, -1));
    ask(run, api, "the session is gone", |broker| nothing(broker, broker.session_id, 7));
    ask(run, api, "a session of nothing", |broker| nothing(broker, 0, 0));
    ask(run, api, "no session at epoch 5", |broker| with(broker, 0, 5, vec![position(0, 0)]));
}

fn forgotten(broker: &Broker, api: Api, name: &str, partitions: Vec<i32>) -> ForgottenTopic {
    let by_id = api.version() >= 13;
    ForgottenTopic {
        topic: if by_id { KafkaString::default() } else { text(name) },
        topic_id: if by_id { broker.topic_id(name) } else { KafkaUuid::ZERO },
        partitions,
        ..Default::default()
    }
}

fn epochs(run: &mut Run, api: Api) {
    for epoch in [-2, 0, 1, 99] {
        ask(run, api, &format!("at leader epoch {epoch}"), |broker| {
            let partition = FetchPartition { current_leader_epoch: epoch, ..position(0, 0) };
            request(broker, api, "read", vec![partition])
        });
        if api.version() >= 12 {
            for offset in [0, 3, 6, 7, 50] {
                ask(run, api, &format!("epoch {epoch} was read up to {offset}"), |broker| {
                    let partition =
                        FetchPartition { last_fetched_epoch: epoch, ..position(0, offset) };
                    request(broker, api, "read", vec![partition])
                });
            }
        }
    }
}
