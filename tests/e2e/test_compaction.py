"""Compaction as a user of a real client notices it: what stays, what readers see, what a kill leaves."""

import time

import pytest
from broker import Strandline
from clients import Record, bounds, consume, consumer, create_topic, delete_topic, produce
from command import found
from confluent_kafka import KafkaError, KafkaException, TopicPartition
from deadline import wait_until
from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as PythonPartition
from kafka.errors import InvalidRecordError
from observed import being_rewritten, metric, stored_bytes, stored_segments

OFTEN = {"log_cleaner_backoff_ms": 100, "log_retention_check_interval_ms": 100}
EAGER = {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": 0.01}
SMALL = {"internal_segment_bytes": 6000}

Table = dict[bytes, bytes]


def table_of(records: list[Record]) -> Table:
    """Key to value, as whoever reads a compacted topic builds it."""
    table: Table = {}
    for record in records:
        assert record.key is not None
        if record.value is None:
            table.pop(record.key, None)
        else:
            table[record.key] = record.value
    return table


def newest(written: dict[int, Record]) -> dict[bytes, int]:
    """Where the newest record of each key is: Kafka's rule says that it stays there."""
    return {record.key: offset for offset, record in sorted(written.items())}


def left(broker: Strandline, topic: str) -> list[Record]:
    return consume(broker.bootstrap, topic, check_crcs=True)


def is_as_written(record: Record, written: dict[int, Record]) -> bool:
    wrote = written[record.offset]
    return (record.key, record.value) == (wrote.key, wrote.value)


def check(records: list[Record], written: dict[int, Record]) -> None:
    """What is left was written there, and has the newest record of each key."""
    for record in records:
        assert is_as_written(record, written), record.offset
    offsets = [record.offset for record in records]
    assert offsets == sorted(set(offsets))
    assert set(newest(written).values()) <= set(offsets)


def values(keys: int, rounds: int, size: int, start: int = 0) -> list[Record]:
    """Each key once in each round, with a value that tells its number."""
    numbers = range(start, start + keys * rounds)
    return [Record(f"{number:08d}".encode().ljust(size, b"."), key=f"k{number % keys}".encode()) for number in numbers]


def settled(broker: Strandline, topic: str, at_most: int) -> list[Record]:
    """What is left once at most so many records are."""

    def few() -> list[Record] | None:
        records = left(broker, topic)
        return records if len(records) <= at_most else None

    return wait_until(f"at most {at_most} records of {topic} are left", few, seconds=60)


@pytest.mark.strandline
@pytest.mark.parametrize(("codec", "segment"), [("none", 6000), ("zstd", 700)])
def test_the_newest_record_of_each_key_stays_at_its_offset(make_broker, topic_name: str, codec: str, segment: int) -> None:
    broker = make_broker(**OFTEN).start()
    create_topic(broker.bootstrap, topic_name, **EAGER, internal_segment_bytes=segment)
    records = values(keys=20, rounds=20, size=200)
    offsets = produce(broker.bootstrap, topic_name, records, batch_num_messages=7, compression_type=codec)
    assert offsets == list(range(400))
    written = dict(zip(offsets, records, strict=True))
    # The newest of each, and what is in the active segment.
    after = settled(broker, topic_name, at_most=60)
    check(after, written)
    assert table_of(after) == table_of(records)
    assert bounds(broker.bootstrap, topic_name) == (0, 400)

    reader = KafkaConsumer(bootstrap_servers=broker.bootstrap, consumer_timeout_ms=3000, check_crcs=True)
    place = PythonPartition(topic_name, 0)
    reader.assign([place])
    for start in (0, 7, 200, 399):
        reader.seek(place, start)
        expected = [record.offset for record in after if record.offset >= start]
        got: list[int] = []
        while len(got) < len(expected):
            polled = reader.poll(timeout_ms=2000)
            assert polled, f"{len(got)} of {len(expected)}"
            got += [message.offset for messages in polled.values() for message in messages]
        assert got == expected, f"from a hole at {start}"
    reader.close()


@pytest.mark.strandline
def test_tombstones_can_be_read_for_their_time_and_go_though_nothing_comes(make_broker, topic_name: str) -> None:
    broker = make_broker(**OFTEN).start()
    create_topic(broker.bootstrap, topic_name, **EAGER, internal_segment_bytes=200, delete_retention_ms=3000)
    produce(broker.bootstrap, topic_name, [Record(b"old", key=b"gone")])
    produce(broker.bootstrap, topic_name, [Record(None, key=b"gone", headers=(("why", b"moved"),))])
    for number in range(4):
        produce(broker.bootstrap, topic_name, [Record(b"filler", key=f"f{number}".encode())])

    def cleaned() -> float | None:
        return time.monotonic() if left(broker, topic_name)[0].offset == 1 else None

    since = wait_until("the old value is gone", cleaned)
    tombstone = left(broker, topic_name)[0]
    assert (tombstone.key, tombstone.value) == (b"gone", None)
    assert tombstone.headers == (("why", b"moved"),)

    def gone() -> bool:
        there = left(broker, topic_name)[0].offset == 1
        assert there or time.monotonic() - since > 2.5, "it can be read for its time"
        return not there

    wait_until("the tombstone is gone", gone, seconds=30)
    assert table_of(left(broker, topic_name)) == {f"f{number}".encode(): b"filler" for number in range(4)}


@pytest.mark.parametrize("policy", ["compact", "compact,delete"])
def test_records_without_keys_are_refused(broker, topic_name: str, policy: str) -> None:
    create_topic(broker.bootstrap, topic_name, cleanup_policy=policy)
    with pytest.raises(KafkaException) as refused:
        produce(broker.bootstrap, topic_name, [Record(b"no key")])
    assert refused.value.args[0].code() == KafkaError.INVALID_RECORD
    producer = KafkaProducer(bootstrap_servers=broker.bootstrap)
    with pytest.raises(InvalidRecordError):
        producer.send(topic_name, value=b"no key").get(timeout=20)
    producer.close()
    assert bounds(broker.bootstrap, topic_name) == (0, 0)
    assert produce(broker.bootstrap, topic_name, [Record(b"v", key=b"k")]) == [0]


@pytest.mark.strandline
def test_a_topic_that_is_rewritten_steadily_stays_small(make_broker, topic_name: str) -> None:
    broker = make_broker(**OFTEN).start()
    create_topic(broker.bootstrap, topic_name, **EAGER, internal_segment_bytes=40_000)
    keys, size = 100, 300
    written: dict[int, Record] = {}

    def segments() -> list[dict]:
        return found("topic", "segments", topic_name, broker=broker)

    for turn in range(30):
        records = values(keys, 4, size, start=turn * keys * 4)
        offsets = produce(broker.bootstrap, topic_name, records, batch_num_messages=50)
        written |= zip(offsets, records, strict=True)
        if turn == 15:
            broker.stop()
            broker.start()
    # 3.6 MB were written; 30 kB are alive, and the active segment.
    wait_until("few segments are left", lambda: len(segments()) <= 5, seconds=60)
    wait_until("the files are gone", lambda: stored_bytes(broker) < 200_000)
    # So few there may be before a pass has been over them.
    wait_until("some are clean", lambda: "clean" in {one["state"] for one in segments()}, seconds=60)
    assert {one["state"] for one in segments()} <= {"clean", "dirty", "open"}
    after = left(broker, topic_name)
    check(after, written)
    assert table_of(after) == table_of(list(written.values()))
    assert metric(broker, "strandline_compaction_failing_partitions") == 0
    assert metric(broker, "strandline_compaction_passes_total") > 0
    read, wrote = (metric(broker, f"strandline_compaction_{what}_bytes_total") for what in ("read", "written"))
    assert read > wrote


@pytest.mark.strandline
def test_a_kill_while_logs_are_compacted_loses_nothing_and_revives_nothing(make_broker, topic_name: str) -> None:
    # Slow enough that kills fall into passes.
    slow = {"log_cleaner_backoff_ms": 1, "log_cleaner_threads": 2, "log_cleaner_io_max_bytes_per_second": 400_000}
    broker = make_broker(**slow).start()
    topics = [f"{topic_name}-{index}" for index in range(3)]
    for topic in topics:
        create_topic(broker.bootstrap, topic, **EAGER, internal_segment_bytes=20_000, delete_retention_ms=500)
    written: dict[str, dict[int, Record]] = {topic: {} for topic in topics}

    for turn in range(8):
        before = being_rewritten(broker)
        for topic in topics:
            records = values(40, 5, 200, start=turn * 200)
            deleted = f"k{turn % 40}".encode()
            records.append(Record(None, key=deleted))
            offsets = produce(broker.bootstrap, topic, records, batch_num_messages=11)
            written[topic] |= zip(offsets, records, strict=True)
        # The file that takes the place of segments is made at first; what follows takes its time.
        wait_until("a segment is being rewritten", lambda before=before: being_rewritten(broker) - before)
        broker.kill()
        broker.start()
        for topic in topics:
            after = left(broker, topic)
            expected = table_of([record for _, record in sorted(written[topic].items())])
            assert table_of(after) == expected, f"{topic} after kill {turn}"
            for record in after:
                assert is_as_written(record, written[topic]), record.offset
    for topic in topics:
        last = max(written[topic])
        assert bounds(broker.bootstrap, topic) == (0, last + 1)

        def is_clean(topic: str = topic) -> bool:
            listed = found("topic", "segments", topic, broker=broker)
            return all(one["state"] in ("clean", "open") for one in listed)

        wait_until("all is compacted", is_clean, seconds=60)
        # Kafka's rule: below the active segment each key is there once at most, its newest record.
        begin = max(one["base_offset"] for one in found("topic", "segments", topic, broker=broker) if one["state"] == "open")
        compacted = [record for record in left(broker, topic) if record.offset < begin]
        keys = [record.key for record in compacted]
        assert len(keys) == len(set(keys))
        of_compacted = newest({offset: one for offset, one in written[topic].items() if offset < begin})
        for record in compacted:
            assert of_compacted[record.key] == record.offset
        missing = set(of_compacted.values()) - {record.offset for record in compacted}
        assert all(written[topic][offset].value is None for offset in missing), "only tombstones may be gone"

    listed = {one["name"] for topic in topics for one in found("topic", "segments", topic, broker=broker)}
    wait_until("what is listed is stored and nothing else", lambda: stored_segments(broker) == listed)


@pytest.mark.strandline
def test_a_topic_that_is_deleted_while_it_is_compacted_leaves_nothing(make_broker, topic_name: str) -> None:
    slow = {"log_cleaner_backoff_ms": 1, "log_cleaner_io_max_bytes_per_second": 50_000}
    broker = make_broker(**slow, deletion_grace_ms=0).start()
    create_topic(broker.bootstrap, topic_name, **EAGER, internal_segment_bytes=20_000)
    produce(broker.bootstrap, topic_name, values(40, 20, 200), batch_num_messages=11)
    wait_until("a segment is being rewritten", lambda: being_rewritten(broker))
    delete_topic(broker.bootstrap, topic_name)
    create_topic(broker.bootstrap, topic_name, **EAGER)
    assert bounds(broker.bootstrap, topic_name) == (0, 0)
    wait_until("its files are gone", lambda: stored_bytes(broker) == 0, seconds=60)
    assert produce(broker.bootstrap, topic_name, [Record(b"v", key=b"k")]) == [0]


@pytest.mark.strandline
def test_a_reader_goes_on_while_the_log_is_compacted_under_it(make_broker, topic_name: str) -> None:
    broker = make_broker(**OFTEN).start()
    create_topic(broker.bootstrap, topic_name, **EAGER, **SMALL)
    records = values(keys=10, rounds=100, size=200)
    written: dict[int, Record] = {}
    reader = consumer(broker.bootstrap, check_crcs=True, fetch_message_max_bytes=2000, queued_max_messages_kbytes=4)
    reader.assign([TopicPartition(topic_name, 0, 0)])
    seen = -1
    for begin in range(0, len(records), 100):
        part = records[begin : begin + 100]
        offsets = produce(broker.bootstrap, topic_name, part, batch_num_messages=10)
        written |= zip(offsets, part, strict=True)
        for _ in range(30):
            message = reader.poll(0.05)
            if message is not None and message.error() is None:
                assert message.offset() > seen
                seen = message.offset()
                assert message.value() == written[seen].value
    last = len(records) - 1

    def at_end() -> bool:
        nonlocal seen
        message = reader.poll(0.5)
        if message is not None and message.error() is None:
            assert message.offset() > seen and message.value() == written[message.offset()].value
            seen = message.offset()
        return seen == last

    wait_until("the reader is at the end", at_end, seconds=60)
    reader.close()
