"""What is stored beside what is known: nobody's logs are set aside, lost ones are never empty."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from broker import Strandline
from clients import Record, admin, consume, create_topic, produce
from command import strandline
from confluent_kafka import KafkaError, Producer, TopicCollection
from deadline import wait_until
from observed import files_below, get, metric
from storage import STORAGE

pytestmark = pytest.mark.strandline
FILES = pytest.mark.files("what happens to files and folders; test_postgres_space.py does the same to rows")

Make = Callable[..., Strandline]

STRANGER = "QkJCQkJCQkJCQkJCQkJCQg"
SEGMENT = "00000000000000000000.log"


def storage(broker: Strandline) -> dict:
    """What reconciliation found last of the session's engine; nothing before its first look."""
    status, text = get(broker, "/v1/storage")
    assert status == 200, text
    found = [one for one in json.loads(text) if one["engine"] == STORAGE]
    return found[0] if found else {}


def plant(broker: Strandline, partition: int = 0, root: str = "logs") -> Path:
    folder = broker.data / root / STRANGER / str(partition)
    folder.mkdir(parents=True)
    (folder / SEGMENT).write_bytes(os.urandom(10_000))
    return folder


def topic_folder(broker: Strandline, topic: str) -> Path:
    described = admin(broker.bootstrap).describe_topics(TopicCollection([topic]))[topic].result(timeout=10)
    # librdkafka prints base64 with the two letters that a path can't have.
    return broker.data / "logs" / str(described.topic_id).replace("+", "-").replace("/", "_")


def failure_of_produce(broker: Strandline, topic: str) -> int:
    failures: list[KafkaError] = []
    settings = {"bootstrap.servers": broker.bootstrap, "retries": 0, "message.timeout.ms": 5_000, "log_level": 0}
    producer = Producer(settings)
    producer.produce(topic, b"v", partition=0, on_delivery=lambda error, _: failures.append(error))
    producer.flush(10)
    return failures[0].code() if failures[0] else 0


def refused_lookup(broker: Strandline, topic: str) -> str:
    """What our own command says of a topic whose offsets it can't look up; nothing when it can."""
    result = strandline("topic", "offsets", topic, broker=broker)
    return result.stderr if result.returncode else ""


@FILES
def test_a_log_that_no_topic_knows_is_set_aside_and_removed_later(make_broker: Make, topic_name: str) -> None:
    broker = make_broker(reconciliation_interval_ms=1000, quarantine_retention_ms=6000).start()
    create_topic(broker.bootstrap, topic_name)
    produce(broker.bootstrap, topic_name, [Record(b"v")] * 10)
    planted = plant(broker)
    aside = broker.data / "quarantine" / STRANGER / "0"
    wait_until("it is set aside", lambda: (aside / SEGMENT).exists())
    wait_until("its folder is gone", lambda: not planted.exists())
    [told] = wait_until("it is told of", lambda: storage(broker).get("strangers"))
    assert (told["topic_id"], told["partition"], told["state"], told["bytes"]) == (STRANGER, 0, "quarantined", 10_000)
    assert metric(broker, 'strandline_storage_orphans{engine="file"}') == 1
    assert metric(broker, 'strandline_storage_quarantined_bytes{engine="file"}') == 10_000
    assert "no topic knows this log" in broker.log.read_text()
    # Killed while it waits: it goes all the same.
    broker.kill()
    broker.start()
    assert wait_until("it is told of again", lambda: storage(broker)).get("strangers") in ([told], [])
    wait_until("it is removed", lambda: not aside.exists())
    wait_until("that is told", lambda: storage(broker).get("strangers") == [])
    assert len(consume(broker.bootstrap, topic_name)) == 10


@FILES
def test_kills_in_between_lose_nothing_that_is_known(make_broker: Make, topic_name: str) -> None:
    broker = make_broker(reconciliation_interval_ms=1000, quarantine_retention_ms=0).start()
    create_topic(broker.bootstrap, topic_name, partitions=3)
    for round_ in range(4):
        produce(broker.bootstrap, topic_name, [Record(b"v", partition=i % 3) for i in range(30)])
        for partition in range(3):
            plant(broker, round_ * 3 + partition)
        if round_ % 2:
            wait_until("the first are set aside", lambda: files_below(broker.data / "quarantine"))
        broker.kill()
        broker.start()
    wait_until("all strangers are gone", lambda: not any(STRANGER in path.parts for path in files_below(broker.data)))
    assert len(consume(broker.bootstrap, topic_name, partitions=3)) == 120


