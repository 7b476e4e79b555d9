"""The broker as an operator meets it: start, ports, configuration, health, the folder, the end."""

import os
import re
import signal
import socket
import subprocess
import urllib.request
from collections.abc import Callable
from pathlib import Path

import pytest
from broker import BINARY, Strandline
from clients import API_VERSIONS, QUIET, Record, admin, consume, create_topic, delete_topic, produce, topic_names
from command import done
from confluent_kafka import KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient
from deadline import wait_until
from observed import get, stored_bytes

pytestmark = pytest.mark.strandline

Make = Callable[..., Strandline]


def serve(folder: Path, *words: str, **environment: str) -> subprocess.CompletedProcess:
    """A start that is expected to fail."""
    command = [str(BINARY), "serve", "--data", str(folder), "--port", "0", "--http", "0", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, env={**os.environ, **environment})


def test_health_and_metrics(broker: Strandline, topic: str) -> None:
    produce(broker.bootstrap, topic, [Record(b"v")] * 10)
    assert get(broker, "/livez")[0] == 200
    assert get(broker, "/readyz")[0] == 200
    status, metrics = get(broker, "/metrics")
    assert status == 200 and re.search(r"^kafka_server_brokertopicmetrics_messagesin\w*(\{.*\})? \d+", metrics, re.MULTILINE)
    assert get(broker, "/no-such-page")[0] == 404


def is_served(broker: Strandline, source: str, kept: list[socket.socket]) -> bool:
    """Whether one more connection from this address is served; it stays open if it is."""
    connection = socket.create_connection(("127.0.0.1", broker.port), timeout=10, source_address=(source, 0))
    try:
        connection.sendall(API_VERSIONS)
        if connection.recv(1):
            kept.append(connection)
            return True
    except ConnectionError:
        pass
    connection.close()
    return False


def test_connections_are_limited_by_address_and_limits_change_at_once(make_broker: Make) -> None:
    overrides = "127.0.0.1:100,127.0.0.4:1"
    broker = make_broker(max_connections_per_ip=2, max_connections_per_ip_overrides=overrides).start()
    kept: list[socket.socket] = []
    for source, most in (("127.0.0.2", 2), ("127.0.0.3", 2), ("127.0.0.4", 1)):
        assert [is_served(broker, source, kept) for _ in range(most + 1)] == [True] * most + [False]
    done("config", "set", "broker:1", "max.connections.per.ip=3", broker=broker)
    assert [is_served(broker, "127.0.0.2", kept) for _ in range(2)] == [True, False]
    for connection in kept:
        connection.close()
    wait_until("places are given back", lambda: is_served(broker, "127.0.0.4", kept))
    # Of all together; none of those that are there is closed.
    done("config", "set", "cluster", "max.connections=1", broker=broker)
    assert not is_served(broker, "127.0.0.5", kept)
    kept[-1].sendall(API_VERSIONS)
    assert kept[-1].recv(1)
    kept[-1].close()
    wait_until("a place is given back", lambda: is_served(broker, "127.0.0.5", kept))
    kept[-1].close()


def test_who_speaks_another_protocol_is_told_of(make_broker: Make) -> None:
    broker = make_broker().start()
    with pytest.raises(OSError):  # the connection ends without an answer
        urllib.request.urlopen(f"http://127.0.0.1:{broker.port}/", timeout=10)
    secure = AdminClient({"bootstrap.servers": broker.bootstrap, "security.protocol": "ssl", **QUIET})
    with pytest.raises(KafkaException):
        secure.list_topics(timeout=2)
    for name in ("HTTP", "TLS"):
        wait_until(f"{name} is told of", lambda: f"this looks like {name}" in broker.log.read_text(), seconds=10)


def test_what_is_gone_leaves_the_metrics(broker: Strandline, topic_name: str) -> None:
    create_topic(broker.bootstrap, topic_name, partitions=3)
    produce(broker.bootstrap, topic_name, [Record(b"v", partition=i) for i in range(3)])
    lines = [line for line in get(broker, "/metrics")[1].splitlines() if f'topic="{topic_name}"' in line]
    assert lines
    delete_topic(broker.bootstrap, topic_name)
    assert topic_name not in get(broker, "/metrics")[1]


def test_sigterm_ends_in_order_and_the_next_start_is_clean(make_broker: Make, topic_name: str) -> None:
    broker = make_broker().start()
    create_topic(broker.bootstrap, topic_name)
    produce(broker.bootstrap, topic_name, [Record(b"v")] * 100)
    assert broker.stop() == 0
    broker.start()
    assert len(consume(broker.bootstrap, topic_name)) == 100


