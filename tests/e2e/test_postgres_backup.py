"""A backup that is taken while everybody works is one moment of it, and goes on where that was."""

import subprocess
from collections.abc import Callable, Iterator

import pytest
from account import PARTITIONS, Account
from broker import Strandline
from clients import Record, bounds, consume, consumer, create_topic, delete_topic, produce, topic_names
from confluent_kafka import KafkaError, TopicPartition
from deadline import wait_until
from postgres import PASSWORD, Postgres, programs

pytestmark = pytest.mark.strandline


@pytest.fixture
def postgres() -> Iterator[Postgres]:
    server = Postgres().start()
    yield server
    server.close()


def run(postgres: Postgres, program: str, *words: str) -> None:
    place = ["-h", "127.0.0.1", "-p", str(postgres.port), "-U", "strandline"]
    command = [str(programs() / program), *place, *words]
    subprocess.run(command, check=True, capture_output=True, text=True, env={"PGPASSWORD": PASSWORD})


def follow(bootstrap: str, topic: str, until: Callable[[], bool]) -> dict[int, int]:
    """Reads all partitions in a group and commits, until it is enough; the positions that were committed last."""
    reader = consumer(bootstrap, group_id="followers", enable_partition_eof=False)
    reader.subscribe([topic])
    positions: dict[int, int] = {}
    while len(positions) < PARTITIONS or not until():
        if reader.consume(200, timeout=0.1):
            committed = reader.commit(asynchronous=False)
            positions |= {place.partition: place.offset for place in committed if place.offset >= 0}
    reader.close()
    return positions


def test_a_dump_of_a_working_broker_is_one_moment_and_is_gone_on_from(
    make_broker: Callable[..., Strandline], postgres: Postgres, topic_name: str, tmp_path
) -> None:
    broker = make_broker(**postgres.properties(), deletion_grace_ms=0, group_initial_rebalance_delay_ms=0).start()
    create_topic(broker.bootstrap, topic_name, partitions=PARTITIONS, retention_ms=-1)
    create_topic(broker.bootstrap, f"{topic_name}-gone")
    produce(broker.bootstrap, f"{topic_name}-gone", [Record(b"v")])
    delete_topic(broker.bootstrap, f"{topic_name}-gone")
    account = Account(broker.bootstrap, topic_name)
    dump = tmp_path / "dump"
    try:
        account.wait_for_more(2_000)
        follow(broker.bootstrap, topic_name, lambda: account.count() > 4_000)
        before = [max(numbers) for numbers in account.acknowledged]
        run(postgres, "pg_dump", "-d", "postgres", "-Fc", "-f", str(dump))
        account.wait_for_more(2_000)
        after = follow(broker.bootstrap, topic_name, lambda count=account.count(): account.count() > count + 2_000)
    finally:
        account.finish()
    sent = [bounds(broker.bootstrap, topic_name, partition)[1] for partition in range(PARTITIONS)]
    assert broker.stop() == 0
    run(postgres, "createdb", "restored")
    run(postgres, "pg_restore", "-d", "restored", "--exit-on-error", str(dump))

    broker.properties["postgres.database"] = "restored"
    broker.start()
    assert topic_names(broker.bootstrap) - {"__consumer_offsets"} == {topic_name}
    records = consume(broker.bootstrap, topic_name, partitions=PARTITIONS, check_crcs=True)
    ends = []
    for partition in range(PARTITIONS):
        of_it = [record for record in records if record.partition == partition]
        # The first that were sent, without a gap, and at least what was acknowledged before.
        assert [(r.offset, int(r.value)) for r in of_it] == [(number, number) for number in range(len(of_it))]
        assert before[partition] < len(of_it) < sent[partition]
        ends.append(len(of_it))
    reader = consumer(broker.bootstrap, group_id="followers")
    places = reader.committed([TopicPartition(topic_name, partition) for partition in range(PARTITIONS)], timeout=10)
    assert all(0 <= place.offset <= ends[place.partition] for place in places), places
    assert any(place.offset < after[place.partition] for place in places)
    reader.close()
    check_who_knew_more(broker, topic_name, sent[0])
    go_on(broker, postgres, topic_name, ends)


def check_who_knew_more(broker: Strandline, topic: str, offset: int) -> None:
    """Whoever has read what is gone is told so, and is not handed something else."""
    ahead = consumer(broker.bootstrap, auto_offset_reset="error", enable_partition_eof=False)
    ahead.assign([TopicPartition(topic, 0, offset)])

    def is_told() -> bool:
        message = ahead.poll(0.1)
        if message is None:
            return False
        assert message.error() is not None, message.value()
        return message.error().code() in (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE)

    wait_until("it is told that there is nothing at its offset", is_told)
    ahead.close()


def go_on(broker: Strandline, postgres: Postgres, topic: str, ends: list[int]) -> None:
    """What is produced now comes right behind, under a later epoch."""
    offsets = produce(broker.bootstrap, topic, [Record(b"new", partition=p) for p in range(PARTITIONS)], enable_idempotence=True)
    assert offsets == ends
    epochs = "SELECT min(epoch) FROM strandline.logs"
    assert int(postgres.sql(epochs, "restored")) > int(postgres.sql(epochs)), "who had it open before did not close it"
    assert broker.stop() == 0
    broker.start()
    found_now = consume(broker.bootstrap, topic, partitions=PARTITIONS)
    assert [bounds(broker.bootstrap, topic, p)[1] for p in range(PARTITIONS)] == [end + 1 for end in ends]
    assert sum(record.value == b"new" for record in found_now) == PARTITIONS
