"""What the disk does to the broker: it fills up, it loses a sector, somebody changes its files.

A full disk is a small file system of its own (`small_disk.py`).
"""

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from broker import Strandline
from clients import QUIET, Record, admin, bounds, consume, consumer, create_topic, delete_topic, produce, read, topic_names
from command import found
from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition
from deadline import wait_until
from observed import get, metric, stored_bytes
from small_disk import mounted, skip_where_nothing_is_mounted

pytestmark = [pytest.mark.strandline, pytest.mark.files("the disk below the folder")]


def segments(broker: Strandline, topic: str) -> list[Path]:
    """The files of partition 0, oldest first."""
    [described] = found("topic", "describe", topic, broker=broker)
    topic_id = described["topic_id"]
    return sorted((broker.data / "logs" / topic_id / "0").glob("*.log"))


def test_a_segment_that_can_not_be_read_costs_its_partition_only(make_broker, topic_name: str) -> None:
    """A consumer reads both topics in the same requests. A cut file stands for a bad sector."""
    broker = make_broker().start()
    topics = [f"{topic_name}-{letter}" for letter in "ab"]
    records = [Record(f"{index:04d}".encode() * 250) for index in range(50)]
    for topic in topics:
        create_topic(broker.bootstrap, topic, internal_segment_bytes=5500)
        produce(broker.bootstrap, topic, records, batch_num_messages=1)
    hurt = segments(broker, topics[0])[5]
    first_lost = int(hurt.stem)
    with hurt.open("r+b") as file:
        file.truncate(1500)

    sent = [record.value for record in records]
    reader = consumer(broker.bootstrap)
    reader.assign([TopicPartition(topic, 0, 0) for topic in topics])
    values: dict[str, list[bytes]] = {topic: [] for topic in topics}
    while len(values[topics[0]]) < first_lost or len(values[topics[1]]) < len(records):
        message = reader.poll(30)
        assert message is not None, f"nothing more comes after {[len(v) for v in values.values()]}"
        if message.error() is None:
            values[message.topic()].append(message.value())
    reader.close()
    assert values[topics[1]] == sent
    assert values[topics[0]][:first_lost] == sent[:first_lost] and len(values[topics[0]]) <= first_lost + 1
    # Who asks behind the damage goes on there, and the broker never stopped.
    behind = read([TopicPartition(topics[0], 0, first_lost + 5)], broker.bootstrap)
    assert [record.value for record in behind] == sent[first_lost + 5 :]


MIB = 1024 * 1024
VOLUME = 64 * MIB
Full = Callable[..., Strandline]


@pytest.fixture
def on_a_small_disk(make_broker) -> Iterator[Full]:
    """Makes brokers whose data folder is a file system of 64 MiB."""
    skip_where_nothing_is_mounted()
    # What still runs is ended by the fixture behind this one.
    with ExitStack() as disks:

        def make(**properties: object) -> Strandline:
            broker = make_broker(**properties)
            broker.data.mkdir()
            disks.enter_context(mounted(broker.data, VOLUME, lazy=True))
            return broker

        yield make


