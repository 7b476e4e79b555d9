"""The life of deleted topics as people and clients meet it: names, what comes back, what goes, and when."""

import json
import random
import subprocess
import threading
import time
import urllib.error
import urllib.request

import pytest
from broker import BINARY, Strandline
from clients import Record, admin, bounds, consume, create_topic, delete_topic, produce, topic_names
from command import done, found, refused, strandline
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions, Producer, TopicPartition
from confluent_kafka.admin import ConfigResource, NewTopic, ResourceType
from deadline import wait_until
from observed import get, metric, scraped, stored_bytes, stored_logs
from storage import STORAGE

pytestmark = pytest.mark.strandline

HOUR = {"deletion_grace_ms": 3_600_000}
RECORDS = [Record(f"{index:04d}".encode() * 250, key=b"k%d" % index) for index in range(40)]


def fill(broker: Strandline, topic: str, partitions: int = 1, **config: object) -> None:
    """Forty records of 1000 bytes in segments of about five."""
    create_topic(broker.bootstrap, topic, partitions=partitions, internal_segment_bytes=5500, **config)
    produce(broker.bootstrap, topic, RECORDS, batch_num_messages=1)


def deleted(broker: Strandline, topic: str) -> str:
    """Deletes a topic; the id that it had."""
    outcome = found("topic", "delete", topic, "--yes", broker=broker)
    return outcome[0]["id"]


def pending(broker: Strandline) -> list[dict]:
    return found("deletions", "list", broker=broker)


def names(broker: Strandline) -> set[str]:
    """All topics but the broker's own."""
    return topic_names(broker.bootstrap) - {"__consumer_offsets"}


def posted(broker: Strandline, path: str, **headers: str) -> tuple[int, str]:
    """The status and the error of a change that is refused."""
    url = f"http://127.0.0.1:{broker.http}/v1/deletions/{path}"
    with pytest.raises(urllib.error.HTTPError) as refusal:
        urllib.request.urlopen(urllib.request.Request(url, method="POST", headers=headers), timeout=10)
    with refusal.value as answer:
        return answer.code, json.loads(answer.read())["error"]


def commit(broker: Strandline, group: str, topic: str, offset: int) -> None:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": group})
    consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
    consumer.close()


def position(broker: Strandline, group: str, topic: str) -> int:
    asked = ConsumerGroupTopicPartitions(group, [TopicPartition(topic, 0)])
    answer = admin(broker.bootstrap).list_consumer_group_offsets([asked])[group].result(timeout=20)
    return answer.topic_partitions[0].offset


def retention_ms(broker: Strandline, topic: str) -> str:
    resource = ConfigResource(ResourceType.TOPIC, topic)
    return admin(broker.bootstrap).describe_configs([resource])[resource].result(timeout=20)["retention.ms"].value


def values(broker: Strandline, topic: str) -> list[bytes]:
    return [message.value for message in consume(broker.bootstrap, topic)]


def test_a_deleted_topic_comes_back_as_it_was(make_broker, topic_name: str) -> None:
    """Records, keys, settings and positions of groups; through a crash between the two."""
    broker = make_broker(**HOUR).start()
    fill(broker, topic_name, retention_ms=86_400_000)
    before = consume(broker.bootstrap, topic_name)
    commit(broker, "g", topic_name, 17)
    told = strandline("topic", "delete", topic_name, "--yes", broker=broker).stderr
    topic_id = pending(broker)[0]["id"]
    assert f"undo: strandline topic undelete {topic_id}" in told and "after 1h" in told
    assert names(broker) == set()
    broker.kill()
    broker.start()
    assert names(broker) == set()
    one = found("deletions", "show", topic_name, broker=broker)
    assert (one["id"], one["state"], one["can_undelete"]) == (topic_id, "grace", True)
    assert one["bytes"] >= 40_000 and one["freed_bytes"] == 0 and one["client_id"] != ""
    assert f"undeleted {topic_name} (id {topic_id})" in strandline(
        "topic", "undelete", topic_id, broker=broker
    ).stderr
    after = consume(broker.bootstrap, topic_name)
    assert [(it.key, it.value, it.timestamp) for it in after] == [(it.key, it.value, it.timestamp) for it in before]
    assert retention_ms(broker, topic_name) == "86400000"
    assert position(broker, "g", topic_name) == 17
    assert pending(broker) == []
    broker.kill()
    broker.start()
    assert bounds(broker.bootstrap, topic_name) == (0, 40)
    assert position(broker, "g", topic_name) == 17


