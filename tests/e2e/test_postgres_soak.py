"""Tables that are filled and emptied for a while stay as large as they are: `E2E_SOAK_SECONDS` says how long (60).

Clients fill topics with tight limits at a steady rate, a compacted one too, and read them in groups; others
create topics, fill, read and delete them. For a part of the time a session holds an open transaction, so that
nothing which was removed since may be used again. Meanwhile and afterwards:

- what retention has to keep is there, each gap of a consumer is explained by the log start, and of the
  compacted topic the newest record of each key is there;
- the rows hold no more than the limits and the pending deletions together;
- heaps, indexes, TOAST and the write-ahead log are no larger in the second half than in the first;
- a producer of single records is served as fast as before.
"""

import contextlib
import os
import time
from collections.abc import Callable, Iterator

import pytest
from broker import Strandline
from clients import QUIET, bounds, consume, create_topic
from confluent_kafka import Producer
from deadline import wait_until
from pg_sizes import KEPT, MIB, Sizes
from postgres import Postgres
from soak import Soak, Worker
from soak_churn import Comer
from soak_kept import PARTITIONS, Filler, Kept, Reader, Watch
from test_soak import look_once_more, reading

SECONDS = float(os.environ.get("E2E_SOAK_SECONDS", "60"))
SEED = int(os.environ.get("E2E_SEED", time.time_ns() % 1_000_000))
GRACE = 2.0
SLACK = 15.0  # seconds by which a pass, or what it removes, may be late
PER_SECOND = 50  # records to each partition
KEYS = 200
# A short run fills its limits sooner, and what is level is less so.
IS_SHORT = SECONDS < 900
LIMITS = {"size": MIB, "count": 500, "age": 4000} if IS_SHORT else {"size": 4 * MIB, "count": 2000, "age": 10_000}
# A transaction is left open for this part of the run.
IDLE = (0.25, 0.4)
# What may be held beside the limits: the probe's topic and the compacted one.
OTHERS = 24 * MIB

pytestmark = pytest.mark.strandline


class Probe(Worker):
    """One record a request, one after the other: how long each takes."""

    def __init__(self, soak: Soak):
        super().__init__(soak, "probe")
        create_topic(soak.broker.bootstrap, "probe", segment_bytes=MIB, retention_bytes=MIB)
        self.took: list[tuple[float, float]] = []

    def work(self) -> None:
        producer = Producer({"bootstrap.servers": self.soak.broker.bootstrap, "linger.ms": 0, **QUIET})
        begun = time.monotonic()
        while not self.soak.stopping.wait(0.02):
            sent = time.monotonic()
            producer.produce("probe", b"x" * 100, on_delivery=self.delivered)
            producer.flush(30)
            self.took.append(((sent - begun) / SECONDS, time.monotonic() - sent))

    def delivered(self, error, _message) -> None:
        if error is not None:
            self.soak.wrong(f"probe: {error}")

    def quantile(self, part: float, begin: float = 0, end: float = 9) -> float:
        took = sorted(seconds for at, seconds in self.took if begin <= at < end)
        return took[int(len(took) * part)]


class Changer(Worker):
    """Gives keys new values, over and over."""

    def __init__(self, soak: Soak):
        super().__init__(soak, "producer of newest")
        settings = {"cleanup_policy": "compact", "min_cleanable_dirty_ratio": 0.3, "segment_bytes": 1 << 20}
        create_topic(soak.broker.bootstrap, "newest", **settings)
        self.acknowledged: dict[bytes, bytes] = {}
        self.count = 0

    def work(self) -> None:
        producer = Producer({"bootstrap.servers": self.soak.broker.bootstrap, "linger.ms": 10, **QUIET})
        while not self.soak.stopping.wait(0.1):
            for _ in range(4):
                key, value = f"key-{self.count % KEYS}".encode(), f"{self.count}/".encode().ljust(2000, b".")
                producer.produce("newest", value, key=key, on_delivery=self.delivered)
                self.count += 1
            producer.poll(0)
        producer.flush(60)

    def delivered(self, error, message) -> None:
        if error is not None:
            self.soak.wrong(f"newest: {error}")
        else:
            self.acknowledged[message.key()] = message.value()

    def check(self) -> None:
        found = consume(self.soak.broker.bootstrap, "newest", seconds=60, check_crcs=True)
        assert {record.key: record.value for record in found} == self.acknowledged
        assert len(found) < 10_000 or IS_SHORT, f"{len(found)} records of {KEYS} keys are left"


class Rows(Worker):
    """Compares what the rows hold with what they may hold."""

    def __init__(self, soak: Soak, postgres: Postgres, kept: list[Kept], comers: list[Comer]):
        super().__init__(soak, "watch of the rows")
        self.postgres, self.kept, self.comers = postgres, kept, comers
        self.most, self.closest = 0, 0.0

    def work(self) -> None:
        while not self.soak.stopping.wait(1):
            held = int(self.postgres.sql(KEPT))
            allowed = OTHERS + sum(topic.allowed_bytes(SLACK) for topic in self.kept)
            allowed += sum(comer.allowed_bytes(GRACE, SLACK) for comer in self.comers)
            self.most, self.closest = max(self.most, held), max(self.closest, held / allowed)
            if held > allowed:
                self.soak.wrong(f"the rows hold {held} bytes, the limits and what is pending {allowed}")


