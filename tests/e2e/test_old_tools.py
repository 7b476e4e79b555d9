"""Command-line tools of older Kafkas, unchanged: a day of each, and what they are told of what is not served."""

import re
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from broker import KAFKA, Broker
from conftest import PEER

Tool = Callable[..., str]

# Main classes of each version, by the names of its shell scripts.
IN_CORE = {
    "topics": "kafka.admin.TopicCommand",
    "configs": "kafka.admin.ConfigCommand",
    "consumer-groups": "kafka.admin.ConsumerGroupCommand",
    "console-producer": "kafka.tools.ConsoleProducer",
    "console-consumer": "kafka.tools.ConsoleConsumer",
    "get-offsets": "kafka.tools.GetOffsetShell",
    "delete-records": "kafka.admin.DeleteRecordsCommand",
    "log-dirs": "kafka.admin.LogDirsCommand",
    "leader-election": "kafka.admin.LeaderElectionCommand",
    "broker-api-versions": "kafka.admin.BrokerApiVersionsCommand",
    "acls": "kafka.admin.AclCommand",
}
IN_TOOLS = {
    "topics": "org.apache.kafka.tools.TopicCommand",
    "consumer-groups": "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand",
    "console-consumer": "org.apache.kafka.tools.consumer.ConsoleConsumer",
    "get-offsets": "org.apache.kafka.tools.GetOffsetShell",
    "delete-records": "org.apache.kafka.tools.DeleteRecordsCommand",
    "log-dirs": "org.apache.kafka.tools.LogDirsCommand",
    "leader-election": "org.apache.kafka.tools.LeaderElectionCommand",
    "transactions": "org.apache.kafka.tools.TransactionsCommand",
}
MAINS = {"2.8.2": IN_CORE, "3.9.1": {**IN_CORE, **IN_TOOLS}}


def run(version: str, name: str, *words: str, stdin: str = "") -> subprocess.CompletedProcess:
    command = [str(KAFKA), "old", version, MAINS[version][name], *words]
    return subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=120)


@pytest.fixture(params=MAINS)
def version(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def tool(version: str, broker: Broker) -> Tool:
    """Runs a tool that must succeed; what it prints."""

    def run_tool(name: str, *words: str, stdin: str = "") -> str:
        # The producer's and the offsets' flag had another name in 2.8.
        flag = "--broker-list" if version == "2.8.2" and name == "get-offsets" else "--bootstrap-server"
        result = run(version, name, flag, broker.bootstrap, *words, stdin=stdin)
        assert result.returncode == 0, f"{name} {words} ended with {result.returncode}:\n{result.stdout}\n{result.stderr}"
        return result.stdout

    return run_tool


def test_old_tools_make_fill_read_and_delete_a_topic(tool: Tool, topic_name: str) -> None:
    tool("topics", "--create", "--topic", topic_name, "--partitions", "1", "--replication-factor", "1")
    lines = "".join(f"key{i}:value {i}\n" for i in range(200))
    keyed = ("--property", "parse.key=true", "--property", "key.separator=:")
    tool("console-producer", "--topic", topic_name, "--request-required-acks", "-1", *keyed, stdin=lines)
    shown = ("--property", "print.key=true", "--property", "key.separator=:")
    group = f"g-{topic_name}"
    words = ("--topic", topic_name, "--max-messages", "200", "--timeout-ms", "30000", *shown)
    assert tool("console-consumer", "--group", group, "--from-beginning", *words) == lines
    assert tool("console-consumer", "--partition", "0", "--offset", "earliest", *words) == lines
    assert tool("get-offsets", "--topic", topic_name, "--time", "-1").split() == [f"{topic_name}:0:200"]
    described = tool("consumer-groups", "--describe", "--group", group)
    assert re.search(rf"^{re.escape(group)}\s+{re.escape(topic_name)}\s+0\s+200\s+200\s+0\s", described, re.MULTILINE), described
    tool("consumer-groups", "--group", group, "--topic", topic_name, "--reset-offsets", "--to-offset", "50", "--execute")
    described = tool("consumer-groups", "--describe", "--group", group)
    assert re.search(r"\s0\s+50\s+200\s+150\s", described), described
    tool("consumer-groups", "--group", group, "--delete")
    assert group not in tool("consumer-groups", "--list").split()
    tool("topics", "--alter", "--topic", topic_name, "--partitions", "3")
    assert len(re.findall(r"Partition: \d\s+Leader: \d", tool("topics", "--describe", "--topic", topic_name))) == 3
    tool("topics", "--delete", "--topic", topic_name)
    assert topic_name not in tool("topics", "--list").split()


def test_old_tools_configure_and_look_after_partitions(tool: Tool, topic: str, tmp_path: Path) -> None:
    of_topic = ("--entity-type", "topics", "--entity-name", topic)
    tool("configs", *of_topic, "--alter", "--add-config", "retention.ms=60000,cleanup.policy=[compact,delete]")
    described = tool("configs", *of_topic, "--describe")
    assert "retention.ms=60000" in described and "cleanup.policy=compact,delete" in described
    tool("configs", *of_topic, "--alter", "--delete-config", "retention.ms,cleanup.policy")
    assert "retention.ms=60000" not in tool("configs", *of_topic, "--describe")
    assert f'"partition":"{topic}-0"' in tool("log-dirs", "--describe", "--topic-list", topic)
    file = tmp_path / "offsets.json"
    file.write_text(f'{{"version": 1, "partitions": [{{"topic": "{topic}", "partition": 0, "offset": -1}}]}}')
    assert f"partition: {topic}-0\tlow_watermark: 0" in tool("delete-records", "--offset-json-file", str(file))
    elected = tool("leader-election", "--election-type", "preferred", "--topic", topic, "--partition", "0")
    assert "Valid replica already elected" in elected, elected
    answer = tool("broker-api-versions")
    for api in ("Produce(0)", "Fetch(1)", "Metadata(3)", "DescribeConfigs(32)"):
        assert re.search(rf"{re.escape(api)}: \d+ to \d+ \[usable: \d+\]", answer), f"{api} in\n{answer}"
    node = re.search(r"\(id: (\d+) ", answer)[1]
    assert "log.retention.ms" in tool("configs", "--entity-type", "brokers", "--entity-name", node, "--describe", "--all")


@pytest.mark.skipif(PEER == "kafka", reason="Kafka serves them")
def test_old_tools_say_what_is_not_served(version: str, broker: Broker) -> None:
    asked = {"acls": ("DESCRIBE_ACLS", "--list"), "transactions": ("LIST_TRANSACTIONS", "list")}
    for name, (api, word) in asked.items():
        if name in MAINS[version]:
            result = run(version, name, "--bootstrap-server", broker.bootstrap, word)
            assert api in result.stdout + result.stderr, f"{name}: {result.stdout}\n{result.stderr}"