def test_a_topic_whose_name_is_taken_comes_back_under_another(make_broker, topic_name: str) -> None:
    broker = make_broker(**HOUR).start()
    fill(broker, topic_name)
    commit(broker, "g", topic_name, 17)
    first = deleted(broker, topic_name)
    create_topic(broker.bootstrap, topic_name)
    produce(broker.bootstrap, topic_name, [Record(b"new")])
    assert position(broker, "g", topic_name) < 0, "the new topic has nothing of the old one"
    assert values(broker, topic_name) == [b"new"]
    error = refused(1, "topic", "undelete", first, broker=broker)
    assert f"a topic named {topic_name} exists" in error and f"undelete {first} --as NAME" in error
    assert "no/name" in refused(2, "topic", "undelete", first, "--as", "no/name", broker=broker)
    second = deleted(broker, topic_name)
    ambiguous = refused(2, "topic", "undelete", topic_name, broker=broker)
    assert first in ambiguous and second in ambiguous
    assert found("topic", "undelete", first, "--as", "old", broker=broker) == {"id": first, "name": "old"}
    assert found("topic", "undelete", topic_name, broker=broker) == {"id": second, "name": topic_name}
    assert (len(values(broker, "old")), values(broker, topic_name)) == (40, [b"new"])
    assert position(broker, "g", "old") == 17
    assert "no deletion of old is pending" in refused(1, "topic", "undelete", "old", broker=broker)


def test_after_the_grace_there_is_no_way_back(make_broker, topic_name: str) -> None:
    broker = make_broker(deletion_grace_ms=1000).start()
    fill(broker, topic_name)
    topic_id = deleted(broker, topic_name)
    wait_until("nothing is pending", lambda: pending(broker) == [])
    assert stored_bytes(broker) == 0
    assert "is pending" in refused(1, "topic", "undelete", topic_id, broker=broker)
    code, error = posted(broker, f"{topic_id}/undelete")
    assert code == 404 and "nothing is left of the topic" in error


def test_deletions_are_stopped_resumed_and_hurried(make_broker, topic_name: str) -> None:
    broker = make_broker(**HOUR).start()
    for name in ("a", "b", "c"):
        fill(broker, name)
        deleted(broker, name)
    done("deletions", "pause", "a", broker=broker)
    assert "needs a confirmation" in refused(2, "deletions", "purge", "a", broker=broker)
    purged = strandline("deletions", "purge", "a", "b", "--yes", broker=broker)
    assert purged.returncode == 0 and "it is paused, alone or with all" in purged.stderr
    wait_until("b is gone", lambda: [one["topic"] for one in pending(broker)] == ["a", "c"])
    done("deletions", "pause", "--all", broker=broker)
    broker.kill()
    broker.start()
    assert [one["state"] for one in pending(broker)] == ["paused", "paused"]
    assert metric(broker, 'strandline_deletion_pending_items{kind="topic",state="paused"}') == 2
    done("deletions", "purge", "c", "--yes", broker=broker)
    done("deletions", "resume", "--all", broker=broker)
    wait_until("c is gone", lambda: [one["topic"] for one in pending(broker)] == ["a"])
    assert "did not fail" in refused(1, "deletions", "retry", "a", broker=broker)
    assert found("topic", "undelete", "a", broker=broker)["name"] == "a"
    assert len(values(broker, "a")) == 40


@pytest.mark.parametrize("started_with", [None, "false", "true"])
def test_what_stops_all_deletions_is_set_only_where_it_differs(make_broker, started_with: str | None) -> None:
    properties = {} if started_with is None else {"deletion_paused": started_with}
    broker = make_broker(**properties).start()

    def cluster_wide() -> dict[str, str]:
        return {one["name"]: one["value"] for one in found("config", "get", "cluster", broker=broker)}

    for action, value in (("pause", "true"), ("resume", "false"), ("pause", "true"), ("pause", "true")):
        done("deletions", action, "--all", broker=broker)
        [now] = found("config", "get", "broker:1", "deletion.paused", broker=broker)
        assert now["value"] == value
        assert cluster_wide() == ({} if value == (started_with or "false") else {"deletion.paused": value})


