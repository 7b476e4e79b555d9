"""Where brokers keep topics and metadata: in their folders, or with `E2E_STORAGE=postgres` in one database.

Then the session starts one server, and each broker has a schema there: the same one after a restart.
"""

import hashlib
import os
from pathlib import Path

from postgres import Postgres

STORAGE = os.environ.get("E2E_STORAGE", "file")
# Set by the session's first process for the others, which run the tests.
PORT, FOLDER = "E2E_POSTGRES_PORT", "E2E_POSTGRES_FOLDER"


def start_server() -> Postgres:
    """The session's server; whoever starts it closes it."""
    server = Postgres().start()
    os.environ[PORT], os.environ[FOLDER] = str(server.port), str(server.folder)
    return server


def schema_of(data: Path) -> str:
    """The schema of the broker that has this folder."""
    return "e2e_" + hashlib.sha256(str(data).encode()).hexdigest()[:24]


def properties(data: Path) -> dict[str, object]:
    """What a broker with this folder is told about its storage."""
    if STORAGE == "file":
        return {}
    named = {key.replace("_", "."): value for key, value in session_server().properties().items()}
    return named | {"postgres.schema": schema_of(data)}


def forget(data: Path) -> None:
    """Removes what a broker with this folder has stored."""
    if STORAGE == "postgres":
        session_server().sql(f'DROP SCHEMA IF EXISTS "{schema_of(data)}" CASCADE')


def rows(data: Path, query: str) -> list[str]:
    """What a query finds in the schema of the broker with this folder, a line each."""
    return session_server().sql(f'SET search_path TO "{schema_of(data)}"; {query}').splitlines()


def session_server() -> Postgres:
    return Postgres.at(int(os.environ[PORT]), Path(os.environ[FOLDER]))
