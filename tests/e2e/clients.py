"""Short forms of what nearly every test does with confluent-kafka (librdkafka)."""

import math
import time
from dataclasses import dataclass, field
from functools import lru_cache

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic
from deadline import wait_until

OFFSET_BEGINNING = -2

# A whole ApiVersions request (v0), for tests that speak to a socket.
API_VERSIONS = bytes([0, 0, 0, 10, 0, 18, 0, 0, 0, 0, 0, 7, 255, 255])

# A broker that a test has stopped is not worth a line a second.
QUIET = {"log_level": 2}


@dataclass(frozen=True)
class Record:
    """A record as a test writes it down and as it comes back."""

    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    timestamp: int = 0
    partition: int = 0
    offset: int = field(default=-1, compare=False)


@lru_cache(maxsize=8)
def admin(bootstrap: str) -> AdminClient:
    """A client that outlives the call: one that is dropped fails the futures it gave out."""
    return AdminClient({"bootstrap.servers": bootstrap, "reconnect.backoff.max.ms": 200, **QUIET})


def create_topic(bootstrap: str, name: str, partitions: int = 1, **config: object) -> None:
    settings = {key.replace("_", "."): str(value) for key, value in config.items()}
    topic = NewTopic(name, num_partitions=partitions, replication_factor=1, config=settings)
    admin(bootstrap).create_topics([topic])[name].result(timeout=20)


def created_topic(bootstrap: str, name: str) -> bool:
    """Whether the name was free. Apache Kafka frees that of a deleted topic a little later than its answer says."""
    try:
        create_topic(bootstrap, name)
        return True
    except KafkaException as error:
        assert error.args[0].code() == KafkaError.TOPIC_ALREADY_EXISTS
        return False


def delete_topic(bootstrap: str, name: str) -> None:
    admin(bootstrap).delete_topics([name])[name].result(timeout=20)


def topic_names(bootstrap: str) -> set[str]:
    return set(admin(bootstrap).list_topics(timeout=10).topics)


def produce(bootstrap: str, topic: str, records: list[Record], together: bool = False, **config: object) -> list[int]:
    """Produces all records; their offsets, in the order of the records. Fails if one is refused.

    `together` makes them one batch, however slow the machine: they are all of one partition then."""
    lingers = {"linger.ms": 20_000, "batch.num.messages": len(records)} if together else {"linger.ms": 5}
    producer = Producer({"bootstrap.servers": bootstrap, **lingers, **QUIET, **dotted(config)})
    offsets: list[int] = [-1] * len(records)

    def delivered(index: int):
        def callback(error: KafkaError | None, message) -> None:
            if error is None:
                offsets[index] = message.offset()
            else:
                failures.append(error)

        return callback

    failures: list[KafkaError] = []
    for index, record in enumerate(records):
        stamp = {"timestamp": record.timestamp} if record.timestamp else {}
        headers = list(record.headers)
        producer.produce(
            topic, value=record.value, key=record.key, headers=headers, partition=record.partition,
            on_delivery=delivered(index), **stamp,
        )
        producer.poll(0)
    if together:
        wait_until("the batch is answered", lambda: producer.poll(0.1) >= 0 and (failures or -1 not in offsets))
    left = producer.flush(30)
    if failures:
        raise KafkaException(failures[0])
    assert left == 0, f"{left} of {len(records)} records were not acknowledged"
    return offsets


def consumer(bootstrap: str, **config: object) -> Consumer:
    """A consumer that is told its partitions: it never needs a group."""
    settings = {
        "bootstrap.servers": bootstrap,
        "group.id": "not-joined",
        "enable.auto.commit": False,
        "auto.offset.reset": "earliest",
        "enable.partition.eof": True,
        **QUIET,
        **dotted(config),
    }
    return Consumer(settings)


def consume(
    bootstrap: str, topic: str, partitions: int = 1, start: int = OFFSET_BEGINNING, seconds: float = 30, **config: object
) -> list[Record]:
    """All records to the end of each partition, in each partition's order."""
    return read([TopicPartition(topic, index, start) for index in range(partitions)], bootstrap, seconds, **config)


def read(
    places: list[TopicPartition], bootstrap: str, seconds: float = 30, enough: float = math.inf, **config: object
) -> list[Record]:
    """The records from these places on: to the end of each partition, or as many as are enough."""
    reader = consumer(bootstrap, **config)
    reader.assign(places)
    found: list[Record] = []
    ended: set[int] = set()
    deadline = time.monotonic() + seconds
    try:
        while len(found) < enough and len(ended) < len(places):
            assert time.monotonic() < deadline, f"{len(found)} records, ends of {sorted(ended)} within {seconds} s"
            message = reader.poll(1.0)
            if message is None:
                continue
            if message.error() is None:
                found.append(as_record(message))
            elif message.error().code() == KafkaError._PARTITION_EOF:
                ended.add(message.partition())
            else:
                raise KafkaException(message.error())
    finally:
        reader.close()
    return found


def as_record(message) -> Record:
    return Record(
        value=message.value(),
        key=message.key(),
        headers=tuple(message.headers() or ()),
        timestamp=message.timestamp()[1],
        partition=message.partition(),
        offset=message.offset(),
    )


def bounds(bootstrap: str, topic: str, partition: int = 0) -> tuple[int, int]:
    """Log start and high watermark."""
    reader = consumer(bootstrap)
    try:
        return reader.get_watermark_offsets(TopicPartition(topic, partition), timeout=10)
    finally:
        reader.close()


def dotted(config: dict[str, object]) -> dict[str, object]:
    return {key.replace("_", "."): value for key, value in config.items()}
