"""A producer that numbers its records, keeps book of what was acknowledged, and the check that it is there."""

import threading
from collections import Counter

from clients import QUIET, Record
from confluent_kafka import Producer
from deadline import wait_until

PARTITIONS = 4


class Account:
    """Produces numbered records in a thread of its own and keeps book of what was acknowledged."""

    def __init__(self, bootstrap: str, topic: str, **config: object):
        settings = {"bootstrap.servers": bootstrap, "linger.ms": 1, "reconnect.backoff.max.ms": 200, **QUIET}
        self.producer = Producer({**settings, **config})
        self.topic = topic
        self.sent: list[int] = [0] * PARTITIONS
        self.acknowledged: list[set[int]] = [set() for _ in range(PARTITIONS)]
        self.failed = 0
        self.stopping = threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self) -> None:
        partition = 0
        while not self.stopping.is_set():
            number = self.sent[partition]
            try:
                self.producer.produce(
                    self.topic, f"{number}".encode(), partition=partition, on_delivery=self.delivered
                )
            except BufferError:
                self.producer.poll(0.05)
                continue
            self.sent[partition] += 1
            partition = (partition + 1) % PARTITIONS
            # At most some hundred records are in doubt at a time, so that a run is made of many batches.
            self.producer.poll(0 if len(self.producer) < 500 else 0.01)

    def delivered(self, error, message) -> None:
        if error is None:
            self.acknowledged[message.partition()].add(int(message.value()))
        else:
            self.failed += 1

    def count(self) -> int:
        return sum(map(len, self.acknowledged))

    def wait_for_more(self, records: int) -> None:
        goal = self.count() + records
        wait_until(f"{records} more acknowledgements", lambda: self.count() >= goal, seconds=60)

    def finish(self) -> None:
        self.stopping.set()
        self.thread.join()
        assert self.producer.flush(60) == 0


def check(account: Account, found: list[Record], once: bool) -> None:
    for partition in range(PARTITIONS):
        numbers = [int(r.value) for r in found if r.partition == partition]
        missing = account.acknowledged[partition] - set(numbers)
        assert not missing, f"partition {partition}: {len(missing)} acknowledged records are missing: {sorted(missing)[:5]}"
        if once:
            doubled = [number for number, times in Counter(numbers).items() if times > 1]
            assert not doubled, f"partition {partition}: {len(doubled)} records stand there twice: {doubled[:5]}"
            assert numbers == sorted(numbers), f"partition {partition} is out of order"
        offsets = [r.offset for r in found if r.partition == partition]
        assert offsets == list(range(len(offsets)))
