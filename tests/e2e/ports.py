"""Ports that are free."""

import random
import socket

# Below those that the system gives to whoever connects: a server may need seconds to come to its port.
PORTS = range(20000, 32000)


def free_port_pair() -> int:
    """A port that was free a moment ago, and so was the next one (Kafka's controller listens there)."""
    for port in random.SystemRandom().sample(PORTS, 50):
        with socket.socket() as first, socket.socket() as second:
            try:
                first.bind(("127.0.0.1", port))
                second.bind(("127.0.0.1", port + 1))
                return port
            except OSError:
                continue
    raise AssertionError("no two free ports in a row")
