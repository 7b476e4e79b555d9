"""Finding and waiting for records: by timestamp, by offset, by long poll."""

import threading
import time
from collections.abc import Iterable

import pytest
from broker import Broker
from clients import OFFSET_BEGINNING, Record, admin, as_record, bounds, consume, consumer, create_topic, produce
from confluent_kafka import OFFSET_END, KafkaError, KafkaException, TopicPartition


def test_seek_by_timestamp_finds_the_first_record_at_or_after_it(broker: Broker, topic: str) -> None:
    base = 1_700_000_000_000
    # In batches of their own, so that the answer needs more than one index entry.
    for i in range(20):
        records = [Record(f"{i}/{j}".encode(), timestamp=base + i * 1000 + j * 10) for j in range(10)]
        produce(broker.bootstrap, topic, records)
    reader = consumer(broker.bootstrap)
    asked = {base - 5: 0, base: 0, base + 1: 1, base + 5_050: 55, base + 5_051: 56, base + 5_091: 60, base + 19_090: 199}
    try:
        for stamp, offset in asked.items():
            [answer] = reader.offsets_for_times([TopicPartition(topic, 0, stamp)], timeout=10)
            assert (stamp, answer.offset) == (stamp, offset)
        [after_all] = reader.offsets_for_times([TopicPartition(topic, 0, base + 19_091)], timeout=10)
        assert after_all.offset == OFFSET_END
    finally:
        reader.close()


@pytest.mark.parametrize("batches", [[[2, 4, 6, 8]], [[2], [4], [6], [8]]], ids=["one batch", "a batch each"])
def test_a_time_between_two_records_finds_the_next(broker: Broker, topic_name: str, batches: list[list[int]]) -> None:
    create_topic(broker.bootstrap, topic_name, retention_ms=-1)
    for stamps in batches:
        produce(broker.bootstrap, topic_name, [Record(b"v", timestamp=stamp) for stamp in stamps], together=True)
    assert offsets_since(broker, topic_name, range(1, 10)) == [0, 0, 1, 1, 2, 2, 3, 3, OFFSET_END]
    # A log that was emptied has an answer too: there is none such.
    [trimmed] = admin(broker.bootstrap).delete_records([TopicPartition(topic_name, 0, 4)]).values()
    assert trimmed.result(timeout=20).low_watermark == 4
    assert offsets_since(broker, topic_name, range(1, 10)) == [OFFSET_END] * 9


def offsets_since(broker: Broker, topic: str, stamps: Iterable[int]) -> list[int]:
    reader = consumer(broker.bootstrap)
    try:
        asked = ([TopicPartition(topic, 0, stamp)] for stamp in stamps)
        return [reader.offsets_for_times(places, timeout=10)[0].offset for places in asked]
    finally:
        reader.close()


def test_reading_begins_at_any_offset(broker: Broker, topic: str) -> None:
    produce(broker.bootstrap, topic, [Record(f"{i}".encode()) for i in range(1000)], batch_num_messages=100)
    for start in (0, 1, 99, 100, 550, 999, 1000):
        found = consume(broker.bootstrap, topic, start=start)
        assert [r.offset for r in found] == list(range(start, 1000))


def test_an_offset_beyond_the_end_is_out_of_range(broker: Broker, topic: str) -> None:
    produce(broker.bootstrap, topic, [Record(b"only")])
    with pytest.raises(KafkaException) as refused:
        consume(broker.bootstrap, topic, start=5, auto_offset_reset="error")
    assert refused.value.args[0].code() == KafkaError._AUTO_OFFSET_RESET


def test_bounds_of_an_empty_and_a_filled_partition(broker: Broker, topic: str) -> None:
    assert bounds(broker.bootstrap, topic) == (0, 0)
    produce(broker.bootstrap, topic, [Record(b"v")] * 7)
    assert bounds(broker.bootstrap, topic) == (0, 7)


def test_a_long_poll_wakes_at_once(broker: Broker, topic: str) -> None:
    """Records reach a waiting consumer long before its wait is over."""
    reader = consumer(broker.bootstrap, fetch_wait_max_ms=30_000, fetch_min_bytes=1, enable_partition_eof=False)
    reader.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    produce(broker.bootstrap, topic, [Record(b"first")])
    assert as_record(reader.poll(20)).value == b"first"
    delays = []
    try:
        for index in range(10):
            value = f"{index}".encode()
            received: list[tuple[bytes, float]] = []

            def wait() -> None:
                message = reader.poll(20)
                received.append((message.value(), time.monotonic()))

            waiting = threading.Thread(target=wait)
            waiting.start()
            sent = time.monotonic()
            produce(broker.bootstrap, topic, [Record(value)], linger_ms=0)
            waiting.join(25)
            assert received and received[0][0] == value
            delays.append(received[0][1] - sent)
    finally:
        reader.close()
    assert sorted(delays)[5] < 1.0, delays


def test_a_fetch_over_many_partitions_reads_each(broker: Broker, topic_name: str) -> None:
    """One request for 200 partitions with more bytes than one response holds."""
    create_topic(broker.bootstrap, topic_name, partitions=200)
    records = [Record(bytes([i % 251]) * 20_000, partition=i % 200) for i in range(2_000)]
    produce(broker.bootstrap, topic_name, records, enable_idempotence=True, queue_buffering_max_kbytes=100_000)
    found = consume(broker.bootstrap, topic_name, partitions=200, fetch_max_bytes=2_000_000, check_crcs=True)
    for partition in range(200):
        assert [r.value for r in found if r.partition == partition] == [
            r.value for r in records if r.partition == partition
        ]