def peer_that_takes_no_answers(broker: Strandline) -> socket.socket:
    """Asks until the broker reads no more, since its answers have nowhere to go."""
    peer = socket.create_connection(("127.0.0.1", broker.port), timeout=1)
    try:
        while True:
            peer.sendall(API_VERSIONS * 1000)
    except TimeoutError:
        return peer


def test_a_peer_that_takes_no_answers_does_not_hold_up_the_end(make_broker: Make) -> None:
    broker = make_broker(shutdown_timeout_ms=500).start()
    with peer_that_takes_no_answers(broker):
        assert broker.stop() == 0
    assert "were cut" in broker.log.read_text()


def test_a_second_signal_ends_it_at_once(make_broker: Make) -> None:
    broker = make_broker(shutdown_timeout_ms=600_000).start()
    with peer_that_takes_no_answers(broker):
        broker.process.send_signal(signal.SIGTERM)
        wait_until("it stops", lambda: "stopping" in broker.log.read_text())
        assert broker.stop() == 143


def test_localhost_is_both_families(broker: Strandline) -> None:
    for address in ("127.0.0.1", "::1"):
        socket.create_connection((address, broker.port), timeout=5).close()


def test_a_client_on_loopback_is_told_an_address_that_it_can_reach(broker: Strandline, topic: str) -> None:
    [node] = admin(broker.bootstrap).list_topics(timeout=10).brokers.values()
    assert node.port == broker.port
    socket.create_connection((node.host, node.port), timeout=5).close()


@pytest.mark.files("with everything in PostgreSQL there is no folder; that a schema is in use is open, see docs/open.md")
def test_a_folder_in_use_is_refused(make_broker: Make) -> None:
    broker = make_broker().start()
    result = serve(broker.data)
    assert result.returncode != 0
    assert str(broker.process.pid) in result.stderr or "in use" in result.stderr or "lock" in result.stderr


def test_a_port_in_use_is_refused(make_broker: Make, tmp_path: Path) -> None:
    broker = make_broker().start()
    command = [str(BINARY), "serve", "--data", str(tmp_path / "other"), "--port", str(broker.port), "--http", "0"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=30)
    assert result.returncode != 0 and str(broker.port) in result.stderr


def test_an_unknown_key_is_an_error_with_a_suggestion(tmp_path: Path) -> None:
    result = serve(tmp_path / "data", "-c", "log.retention.mss=1")
    assert result.returncode == 2 and "log.retention.ms" in result.stderr
    file = tmp_path / "server.properties"
    file.write_text("# a comment\nlog.retention.mss=1\n")
    result = serve(tmp_path / "data", "--config", str(file))
    assert result.returncode == 2 and "server.properties:2" in result.stderr
    assert not (tmp_path / "data").exists()


def test_a_security_that_is_not_served_is_an_error(tmp_path: Path) -> None:
    result = serve(tmp_path / "data", "-c", "listeners=SASL_PLAINTEXT://127.0.0.1:0")
    assert result.returncode == 2


def test_flags_go_over_the_environment_and_that_over_the_file(make_broker: Make, topic_name: str, tmp_path: Path) -> None:
    file = tmp_path / "server.properties"
    file.write_text("num.partitions=2\n")
    ports = tmp_path / "ports"

    def partitions(*words: str, **environment: str) -> int:
        ports.unlink(missing_ok=True)
        command = [str(BINARY), "serve", "--ephemeral", "--port", "0", "--http", "0", "--ports-file", str(ports)]
        process = subprocess.Popen(
            [*command, "--config", str(file), *words], env={**os.environ, **environment}, stderr=subprocess.DEVNULL
        )
        try:
            wait_until("the ports are known", ports.exists)
            port = int(re.search(r'"kafka":\s*(\d+)', ports.read_text())[1])
            produce(f"127.0.0.1:{port}", topic_name, [Record(b"v")])
            return len(admin(f"127.0.0.1:{port}").list_topics(topic_name, timeout=10).topics[topic_name].partitions)
        finally:
            process.kill()
            process.wait()

    assert partitions() == 2
    assert partitions(KAFKA_NUM_PARTITIONS="3") == 3
    assert partitions("-c", "num.partitions=4", KAFKA_NUM_PARTITIONS="3") == 4


