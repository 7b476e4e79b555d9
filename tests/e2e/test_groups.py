"""Consumer groups of the classic protocol, with librdkafka: members, positions, restarts."""

import json
import re
import time
from collections import defaultdict
from collections.abc import Callable
from datetime import datetime, timedelta, timezone

from broker import Broker, Strandline
from clients import QUIET, Record, admin, create_topic, delete_topic, produce
from command import done, found
from confluent_kafka import OFFSET_INVALID, Consumer, ConsumerGroupState, KafkaError, KafkaException, TopicPartition
from deadline import wait_until
from kafka import KafkaConsumer
from members import QUICK, Member, committed, poll_until, state
from observed import get, metric

PARTITIONS = 6


def shared_out(members: list[Member], each: int) -> Callable[[], bool]:
    """Each member has `each` partitions, and together they have all of them."""

    def condition() -> bool:
        shares = [one.assignment for one in members]
        return all(len(share) == each for share in shares) and set().union(*shares) == set(range(PARTITIONS))

    return condition


def numbered(count: int) -> list[Record]:
    return [Record(value=str(number).encode(), partition=number % PARTITIONS) for number in range(count)]


def seen(members: list[Member]) -> dict[int, set[int]]:
    found: dict[int, set[int]] = defaultdict(set)
    for member in members:
        for partition, offset, _value in member.records:
            found[partition].add(offset)
    return found


def test_a_group_gains_and_loses_members_and_resumes(make_broker: Callable[..., Broker], topic_name: str) -> None:
    broker = make_broker(**QUICK).start()
    create_topic(broker.bootstrap, topic_name, partitions=PARTITIONS)
    produce(broker.bootstrap, topic_name, numbered(600))
    group = f"{topic_name}-group"
    members = [Member(broker.bootstrap, group, topic_name) for _ in range(2)]
    poll_until(members, "two members share six partitions", shared_out(members, 3))
    members.append(Member(broker.bootstrap, group, topic_name))
    poll_until(members, "three members share six partitions", shared_out(members, 2))
    poll_until(members, "all is read", lambda: sum(map(len, seen(members).values())) == 600)
    for member in members:
        member.consumer.commit(asynchronous=False)
    assert committed(broker.bootstrap, group, topic_name, PARTITIONS) == dict.fromkeys(range(PARTITIONS), 100)
    assert state(broker.bootstrap, group) == ConsumerGroupState.STABLE

    members.pop().close()
    poll_until(members, "two members take over", shared_out(members, 3))
    produce(broker.bootstrap, topic_name, numbered(60))
    before = [len(member.records) for member in members]
    poll_until(members, "only what is new is read", lambda: sum(len(one.records) for one in members) == sum(before) + 60)

    one = next(iter(members[0].assignment))
    members[0].consumer.seek(TopicPartition(topic_name, one, 5))
    members[0].records.clear()
    poll_until(members, "read again from there", lambda: (one, 5) in [found[:2] for found in members[0].records])
    for member in members:
        member.close()
    wait_until("empty", lambda: state(broker.bootstrap, group) == ConsumerGroupState.EMPTY, seconds=20)
    assert committed(broker.bootstrap, group, topic_name, PARTITIONS) == dict.fromkeys(range(PARTITIONS), 100)


def test_a_static_member_comes_back_without_a_rebalance(make_broker: Callable[..., Broker], topic_name: str) -> None:
    broker = make_broker(**QUICK).start()
    create_topic(broker.bootstrap, topic_name, partitions=PARTITIONS)
    group = f"{topic_name}-group"

    def join(instance: str) -> Member:
        return Member(broker.bootstrap, group, topic_name, group_instance_id=instance, session_timeout_ms=30000)

    first, second = join("first"), join("second")
    poll_until([first, second], "both have their share", shared_out([first, second], 3))
    share, rebalances = second.assignment, first.rebalances
    second.close()  # a static member does not leave
    second = join("second")
    poll_until([first, second], "it has its share again", lambda: second.assignment == share)
    assert first.rebalances == rebalances, "the other member was bothered"

    # Two at a time with one instance id: the older one is fenced.
    twin = join("second")
    fenced = KafkaError._FATAL
    poll_until([first, second, twin], "the older one is fenced", lambda: any(error.code() == fenced for error in second.errors))
    poll_until([first, twin], "the younger one has the share", lambda: twin.assignment == share)
    for member in (first, twin, second):
        member.close()


