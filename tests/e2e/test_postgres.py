"""Records, topics and positions in PostgreSQL: everything is as with files, whoever is killed."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from account import PARTITIONS, Account, check
from broker import Broker, Strandline
from clients import Record, admin, bounds, consume, create_topic, delete_topic, produce, topic_names
from deadline import wait_until
from observed import get, metric
from postgres import PASSWORD, Postgres

pytestmark = pytest.mark.strandline


@pytest.fixture
def postgres() -> Iterator[Postgres]:
    server = Postgres().start()
    yield server
    server.close()


def test_restarts_and_kills_of_the_broker_keep_everything(
    make_broker: Callable[..., Broker], postgres: Postgres, topic_name: str
) -> None:
    broker = make_broker(**postgres.properties(), deletion_grace_ms=0).start()
    create_topic(broker.bootstrap, topic_name, partitions=3, retention_ms=123_456_789)
    create_topic(broker.bootstrap, f"{topic_name}-gone")
    produce(broker.bootstrap, f"{topic_name}-gone", [Record(b"x")])
    delete_topic(broker.bootstrap, f"{topic_name}-gone")
    expected: list[Record] = []
    for life in range(3):
        records = [Record(f"{life}/{i}".encode(), b"k", partition=i % 3) for i in range(300)]
        produce(broker.bootstrap, topic_name, records, compression_codec="lz4")
        expected += records
        if life % 2:
            broker.kill()
        else:
            assert broker.stop() == 0
        broker.start()
    found = consume(broker.bootstrap, topic_name, partitions=3, check_crcs=True)
    for partition in range(3):
        assert [(r.key, r.value) for r in found if r.partition == partition] == [
            (r.key, r.value) for r in expected if r.partition == partition
        ]
    assert [bounds(broker.bootstrap, topic_name, p) for p in range(3)] == [(0, 300)] * 3
    assert f"{topic_name}-gone" not in topic_names(broker.bootstrap)
    wait_until(
        "the deleted topic's rows are gone",
        lambda: postgres.sql("SELECT count(DISTINCT topic_id) FROM strandline.logs") == "1",
    )
    assert postgres.sql("SELECT count(*) FROM strandline.entries e LEFT JOIN strandline.logs l USING (log_id) WHERE l.log_id IS NULL") == "0"
    assert not broker.data.exists(), "nothing is kept in a folder"
    assert PASSWORD not in broker.log.read_text()


def test_a_server_that_is_killed_under_load_loses_nothing(
    make_broker: Callable[..., Broker], postgres: Postgres, topic_name: str
) -> None:
    broker = make_broker(**postgres.properties()).start()
    create_topic(broker.bootstrap, topic_name, partitions=PARTITIONS)
    account = Account(broker.bootstrap, topic_name, **{"enable.idempotence": True})
    try:
        for _ in range(3):
            account.wait_for_more(500)
            postgres.kill()
            postgres.start()
        account.wait_for_more(500)
    finally:
        account.finish()
    check(account, consume(broker.bootstrap, topic_name, partitions=PARTITIONS, check_crcs=True), once=True)
    assert account.failed == 0


def test_a_broker_waits_for_its_server_and_says_so(make_broker: Callable[..., Broker], topic_name: str) -> None:
    server = Postgres()
    try:
        broker = make_broker(**server.properties())
        told = lambda: broker.log.exists() and "waiting for PostgreSQL" in broker.log.read_text()  # noqa: E731
        original = broker.is_ready

        def is_ready() -> bool:
            if server.process is None and told():
                server.start()
            return original()

        broker.is_ready = is_ready
        broker.start()
        create_topic(broker.bootstrap, topic_name)
        assert server.process is not None
        broker.stop()
        server.password_file.write_text("wrong horse\n")
        with pytest.raises(AssertionError, match="password authentication failed"):
            broker.start()
        assert "horse" not in broker.log.read_text()
    finally:
        server.close()


def test_a_topic_chooses_its_engine(make_broker: Callable[..., Broker], postgres: Postgres, topic_name: str) -> None:
    properties = postgres.properties() | {"storage_default": "file", "meta_store": "file"}
    broker = make_broker(**properties, log_retention_check_interval_ms=200).start()
    create_topic(broker.bootstrap, f"{topic_name}-file")
    create_topic(broker.bootstrap, topic_name, storage_engine="postgres", internal_segment_bytes=20_500, retention_bytes=60_000)
    for name in (topic_name, f"{topic_name}-file"):
        for _ in range(30):
            produce(broker.bootstrap, name, [Record(bytes(1000)) for _ in range(10)])
    wait_until("retention removes what is too much", lambda: bounds(broker.bootstrap, topic_name)[0] > 0)
    wait_until(
        "the rows are gone",
        lambda: int(postgres.sql("SELECT coalesce(sum(length), 0) FROM strandline.entries")) <= 80_000,
    )
    start, end = bounds(broker.bootstrap, topic_name)
    assert end == 300 and [r.offset for r in consume(broker.bootstrap, topic_name)] == list(range(start, 300))
    assert bounds(broker.bootstrap, f"{topic_name}-file") == (0, 300)
    assert postgres.sql("SELECT count(*) FROM strandline.logs") == "1"


@pytest.mark.files("one broker with and without the database")
def test_a_broker_without_an_engine_that_topics_need_says_so(
    make_broker: Callable[..., Broker], postgres: Postgres, topic_name: str
) -> None:
    broker = make_broker(**postgres.properties() | {"storage_default": "file", "meta_store": "file"}).start()
    create_topic(broker.bootstrap, topic_name, storage_engine="postgres")
    produce(broker.bootstrap, topic_name, [Record(b"1")])
    assert broker.stop() == 0
    there = dict(broker.properties)
    for key in [key for key in broker.properties if key.startswith("postgres")]:
        del broker.properties[key]
    broker.start()
    status, checks = get(broker, "/readyz?verbose")
    told = f"postgres: not configured, 1 topics are kept there, such as {topic_name}; set postgres.host"
    assert status == 503 and told in checks, checks
    assert told in broker.log.read_text()
    assert broker.stop() == 0
    broker.properties.update(there)
    broker.start()
    assert [record.value for record in consume(broker.bootstrap, topic_name)] == [b"1"]


def found_by_reconciliation(broker: Strandline) -> dict:
    """What it found last; nothing before its first look."""
    status, text = get(broker, "/v1/storage")
    assert status == 200, text
    return next((one for one in json.loads(text) if one["engine"] == "postgres"), {})


@pytest.fixture
def lossy(tmp_path: Path, postgres: Postgres) -> Iterator[Strandline]:
    """A broker that logs errors, since it loses what it had."""
    often = {"reconciliation.interval.ms": 1000, "quarantine.retention.ms": 4000}
    settings = {key.replace("_", "."): value for key, value in postgres.properties().items()}
    broker = Strandline(tmp_path / "lossy", settings | often).start()
    yield broker
    broker.close()
    admin.cache_clear()


def test_what_is_newer_than_metadata_that_was_brought_back_is_nobodys(
    lossy: Strandline, postgres: Postgres, topic_name: str
) -> None:
    create_topic(lossy.bootstrap, topic_name)
    produce(lossy.bootstrap, topic_name, [Record(b"v")] * 10)
    assert lossy.stop() == 0
    postgres.sql("CREATE TABLE public.older AS TABLE strandline.meta_rows")
    lossy.start()
    create_topic(lossy.bootstrap, f"{topic_name}-newer", partitions=3)
    produce(lossy.bootstrap, f"{topic_name}-newer", [Record(b"v", partition=i % 3) for i in range(30)])
    assert lossy.stop() == 0
    postgres.sql("TRUNCATE strandline.meta_rows; INSERT INTO strandline.meta_rows TABLE public.older")
    lossy.start()
    assert topic_names(lossy.bootstrap) == {topic_name}
    told = wait_until("they are told of", lambda: found_by_reconciliation(lossy).get("strangers"))
    assert [(one["partition"], one["state"]) for one in told] == [(index, "quarantined") for index in range(3)]
    assert metric(lossy, 'strandline_storage_orphans{engine="postgres"}') == 3
    assert "no topic knows this log" in lossy.log.read_text()
    # Killed while they wait: they go all the same.
    lossy.kill()
    lossy.start()
    wait_until("their rows are gone", lambda: postgres.sql("SELECT count(*) FROM strandline.logs") == "1")
    wait_until("that is told", lambda: found_by_reconciliation(lossy).get("strangers") == [])
    assert postgres.sql("SELECT count(DISTINCT log_id) FROM strandline.entries") == "1"
    assert len(consume(lossy.bootstrap, topic_name)) == 10