def test_topics_on_the_command_line_are_made(tmp_path: Path) -> None:
    ports = tmp_path / "ports"
    command = [str(BINARY), "serve", "--ephemeral", "--port", "0", "--http", "0", "--ports-file", str(ports)]
    process = subprocess.Popen([*command, "--topic", "one", "--topic", "two:5"], stderr=subprocess.DEVNULL)
    try:
        wait_until("the ports are known", ports.exists)
        port = int(re.search(r'"kafka":\s*(\d+)', ports.read_text())[1])
        topics = admin(f"127.0.0.1:{port}").list_topics(timeout=10).topics
        assert {name: len(topic.partitions) for name, topic in topics.items()} == {"one": 1, "two": 5}
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=20) == 0


def test_it_ends_with_its_parent(tmp_path: Path) -> None:
    ports = tmp_path / "ports"
    command = f'"{BINARY}" serve --ephemeral --port 0 --http 0 --ports-file "{ports}" --exit-with-parent & echo $!; read line'
    parent = subprocess.Popen(["sh", "-c", command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    child = int(parent.stdout.readline())
    try:
        wait_until("the ports are known", ports.exists)
        parent.kill()
        parent.wait()
        wait_until("the child has ended", lambda: not is_running(child))
    finally:
        if is_running(child):
            os.kill(child, signal.SIGKILL)
        parent.stdin.close()
        parent.stdout.close()


def is_running(process: int) -> bool:
    """Whether it lives; an ended one that nobody has waited for does not."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
        return state != "Z"
    except FileNotFoundError:
        return False


def files_of(broker: Strandline) -> list[str]:
    """Paths below the folder, which may change meanwhile."""
    found = [Path(folder) / name for folder, _, names in os.walk(broker.data) for name in names]
    return [str(path.relative_to(broker.data)) for path in found]


@pytest.mark.files("the layout of the folder")
def test_the_folder_is_laid_out_by_id_and_never_by_name(make_broker: Make, topic_name: str) -> None:
    broker = make_broker(deletion_grace_ms=0).start()
    create_topic(broker.bootstrap, topic_name, partitions=2)
    produce(broker.bootstrap, topic_name, [Record(b"v" * 1000, partition=i % 2) for i in range(100)])
    described = admin(broker.bootstrap).describe_topics(TopicCollection([topic_name]))[topic_name].result(timeout=10)
    logs = [file for file in files_of(broker) if file.endswith(".log")]
    assert len(logs) == 2
    assert not any(topic_name in file for file in files_of(broker))
    # librdkafka prints base64 with the two letters that a path can't have.
    topic_id = str(described.topic_id).replace("+", "-").replace("/", "_")
    assert all(topic_id in file for file in logs), f"{topic_id} in {logs}"
    assert all(re.fullmatch(r"\d{20}\.log", Path(file).name) for file in logs)
    delete_topic(broker.bootstrap, topic_name)
    wait_until("the bytes are gone", lambda: not [f for f in files_of(broker) if f.endswith(".log")])


def test_a_deletion_goes_on_after_a_crash(make_broker: Make, topic_name: str) -> None:
    broker = make_broker(deletion_grace_ms=0).start()
    names = [f"{topic_name}-{i}" for i in range(20)]
    for name in names:
        create_topic(broker.bootstrap, name, partitions=3)
        produce(broker.bootstrap, name, [Record(b"v" * 100, partition=i % 3) for i in range(30)])
    for future in admin(broker.bootstrap).delete_topics(names).values():
        future.result(timeout=20)
    broker.kill()
    broker.start()
    assert topic_names(broker.bootstrap) == set()
    wait_until("the bytes are gone", lambda: stored_bytes(broker) == 0, seconds=60)


@pytest.mark.files("indexes beside segments")
def test_indexes_are_derived_data(make_broker: Make, topic_name: str) -> None:
    """Whatever happens to an index, the broker starts and finds every record."""
    broker = make_broker().start()
    create_topic(broker.bootstrap, topic_name, segment_bytes=1_048_576, retention_ms=-1)
    produce(broker.bootstrap, topic_name, [Record(b"v" * 1000, timestamp=1_700_000_000_000 + i) for i in range(5000)])
    assert broker.stop() == 0
    indexes = [path for path in broker.data.rglob("*") if path.suffix in (".index", ".timeindex")]
    assert indexes
    for number, path in enumerate(indexes):
        [path.unlink, lambda: path.write_bytes(b""), lambda: path.write_bytes(os.urandom(4096))][number % 3]()
    broker.start()
    for start in (0, 2500, 4999):
        assert len(consume(broker.bootstrap, topic_name, start=start)) == 5000 - start
