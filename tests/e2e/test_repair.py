"""Damaged partitions that serve again: what is whole is read where it was, and what is lost is told."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from broker import Strandline
from clients import Record, bounds, consume, create_topic, produce, read
from command import strandline
from confluent_kafka import TopicPartition
from kafka import KafkaConsumer
from kafka import TopicPartition as Place
from test_reconcile import content, topic_folder

pytestmark = [pytest.mark.strandline, pytest.mark.files("`storage repair` works on a folder")]

Make = Callable[[], Strandline]


def repair(code: int, broker: Strandline, *words: str) -> list[dict]:
    result = strandline("storage", "repair", "--data", str(broker.data), "--format", "json", *words)
    assert result.returncode == code, f"{result.stdout}\n{result.stderr}"
    return json.loads(result.stdout)


def kafka_python(broker: Strandline, topic: str) -> list[int]:
    """The offsets that another client reads."""
    reader = KafkaConsumer(
        bootstrap_servers=broker.bootstrap, consumer_timeout_ms=3_000, auto_offset_reset="earliest"
    )
    reader.assign([Place(topic, 0)])
    reader.seek_to_beginning()
    offsets = [record.offset for record in reader]
    reader.close()
    return offsets


def filled(broker: Strandline, topic: str, count: int) -> list[Path]:
    """The segments of a topic, of four records each."""
    create_topic(broker.bootstrap, topic, internal_segment_bytes=2_000)
    for number in range(count):
        produce(broker.bootstrap, topic, [Record(str(number).encode() * 300)])
    assert broker.stop() == 0
    segments = sorted(only_folder(broker).glob("*.log"))
    assert len(segments) > 3, segments
    return segments


def only_folder(broker: Strandline) -> Path:
    [folder] = [path for path in (broker.data / "logs").glob("*/0") if list(path.glob("*.log"))]
    return folder


def test_a_bad_place_costs_what_lies_there(lossy: Make, topic_name: str) -> None:
    broker = lossy().start()
    segments = filled(broker, topic_name, 20)
    assert repair(0, broker, "--dry-run") == []
    hurt = segments[1].read_bytes()
    middle = len(hurt) // 2
    segments[1].write_bytes(hurt[:middle] + b"x" + hurt[middle + 1 :])
    before = content(broker.data)
    for code, words in ((4, ["--dry-run"]), (2, [])):
        [planned] = repair(code, broker, *words)
        assert (planned["log"], planned["done"]) == (f"{topic_name}-0", False)
    assert content(broker.data) == before, "a look changes nothing"
    [done] = repair(0, broker, "--yes")
    assert done == {**planned, "done": True}
    [lost] = done["lost"]
    assert lost["certain"] and lost["to"] - lost["from"] == 1 and "crc mismatch" in lost["what"]
    assert repair(0, broker, "--yes") == []
    expected = [offset for offset in range(20) if offset != lost["from"]]
    broker.start()
    found = consume(broker.bootstrap, topic_name)
    assert [record.offset for record in found] == expected
    assert all(record.value == str(record.offset).encode() * 300 for record in found)
    assert kafka_python(broker, topic_name) == expected
    assert produce(broker.bootstrap, topic_name, [Record(b"on")]) == [20]


def test_a_lost_end_is_stepped_over(lossy: Make, topic_name: str) -> None:
    broker = lossy().start()
    segments = filled(broker, topic_name, 20)
    segments[-1].unlink()
    first = int(segments[-1].name.split(".")[0])
    [done] = repair(0, broker, "--yes")
    [lost] = done["lost"]
    assert (lost["from"], lost["to"], done["end"]) == (first, 20, 20)
    broker.start()
    assert bounds(broker.bootstrap, topic_name) == (0, 20)
    assert [record.offset for record in consume(broker.bootstrap, topic_name)] == list(range(first))
    assert kafka_python(broker, topic_name) == list(range(first))
    # Who was behind the end waits there, and gets what comes.
    assert produce(broker.bootstrap, topic_name, [Record(b"on")]) == [20]
    place = TopicPartition(topic_name, 0, first + 1)
    assert [record.offset for record in read([place], broker.bootstrap)] == [20]
    assert kafka_python(broker, topic_name) == [*range(first), 20]


def test_what_the_journal_had_is_put_back(lossy: Make, topic_name: str) -> None:
    broker = lossy().start()
    create_topic(broker.bootstrap, topic_name)
    produce(broker.bootstrap, topic_name, [Record(b"v")] * 10)
    folder = topic_folder(broker, topic_name)
    assert broker.stop() == 0
    broker.start()
    produce(broker.bootstrap, topic_name, [Record(b"w")] * 5)
    broker.kill()
    (folder / "0" / "00000000000000000000.log").unlink()
    broker.start()
    assert "log is damaged and stays closed" in broker.log.read_text()
    assert broker.stop() == 0
    [done] = repair(0, broker, "--yes")
    assert "segment is missing" in done["damage"]
    assert done["put_back_batches"] > 0 and done["kept_batches"] == done["put_back_batches"]
    assert [(lost["from"], lost["to"]) for lost in done["lost"]] == [(0, 10)]
    broker.start()
    found = consume(broker.bootstrap, topic_name)
    assert [(record.offset, record.value) for record in found] == [(offset, b"w") for offset in range(10, 15)]
