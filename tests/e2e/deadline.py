"""Waiting for something to become true: polling with a deadline, never a blind sleep."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_until(what: str, condition: Callable[[], T], seconds: float = 20.0) -> T:
    """The first true answer of `condition`; fails with `what` when the deadline passes."""
    deadline = time.monotonic() + seconds
    while True:
        answer = condition()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.02)
