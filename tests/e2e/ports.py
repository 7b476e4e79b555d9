"""Ports that are free."""

import socket


def free_port_pair() -> int:
    """A port that was free a moment ago, and so was the next one (Kafka's controller listens there)."""
    for _ in range(50):
        with socket.socket() as first, socket.socket() as second:
            first.bind(("127.0.0.1", 0))
            port = first.getsockname()[1]
            try:
                second.bind(("127.0.0.1", port + 1))
                return port
            except (OSError, OverflowError):
                continue
    raise AssertionError("no two free ports in a row")
