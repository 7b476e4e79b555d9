"""A day's work of clients: a group of three loses and gains a member, commits, seeks, and resumes.

Each program in `day/` does the same day against a topic of six partitions and checks it itself:

1. 600 records are produced, numbered and spread over the partitions; three members share them.
2. A member leaves; the other two take over, and read 300 more.
3. A member joins; three share again, and read 300 more.
4. All leave. What is committed is the end of each partition.
5. A consumer seeks to an offset and finds the record there.
6. 60 more are produced; a member that joins then sees these and nothing older.

rskafka has no groups and does the rest of the day.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from broker import ROOT, Broker
from clients import create_topic

PROGRAMS = Path(__file__).parent / "day"
# Kafka waits three seconds for more members of a new group. Without any wait a leader of kafka-python 3.0.12
# may join before it knows the topic's partitions, joins again when it does, and loses the answer when
# `poll()` ends in between: it owns partitions then, and neither reads them nor sends heartbeats.
# Some of the programs date their records years back.
QUICK = {"group_initial_rebalance_delay_ms": 1000, "log_retention_hours": -1}


def build(folder: Path, command: list[str], **environment: str) -> None:
    done = subprocess.run(command, cwd=folder, env={**os.environ, **environment}, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"


def python(name: str) -> Callable[[Path], list[str]]:
    return lambda _: [sys.executable, str(PROGRAMS / name)]


def kafkajs(work: Path) -> list[str]:
    source = PROGRAMS / "kafkajs"
    for name in ("package.json", "package-lock.json", "day.js"):
        (work / name).write_bytes((source / name).read_bytes())
    build(work, ["npm", "ci", "--no-audit", "--no-fund", "--ignore-scripts"])
    return ["node", str(work / "day.js")]


def sarama(work: Path) -> list[str]:
    build(PROGRAMS / "sarama", ["go", "build", "-mod=readonly", "-o", str(work / "day"), "."], CGO_ENABLED="0")
    return [str(work / "day")]


def rskafka(_: Path) -> list[str]:
    target = ROOT / "target" / "day-rskafka"
    build(PROGRAMS / "rskafka", ["cargo", "build", "--locked", "--quiet"], CARGO_TARGET_DIR=str(target))
    return [str(target / "debug" / "day")]


CLIENTS = {
    "kafka-python": python("kafka_python.py"),
    "aiokafka": python("aio_kafka.py"),
    "kafkajs": kafkajs,
    "sarama": sarama,
    "rskafka": rskafka,
}


@pytest.mark.timeout(900)
@pytest.mark.parametrize("client", CLIENTS)
def test_a_day(make_broker: Callable[..., Broker], tmp_path: Path, client: str) -> None:
    work = tmp_path / "program"
    work.mkdir()
    command = CLIENTS[client](work)
    broker = make_broker(**QUICK).start()
    topic = f"day-{client}"
    create_topic(broker.bootstrap, topic, partitions=6)
    command += [broker.bootstrap, topic, f"group-{client}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
