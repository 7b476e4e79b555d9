"""Records in, records out, through librdkafka: every codec, odd keys and values, sizes, many partitions."""

import time

import pytest
from broker import Broker
from clients import Record, bounds, consume, consumer, create_topic, produce
from confluent_kafka import KafkaError, KafkaException, TopicPartition

CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]
MIB = 1024 * 1024


@pytest.mark.parametrize("codec", CODECS)
def test_each_codec_comes_back_as_it_went(broker: Broker, topic: str, codec: str) -> None:
    records = [Record(f"value {i} ".encode() * 20, f"key {i}".encode()) for i in range(2000)]
    offsets = produce(broker.bootstrap, topic, records, compression_codec=codec)
    found = consume(broker.bootstrap, topic, check_crcs=True)
    assert offsets == list(range(2000))
    assert [(r.key, r.value, r.offset) for r in found] == [(r.key, r.value, i) for i, r in enumerate(records)]


def test_codecs_may_be_mixed_in_one_partition(broker: Broker, topic: str) -> None:
    for index, codec in enumerate(CODECS * 3):
        produce(broker.bootstrap, topic, [Record(f"{index} {codec}".encode() * 10)] * 3, compression_codec=codec)
    found = [record.value for record in consume(broker.bootstrap, topic, check_crcs=True)]
    assert found == [f"{i} {codec}".encode() * 10 for i, codec in enumerate(CODECS * 3) for _ in range(3)]


def test_null_is_not_empty(broker: Broker, topic: str) -> None:
    pairs = [(key, value) for key in (None, b"", b"k") for value in (None, b"", b"v")]
    produce(broker.bootstrap, topic, [Record(value, key) for key, value in pairs])
    assert [(r.key, r.value) for r in consume(broker.bootstrap, topic)] == pairs


def test_headers_may_repeat_and_be_null_or_empty(broker: Broker, topic: str) -> None:
    headers = (("a", b"1"), ("b", b""), ("a", b"2"), ("a", b"1"), ("", b"x"), ("n", None), ("ü", b"\xff\x00"))
    produce(broker.bootstrap, topic, [Record(b"v", headers=headers), Record(b"w")])
    assert [r.headers for r in consume(broker.bootstrap, topic)] == [headers, ()]


def test_timestamps_are_the_producers(broker: Broker, topic: str) -> None:
    stamps = [1_600_000_000_000, 1, 1_700_000_000_123, 1_650_000_000_000]
    produce(broker.bootstrap, topic, [Record(b"v", timestamp=stamp) for stamp in stamps])
    assert [r.timestamp for r in consume(broker.bootstrap, topic)] == stamps


def test_log_append_time_is_the_brokers(broker: Broker, topic_name: str) -> None:
    create_topic(broker.bootstrap, topic_name, message_timestamp_type="LogAppendTime")
    begun = int(time.time() * 1000)
    produce(broker.bootstrap, topic_name, [Record(b"v", timestamp=1), Record(b"w", timestamp=2)])
    assert all(record.timestamp >= begun for record in consume(broker.bootstrap, topic_name))
    reader = consumer(broker.bootstrap)
    try:
        [found] = reader.offsets_for_times([TopicPartition(topic_name, 0, begun)], timeout=10)
        assert found.offset == 0, "it is looked up by the broker's time as well"
    finally:
        reader.close()


def test_records_of_one_mebibyte(broker: Broker, topic_name: str) -> None:
    create_topic(broker.bootstrap, topic_name, max_message_bytes=2 * MIB)
    records = [Record(bytes([i]) * MIB) for i in range(20)]
    produce(broker.bootstrap, topic_name, records, message_max_bytes=4 * MIB)
    assert [r.value for r in consume(broker.bootstrap, topic_name)] == [r.value for r in records]


def test_a_record_over_the_first_fetch_size_is_still_served(broker: Broker, topic: str) -> None:
    produce(broker.bootstrap, topic, [Record(b"x" * 900_000), Record(b"y")])
    found = consume(broker.bootstrap, topic, fetch_max_bytes=1000, max_partition_fetch_bytes=1000, message_max_bytes=1000)
    assert [len(r.value) for r in found] == [900_000, 1]


def test_a_record_over_the_topics_limit_is_refused(broker: Broker, topic_name: str) -> None:
    create_topic(broker.bootstrap, topic_name, max_message_bytes=10_000)
    with pytest.raises(KafkaException) as refused:
        produce(broker.bootstrap, topic_name, [Record(b"x" * 20_000)])
    assert refused.value.args[0].code() == KafkaError.MSG_SIZE_TOO_LARGE
    assert bounds(broker.bootstrap, topic_name) == (0, 0)


def test_a_hundred_partitions(broker: Broker, topic_name: str) -> None:
    create_topic(broker.bootstrap, topic_name, partitions=100)
    records = [Record(f"{i}".encode() * 50, partition=i % 100) for i in range(10_000)]
    # Idempotence keeps the order when a batch is sent again.
    produce(broker.bootstrap, topic_name, records, enable_idempotence=True)
    found = consume(broker.bootstrap, topic_name, partitions=100, check_crcs=True)
    assert len(found) == len(records)
    for partition in range(100):
        values = [r.value for r in found if r.partition == partition]
        assert values == [r.value for r in records if r.partition == partition]


def test_acks_of_zero_arrive_too(broker: Broker, topic: str) -> None:
    produce(broker.bootstrap, topic, [Record(f"{i}".encode()) for i in range(500)], acks=0)
    # Nobody was told when they arrived; a later acknowledged record of the same partition says so.
    produce(broker.bootstrap, topic, [Record(b"last")])
    values = [r.value for r in consume(broker.bootstrap, topic)]
    assert sorted(values) == sorted([f"{i}".encode() for i in range(500)] + [b"last"])