def test_a_killed_broker_loses_no_position_and_members_go_on(make_broker: Callable[..., Broker], topic_name: str) -> None:
    broker = make_broker(**QUICK).start()
    create_topic(broker.bootstrap, topic_name, partitions=PARTITIONS)
    produce(broker.bootstrap, topic_name, numbered(600))
    group = f"{topic_name}-group"
    members = [Member(broker.bootstrap, group, topic_name) for _ in range(2)]
    poll_until(members, "two members share six partitions", shared_out(members, 3))
    poll_until(members, "all is read", lambda: sum(map(len, seen(members).values())) == 600)
    for member in members:
        member.consumer.commit(asynchronous=False)
    rebalances = [member.rebalances for member in members]
    broker.kill()
    broker.start()
    assert committed(broker.bootstrap, group, topic_name, PARTITIONS) == dict.fromkeys(range(PARTITIONS), 100)
    produce(broker.bootstrap, topic_name, numbered(60))
    poll_until(members, "what is new is read", lambda: sum(map(len, seen(members).values())) == 660)
    assert [member.rebalances for member in members] == rebalances, "the generation did not survive"
    for member in members:
        member.consumer.commit(asynchronous=False)
        member.close()
    assert committed(broker.bootstrap, group, topic_name, PARTITIONS) == dict.fromkeys(range(PARTITIONS), 110)


def test_a_deleted_group_stays_deleted(make_broker: Callable[..., Broker], topic_name: str) -> None:
    broker = make_broker(**QUICK).start()
    create_topic(broker.bootstrap, topic_name)
    group = f"{topic_name}-group"
    place = TopicPartition(topic_name, 0)

    def position() -> int:
        simple = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group, **QUIET})
        try:
            return simple.committed([place], timeout=10)[0].offset
        finally:
            simple.close()

    simple = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group, **QUIET})
    simple.commit(offsets=[TopicPartition(topic_name, 0, 7)], asynchronous=False)
    simple.close()
    assert position() == 7
    admin(broker.bootstrap).delete_consumer_groups([group])[group].result(timeout=10)
    assert position() == OFFSET_INVALID
    broker.kill()
    broker.start()
    assert position() == OFFSET_INVALID
    listed = admin(broker.bootstrap).list_consumer_groups().result(timeout=10)
    assert group not in [one.group_id for one in listed.valid]


def test_positions_die_with_their_topic(make_broker: Callable[..., Broker], topic_name: str) -> None:
    broker = make_broker(**QUICK).start()
    create_topic(broker.bootstrap, topic_name)
    group = f"{topic_name}-group"
    produce(broker.bootstrap, topic_name, [Record(value=b"old")] * 10)
    member = Member(broker.bootstrap, group, topic_name)
    poll_until([member], "the old records are read", lambda: len(member.records) == 10)
    member.consumer.commit(asynchronous=False)
    member.close()
    delete_topic(broker.bootstrap, topic_name)
    create_topic(broker.bootstrap, topic_name)
    produce(broker.bootstrap, topic_name, [Record(value=b"new")] * 5)
    member = Member(broker.bootstrap, group, topic_name)
    poll_until([member], "the new records are read", lambda: len(member.records) == 5)
    member.close()


def test_who_is_late_can_not_commit(make_broker: Callable[..., Broker], topic_name: str) -> None:
    broker = make_broker(**QUICK).start()
    create_topic(broker.bootstrap, topic_name, partitions=PARTITIONS)
    produce(broker.bootstrap, topic_name, numbered(60))
    group = f"{topic_name}-group"
    # A consumer that assigns its partitions itself may not commit under members that are there.
    member = Member(broker.bootstrap, group, topic_name)
    poll_until([member], "it has everything", shared_out([member], PARTITIONS))
    stranger = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group, **QUIET})
    try:
        stranger.commit(offsets=[TopicPartition(topic_name, 0, 1)], asynchronous=False)
        raise AssertionError("a stranger's commit was taken")
    except KafkaException as error:
        assert error.args[0].code() == KafkaError.UNKNOWN_MEMBER_ID
    assert committed(broker.bootstrap, group, topic_name, PARTITIONS) == {}
    stranger.close()
    member.close()


