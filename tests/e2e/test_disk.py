"""What the disk does to the broker: it fills up, it loses a sector, somebody changes its files."""

from pathlib import Path

import pytest
from broker import Strandline
from clients import Record, consumer, create_topic, produce, read
from command import found
from confluent_kafka import TopicPartition

pytestmark = pytest.mark.strandline


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