@FILES
def test_a_partition_whose_folder_is_gone_is_never_empty(lossy: Make, topic_name: str) -> None:
    broker = lossy(reconciliation_interval_ms=1000).start()
    create_topic(broker.bootstrap, topic_name)
    create_topic(broker.bootstrap, f"{topic_name}-other")
    create_topic(broker.bootstrap, f"{topic_name}-unused")
    for name in (topic_name, f"{topic_name}-other"):
        produce(broker.bootstrap, name, [Record(b"v")] * 10)
    folder = topic_folder(broker, topic_name)
    assert broker.stop() == 0
    shutil.move(folder, broker.folder / "elsewhere")
    broker.start()
    assert "KAFKA_STORAGE_ERROR" in refused_lookup(broker, topic_name)
    assert failure_of_produce(broker, topic_name) == KafkaError.KAFKA_STORAGE_ERROR
    [missing] = wait_until("it is told of", lambda: storage(broker).get("missing"))
    assert (missing["topic"], missing["partition"]) == (topic_name, 0)
    assert "segment is missing" in missing["what"]
    assert metric(broker, 'strandline_storage_missing_partitions{engine="file"}') == 1
    # Our own commands say so, and promise nothing.
    described = strandline("topic", "describe", topic_name, broker=broker).stdout
    assert "partition 0 tells no offsets" in described and "KAFKA_STORAGE_ERROR" in described
    kept = strandline("topic", "retention", topic_name, broker=broker)
    assert "withheld" in kept.stdout and "it is served to nobody" in kept.stderr
    assert "withheld" in strandline("topic", "segments", topic_name, broker=broker).stdout
    # One that nothing was ever written to has lost nothing, and others go on.
    assert failure_of_produce(broker, f"{topic_name}-unused") == 0
    assert len(consume(broker.bootstrap, f"{topic_name}-other")) == 10
    # It is there again: somebody mounted the disk.
    shutil.move(broker.folder / "elsewhere", folder)
    wait_until("it is served again", lambda: not refused_lookup(broker, topic_name))
    assert failure_of_produce(broker, topic_name) == 0
    assert len(consume(broker.bootstrap, topic_name)) == 11


@pytest.mark.parametrize("end", ["stopped", "killed"])
@pytest.mark.parametrize("restored", [False, True])
@FILES
def test_a_folder_that_vanishes_from_a_running_broker_takes_nothing_along(
    lossy: Make, topic_name: str, restored: bool, end: str
) -> None:
    broker = lossy(reconciliation_interval_ms=1000).start()
    create_topic(broker.bootstrap, topic_name)
    produce(broker.bootstrap, topic_name, [Record(b"v")] * 10)
    folder = topic_folder(broker, topic_name)
    saved = broker.folder / "saved"
    shutil.copytree(folder, saved)
    acknowledged = 10 + (failure_of_produce(broker, topic_name) == 0)
    shutil.rmtree(folder)
    if restored:
        # Between two looks, from a copy that is older by a record.
        shutil.copytree(saved, folder)
    else:
        wait_until("what was open is put back", lambda: (folder / "0" / SEGMENT).exists())
    answers: list[int] = []

    def is_acknowledged() -> bool:
        answers.append(failure_of_produce(broker, topic_name))
        return answers[-1] == 0

    for _ in range(3):
        wait_until("it takes records", is_acknowledged)
    acknowledged += answers.count(0)
    if end == "stopped":
        assert broker.stop() == 0
        assert storage_command(0, broker, "verify")["findings"] == []
    else:
        broker.kill()
    broker.start()
    assert len(consume(broker.bootstrap, topic_name)) == acknowledged


