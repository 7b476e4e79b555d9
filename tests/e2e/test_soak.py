"""A broker under retention and deletion for a while: `E2E_SOAK_SECONDS` says how long (60), `E2E_SEED` repeats choices.

Clients fill and read topics with tight limits, others create topics, fill, read and delete them and take
their names again, and the broker is killed or stopped at times (with `E2E_STORAGE=postgres` the database is killed
too). Meanwhile and afterwards:

- what retention has to keep is there, and each gap of a consumer is explained by the log start;
- a topic meets nothing of the one that had its name before;
- the files hold no more than the limits and the pending deletions together.
"""

import contextlib
import os
import random
import subprocess
import time
from collections.abc import Callable, Iterator

import pytest
import storage
from broker import Strandline
from clients import consume, topic_names
from command import found
from deadline import wait_until
from observed import files_below, scraped, stored_bytes, stored_logs, stored_segments
from postgres import Postgres
from soak import Soak, Worker
from soak_churn import Comer
from soak_kept import PARTITIONS, SEGMENT_BYTES, Filler, Kept, Reader, Watch

SECONDS = float(os.environ.get("E2E_SOAK_SECONDS", "60"))
SEED = int(os.environ.get("E2E_SEED", time.time_ns() % 1_000_000))
GRACE = 2.0
# Passes may be that late: the machine has other work, and a broker that was killed comes back first.
SLACK = 8.0
KILL_AFTER = (4.0, 15.0) if SECONDS <= 300 else (5.0, 60.0)
MIB = 1 << 20

pytestmark = pytest.mark.strandline


class Disk(Worker):
    """Compares what the files hold with what they may hold, all the time."""

    def __init__(self, soak: Soak, kept: list[Kept], comers: list[Comer]):
        super().__init__(soak, "watch of the disk")
        self.kept, self.comers = kept, comers
        self.most, self.closest = 0, 0.0

    def work(self) -> None:
        while not self.soak.stopping.wait(0.2):
            # Counted after what may be there, and so with a little more in it.
            try:
                used = log_bytes(self.soak.broker)
            except subprocess.CalledProcessError:
                continue  # the database was killed
            allowed = sum(topic.allowed_bytes(SLACK) for topic in self.kept)
            allowed += sum(comer.allowed_bytes(GRACE, SLACK) for comer in self.comers)
            self.most, self.closest = max(self.most, used), max(self.closest, used / allowed)
            if used > allowed:
                self.soak.wrong(f"the files hold {used} bytes, the limits and what is pending {allowed}")


def log_bytes(broker: Strandline) -> int:
    """Disk space of all files of logs; some may go while they are counted. Of rows what they hold."""
    if storage.STORAGE == "postgres":
        return stored_bytes(broker)
    total = 0
    for file in files_below(broker.data / "logs"):
        with contextlib.suppress(FileNotFoundError):
            total += file.stat().st_blocks * 512
    return total


def kill_at_times(
    soak: Soak, database: Postgres | None, kept: list[Kept], workers: list[Worker], dice: random.Random
) -> None:
    """Until the time is over, or something is found."""
    end = time.monotonic() + SECONDS
    while not soak.found and (left := end - time.monotonic()) > 0:
        kill_at = time.monotonic() + dice.uniform(*KILL_AFTER)
        while not soak.found and time.monotonic() < min(kill_at, end):
            soak.stopping.wait(0.1)
        if left > KILL_AFTER[0] and not soak.found:
            if database is not None and dice.random() < 0.4:
                soak.restarted(database.kill_all, database.start)
            else:
                soak.restarted(lambda: stop(soak) if dice.random() < 0.2 else soak.broker.kill(), soak.broker.start)
            known = topic_names(soak.broker.bootstrap)
            if missing := {topic.name for topic in kept} - known:
                soak.wrong(f"topics are gone: {missing}")
            print(f"{SECONDS - end + time.monotonic():7.0f} s: kill {soak.kills}, {log_bytes(soak.broker) / MIB:.1f} MiB", flush=True)
    soak.stopping.set()
    for worker in workers:
        worker.finish()


def stop(soak: Soak) -> None:
    code = soak.broker.stop()
    if code != 0:
        soak.wrong(f"an orderly stop ended with {code}")


@contextlib.contextmanager
def reading(readers: list[Reader]) -> Iterator[None]:
    """Readers work through to the end of what was acknowledged, then they end."""
    for reader in readers:
        reader.start()
    try:
        yield
    finally:
        for reader in readers:
            reader.ending.set()
        for reader in readers:
            reader.finish()


@pytest.mark.timeout(SECONDS + 600)
def test_limits_hold_and_nothing_else_goes(make_broker: Callable[..., Strandline]) -> None:
    print(f"{SECONDS:.0f} s, seed {SEED}")
    settings = {
        "log_retention_check_interval_ms": 500,
        "deletion_grace_ms": round(GRACE * 1000),
        "auto_create_topics_enable": False,
        "group_initial_rebalance_delay_ms": 0,
    }
    broker = make_broker(**settings)
    with storage.own_server(broker.data) as database:
        try:
            run(Soak(broker.start()), database)
        finally:
            broker.close()


