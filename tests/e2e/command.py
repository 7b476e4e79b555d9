"""Runs the binary's own commands, as a person or a script does."""

import json
import os
import subprocess

from broker import BINARY, Broker


def strandline(*words: str, stdin: str = "", broker: Broker | None = None) -> subprocess.CompletedProcess:
    environment = dict(os.environ)
    if broker is not None:
        environment["STRANDLINE_BOOTSTRAP"] = broker.bootstrap
        environment["STRANDLINE_HTTP"] = f"http://127.0.0.1:{getattr(broker, 'http', 1)}"
    return subprocess.run(
        [str(BINARY), *words], input=stdin, capture_output=True, text=True, timeout=60, env=environment
    )


def done(*words: str, stdin: str = "", broker: Broker | None = None) -> str:
    """The output of a command that must succeed."""
    result = strandline(*words, stdin=stdin, broker=broker)
    assert result.returncode == 0, f"{words}: {result.stdout}\n{result.stderr}"
    return result.stdout


def found(*words: str, broker: Broker | None = None):
    """What a command that must succeed prints as JSON."""
    return json.loads(done(*words, "--format", "json", broker=broker))


def refused(code: int, *words: str, broker: Broker | None = None) -> str:
    """The errors of a command that must end with this exit code and say nothing on stdout."""
    result = strandline(*words, broker=broker)
    assert result.returncode == code, f"{words}: {result.stdout}\n{result.stderr}"
    return result.stderr
