"""Apache Kafka's own command-line tools that look after a broker."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from broker import Broker, Strandline
from clients import Record, admin, consume, create_topic, produce
from deadline import wait_until

Tool = Callable[..., str]


def node_id(broker: Broker) -> int:
    return next(iter(admin(broker.bootstrap).list_topics(timeout=30).brokers))


def test_a_topics_configuration_is_changed_and_described(broker: Broker, topic: str, kafka_tool: Tool) -> None:
    entity = ("--bootstrap-server", broker.bootstrap, "--entity-type", "topics", "--entity-name", topic)
    kafka_tool("configs", *entity, "--alter", "--add-config", "retention.ms=60000,cleanup.policy=[compact,delete]")
    described = kafka_tool("configs", *entity, "--describe")
    assert "retention.ms=60000" in described
    assert "cleanup.policy=compact,delete" in described
    assert "DYNAMIC_TOPIC_CONFIG:retention.ms=60000" in described
    kafka_tool("configs", *entity, "--alter", "--delete-config", "retention.ms")
    wait_until(
        "forgotten", lambda: "DYNAMIC_TOPIC_CONFIG:retention.ms" not in kafka_tool("configs", *entity, "--describe"), seconds=30
    )


def test_a_brokers_configuration_is_changed_for_one_and_for_all(broker: Broker, kafka_tool: Tool) -> None:
    brokers = ("--bootstrap-server", broker.bootstrap, "--entity-type", "brokers")
    one, everyone = (*brokers, "--entity-name", str(node_id(broker))), (*brokers, "--entity-default")
    kafka_tool("configs", *everyone, "--alter", "--add-config", "log.cleaner.backoff.ms=16000")
    kafka_tool("configs", *one, "--alter", "--add-config", "log.cleaner.backoff.ms=17000")
    layers = "DYNAMIC_BROKER_CONFIG:log.cleaner.backoff.ms=17000, DYNAMIC_DEFAULT_BROKER_CONFIG:log.cleaner.backoff.ms=16000"
    wait_until("set", lambda: layers in kafka_tool("configs", *one, "--describe"), seconds=30)
    for entity in (one, everyone):
        kafka_tool("configs", *entity, "--alter", "--delete-config", "log.cleaner.backoff.ms")
    every = kafka_tool("configs", *one, "--describe", "--all")
    assert re.search(r"log\.cleaner\.backoff\.ms=15000 sensitive=false", every)
    assert re.search(r"ssl\.keystore\.password=null sensitive=true", every)


def test_a_groups_configuration_is_changed_and_described(broker: Broker, topic_name: str, kafka_tool: Tool) -> None:
    entity = ("--bootstrap-server", broker.bootstrap, "--entity-type", "groups", "--entity-name", topic_name)
    kafka_tool("configs", *entity, "--alter", "--add-config", "share.auto.offset.reset=earliest")
    wait_until("set", lambda: "share.auto.offset.reset=earliest" in kafka_tool("configs", *entity, "--describe"), seconds=30)


def test_records_are_deleted(broker: Broker, topic: str, kafka_tool: Tool, tmp_path: Path) -> None:
    produce(broker.bootstrap, topic, [Record(bytes([i])) for i in range(10)])
    plan = tmp_path / "delete.json"
    wanted = {"partitions": [{"topic": topic, "partition": 0, "offset": 4}], "version": 1}
    plan.write_text(json.dumps(wanted))
    server = ("--bootstrap-server", broker.bootstrap)
    answer = kafka_tool("delete-records", *server, "--offset-json-file", str(plan))
    assert f"partition: {topic}-0\tlow_watermark: 4" in answer
    assert kafka_tool("get-offsets", *server, "--topic", topic, "--time", "earliest").split() == [f"{topic}:0:4"]
    assert [record.value for record in consume(broker.bootstrap, topic)] == [bytes([i]) for i in range(4, 10)]


@pytest.mark.strandline
def test_configuration_and_deleted_records_survive_a_kill(
    make_broker: Callable[..., Strandline], topic_name: str, kafka_tool: Tool, tmp_path: Path
) -> None:
    broker = make_broker().start()
    create_topic(broker.bootstrap, topic_name)
    produce(broker.bootstrap, topic_name, [Record(bytes([i])) for i in range(10)])
    server = ("--bootstrap-server", broker.bootstrap)
    plan = tmp_path / "delete.json"
    plan.write_text(json.dumps({"partitions": [{"topic": topic_name, "partition": 0, "offset": 7}], "version": 1}))
    kafka_tool("delete-records", *server, "--offset-json-file", str(plan))
    topics = (*server, "--entity-type", "topics", "--entity-name", topic_name)
    brokers = (*server, "--entity-type", "brokers", "--entity-default")
    kafka_tool("configs", *topics, "--alter", "--add-config", "retention.ms=60000")
    kafka_tool("configs", *brokers, "--alter", "--add-config", "message.max.bytes=5000")
    broker.kill()
    broker.start()
    assert [record.value for record in consume(broker.bootstrap, topic_name)] == [bytes([i]) for i in range(7, 10)]
    assert "retention.ms=60000" in kafka_tool("configs", *topics, "--describe")
    assert "message.max.bytes=5000" in kafka_tool("configs", *brokers, "--describe")


def test_folders_are_described(broker: Broker, topic: str, kafka_tool: Tool) -> None:
    produce(broker.bootstrap, topic, [Record(b"x" * 1000) for _ in range(10)])
    answer = kafka_tool("log-dirs", "--bootstrap-server", broker.bootstrap, "--describe", "--topic-list", topic)
    folders = json.loads(answer.splitlines()[-1])["brokers"][0]["logDirs"]
    [partition] = [found for folder in folders for found in folder["partitions"]]
    assert partition["partition"] == f"{topic}-0"
    assert 10_000 < partition["size"] < 20_000
    assert (partition["offsetLag"], partition["isFuture"]) == (0, False)


def test_a_leader_that_leads_is_not_elected(broker: Broker, topic: str, kafka_tool: Tool) -> None:
    answer = kafka_tool(
        "leader-election", "--bootstrap-server", broker.bootstrap, "--election-type", "preferred", "--topic", topic, "--partition", "0"
    )
    assert f"Valid replica already elected for partitions {topic}-0" in answer


def test_a_partition_is_moved_to_where_it_is(broker: Broker, topic: str, kafka_tool: Tool, tmp_path: Path) -> None:
    plan = tmp_path / "plan.json"
    wanted = {"partitions": [{"topic": topic, "partition": 0, "replicas": [node_id(broker)]}], "version": 1}
    plan.write_text(json.dumps(wanted))
    server = ("--bootstrap-server", broker.bootstrap)
    kafka_tool("reassign-partitions", *server, "--reassignment-json-file", str(plan), "--execute")
    verified = kafka_tool("reassign-partitions", *server, "--reassignment-json-file", str(plan), "--verify")
    assert f"Reassignment of partition {topic}-0 is completed." in verified
    assert "No partition reassignments found." in kafka_tool("reassign-partitions", *server, "--list")


def test_the_cluster_has_an_id(broker: Broker, kafka_tool: Tool) -> None:
    answer = kafka_tool("cluster", "cluster-id", "--bootstrap-server", broker.bootstrap)
    assert re.search(r"^Cluster ID: \S{22}$", answer, re.MULTILINE)


@pytest.mark.strandline
def test_no_feature_is_promised(broker: Broker, kafka_tool: Tool) -> None:
    answer = kafka_tool("features", "--bootstrap-server", broker.bootstrap, "describe")
    assert not re.search(r"FinalizedVersionLevel: [1-9]", answer)


def test_quotas_are_kept_and_described(broker: Broker, kafka_tool: Tool) -> None:
    entity = ("--bootstrap-server", broker.bootstrap, "--entity-type", "clients", "--entity-name", "greedy")
    kafka_tool("configs", *entity, "--alter", "--add-config", "producer_byte_rate=1024")
    wait_until("set", lambda: "producer_byte_rate=1024.0" in kafka_tool("configs", *entity, "--describe"), seconds=30)
    kafka_tool("configs", *entity, "--alter", "--delete-config", "producer_byte_rate")
