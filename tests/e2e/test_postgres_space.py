"""What expired, was deleted or is nobody's leaves no space behind in PostgreSQL, and nobody waits for that."""

import json
import threading
import time
from collections.abc import Callable, Iterator

import pytest
from broker import Strandline
from clients import QUIET, Record, bounds, consume, create_topic, delete_topic, produce
from command import strandline
from confluent_kafka import KafkaError, Producer
from deadline import wait_until
from observed import get, metric
from pg_sizes import MIB
from postgres import Postgres

pytestmark = pytest.mark.strandline

STRANGER = "42424242-4242-4242-4242-424242424242"
ENTRIES = "pg_total_relation_size('strandline.entries')"


@pytest.fixture
def postgres() -> Iterator[Postgres]:
    server = Postgres().start(autovacuum_naptime="1s", max_wal_size="512MB")
    yield server
    server.close()


class Pulse:
    """One record a request into a topic of its own, all the time: the slowest and the usual answer."""

    def __init__(self, bootstrap: str):
        create_topic(bootstrap, "pulse")
        self.producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0, **QUIET})
        self.took: list[float] = []
        self.failed: list[KafkaError] = []
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self) -> None:
        while not self.stopping.wait(0.005):
            begun = time.monotonic()
            self.producer.produce("pulse", b"x", on_delivery=lambda error, _: self.failed.append(error) if error else None)
            self.producer.flush(30)
            self.took.append(time.monotonic() - begun)

    def quantile(self, part: float, since: int = 0) -> float:
        took = sorted(self.took[since:])
        return took[int(len(took) * part)]

    def finish(self) -> None:
        self.stopping.set()
        self.thread.join()
        assert not self.failed


def fill(broker: Strandline, topic: str, megabytes: int) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 20, "batch.size": 500_000, **QUIET})
    failed: list[KafkaError] = []
    for _ in range(megabytes * 100):
        while len(producer) > 4_000:
            producer.poll(0.05)
        producer.produce(topic, bytes(10_000), partition=0, on_delivery=lambda error, _: failed.append(error) if error else None)
    assert producer.flush(120) == 0 and not failed


def entries(postgres: Postgres) -> int:
    """Bytes of records."""
    return int(postgres.sql("SELECT coalesce(sum(length), 0) FROM strandline.entries"))


def size(postgres: Postgres) -> int:
    """Bytes of the table with its index and TOAST."""
    return int(postgres.sql(f"SELECT {ENTRIES}"))


def test_what_expires_gives_its_space_back_and_nobody_waits(
    make_broker: Callable[..., Strandline], postgres: Postgres, topic_name: str
) -> None:
    broker = make_broker(**postgres.properties(), log_retention_check_interval_ms=500).start()
    create_topic(broker.bootstrap, topic_name, retention_ms=10_000, segment_bytes=8 * MIB)
    pulse = Pulse(broker.bootstrap)
    wait_until("it is known how long an answer takes", lambda: len(pulse.took) > 300, seconds=60)
    quiet = pulse.quantile(0.99)
    fill(broker, topic_name, 200)
    highest = size(postgres)
    assert highest > 30 * MIB
    since = len(pulse.took)
    wait_until("all is expired", lambda: len(set(bounds(broker.bootstrap, topic_name))) == 1, seconds=60)
    wait_until("its rows are gone", lambda: entries(postgres) < MIB, seconds=60)
    # A vacuum gives the end of a table back, the rest is used again.
    left = wait_until("the table is small again", lambda: (now := size(postgres)) < 20 * MIB and now, seconds=90)
    pulse.finish()
    told = f"p99 quiet {quiet * 1000:.1f} ms, beside expiry and vacuum {pulse.quantile(0.99, since) * 1000:.1f}"
    print(f"{highest / MIB:.0f} MiB, then {left / MIB:.1f}; {told}, slowest {pulse.quantile(0.99999, since) * 1000:.1f}")
    assert pulse.quantile(0.99, since) < 5 * quiet + 0.1, told
    assert len(consume(broker.bootstrap, "pulse")) == len(pulse.took)


