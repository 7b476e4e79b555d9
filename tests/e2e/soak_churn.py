"""Topics of a soak that come, are filled, read and deleted, and come again under the same name."""

import random
import time
from dataclasses import dataclass

from clients import QUIET, admin
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import NewTopic
from soak import PATIENCE, Soak, Worker

PARTITIONS_MAX = 3
RECORDS_MAX = 400
RECORD_BYTES_MAX = 20_000


@dataclass
class Life:
    """One topic under a name, from its creation to its deletion."""

    sent_bytes: int = 0
    deleted_at: float | None = None


class Comer(Worker):
    """Takes a name through one life after the other."""

    def __init__(self, soak: Soak, name: str, seed: int, rests: tuple[float, float] = (0.0, 1.0)):
        super().__init__(soak, f"lives of {name}")
        self.topic = name
        self.rests = rests
        self.dice = random.Random(f"{seed} {name}")
        self.lives: list[Life] = []
        self.count = 0
        self.under_way = False  # the producer of the life before may still have reached this one

    def allowed_bytes(self, grace: float, slack: float) -> int:
        """What its files may hold: the living, and the deleted within their grace."""
        oldest = self.soak.before(slack) - grace
        self.lives = [life for life in self.lives if life.deleted_at is None or life.deleted_at > oldest]
        return sum(life.sent_bytes + PARTITIONS_MAX * 65_536 for life in self.lives)

    def work(self) -> None:
        while not self.soak.stopping.wait(self.dice.uniform(*self.rests)):
            self.live()

    def live(self) -> None:
        self.count += 1
        partitions = self.dice.randint(1, PARTITIONS_MAX)
        life = Life()
        self.lives.append(life)
        self.create(partitions)
        reader = self.soak.consumer(**{"group.id": f"soak-{self.topic}", "enable.partition.eof": True})
        self.check_that_it_is_new(reader, partitions)
        producer = self.new_producer()
        sent = self.fill(producer, life, partitions)
        self.read_back(reader, partitions, sent)
        # Some are deleted under a producer and a consumer that are at work.
        self.under_way = self.dice.random() < 0.5
        if self.under_way:
            for index in range(50):
                producer.produce(self.topic, b"stray".ljust(5_000, b"."), partition=index % partitions)
                life.sent_bytes += 5_200
            producer.poll(0)
        self.delete()
        life.deleted_at = time.time()
        producer.purge()
        producer.flush(5)
        self.check_that_it_is_gone(reader)
        reader.close()

    def create(self, partitions: int) -> None:
        config = {"segment.bytes": str(1 << 20), "retention.ms": "-1"}
        topic = NewTopic(self.topic, num_partitions=partitions, replication_factor=1, config=config)
        self.until_it_is_so(
            "create", KafkaError.TOPIC_ALREADY_EXISTS, lambda: admin(self.soak.broker.bootstrap).create_topics([topic])
        )

    def delete(self) -> None:
        self.until_it_is_so(
            "delete", KafkaError.UNKNOWN_TOPIC_OR_PART, lambda: admin(self.soak.broker.bootstrap).delete_topics([self.topic])
        )

    def until_it_is_so(self, what: str, is_so_already: int, request) -> None:
        """Asks until it is done. That it was so before is right only after an answer that was lost."""
        deadline, kills = time.monotonic() + PATIENCE, self.soak.kills
        was_lost = False
        while True:
            try:
                request()[self.topic].result(timeout=30)
                return
            except KafkaException as error:
                code = error.args[0].code()
                # The client itself asks again after a lost connection.
                if code == is_so_already and (was_lost or self.soak.kills > kills or self.soak.is_down):
                    return
                if code == is_so_already or time.monotonic() > deadline:
                    raise AssertionError(f"{what} {self.topic}, life {self.count}: {error}") from error
                was_lost = True
                time.sleep(0.1)

    def check_that_it_is_new(self, reader: Consumer, partitions: int) -> None:
        """Nothing of the topic that had the name before: no record, no offset, no position of its group."""
        for partition in range(partitions):
            place = TopicPartition(self.topic, partition)
            ask = lambda place=place: reader.get_watermark_offsets(place, timeout=5)  # noqa: E731
            low, high = self.soak.persist(f"bounds of {self.topic}", ask)
            if low != 0 or (high != 0 and not self.under_way):
                self.soak.wrong(f"life {self.count} of {self.topic}-{partition} begins with {low}..{high}")
            ask = lambda place=place: reader.committed([place], timeout=5)  # noqa: E731
            [position] = self.soak.persist(f"position in {self.topic}", ask)
            if position.offset >= 0:
                self.soak.wrong(f"life {self.count} of {self.topic}-{partition} has position {position.offset}")

    def new_producer(self) -> Producer:
        return Producer({
            "bootstrap.servers": self.soak.broker.bootstrap,
            "enable.idempotence": True,
            "linger.ms": 5,
            "reconnect.backoff.max.ms": 200,
            **QUIET,
        })

    def fill(self, producer: Producer, life: Life, partitions: int) -> int:
        failures: list[str] = []
        note = lambda error, _: failures.append(str(error)) if error is not None else None  # noqa: E731
        count = self.dice.randint(1, RECORDS_MAX)
        for number in range(count):
            value = f"{self.count}/{number}/".encode().ljust(self.dice.randint(50, RECORD_BYTES_MAX), b".")
            producer.produce(self.topic, value, partition=number % partitions, on_delivery=note)
            life.sent_bytes += len(value) + 200
            producer.poll(0)
        if producer.flush(PATIENCE) > 0 or failures:
            self.soak.wrong(f"{count} records to life {self.count} of {self.topic}: {failures[:3]}")
        return count

    def read_back(self, reader: Consumer, partitions: int, sent: int) -> None:
        """All that was acknowledged, in order, and nothing of another life but what was under way."""
        reader.assign([TopicPartition(self.topic, partition, -2) for partition in range(partitions)])
        found: list[list[int]] = [[] for _ in range(partitions)]
        following = [0] * partitions
        deadline = time.monotonic() + PATIENCE
        while sum(map(len, found)) < sent:
            if time.monotonic() > deadline:
                return self.soak.wrong(f"life {self.count} of {self.topic}: {sum(map(len, found))} of {sent} records")
            for message in reader.consume(500, timeout=0.2):
                if message.error() is not None:
                    continue
                partition = message.partition()
                if message.offset() != following[partition]:
                    self.soak.wrong(f"{self.topic}-{partition}: {message.offset()} after {following[partition] - 1}")
                following[partition] = message.offset() + 1
                life, number, _ = (message.value() + b"//").split(b"/", 2)
                if life == str(self.count).encode():
                    found[partition].append(int(number))
                elif not life.startswith(b"stray"):
                    self.soak.wrong(f"life {self.count} of {self.topic} has a record of life {life[:20]!r}")
        expected = [list(range(partition, sent, partitions)) for partition in range(partitions)]
        if found != expected:
            self.soak.wrong(f"life {self.count} of {self.topic}: {found} instead of {expected}")
        places = [TopicPartition(self.topic, partition, following[partition]) for partition in range(partitions)]
        commit = lambda: reader.commit(offsets=places, asynchronous=False)  # noqa: E731
        self.soak.persist(f"commit to {self.topic}", commit)

    def check_that_it_is_gone(self, reader: Consumer) -> None:
        known = self.soak.persist("names", lambda: admin(self.soak.broker.bootstrap).list_topics(timeout=5))
        if self.topic in known.topics:
            self.soak.wrong(f"life {self.count} of {self.topic} is listed after its deletion")
        # It holds what it fetched; more there is not.
        reader.consume(10, timeout=0.05)
