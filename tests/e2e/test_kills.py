"""Producers and a consumer group work on while the broker is killed again and again.

`E2E_KILLS` says how many times (5); `E2E_SEED` repeats a run's choices. With everything in PostgreSQL
(`E2E_STORAGE=postgres`) each kill is one of the broker, of the server, or of both.
"""

import os
import random
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator

import pytest
import storage
from account import PARTITIONS, Account, check
from broker import Broker
from clients import QUIET, bounds, consume, create_topic
from confluent_kafka import Consumer, KafkaException, TopicPartition
from deadline import wait_until
from postgres import Postgres

KILLS = int(os.environ.get("E2E_KILLS", "5"))
SEED = int(os.environ.get("E2E_SEED", time.time_ns() % 1_000_000))
MEMBERS = 3
Place = tuple[str, int]  # topic and partition
Values = dict[Place, dict[int, bytes]]  # by offset


def group_consumer(bootstrap: str) -> Consumer:
    return Consumer({
        "bootstrap.servers": bootstrap,
        "group.id": "kills",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "session.timeout.ms": 10_000,
        "heartbeat.interval.ms": 500,
        "reconnect.backoff.max.ms": 200,
        **QUIET,
    })


class Member:
    """A member of the group in a thread of its own: keeps what it is handed, then commits it."""

    def __init__(self, bootstrap: str, topics: list[str]):
        self.handed: Values = defaultdict(dict)
        self.contradictions: list[str] = []
        self.committed: dict[Place, int] = {}
        self.consumer = group_consumer(bootstrap)
        self.consumer.subscribe(topics)
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self) -> None:
        while not self.stopping.is_set():
            messages = [m for m in self.consumer.consume(500, timeout=0.1) if m.error() is None]
            for message in messages:
                values = self.handed[message.topic(), message.partition()]
                before = values.setdefault(message.offset(), message.value())
                if before != message.value():
                    self.contradictions.append(f"{message.topic()}@{message.offset()}: {before}, then {message.value()}")
            if messages:
                self.commit()
        self.consumer.close()

    def commit(self) -> None:
        """What the broker acknowledged is noted; a commit that failed is made up for by the next."""
        try:
            answers = self.consumer.commit(asynchronous=False)
        except KafkaException:
            return
        for answer in answers:
            if answer.error is None and answer.offset >= 0:
                self.committed[answer.topic, answer.partition] = answer.offset

    def finish(self) -> None:
        self.stopping.set()
        self.thread.join(60)
        assert not self.thread.is_alive()


class Watch:
    """Asks for the group's committed offsets all the time, in a thread of its own: none may go backward."""

    def __init__(self, bootstrap: str, places: list[Place]):
        self.places = places
        self.highest: dict[Place, int] = {}
        self.backward: list[str] = []
        self.looks = 0
        self.consumer = group_consumer(bootstrap)
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self) -> None:
        while not self.stopping.wait(0.05):
            try:
                self.look(seconds=5)
            except KafkaException:
                continue  # the broker is down
        self.consumer.close()

    def look(self, seconds: float) -> dict[Place, int]:
        answers = self.consumer.committed([TopicPartition(*place) for place in self.places], timeout=seconds)
        for answer in answers:
            if answer.error is not None:
                raise KafkaException(answer.error)
            place = (answer.topic, answer.partition)
            if answer.offset < self.highest.get(place, answer.offset):
                self.backward.append(f"{place}: {answer.offset} after {self.highest[place]}")
            self.highest[place] = max(answer.offset, self.highest.get(place, answer.offset))
        self.looks += 1
        return {(answer.topic, answer.partition): answer.offset for answer in answers}

    def finish(self) -> None:
        self.stopping.set()
        self.thread.join(60)
        assert not self.thread.is_alive()


@pytest.fixture
def killable(make_broker: Callable[..., Broker]) -> Iterator[tuple[Broker, Postgres | None]]:
    """A broker, and the server below it when there is one."""
    broker = make_broker(group_initial_rebalance_delay_ms=0)
    with storage.own_server(broker.data) as database:
        yield broker.start(), database
        broker.close()


def strike(dice: random.Random, broker: Broker, database: Postgres | None) -> None:
    """Kills what keeps the records, or half of it, and starts it again."""
    victims = {"broker"} if database is None else dice.choice([{"broker"}, {"database"}, {"broker", "database"}])
    if "database" in victims:
        database.kill_all()
    if "broker" in victims:
        broker.kill()
    if "database" in victims:
        database.start()
    if "broker" in victims:
        broker.start()


@pytest.mark.timeout(300 + 30 * KILLS)
def test_a_group_gets_every_record_through_kills(
    killable: tuple[Broker, Postgres | None], topic_name: str
) -> None:
    print(f"{KILLS} kills, seed {SEED}")
    dice = random.Random(SEED)
    broker, database = killable
    topics = [f"{topic_name}-{letter}" for letter in "ab"]
    places = [(topic, partition) for topic in topics for partition in range(PARTITIONS)]
    for topic in topics:
        create_topic(broker.bootstrap, topic, partitions=PARTITIONS)
    accounts = [Account(broker.bootstrap, topic, **{"enable.idempotence": True}) for topic in topics]
    members = [Member(broker.bootstrap, topics) for _ in range(MEMBERS)]
    watch = Watch(broker.bootstrap, places)

    def handed() -> int:
        return sum(len(values) for member in members for values in list(member.handed.values()))

    try:
        for kill in range(KILLS):
            goal = handed() + 200
            wait_until(f"the group gets records again, kill {kill}", lambda: handed() >= goal, seconds=90)
            for account in accounts:
                account.wait_for_more(dice.randrange(1500))
            strike(dice, broker, database)
        for account in accounts:
            account.wait_for_more(500)
        for account in accounts:
            account.finish()
        ends = {place: bounds(broker.bootstrap, *place)[1] for place in places}
        wait_until("everything is committed", lambda: watch.highest == ends, seconds=90)
    finally:
        for account in accounts:
            account.stopping.set()
        for worker in [*members, watch]:
            worker.finish()

    assert not watch.backward and watch.looks >= KILLS
    for place in places:
        acknowledged = max((member.committed.get(place, 0) for member in members), default=0)
        assert watch.highest[place] >= acknowledged, f"{place}: a commit of {acknowledged} is gone"
    for account in accounts:
        found = consume(broker.bootstrap, account.topic, partitions=PARTITIONS, seconds=120, check_crcs=True)
        check(account, found, once=True)
        assert account.failed == 0 and len(found) == account.count()
        for record in found:
            values = {m.handed[account.topic, record.partition].get(record.offset) for m in members} - {None}
            assert values == {record.value}, f"{account.topic}-{record.partition}@{record.offset}: {values}"
    assert not any(member.contradictions for member in members)
