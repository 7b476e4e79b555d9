"""kafka-python: a client all in Python, with a codec of its own, against what librdkafka wrote."""

from collections.abc import Iterator

import pytest
from broker import Broker
from clients import Record, consume, create_topic, produce
from kafka import KafkaConsumer, KafkaProducer, TopicPartition


@pytest.fixture
def reader(broker: Broker) -> Iterator[KafkaConsumer]:
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap, group_id=None, auto_offset_reset="earliest")
    yield consumer
    consumer.close()


def read(reader: KafkaConsumer, topic: str, count: int) -> list:
    partition = TopicPartition(topic, 0)
    reader.assign([partition])
    reader.seek_to_beginning(partition)
    found: list = []
    while len(found) < count:
        polled = reader.poll(timeout_ms=20_000)
        assert polled, f"{len(found)} of {count} records"
        found += polled[partition]
    return found


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_both_clients_read_what_the_other_wrote(broker: Broker, topic: str, reader: KafkaConsumer, codec: str) -> None:
    values = [f"value {i} ".encode() * 10 for i in range(500)]
    produce(broker.bootstrap, topic, [Record(value, b"c") for value in values], compression_codec=codec)
    compression = None if codec == "none" else codec
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap, compression_type=compression, linger_ms=5)
    for value in values:
        producer.send(topic, value=value, key=b"p", headers=[("h", b"1"), ("h", b"2")], partition=0)
    producer.flush(timeout=30)
    producer.close()
    expected = [(b"c", value) for value in values] + [(b"p", value) for value in values]
    assert [(r.key, r.value) for r in read(reader, topic, 1000)] == expected
    assert [(r.key, r.value) for r in consume(broker.bootstrap, topic)] == expected


def test_offsets_and_bounds(broker: Broker, topic_name: str, reader: KafkaConsumer) -> None:
    create_topic(broker.bootstrap, topic_name, partitions=2)
    produce(broker.bootstrap, topic_name, [Record(b"v", timestamp=1000 + i) for i in range(10)])
    first, second = TopicPartition(topic_name, 0), TopicPartition(topic_name, 1)
    assert reader.beginning_offsets([first, second]) == {first: 0, second: 0}
    assert reader.end_offsets([first, second]) == {first: 10, second: 0}
    found = reader.offsets_for_times({first: 1004, second: 1004})
    assert (found[first].offset, found[first].timestamp, found[second]) == (4, 1004, None)
