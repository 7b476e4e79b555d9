"""The commands for groups, configs and clusters: they work with any Kafka broker."""

import json
import time
from collections.abc import Iterator

import pytest
from broker import ApacheKafka, Broker, Strandline
from clients import QUIET, Record, bounds, create_topic, produce, topic_names
from command import done, found, refused, strandline
from confluent_kafka import Consumer
from conftest import PEER, close
from deadline import wait_until


# Some also run against Apache Kafka: the commands work with other people's brokers.
ALSO_KAFKA = pytest.mark.parametrize("cluster", ["strandline", "kafka"], indirect=True)


@pytest.fixture(scope="module")
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    kind = {"strandline": Strandline, "kafka": ApacheKafka}[getattr(request, "param", PEER)]
    broker = kind(tmp_path_factory.mktemp("cluster"), {"group.initial.rebalance.delay.ms": "0"}).start()
    yield broker
    # Kafka's own log has errors in the ordinary course of things.
    close(broker) if kind is Strandline else broker.close()


@pytest.fixture
def orders(cluster: Broker, topic_name: str) -> str:
    """A topic of two partitions; ten records in the first, the oldest an hour old."""
    create_topic(cluster.bootstrap, topic_name, partitions=2)
    now = int(time.time() * 1000)
    produce(cluster.bootstrap, topic_name, [Record(b"old", timestamp=now - 3_600_000 + i) for i in range(5)])
    produce(cluster.bootstrap, topic_name, [Record(b"new", timestamp=now - 60_000 + i) for i in range(5)])
    return topic_name


def member(cluster: Broker, group: str, topic: str, protocol: str) -> Consumer:
    """A live member of a group that has read and committed one record."""
    settings = {
        "bootstrap.servers": cluster.bootstrap, "group.id": group, "client.id": "app-1", "group.protocol": protocol,
        "auto.offset.reset": "earliest", "enable.auto.commit": False, **QUIET,
    }
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    message = wait_until("a record for the group", lambda: consumer.poll(0.2), seconds=60)
    assert message.error() is None, message.error()
    consumer.commit(message, asynchronous=False)
    return consumer


def described(cluster: Broker, group: str) -> dict:
    [one] = found("group", "describe", group, broker=cluster)
    return one


def offset_of(cluster: Broker, group: str, topic: str, partition: int = 0) -> int | None:
    offsets = {(o["topic"], o["partition"]): o["current_offset"] for o in described(cluster, group)["offsets"]}
    return offsets.get((topic, partition))


# A member of the consumer protocol needs a broker that assigns partitions (KIP-848): Kafka's alone.
@pytest.mark.parametrize(
    ("cluster", "protocol"),
    [("strandline", "classic"), ("kafka", "classic"), ("kafka", "consumer")],
    indirect=["cluster"],
)
def test_a_group_with_members_is_told_of_and_refused(cluster: Broker, orders: str, protocol: str) -> None:
    group = f"g-{orders}"
    consumer = member(cluster, group, orders, protocol)
    try:
        one = described(cluster, group)
        assert (one["type"], one["state"]) == (protocol, "Stable")
        [listed] = [g for g in found("group", "list", "--lag", broker=cluster) if g["group"] == group]
        assert (listed["state"], listed["type"], listed["lag_records"]) == ("Stable", protocol, 9)
        [only] = one["members"]
        assert only["client_id"] == "app-1" and only["assigned"] == [{"topic": orders, "partitions": [0, 1]}]
        first, second = one["offsets"]
        assert (first["current_offset"], first["log_end_offset"], first["lag_records"]) == (1, 10, 9)
        assert 3_590_000 < first["lag_ms"] < 3_700_000, "the next record is an hour old"
        assert first["member_id"] == only["member_id"]
        assert (second["current_offset"], second["lag_records"], second["lag_ms"]) == (None, None, None)
        text = done("group", "describe", group, broker=cluster)
        assert "1 member" in text and "TIME-LAG" in text and "app-1" in text
        for words in (["seek", group, "--to", "start", "--yes"], ["delete", group, "--yes"]):
            error = refused(1, "group", *words, broker=cluster)
            assert f'group "{group}" has 1 live member' in error and "app-1@" in error, error
        error = refused(1, "group", "delete-offsets", group, "-t", orders, "--yes", broker=cluster)
        assert error.count("GROUP_SUBSCRIBED_TO_TOPIC") == 1 and "stop them first" in error, error
        assert f"strandline group describe {group}\n" in error, error
        for words in (["delete", group], ["delete-offsets", group, "-t", orders]):
            tried = refused(1, "group", *words, "--dry-run", broker=cluster)
            assert "stop them first" in tried, tried
        assert offset_of(cluster, group, orders) == 1
    finally:
        consumer.close()


