"""franz-go: the client that speaks the newest versions (topic ids in Produce and Fetch)."""

import os
import subprocess
from pathlib import Path

import pytest
from broker import ROOT, Broker

SOURCE = ROOT / "tests" / "e2e" / "go"


@pytest.fixture(scope="session")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    binary = tmp_path_factory.mktemp("go") / "franz"
    environment = {**os.environ, "CGO_ENABLED": "0"}
    build = ["go", "build", "-mod=readonly", "-o", str(binary), "."]
    done = subprocess.run(build, cwd=SOURCE, env=environment, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return binary


@pytest.mark.parametrize("scenario", ["codecs", "idempotent", "recreated", "sessions", "seek"])
def test_franz_go(broker: Broker, program: Path, topic_name: str, scenario: str) -> None:
    command = [str(program), broker.bootstrap, scenario, topic_name]
    done = subprocess.run(command, capture_output=True, text=True, timeout=90)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
