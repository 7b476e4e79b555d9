"""Fixtures: a broker for all, brokers of a test's own, topics with names of their own.

`E2E_PEER=kafka` runs the same tests against Apache Kafka, to know that each expectation is
Kafka's; tests about Strandline alone are then left out.

`E2E_STORAGE=postgres` runs them with all topics and metadata in PostgreSQL; tests about files are
then left out.
"""

import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import storage
from broker import BINARY, KAFKA, ApacheKafka, Broker, Strandline
from clients import admin, create_topic

PEER = os.environ.get("E2E_PEER", "strandline")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        for mark in item.iter_markers("files"):
            assert mark.args and not mark.kwargs, f"{item.nodeid}: the mark `files` says why"
    out = {mark for mark, applies in (("strandline", PEER == "kafka"), ("files", storage.STORAGE != "file")) if applies}
    gone = [item for item in items if any(item.get_closest_marker(mark) for mark in out)]
    config.hook.pytest_deselected(items=gone)
    items[:] = [item for item in items if item not in gone]


def pytest_configure(config: pytest.Config) -> None:
    assert storage.STORAGE in ("file", "postgres"), f"E2E_STORAGE={storage.STORAGE} is neither `file` nor `postgres`"
    if storage.STORAGE == "postgres" and not hasattr(config, "workerinput"):
        config.add_cleanup(storage.start_server().close)


def pytest_sessionstart() -> None:
    if PEER == "strandline" and not BINARY.exists():
        pytest.exit(f"{BINARY} is missing: cargo build --release", returncode=3)


def new_broker(folder: Path, properties: dict[str, str]) -> Broker:
    kind = {"strandline": Strandline, "kafka": ApacheKafka}[PEER]
    return kind(folder, properties)


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """One broker for all tests that neither stop nor configure it.

    Records of tests may be years old: retention, which comes at times, would remove them."""
    shared = new_broker(tmp_path_factory.mktemp("broker"), {"log.retention.hours": "-1"}).start()
    yield shared
    close(shared)


@pytest.fixture
def make_broker(tmp_path: Path) -> Iterator[Callable[..., Broker]]:
    """Makes brokers that a test may stop, kill and configure; they are not started yet."""
    made: list[Broker] = []

    def make(**properties: object) -> Broker:
        made.append(new_broker(tmp_path / f"broker-{len(made)}", dotted(properties)))
        return made[-1]

    yield make
    for one in made:
        close(one)


def dotted(properties: dict[str, object]) -> dict[str, str]:
    """Keys as Python's arguments have them, as they are set."""
    return {key.replace("_", "."): str(value) for key, value in properties.items()}


def close(broker: Broker) -> None:
    broker.close()
    admin.cache_clear()  # the client of a broker that is gone tries to reach it for ever
    check_log(broker)


def check_log(broker: Broker) -> None:
    """A panic in a broker fails the test, even when no client noticed."""
    text = broker.log.read_text(errors="replace") if broker.log.exists() else ""
    bad = [line for line in text.splitlines() if "panicked at" in line or re.search(r"\bERROR\b", line)]
    assert PEER == "kafka" or not bad, f"{broker} logged:\n" + "\n".join(bad[:20])


@pytest.fixture
def topic_name(request: pytest.FixtureRequest) -> str:
    """A name that no other test uses."""
    return re.sub(r"[^a-zA-Z0-9._-]", "-", request.node.name)[:200]


@pytest.fixture
def topic(broker: Broker, topic_name: str) -> str:
    """A topic of one partition on the shared broker."""
    create_topic(broker.bootstrap, topic_name)
    return topic_name


@pytest.fixture(scope="session")
def kafka_tool() -> Callable[..., str]:
    """Runs one of Apache Kafka's own command-line tools; its standard output."""

    def run(tool: str, *arguments: str, stdin: str | None = None) -> str:
        command = [str(KAFKA), tool, *arguments]
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, f"{tool} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
        return done.stdout

    return run


@pytest.fixture(scope="session")
def kafka_refusal() -> Callable[..., str]:
    """Runs one of these tools for something that the broker refuses; all that it says."""

    def run(tool: str, *arguments: str) -> str:
        done = subprocess.run([str(KAFKA), tool, *arguments], capture_output=True, text=True, timeout=120)
        assert done.returncode != 0, f"{tool} did what it should not:\n{done.stdout}"
        return done.stdout + done.stderr

    return run


@pytest.fixture
def lossy(tmp_path: Path) -> Iterator[Callable[..., Strandline]]:
    """Brokers that log errors, since they lose what they had."""
    made: list[Strandline] = []

    def make(**properties: object) -> Strandline:
        made.append(Strandline(tmp_path / f"lossy-{len(made)}", dotted(properties)))
        return made[-1]

    yield make
    for one in made:
        one.close()
        admin.cache_clear()