def fill(broker: Strandline, topic: str) -> int:
    """Produces until the broker refuses; how many records it took. The refusal is a retriable one."""
    producer = Producer({
        "bootstrap.servers": broker.bootstrap, "retries": 0, "message.timeout.ms": 20_000, "batch.num.messages": 16, **QUIET,
    })
    taken: list[int] = []
    refused: list[KafkaError] = []

    def callback(error: KafkaError | None, message) -> None:
        if error is None:
            taken.append(message.offset())
        else:
            refused.append(error)

    value = b"x" * 16_000
    for _ in range(VOLUME // len(value) + 100):
        producer.produce(topic, value, partition=0, on_delivery=callback)
        if len(producer) > 200:
            producer.poll(10)
        producer.poll(0)
        if refused:
            break
    producer.flush(30)
    assert refused, "a disk of 64 MiB took more than 64 MiB"
    assert {error.code() for error in refused} == {KafkaError.KAFKA_STORAGE_ERROR}, refused[:3]
    assert taken == list(range(len(taken)))
    return len(taken)


def refuses(broker: Strandline, topic: str) -> bool:
    try:
        produce(broker.bootstrap, topic, [Record(b"one more")], retries=0)
        return False
    except KafkaException as error:
        assert error.args[0].code() == KafkaError.KAFKA_STORAGE_ERROR
        return True


def free(broker: Strandline) -> int:
    return shutil.disk_usage(broker.data).free


def told_of(broker: Strandline) -> None:
    """The log's line about the full disk is one at the level of errors; it is expected here."""
    text = broker.log.read_text()
    assert "disk is full" in text
    broker.log.write_text(text.replace("ERROR", "Error").replace('"level":"error"', '"level":"told"'))


def test_a_full_disk_is_refused_politely_and_recovers(on_a_small_disk: Full, topic_name: str) -> None:
    broker = on_a_small_disk(deletion_grace_ms=0).start()
    large, small = f"{topic_name}-large", f"{topic_name}-small"
    create_topic(broker.bootstrap, large, internal_segment_bytes=MIB)
    create_topic(broker.bootstrap, small)
    produce(broker.bootstrap, small, [Record(b"kept")] * 10)
    taken = fill(broker, large)
    assert taken * 16_000 > VOLUME // 3, "most of the disk is for records"
    assert free(broker) > MIB, "refused before the last bytes are used"
    assert get(broker, "/readyz") == (503, "not_ready: disk\n")
    # All of this goes on.
    assert len(consume(broker.bootstrap, large, seconds=60)) == taken
    assert len(consume(broker.bootstrap, small)) == 10
    assert {large, small} <= topic_names(broker.bootstrap)
    create_topic(broker.bootstrap, f"{topic_name}-new")
    before = free(broker)
    deleted = admin(broker.bootstrap).delete_records([TopicPartition(large, 0, taken // 2)])
    [result] = [future.result(timeout=20) for future in deleted.values()]
    assert result.low_watermark == taken // 2
    wait_until("deleted records are gone", lambda: free(broker) > before + MIB, seconds=60)
    delete_topic(broker.bootstrap, large)
    wait_until("the topic's bytes are gone", lambda: free(broker) > VOLUME // 2, seconds=60)
    wait_until("records are taken again", lambda: not refuses(broker, small))
    assert get(broker, "/readyz")[0] == 200
    assert len(consume(broker.bootstrap, small)) == 11
    told_of(broker)


def test_retention_frees_a_full_disk(on_a_small_disk: Full, topic_name: str) -> None:
    broker = on_a_small_disk(log_retention_check_interval_ms=500).start()
    create_topic(broker.bootstrap, topic_name, internal_segment_bytes=MIB, retention_ms=10_000)
    taken = fill(broker, topic_name)
    wait_until("the disk has room again", lambda: not refuses(broker, topic_name), seconds=90)
    wait_until("all of it went", lambda: bounds(broker.bootstrap, topic_name)[0] >= taken, seconds=60)
    told_of(broker)


@pytest.mark.parametrize("others", [False, True], ids=["by-records", "to-the-last-byte"])
def test_a_full_disk_refuses_no_start(on_a_small_disk: Full, topic_name: str, others: bool) -> None:
    """Also when something else took all that was left."""
    broker = on_a_small_disk(deletion_grace_ms=0).start()
    large, small = f"{topic_name}-large", f"{topic_name}-small"
    for topic in (large, small):
        create_topic(broker.bootstrap, topic, internal_segment_bytes=MIB)
    produce(broker.bootstrap, small, [Record(b"kept")] * 10)
    taken = fill(broker, large)
    broker.kill()
    stranger = broker.data / "not-ours"
    if others:
        with stranger.open("wb", buffering=0) as file, pytest.raises(OSError):
            while True:
                file.write(bytes(4096))
        assert free(broker) == 0
    for stop in (broker.kill, broker.stop):
        broker.start()
        assert len(consume(broker.bootstrap, large, seconds=60)) == taken
        assert len(consume(broker.bootstrap, small)) >= 10
        # Without others, what the journal had too much of is given back at the start.
        assert refuses(broker, small) or not others
        stop()
    broker.start()
    delete_topic(broker.bootstrap, large)
    wait_until("the topic's bytes are gone", lambda: free(broker) > VOLUME // 4, seconds=60)
    stranger.unlink(missing_ok=True)
    wait_until("records are taken again", lambda: not refuses(broker, small))
    told_of(broker)


def test_what_is_reported_as_used_is_what_files_take(on_a_small_disk: Full, topic_name: str) -> None:
    """Topics come and go; what is counted of them stays what is on disk, and ends at nothing."""
    broker = on_a_small_disk(deletion_grace_ms=0).start()

    def counted() -> float:
        return metric(broker, 'strandline_storage_used_bytes{engine="file"}')

    journal = counted()
    for life in range(20):
        name = f"{topic_name}-{life % 3}"
        create_topic(broker.bootstrap, name, partitions=2, internal_segment_bytes=MIB)
        produce(broker.bootstrap, name, [Record(b"x" * 10_000, partition=i % 2) for i in range(200)])
        assert counted() >= stored_bytes(broker) >= 2_000_000
        delete_topic(broker.bootstrap, name)
    wait_until("nothing is left", lambda: stored_bytes(broker) == 0, seconds=60)
    wait_until("nothing is counted", lambda: counted() < journal + MIB, seconds=60)
