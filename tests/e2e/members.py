"""Members of consumer groups with librdkafka, and what a group has committed."""

import time
from collections.abc import Callable

from clients import QUIET, admin
from confluent_kafka import Consumer, ConsumerGroupState, ConsumerGroupTopicPartitions, KafkaError, TopicPartition

QUICK = {"group_initial_rebalance_delay_ms": 0}


class Member:
    """A consumer in a group, and what it was told."""

    def __init__(self, bootstrap: str, group: str, topic: str, **config: object):
        settings = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": 6000,
            "heartbeat.interval.ms": 500,
            "reconnect.backoff.max.ms": 200,
            **QUIET,
            **{key.replace("_", "."): value for key, value in config.items()},
        }
        self.consumer = Consumer(settings)
        self.rebalances = 0
        self.records: list[tuple[int, int, bytes]] = []
        self.errors: list[KafkaError] = []
        self.consumer.subscribe([topic], on_assign=self.on_assign)

    def on_assign(self, _consumer: Consumer, _partitions: list[TopicPartition]) -> None:
        self.rebalances += 1

    def poll(self, seconds: float = 0.05) -> None:
        message = self.consumer.poll(seconds)
        if message is None:
            return
        if message.error() is None:
            self.records.append((message.partition(), message.offset(), message.value()))
        else:
            self.errors.append(message.error())

    @property
    def assignment(self) -> set[int]:
        return {one.partition for one in self.consumer.assignment()}

    def close(self) -> None:
        self.consumer.close()


def poll_until(members: list[Member], what: str, condition: Callable[[], bool], seconds: float = 40) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}: {[one.assignment for one in members]}"
        for member in members:
            member.poll()


def committed(bootstrap: str, group: str, topic: str, partitions: int) -> dict[int, int]:
    """Positions by partition. All are named: librdkafka never answers an "all" that is empty."""
    asked = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, index) for index in range(partitions)])
    answer = admin(bootstrap).list_consumer_group_offsets([asked])[group].result(timeout=10)
    return {one.partition: one.offset for one in answer.topic_partitions if one.offset >= 0}


def state(bootstrap: str, group: str) -> ConsumerGroupState:
    return admin(bootstrap).describe_consumer_groups([group])[group].result(timeout=10).state
