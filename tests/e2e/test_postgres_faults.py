"""The database goes away, hangs, takes no writes, is full, restarts, fails over: what clients see, and that all goes on.

What nobody may see at any time: an acknowledged record that is lost, one that stands there twice, an answer that
comes later than its request allows.
"""

import json
import re
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from account import PARTITIONS, Account, check
from broker import Broker
from clients import Record, admin, bounds, consume, create_topic, delete_topic, produce, topic_names
from command import strandline
from confluent_kafka import KafkaException
from confluent_kafka.admin import NewTopic
from deadline import wait_until
from kafka import KafkaProducer
from kafka.errors import KafkaError, KafkaStorageError, NotLeaderForPartitionError, RequestTimedOutError
from members import QUICK, Member, committed
from observed import get, metric, scraped
from ports import free_port_pair
from postgres import Postgres
from proxy import Switch
from small_disk import mounted, skip_where_nothing_is_mounted

# kafka-python leaves sockets to the garbage collector where a connection was timed out.
pytestmark = [pytest.mark.strandline, pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")]

# What a producer tries again by itself.
RETRIABLE = (KafkaStorageError, NotLeaderForPartitionError, RequestTimedOutError)
GROUP = "faults"


@pytest.fixture
def postgres() -> Iterator[Postgres]:
    server = Postgres().start()
    yield server
    server.close()


@pytest.fixture
def start(make_broker: Callable[..., Broker], postgres: Postgres) -> Callable[..., Broker]:
    return lambda **properties: make_broker(**postgres.properties(), **QUICK, **properties).start()


def check_of(broker: Broker, name: str) -> dict:
    """One of the readiness checks."""
    _, answer = get(broker, "/readyz?verbose")
    return next(check for check in json.loads(answer)["checks"] if check["name"] == name)


def is_ready(broker: Broker) -> bool:
    return get(broker, "/readyz")[0] == 200


def is_cut_off(broker: Broker) -> bool:
    return not check_of(broker, "storage")["ok"]


def slowest(broker: Broker, request: str, bound: str) -> int:
    """How many answers of a request took longer than `bound` seconds."""
    series = f'strandline_request_duration_seconds_bucket{{request="{request}",le='
    counts = [line.removeprefix(series).split("} ") for line in scraped(broker).splitlines() if line.startswith(series)]
    inside = {le.strip('"'): int(count) for le, count in counts}
    return inside["+Inf"] - inside[bound]


class Load:
    """An idempotent producer and a consumer in a group that commits: both must notice nothing but time."""

    def __init__(self, broker: Broker, topic: str):
        self.broker, self.topic = broker, topic
        create_topic(broker.bootstrap, topic, partitions=PARTITIONS)
        create_topic(broker.bootstrap, f"{topic}-probe")
        self.account = Account(broker.bootstrap, topic, **{"enable.idempotence": True, "request.timeout.ms": 3000})
        self.member = Member(broker.bootstrap, GROUP, topic, session_timeout_ms=45_000, enable_auto_commit=True)
        self.account.wait_for_more(500)
        self.wait_for_reads(100)

    def read(self) -> None:
        """What is there for the member, but for half a second at most."""
        end = time.monotonic() + 0.5
        before = -1
        while before < len(self.member.records) and time.monotonic() < end:
            before = len(self.member.records)
            self.member.poll(0.02)

    def wait_for_reads(self, more: int, seconds: float = 60) -> None:
        goal = len(self.member.records) + more

        def enough() -> bool:
            self.read()
            return len(self.member.records) >= goal

        wait_until(f"{more} more records are read", enough, seconds=seconds)

    def goes_on(self) -> None:
        """As if nothing had been."""
        self.account.wait_for_more(500)
        self.wait_for_reads(500)
        wait_until("the broker is ready", lambda: is_ready(self.broker))

    def finish(self) -> None:
        self.account.finish()
        found = consume(self.broker.bootstrap, self.topic, partitions=PARTITIONS, seconds=120, check_crcs=True)
        check(self.account, found, once=True)
        assert self.account.failed == 0

        def all_read() -> bool:
            self.read()
            return len(self.member.records) >= len(found)

        wait_until("everything is read by the group", all_read, seconds=60)
        places = [(partition, offset) for partition, offset, _ in self.member.records]
        assert sorted(set(places)) == [(r.partition, r.offset) for r in sorted(found, key=lambda r: (r.partition, r.offset))]
        assert len(places) == len(set(places)), "the group was handed something twice"
        ends = {partition: bounds(self.broker.bootstrap, self.topic, partition)[1] for partition in range(PARTITIONS)}

        def all_committed() -> bool:
            self.read()
            return committed(self.broker.bootstrap, GROUP, self.topic, PARTITIONS) == ends

        # The member commits by itself every few seconds.
        wait_until("the group has committed all that it read", all_committed, seconds=60)
        self.member.close()


def lasts(seconds: float, meanwhile: Callable[[], object]) -> None:
    """A fault lasts so long, and something is looked at all the time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        meanwhile()


def restart_fast(server: Postgres) -> None:
    server.stop()
    server.start()


def restart_immediate(server: Postgres) -> None:
    server.kill()
    server.start()


def terminate(server: Postgres) -> None:
    ended = server.sql("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'strandline'")
    assert int(ended) >= 2


@pytest.mark.parametrize("disturb", [restart_fast, restart_immediate, terminate])
def test_lost_connections_are_made_anew(
    start: Callable[..., Broker], postgres: Postgres, topic_name: str, disturb: Callable[[Postgres], None]
) -> None:
    load = Load(start(), topic_name)
    for _ in range(3):
        disturb(postgres)
        load.goes_on()
    load.finish()


def test_a_database_that_is_gone_for_two_seconds_is_hardly_noticed(
    start: Callable[..., Broker], postgres: Postgres, topic_name: str
) -> None:
    load = Load(start(), topic_name)
    postgres.stop()
    lasts(2, load.read)
    postgres.start()
    load.goes_on()
    load.finish()


def refusal(broker: Broker, topic: str, timeout_ms: int = 3000) -> KafkaError | None:
    """What a producer is answered that tries nothing again."""
    producer = KafkaProducer(
        bootstrap_servers=broker.bootstrap, retries=0, request_timeout_ms=timeout_ms, max_block_ms=5000,
        enable_idempotence=False, acks="all",
    )
    try:
        begun = time.monotonic()
        producer.send(topic, b"x", partition=0).get(timeout=30)
        return None
    except KafkaError as error:
        assert time.monotonic() - begun < timeout_ms / 1000 + 2, f"the answer came late: {error}"
        return error
    finally:
        producer.close(timeout=10)


def test_a_database_that_is_gone_for_forty_seconds_is_waited_for(
    start: Callable[..., Broker], postgres: Postgres, topic_name: str
) -> None:
    broker = start(
        log_retention_check_interval_ms=300, deletion_grace_ms=0, log_cleaner_backoff_ms=300,
        offsets_retention_check_interval_ms=500, reconciliation_interval_ms=1000,
    )
    cached = f"{topic_name}-cached"
    create_topic(broker.bootstrap, cached)
    produce(broker.bootstrap, cached, [Record(b"x") for _ in range(10)])
    load = Load(broker, topic_name)
    gone_at = time.monotonic()
    postgres.stop()
    # What is in memory is read on, for as long as nobody else can have taken over.
    assert len(consume(broker.bootstrap, cached, seconds=5)) == 10
    wait_until("readiness tells", lambda: is_cut_off(broker), seconds=5)
    assert re.search(r"postgres: .* for \d+ s", check_of(broker, "storage")["detail"])
    # Producers are answered in time, with an error that they try again upon.
    assert isinstance(refusal(broker, cached), RETRIABLE)
    with pytest.raises(KafkaException) as refused:
        new = NewTopic(f"{topic_name}-new", num_partitions=1, replication_factor=1)
        admin(broker.bootstrap).create_topics([new], operation_timeout=3, request_timeout=15)[new.topic].result(timeout=20)
    assert refused.value.args[0].code() in (7, 15), refused.value  # REQUEST_TIMED_OUT, COORDINATOR_NOT_AVAILABLE
    with pytest.raises(KafkaException):
        load.member.consumer.commit(asynchronous=False)

    def is_refused() -> bool:
        try:
            consume(broker.bootstrap, cached, seconds=2)
            return False
        except (AssertionError, KafkaException):
            return True

    wait_until("what is in memory is not read for ever", is_refused, seconds=20)
    assert time.monotonic() - gone_at > 8, "the lease lasts ten seconds"

    def meanwhile() -> None:
        load.read()
        assert is_cut_off(broker)

    lasts(40 - (time.monotonic() - gone_at), meanwhile)
    attempts = metric(broker, 'strandline_storage_connection_attempts_total{engine="postgres"}')
    assert 10 < attempts < 300, "connections are tried for, and not all the time"
    postgres.start()
    load.goes_on()
    assert len(consume(broker.bootstrap, cached)) >= 10
    assert slowest(broker, "Produce", "10") == 0, "an answer came long after its time"
    load.finish()
    everything_works(broker, postgres, topic_name)


def everything_works(broker: Broker, postgres: Postgres, name: str) -> None:
    """Each of the broker's and the engine's tasks does something that is seen."""
    wait_until("topics are made", lambda: made(broker, f"{name}-short"), seconds=30)
    create_topic(broker.bootstrap, f"{name}-small", internal_segment_bytes=20_500, retention_bytes=60_000)
    create_topic(broker.bootstrap, f"{name}-keys", cleanup_policy="compact", min_cleanable_dirty_ratio=0.01, internal_segment_bytes=20_500)
    passes = metric(broker, "strandline_compaction_passes_total")
    for _ in range(30):
        produce(broker.bootstrap, f"{name}-small", [Record(bytes(1000)) for _ in range(10)])
        produce(broker.bootstrap, f"{name}-keys", [Record(bytes(1000), b"k") for _ in range(10)])
    wait_until("retention removes", lambda: bounds(broker.bootstrap, f"{name}-small")[0] > 0)
    wait_until("logs are compacted", lambda: metric(broker, "strandline_compaction_passes_total") > passes)
    kept = f"SELECT coalesce(sum(e.length), 0) FROM strandline.entries e JOIN strandline.chunks c USING (log_id) WHERE c.number = e.chunk AND c.state = 2"
    wait_until("what was dropped is swept", lambda: postgres.sql(kept) == "0", seconds=30)
    delete_topic(broker.bootstrap, f"{name}-small")
    wait_until("a deletion is carried out", lambda: metric(broker, 'strandline_deletion_pending_items{kind="topic",state="running"}') == 0)
    wait_until("groups commit", lambda: commits(broker, f"{name}-keys"), seconds=30)
    assert f"{name}-small" not in topic_names(broker.bootstrap)


def made(broker: Broker, name: str) -> bool:
    try:
        create_topic(broker.bootstrap, name)
        return True
    except KafkaException:
        return name in topic_names(broker.bootstrap)


def commits(broker: Broker, topic: str) -> bool:
    member = Member(broker.bootstrap, f"{topic}-group", topic)
    try:
        wait_until("something is read", lambda: (member.poll(), member.records)[1])
        member.consumer.commit(asynchronous=False)
        return True
    finally:
        member.close()


def test_a_database_that_hangs_is_as_good_as_gone(start: Callable[..., Broker], postgres: Postgres, topic_name: str) -> None:
    broker = start()
    load = Load(broker, topic_name)
    postgres.freeze()
    begun = time.monotonic()
    assert isinstance(refusal(broker, f"{topic_name}-probe"), RETRIABLE)
    wait_until("readiness tells", lambda: is_cut_off(broker), seconds=15)
    lasts(20 - (time.monotonic() - begun), load.read)
    postgres.thaw()
    load.goes_on()
    assert slowest(broker, "Produce", "10") == 0
    load.finish()


@contextmanager
def read_only(server: Postgres) -> Iterator[None]:
    server.sql("ALTER SYSTEM SET default_transaction_read_only = on")
    server.sql("SELECT pg_reload_conf()")
    yield
    server.sql("ALTER SYSTEM RESET default_transaction_read_only")
    server.sql("SELECT pg_reload_conf()")


def test_a_database_that_takes_no_writes_is_read(start: Callable[..., Broker], postgres: Postgres, topic_name: str) -> None:
    broker = start()
    load = Load(broker, topic_name)
    with read_only(postgres):
        wait_until("readiness tells", lambda: is_cut_off(broker))
        assert "read-only" in check_of(broker, "storage")["detail"]
        assert isinstance(refusal(broker, f"{topic_name}-probe"), RETRIABLE)
    load.goes_on()
    load.finish()


def test_a_full_database_refuses_records_until_there_is_room(
    make_broker: Callable[..., Broker], topic_name: str
) -> None:
    skip_where_nothing_is_mounted()
    # The server's user must get there, and a test's own folder is the tests' alone.
    disk = Path(tempfile.mkdtemp(prefix="strandline-disk-"))
    disk.chmod(0o755)
    with mounted(disk, 128 << 20, lazy=True):
        disk.chmod(0o777)
        server = Postgres(disk / "data")
        server.settings = {"max_wal_size": "32MB", "min_wal_size": "32MB", "wal_recycle": "off"}
        server.start()
        try:
            a_full_database(make_broker(**server.properties(), deletion_grace_ms=0, **QUICK).start(), server, disk, topic_name)
        finally:
            server.close()
    disk.rmdir()


def a_full_database(broker: Broker, server: Postgres, disk: Path, topic: str) -> None:
    load = Load(broker, topic)
    create_topic(broker.bootstrap, f"{topic}-big")
    ballast = disk / "ballast"
    server.sql("CHECKPOINT")
    with ballast.open("wb") as file:
        while shutil.disk_usage(disk).free > 36 << 20:
            file.write(bytes(1 << 20))
            file.flush()

    def is_full() -> bool:
        try:
            produce(broker.bootstrap, f"{topic}-big", [Record(bytes(500_000)) for _ in range(4)], delivery_timeout_ms=3000)
            return False
        except (KafkaException, AssertionError):
            return True

    wait_until("the disk is full", is_full, seconds=60)
    wait_until("readiness tells", lambda: is_cut_off(broker))
    ballast.unlink()
    if server.process.poll() is not None:
        server.start()
    load.goes_on()
    load.finish()


@pytest.fixture
def way(postgres: Postgres) -> Iterator[Switch]:
    switch = Switch(postgres.port)
    yield switch
    switch.close()


def test_a_network_that_loses_its_way_is_a_database_that_is_gone(
    make_broker: Callable[..., Broker], postgres: Postgres, way: Switch, topic_name: str
) -> None:
    broker = make_broker(**postgres.properties(way.port), **QUICK).start()
    load = Load(broker, topic_name)
    way.flows.clear()
    assert isinstance(refusal(broker, f"{topic_name}-probe"), RETRIABLE)
    wait_until("readiness tells", lambda: is_cut_off(broker), seconds=15)
    way.flows.set()
    way.cut()
    load.goes_on()
    load.finish()


def test_a_failover_that_loses_nothing_is_a_lost_connection(
    make_broker: Callable[..., Broker], postgres: Postgres, way: Switch, topic_name: str
) -> None:
    standby = postgres.standby()
    try:
        postgres.sql("ALTER SYSTEM SET synchronous_standby_names = '*'")
        postgres.sql("SELECT pg_reload_conf()")
        synchronous = "SELECT count(*) FROM pg_stat_replication WHERE sync_state = 'sync'"
        wait_until("commits wait for the standby", lambda: postgres.sql(synchronous) == "1")
        broker = make_broker(**postgres.properties(way.port), **QUICK).start()
        load = Load(broker, topic_name)
        postgres.kill()
        # For a moment the name leads to a server that is still a standby.
        way.lead_to(standby.port)
        standby.promote()
        standby.sql("ALTER SYSTEM RESET synchronous_standby_names")
        standby.sql("SELECT pg_reload_conf()")
        load.goes_on()
        load.finish()
        assert "another server" in broker.log.read_text()
    finally:
        standby.close()


def test_a_failover_that_loses_commits_is_told_and_never_written_over(
    make_broker: Callable[..., Broker], postgres: Postgres, way: Switch, topic_name: str
) -> None:
    stream = Switch(postgres.port)
    standby = postgres.standby(stream.port)
    try:
        broker = make_broker(**postgres.properties(way.port), reconciliation_interval_ms=1000, **QUICK).start()
        lost, whole = f"{topic_name}-lost", f"{topic_name}-whole"
        for name in (lost, whole):
            create_topic(broker.bootstrap, name)
            produce(broker.bootstrap, name, [Record(f"{i}".encode()) for i in range(100)])
        behind = "SELECT count(*) FROM pg_stat_replication WHERE replay_lsn = pg_current_wal_lsn()"
        wait_until("the standby has it all", lambda: postgres.sql(behind) == "1")
        # From here on it gets nothing more.
        stream.lead_to(1)
        wait_until("it is cut off", lambda: postgres.sql("SELECT count(*) FROM pg_stat_replication") == "0")
        produce(broker.bootstrap, lost, [Record(b"acknowledged") for _ in range(50)])
        assert bounds(broker.bootstrap, lost) == (0, 150)
        postgres.kill()
        standby.promote()
        way.lead_to(standby.port)
        wait_until("the failover is noticed", lambda: "another server" in broker.log.read_text(), seconds=30)
        wait_until("what is whole goes on", lambda: produces(broker, whole), seconds=30)
        assert len(consume(broker.bootstrap, whole)) == bounds(broker.bootstrap, whole)[1] == 101
        # What has lost records is refused: their offsets are given to no others.
        assert isinstance(refusal(broker, lost), KafkaStorageError)
        told = lambda: metric(broker, 'strandline_storage_missing_partitions{engine="postgres"}') == 1  # noqa: E731
        wait_until("it is told", told)
        ended = standby.sql(
            "SELECT end_offset FROM strandline.logs WHERE end_offset <> 101"
        )
        assert ended == "100", "nothing was written behind what is left"
        text = broker.log.read_text()
        assert "lost" in text and "150" in text
        broker.log.write_text(re.sub(r"\bERROR\b", "error", text))  # these errors are meant
    finally:
        stream.close()
        standby.close()


def produces(broker: Broker, topic: str) -> bool:
    try:
        return produce(broker.bootstrap, topic, [Record(b"x")], delivery_timeout_ms=5000)[0] >= 0
    except (KafkaException, AssertionError):
        return False


def test_a_start_that_waits_for_its_database_says_so(make_broker: Callable[..., Broker]) -> None:
    server = Postgres()
    try:
        broker = make_broker(**server.properties())
        # The port must be known before the broker is ready.
        broker.http = free_port_pair()
        command, answers = broker.command(), broker.is_ready
        command[command.index("--http") + 1] = str(broker.http)
        broker.command = lambda: command
        told: list[str] = []

        def ready() -> bool:
            if server.process is None and "waiting for PostgreSQL" in broker.log.read_text():
                detail = check_of(broker, "recovery")["detail"]
                assert "waiting for PostgreSQL" in detail and "refused" in detail
                waiting = strandline("cluster", "health", "--wait", "3", broker=broker)
                assert waiting.returncode == 4 and "waiting for PostgreSQL" in waiting.stderr
                told.append(detail)
                server.start()
            return answers()

        broker.is_ready = ready
        broker.start()
        assert told
        wait_until("it is ready", lambda: is_ready(broker))
    finally:
        server.close()
