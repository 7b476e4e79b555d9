"""Retention as a user of a real client notices it: what goes, what readers see, what settings do."""

import json

import pytest
from broker import Strandline
from clients import Record, admin, bounds, consume, consumer, create_topic, produce, read
from command import done, found, refused
from confluent_kafka import KafkaError, TopicPartition
from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType
from deadline import wait_until
from observed import metric, stored_bytes, stored_segments

pytestmark = pytest.mark.strandline

OFTEN = {"log_retention_check_interval_ms": 100}
FIFTY = [Record(f"{index:04d}".encode() * 250) for index in range(50)]


def fill(broker: Strandline, topic: str, **config: object) -> None:
    """Fifty records of 1000 bytes, each in a batch of its own, five to a segment."""
    create_topic(broker.bootstrap, topic, internal_segment_bytes=5500, **config)
    assert produce(broker.bootstrap, topic, FIFTY, batch_num_messages=1) == list(range(50))


def settled_start(broker: Strandline, topic: str, at_most: int) -> int:
    """The log start once at most so many records are left."""

    def start() -> int | None:
        low, high = bounds(broker.bootstrap, topic)
        return low if high - low <= at_most else None

    return wait_until(f"at most {at_most} records of {topic} are left", start)


def configure(broker: Strandline, kind: ResourceType, name: str, key: str, value: str) -> None:
    entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(kind, name, incremental_configs=[entry])
    admin(broker.bootstrap).incremental_alter_configs([resource])[resource].result(timeout=20)


def test_each_limit_is_kept(make_broker, topic_name: str) -> None:
    broker = make_broker(**OFTEN).start()
    fill(broker, f"{topic_name}-size", retention_bytes=22_000)
    fill(broker, f"{topic_name}-count", retention_records=20)
    fill(broker, f"{topic_name}-age", retention_ms=500)
    fill(broker, f"{topic_name}-none", retention_ms=-1)
    for kind in ["size", "count"]:
        start = settled_start(broker, f"{topic_name}-{kind}", at_most=20)
        assert 30 <= start <= 45, "whole segments go, and not more than needed"
        left = consume(broker.bootstrap, f"{topic_name}-{kind}", check_crcs=True)
        assert [record.value for record in left] == [record.value for record in FIFTY[start:]]
    assert settled_start(broker, f"{topic_name}-age", at_most=0) == 50
    assert produce(broker.bootstrap, f"{topic_name}-age", FIFTY[:1]) == [50]
    assert bounds(broker.bootstrap, f"{topic_name}-none") == (0, 50)
    removed = 'strandline_topic_retention_removed_bytes_total{topic="%s-age",limit="retention.ms"}'
    assert metric(broker, removed % topic_name) > 50_000
    assert metric(broker, f'strandline_topic_retention_overdue_bytes{{topic="{topic_name}-none"}}') == 0
    assert stored_bytes(broker) < 150_000


def test_a_consumer_of_what_is_gone_goes_on_as_its_policy_says(make_broker, topic_name: str) -> None:
    broker = make_broker(**OFTEN).start()
    fill(broker, topic_name, retention_records=20)
    start = settled_start(broker, topic_name, at_most=20)
    gone = TopicPartition(topic_name, 0, 3)
    earliest = read([gone], broker.bootstrap, auto_offset_reset="earliest")
    assert [record.offset for record in earliest] == list(range(start, 50))
    assert read([gone], broker.bootstrap, auto_offset_reset="latest") == []

    reader = consumer(broker.bootstrap, auto_offset_reset="error")
    reader.assign([gone])
    error = wait_until("the consumer is told", lambda: (message := reader.poll(1.0)) and message.error())
    reader.close()
    assert error.code() == KafkaError._AUTO_OFFSET_RESET and "out of range" in error.str().lower()


def test_settings_change_while_the_broker_runs(make_broker, topic_name: str) -> None:
    broker = make_broker().start()
    fill(broker, topic_name, retention_ms=-1)
    fill(broker, f"{topic_name}-default")
    configure(broker, ResourceType.BROKER, "1", "log.retention.check.interval.ms", "100")
    configure(broker, ResourceType.TOPIC, topic_name, "retention.records", "30")
    assert settled_start(broker, topic_name, at_most=30) < 50
    assert bounds(broker.bootstrap, f"{topic_name}-default") == (0, 50)
    configure(broker, ResourceType.TOPIC, topic_name, "retention.records", "10")
    assert settled_start(broker, topic_name, at_most=10) < 50
    configure(broker, ResourceType.BROKER, "1", "log.retention.ms", "100")
    assert settled_start(broker, f"{topic_name}-default", at_most=0) == 50
    assert bounds(broker.bootstrap, topic_name)[0] < 50, "its own setting is for ever"


