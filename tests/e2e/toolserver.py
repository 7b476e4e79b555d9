"""Kafka's command-line tools, many in one JVM: a start costs a second, a command a tenth of one."""

import json
import re
import subprocess
import threading
from dataclasses import dataclass
from pathlib import Path

from broker import KAFKA

SOURCE = Path(__file__).parent / "tools" / "ToolServer.java"
SECONDS_MAX = 60
# What it has to say last is said by a hook of the JVM itself.
ENDS_WITH_ITS_JVM = {"verifiable-producer"}


@dataclass(frozen=True)
class Output:
    """What a command did."""

    code: int
    out: str
    err: str


class ToolServer:
    """A JVM that runs one command at a time; what it logs is kept in a file."""

    def __init__(self, log: Path):
        self.mains = main_classes()
        self.log = log.open("wb")
        self.process = subprocess.Popen(
            [str(KAFKA), "class", str(SOURCE)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True
        )

    def run(self, tool: str, *words: str, stdin: str = "") -> Output:
        if tool in ENDS_WITH_ITS_JVM:
            done = subprocess.run([str(KAFKA), tool, *words], input=stdin, capture_output=True, text=True, timeout=SECONDS_MAX)
            return Output(done.returncode, done.stdout, done.stderr)
        command = {"main": self.mains[tool], "words": words, "stdin": stdin}
        watchdog = threading.Timer(SECONDS_MAX, self.process.kill)
        watchdog.start()
        try:
            self.process.stdin.write(json.dumps(command) + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        finally:
            watchdog.cancel()
        assert answer, f"{tool} {' '.join(words)}: no end within {SECONDS_MAX} s, or the JVM is gone ({self.log.name})"
        return Output(**json.loads(answer))

    def close(self) -> None:
        self.process.stdin.close()
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(timeout=10)
        self.process.stdout.close()
        self.log.close()


def main_classes() -> dict[str, str]:
    """The main class of each tool, by the name that `tests/peers/kafka/kafka` gives it."""
    named = re.findall(r"\[([a-z0-9-]+)\]=([A-Za-z.]+)", KAFKA.read_text())
    return {name: f"org.apache.kafka.tools.{main}" for name, main in named}
