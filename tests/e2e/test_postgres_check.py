"""What is said of a database before and while it is used: `storage check`, `serve --dry-run`, TLS, secrets."""

import json
import re
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from broker import Broker
from clients import Record, consume, create_topic, produce
from command import done, strandline
from deadline import wait_until
from postgres import PASSWORD, Postgres

pytestmark = pytest.mark.strandline


@pytest.fixture
def postgres() -> Iterator[Postgres]:
    server = Postgres()
    server.password_file.chmod(0o640)
    server.start()
    yield server
    server.close()


def settings(properties: dict[str, object]) -> list[str]:
    """As arguments of a command."""
    return [word for key, value in properties.items() for word in ("-c", f"{key.replace('_', '.')}={value}")]


def checked(code: int, properties: dict[str, object]) -> dict[str, dict[str, str]]:
    """The checks of the database by name."""
    result = strandline("storage", "check", "--format", "json", *settings(properties))
    assert result.returncode == code, f"{result.stdout}\n{result.stderr}"
    assert PASSWORD not in result.stdout + result.stderr
    checks = {one["check"]: one for one in json.loads(result.stdout) if one["storage"] == "postgres"}
    wrong = [name for name, one in checks.items() if one["result"] == "fail"]
    assert bool(wrong) == (code != 0), wrong
    return checks


def schemas(postgres: Postgres) -> str:
    return postgres.sql("SELECT count(*) FROM pg_namespace WHERE nspname = 'strandline'")


def role(postgres: Postgres, name: str) -> dict[str, object]:
    """The settings of a new role that may do nothing."""
    postgres.sql(f"CREATE ROLE {name} LOGIN PASSWORD '{PASSWORD}'")
    return postgres.properties() | {"postgres_user": name}


def test_a_check_tells_what_is_right_and_changes_nothing(postgres: Postgres) -> None:
    checks = checked(0, postgres.properties())
    assert {"connection", "tls", "session", "version", "primary", "synchronous_commit", "rights", "schema"} <= set(checks)
    assert checks["fsync"]["result"] == "warn" and checks["fsync"]["remedy"] == "ALTER SYSTEM SET fsync = on;"
    assert checks["role"]["result"] == "warn", "a superuser has more rights than it needs"
    assert checks["schema"]["found"] == "strandline is not there; the first start makes it"
    assert schemas(postgres) == "0"
    text = done("storage", "check", *settings(postgres.properties()))
    assert re.search(r"^warn +postgres +fsync +off", text, re.MULTILINE), text


def test_the_remedy_of_each_missing_right_gives_it(postgres: Postgres) -> None:
    properties = role(postgres, "app")
    checks = checked(4, properties)
    assert checks["rights"]["remedy"] == 'CREATE SCHEMA strandline AUTHORIZATION "app";'
    postgres.sql("CREATE SCHEMA strandline")
    for part in ("GRANT USAGE ON SCHEMA", "GRANT CREATE ON SCHEMA"):
        remedy = checked(4, properties)["rights"]["remedy"]
        assert remedy.startswith(part), remedy
        postgres.sql(remedy)
    assert checked(0, properties)["rights"]["result"] == "ok"
    postgres.sql("ALTER ROLE app SET synchronous_commit = off; ALTER ROLE app SET default_transaction_read_only = on")
    checks = checked(4, properties)
    for name in ("synchronous_commit", "read_only"):
        assert checks[name]["result"] == "fail"
        postgres.sql(checks[name]["remedy"])
    postgres.sql("ALTER ROLE app CONNECTION LIMIT 3")
    postgres.sql(checked(4, properties)["connections"]["remedy"])
    checked(0, properties)


