"""Topics of a soak that stay: who fills them, who reads them, and what may be gone of them."""

import bisect
import random
import threading
import time
from dataclasses import dataclass, field

from clients import QUIET, create_topic
from confluent_kafka import KafkaError, KafkaException, Producer, TopicPartition
from soak import Soak, Worker

PARTITIONS = 2
RECORD_BYTES = 2_000
STORED_BYTES = RECORD_BYTES + 120  # with what a record and a batch of its own cost at most
RECORDS_PER_SECOND = 150  # to each partition, unless a producer is told otherwise
SEGMENT_BYTES = 1 << 20
SAMPLE = 25  # records from one noted time to the next


def value(topic: str, partition: int, number: int) -> bytes:
    return f"{topic}/{partition}/{number}/".encode().ljust(RECORD_BYTES, b".")


@dataclass
class Sent:
    """When the records of a partition were sent: every so many of them is noted."""

    numbers: list[int] = field(default_factory=list)
    times: list[float] = field(default_factory=list)
    count: int = 0
    acknowledged: int = 0

    def note(self, now: float) -> int:
        number, self.count = self.count, self.count + 1
        if number % SAMPLE == 0:
            self.times.append(now)
            self.numbers.append(number)
        return number

    def sent_after(self, number: int) -> float:
        """A moment after which the record was sent, and hardly before it was."""
        index = bisect.bisect_right(self.numbers, number) - 1
        return self.times[index]

    def since(self, then: float) -> int:
        """How many records were sent since, and hardly more."""
        index = bisect.bisect_left(self.times, then) - 1
        return self.count - (self.numbers[index] if index >= 0 else 0)


class Kept:
    """A topic with tight limits. Offset and number of a record are the same: its one producer is idempotent."""

    def __init__(self, soak: Soak, name: str, codec: str = "none", **limits: int):
        self.soak = soak
        self.name = name
        self.codec = codec
        self.bytes = limits.get("retention_bytes")
        self.records = limits.get("retention_records")
        self.seconds = limits["retention_ms"] / 1000 if limits.get("retention_ms", -1) >= 0 else None
        self.sent = [Sent() for _ in range(PARTITIONS)]
        self.bounds = [(0, 0)] * PARTITIONS
        create_topic(soak.broker.bootstrap, name, partitions=PARTITIONS, segment_bytes=SEGMENT_BYTES, **limits)

    def look(self, partition: int, low: int, high: int, acknowledged: int) -> None:
        """Checks the bounds that a client was told now; `acknowledged` was counted before it asked."""
        here = f"{self.name}-{partition}"
        last_low, last_high = self.bounds[partition]
        if low < last_low or high < last_high:
            self.soak.wrong(f"{here}: {low}..{high} after {last_low}..{last_high}")
        if high < acknowledged:
            self.soak.wrong(f"{here}: ends at {high}, but {acknowledged} records were acknowledged")
        self.bounds[partition] = (low, high)
        if low > 0 and not self.may_begin_at(partition, low, high):
            self.soak.wrong(f"{here}: begins at {low} of {high}, which is more than its limits take")

    def may_begin_at(self, partition: int, low: int, high: int) -> bool:
        """Whether one of the limits takes what is gone: whole segments go, so a segment less may be left."""
        left = high - low
        of_segment = SEGMENT_BYTES // RECORD_BYTES + 1
        by_size = self.bytes is not None and left * STORED_BYTES >= self.bytes - SEGMENT_BYTES
        by_count = self.records is not None and left >= self.records - of_segment
        by_age = self.seconds is not None and time.time() - self.sent[partition].sent_after(low - 1) >= self.seconds
        return by_size or by_count or by_age

    def allowed_bytes(self, slack: float) -> int:
        """What its files may hold, when passes come as late as that while the broker is up."""
        then, total = self.soak.before(slack), 0
        for sent in self.sent:
            kept = []
            if self.bytes is not None:
                kept.append(self.bytes + sent.since(then) * STORED_BYTES)
            if self.records is not None:
                kept.append((self.records + sent.since(then)) * STORED_BYTES)
            if self.seconds is not None:
                kept.append(sent.since(then - self.seconds) * STORED_BYTES)
            total += min(kept) + SEGMENT_BYTES
        return total