@ALSO_KAFKA
def test_an_empty_group_is_moved_everywhere(cluster: Broker, orders: str) -> None:
    group = f"g-{orders}"
    done("group", "seek", group, "--to", "start", "-t", f"{orders}:0", "--yes", broker=cluster)
    assert offset_of(cluster, group, orders) == 0
    for words, offset in (
        (["--to", "end"], 10),
        (["--to", "4"], 4),
        (["--by", "3"], 7),
        (["--by", "-100"], 0),
        (["--to", "-2"], 8),
        (["--to", "+3"], 3),
        (["--to", "@-10m"], 5),
        (["--to", "@-1ms"], 10),
        (["--to", "999"], 10),
    ):
        before = offset_of(cluster, group, orders)
        [plan] = found("group", "seek", group, *words, "--dry-run", broker=cluster)
        assert (plan["current_offset"], plan["new_offset"], plan["moved"]) == (before, offset, False), words
        unconfirmed = strandline("group", "seek", group, *words, broker=cluster)
        assert unconfirmed.returncode == (2 if before != offset else 0), words
        assert offset_of(cluster, group, orders) == before, "nothing moves without a word of consent"
        done("group", "seek", group, *words, "--yes", broker=cluster)
        assert offset_of(cluster, group, orders) == offset, words
    copy = f"{group}-copy"
    done("group", "seek", copy, "--like", group, "--yes", broker=cluster)
    assert offset_of(cluster, copy, orders) == 10
    one = described(cluster, copy)
    assert (one["state"], one["members"], one["lag_records"], one["lag_ms"]) == ("Empty", [], 0, 0)
    done("group", "delete-offsets", copy, "-t", orders, "--yes", broker=cluster)
    if copy in listed(cluster):  # a group that holds nothing any more may be gone itself
        assert offset_of(cluster, copy, orders) is None
    assert "needs a confirmation" in refused(2, "group", "delete", group, broker=cluster)
    done("group", "delete", group, "--yes", broker=cluster)
    assert group not in listed(cluster)


def listed(cluster: Broker) -> set[str]:
    return {one["group"] for one in found("group", "list", broker=cluster)}


def test_groups_that_are_not_there_are_told_with_a_suggestion(cluster: Broker, orders: str) -> None:
    group = f"g-{orders}"
    done("group", "seek", group, "--to", "start", "-t", orders, "--yes", broker=cluster)
    for words in (["describe", f"{group}x"], ["delete", f"{group}x", "--yes"], ["seek", f"{group}x", "--to", "end"]):
        error = refused(1, "group", *words, broker=cluster)
        assert f'group "{group}x" does not exist' in error and f'did you mean "{group}"' in error, error
    error = refused(1, "group", "seek", group, "--to", "end", "-t", f"{orders}x", broker=cluster)
    assert f'topic "{orders}x" does not exist' in error