def test_a_million_records_are_deleted_at_once_and_go_in_the_background(
    make_broker: Callable[..., Strandline], postgres: Postgres, topic_name: str
) -> None:
    pace = 20 * MIB
    broker = make_broker(**postgres.properties(), deletion_grace_ms=0, deletion_max_bytes_per_sec=pace).start()
    create_topic(broker.bootstrap, topic_name, partitions=4, segment_bytes=4 * MIB)
    pulse = Pulse(broker.bootstrap)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 20, "queue.buffering.max.messages": 200_000, **QUIET})
    for number in range(1_000_000):
        while len(producer) > 100_000:
            producer.poll(0.05)
        producer.produce(topic_name, b"x" * 70, partition=number % 4)
    assert producer.flush(120) == 0
    assert sum(bounds(broker.bootstrap, topic_name, partition)[1] for partition in range(4)) == 1_000_000
    before, begun = entries(postgres), time.monotonic()
    delete_topic(broker.bootstrap, topic_name)
    took = time.monotonic() - begun
    sizes = [before]

    def is_gone() -> bool:
        sizes.append(entries(postgres))
        return postgres.sql("SELECT count(DISTINCT topic_id) FROM strandline.logs") == "1"

    since = len(pulse.took)
    wait_until("its rows are gone", is_gone, seconds=120)
    gone_in = time.monotonic() - begun
    pulse.finish()
    told = f"{before / MIB:.0f} MiB deleted in {took * 1000:.1f} ms, gone in {gone_in:.1f} s"
    print(f"{told}; meanwhile p99 {pulse.quantile(0.99, since) * 1000:.1f} ms, p50 {pulse.quantile(0.5, since) * 1000:.1f}")
    assert took < 1, told
    assert gone_in > (before / pace - 1) * 0.7, told
    assert pulse.quantile(0.99, since) < 1
    assert len(set(sizes)) >= 4, "it goes bit by bit"
    assert postgres.sql("SELECT count(*) FROM strandline.entries e LEFT JOIN strandline.logs l USING (log_id) WHERE l.log_id IS NULL") == "0"


def storage(broker: Strandline) -> dict:
    """What reconciliation found last; nothing before its first look."""
    status, text = get(broker, "/v1/storage")
    assert status == 200, text
    found = [one for one in json.loads(text) if one["engine"] == "postgres"]
    return found[0] if found else {}


def test_rows_that_no_topic_knows_are_set_aside_and_removed_later(
    make_broker: Callable[..., Strandline], postgres: Postgres, topic_name: str
) -> None:
    broker = make_broker(**postgres.properties(), reconciliation_interval_ms=1000, quarantine_retention_ms=6000).start()
    create_topic(broker.bootstrap, topic_name)
    produce(broker.bootstrap, topic_name, [Record(b"v")] * 10)
    postgres.sql(f"""
        WITH planted AS (
            INSERT INTO strandline.logs (topic_id, partition, epoch, opener, is_open, end_offset, active_number,
                active_bytes, last_number)
            SELECT '{STRANGER}', 0, epoch, opener, false, end_offset, active_number, active_bytes, last_number
            FROM strandline.logs RETURNING log_id, active_bytes, active_number
        )
        INSERT INTO strandline.entries (log_id, chunk, next_offset, base_offset, epoch, digest, length, data)
        SELECT planted.log_id, chunk, next_offset, base_offset, epoch, digest, length, data
        FROM strandline.entries, planted""")
    [told] = wait_until("it is told of", lambda: storage(broker).get("strangers"))
    assert (told["partition"], told["state"]) == (0, "quarantined") and told["bytes"] > 0
    assert metric(broker, 'strandline_storage_orphans{engine="postgres"}') == 1
    assert "no topic knows this log" in broker.log.read_text()
    broker.kill()
    broker.start()
    wait_until("its rows are gone", lambda: postgres.sql("SELECT count(*), (SELECT count(DISTINCT log_id) FROM strandline.entries) FROM strandline.logs") == "1|1")
    wait_until("that is told", lambda: storage(broker).get("strangers") == [])
    assert len(consume(broker.bootstrap, topic_name)) == 10


def test_a_partition_whose_rows_are_gone_is_never_empty(
    lossy: Callable[..., Strandline], postgres: Postgres, topic_name: str
) -> None:
    broker = lossy(**postgres.properties(), reconciliation_interval_ms=1000).start()
    create_topic(broker.bootstrap, f"{topic_name}-unused")
    create_topic(broker.bootstrap, topic_name)
    produce(broker.bootstrap, topic_name, [Record(b"v")] * 10)
    lost = postgres.sql("SELECT max(log_id) FROM strandline.logs")
    create_topic(broker.bootstrap, f"{topic_name}-other")
    produce(broker.bootstrap, f"{topic_name}-other", [Record(b"v")] * 10)
    assert broker.stop() == 0
    postgres.sql(f"CREATE TABLE elsewhere AS SELECT * FROM strandline.entries WHERE log_id = {lost}")
    postgres.sql(f"DELETE FROM strandline.entries WHERE log_id = {lost}")
    broker.start()

    def refused() -> bool:
        result = strandline("topic", "offsets", topic_name, broker=broker)
        return result.returncode != 0 and "KAFKA_STORAGE_ERROR" in result.stderr

    assert refused()
    [missing] = wait_until("it is told of", lambda: storage(broker).get("missing"))
    assert (missing["topic"], missing["partition"]) == (topic_name, 0)
    assert metric(broker, 'strandline_storage_missing_partitions{engine="postgres"}') == 1
    # One that nothing was ever written to has lost nothing, and others go on.
    produce(broker.bootstrap, f"{topic_name}-unused", [Record(b"v")])
    assert len(consume(broker.bootstrap, f"{topic_name}-other")) == 10
    postgres.sql("INSERT INTO strandline.entries SELECT * FROM elsewhere")
    wait_until("it is served again", lambda: not refused())
    produce(broker.bootstrap, topic_name, [Record(b"v")])
    assert len(consume(broker.bootstrap, topic_name)) == 11