def test_a_rate_slows_removal_down_and_watching_tells_how_far_it_is(make_broker, topic_name: str) -> None:
    broker = make_broker(deletion_grace_ms=0, deletion_max_bytes_per_sec=20_000).start()
    fill(broker, topic_name)
    watch = subprocess.Popen(
        [str(BINARY), "deletions", "list", "--watch", "--format", "json", "--http-url", f"http://127.0.0.1:{broker.http}"],
        stdout=subprocess.PIPE,
        text=True,
    )
    # It ends at once when nothing is pending yet: begun anew after the deletion.
    assert watch.communicate(timeout=20)[0].strip() == "[]"
    done("config", "set", "cluster", "deletion.paused=true", broker=broker)
    deleted(broker, topic_name)
    watch = subprocess.Popen(watch.args, stdout=subprocess.PIPE, text=True)
    assert json.loads(watch.stdout.readline())[0]["freed_bytes"] == 0
    begun = time.monotonic()
    done("deletions", "resume", "--all", broker=broker)
    rest, _ = watch.communicate(timeout=60)
    took = time.monotonic() - begun
    freed = [one[0]["freed_bytes"] for one in map(json.loads, rest.splitlines()) if one]
    assert took > 1.5, f"40 kB at 20 kB a second took {took:.1f} s"
    assert freed == sorted(freed) and any(0 < bytes_ < 40_000 for bytes_ in freed), freed
    assert rest.splitlines()[-1] == "[]"
    assert metric(broker, "strandline_deletion_freed_bytes_total") >= 40_000


def test_kills_neither_lose_a_deletion_nor_let_it_come_back(make_broker, topic_name: str) -> None:
    """Killed twenty times while topics of many partitions go at a rate: each topic is gone from the first
    answer on, progress never goes back by more than a step, and at the end nothing is left."""
    broker = make_broker(deletion_grace_ms=0, deletion_max_bytes_per_sec=300_000).start()
    rng = random.Random(7)
    for name in ("kept", "x", "y"):
        create_topic(broker.bootstrap, name, partitions=20, internal_segment_bytes=5500)
        many = [Record(bytes(1000), partition=index % 20) for index in range(600)]
        produce(broker.bootstrap, name, many, batch_num_messages=1)
    everything = stored_bytes(broker)
    for name in ("x", "y"):
        deleted(broker, name)
    freed: dict[str, int] = {}
    for _ in range(20):
        time.sleep(rng.random() * 0.2)
        broker.kill()
        broker.start()
        assert names(broker) == {"kept"}
        for one in pending(broker):
            step = 300_000 // 4 + 20 * 6000
            assert one["freed_bytes"] >= freed.get(one["id"], 0) - step, one
            freed[one["id"]] = one["freed_bytes"]
    done("config", "set", "cluster", "deletion.max.bytes.per.sec=-1", broker=broker)
    wait_until("nothing is pending", lambda: pending(broker) == [], seconds=60)
    assert stored_bytes(broker) < everything / 2
    assert len(stored_logs(broker)) == 20, "those of the topic that was kept"
    assert sum(high for _, high in (bounds(broker.bootstrap, "kept", index) for index in range(20))) == 600
    broker.kill()
    broker.start()
    assert pending(broker) == [] and names(broker) == {"kept"}


def test_a_kill_at_any_moment_of_an_undelete_leaves_the_topic_whole_or_deleted(make_broker, topic_name: str) -> None:
    broker = make_broker(**HOUR).start()
    fill(broker, topic_name)
    rng = random.Random(11)
    for _ in range(15):
        if topic_name in names(broker):
            assert len(values(broker, topic_name)) == 40
            deleted(broker, topic_name)
        words = [str(BINARY), "topic", "undelete", topic_name, "--http-url", f"http://127.0.0.1:{broker.http}"]
        undeleting = subprocess.Popen(words, stderr=subprocess.DEVNULL)
        time.sleep(rng.random() * 0.03)
        broker.kill()
        undeleting.wait(timeout=20)
        broker.start()
        is_there = topic_name in names(broker)
        assert is_there == (pending(broker) == []), "it is in one place"
        assert not (undeleting.returncode == 0 and not is_there), "what was answered stays"
    if not is_there:
        done("topic", "undelete", topic_name, broker=broker)
    assert len(values(broker, topic_name)) == 40