def test_lag_is_what_kafkas_own_tool_says(cluster: Broker, orders: str, kafka_tool) -> None:
    group = f"g-{orders}"
    done("group", "seek", group, "--to", "3", "-t", orders, "--yes", broker=cluster)
    text = kafka_tool("consumer-groups", "--bootstrap-server", cluster.bootstrap, "--describe", "--group", group)
    theirs = {}
    for line in text.splitlines():
        words = line.split()
        if words[:2] == [group, orders]:
            theirs[int(words[2])] = (int(words[3]), int(words[4]), int(words[5]))
    ours = {
        offset["partition"]: (offset["current_offset"], offset["log_end_offset"], offset["lag_records"])
        for offset in described(cluster, group)["offsets"]
    }
    assert ours == theirs and ours[0] == (3, 10, 7)


def test_a_lag_is_what_can_still_be_read(cluster: Broker, orders: str) -> None:
    """Kafka's tool says 10 here for ever; beside a lag in time of nothing that would be a riddle."""
    group = f"g-{orders}"
    done("group", "seek", group, "--to", "start", "-t", f"{orders}:0", "--yes", broker=cluster)
    done("topic", "trim", orders, "--before", "-3", "--yes", broker=cluster)
    assert described(cluster, group)["lag_records"] == 3
    # What is gone is not skipped either.
    plan = strandline("group", "seek", group, "--to", "end", "--dry-run", broker=cluster)
    assert f"{group}: would read 0 records again and skip 3 records" in plan.stderr, plan.stderr
    done("topic", "trim", orders, "--before", "end", "--yes", broker=cluster)
    one = described(cluster, group)
    assert (one["lag_records"], one["lag_ms"]) == (0, 0)


def test_only_what_was_done_is_told_as_done(cluster: Broker, topic_name: str) -> None:
    compacted, plain = f"{topic_name}-compacted", f"{topic_name}-plain"
    done("topic", "create", compacted, "-c", "cleanup.policy=compact", broker=cluster)
    done("topic", "create", plain, broker=cluster)
    for name in (compacted, plain):
        produce(cluster.bootstrap, name, [Record(b"v", key=b"k")])
    cut = strandline("topic", "trim", "-r", f"{topic_name}-.*", "--before", "end", "--yes", broker=cluster)
    assert cut.returncode == 1 and "POLICY_VIOLATION" in cut.stderr, cut.stderr
    assert f"deleted 0 records of {compacted}" in cut.stderr and f"deleted 1 record of {plain}" in cut.stderr
    assert (bounds(cluster.bootstrap, compacted), bounds(cluster.bootstrap, plain)) == ((0, 1), (1, 1))


@ALSO_KAFKA
def test_many_are_changed_at_once_and_nothing_without_consent(cluster: Broker, topic_name: str) -> None:
    topics = [f"{topic_name}-{suffix}" for suffix in "ab"]
    groups = [f"g-{topic}" for topic in topics]
    for topic in topics:
        create_topic(cluster.bootstrap, topic)
        produce(cluster.bootstrap, topic, [Record(b"v")])
    done("group", "seek", *groups, "--to", "start", "-t", topics[0], "-t", topics[1], "--yes", broker=cluster)
    moved = found("group", "seek", "-r", f"g-{topic_name}-.", "--to", "end", "--yes", broker=cluster)
    assert [(one["group"], one["new_offset"], one["moved"]) for one in moved] == [
        (group, 1, True) for group in groups for _ in topics
    ]
    # What can't be looked up for one leaves all as they were.
    error = refused(1, "group", "seek", *groups, f"{groups[0]}x", "--to", "start", "--yes", broker=cluster)
    assert "does not exist" in error and "nothing was changed" in error, error
    assert offset_of(cluster, groups[0], topics[0]) == 1
    grown = found("topic", "add-partitions", *topics, "-p", "3", broker=cluster)
    assert [(one["name"], one["partitions"]) for one in grown] == [(topic, 3) for topic in topics]
    tried = found("group", "delete-offsets", *groups, "-t", topics[0], "--dry-run", broker=cluster)
    assert [(one["group"], one["deleted"]) for one in tried] == [(group, False) for group in groups]
    for what, names in (("group", groups), ("topic", topics)):
        tried = found(what, "delete", "-r", f".*{topic_name}-.", "--dry-run", broker=cluster)
        assert [one.get("name", one.get("group")) for one in tried] == names
        assert not any(one["deleted"] for one in tried)
    assert set(groups) <= listed(cluster) and set(topics) <= topic_names(cluster.bootstrap)
    gone = found("group", "delete-offsets", "-r", f"g-{topic_name}-.", "-t", topics[0], "--yes", broker=cluster)
    assert [(one["group"], one["deleted"]) for one in gone] == [(group, True) for group in groups]


