"""What the workers of a soak share: a thread that notes what it finds wrong, and patience with a killed broker."""

import threading
import time
import traceback
from collections.abc import Callable
from typing import TypeVar

from broker import Broker
from clients import QUIET
from confluent_kafka import Consumer, KafkaError, KafkaException

T = TypeVar("T")

PATIENCE = 120.0  # seconds in which a broker that was killed must answer again

# What a client is told while its broker is gone or has just come back.
PASSING = {
    KafkaError._TRANSPORT,
    KafkaError._TIMED_OUT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._WAIT_COORD,
    KafkaError._DESTROY_BROKER,
    KafkaError._UNKNOWN_PARTITION,  # it forgot what it knew; whether the broker did is looked at after each start
    KafkaError._NODE_UPDATE,
    KafkaError.REQUEST_TIMED_OUT,
    KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.NOT_COORDINATOR,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
    KafkaError.LEADER_NOT_AVAILABLE,
    KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.NETWORK_EXCEPTION,
}


class Soak:
    """A run: the broker, how often it was killed, and what was found wrong."""

    def __init__(self, broker: Broker):
        self.broker = broker
        self.kills = 0
        self.outages: list[tuple[float, float]] = []
        self.down_since: float | None = None
        self.stopping = threading.Event()
        self.found: list[str] = []

    @property
    def is_down(self) -> bool:
        return self.down_since is not None

    def restarted(self, end: Callable[[], None], start: Callable[[], object]) -> None:
        """Ends the broker, or what it stands on, and starts it again."""
        self.down_since = time.time()
        end()
        start()
        self.outages.append((self.down_since, time.time()))
        self.down_since = None
        self.kills += 1

    def before(self, seconds: float) -> float:
        """The moment since which the broker was up for so long: while it is down it removes nothing."""
        now = time.time()
        down_since = self.down_since
        outages = [*self.outages, (down_since, now)] if down_since else self.outages
        then = now - seconds
        for begin, end in reversed(outages):
            if end <= then:
                break
            then -= end - begin
        return then

    def wrong(self, what: str) -> None:
        self.found.append(f"after {self.kills} kills: {what}")

    def persist(self, what: str, action: Callable[[], T]) -> T:
        """The action's answer, asked again while the broker is away."""
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                return action()
            except KafkaException as error:
                if error.args[0].code() not in PASSING or time.monotonic() > deadline:
                    raise AssertionError(f"{what}: {error}") from error
                time.sleep(0.1)

    def consumer(self, **config: object) -> Consumer:
        """One that holds little ahead of what it hands out, so that it can fall behind."""
        settings = {
            "bootstrap.servers": self.broker.bootstrap,
            "group.id": "not-joined",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "check.crcs": True,
            "queued.max.messages.kbytes": 1024,
            "fetch.message.max.bytes": 262_144,
            "reconnect.backoff.max.ms": 200,
            "topic.metadata.refresh.interval.ms": 5000,
            **QUIET,
        }
        return Consumer({**settings, **config})


class Worker:
    """Works in a thread of its own until the run ends. What it raises is a finding."""

    def __init__(self, soak: Soak, name: str):
        self.soak = soak
        self.name = name
        self.thread = threading.Thread(target=self.guarded, name=name, daemon=True)

    def start(self) -> "Worker":
        self.thread.start()
        return self

    def guarded(self) -> None:
        try:
            self.work()
        except BaseException:
            self.soak.wrong(f"{self.name}: {traceback.format_exc()}")

    def finish(self) -> None:
        self.thread.join(PATIENCE)
        if self.thread.is_alive():
            self.soak.wrong(f"{self.name} does not come to its end")

    def work(self) -> None:
        raise NotImplementedError