def test_a_role_that_uses_the_tables_of_another_is_given_what_it_lacks(
    make_broker: Callable[..., Broker], postgres: Postgres, topic_name: str
) -> None:
    owner = make_broker(**postgres.properties()).start()
    create_topic(owner.bootstrap, topic_name)
    produce(owner.bootstrap, topic_name, [Record(b"1")])
    at_work = checked(0, postgres.properties())["brokers"]
    assert at_work["result"] == "warn" and "127.0.0.1" in at_work["found"]
    properties = role(postgres, "guest")
    # What the server shows of others to a role without rights is that they are there.
    seen = checked(4, properties)["brokers"]
    assert seen["result"] == "warn" and "not shown" in seen["found"], seen
    assert owner.stop() == 0
    for part in ("GRANT USAGE", "GRANT SELECT, INSERT, UPDATE, DELETE"):
        remedy = checked(4, properties)["rights"]["remedy"]
        assert remedy.startswith(part), remedy
        postgres.sql(remedy)
    rights = checked(0, properties)["rights"]
    assert rights["result"] == "warn" and "a later version" in rights["found"]
    guest = make_broker(**properties).start()
    produce(guest.bootstrap, topic_name, [Record(b"2")])
    assert [record.value for record in consume(guest.bootstrap, topic_name)] == [b"1", b"2"]
    assert guest.stop() == 0
    postgres.sql("UPDATE strandline.schema_version SET version = 999")
    assert "start a newer version" in checked(4, postgres.properties())["schema"]["remedy"]


def test_logins_that_fail_say_what_to_do(postgres: Postgres) -> None:
    properties = postgres.properties()
    nobody = checked(4, properties | {"postgres_user": "nobody"})
    assert nobody["login"]["result"] == "fail"
    nowhere = checked(4, properties | {"postgres_database": "nowhere"})
    assert nowhere["database"]["remedy"] == 'CREATE DATABASE "nowhere" OWNER "strandline";'
    without = {key: value for key, value in properties.items() if key != "postgres_password_file"}
    assert "none is set" in checked(4, without)["login"]["found"]
    no_file = checked(4, properties | {"postgres_password_file": "/nowhere/at/all"})
    assert "/nowhere/at/all" in no_file["password"]["found"]
    absent = checked(3, properties | {"postgres_port": 9})
    assert absent["connection"]["result"] == "fail"
    postgres.password_file.chmod(0o644)
    assert checked(0, properties)["secrets"]["result"] == "warn"


def dry_run(code: int, *words: str, port: int = 0) -> str:
    """What `serve --dry-run` tells, which ends with this code."""
    result = strandline("serve", "--dry-run", "--port", str(port), "--http", "0", *words)
    assert result.returncode == code, f"{result.stdout}\n{result.stderr}"
    assert PASSWORD not in result.stdout + result.stderr
    return result.stdout + result.stderr


def test_a_dry_run_says_what_a_start_would_do_and_does_not_do_it(postgres: Postgres, tmp_path: Path) -> None:
    words = settings(postgres.properties())
    told = dry_run(0, *words, "--topic", "orders:6")
    assert "a start would work" in told and "orders, partitions: 6" in told, told
    assert schemas(postgres) == "0"
    folder = tmp_path / "data"
    assert "the first start makes it" in dry_run(0, "--data", str(folder))
    assert not folder.exists()
    assert "postgres.host" in dry_run(2, "-c", "storage.default=postgres")
    assert "connect to PostgreSQL" in dry_run(3, *words, "-c", "postgres.port=9")


@pytest.mark.files("what holds a folder")
def test_a_dry_run_finds_the_broker_that_runs(make_broker: Callable[..., Broker]) -> None:
    broker = make_broker().start()
    assert "stop that process" in dry_run(4, "--data", str(broker.data))
    assert "holds the port" in dry_run(4, "--ephemeral", port=broker.port)
    assert "has it open" in done("storage", "check", "--data", str(broker.data))
    assert broker.stop() == 0
    assert "a start would work" in dry_run(0, "--data", str(broker.data))
    broker.start()


def certify(postgres: Postgres, name: str, authority: str) -> None:
    """A certificate of `NAME.pem` and `NAME.key` for localhost, in the server's folder."""
    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    (postgres.folder / "names").write_text("subjectAltName=DNS:localhost")

    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], check=True, capture_output=True, cwd=postgres.folder, **postgres.user)

    openssl("req", "-x509", *key, "-keyout", "ca.key", "-out", authority, "-days", "9", "-subj", "/CN=authority")
    openssl("req", *key, "-keyout", f"{name}.key", "-out", "request", "-subj", "/CN=localhost")
    signed = ["-CA", authority, "-CAkey", "ca.key", "-CAcreateserial", "-days", "9", "-extfile", "names"]
    openssl("x509", "-req", "-in", "request", "-out", f"{name}.pem", *signed)


