"""What was acknowledged is there, once: through kill -9, restarts and cut connections."""

from collections.abc import Callable

import pytest
from account import PARTITIONS, Account, check
from broker import Broker
from clients import Record, bounds, consume, consumer, create_topic, delete_topic, produce, read, topic_names
from confluent_kafka import TopicPartition
from deadline import wait_until
from proxy import CuttingProxy


@pytest.mark.parametrize("idempotent", [True, False])
def test_kill_9_loses_nothing_acknowledged(make_broker: Callable[..., Broker], topic_name: str, idempotent: bool) -> None:
    broker = make_broker().start()
    create_topic(broker.bootstrap, topic_name, partitions=PARTITIONS)
    account = Account(broker.bootstrap, topic_name, **{"enable.idempotence": idempotent, "acks": "all"})
    try:
        for _ in range(5):
            account.wait_for_more(2000)
            broker.kill()
            broker.start()
        account.wait_for_more(2000)
    finally:
        account.finish()
    found = consume(broker.bootstrap, topic_name, partitions=PARTITIONS, check_crcs=True)
    check(account, found, once=idempotent)
    assert account.failed == 0 and len(found) >= account.count() >= 12_000


def test_idempotence_holds_over_cut_connections(make_broker: Callable[..., Broker], topic_name: str) -> None:
    # The broker advertises the proxy, whose port is known only once it listens.
    broker = make_broker()
    broker.start()
    proxy = CuttingProxy(broker.port, seed=7, reply_bytes=(2_000, 20_000))
    broker.stop()
    broker.properties["advertised.listeners"] = f"PLAINTEXT://127.0.0.1:{proxy.port}"
    broker.start()
    through = f"127.0.0.1:{proxy.port}"
    proxy.cutting = False
    create_topic(through, topic_name, partitions=PARTITIONS)
    proxy.cutting = True
    account = Account(through, topic_name, **{"enable.idempotence": True})
    try:
        wait_until("40 connections were cut", lambda: proxy.cuts >= 40, seconds=90)
    finally:
        proxy.cutting = False
        account.finish()
    found = consume(through, topic_name, partitions=PARTITIONS, check_crcs=True)
    proxy.close()
    check(account, found, once=True)
    assert account.failed == 0
    assert len(found) == account.count() == sum(account.sent)


def test_an_orderly_stop_under_load_ends_and_loses_nothing(make_broker: Callable[..., Broker], topic_name: str) -> None:
    broker = make_broker().start()
    create_topic(broker.bootstrap, topic_name, partitions=PARTITIONS)
    create_topic(broker.bootstrap, f"{topic_name}-empty")
    waiting = consumer(broker.bootstrap, fetch_wait_max_ms=60_000, socket_timeout_ms=90_000)
    waiting.assign([TopicPartition(f"{topic_name}-empty", 0)])
    account = Account(broker.bootstrap, topic_name, **{"enable.idempotence": True})
    try:
        for _ in range(3):
            account.wait_for_more(2000)
            waiting.poll(0)
            assert broker.stop() in (0, 143)  # a JVM says 143
            broker.start()
        account.wait_for_more(2000)
    finally:
        account.finish()
        waiting.close()
    check(account, consume(broker.bootstrap, topic_name, partitions=PARTITIONS, check_crcs=True), once=True)
    assert account.failed == 0


def test_a_restart_keeps_everything(make_broker: Callable[..., Broker], topic_name: str) -> None:
    broker = make_broker().start()
    create_topic(broker.bootstrap, topic_name, partitions=3, retention_ms=123_456_789)
    create_topic(broker.bootstrap, f"{topic_name}-gone")
    produce(broker.bootstrap, f"{topic_name}-gone", [Record(b"x")])
    delete_topic(broker.bootstrap, f"{topic_name}-gone")
    expected: list[Record] = []
    for life in range(4):
        records = [Record(f"{life}/{i}".encode(), b"k", partition=i % 3) for i in range(300)]
        produce(broker.bootstrap, topic_name, records, compression_codec="lz4")
        expected += records
        if life % 2:
            broker.kill()
        else:
            assert broker.stop() in (0, 143)  # a JVM says 143
        broker.start()
    found = consume(broker.bootstrap, topic_name, partitions=3, check_crcs=True)
    for partition in range(3):
        assert [(r.key, r.value) for r in found if r.partition == partition] == [
            (r.key, r.value) for r in expected if r.partition == partition
        ]
    assert [bounds(broker.bootstrap, topic_name, p) for p in range(3)] == [(0, 400)] * 3
    assert f"{topic_name}-gone" not in topic_names(broker.bootstrap)


def test_a_consumer_goes_on_after_a_crash(make_broker: Callable[..., Broker], topic_name: str) -> None:
    """Nothing that a consumer saw is taken back, and what it reads next follows without a gap."""
    broker = make_broker().start()
    create_topic(broker.bootstrap, topic_name, partitions=PARTITIONS)
    account = Account(broker.bootstrap, topic_name, **{"enable.idempotence": True})
    seen: list[Record] = []
    try:
        for _ in range(3):
            account.wait_for_more(1000)
            seen += consume_some(broker, topic_name)
            broker.kill()
            broker.start()
    finally:
        account.finish()
    found = consume(broker.bootstrap, topic_name, partitions=PARTITIONS, seconds=120)
    final = {(r.partition, r.offset): r.value for r in found}
    taken_back = [r for r in seen if final.get((r.partition, r.offset)) != r.value]
    assert seen and not taken_back


def consume_some(broker: Broker, topic: str, records: int = 4000) -> list[Record]:
    """What a consumer gets at the moving end of the log while records go on arriving: so many, or all to each end."""
    ends = [bounds(broker.bootstrap, topic, partition)[1] for partition in range(PARTITIONS)]
    places = [TopicPartition(topic, partition, max(end - 500, 0)) for partition, end in enumerate(ends)]
    return read(places, broker.bootstrap, enough=records)