def test_odd_names_are_refused_or_quoted(cluster: Broker, orders: str) -> None:
    for words in (["delete", "", "--yes"], ["delete", ""], ["describe", ""], ["trim", "", "--before", "end"]):
        assert "name is not empty" in refused(2, "topic", *words, broker=cluster)
    odd = f"two words'{orders}"
    done("group", "seek", odd, "--to", "start", "-t", orders, "--yes", broker=cluster)
    error = refused(2, "group", "delete", "-r", f".*'{orders}", broker=cluster)
    assert f"strandline group delete 'two words'\\''{orders}' --yes" in error, error
    assert "--delete-config" in refused(2, "topic", "alter", orders, broker=cluster)


@ALSO_KAFKA
def test_a_group_without_a_name_is_shown_and_can_be_named(cluster: Broker, orders: str) -> None:
    """Old clients that only commit need no name of a group."""
    made = strandline("group", "seek", "", "--to", "start", "-t", orders, "--yes", broker=cluster)
    assert made.returncode == 0 and '"": reads 0 records again' in made.stderr, made.stderr
    assert any(line.split()[0] == '""' for line in done("group", "list", broker=cluster).splitlines())
    assert done("group", "describe", "", broker=cluster).startswith('""  ')
    assert offset_of(cluster, "", orders) == 0
    assert "strandline group delete '' --yes" in refused(2, "group", "delete", "", broker=cluster)
    deleted = strandline("group", "delete", "", "--yes", broker=cluster)
    assert (deleted.returncode, deleted.stderr) == (0, 'deleted ""\n')
    assert "" not in listed(cluster)


@ALSO_KAFKA
def test_what_a_group_has_not_committed_is_named(cluster: Broker, orders: str) -> None:
    group = f"g-{orders}"
    done("group", "seek", group, "--to", "start", "-t", f"{orders}:1", "--yes", broker=cluster)
    error = refused(1, "group", "delete-offsets", group, "-t", f"{orders}:0", "--yes", broker=cluster)
    assert f"{group}: has no offset of {orders}-0\n" in error, error
    error = refused(2, "group", "seek", group, "--by", "1", "-t", f"{orders}:0,1", "--yes", broker=cluster)
    assert f'group "{group}" has committed nothing of {orders}-0' in error, error
    partly = strandline("group", "delete-offsets", group, "-t", f"{orders}:0,1", "--yes", broker=cluster)
    assert partly.returncode == 1 and f"has no offset of {orders}-0\n" in partly.stderr, partly.stderr
    assert f"{group}: forgot the offsets of 1 partition" in partly.stderr, partly.stderr


@ALSO_KAFKA
def test_a_group_that_reads_a_topic_and_has_committed_nothing_keeps_it(cluster: Broker, orders: str) -> None:
    group = f"g-{orders}"
    settings = {"bootstrap.servers": cluster.bootstrap, "group.id": group, "enable.auto.commit": False, **QUIET}
    consumer = Consumer(settings)
    consumer.subscribe([orders])
    try:
        wait_until("partitions", lambda: consumer.poll(0.2) is None and consumer.assignment(), seconds=60)
        for words in (["--yes"], ["--dry-run"], ["--yes", "-t", f"{orders}:1"]):
            error = refused(1, "group", "delete-offsets", group, "-t", orders, *words, broker=cluster)
            assert f"{group}: GROUP_SUBSCRIBED_TO_TOPIC for {orders}\n" in error, error
    finally:
        consumer.close()