def test_what_is_gone_stays_gone_and_what_nobody_uses_goes_too(make_broker, topic_name: str) -> None:
    broker = make_broker(**OFTEN).start()
    fill(broker, topic_name, retention_records=20)
    fill(broker, f"{topic_name}-idle", retention_ms=1000)
    start = settled_start(broker, topic_name, at_most=20)
    broker.kill()
    broker.start()
    assert bounds(broker.bootstrap, topic_name) == (start, 50)

    def segments() -> list:
        return found("topic", "segments", f"{topic_name}-idle", broker=broker)

    wait_until("the topic is empty though nobody opened it", lambda: segments() == [])
    assert bounds(broker.bootstrap, f"{topic_name}-idle") == (50, 50)


def test_a_broker_that_is_killed_again_and_again_keeps_what_it_should_and_nothing_else(make_broker, topic_name: str) -> None:
    broker = make_broker(log_retention_check_interval_ms=20).start()
    create_topic(broker.bootstrap, topic_name, internal_segment_bytes=5500, retention_records=40)
    total = 0
    for _ in range(6):
        # Sealed segments go while these come; the kill falls somewhere in between.
        assert produce(broker.bootstrap, topic_name, FIFTY, batch_num_messages=1)[-1] == total + 49
        total += 50
        broker.kill()
        broker.start()
        low, high = bounds(broker.bootstrap, topic_name)
        assert high == total and low <= total - 5, "at least the newest segment is left"
        left = consume(broker.bootstrap, topic_name, check_crcs=True)
        expected = [(offset, FIFTY[offset % 50].value) for offset in range(left[0].offset, total)]
        assert [(record.offset, record.value) for record in left] == expected
    settled_start(broker, topic_name, at_most=40)
    listed = {one["name"] for one in found("topic", "segments", topic_name, broker=broker)}
    wait_until("what is listed is stored and nothing else", lambda: stored_segments(broker) == listed)


def test_the_forecast_tells_why_and_when(make_broker, topic_name: str) -> None:
    broker = make_broker().start()
    fill(broker, topic_name, retention_ms=3_600_000)
    topic = found("topic", "retention", topic_name, broker=broker)
    assert (topic["retention_ms"], topic["retention_bytes"], topic["cleanup_policy"]) == (3_600_000, None, "delete")
    [partition] = topic["partitions"]
    assert (partition["log_start_offset"], partition["log_end_offset"], partition["due_bytes"]) == (0, 50, 0)
    assert partition["oldest"]["reason"] == "not_expired" and partition["oldest"]["goes_at"] is not None

    text = done("topic", "retention", topic_name, "--if", "retention.records=20", broker=broker)
    assert "awaiting_check (retention.records)" in text
    simulated = found("topic", "retention", topic_name, "--if", "retention.bytes=22kB", broker=broker)
    due = simulated["partitions"][0]
    assert due["due_bytes"] > 25_000 and bounds(broker.bootstrap, topic_name) == (0, 50), "nothing was changed"
    assert simulated["retention_bytes"] == 22_000

    segments = found("topic", "segments", topic_name, broker=broker)
    assert [one["base_offset"] for one in segments] == list(range(0, 50, 5))
    assert [one["state"] for one in segments] == ["sealed"] * 9 + ["open"]
    assert sum(one["bytes"] for one in segments) == partition["bytes"]
    assert {one["name"] for one in segments} <= stored_segments(broker)
    assert done("topic", "segments", topic_name, "-p", "7", "--format", "json", broker=broker) == "[]\n"

    # What was foretold happens.
    configure(broker, ResourceType.TOPIC, topic_name, "retention.bytes", "22000")
    configure(broker, ResourceType.BROKER, "1", "log.retention.check.interval.ms", "100")
    gone = wait_until("retention removes it", lambda: bounds(broker.bootstrap, topic_name)[0])
    assert gone == 5 * due["due_segments"]


def test_very_many_segments_are_all_listed(make_broker, topic_name: str) -> None:
    """More than the command asks for at once."""
    broker = make_broker().start()
    create_topic(broker.bootstrap, topic_name, internal_segment_bytes=120, retention_ms=-1)
    records = [Record(b"%04d" % index * 10) for index in range(5_100)]
    assert produce(broker.bootstrap, topic_name, records, batch_num_messages=1)[-1] == 5_099
    segments = found("topic", "segments", topic_name, broker=broker)
    assert [one["base_offset"] for one in segments] == list(range(5_100))


def test_questions_that_make_no_sense_are_told_so(make_broker, topic_name: str) -> None:
    broker = make_broker().start()
    create_topic(broker.bootstrap, topic_name)
    assert "no such topic: nope" in refused(1, "topic", "retention", "nope", broker=broker)
    assert "no such topic: nope" in refused(1, "topic", "segments", "nope", broker=broker)
    assert "retention.mss" in refused(2, "topic", "retention", topic_name, "--if", "retention.mss=1", broker=broker)
    assert "not a number" in refused(2, "topic", "retention", topic_name, "--if", "retention.ms=x", broker=broker).lower()
    assert "beyond a limit" in done("explain", "awaiting_check")
    assert json.loads(done("explain", "open_segment", "--format", "json"))[0]["kind"] == "retention_reason"