def test_kafka_python_resumes_where_librdkafka_stopped(make_broker: Callable[..., Broker], topic_name: str) -> None:
    broker = make_broker(**QUICK).start()
    create_topic(broker.bootstrap, topic_name, partitions=PARTITIONS)
    produce(broker.bootstrap, topic_name, numbered(120))
    group = f"{topic_name}-group"
    member = Member(broker.bootstrap, group, topic_name)
    poll_until([member], "all is read", lambda: len(member.records) == 120)
    member.consumer.commit(asynchronous=False)
    member.close()
    produce(broker.bootstrap, topic_name, numbered(60))
    pure = KafkaConsumer(
        topic_name, bootstrap_servers=broker.bootstrap, group_id=group, auto_offset_reset="earliest",
        enable_auto_commit=False, session_timeout_ms=6000, heartbeat_interval_ms=500,
    )
    found: set[tuple[int, int]] = set()
    deadline = time.monotonic() + 40
    while len(found) < 60:
        assert time.monotonic() < deadline, f"{len(found)} records, {pure.assignment()}"
        for records in pure.poll(timeout_ms=200).values():
            found |= {(record.partition, record.offset) for record in records}
    assert found == {(partition, offset) for partition in range(PARTITIONS) for offset in range(20, 30)}
    pure.commit()
    pure.close()
    assert committed(broker.bootstrap, group, topic_name, PARTITIONS) == dict.fromkeys(range(PARTITIONS), 30)


def test_kafkas_tool_describes_resets_and_deletes(
    make_broker: Callable[..., Broker], topic_name: str, kafka_tool: Callable[..., str]
) -> None:
    broker = make_broker(**QUICK).start()
    create_topic(broker.bootstrap, topic_name, partitions=2)
    produce(broker.bootstrap, topic_name, [Record(value=b"x", partition=number % 2) for number in range(20)])
    group = f"{topic_name}-group"
    server = ("--bootstrap-server", broker.bootstrap)
    read = kafka_tool(
        "console-consumer", *server, "--topic", topic_name, "--group", group, "--from-beginning",
        "--max-messages", "20", "--timeout-ms", "30000",
    )
    assert read == "x\n" * 20
    assert group in kafka_tool("consumer-groups", *server, "--list").split()
    described = kafka_tool("consumer-groups", *server, "--describe", "--group", group)
    rows = [line.split()[:6] for line in described.splitlines() if line.startswith(group)]
    assert sorted(rows) == [[group, topic_name, "0", "10", "10", "0"], [group, topic_name, "1", "10", "10", "0"]]
    assert re.search(rf"{re.escape(group)}.*Empty", kafka_tool("consumer-groups", *server, "--describe", "--group", group, "--state"))
    reset = ("consumer-groups", *server, "--group", group, "--reset-offsets", "--topic", topic_name)
    kafka_tool(*reset, "--shift-by", "-3", "--execute")
    assert committed(broker.bootstrap, group, topic_name, 2) == {0: 7, 1: 7}
    kafka_tool("consumer-groups", *server, "--group", group, "--delete-offsets", "--topic", f"{topic_name}:1")
    assert committed(broker.bootstrap, group, topic_name, 2) == {0: 7}
    kafka_tool("consumer-groups", *server, "--delete", "--group", group)
    assert group not in kafka_tool("consumer-groups", *server, "--list").split()


def test_positions_of_a_live_group_stay_and_those_of_an_empty_one_expire(
    make_broker: Callable[..., Broker], topic_name: str
) -> None:
    broker = make_broker(offsets_retention_minutes=1, offsets_retention_check_interval_ms=500, **QUICK).start()
    create_topic(broker.bootstrap, topic_name)
    produce(broker.bootstrap, topic_name, [Record(value=b"x")] * 5)
    live, left = f"{topic_name}-live", f"{topic_name}-left"
    members = [Member(broker.bootstrap, group, topic_name) for group in (live, left)]
    poll_until(members, "both have read all", lambda: all(len(one.records) == 5 for one in members))
    for member in members:
        member.consumer.commit(asynchronous=False)
    members.pop().close()
    poll_until(members, "the empty one's are gone", lambda: committed(broker.bootstrap, left, topic_name, 1) == {}, seconds=90)
    assert committed(broker.bootstrap, live, topic_name, 1) == {0: 5}, "nobody committed for a minute, and it is still read"
    members[0].close()


