"""A file system of its own for a broker's data, small enough to be filled. It lives in memory.

Mounting one takes root, as CI is; who can't sets `E2E_NO_MOUNT=1`, and is told what was left out.
"""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


def skip_where_nothing_is_mounted() -> None:
    if os.environ.get("E2E_NO_MOUNT") == "1":
        pytest.skip("E2E_NO_MOUNT=1: nothing is mounted, so no disk is full")


@contextmanager
def mounted(folder: Path, size: int, lazy: bool = False) -> Iterator[None]:
    """`folder` is a file system of so many bytes meanwhile. Nobody may have files open there at the end,
    unless it is `lazy`."""
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "strandline-e2e", str(folder)]
    subprocess.run(mount, check=True, timeout=30)
    try:
        yield
    finally:
        subprocess.run(["umount", *(["--lazy"] if lazy else []), str(folder)], check=True, timeout=30)
