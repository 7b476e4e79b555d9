"""A broker as a child process: Strandline's release binary, or Apache Kafka to check an expectation."""

import json
import os
import signal
import socket
import subprocess
from pathlib import Path

import storage
from deadline import wait_until
from ports import free_port_pair

ROOT = Path(__file__).resolve().parents[2]
KAFKA = ROOT / "tests" / "peers" / "kafka" / "kafka"
BINARY = Path(os.environ.get("E2E_BINARY", ROOT / "target" / "release" / "strandline"))


class Broker:
    """What both have in common. The port is chosen at the first start and kept over restarts."""

    def __init__(self, folder: Path, properties: dict[str, str]):
        self.folder = folder
        self.properties = properties
        self.port = 0
        self.log = folder / "broker.log"
        self.process: subprocess.Popen | None = None
        self.arguments: list[str] = []
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self.port}"

    def start(self) -> "Broker":
        self.prepare()
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self.command(), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        wait_until(f"{self} is ready", self.is_ready, seconds=60)
        return self

    def is_ready(self) -> bool:
        if self.process.poll() is not None:
            tail = self.log.read_text(errors="replace")[-4000:]
            raise AssertionError(f"{self} ended with {self.process.returncode}:\n{tail}")
        return self.answers()

    def answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
            return True
        except OSError:
            return False

    def kill(self) -> None:
        """`kill -9`, the whole process group."""
        self.signal_group(signal.SIGKILL)
        self.process.wait(timeout=10)

    def stop(self) -> int:
        """SIGTERM; the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=30)

    def close(self) -> None:
        """Leaves nothing behind, whatever state the process is in."""
        if self.process is not None and self.process.poll() is None:
            self.kill()

    def signal_group(self, number: int) -> None:
        try:
            os.killpg(self.process.pid, number)
        except ProcessLookupError:
            pass

    def prepare(self) -> None:
        raise NotImplementedError

    def command(self) -> list[str]:
        raise NotImplementedError


class Strandline(Broker):
    """`strandline serve` in a folder of its own."""

    http = 0

    def __str__(self) -> str:
        return "strandline"

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def ports_file(self) -> Path:
        return self.folder / "ports"

    def prepare(self) -> None:
        self.ports_file.unlink(missing_ok=True)

    def command(self) -> list[str]:
        command = [str(BINARY), "serve", "--data", str(self.data), "--port", str(self.port)]
        command += ["--http", "0", "--ports-file", str(self.ports_file)]
        # A test that names a server, or wants nothing kept, knows what it does.
        names_its_own = "postgres.host" in self.properties or "--ephemeral" in self.arguments
        settings = self.properties if names_its_own else {**storage.properties(self.data), **self.properties}
        for key, value in settings.items():
            command += ["-c", f"{key}={value}"]
        return command + self.arguments

    def close(self) -> None:
        super().close()
        storage.forget(self.data)

    def answers(self) -> bool:
        if not self.ports_file.exists():
            return False
        ports = json.loads(self.ports_file.read_text())
        self.port, self.http = ports["kafka"], ports["http"]
        return super().answers()


class ApacheKafka(Broker):
    """One node of Apache Kafka, from Maven's jars."""

    def __str__(self) -> str:
        return "kafka"

    def prepare(self) -> None:
        if self.port == 0:
            self.port = free_port_pair()

    def command(self) -> list[str]:
        properties = [f"{key}={value}" for key, value in self.properties.items()]
        return [str(KAFKA), "start", str(self.folder), str(self.port), *properties]