def test_a_cooperative_group_keeps_what_it_can_through_rebalances(make_broker: Callable[..., Broker], topic_name: str) -> None:
    broker = make_broker(**QUICK).start()
    create_topic(broker.bootstrap, topic_name, partitions=PARTITIONS)
    group = f"{topic_name}-group"

    def join() -> Member:
        return Member(broker.bootstrap, group, topic_name, partition_assignment_strategy="cooperative-sticky")

    members = [join(), join()]
    poll_until(members, "two members share six partitions", shared_out(members, 3))
    before = [one.assignment for one in members]
    members.append(join())
    poll_until(members, "three members share six partitions", shared_out(members, 2))
    assert all(one.assignment <= held for one, held in zip(members, before)), "a partition moved between members that stayed"
    before = [one.assignment for one in members]
    members.pop().close()
    poll_until(members, "two members take over", shared_out(members, 3))
    assert all(held <= one.assignment for one, held in zip(members, before)), "a partition was taken away"
    for member in members:
        member.close()


def test_a_group_says_why_it_rebalanced_last(make_broker: Callable[..., Strandline], topic_name: str) -> None:
    broker = make_broker(**QUICK).start()
    create_topic(broker.bootstrap, topic_name, partitions=2)
    group = f"{topic_name}/group"

    def last() -> dict:
        [described] = found("group", "describe", group, broker=broker)
        return described["last_rebalance"]

    stays = Member(broker.bootstrap, group, topic_name, client_id="stays")
    poll_until([stays], "it has both", lambda: stays.assignment == {0, 1})
    first = last()
    assert (first["reason"], first["client_id"], first["host"]) == ("member_joined", "stays", "127.0.0.1")
    assert (first["generation"], first["instance_id"]) == (0, None)
    leaves = Member(broker.bootstrap, group, topic_name, client_id="leaves")
    poll_until([stays, leaves], "each has one", lambda: len(stays.assignment) == len(leaves.assignment) == 1)
    assert (last()["reason"], last()["client_id"], last()["generation"]) == ("member_joined", "leaves", 1)
    leaves.close()
    poll_until([stays], "it has both again", lambda: stays.assignment == {0, 1})
    assert (last()["reason"], last()["client_id"], last()["generation"]) == ("member_left", "leaves", 2)
    # One that doesn't poll leaves, too: its client says so for it.
    late = Member(broker.bootstrap, group, topic_name, client_id="late", max_poll_interval_ms=6000)
    poll_until([stays, late], "each has one", lambda: len(stays.assignment) == len(late.assignment) == 1)
    poll_until([stays], "it has both while the other works on and on", lambda: stays.assignment == {0, 1})
    told = last()
    assert (told["reason"], told["client_id"], told["generation"]) == ("member_left", "late", 4)
    age = datetime.now(timezone.utc) - datetime.fromisoformat(told["at"])
    assert timedelta() <= age < timedelta(minutes=1)
    text = done("group", "describe", group, broker=broker)
    assert re.search(rf"^last rebalance  member_left  \S+ ago  generation 4  member {told['member_id']}  client late", text, re.MULTILINE)
    assert metric(broker, 'strandline_group_rebalances_total{reason="member_joined"}') == 3
    assert metric(broker, 'strandline_group_rebalances_total{reason="member_left"}') == 2
    lines = [json.loads(line) for line in broker.log.read_text().splitlines() if line.startswith("{")]
    [logged] = [line for line in lines if line["msg"] == "group has a new generation" and line["generation"] == 5]
    assert (logged["reason"], logged["member"], logged["client_id"]) == ("member_left", told["member_id"], "late")
    # A crash forgets nothing of it; one that is killed with it is silent for longer than its session.
    broker.kill()
    broker.start()
    assert last() == told
    for member in (late, stays):
        member.close()
    assert get(broker, "/v1/groups/none")[0] == 404
