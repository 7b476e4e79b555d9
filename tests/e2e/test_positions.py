"""Positions of groups where things go wrong: records that are gone, members that are late, long restarts, new partitions."""

import time
from collections.abc import Callable

import pytest
from broker import Broker
from clients import QUIET, Record, admin, bounds, create_topic, produce
from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import NewPartitions
from members import QUICK, Member, committed, poll_until


def commit(bootstrap: str, group: str, topic: str, offset: int, **config: object) -> None:
    """A commit of somebody who is no member."""
    simple = Consumer({"bootstrap.servers": bootstrap, "group.id": group, **QUIET, **config})
    try:
        simple.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    finally:
        simple.close()


def trim(bootstrap: str, topic: str, before: int) -> None:
    [trimmed] = admin(bootstrap).delete_records([TopicPartition(topic, 0, before)]).values()
    assert trimmed.result(timeout=20).low_watermark == before


@pytest.mark.parametrize("reset", ["earliest", "latest", "error"])
def test_a_position_whose_records_are_gone_is_reset_as_the_consumer_says(broker: Broker, topic_name: str, reset: str) -> None:
    create_topic(broker.bootstrap, topic_name)
    produce(broker.bootstrap, topic_name, [Record(b"%d" % i) for i in range(10)])
    group = f"{topic_name}-group"
    commit(broker.bootstrap, group, topic_name, 5)
    trim(broker.bootstrap, topic_name, 7)
    member = Member(broker.bootstrap, group, topic_name, auto_offset_reset=reset)
    try:
        if reset == "error":
            poll_until([member], "it is told", lambda: bool(member.errors))
            assert [error.code() for error in member.errors] == [KafkaError._AUTO_OFFSET_RESET]
            return
        if reset == "latest":
            # What is written before it has looked where the end is, it does not see.
            poll_until([member], "it is at the end", lambda: position(member, topic_name) == 10)
            produce(broker.bootstrap, topic_name, [Record(b"10")])
        poll_until([member], "it has read to the end", lambda: bool(member.records) and member.records[-1][1] >= 9)
        expected = [7, 8, 9] if reset == "earliest" else [10]
        assert [offset for _partition, offset, _value in member.records] == expected
    finally:
        member.close()


def position(member: Member, topic: str) -> int:
    """Where it stands; librdkafka knows it once a fetch was answered, and its cached end of the log before."""
    if not member.assignment:
        return -1
    return member.consumer.get_watermark_offsets(TopicPartition(topic, 0), cached=True)[1]


@pytest.mark.parametrize("config", [{}, {"group.instance.id": "the-one"}], ids=["plain", "static"])
def test_who_assigns_its_partitions_itself_may_commit(broker: Broker, topic_name: str, config: dict[str, str]) -> None:
    create_topic(broker.bootstrap, topic_name)
    group = f"{topic_name}-group"
    commit(broker.bootstrap, group, topic_name, 3, **config)
    commit(broker.bootstrap, group, topic_name, 7, **config)
    assert committed(broker.bootstrap, group, topic_name, 1) == {0: 7}


def test_a_member_that_is_late_does_not_commit_over_who_took_its_place(
    make_broker: Callable[..., Broker], topic_name: str
) -> None:
    broker = make_broker(**QUICK).start()
    create_topic(broker.bootstrap, topic_name, partitions=2)
    produce(broker.bootstrap, topic_name, [Record(b"v", partition=i % 2) for i in range(20)])
    group = f"{topic_name}-group"
    late = Member(broker.bootstrap, group, topic_name, max_poll_interval_ms=6000)
    healthy = Member(broker.bootstrap, group, topic_name)
    poll_until([late, healthy], "each has a partition", lambda: len(late.assignment) == len(healthy.assignment) == 1)
    poll_until([late, healthy], "each has read its partition", lambda: len(late.records) + len(healthy.records) >= 20)
    [held] = late.assignment
    # From here on the late one works on and on.
    poll_until([healthy], "the healthy one has both", lambda: len(healthy.assignment) == 2)
    healthy.consumer.commit(offsets=[TopicPartition(topic_name, index, 10) for index in range(2)], asynchronous=False)
    with pytest.raises(KafkaException) as refused:
        late.consumer.commit(offsets=[TopicPartition(topic_name, held, 1)], asynchronous=False)
    assert refused.value.args[0].code() in (KafkaError.UNKNOWN_MEMBER_ID, KafkaError.ILLEGAL_GENERATION)
    assert committed(broker.bootstrap, group, topic_name, 2) == {0: 10, 1: 10}
    for member in (healthy, late):
        member.close()


