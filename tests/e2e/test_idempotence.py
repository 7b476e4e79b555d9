"""Idempotent producers whose state, or whose records, are gone."""

from collections.abc import Callable

from broker import Broker
from clients import QUIET, admin, bounds, create_topic
from confluent_kafka import Producer, TopicPartition
from deadline import wait_until


class Steady:
    """One idempotent producer; offsets of what it sent, and what went wrong for good."""

    def __init__(self, bootstrap: str, topic: str):
        self.fatal: list[str] = []
        self.topic = topic
        settings = {"bootstrap.servers": bootstrap, "enable.idempotence": True, "error_cb": self.failed, **QUIET}
        self.producer = Producer(settings)

    def failed(self, error) -> None:
        if error.fatal():
            self.fatal.append(str(error))

    def send(self, count: int) -> list[int]:
        offsets: list[int] = []
        errors: list[str] = []

        def delivered(error, message) -> None:
            errors.append(str(error)) if error else offsets.append(message.offset())

        for _ in range(count):
            self.producer.produce(self.topic, b"v", partition=0, on_delivery=delivered)
        assert self.producer.flush(30) == 0
        assert (errors, self.fatal) == ([], [])
        return offsets


def producers(kafka_tool: Callable[..., str], broker: Broker, topic: str) -> int:
    """How many the broker remembers."""
    place = ("--topic", topic, "--partition", "0")
    answer = kafka_tool("transactions", "--bootstrap-server", broker.bootstrap, "describe-producers", *place)
    return len(answer.splitlines()) - 1


def test_a_producer_that_was_forgotten_goes_on(
    make_broker: Callable[..., Broker], topic_name: str, kafka_tool: Callable[..., str]
) -> None:
    broker = make_broker(producer_id_expiration_ms=3000, producer_id_expiration_check_interval_ms=500).start()
    create_topic(broker.bootstrap, topic_name)
    steady = Steady(broker.bootstrap, topic_name)
    assert steady.send(2) == [0, 1]
    wait_until("it is forgotten", lambda: producers(kafka_tool, broker, topic_name) == 0, seconds=60)
    assert steady.send(2) == [2, 3]


def test_a_producer_whose_records_were_deleted_goes_on(broker: Broker, topic: str) -> None:
    steady = Steady(broker.bootstrap, topic)
    assert steady.send(5) == [0, 1, 2, 3, 4]
    [trimmed] = admin(broker.bootstrap).delete_records([TopicPartition(topic, 0, 5)]).values()
    assert trimmed.result(timeout=20).low_watermark == 5
    assert steady.send(5) == [5, 6, 7, 8, 9]
    assert bounds(broker.bootstrap, topic) == (5, 10)