def run(soak: Soak, database: Postgres | None) -> None:
    kept = [
        Kept(soak, "size", retention_bytes=4 * MIB, retention_ms=-1),
        Kept(soak, "count", retention_records=3000, retention_ms=-1),
        Kept(soak, "age", retention_ms=8000),
        Kept(soak, "both", codec="zstd", retention_bytes=8 * MIB, retention_ms=6000),
    ]
    comers = [Comer(soak, f"comer-{number}", SEED) for number in range(3)]
    readers = [Reader(topic, "follower", group=f"soak-{topic.name}") for topic in kept]
    readers += [Reader(topic, "sleeper", rests=(1.0, 25.0)) for topic in kept]
    watch, disk = Watch(soak, kept), Disk(soak, kept, comers)
    workers = [*(Filler(topic) for topic in kept), *comers, watch, disk]
    with reading(readers):
        for worker in workers:
            worker.start()
        kill_at_times(soak, database, kept, workers, random.Random(SEED))
        if not soak.found:
            look_once_more(soak, watch, kept)
            wait_until("all is read", lambda: soak.found or all(one.is_at_the_end() for one in readers), seconds=120)
    tell(soak, kept, comers, readers, watch, disk)
    assert not soak.found, "\n".join(soak.found[:10])
    assert soak.kills >= SECONDS // 60 and all(comer.count >= 2 for comer in comers)
    assert watch.looks > SECONDS and all(reader.read > 0 for reader in readers)
    check_what_is_left(soak, kept)


def look_once_more(soak: Soak, watch: Watch, kept: list[Kept]) -> None:
    """The bounds after the last acknowledgement."""
    reader = soak.consumer()
    for topic in kept:
        for partition in range(PARTITIONS):
            watch.look(reader, topic, partition)
    reader.close()


def tell(soak: Soak, kept: list[Kept], comers: list[Comer], readers: list[Reader], watch: Watch, disk: Disk) -> None:
    records = sum(sent.acknowledged for topic in kept for sent in topic.sent)
    gaps, missed = sum(reader.gaps for reader in readers), sum(reader.missed for reader in readers)
    print(f"{soak.kills} kills, {records} records acknowledged, {sum(comer.count for comer in comers)} lives")
    print(f"{sum(reader.read for reader in readers)} records read, {missed} missed in {gaps} gaps, {watch.looks} looks")
    print(f"at most {disk.most / MIB:.1f} MiB in files, at most {disk.closest:.0%} of what may be there")


def check_what_is_left(soak: Soak, kept: list[Kept]) -> None:
    """Once nothing comes any more, the limits hold to the byte, and nothing else is there."""
    broker = soak.broker
    for topic in kept:
        wait_until(f"the limits of {topic.name} hold", lambda topic=topic: is_within(broker, topic), seconds=30)
        if topic.seconds is None:
            left = consume(broker.bootstrap, topic.name, partitions=PARTITIONS, seconds=60, check_crcs=True)
            assert len(left) == sum(high - low for low, high in topic.bounds)
    wait_until("what was deleted is gone", lambda: len(topics_stored(broker)) == len(kept), seconds=60)
    listed = {one["name"] for topic in kept for one in segments(broker, topic)}
    wait_until("what is listed is stored and nothing else", lambda: stored_segments(broker) == listed)
    overdue = [line for line in scraped(broker).splitlines() if "retention_overdue_bytes{" in line]
    assert overdue and all(line.endswith(" 0") for line in overdue), overdue


def topics_stored(broker: Strandline) -> set[str]:
    """Topics of which something is there, if only a folder."""
    if storage.STORAGE == "postgres":
        return {log.rpartition("/")[0] for log in stored_logs(broker)}
    return {folder.name for folder in (broker.data / "logs").iterdir()}


def segments(broker: Strandline, topic: Kept) -> list[dict]:
    return found("topic", "segments", topic.name, broker=broker)


def is_within(broker: Strandline, topic: Kept) -> bool:
    """Whether each partition is within its limits, as far as whole segments allow. Age leaves nothing."""
    listed = segments(broker, topic)
    if topic.seconds is not None:
        return not listed
    for partition in range(PARTITIONS):
        of_it = [one for one in listed if one["partition"] == partition]
        size = sum(one["bytes"] for one in of_it)
        low, high = of_it[0]["base_offset"], of_it[-1]["next_offset"]
        topic.bounds[partition] = (low, high)
        if topic.bytes is not None and not topic.bytes - SEGMENT_BYTES <= size <= topic.bytes:
            return False
        if topic.records is not None and high - low > topic.records:
            return False
    return True