@ALSO_KAFKA
def test_a_place_that_a_partition_does_not_have_is_told(cluster: Broker, orders: str) -> None:
    group = f"g-{orders}"
    done("group", "seek", group, "--to", "4", "-t", f"{orders}:0", "--yes", broker=cluster)
    for words, wished, nearest in (
        (["--to", "-1000000"], -999990, 0),
        (["--to", "+1000000"], 1000000, 10),
        (["--to", "999"], 999, 10),
        (["--by", "-1000000"], -999996, 0),
    ):
        tried = strandline("group", "seek", group, *words, "--dry-run", broker=cluster)
        told = f"warning: {orders}-0 has no offset {wished}; the nearest is {nearest}\n"
        assert tried.returncode == 0 and told in tried.stderr, (words, tried.stderr)
    tried = strandline("topic", "trim", orders, "-p", "0", "--before", "999", "--dry-run", broker=cluster)
    assert f"warning: {orders}-0 has no offset 999; the nearest is 10\n" in tried.stderr, tried.stderr
    # Who keeps the last million of ten keeps what was meant.
    tried = strandline("topic", "trim", orders, "--before", "-1000000", "--dry-run", broker=cluster)
    assert tried.returncode == 0 and "warning" not in tried.stderr, tried.stderr
    [at, _] = found("topic", "offsets", orders, "--at", "-1000000", broker=cluster)
    assert at["at_offset"] == 0


@ALSO_KAFKA
def test_a_topic_is_trimmed(cluster: Broker, orders: str) -> None:
    plan = found("topic", "trim", orders, "--before", "@-10m", "--dry-run", broker=cluster)
    assert [(cut["new_start_offset"], cut["records"]) for cut in plan] == [(5, 5), (0, 0)]
    assert "needs a confirmation" in refused(2, "topic", "trim", orders, "--before", "@-10m", broker=cluster)
    assert bounds(cluster.bootstrap, orders) == (0, 10)
    done("topic", "trim", orders, "--before", "@-10m", "--yes", broker=cluster)
    assert bounds(cluster.bootstrap, orders) == (5, 10)
    done("topic", "trim", orders, "-p", "0", "--before", "end", "--yes", broker=cluster)
    assert bounds(cluster.bootstrap, orders) == (10, 10)
    assert "has no partition 7" in refused(2, "topic", "trim", orders, "-p", "7", "--before", "end", broker=cluster)


@pytest.mark.strandline
def test_a_topic_that_keeps_its_records_is_not_said_to_be_trimmed(cluster: Broker, orders: str) -> None:
    done("topic", "alter", orders, "-c", "cleanup.policy=compact", broker=cluster)
    result = strandline("topic", "trim", orders, "--before", "end", "--yes", broker=cluster)
    assert result.returncode == 1 and "POLICY_VIOLATION" in result.stderr
    assert "deleted 0 records" in result.stdout + result.stderr
    assert bounds(cluster.bootstrap, orders) == (0, 10)


@ALSO_KAFKA
def test_what_a_key_would_be_is_shown_although_it_was_not_set(cluster: Broker) -> None:
    [tried] = found("config", "set", "cluster", "log.retention.ms=7d", "--dry-run", broker=cluster)
    [key] = tried["configs"]
    assert (key["value"], key["source"], tried["changed"]) == ("604800000", "cluster", False)
    text = done("config", "set", "cluster", "log.retention.ms=7d", "--dry-run", broker=cluster)
    assert "log.retention.ms: not set -> 604800000 (cluster)" in text, text


