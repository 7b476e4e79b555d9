"""What a broker shows of itself besides Kafka's protocol: its answers by HTTP, and its files."""

import contextlib
import os
import urllib.error
import urllib.request
from pathlib import Path

from broker import Strandline


def get(broker: Strandline, path: str, seconds: float = 10) -> tuple[int, str]:
    """The status and the text of an answer, whatever the status is."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{broker.http}{path}", timeout=seconds) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def scraped(broker: Strandline, seconds: float = 10) -> str:
    """All metrics."""
    status, text = get(broker, "/metrics", seconds)
    assert status == 200, text
    return text


def metric(broker: Strandline, series: str) -> float:
    """The value of one series; 0 when it is not there."""
    values = [float(line.rsplit(" ", 1)[1]) for line in scraped(broker).splitlines() if line.rsplit(" ", 1)[0] == series]
    return values[0] if values else 0


def files_below(folder: Path) -> list[Path]:
    """All files, at any depth; folders and files may come and go meanwhile."""
    return [Path(parent) / name for parent, _, names in os.walk(folder) for name in names]


def segment_files(broker: Strandline) -> list[Path]:
    return [file for file in files_below(broker.data) if file.suffix == ".log"]


def stored_bytes(broker: Strandline) -> int:
    """Bytes of all segment files; some may go while they are counted."""
    total = 0
    for file in segment_files(broker):
        with contextlib.suppress(FileNotFoundError):
            total += file.stat().st_size
    return total