@FILES
def test_a_segment_that_was_cut_is_told_of_and_the_rest_is_read(lossy: Make, topic_name: str) -> None:
    broker = lossy(reconciliation_interval_ms=1000).start()
    create_topic(broker.bootstrap, topic_name, segment_bytes=1 << 20)
    produce(broker.bootstrap, topic_name, [Record(b"v" * 1000)] * 4000)
    segments = sorted((topic_folder(broker, topic_name) / "0").glob("*.log"))
    assert len(segments) > 3
    assert broker.stop() == 0
    os.truncate(segments[1], 600_000)
    broker.start()
    [damaged] = wait_until("it is told of", lambda: storage(broker).get("damaged"))
    assert (damaged["topic"], damaged["partition"]) == (topic_name, 0)
    assert segments[1].name in damaged["what"] and "bytes=`600000`" in damaged["what"]
    assert storage(broker)["missing"] == []
    assert metric(broker, 'strandline_storage_damaged_partitions{engine="file"}') == 1
    assert segments[1].name in broker.log.read_text()
    # Others are read, and new records are taken.
    assert failure_of_produce(broker, topic_name) == 0
    first = int(segments[2].stem)
    assert len(consume(broker.bootstrap, topic_name, start=first)) == 4001 - first
    # The last one is needed whole.
    assert broker.stop() == 0
    os.truncate(segments[-1], segments[-1].stat().st_size - 1)
    broker.start()
    [missing] = wait_until("it is told of", lambda: storage(broker).get("missing"))
    assert segments[-1].name in missing["what"] and "shorter" in missing["what"]


def test_what_is_created_and_deleted_meanwhile_is_no_stranger(make_broker: Make, topic_name: str) -> None:
    broker = make_broker(reconciliation_interval_ms=1000, deletion_grace_ms=100).start()
    for round_ in range(12):
        name = f"{topic_name}-{round_}"
        create_topic(broker.bootstrap, name, partitions=3)
        produce(broker.bootstrap, name, [Record(b"v", partition=i % 3) for i in range(30)])
        if round_ % 2:
            for future in admin(broker.bootstrap).delete_topics([name]).values():
                future.result(timeout=20)
        found = storage(broker)
        assert not found.get("strangers") and not found.get("missing"), found
    assert not (broker.data / "quarantine").exists()


def storage_command(code: int, broker: Strandline, *words: str) -> dict | list:
    """What a command about the data folder finds, as JSON; it ends with this exit code."""
    result = strandline("storage", *words, "--data", str(broker.data), "--format", "json")
    assert result.returncode == code, f"{words}: {result.stdout}\n{result.stderr}"
    return json.loads(result.stdout)


