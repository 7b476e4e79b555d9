"""A disk that is nearly full: a start on it, what is read and refused meanwhile, and the way out.
"""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from broker import Strandline
from clients import QUIET, Record, admin, bounds, consume, create_topic, produce
from command import done
from confluent_kafka import KafkaError, KafkaException, Producer
from deadline import wait_until
from small_disk import mounted, skip_where_nothing_is_mounted

pytestmark = [pytest.mark.strandline, pytest.mark.files("a small disk below the folder")]

DISK_MIB = 256
MIB = 1024 * 1024


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    skip_where_nothing_is_mounted()
    with mounted(folder, DISK_MIB * MIB):
        yield folder


@pytest.fixture
def broker(disk: Path) -> Iterator[Strandline]:
    """That a disk is full is an error in a broker's log: here only panics count."""
    keys = {"log.segment.bytes": 8 * MIB, "log.retention.check.interval.ms": 500, "deletion.grace.ms": 0}
    made = Strandline(disk / "broker", {key: str(value) for key, value in keys.items()})
    yield made
    made.close()
    admin.cache_clear()
    assert "panicked at" not in made.log.read_text(errors="replace")


def free_mib(disk: Path) -> int:
    found = os.statvfs(disk)
    return found.f_bavail * found.f_frsize // MIB


def fill(broker: Strandline, topic: str) -> int:
    """Produces until the broker has no room left; how many records it took."""
    taken = 0
    refused: list[KafkaError] = []

    def delivered(error: KafkaError | None, _message) -> None:
        nonlocal taken
        if error is None:
            taken += 1
        else:
            refused.append(error)

    settings = {"bootstrap.servers": broker.bootstrap, "delivery.timeout.ms": 3000, "linger.ms": 20, **QUIET}
    producer = Producer(settings)
    while not refused:
        for _ in range(100):
            producer.produce(topic, os.urandom(50_000), partition=0, on_delivery=delivered)
        producer.flush()
        assert taken * 50_000 < DISK_MIB * MIB, "the disk is not as small as that"
    return taken


def takes_records(broker: Strandline, topic: str) -> bool:
    try:
        return produce(broker.bootstrap, topic, [Record(b"small")], delivery_timeout_ms=1500)[0] >= 0
    except KafkaException as error:
        assert error.args[0].code() in (KafkaError._MSG_TIMED_OUT, KafkaError.KAFKA_STORAGE_ERROR), error
        return False


@pytest.mark.parametrize("end", ["stopped", "killed"])
def test_a_broker_starts_on_a_disk_that_it_has_filled(broker: Strandline, disk: Path, end: str) -> None:
    broker.start()
    create_topic(broker.bootstrap, "full")
    create_topic(broker.bootstrap, "other")
    taken = fill(broker, "full")
    assert taken > 500
    assert not takes_records(broker, "other"), "there is no room for any topic"
    if end == "stopped":
        assert broker.stop() == 0
    else:
        broker.kill()
    broker.start()
    assert len(consume(broker.bootstrap, "full")) == bounds(broker.bootstrap, "full")[1] >= taken
    # Deleting needs no room, and gives it back without another start.
    admin(broker.bootstrap).delete_topics(["full"])["full"].result(timeout=30)
    wait_until("records are taken again", lambda: takes_records(broker, "other"), seconds=90)


def test_a_broker_starts_where_others_have_left_it_no_room(broker: Strandline, disk: Path) -> None:
    broker.start()
    create_topic(broker.bootstrap, "t")
    produce(broker.bootstrap, "t", [Record(os.urandom(100_000)) for _ in range(400)])
    assert broker.stop() == 0
    foreign = disk / "foreign"
    with foreign.open("wb") as file:
        os.posix_fallocate(file.fileno(), 0, (free_mib(disk) - 12) * MIB)
    broker.start()
    assert free_mib(disk) < DISK_MIB * 0.05
    assert len(consume(broker.bootstrap, "t")) == 400
    assert not takes_records(broker, "t")
    foreign.unlink()
    wait_until("records are taken again", lambda: takes_records(broker, "t"), seconds=60)


def test_retention_makes_room_on_a_full_disk(broker: Strandline, disk: Path) -> None:
    broker.start()
    create_topic(broker.bootstrap, "short", segment_bytes=4 * MIB)
    fill(broker, "short")
    # What is to go is changed where nothing more is taken, and then nobody helps.
    done("topic", "alter", "short", "-c", "retention.ms=1s", broker=broker)
    wait_until("records are taken again", lambda: takes_records(broker, "short"), seconds=60)
    assert bounds(broker.bootstrap, "short")[0] > 0
    wait_until("the old segments are gone", lambda: free_mib(disk) > DISK_MIB // 2, seconds=60)