def test_offsets_of_a_topic(cluster: Broker, orders: str) -> None:
    first, second = found("topic", "offsets", orders, "--at", "@-10m", broker=cluster)
    assert (first["log_start_offset"], first["high_watermark"], first["at_offset"]) == (0, 10, 5)
    assert first["newest_offset"] == 9 and first["newest_timestamp"].endswith("Z")
    assert (second["high_watermark"], second["newest_offset"], second["at_offset"]) == (0, None, 0)


@ALSO_KAFKA
def test_a_topic_is_altered_and_grows(cluster: Broker, orders: str) -> None:
    [tried] = found("topic", "alter", orders, "-c", "retention.ms=1d", "--dry-run", broker=cluster)
    assert (tried["changed"], tried["configs"][0]["value"]) == (False, "86400000")
    [changed] = found("topic", "alter", orders, "-c", "retention.ms=2d", broker=cluster)
    [key] = changed["configs"]
    assert (key["source_before"], key["value"], key["source"]) == ("default", "172800000", "topic")
    [entry] = found("config", "get", f"topic:{orders}", "retention.ms", broker=cluster)
    assert (entry["value"], entry["source"]) == ("172800000", "topic")
    done("topic", "alter", orders, "--delete-config", "retention.ms", broker=cluster)
    [entry] = found("config", "get", f"topic:{orders}", "retention.ms", broker=cluster)
    assert (entry["value"], entry["source"]) == ("604800000", "default")
    error = refused(1, "topic", "alter", orders, "-c", "retention.mss=1", broker=cluster)
    assert "INVALID_CONFIG" in error and "did you mean retention.ms?" in error
    done("topic", "add-partitions", orders, "-p", "+1", broker=cluster)
    [topic] = [one for one in found("topic", "list", broker=cluster) if one["name"] == orders]
    assert topic["partitions"] == 3
    assert "INVALID_PARTITIONS" in refused(1, "topic", "add-partitions", orders, "-p", "2", broker=cluster)


@ALSO_KAFKA
def test_groups_that_read_a_topic_are_told_of_when_it_grows(cluster: Broker, orders: str) -> None:
    live, empty, other = (f"{word}-{orders}" for word in ("live", "empty", "other"))
    done("group", "seek", empty, "--to", "end", "-t", orders, "--yes", broker=cluster)
    elsewhere = f"{orders}-elsewhere"
    create_topic(cluster.bootstrap, elsewhere)
    done("group", "seek", other, "--to", "end", "-t", elsewhere, "--yes", broker=cluster)
    consumer = member(cluster, live, orders, "classic")
    try:
        tried = strandline("topic", "add-partitions", orders, "-p", "4", "--dry-run", "--format", "json", broker=cluster)
        assert (tried.returncode, json.loads(tried.stdout)[0]["changed"]) == (0, False)
        assert f"2 groups read {orders}: {empty}, {live} (1 member)" in tried.stderr, tried.stderr
        assert offset_of(cluster, empty, orders, 3) is None
        words = ["topic", "add-partitions", orders, "-p", "4", "--groups-from-start", "--format", "json"]
        grown = strandline(*words, broker=cluster)
        assert grown.returncode == 0, grown.stderr
        groups = {one["group"]: (one["members"], one["from_start"]) for one in json.loads(grown.stdout)[0]["groups"]}
        assert groups == {live: (1, False), empty: (0, True)}
        # The one with members can't be told: it would commit over it.
        warning = json.loads(grown.stderr)
        assert warning["message"] == f"1 group reads {orders}: {live} (1 member)", warning
        assert "auto.offset.reset" in warning["hint"], warning
        assert [offset_of(cluster, empty, orders, index) for index in range(4)] == [10, 0, 0, 0]
        assert [offset_of(cluster, live, orders, index) for index in (2, 3)] == [None, None]
    finally:
        consumer.close()


