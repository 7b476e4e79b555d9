"""Apache Kafka's own command-line tools: the Java client, unchanged."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from broker import Broker, Strandline
from clients import Record, consume, create_topic, produce
from deadline import wait_until

Tool = Callable[..., str]


def test_console_producer_and_consumer_by_partition(broker: Broker, topic: str, kafka_tool: Tool) -> None:
    lines = "".join(f"key{i}:value {i}\n" for i in range(1000))
    server = ("--bootstrap-server", broker.bootstrap)
    keyed = ("--reader-property", "parse.key=true", "--reader-property", "key.separator=:")
    kafka_tool("console-producer", *server, "--topic", topic, "--compression-codec", "zstd", *keyed, stdin=lines)
    shown = ("--formatter-property", "print.key=true", "--formatter-property", "key.separator=:")
    found = kafka_tool(
        "console-consumer", *server, "--topic", topic, "--partition", "0", "--offset", "earliest",
        "--max-messages", "1000", "--timeout-ms", "20000", *shown,
    )
    assert found == lines


def test_topics_are_made_listed_described_and_deleted(broker: Broker, topic_name: str, kafka_tool: Tool) -> None:
    server = ("--bootstrap-server", broker.bootstrap)
    kafka_tool("topics", *server, "--create", "--topic", topic_name, "--partitions", "3", "--config", "retention.ms=60000")
    assert topic_name in kafka_tool("topics", *server, "--list").split()
    described = kafka_tool("topics", *server, "--describe", "--topic", topic_name)
    assert re.search(rf"Topic: {re.escape(topic_name)}\s+TopicId: \S{{22}}\s+PartitionCount: 3", described)
    assert "retention.ms=60000" in described
    assert len(re.findall(r"Partition: \d\s+Leader: \d", described)) == 3
    kafka_tool("topics", *server, "--alter", "--topic", topic_name, "--partitions", "4")
    assert "PartitionCount: 4" in kafka_tool("topics", *server, "--describe", "--topic", topic_name)
    kafka_tool("topics", *server, "--delete", "--topic", topic_name)
    wait_until("gone", lambda: topic_name not in kafka_tool("topics", *server, "--list").split(), seconds=60)


def test_offsets_are_asked_for(broker: Broker, topic_name: str, kafka_tool: Tool) -> None:
    create_topic(broker.bootstrap, topic_name, partitions=2)
    produce(broker.bootstrap, topic_name, [Record(b"v", partition=i % 2, timestamp=1000 + i) for i in range(11)])
    server = ("--bootstrap-server", broker.bootstrap, "--topic", topic_name)
    expected = {"latest": (6, 5), "earliest": (0, 0), "max-timestamp": (5, 4), "1003": (2, 1)}
    for time, (first, second) in expected.items():
        answer = kafka_tool("get-offsets", *server, "--time", time)
        assert answer.split() == [f"{topic_name}:0:{first}", f"{topic_name}:1:{second}"]


def test_the_broker_says_which_apis_it_serves(broker: Broker, kafka_tool: Tool) -> None:
    answer = kafka_tool("broker-api-versions", "--bootstrap-server", broker.bootstrap)
    for api in ("Produce(0)", "Fetch(1)", "ListOffsets(2)", "Metadata(3)", "ApiVersions(18)"):
        assert re.search(rf"{re.escape(api)}: \d+ to \d+ \[usable: \d+\]", answer), f"{api} in\n{answer}"


@pytest.mark.strandline
@pytest.mark.files("Kafka's dump-log reads segment files")
def test_kafka_reads_our_segments(make_broker: Callable[..., Strandline], topic_name: str, kafka_tool: Tool) -> None:
    """Every batch of every `.log` file, by Kafka's dump-log: offsets, codecs and checksums."""
    broker = make_broker().start()
    create_topic(broker.bootstrap, topic_name, segment_bytes=1_048_576)
    codecs = ["none", "gzip", "snappy", "lz4", "zstd"]
    for index in range(50):
        records = [Record(bytes([i % 256]) * 800, f"{index}/{i}".encode()) for i in range(200)]
        produce(broker.bootstrap, topic_name, records, compression_codec=codecs[index % 5], enable_idempotence=True)
    assert broker.stop() == 0
    files = sorted(broker.data.rglob("*.log"))
    assert len(files) > 1
    assert [offset for file in files for offset in dumped(kafka_tool, file)] == list(range(10_000))
    broker.start()
    assert len(consume(broker.bootstrap, topic_name, check_crcs=True)) == 10_000


def dumped(kafka_tool: Tool, file: Path) -> list[int]:
    text = kafka_tool("dump-log", "--deep-iteration", "--files", str(file))
    batches = [line for line in text.splitlines() if line.startswith("baseOffset: ")]
    assert batches and all(line.endswith("isvalid: true") for line in batches), text[:2000]
    return [int(offset) for offset in re.findall(r"^\| offset: (\d+) ", text, re.MULTILINE)]
