"""A day's work of kafka-python: `kafka_python.py BOOTSTRAP TOPIC GROUP` (see test_day.py)."""

import sys
import threading
import time

from kafka import KafkaConsumer, KafkaProducer, TopicPartition

BOOTSTRAP, TOPIC, GROUP = sys.argv[1:4]
PARTITIONS = 6


def produce(first: int, count: int) -> None:
    producer = KafkaProducer(bootstrap_servers=BOOTSTRAP, acks="all", linger_ms=5)
    sent = [
        producer.send(TOPIC, key=b"%d" % number, value=b"%d" % number, partition=number % PARTITIONS)
        for number in range(first, first + count)
    ]
    for future in sent:
        future.get(timeout=30)
    producer.close()


class Member(threading.Thread):
    """A consumer in the group that commits what each poll gave it."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.seen: set[int] = set()
        self.partitions: set[int] = set()
        self.leaving = threading.Event()
        self.failure: Exception | None = None
        self.start()

    def run(self) -> None:
        try:
            self.work()
        except Exception as failure:  # shown by whoever waits for this member
            self.failure = failure

    def work(self) -> None:
        consumer = KafkaConsumer(
            TOPIC, bootstrap_servers=BOOTSTRAP, group_id=GROUP, enable_auto_commit=False,
            auto_offset_reset="earliest", heartbeat_interval_ms=300,
        )
        while not self.leaving.is_set():
            polled = consumer.poll(timeout_ms=200)
            self.seen |= {int(record.value) for records in polled.values() for record in records}
            if polled:
                consumer.commit()
            self.partitions = {one.partition for one in consumer.assignment()}
        consumer.close()

    def leave(self) -> None:
        self.leaving.set()
        self.join(timeout=30)
        assert not self.is_alive() and self.failure is None, f"a member could not leave: {self.failure}"


def wait_until(what: str, condition) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, f"not within 60 s: {what}"
        time.sleep(0.05)


def wait_for_shares(members: list[Member]) -> None:
    share = PARTITIONS // len(members)

    def shared() -> bool:
        for member in members:
            assert member.failure is None, member.failure
        owned = [one for member in members for one in sorted(member.partitions)]
        return sorted(owned) == list(range(PARTITIONS)) and all(len(m.partitions) == share for m in members)

    wait_until(f"{len(members)} members with {share} partitions each", shared)


def wait_for_records(members: list[Member], count: int) -> None:
    wait_until(f"{count} records", lambda: set().union(*(m.seen for m in members)) == set(range(count)))


def check_committed_and_seek() -> None:
    consumer = KafkaConsumer(bootstrap_servers=BOOTSTRAP, group_id=GROUP, enable_auto_commit=False)
    partitions = [TopicPartition(TOPIC, index) for index in range(PARTITIONS)]
    committed = [consumer.committed(one) for one in partitions]
    assert committed == [200] * PARTITIONS, committed
    consumer.assign(partitions[:1])
    consumer.seek(partitions[0], 50)
    polled = consumer.poll(timeout_ms=20_000, max_records=1)
    record = polled[partitions[0]][0]
    assert (record.offset, record.value) == (50, b"%d" % (50 * PARTITIONS)), record
    consumer.close()


def main() -> None:
    produce(0, 600)
    first, second, third = everybody = [Member() for _ in range(3)]
    wait_for_shares(everybody)
    wait_for_records(everybody, 600)

    third.leave()
    wait_for_shares([first, second])
    produce(600, 300)
    wait_for_records(everybody, 900)

    fourth = Member()
    everybody.append(fourth)
    wait_for_shares([first, second, fourth])
    produce(900, 300)
    wait_for_records(everybody, 1200)
    for member in (first, second, fourth):
        member.leave()

    check_committed_and_seek()
    produce(1200, 60)
    resumed = Member()
    wait_until("the 60 records behind the committed offsets", lambda: len(resumed.seen) == 60)
    assert resumed.seen == set(range(1200, 1260)), sorted(resumed.seen)
    resumed.leave()


if __name__ == "__main__":
    main()