@ALSO_KAFKA
def test_a_limit_of_each_partition_is_told_for_all_of_them(cluster: Broker, orders: str) -> None:
    assert "for each partition" not in done("topic", "describe", orders, broker=cluster)
    done("topic", "alter", orders, "-c", "retention.bytes=1MiB", broker=cluster)
    text = done("topic", "describe", orders, broker=cluster)
    assert "retention.bytes is for each partition: 1048576 × 2 partitions = 2097152 bytes at most" in text
    [one] = found("topic", "describe", orders, broker=cluster)
    assert one["retention_bytes_of_all_partitions"] == 2_097_152


@ALSO_KAFKA
def test_configs_of_brokers_and_groups_are_set_and_unset(cluster: Broker, topic_name: str) -> None:
    info = found("cluster", "info", broker=cluster)
    node = info["nodes"][0]["node_id"]
    for resource, key, value, plain in (
        ("cluster", "log.retention.ms", "3d", "259200000"),
        (f"broker:{node}", "log.retention.ms", "4d", "345600000"),
        (f"group:g-{topic_name}", "consumer.session.timeout.ms", "50s", "50000"),
    ):
        done("config", "set", resource, f"{key}={value}", broker=cluster)
        entries = {one["name"]: one for one in found("config", "get", resource, broker=cluster)}
        assert (entries[key]["value"], entries[key]["source"]) == (plain, resource.split(":")[0])
        done("config", "unset", resource, key, broker=cluster)
        entries = {one["name"]: one for one in found("config", "get", resource, broker=cluster)}
        assert entries.get(key, {}).get("source") != resource.split(":")[0]
    # What a broker was started with may come from its command line as well as from a file.
    [started] = found("config", "get", f"broker:{node}", "group.initial.rebalance.delay.ms", broker=cluster)
    assert (started["value"], started["source"]) == ("0", "static")


@ALSO_KAFKA
def test_the_cluster_says_what_it_is(cluster: Broker, orders: str) -> None:
    info = found("cluster", "info", broker=cluster)
    [node] = info["nodes"]
    assert node["port"] == cluster.port and node["leads_partitions"] == info["partitions"] > 1
    assert info["cluster_id"] in done("cluster", "info", broker=cluster)
    [apis] = found("cluster", "apis", broker=cluster)
    names = {api["name"] for api in apis["apis"]}
    assert {"Produce", "Fetch", "ApiVersions"} <= names


def test_patterns_name_whole_names(cluster: Broker, topic_name: str) -> None:
    for suffix in ("a", "ab", "b"):
        create_topic(cluster.bootstrap, f"{topic_name}-{suffix}")
        done("group", "seek", f"g-{topic_name}-{suffix}", "--to", "end", "-t", f"{topic_name}-{suffix}", "--yes", broker=cluster)
    described = found("topic", "describe", "-r", f"{topic_name}-a.?", broker=cluster)
    assert [topic["name"] for topic in described] == [f"{topic_name}-a", f"{topic_name}-ab"]
    groups = found("group", "describe", "-r", f"g-{topic_name}-.", broker=cluster)
    assert [group["group"] for group in groups] == [f"g-{topic_name}-a", f"g-{topic_name}-b"]
    error = refused(2, "topic", "delete", "-r", f"{topic_name}-a.*", broker=cluster)
    assert f"deleting {topic_name}-a {topic_name}-ab needs a confirmation" in error
    done("topic", "delete", "-r", f"{topic_name}-a.*", "--yes", broker=cluster)
    left = wait_until(
        "the topics are gone",
        lambda: [n for n in topic_names(cluster.bootstrap) if n.startswith(topic_name)] == [f"{topic_name}-b"],
    )
    assert left
    assert 'no topic matches "' in refused(1, "topic", "describe", "-r", f"{topic_name}-a", broker=cluster)
    done("group", "delete", "-r", f"g-{topic_name}-.*", "--yes", broker=cluster)
    assert not [one for one in listed(cluster) if topic_name in one]
