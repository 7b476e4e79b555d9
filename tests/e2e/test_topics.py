"""Topics through librdkafka's admin client: made, described, grown, deleted, made again."""

import pytest
from broker import Broker
from clients import Record, admin, bounds, consume, create_topic, created_topic, delete_topic, produce, topic_names
from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import ConfigResource, NewPartitions, NewTopic, ResourceType
from deadline import wait_until


def error_of(future) -> int:
    with pytest.raises(KafkaException) as refused:
        future.result(timeout=20)
    return refused.value.args[0].code()


def test_a_topic_is_there_as_soon_as_it_is_made(broker: Broker, topic_name: str) -> None:
    create_topic(broker.bootstrap, topic_name, partitions=3)
    described = admin(broker.bootstrap).list_topics(topic_name, timeout=10).topics[topic_name]
    assert sorted(described.partitions) == [0, 1, 2]
    assert {tuple(p.replicas) for p in described.partitions.values()} == {(p.leader,) for p in described.partitions.values()}


def test_refusals_have_kafkas_codes(broker: Broker, topic: str) -> None:
    client = admin(broker.bootstrap)

    def create(name: str, **settings: object) -> int:
        return error_of(client.create_topics([NewTopic(name, **{"num_partitions": 1, "replication_factor": 1, **settings})])[name])

    assert create(topic) == KafkaError.TOPIC_ALREADY_EXISTS
    assert create("no/slashes") == KafkaError.TOPIC_EXCEPTION
    assert create(f"{topic}-x", replication_factor=3) == KafkaError.INVALID_REPLICATION_FACTOR
    assert create(f"{topic}-y", config={"no.such.key": "1"}) == KafkaError.INVALID_CONFIG
    assert create(f"{topic}-z", config={"retention.ms": "soon"}) == KafkaError.INVALID_CONFIG
    assert error_of(client.delete_topics(["never-made"])["never-made"]) == KafkaError.UNKNOWN_TOPIC_OR_PART
    assert not {name for name in topic_names(broker.bootstrap) if name.startswith(f"{topic}-")}


def test_validate_only_makes_nothing(broker: Broker, topic_name: str) -> None:
    topic = NewTopic(topic_name, num_partitions=1, replication_factor=1)
    admin(broker.bootstrap).create_topics([topic], validate_only=True)[topic_name].result(timeout=20)
    assert topic_name not in topic_names(broker.bootstrap)


def test_a_topic_grows_and_never_shrinks(broker: Broker, topic_name: str) -> None:
    create_topic(broker.bootstrap, topic_name, partitions=2)
    produce(broker.bootstrap, topic_name, [Record(b"kept", partition=1)])
    client = admin(broker.bootstrap)
    client.create_partitions([NewPartitions(topic_name, 5)])[topic_name].result(timeout=20)
    produce(broker.bootstrap, topic_name, [Record(b"new", partition=4)])
    found = consume(broker.bootstrap, topic_name, partitions=5)
    assert sorted((r.partition, r.value) for r in found) == [(1, b"kept"), (4, b"new")]
    assert error_of(client.create_partitions([NewPartitions(topic_name, 3)])[topic_name]) == KafkaError.INVALID_PARTITIONS


def test_configs_are_described_with_their_source(broker: Broker, topic_name: str) -> None:
    create_topic(broker.bootstrap, topic_name, retention_ms=3_600_000, max_message_bytes=12_345)
    resource = ConfigResource(ResourceType.TOPIC, topic_name)
    configs = admin(broker.bootstrap).describe_configs([resource])[resource].result(timeout=20)
    assert (configs["retention.ms"].value, configs["retention.ms"].is_default) == ("3600000", False)
    assert configs["max.message.bytes"].value == "12345"
    assert (configs["cleanup.policy"].value, configs["cleanup.policy"].is_default) == ("delete", True)


def test_the_cluster_describes_itself(broker: Broker) -> None:
    cluster = admin(broker.bootstrap).describe_cluster().result(timeout=20)
    assert len(cluster.cluster_id) == 22
    assert [(node.host, node.port) for node in cluster.nodes] in ([("127.0.0.1", broker.port)], [("localhost", broker.port)])
    assert cluster.controller.id == cluster.nodes[0].id


def test_producing_to_an_unknown_topic_makes_it(broker: Broker, topic_name: str) -> None:
    produce(broker.bootstrap, topic_name, [Record(b"v")])
    assert [r.value for r in consume(broker.bootstrap, topic_name)] == [b"v"]


def topic_id(broker: Broker, name: str) -> str:
    described = admin(broker.bootstrap).describe_topics(TopicCollection([name]))[name].result(timeout=20)
    return str(described.topic_id)


def test_a_new_topic_under_an_old_name_meets_nothing_old(broker: Broker, topic_name: str) -> None:
    seen = set()
    for life in range(3):
        wait_until("the name is free", lambda: created_topic(broker.bootstrap, topic_name))
        wait_until("the topic is known", lambda: topic_name in topic_names(broker.bootstrap))
        assert bounds(broker.bootstrap, topic_name) == (0, 0)
        values = [f"life {life}: {i}".encode() for i in range(100)]
        offsets = produce(broker.bootstrap, topic_name, [Record(value) for value in values], enable_idempotence=True)
        assert offsets == list(range(100))
        assert [r.value for r in consume(broker.bootstrap, topic_name)] == values
        seen.add(topic_id(broker, topic_name))
        delete_topic(broker.bootstrap, topic_name)
        wait_until("the topic is gone", lambda: topic_name not in topic_names(broker.bootstrap))
    assert len(seen) == 3


@pytest.mark.strandline
def test_the_name_is_free_before_the_reply(broker: Broker, topic_name: str) -> None:
    for _ in range(20):
        create_topic(broker.bootstrap, topic_name, partitions=3)
        assert topic_name in topic_names(broker.bootstrap)
        produce(broker.bootstrap, topic_name, [Record(b"v")])
        delete_topic(broker.bootstrap, topic_name)
        assert topic_name not in topic_names(broker.bootstrap)


def test_a_hundred_topics_at_once(broker: Broker, topic_name: str) -> None:
    names = [f"{topic_name}-{i}" for i in range(100)]
    client = admin(broker.bootstrap)
    topics = [NewTopic(name, num_partitions=2, replication_factor=1) for name in names]
    for future in client.create_topics(topics).values():
        future.result(timeout=30)
    assert set(names) <= topic_names(broker.bootstrap)
    for future in client.delete_topics(names).values():
        future.result(timeout=30)
    wait_until("all are gone", lambda: not set(names) & topic_names(broker.bootstrap))
