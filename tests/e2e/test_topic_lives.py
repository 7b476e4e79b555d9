"""Topics that come and go while clients are at work, and names that can be none."""

import time
from collections.abc import Callable

import pytest
from broker import Broker
from clients import QUIET, Record, admin, bounds, consume, create_topic, created_topic, delete_topic, produce, topic_names
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import ConfigResource, ConfigSource, NewTopic, ResourceType
from deadline import wait_until

IMPOSSIBLE = [".", "..", "a/b", "a b", "../../x", "größe", "x" * 250]


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_a_name_that_can_be_none_is_refused_for_good(broker: Broker, name: str) -> None:
    topic = NewTopic(name, num_partitions=1, replication_factor=1)
    with pytest.raises(KafkaException) as refused:
        admin(broker.bootstrap).create_topics([topic])[name].result(timeout=20)
    assert refused.value.args[0].code() == KafkaError.TOPIC_EXCEPTION
    assert refused.value.args[0].str().startswith("Topic name is invalid: ")
    # A producer that names it gives up at once: it does not ask again until its records expire.
    with pytest.raises(KafkaException) as refused:
        produce(broker.bootstrap, name, [Record(b"v")], message_timeout_ms=300_000)
    assert refused.value.args[0].code() == KafkaError.TOPIC_EXCEPTION
    assert name not in topic_names(broker.bootstrap)


def test_the_longest_name_is_one(broker: Broker) -> None:
    name = "y" * 249
    create_topic(broker.bootstrap, name)
    produce(broker.bootstrap, name, [Record(b"v")])
    assert [record.value for record in consume(broker.bootstrap, name)] == [b"v"]


def test_only_what_was_set_is_told_as_set(broker: Broker, topic_name: str) -> None:
    wanted = {"retention.ms": "-1", "cleanup.policy": "compact,delete", "segment.bytes": "1048576"}
    create_topic(broker.bootstrap, topic_name, **{key.replace(".", "_"): value for key, value in wanted.items()})
    resource = ConfigResource(ResourceType.TOPIC, topic_name)
    entries = admin(broker.bootstrap).describe_configs([resource])[resource].result(timeout=20).values()
    told = {entry.name: entry.value for entry in entries if entry.source == ConfigSource.DYNAMIC_TOPIC_CONFIG.value}
    assert told == wanted


def test_who_reads_a_topic_that_is_not_there_does_not_make_it(broker: Broker, topic_name: str) -> None:
    reader = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": topic_name, **QUIET})
    reader.subscribe([topic_name])
    told: list[int] = []

    def is_told() -> bool:
        message = reader.poll(0.2)
        if message is not None:
            told.append(message.error().code())
        return bool(told)

    try:
        wait_until("it is told", is_told, seconds=30)
        assert told == [KafkaError.UNKNOWN_TOPIC_OR_PART]
        with pytest.raises(KafkaException) as refused:
            reader.get_watermark_offsets(TopicPartition(topic_name, 0), timeout=3)
        assert refused.value.args[0].code() in (KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._UNKNOWN_PARTITION)
    finally:
        reader.close()
    assert topic_name not in topic_names(broker.bootstrap)


def test_the_first_records_of_many_producers_find_new_topics(broker: Broker, topic_name: str) -> None:
    names = [f"{topic_name}-{i}" for i in range(5)]
    errors: list[str] = []
    settings = {"bootstrap.servers": broker.bootstrap, "retries": 0, **QUIET}
    producers = [Producer(settings) for _ in range(20)]
    for number, producer in enumerate(producers):
        for name in names:
            producer.produce(name, b"%d" % number, partition=0, on_delivery=lambda error, _: error and errors.append(str(error)))
    left = [producer.flush(30) for producer in producers]
    assert (errors, left) == ([], [0] * 20)
    for name in names:
        assert sorted(int(record.value) for record in consume(broker.bootstrap, name)) == list(range(20))


def test_a_producer_goes_on_in_the_topic_that_took_the_name(broker: Broker, topic: str) -> None:
    # A topic that was never made is not made by this producer, so the only one is the one made below.
    settings = {"bootstrap.servers": broker.bootstrap, "linger.ms": 1, "message.timeout.ms": 60_000, **QUIET}
    producer = Producer({**settings, "allow.auto.create.topics": False, "topic.metadata.refresh.interval.ms": 1000})
    acknowledged: list[int] = []
    sent = 0

    def produce_until(what: str, condition: Callable[[], bool]) -> None:
        nonlocal sent
        deadline = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < deadline, f"not within 60 s: {what}"
            if len(producer) < 100:
                producer.produce(
                    topic, b"%d" % sent, partition=0,
                    on_delivery=lambda error, message: error or acknowledged.append(int(message.value())),
                )
                sent += 1
            producer.poll(0.005)

    produce_until("records are written", lambda: len(acknowledged) > 100)
    delete_topic(broker.bootstrap, topic)
    until = sent + 50
    produce_until("it goes on meanwhile", lambda: sent >= until or len(producer) >= 100)
    wait_until("the name is free", lambda: created_topic(broker.bootstrap, topic))
    since = sent
    produce_until("it writes to the new one", lambda: bool(acknowledged) and acknowledged[-1] > since + 100)
    assert producer.flush(30) == 0
    found = {int(record.value) for record in consume(broker.bootstrap, topic)}
    assert {number for number in acknowledged if number >= since} <= found


def test_hundreds_of_topics_with_records_go_in_one_request(broker: Broker, topic_name: str) -> None:
    names = [f"{topic_name}-{i}" for i in range(300)]
    client = admin(broker.bootstrap)
    for future in client.create_topics([NewTopic(name, 1, 1) for name in names]).values():
        future.result(timeout=60)
    producer = Producer({"bootstrap.servers": broker.bootstrap, **QUIET})
    for name in names:
        producer.produce(name, b"v" * 1000, partition=0)
    assert producer.flush(60) == 0
    # Another client is served while they go.
    create_topic(broker.bootstrap, topic_name)
    deletions = client.delete_topics(names)
    produce(broker.bootstrap, topic_name, [Record(b"meanwhile")])
    for future in deletions.values():
        future.result(timeout=60)
    wait_until("all are gone", lambda: not set(names) & topic_names(broker.bootstrap))
    assert bounds(broker.bootstrap, topic_name) == (0, 1)


def test_where_deletion_is_off_a_topic_stays_and_the_reason_is_told(make_broker: Callable[..., Broker], topic_name: str) -> None:
    broker = make_broker(delete_topic_enable=False).start()
    create_topic(broker.bootstrap, topic_name)
    with pytest.raises(KafkaException) as refused:
        delete_topic(broker.bootstrap, topic_name)
    assert refused.value.args[0].code() == KafkaError.TOPIC_DELETION_DISABLED
    assert topic_name in topic_names(broker.bootstrap)