def test_a_name_meets_nothing_of_the_topic_that_had_it(make_broker, topic_name: str) -> None:
    """Offsets, positions, idempotent producers, files, metrics: created, filled and deleted again and again."""
    broker = make_broker(deletion_grace_ms=500).start()
    producer = Producer({"bootstrap.servers": broker.bootstrap, "enable.idempotence": True, "linger.ms": 0})
    for round_ in range(1, 11):
        create_topic(broker.bootstrap, topic_name, partitions=1 + round_ % 3)
        assert bounds(broker.bootstrap, topic_name) == (0, 0)
        assert position(broker, "g", topic_name) < 0
        outcomes: list[object] = []
        for index in range(round_):
            value = b"%d-%d" % (round_, index)
            producer.produce(topic_name, value, partition=0, on_delivery=lambda error, _: outcomes.append(error))
        producer.flush(30)
        assert outcomes == [None] * round_
        assert values(broker, topic_name) == [b"%d-%d" % (round_, index) for index in range(round_)]
        counted = metric(broker, f'strandline_topic_received_records_total{{topic="{topic_name}"}}')
        assert counted == round_, "its own count only"
        commit(broker, "g", topic_name, round_)
        delete_topic(broker.bootstrap, topic_name)
        assert f'topic="{topic_name}"' not in scraped(broker)
    wait_until("nothing is pending", lambda: pending(broker) == [])
    assert (stored_bytes(broker), stored_logs(broker)) == (0, [])


@pytest.mark.files("PostgreSQL has no side files; a topic's rows are looked at by the other tests")
def test_side_files_keep_nothing_alive(make_broker, topic_name: str) -> None:
    """State of producers, indexes, and what somebody left there: the topic's folder goes."""
    broker = make_broker(deletion_grace_ms=0).start()
    create_topic(broker.bootstrap, topic_name)
    produce(broker.bootstrap, topic_name, RECORDS, enable_idempotence=True)
    assert broker.stop() == 0, "a clean stop saves what is derived"
    broker.start()
    assert len(values(broker, topic_name)) == 40
    assert stored_logs(broker)
    deleted(broker, topic_name)
    wait_until("nothing is pending", lambda: pending(broker) == [])
    assert stored_logs(broker) == []
    assert not any(broker.data.rglob("*.index")) and not any(broker.data.rglob("*.timeindex"))


def test_what_is_deleted_is_told_over_http_and_not_changed_by_pages(make_broker, topic_name: str) -> None:
    broker = make_broker(**HOUR).start()
    fill(broker, topic_name)
    topic_id = deleted(broker, topic_name)
    status, text = get(broker, f"/v1/deletions/{topic_id}")
    assert status == 200 and json.loads(text)["topic"] == topic_name
    assert posted(broker, f"{topic_id}/purge", Origin="http://evil.example")[0] == 403
    assert posted(broker, f"{topic_id}/purge", Host="evil.example")[0] == 403
    assert pending(broker)[0]["state"] == "grace"


def test_commands_need_a_broker_of_ours_and_say_so() -> None:
    error = refused(3, "deletions", "list", "--http-url", "http://127.0.0.1:1")
    assert "this needs a strandline broker" in error
    assert "how a deletion stands" in done("explain", "backing_off")


def test_hundreds_of_deletions_leave_the_broker_responsive_and_the_accounts_right(make_broker) -> None:
    broker = make_broker(deletion_grace_ms=0).start()
    topics = [f"mass-{index}" for index in range(300)]
    made = admin(broker.bootstrap).create_topics([NewTopic(name, 1, 1) for name in topics])
    for future in made.values():
        future.result(timeout=60)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 5})
    for name in topics:
        producer.produce(name, bytes(4000))
    assert producer.flush(60) == 0
    resident = metric(broker, "process_resident_memory_bytes")
    took: list[float] = []
    over = threading.Event()

    def ask() -> None:
        while not over.is_set():
            begun = time.monotonic()
            topic_names(broker.bootstrap)
            took.append(time.monotonic() - begun)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        done("topic", "delete", "-r", "mass-.*", "--yes", broker=broker)
        wait_until("nothing is pending", lambda: pending(broker) == [], seconds=60)
    finally:
        over.set()
        asking.join()
    assert max(took) < 1.0 and len(took) > 5, took
    assert (names(broker), stored_logs(broker)) == (set(), [])
    assert metric(broker, "process_resident_memory_bytes") < resident + 64 * 1024 * 1024
    used = metric(broker, f'strandline_storage_used_bytes{{engine="{STORAGE}"}}')
    files = sum(file.stat().st_size for file in broker.data.rglob("*") if file.is_file())
    assert stored_bytes(broker) == 0 and used <= files, "what is accounted for are the journal's bytes"
