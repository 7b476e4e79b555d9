"""kcat, the command that people try first."""

import json
import subprocess

from broker import Broker
from clients import create_topic


def kcat(broker: Broker, *arguments: str, stdin: bytes = b"") -> bytes:
    done = subprocess.run(["kcat", "-b", broker.bootstrap, *arguments], input=stdin, capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def test_lines_in_lines_out(broker: Broker, topic: str) -> None:
    lines = b"".join(b"line %d\n" % i for i in range(5000))
    kcat(broker, "-P", "-t", topic, "-p", "0", "-z", "snappy", stdin=lines)
    assert kcat(broker, "-C", "-t", topic, "-p", "0", "-o", "beginning", "-e", "-q") == lines


def test_a_topic_is_made_on_first_use(broker: Broker, topic_name: str) -> None:
    kcat(broker, "-P", "-t", topic_name, "-K", ":", stdin=b"key:value\n")
    found = kcat(broker, "-C", "-t", topic_name, "-e", "-q", "-f", "%k=%s\n")
    assert found == b"key=value\n"


def test_metadata_lists_topics_and_partitions(broker: Broker, topic_name: str) -> None:
    create_topic(broker.bootstrap, topic_name, partitions=3)
    listed = json.loads(kcat(broker, "-L", "-J"))
    [node] = listed["brokers"]
    assert node["name"] in (broker.bootstrap, f"localhost:{broker.port}")
    [described] = [one for one in listed["topics"] if one["topic"] == topic_name]
    assert [p["partition"] for p in described["partitions"]] == [0, 1, 2]
    assert all(p["leader"] == node["id"] for p in described["partitions"])


def test_an_offset_is_asked_by_timestamp(broker: Broker, topic: str) -> None:
    kcat(broker, "-P", "-t", topic, "-p", "0", stdin=b"a\nb\n")
    assert kcat(broker, "-Q", "-t", f"{topic}:0:1").decode().strip() == f"{topic} [0] offset 0"


def test_the_last_records_and_headers(broker: Broker, topic: str) -> None:
    for i in range(10):
        kcat(broker, "-P", "-t", topic, "-p", "0", "-H", f"n={i}", "-H", "n=again", stdin=b"v%d\n" % i)
    found = kcat(broker, "-C", "-t", topic, "-p", "0", "-o", "-3", "-e", "-q", "-f", "%o %s %h\n").decode()
    assert found == "".join(f"{i} v{i} n={i},n=again\n" for i in (7, 8, 9))
