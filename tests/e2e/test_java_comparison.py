"""Kafka's own command-line tools, the same commands to Apache Kafka and to Strandline, line by line."""

import difflib
import time
from collections.abc import Iterator

import pytest
from broker import ApacheKafka, Strandline
from conftest import close
from toolrules import RULES, normal
from toolscript import SECTIONS, Act, Command, Stage
from toolserver import ToolServer

PROPERTIES = {
    "node.id": "1",
    "num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "6000",
    "offsets.topic.num.partitions": "1",
    # What the peer's own file sets.
    "num.network.threads": "2",
    "num.io.threads": "8",
    "group.consumer.heartbeat.interval.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "1000",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "4",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "4",
}
SETTLED_SECONDS = 10


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Stage, Stage]]:
    folder = tmp_path_factory.mktemp("tools")
    brokers = ApacheKafka(folder / "kafka", PROPERTIES), Strandline(folder / "strandline", PROPERTIES)
    made = tuple(Stage(broker, folder / f"files-{broker}") for broker in brokers)
    try:
        for broker in brokers:
            broker.start()
        yield made
    finally:
        for stage in made:
            stage.close()
        brokers[0].close()
        close(brokers[1])


@pytest.fixture(scope="module")
def tools(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ToolServer]:
    server = ToolServer(tmp_path_factory.mktemp("jvm") / "log")
    yield server
    server.close()


def outputs(tools: ToolServer, stages: tuple[Stage, Stage], command: Command) -> list[list[str]]:
    return [normal(command, stage, tools.run(command.tool, *command.words(stage), stdin=command.stdin)) for stage in stages]


def compare(tools: ToolServer, stages: tuple[Stage, Stage], command: Command) -> str:
    """What differs, as a diff; nothing when nothing does."""
    deadline = time.monotonic() + SETTLED_SECONDS
    kafka, ours = outputs(tools, stages, command)
    # Kafka's brokers learn of a change behind its answer.
    while command.reads and kafka != ours and time.monotonic() < deadline:
        kafka, ours = outputs(tools, stages, command)
    return "\n".join(difflib.unified_diff(kafka, ours, "kafka", "strandline", n=0, lineterm=""))


@pytest.fixture(scope="module")
def compared() -> set[str]:
    """The sections that were run."""
    return set()


@pytest.mark.parametrize("section", SECTIONS)
def test_tools_say_of_us_what_they_say_of_kafka(
    section: str, tools: ToolServer, stages: tuple[Stage, Stage], compared: set[str]
) -> None:
    compared.add(section)
    differences = []
    for step in SECTIONS[section]:
        if isinstance(step, Act):
            for stage in stages:
                step.does(stage)
        elif found := compare(tools, stages, step):
            differences.append(f"{step.line}\n{found}")
    assert not differences, f"{len(differences)} commands differ:\n" + "\n\n".join(differences)


def test_every_rule_explains_a_difference(compared: set[str]) -> None:
    if compared != set(SECTIONS):
        pytest.skip("only a part of the script was run")
    assert [rule.name for rule in RULES if not rule.used] == []
