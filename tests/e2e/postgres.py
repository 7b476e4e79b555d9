"""A PostgreSQL server of the tests' own: on a free port, in a fresh folder, as an ordinary user."""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

from deadline import wait_until
from ports import free_port_pair

PASSWORD = "open sesame"
# Stops the server and removes its folder when the tests end, however they end: then it reads the end of its input.
KEEPER = """
    read -r _
    if read -r process _ 2>/dev/null <"$1/data/postmaster.pid"; then
        kill -QUIT "$process" 2>/dev/null
        for _ in $(seq 100); do kill -0 "$process" 2>/dev/null && sleep 0.1; done
    fi
    rm -rf "$1"
"""
MISSING = "these tests start a PostgreSQL server, and none is installed: apt-get install postgresql (15 or later)"


def programs() -> Path:
    """The folder of the newest server's programs."""
    if named := os.environ.get("STRANDLINE_POSTGRES_BIN"):
        return Path(named)
    found = [path for path in Path("/usr/lib/postgresql").glob("*/bin") if (path / "initdb").exists()]
    assert found, MISSING
    return max(found, key=lambda path: int(path.parent.name))


class Postgres:
    """The server refuses root: then it runs as the user that Debian's package makes."""

    def __init__(self, data: Path | None = None) -> None:
        """`data`: where its files are, if that is not a folder of its own."""
        self.prepare(data)
        initdb = [str(programs() / "initdb"), "-U", "strandline", "-A", "scram-sha-256", "--no-sync", "--locale=C"]
        initdb += ["-E", "UTF8", f"--pwfile={self.password_file}", "-D", str(self.data)]
        subprocess.run(initdb, check=True, capture_output=True, cwd=self.folder, **self.user)

    def prepare(self, data: Path | None = None) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="strandline-postgres-"))
        self.data = self.folder / "data"
        if data is not None:
            self.data.symlink_to(data)
            self.data = data
        self.settings: dict[str, object] = {}
        self.port = free_port_pair()
        self.process: subprocess.Popen | None = None
        self.keeper: subprocess.Popen | None = None
        self.user: dict[str, object] = {}
        if os.geteuid() == 0:
            shutil.chown(self.folder, "postgres", "postgres")
            self.user = {"user": "postgres", "group": "postgres", "extra_groups": []}
        keeper = ["sh", "-c", KEEPER, "keeper", str(self.folder)]
        self.keeper = subprocess.Popen(keeper, stdin=subprocess.PIPE, start_new_session=True)
        self.password_file.write_text(PASSWORD + "\n")
        self.password_file.chmod(0o644)

    @classmethod
    def at(cls, port: int, folder: Path) -> "Postgres":
        """One that another process has started and will close."""
        found = cls.__new__(cls)
        found.port, found.folder = port, folder
        return found

    @property
    def password_file(self) -> Path:
        return self.folder / "password"

    def start(self, **settings: object) -> "Postgres":
        """`settings` go over what this server has else."""
        command = [str(programs() / "postgres"), "-D", str(self.data), "-p", str(self.port)]
        command += ["-k", str(self.folder), "-c", "listen_addresses=127.0.0.1", "-c", "fsync=off"]
        for name, value in {"max_connections": 400, "max_wal_size": "256MB", **self.settings, **settings}.items():
            command += ["-c", f"{name}={value}"]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder, **self.user)
        ready = [str(programs() / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        wait_until("PostgreSQL is ready", lambda: subprocess.run(ready).returncode == 0, seconds=60)
        return self

    def kill(self) -> None:
        """What is under way ends, nothing is closed."""
        self.process.send_signal(signal.SIGQUIT)  # PostgreSQL's immediate shutdown
        self.process.wait(timeout=30)

    def stop(self) -> None:
        """Sessions are ended, everything is written: PostgreSQL's fast shutdown."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait(timeout=60)

    def freeze(self) -> None:
        """Nothing answers any more, and connections stay: its processes are stopped in the middle."""
        self.signal_all(signal.SIGSTOP)

    def thaw(self) -> None:
        self.signal_all(signal.SIGCONT)

    def signal_all(self, number: int) -> None:
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        for process in [str(self.process.pid), *children.read_text().split()]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(int(process), number)

    def standby(self, port: int | None = None) -> "Postgres":
        """A running standby that streams from this server; `port`: a way there that is not its own."""
        made = Postgres.__new__(Postgres)
        made.prepare()
        copy = [str(programs() / "pg_basebackup"), "-h", "127.0.0.1", "-p", str(port or self.port), "-U", "strandline"]
        copy += ["-R", "-X", "stream", "-c", "fast", "--no-sync", "-D", str(made.data)]
        environment = {"PGPASSWORD": PASSWORD}
        subprocess.run(copy, check=True, capture_output=True, cwd=made.folder, env=environment, **self.user)
        return made.start()

    def promote(self) -> None:
        command = [str(programs() / "pg_ctl"), "promote", "-w", "-D", str(self.data)]
        subprocess.run(command, check=True, capture_output=True, cwd=self.folder, **self.user)

    def kill_all(self) -> None:
        """`kill -9` of the server and of every process that it has for a connection or for itself."""
        self.signal_all(signal.SIGKILL)
        self.process.wait(timeout=30)

    def sql(self, text: str, database: str = "postgres") -> str:
        command = [*self.psql(database), "-c", text]
        done = subprocess.run(command, check=True, capture_output=True, text=True, env={"PGPASSWORD": PASSWORD})
        return done.stdout.strip()

    def psql(self, database: str) -> list[str]:
        command = [str(programs() / "psql"), "-XAtq", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-p", str(self.port)]
        return [*command, "-U", "strandline", "-d", database]

    @contextlib.contextmanager
    def idle_transaction(self) -> Iterator[None]:
        """A session that has begun a transaction, looked at something and forgotten about it."""
        environment = {"PGPASSWORD": PASSWORD}
        session = subprocess.Popen(self.psql("postgres"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)
        try:
            session.stdin.write("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 'begun';\n")
            session.stdin.flush()
            assert session.stdout.readline() == "begun\n"
            yield
        finally:
            session.communicate("COMMIT;\n", timeout=30)

    def properties(self, port: int | None = None) -> dict[str, object]:
        """A broker's, for everything in this database; `port`: a way there that is not its own."""
        return {
            "storage_default": "postgres",
            "meta_store": "postgres",
            "postgres_host": "127.0.0.1",
            "postgres_port": port or self.port,
            "postgres_database": "postgres",
            "postgres_password_file": self.password_file,
        }

    def close(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.thaw()
            self.kill()
        self.keeper.communicate(timeout=60)