def test_a_broker_that_is_away_for_longer_than_a_session_keeps_its_group(
    make_broker: Callable[..., Broker], topic_name: str
) -> None:
    broker = make_broker(**QUICK).start()
    create_topic(broker.bootstrap, topic_name)
    produce(broker.bootstrap, topic_name, [Record(b"before")] * 5)
    group = f"{topic_name}-group"
    member = Member(broker.bootstrap, group, topic_name, session_timeout_ms=6000)
    poll_until([member], "it has read", lambda: len(member.records) == 5)
    member.consumer.commit(asynchronous=False)
    broker.kill()
    over = time.monotonic() + 8
    poll_until([member], "its session is over", lambda: time.monotonic() > over)
    broker.start()
    produce(broker.bootstrap, topic_name, [Record(b"after")] * 5)
    poll_until([member], "it reads on", lambda: len(member.records) >= 10)
    member.consumer.commit(asynchronous=False)
    assert committed(broker.bootstrap, group, topic_name, 1) == {0: 10}
    member.close()


def test_a_group_reads_partitions_that_are_added_while_it_runs(make_broker: Callable[..., Broker], topic_name: str) -> None:
    broker = make_broker(**QUICK).start()
    create_topic(broker.bootstrap, topic_name)
    produce(broker.bootstrap, topic_name, [Record(b"%d" % i) for i in range(100)])
    group = f"{topic_name}-group"
    members = [Member(broker.bootstrap, group, topic_name, topic_metadata_refresh_interval_ms=500) for _ in range(2)]
    poll_until(members, "the first partition is read", lambda: count(members) == 100)
    growth = admin(broker.bootstrap).create_partitions([NewPartitions(topic_name, 4)])
    growth[topic_name].result(timeout=20)
    # Written before the group has noticed, with a crash in between.
    produce(broker.bootstrap, topic_name, [Record(b"%d" % i, partition=1 + i % 3) for i in range(150)])
    broker.kill()
    broker.start()
    produce(broker.bootstrap, topic_name, [Record(b"%d" % i, partition=1 + i % 3) for i in range(150)])
    assert [bounds(broker.bootstrap, topic_name, index) for index in range(4)] == [(0, 100)] * 4
    poll_until(members, "all records are read", lambda: count(members) == 400)
    assert sorted(index for member in members for index in member.assignment) == [0, 1, 2, 3]
    for member in members:
        member.close()


def count(members: list[Member]) -> int:
    return len({record[:2] for member in members for record in member.records})


def test_trimming_a_topic_changes_no_other_and_no_position(broker: Broker, topic_name: str) -> None:
    trimmed, other = f"{topic_name}-trimmed", f"{topic_name}-other"
    group = f"{topic_name}-group"
    for name in (trimmed, other):
        create_topic(broker.bootstrap, name)
        produce(broker.bootstrap, name, [Record(b"v")] * 10)
        commit(broker.bootstrap, group, name, 4)
    trim(broker.bootstrap, trimmed, 10)
    assert (bounds(broker.bootstrap, trimmed), bounds(broker.bootstrap, other)) == ((10, 10), (0, 10))
    commit(broker.bootstrap, group, trimmed, 10)
    assert committed(broker.bootstrap, group, trimmed, 1) == {0: 10}
    assert committed(broker.bootstrap, group, other, 1) == {0: 4}