class Filler(Worker):
    """Produces numbered records at a steady rate."""

    def __init__(self, topic: Kept, per_second: int = RECORDS_PER_SECOND):
        super().__init__(topic.soak, f"producer of {topic.name}")
        self.topic = topic
        self.per_second = per_second
        self.producer = Producer({
            "bootstrap.servers": self.soak.broker.bootstrap,
            "enable.idempotence": True,
            "linger.ms": 10,
            "compression.type": topic.codec,
            "queue.buffering.max.kbytes": 4096,
            "reconnect.backoff.max.ms": 200,
            **QUIET,
        })

    def work(self) -> None:
        begun, rounds = time.monotonic(), 0
        while not self.soak.stopping.is_set():
            rounds += 1
            for _ in range(self.per_second // 10):
                for partition in range(PARTITIONS):
                    self.send(partition)
            # What the broker's absence held up is not made up for.
            late = time.monotonic() - begun - rounds / 10
            begun += max(late, 0)
            self.producer.poll(0)
            self.soak.stopping.wait(max(-late, 0))
        if self.producer.flush(120) > 0:
            self.soak.wrong(f"{self.name}: not all records were acknowledged in the end")

    def send(self, partition: int) -> None:
        while len(self.producer) > 1500:
            self.producer.poll(0.05)
        sent = self.topic.sent[partition]
        number = sent.note(time.time())
        self.producer.produce(
            self.topic.name, value(self.topic.name, partition, number), partition=partition, on_delivery=self.delivered
        )
        self.producer.poll(0)

    def delivered(self, error: KafkaError | None, message) -> None:
        if error is not None:
            self.soak.wrong(f"{self.name}: {error}")
            return
        number = int(message.value().split(b"/", 3)[2])
        # A retry of a batch that is there already may be told no offset.
        if message.offset() not in (number, -1001):
            self.soak.wrong(f"{self.name}: record {number} got offset {message.offset()}")
        self.topic.sent[message.partition()].acknowledged = number + 1


class Watch(Worker):
    """Asks for the bounds of all kept partitions, all the time."""

    def __init__(self, soak: Soak, topics: list[Kept]):
        super().__init__(soak, "watch of log starts and ends")
        self.topics = topics
        self.looks = 0

    def work(self) -> None:
        reader = self.soak.consumer()
        while not self.soak.stopping.wait(0.1):
            for topic in self.topics:
                for partition in range(PARTITIONS):
                    self.look(reader, topic, partition)
        reader.close()

    def look(self, reader, topic: Kept, partition: int) -> None:
        acknowledged = topic.sent[partition].acknowledged
        place = TopicPartition(topic.name, partition)
        ask = lambda: reader.get_watermark_offsets(place, timeout=5)  # noqa: E731
        low, high = self.soak.persist(f"bounds of {topic.name}-{partition}", ask)
        topic.look(partition, low, high, acknowledged)
        self.looks += 1


class Reader(Worker):
    """Reads a kept topic from its start to its end: each record is the right one, and what it misses is gone.

    `rests` are the seconds for which it sleeps at times, to fall behind the log start."""

    def __init__(self, topic: Kept, name: str, group: str | None = None, rests: tuple[float, float] | None = None):
        super().__init__(topic.soak, f"{name} of {topic.name}")
        self.topic = topic
        self.group = group
        self.rests = rests
        self.dice = random.Random(self.name)
        self.next = [0] * PARTITIONS
        self.committed = [0] * PARTITIONS
        self.begun: set[int] = set()
        self.read = 0
        self.gaps = 0
        self.missed = 0
        self.ending = threading.Event()

    def work(self) -> None:
        self.consumer = self.soak.consumer(**({"group.id": self.group} if self.group else {}))
        if self.group:
            self.consumer.subscribe([self.topic.name])
        else:
            self.consumer.assign([TopicPartition(self.topic.name, one, -2) for one in range(PARTITIONS)])
        while not self.ending.is_set():
            self.take(self.consumer.consume(200, timeout=0.2))
            if self.rests and not self.soak.stopping.is_set() and self.dice.random() < 0.05:
                self.soak.stopping.wait(self.dice.uniform(*self.rests))
        self.consumer.close()

    def take(self, messages: list) -> None:
        good = [message for message in messages if message.error() is None]
        for message in messages:
            error = message.error()
            if error is not None and error.code() not in (KafkaError._PARTITION_EOF, KafkaError.UNKNOWN_TOPIC_OR_PART):
                if not error.retriable() and error.code() != KafkaError._TRANSPORT:
                    self.soak.wrong(f"{self.name}: {error}")
        for message in good:
            self.take_one(message.partition(), message.offset(), message.value())
        self.read += len(good)
        if good and self.group:
            self.commit()

    def take_one(self, partition: int, offset: int, found: bytes) -> None:
        if found != value(self.topic.name, partition, offset):
            self.soak.wrong(f"{self.name}: {found[:60]!r} at {partition}@{offset}")
        next_offset = self.next[partition]
        if offset > next_offset:
            self.explain(partition, next_offset, offset)
        elif offset < next_offset and (not self.group or offset < self.committed[partition]):
            self.soak.wrong(f"{self.name}: {partition}@{offset} again, after {next_offset - 1}")
        self.next[partition] = max(next_offset, offset + 1)

    def explain(self, partition: int, wanted: int, got: int) -> None:
        """Records that were not handed out must be gone."""
        ask = lambda: self.consumer.get_watermark_offsets(TopicPartition(self.topic.name, partition), timeout=5)  # noqa: E731
        low, _ = self.soak.persist(f"{self.name}: log start", ask)
        if low < got:
            self.soak.wrong(f"{self.name}: {partition}@{got} after {wanted - 1}, but the log begins at {low}")
        self.gaps += 1
        self.missed += got - wanted

    def commit(self) -> None:
        try:
            answers = self.consumer.commit(asynchronous=False)
        except KafkaException:
            return  # made up for by the next one
        for answer in answers:
            if answer.error is None and answer.offset >= 0:
                self.committed[answer.partition] = answer.offset

    def is_at_the_end(self) -> bool:
        """All that was acknowledged was read or is gone. A partition that is empty has nothing to hand out."""
        places = zip(self.next, self.topic.sent, self.topic.bounds, strict=True)
        return all(read >= sent.acknowledged or bounds[0] >= sent.acknowledged for read, sent, bounds in places)
