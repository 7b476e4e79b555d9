"""Where brokers keep topics and metadata: in their folders, or with `E2E_STORAGE=postgres` in one database.

Then the session starts one server, and each broker has a schema there: the same one after a restart.
"""

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from postgres import Postgres

STORAGE = os.environ.get("E2E_STORAGE", "file")
# Set by the session's first process for the others, which run the tests.
PORT, FOLDER = "E2E_POSTGRES_PORT", "E2E_POSTGRES_FOLDER"


# Servers of tests that kill them, by the folder of the broker that is to use one.
OWN_SERVERS: dict[Path, Postgres] = {}


def start_server() -> Postgres:
    """The session's server; whoever starts it closes it."""
    server = Postgres().start()
    os.environ[PORT], os.environ[FOLDER] = str(server.port), str(server.folder)
    return server


@contextmanager
def own_server(data: Path) -> Iterator[Postgres | None]:
    """A server for the broker with this folder alone, which may be killed; none where there are files."""
    if STORAGE == "file":
        yield None
        return
    server = OWN_SERVERS[data] = Postgres().start()
    try:
        yield server
    finally:
        server.close()


def schema_of(data: Path) -> str:
    """The schema of the broker that has this folder."""
    return "e2e_" + hashlib.sha256(str(data).encode()).hexdigest()[:24]


def properties(data: Path) -> dict[str, object]:
    """What a broker with this folder is told about its storage."""
    if STORAGE == "file":
        return {}
    named = {key.replace("_", "."): value for key, value in server_of(data).properties().items()}
    return named | {"postgres.schema": schema_of(data)}


def forget(data: Path) -> None:
    """Removes what a broker with this folder has stored."""
    if STORAGE == "postgres" and data not in OWN_SERVERS:
        server_of(data).sql(f'DROP SCHEMA IF EXISTS "{schema_of(data)}" CASCADE')


def rows(data: Path, query: str) -> list[str]:
    """What a query finds in the schema of the broker with this folder, a line each."""
    return server_of(data).sql(f'SET search_path TO "{schema_of(data)}"; {query}').splitlines()


def server_of(data: Path) -> Postgres:
    if data in OWN_SERVERS:
        return OWN_SERVERS[data]
    return Postgres.at(int(os.environ[PORT]), Path(os.environ[FOLDER]))