@pytest.fixture
def postgres() -> Iterator[Postgres]:
    """As it comes, but that what happens every few minutes happens more often in a short run."""
    settings: dict[str, object] = {"log_autovacuum_min_duration": 0, "log_checkpoints": "on"}
    if IS_SHORT:
        settings |= {"autovacuum_naptime": "1s", "checkpoint_timeout": "30s", "max_wal_size": "64MB", "min_wal_size": "32MB"}
    server = Postgres().start(**settings)
    yield server
    server.close()


@pytest.mark.timeout(SECONDS + 600)
def test_tables_that_are_filled_and_emptied_stay_level(make_broker: Callable[..., Strandline], postgres: Postgres) -> None:
    print(f"{SECONDS:.0f} s, seed {SEED}")
    settings = {
        "log_retention_check_interval_ms": 1000,
        "log_cleaner_backoff_ms": 1000,
        "deletion_grace_ms": round(GRACE * 1000),
        "auto_create_topics_enable": False,
        "group_initial_rebalance_delay_ms": 0,
    }
    soak = Soak(make_broker(**postgres.properties(), **settings).start())
    kept = [
        Kept(soak, "size", retention_bytes=LIMITS["size"], retention_ms=-1),
        Kept(soak, "count", retention_records=LIMITS["count"], retention_ms=-1),
        Kept(soak, "age", codec="zstd", retention_ms=LIMITS["age"]),
    ]
    comers = [Comer(soak, "comer", SEED, rests=(2.0, 8.0))]
    readers = [Reader(topic, "follower", group=f"soak-{topic.name}") for topic in kept]
    readers += [Reader(kept[0], "sleeper", rests=(1.0, 25.0))]
    watch, rows, probe, changer = Watch(soak, kept), Rows(soak, postgres, kept, comers), Probe(soak), Changer(soak)
    sizes = Sizes(soak, postgres, SECONDS)
    workers = [*(Filler(topic, PER_SECOND) for topic in kept), *comers, watch, rows, probe, changer, sizes]
    with reading(readers):
        for worker in workers:
            worker.start()
        go_on(soak, postgres)
        for worker in workers:
            worker.finish()
        if not soak.found:
            look_once_more(soak, watch, kept)
    tell(kept, comers, readers, rows, probe, sizes)
    assert not soak.found, "\n".join(soak.found[:10])
    changer.check()
    assert all(reader.read > 0 for reader in readers) and comers[0].count >= SECONDS // 20
    assert probe.quantile(0.99) < 1.0
    assert probe.quantile(0.99, 0.5) < 5 * probe.quantile(0.99, 0.05, IDLE[0]) + 0.05
    grew = sizes.growth(slack=0.25, step=8 * MIB) if IS_SHORT else sizes.growth(slack=0.1, step=MIB)
    assert not grew, "\n".join(grew)
    for topic in kept:
        wait_until(f"all that {topic.name} holds is read", lambda topic=topic: is_all_there(soak, topic), seconds=60)


def is_all_there(soak: Soak, topic: Kept) -> bool:
    """Whether every record between the bounds is handed out, unless retention came in between."""
    look = lambda: [bounds(soak.broker.bootstrap, topic.name, partition) for partition in range(PARTITIONS)]  # noqa: E731
    before = look()
    left = consume(soak.broker.bootstrap, topic.name, partitions=PARTITIONS, seconds=60, check_crcs=True)
    return look() == before and len(left) == sum(high - low for low, high in before)


def go_on(soak: Soak, postgres: Postgres) -> None:
    """Until the time is over, or something is found."""
    begun = time.monotonic()
    at = lambda: (time.monotonic() - begun) / SECONDS  # noqa: E731

    def until(end: float) -> None:
        while not soak.found and at() < end:
            soak.stopping.wait(0.1)

    until(IDLE[0])
    with postgres.idle_transaction() if not soak.found else contextlib.nullcontext():
        until(IDLE[1])
    until(1)
    soak.stopping.set()


def tell(kept: list[Kept], comers: list[Comer], readers: list[Reader], rows: Rows, probe: Probe, sizes: Sizes) -> None:
    records = sum(sent.acknowledged for topic in kept for sent in topic.sent)
    gaps, missed = sum(reader.gaps for reader in readers), sum(reader.missed for reader in readers)
    print(f"{records} records acknowledged, {sum(comer.count for comer in comers)} lives")
    print(f"{sum(reader.read for reader in readers)} records read, {missed} missed in {gaps} gaps")
    print(f"at most {rows.most / MIB:.1f} MiB in rows, at most {rows.closest:.0%} of what may be there")
    parts = [("before", 0.05, IDLE[0]), ("with an open transaction", *IDLE), ("after", IDLE[1], 0.5), ("second half", 0.5, 9)]
    for name, begin, end in parts:
        p50, p99 = probe.quantile(0.5, begin, end) * 1000, probe.quantile(0.99, begin, end) * 1000
        biggest = {what: sizes.most(what, begin, end) / MIB for what in sizes.samples[-1].bytes}
        told = ", ".join(f"{what} {size:.1f}" for what, size in biggest.items() if size >= 0.1)
        print(f"{name}: one record p50 {p50:.1f} ms, p99 {p99:.1f} ms; at most MiB: {told}")
