"""Partitions that nobody uses for a while: their logs are closed, and nobody notices."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from broker import Strandline
from clients import Record, bounds, consume, consumer, create_topic, produce
from confluent_kafka import TopicPartition
from deadline import wait_until
from observed import metric
from test_idempotence import Steady

pytestmark = pytest.mark.strandline

Brokers = Callable[..., Strandline]


def open_partitions(broker: Strandline) -> float:
    return metric(broker, "strandline_open_partitions")


def wait_until_closed(broker: Strandline) -> None:
    wait_until("nothing is open", lambda: open_partitions(broker) == 0, seconds=30)


def open_segments(broker: Strandline) -> list[str]:
    """Segment files that the process has open."""
    descriptors = Path(f"/proc/{broker.process.pid}/fd")
    targets = []
    for descriptor in descriptors.iterdir():
        try:
            targets.append(os.readlink(descriptor))
        except FileNotFoundError:
            continue
    return [target for target in targets if target.endswith(".log") and "/logs/" in target]


@pytest.mark.parametrize("end", ["idle", "idle and killed"])
def test_an_idempotent_producer_goes_on_after_its_partition_was_closed(make_broker: Brokers, end: str) -> None:
    broker = make_broker(log_idle_close_ms=500).start()
    create_topic(broker.bootstrap, "t")
    steady = Steady(broker.bootstrap, "t")
    assert steady.send(3) == [0, 1, 2]
    for round_ in range(3):
        wait_until_closed(broker)
        if end == "idle and killed":
            broker.kill()
            broker.start()
        first = 3 + 2 * round_
        assert steady.send(2) == [first, first + 1]
    wait_until_closed(broker)
    assert metric(broker, 'strandline_topic_size_bytes{topic="t"}') > 0
    assert bounds(broker.bootstrap, "t") == (0, 9)
    wait_until_closed(broker)
    assert [record.offset for record in consume(broker.bootstrap, "t")] == list(range(9))


def test_a_consumer_that_waits_gets_what_comes_after(make_broker: Brokers) -> None:
    """Its long polls end and come again, and in each pause the partition may be closed."""
    broker = make_broker(log_idle_close_ms=100).start()
    create_topic(broker.bootstrap, "t")
    produce(broker.bootstrap, "t", [Record(b"first")])
    waiting = consumer(broker.bootstrap, fetch_wait_max_ms=5000, enable_partition_eof=False)
    try:
        waiting.assign([TopicPartition("t", 0, 0)])
        values = []

        def received(count: int) -> bool:
            message = waiting.poll(0.1)
            if message is not None and message.error() is None:
                values.append(message.value())
            return len(values) >= count

        wait_until("the first is there", lambda: received(1), seconds=30)
        for number in range(5):
            wait_until("it is closed", lambda: received(99) or open_partitions(broker) == 0, seconds=30)
            produce(broker.bootstrap, "t", [Record(b"%d" % number)])
            wait_until("the next is there", lambda number=number: received(number + 2), seconds=10)
        assert values == [b"first", b"0", b"1", b"2", b"3", b"4"]
    finally:
        waiting.close()


@pytest.mark.files("descriptors of segment files")
def test_segments_that_are_durable_need_no_descriptor(make_broker: Brokers) -> None:
    broker = make_broker(log_idle_close_ms=500, deletion_grace_ms=0).start()
    create_topic(broker.bootstrap, "t", partitions=50)
    produce(broker.bootstrap, "t", [Record(b"v", partition=index) for index in range(50)])
    assert len(open_segments(broker)) == 50
    wait_until_closed(broker)
    # They were written since the last checkpoint: a clean stop makes one, and the next start opens what it is asked for.
    broker.stop()
    broker.start()
    assert open_segments(broker) == []
    assert len(consume(broker.bootstrap, "t", partitions=50)) == 50
    assert len(open_segments(broker)) == 50
    wait_until_closed(broker)
    assert open_segments(broker) == []