def test_an_encrypted_connection_is_to_the_right_server_or_there_is_none(
    make_broker: Callable[..., Broker], topic_name: str
) -> None:
    server = Postgres()
    server.password_file.chmod(0o640)
    try:
        certify(server, "other", "stranger.pem")
        certify(server, "server", "authority.pem")
        with (server.folder / "data" / "postgresql.conf").open("a") as file:
            file.write(f"\nssl = on\nssl_cert_file = '{server.folder}/server.pem'\n")
            file.write(f"ssl_key_file = '{server.folder}/server.key'\n")
        server.start()
        verified = server.properties() | {
            "postgres_host": "localhost",
            "postgres_ssl_mode": "verify-full",
            "postgres_ssl_root_cert_file": server.folder / "authority.pem",
        }
        assert checked(0, verified)["tls"]["found"].startswith("TLSv1.3")
        broker = make_broker(**verified).start()
        create_topic(broker.bootstrap, topic_name)
        produce(broker.bootstrap, topic_name, [Record(b"1")])
        ours = "FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'strandline'"
        assert server.sql(f"SELECT bool_and(ssl) {ours}") == "t"
        assert broker.stop() == 0
        for wrong, why in (
            ({"postgres_ssl_root_cert_file": server.folder / "stranger.pem"}, "nobody that is trusted"),
            ({"postgres_host": "127.0.0.1"}, "for another name"),
        ):
            tls = checked(4, verified | wrong)["tls"]
            assert why in tls["found"] and tls["remedy"], tls
            with pytest.raises(AssertionError, match=why):
                make_broker(**(verified | wrong)).start()
        broker.start()
        assert [record.value for record in consume(broker.bootstrap, topic_name)] == [b"1"]
    finally:
        server.close()


@pytest.mark.parametrize("origin", ["environment", "assignment", "file"])
def test_the_password_is_told_to_nobody(
    make_broker: Callable[..., Broker], postgres: Postgres, topic_name: str, monkeypatch: pytest.MonkeyPatch, origin: str
) -> None:
    properties = postgres.properties()
    if origin != "file":
        del properties["postgres_password_file"]
    if origin == "assignment":
        properties["postgres_password"] = PASSWORD
    if origin == "environment":
        monkeypatch.setenv("STRANDLINE_POSTGRES_PASSWORD", PASSWORD)
    broker = make_broker(**properties)
    broker.arguments = ["-vv"]
    broker.start()
    create_topic(broker.bootstrap, topic_name)
    produce(broker.bootstrap, topic_name, [Record(b"1")])
    postgres.kill()
    wait_until("the broker notices", lambda: "connection to PostgreSQL ended" in broker.log.read_text())
    postgres.start()
    produce(broker.bootstrap, topic_name, [Record(b"2")])
    told = []
    for words in (["config", "show"], ["config", "check"], ["storage", "check"]):
        result = strandline(*words, *settings(properties))
        assert result.returncode == 0, result.stderr
        told.append(result.stdout + result.stderr)
        result = strandline(*words, *settings(properties), "--format", "json")
        told.append(result.stdout + result.stderr)
    if origin != "file":
        assert "[hidden]" in told[0], told[0]
    told.append(done("config", "get", "broker:1", "--all", "--format", "json", broker=broker))
    assert "postgres.password" in told[-1]
    for path in ("/metrics", "/readyz?verbose", "/v1/storage", "/v1/topics", "/v1/clients", "/v1/groups"):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{broker.http}{path}") as answer:
                told.append(answer.read().decode())
        except urllib.error.HTTPError as error:
            told.append(error.read().decode())
    told.append(broker.log.read_text())
    assert broker.stop() == 0
    assert not any(PASSWORD in text for text in told)
