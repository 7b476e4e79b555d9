"""Who is connected, and who was told an address that does not work."""

import shutil
import subprocess
import time
from collections.abc import Callable

import pytest
from broker import Broker, Strandline
from clients import QUIET, Record, consume, create_topic, produce, topic_names
from command import done, found, refused, strandline
from confluent_kafka import Producer
from deadline import wait_until
from kafka import KafkaProducer
from kafka.errors import KafkaError

pytestmark = pytest.mark.strandline

# Nobody listens there.
NOWHERE = "127.0.0.1:1"
LOST = ("lost-1", "lost-2")
# No name server knows it (RFC 6761). kafka-python leaves a socket open for each address that refuses it.
NO_NAME = "nowhere.invalid:9999"


def clients(broker: Broker, client_id: str) -> list[dict]:
    return [one for one in found("client", "list", broker=broker) if one["client_id"] == client_id]


def warnings(broker: Broker) -> list[str]:
    return [line for line in broker.log.read_text(errors="replace").splitlines() if "asks where to connect" in line]


def lost_broker(make_broker: Callable[..., Strandline], told: str) -> Strandline:
    return make_broker(**{"advertised.listeners": f"PLAINTEXT://{told}"}).start()


def test_a_connected_client_is_listed_with_its_library_and_what_it_was_told(broker: Broker, topic: str) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "client.id": f"app-{topic}", **QUIET})
    producer.produce(topic, b"v")
    assert producer.flush(20) == 0
    [*listed] = clients(broker, f"app-{topic}")
    assert listed and all(one["software_name"] and one["software_version"] for one in listed)
    assert all(one["connected"] and not one["stranded"] for one in listed)
    assert {one["told"] for one in listed} == {f"localhost:{broker.port}"}
    assert any(one["last_request"] == "Produce" for one in listed)
    assert all(one["connected_at"].endswith("Z") for one in listed)
    text = done("client", "list", broker=broker)
    assert f"app-{topic}" in text and "TOLD" in text
    del producer
    wait_until("the client is gone", lambda: not clients(broker, f"app-{topic}"))


def test_the_brokers_health_is_an_exit_code(make_broker: Callable[..., Strandline]) -> None:
    broker = make_broker().start()
    health = found("cluster", "health", "--wait", "20", broker=broker)
    assert health["status"] == "ready" and all(check["ok"] for check in health["checks"])
    assert "recovery" in done("cluster", "health", broker=broker)
    broker.stop()
    assert "this needs a strandline broker" in refused(3, "cluster", "health", broker=broker)


def begin(producers: list[Producer], broker: Broker, topic: str) -> None:
    """Producers that never arrive, in place of those of before."""
    for producer in producers:
        producer.purge()
    producers[:] = [Producer({"bootstrap.servers": broker.bootstrap, "client.id": name, "log_level": 0}) for name in LOST]
    for producer in producers:
        producer.produce(topic, b"never arrives")


def test_a_client_that_stays_and_asks_is_stranded(make_broker: Callable[..., Strandline], topic_name: str) -> None:
    broker = lost_broker(make_broker, NOWHERE)
    producers: list[Producer] = []
    begun = 0.0

    def stranded() -> bool:
        nonlocal begun
        # Librdkafka at times waits in silence for the address that does not work, so people begin anew.
        if time.monotonic() - begun > 8:
            begin(producers, broker, topic_name)
            begun = time.monotonic()
        return all(any(one["stranded"] for one in clients(broker, name)) for name in LOST)

    wait_until("both clients are known to be stranded", stranded, seconds=90)
    assert {one["told"] for one in clients(broker, "lost-1")} == {NOWHERE}
    listed = strandline("client", "list", broker=broker)
    assert "stranded" in listed.stdout and "advertised.listeners" in listed.stderr
    warned = warnings(broker)
    assert len(warned) == 2, "one warning for each client"
    assert all(NOWHERE in line and "advertised.listeners" in line for line in warned)
    for producer in producers:
        producer.purge()


def test_a_client_that_asks_and_leaves_is_known_at_the_third_time(
    make_broker: Callable[..., Strandline], topic_name: str
) -> None:
    broker = lost_broker(make_broker, NO_NAME)
    for _ in range(3):
        with pytest.raises(KafkaError):
            producer = KafkaProducer(
                bootstrap_servers=broker.bootstrap, client_id="gives-up", max_block_ms=1000, bootstrap_timeout_ms=1000
            )
            try:
                producer.send(topic_name, b"never arrives")
            finally:
                producer.close(timeout=0)
    [one] = wait_until("the client is known to have left", lambda: clients(broker, "gives-up"))
    assert (one["connected"], one["stranded"], one["software_name"]) == (False, True, "kafka-python")
    assert len(warnings(broker)) == 1


def test_healthy_clients_and_tools_are_never_stranded(
    make_broker: Callable[..., Strandline], topic_name: str, kafka_tool: Callable[..., str]
) -> None:
    broker = make_broker().start()
    create_topic(broker.bootstrap, topic_name)
    kcat = shutil.which("kcat") or shutil.which("kafkacat")
    assert kcat, "kcat is missing"
    for _ in range(8):
        subprocess.run([kcat, "-b", broker.bootstrap, "-L"], check=True, capture_output=True, timeout=60)
        topic_names(broker.bootstrap)
        produce(broker.bootstrap, topic_name, [Record(b"v")], client_id="healthy")
        done("topic", "list", broker=broker)
        done("cluster", "apis", broker=broker)
    for _ in range(4):
        assert topic_name in kafka_tool("topics", "--bootstrap-server", broker.bootstrap, "--list")
    consume(broker.bootstrap, topic_name)
    assert not any(one["stranded"] for one in found("client", "list", broker=broker))
    assert warnings(broker) == []