def content(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("how", ["stopped", "killed"])
@FILES
def test_verify_blames_nothing_that_is_whole_and_changes_nothing(make_broker: Make, topic_name: str, how: str) -> None:
    broker = make_broker().start()
    create_topic(broker.bootstrap, topic_name, partitions=3)
    produce(broker.bootstrap, topic_name, [Record(b"v" * 100, partition=i % 3) for i in range(3000)])
    in_use = strandline("storage", "verify", "--data", str(broker.data))
    assert in_use.returncode == 1 and f"in use by process {broker.process.pid}" in in_use.stderr
    broker.stop() if how == "stopped" else broker.kill()
    before = content(broker.data)
    found = storage_command(0, broker, "verify")
    assert (found["partitions"], found["findings"]) == (3, [])
    assert found["bytes"] > 0 if how == "stopped" else found["journal_batches"] > 0
    assert content(broker.data) == before
    assert storage_command(0, broker, "reconcile", "--dry-run") == []
    broker.start()
    assert len(consume(broker.bootstrap, topic_name, partitions=3)) == 3000


@FILES
def test_verify_finds_damage_where_it_is(lossy: Make, topic_name: str) -> None:
    broker = lossy().start()
    create_topic(broker.bootstrap, topic_name)
    produce(broker.bootstrap, topic_name, [Record(b"v" * 100)] * 1000)
    log = topic_folder(broker, topic_name) / "0" / SEGMENT
    assert broker.stop() == 0
    whole = log.read_bytes()
    log.write_bytes(whole[:-10] + b"x" * 10)
    [fault] = storage_command(4, broker, "verify")["findings"]
    assert (fault["kind"], fault["log"], fault["file"]) == ("damage", f"{topic_name}-0", SEGMENT)
    log.unlink()
    [fault] = storage_command(4, broker, "verify")["findings"]
    assert fault["what"] == "file is missing"
    [act] = storage_command(4, broker, "reconcile", "--dry-run")
    assert act["action"] == "missing"
    log.write_bytes(whole)
    assert storage_command(0, broker, "verify")["findings"] == []
    (broker.data / "snapshot").write_bytes(b"nonsense")
    [fault] = storage_command(4, broker, "verify")["findings"]
    assert "snapshot is not readable" in fault["what"]


@FILES
def test_who_consumes_what_cannot_be_read_is_told(lossy: Make, topic_name: str) -> None:
    broker = lossy().start()
    create_topic(broker.bootstrap, topic_name, segment_bytes=1 << 20)
    produce(broker.bootstrap, topic_name, [Record(os.urandom(100_000))] * 30)
    first = topic_folder(broker, topic_name) / "0" / SEGMENT
    assert broker.stop() == 0
    os.truncate(first, 150_000)
    broker.start()
    # Its answer had begun before the broker knew.
    cut = strandline("consume", topic_name, "-o", "start:end", broker=broker)
    assert cut.returncode == 3 and "broke during Fetch" in cut.stderr, cut.stderr
    ended = strandline("consume", topic_name, "-o", "start:end", broker=broker)
    assert ended.returncode == 1, ended.stderr
    assert ended.stderr.count("trying again") == 1 and "KAFKA_STORAGE_ERROR" in ended.stderr, ended.stderr


@FILES
def test_reconcile_sets_aside_what_nobody_knows_on_demand(make_broker: Make, topic_name: str) -> None:
    broker = make_broker().start()
    create_topic(broker.bootstrap, topic_name)
    produce(broker.bootstrap, topic_name, [Record(b"v")] * 10)
    assert broker.stop() == 0
    planted = plant(broker)
    [fault] = storage_command(4, broker, "verify")["findings"]
    assert (fault["kind"], fault["topic_id"], fault["partition"]) == ("unknown", STRANGER, 0)
    for code, words in ((4, ["--dry-run"]), (2, [])):
        [act] = storage_command(code, broker, "reconcile", *words)
        assert (act["action"], act["done"]) == ("set-aside", False)
        assert planted.exists()
    [act] = storage_command(0, broker, "reconcile", "--yes")
    assert (act["action"], act["done"]) == ("set-aside", True)
    assert not planted.exists() and (broker.data / "quarantine" / STRANGER / "0" / SEGMENT).exists()
    [note] = storage_command(0, broker, "verify")["findings"]
    assert note["kind"] == "note"
    broker.start()
    [told] = wait_until("it is told of", lambda: storage(broker).get("strangers"))
    assert told["state"] == "quarantined"
    assert len(consume(broker.bootstrap, topic_name)) == 10


@FILES
def test_no_folder_is_no_whole_one(tmp_path: Path) -> None:
    result = strandline("storage", "verify", "--data", str(tmp_path / "none"))
    assert result.returncode == 1 and "cannot read" in result.stderr
    result = strandline("storage", "verify", "--data", str(tmp_path))
    assert result.returncode == 4 and "holds nothing of ours" in result.stdout
    assert not list(tmp_path.iterdir())


@FILES
def test_adopt_takes_only_what_is_unknown_and_was_written_here(make_broker: Make, topic_name: str) -> None:
    broker = make_broker().start()
    create_topic(broker.bootstrap, topic_name)
    produce(broker.bootstrap, topic_name, [Record(b"v")] * 10)
    known = topic_folder(broker, topic_name).name
    assert broker.stop() == 0
    plant(broker)
    before = content(broker.data)
    data = ("--data", str(broker.data), "--yes")
    for id_, expected in (
        (known, "is unknown to all topics"),
        (STRANGER, "was not written by this broker"),
        ("nonsense", "is no id of a topic"),
    ):
        result = strandline("storage", "adopt", id_, "--as", "again", *data)
        assert result.returncode in (1, 2) and expected in result.stderr, result.stderr
    assert content(broker.data) == before
