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


def test_log_levels_change_while_the_broker_runs(broker: Broker, kafka_tool: Tool, kafka_refusal: Tool) -> None:
    loggers = ("configs", "--bootstrap-server", broker.bootstrap, "--entity-type", "broker-loggers")
    entity = (*loggers, "--entity-name", str(node_id(broker)))
    started = re.search(r"^  root=(\w+) ", kafka_tool(*entity, "--describe"), re.MULTILINE).group(1)
    kafka_tool(*entity, "--alter", "--add-config", "root=FATAL")
    described = kafka_tool(*entity, "--describe")
    name = next(found for found in re.findall(r"^  (\S+)=FATAL ", described, re.MULTILINE) if found != "root")
    kafka_tool(*entity, "--alter", "--add-config", f"{name}=ERROR")
    assert f"  {name}=ERROR sensitive=false" in kafka_tool(*entity, "--describe")
    kafka_tool(*entity, "--alter", "--delete-config", name)
    assert f"  {name}=FATAL sensitive=false" in kafka_tool(*entity, "--describe")
    assert "not a supported log level" in kafka_refusal(*entity, "--alter", "--add-config", "root=loud")
    assert "Removing the log level of the root logger" in kafka_refusal(*entity, "--alter", "--delete-config", "root")
    kafka_tool(*entity, "--alter", "--add-config", f"root={started}")


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


def test_the_quorum_is_one_leader_without_lag(broker: Broker, kafka_tool: Tool) -> None:
    quorum = ("metadata-quorum", "--bootstrap-server", broker.bootstrap, "describe")
    status = dict(re.findall(r"^(\w+): +(.*)$", kafka_tool(*quorum, "--status"), re.MULTILINE))
    assert (status["LeaderId"], status["MaxFollowerLag"]) == (str(node_id(broker)), "0")
    [voter] = json.loads(status["CurrentVoters"])
    assert (voter["id"], json.loads(status["CurrentObservers"])) == (node_id(broker), [])
    [leader] = kafka_tool(*quorum, "--replication").splitlines()[1:]
    assert leader.split()[0] == str(node_id(broker)) and leader.split()[-1] == "Leader"


def test_features_are_described_and_keep_their_levels(broker: Broker, kafka_tool: Tool, kafka_refusal: Tool) -> None:
    features = ("features", "--bootstrap-server", broker.bootstrap)
    described = kafka_tool(*features, "describe")
    assert re.search(r"metadata.version\s+SupportedMinVersion: 3.3-IV3\s.*FinalizedVersionLevel: 4.4-IV2\s", described)
    assert "metadata.version was upgraded to 33." in kafka_tool(*features, "upgrade", "--feature", "metadata.version=33")
    refusal = kafka_refusal(*features, "downgrade", "--feature", "metadata.version=32")
    assert "Unsupported metadata.version downgrade from 33 to 32. Refusing to perform" in refusal
    refusal = kafka_refusal(*features, "upgrade", "--feature", "no.such=1")
    assert re.search(r"Invalid update version 1 for feature no.such. Local controller \d does not support this feature.", refusal)
    levels = re.compile(r"FinalizedVersionLevel: (\S+)")
    assert levels.findall(kafka_tool(*features, "describe")) == levels.findall(described)


@pytest.mark.strandline
def test_features_rise_from_where_a_folder_begins(make_broker: Callable[..., Strandline], kafka_tool: Tool) -> None:
    broker = make_broker()
    broker.arguments += ["--feature", "metadata.version=20"]
    broker.start()
    features = ("features", "--bootstrap-server", broker.bootstrap)
    kafka_tool(*features, "upgrade", "--feature", "metadata.version=29", "--dry-run")
    assert "FinalizedVersionLevel: 3.8-IV0" in kafka_tool(*features, "describe")
    kafka_tool(*features, "upgrade", "--feature", "metadata.version=29")
    broker.kill()
    broker.start()
    assert "FinalizedVersionLevel: 4.2-IV1" in kafka_tool(*features, "describe")
    kafka_tool(*features, "downgrade", "--feature", "metadata.version=24")
    assert "FinalizedVersionLevel: 4.0-IV2" in kafka_tool(*features, "describe")


def test_quotas_are_kept_and_described(broker: Broker, kafka_tool: Tool, kafka_refusal: Tool) -> None:
    entity = ("--bootstrap-server", broker.bootstrap, "--entity-type", "clients", "--entity-name", "greedy")
    kafka_tool("configs", *entity, "--alter", "--add-config", "producer_byte_rate=1024")
    wait_until("set", lambda: "producer_byte_rate=1024.0" in kafka_tool("configs", *entity, "--describe"), seconds=30)
    for value in ("Infinity", "NaN"):
        said = kafka_refusal("configs", *entity, "--alter", "--add-config", f"producer_byte_rate={value}")
        assert "InvalidRequestException: Quota producer_byte_rate must be a finite number" in said, said
    kafka_tool("configs", *entity, "--alter", "--delete-config", "producer_byte_rate")
