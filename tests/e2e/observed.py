"""What a broker shows of itself besides Kafka's protocol: its answers by HTTP, and what it has stored.

What is stored are files in its folder, or with `E2E_STORAGE=postgres` rows of its schema.
"""

import contextlib
import os
import urllib.error
import urllib.request
from pathlib import Path

from broker import Strandline
from storage import STORAGE, rows


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
    """Bytes of all batches, also of those that only wait to be removed; some may go while they are counted."""
    if STORAGE == "postgres":
        return int(rows(broker.data, "SELECT coalesce(sum(length), 0) FROM entries")[0])
    total = 0
    for file in segment_files(broker):
        with contextlib.suppress(FileNotFoundError):
            total += file.stat().st_size
    return total


def stored_logs(broker: Strandline) -> list[str]:
    """Each partition of which something is stored."""
    if STORAGE == "postgres":
        return rows(broker.data, "SELECT topic_id || '/' || partition FROM logs UNION SELECT 'of log ' || log_id FROM entries e "
                    "WHERE NOT EXISTS (SELECT FROM logs l WHERE l.log_id = e.log_id) ORDER BY 1")
    return sorted({str(file.parent.relative_to(broker.data)) for file in segment_files(broker)})


def stored_segments(broker: Strandline) -> set[str]:
    """The names of all segments, also of those that only wait to be removed."""
    if STORAGE == "postgres":
        return set(rows(broker.data, """
            WITH known AS (
                SELECT log_id, number, base_offset FROM chunks
                UNION SELECT log_id, active_number, active_base FROM logs WHERE active_number > 0
            )
            SELECT lpad(base_offset::text, 20, '0') || '.' || number FROM known
            UNION SELECT 'nobody knows ' || log_id || '.' || chunk FROM entries e
                WHERE NOT EXISTS (SELECT FROM known k WHERE k.log_id = e.log_id AND k.number = e.chunk)
        """))
    return {file.name for file in segment_files(broker)}


def being_rewritten(broker: Strandline) -> set[str]:
    """Segments that a compaction has begun to write."""
    if STORAGE == "postgres":
        return set(rows(broker.data, "SELECT log_id || '.' || number FROM chunks WHERE state = 0"))
    return {file.name for file in segment_files(broker) if file.name.count(".") > 1}
