"""Peers that break the protocol, against the program as it is shipped: it stays small, says why it hangs up,
and an honest client beside them goes on."""

import re
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from broker import Strandline
from clients import API_VERSIONS, Record, consume, create_topic, produce
from deadline import wait_until

pytestmark = pytest.mark.strandline

MEMORY_MAX_MIB = 256
GIBIBYTES = (2**31 - 1).to_bytes(4, "big")
HTTP = b"GET / HTTP/1.1\r\n\r\n"
ENDLESS_ARRAY = bytes([0, 0, 0, 22, 0, 0, 0, 3, 0, 0, 0, 1, 255, 255, 255, 255, 255, 255, 0, 0, 3, 232]) + GIBIBYTES
NEGATIVE_LENGTH = (-1).to_bytes(4, "big", signed=True)


def peer(broker: Strandline) -> socket.socket:
    return socket.create_connection(("127.0.0.1", broker.port), timeout=10)


def is_hung_up_on(broker: Strandline, said: bytes) -> bool:
    """Whether the broker ends the connection; it may do so with a reset."""
    with peer(broker) as connection:
        connection.sendall(said)
        try:
            return connection.recv(1) == b""
        except ConnectionResetError:
            return True


def peak_memory_mib(broker: Strandline) -> int:
    status = Path(f"/proc/{broker.process.pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) // 1024


@pytest.mark.parametrize("said", [GIBIBYTES + API_VERSIONS, NEGATIVE_LENGTH, HTTP, ENDLESS_ARRAY], ids=["gibibytes", "negative", "http", "array"])
def test_what_is_no_request_ends_its_connection_with_a_reason_in_the_log(make_broker: Callable[..., Strandline], said: bytes) -> None:
    broker = make_broker().start()
    assert is_hung_up_on(broker, said)
    wait_until("the log says why", lambda: re.search(r'"reason":"[^"]+".*connection refused|connection refused.*"reason":"[^"]+"', broker.log.read_text()))


def test_a_crowd_of_hostile_peers_costs_bounded_memory_and_no_honest_record(make_broker: Callable[..., Strandline], topic_name: str) -> None:
    broker = make_broker().start()
    create_topic(broker.bootstrap, topic_name)
    crowd = []
    for _ in range(200):
        half = peer(broker)
        half.sendall(API_VERSIONS[: len(API_VERSIONS) // 2])
        promising = peer(broker)
        promising.sendall((64 << 20).to_bytes(4, "big") + API_VERSIONS)
        crowd += [half, promising]
    for _ in range(50):
        deaf = peer(broker)
        deaf.setblocking(False)
        try:
            deaf.send(API_VERSIONS * 20_000)
        except BlockingIOError:
            pass
        crowd.append(deaf)
    produce(broker.bootstrap, topic_name, [Record(b"%d" % number) for number in range(1_000)])
    assert len(consume(broker.bootstrap, topic_name)) == 1_000
    assert peak_memory_mib(broker) <= MEMORY_MAX_MIB
    for one in crowd:
        one.close()
