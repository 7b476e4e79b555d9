"""`__consumer_offsets`, which monitoring tools read: derived from the groups, in Kafka's own record format."""

import json
from collections.abc import Callable

from broker import Strandline
from clients import QUIET, Record, create_topic, produce, topic_names
from confluent_kafka import Consumer, TopicPartition
from deadline import wait_until

OFFSETS = "__consumer_offsets"
GROUP = "watched"
# abs("watched".hashCode()) % 50, by Java.
PARTITION = 6


def commit(bootstrap: str, topic: str, offset: int) -> None:
    """Commits as a client that is no member of the group."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": GROUP, **QUIET})
    at = TopicPartition(topic, 0, offset)
    committed = consumer.commit(offsets=[at], asynchronous=False)
    assert committed[0].error is None
    consumer.close()


def newest(bootstrap: str) -> list[tuple[int, bytes, bytes | None]]:
    """Everything that the group's partition holds: offset, key, value."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "reader", "enable.auto.commit": False, **QUIET})
    low, high = consumer.get_watermark_offsets(TopicPartition(OFFSETS, PARTITION), timeout=10)
    consumer.assign([TopicPartition(OFFSETS, PARTITION, low)])
    found: list[tuple[int, bytes, bytes | None]] = []
    while not found or found[-1][0] + 1 < high:
        if low == high:
            break
        message = consumer.poll(10)
        assert message is not None, f"{low}..{high}, got {len(found)}"
        assert message.error() is None, message.error()
        found.append((message.offset(), message.key(), message.value()))
    consumer.close()
    return found


def test_kafkas_own_formatter_reads_what_was_committed(
    make_broker: Callable[..., Strandline], topic_name: str, kafka_tool: Callable[..., str]
) -> None:
    broker = make_broker()
    broker.start()
    create_topic(broker.bootstrap, topic_name)
    produce(broker.bootstrap, topic_name, [Record(value=b"a"), Record(value=b"b")])
    assert OFFSETS not in topic_names(broker.bootstrap), "nobody has looked for a coordinator yet"
    commit(broker.bootstrap, topic_name, 2)
    assert OFFSETS in topic_names(broker.bootstrap)

    wait_until("the commit is told of", lambda: newest(broker.bootstrap))
    text = kafka_tool(
        "console-consumer", "--bootstrap-server", broker.bootstrap, "--topic", OFFSETS,
        "--partition", str(PARTITION), "--offset", "earliest", "--max-messages", "1",
        "--formatter", "org.apache.kafka.tools.consumer.OffsetsMessageFormatter",
    )
    told = json.loads(text)
    assert told["key"]["data"] == {"group": GROUP, "topic": topic_name, "partition": 0}
    assert told["value"]["data"]["offset"] == 2

    # What was told before is gone with the process; what is told later stands above it.
    before = newest(broker.bootstrap)
    broker.kill()
    broker.start()
    assert OFFSETS in topic_names(broker.bootstrap)
    commit(broker.bootstrap, topic_name, 1)
    wait_until("the next commit is told of", lambda: newest(broker.bootstrap))
    after = newest(broker.bootstrap)
    assert after[0][0] > before[-1][0]
    assert after[0][1] == before[-1][1], "the same key"
