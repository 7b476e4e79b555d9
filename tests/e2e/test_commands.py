"""The binary's own commands, as a person or a script runs them: output, errors, exit codes."""

import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import termios
from collections.abc import Callable
from pathlib import Path

import pytest
from broker import BINARY, Broker, Strandline
from clients import Record, consume, create_topic, produce, topic_names
from command import done, strandline

pytestmark = pytest.mark.strandline


def test_a_topic_from_create_to_delete(broker: Broker, topic_name: str) -> None:
    done("topic", "create", topic_name, "-p", "3", "-c", "retention.ms=1h", broker=broker)
    listed = json.loads(done("topic", "list", "--format", "json", broker=broker))
    [mine] = [one for one in listed if one["name"] == topic_name]
    assert mine["partitions"] == 3
    [described] = json.loads(done("topic", "describe", topic_name, "--format", "json", broker=broker))
    assert described["name"] == topic_name and len(described["partitions"]) == 3
    assert "3600000" in json.dumps(described)
    refused = strandline("topic", "delete", topic_name, broker=broker)
    assert (refused.returncode, refused.stdout) == (2, "") and "--yes" in refused.stderr
    done("topic", "delete", topic_name, "--yes", broker=broker)
    assert topic_name not in topic_names(broker.bootstrap)


def test_lines_go_in_and_come_out(broker: Broker, topic_name: str) -> None:
    done("produce", topic_name, stdin="one\ntwo\nthree\n", broker=broker)
    assert [r.value for r in consume(broker.bootstrap, topic_name)] == [b"one", b"two", b"three"]
    assert done("consume", topic_name, "-o", "start:end", "-f", "value", broker=broker) == "one\ntwo\nthree\n"


def test_who_waits_at_the_end_is_told_so(broker: Broker, topic: str) -> None:
    produce(broker.bootstrap, topic, [Record(b"before")] * 3)
    words = ["-b", broker.bootstrap, "consume", topic, "-o", "end", "-n", "1", "-f", "value"]
    with subprocess.Popen([str(BINARY), *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as reader:
        assert reader.stderr.readline() == "waiting at the end of 1 partition (3 records before); -o start reads them\n"
        produce(broker.bootstrap, topic, [Record(b"after")])
        out, err = reader.communicate(timeout=30)
    assert (out, err) == ("after\n", "1 record from 1 partition, as many as asked for\n")
    # Neither who reads up to an end nor who wants no words hears of it.
    for quiet in (["-o", "start:end"], ["-o", "start", "-n", "4", "-q"]):
        assert "waiting" not in strandline("consume", topic, *quiet, broker=broker).stderr


def test_who_watches_sees_how_far_long_work_is(broker: Broker, topic: str) -> None:
    """A count on the terminal while the data goes elsewhere, and off it again."""
    for words, feed, wanted in (
        (["produce", topic], b"one\ntwo\n", "produced 2 "),
        (["consume", topic, "-o", "start", "-n", "3", "-f", "value"], b"", " 2/3 "),
    ):
        master, terminal = pty.openpty()
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
        command = [str(BINARY), "-b", broker.bootstrap, *words]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=terminal) as process:
            os.close(terminal)
            process.stdin.write(feed)
            process.stdin.flush()
            shown = ""
            while wanted not in shown:
                assert select.select([master], [], [], 30)[0], f"{wanted!r} is not in {shown!r}"
                shown += os.read(master, 4096).decode()
            if words[0] == "consume":
                produce(broker.bootstrap, topic, [Record(b"three")])
            out, _ = process.communicate(timeout=30)
        os.close(master)
        assert process.returncode == 0
        assert out == (b"" if words[0] == "produce" else b"one\ntwo\nthree\n")


def test_json_goes_round_byte_for_byte(broker: Broker, topic_name: str) -> None:
    headers = (("a", b"1"), ("a", b"\xff"), ("n", None))
    records = [Record(b"\x00\xfe", None, headers), Record(None, b"k"), Record("ü".encode(), b"", ())]
    create_topic(broker.bootstrap, topic_name)
    produce(broker.bootstrap, topic_name, records)
    lines = done("consume", topic_name, "-o", "start:end", "-f", "json", broker=broker)
    assert [json.loads(line)["offset"] for line in lines.splitlines()] == [0, 1, 2]
    copy = f"{topic_name}-copy"
    create_topic(broker.bootstrap, copy)
    done("produce", "-f", "json", copy, stdin=lines, broker=broker)
    back = [(r.key, r.value, r.headers) for r in consume(broker.bootstrap, copy)]
    assert back == [(r.key, r.value, r.headers) for r in records]


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_every_codec_of_our_own_producer_is_read_by_librdkafka(broker: Broker, topic_name: str, codec: str) -> None:
    text = "".join(f"line {i}\n" for i in range(1000))
    done("produce", topic_name, "-z", codec, stdin=text, broker=broker)
    found = [r.value.decode() for r in consume(broker.bootstrap, topic_name, check_crcs=True)]
    assert found == text.splitlines()
    assert done("consume", topic_name, "-o", "start:end", "-f", "value", broker=broker) == text


def test_an_unknown_topic_is_told_with_a_suggestion(broker: Broker, topic: str) -> None:
    result = strandline("topic", "describe", f"{topic}x", broker=broker)
    assert result.returncode == 1
    assert f'topic "{topic}x" does not exist' in result.stderr and topic in result.stderr.splitlines()[1]


def test_a_broker_that_is_not_there_is_exit_code_3() -> None:
    result = strandline("topic", "list", "-b", "127.0.0.1:1")
    assert result.returncode == 3 and "cannot reach" in result.stderr and result.stdout == ""
    result = strandline("topic", "list", "-b", "nosuch.invalid:9092")
    assert result.returncode == 3 and "strandline serve" not in result.stderr, "no broker can be started there"


def words_of(result) -> list[tuple[str, str]]:
    """What a command with JSON said on stderr: each line is an object, whose kind names its code."""
    objects = [json.loads(line) for line in result.stderr.splitlines()]
    assert all(one["message"] for one in objects), result.stderr
    return [(kind, one[kind]) for one in objects for kind in ("error", "warning", "note") if kind in one]


def test_what_is_said_beside_json_is_json(broker: Broker, topic: str, tmp_path: Path) -> None:
    produce(broker.bootstrap, topic, [Record(b"v")])
    done("group", "seek", f"g-{topic}", "--to", "start", "-t", topic, "--yes", broker=broker)
    settings = tmp_path / "server.properties"
    settings.write_text("node.id=1\n")
    for code, expected, words in (
        (2, [("error", "usage")], ["group", "seek", "x", "--to", "zz"]),
        (2, [("error", "usage")], ["topic", "list", "--nonsense"]),
        (2, [("error", "usage")], ["config", "set", f"topic:{topic}", "retention.ms=abc"]),
        (1, [("error", "topic_already_exists")], ["topic", "create", topic]),
        (1, [("error", "invalid_topic")], ["topic", "create", "no such!"]),
        (1, [("error", "unknown_topic")], ["topic", "describe", f"{topic}x"]),
        (1, [("error", "unknown_group")], ["group", "describe", f"{topic}x"]),
        (1, [("error", "invalid_partitions")], ["topic", "add-partitions", topic, "-p", "1"]),
        (0, [("warning", "groups_may_miss_records")], ["topic", "add-partitions", topic, "-p", "+1", "--dry-run"]),
        (0, [("warning", "offset_outside")], ["group", "seek", f"g-{topic}", "--to", "99", "--dry-run"]),
        (0, [("warning", "offset_outside")], ["topic", "trim", topic, "--before", "99", "--dry-run"]),
        (0, [("warning", "setting_overridden")], ["config", "check", str(settings), "-c", "node.id=2"]),
        (0, [("note", "end_reached")], ["consume", topic, "-o", "start:end"]),
    ):
        result = strandline(*words, "--format", "json", broker=broker)
        assert (result.returncode, words_of(result)) == (code, expected), f"{words}: {result.stderr}"
    text = strandline("group", "seek", "x", "--to", "zz")
    assert text.returncode == 2 and text.stderr.startswith("error: invalid value 'zz' for '--to <PLACE>'")


@pytest.mark.files("`segment dump` reads a file")
def test_segments_are_dumped(make_broker: Callable[..., Strandline], topic_name: str) -> None:
    broker = make_broker().start()
    create_topic(broker.bootstrap, topic_name)
    produce(broker.bootstrap, topic_name, [Record(b"v" * 1000, b"k")] * 100, compression_codec="gzip")
    assert broker.stop() == 0
    [file] = [str(path) for path in broker.data.rglob("*.log")]
    assert "gzip" in done("segment", "dump", file)
    whole = done("segment", "dump", "--records", "--format", "json", file)
    assert all(json.loads(line) for line in whole.splitlines())
    damaged = Path(file).with_name("damaged.log")
    content = bytearray(Path(file).read_bytes())
    content[70] ^= 0xFF
    damaged.write_bytes(content)
    result = strandline("segment", "dump", str(damaged))
    assert result.returncode == 4, result.stderr


def test_a_consumer_that_is_interrupted_ends_with_its_signals_code(broker: Broker, topic: str) -> None:
    command = [str(BINARY), "consume", topic, "-F", "-o", "start", "-b", broker.bootstrap, "-f", "value"]
    # Whoever runs the tests in the background has the signal ignored, and programs inherit that.
    heeding = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # noqa: E731
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, preexec_fn=heeding)
    try:
        produce(broker.bootstrap, topic, [Record(b"seen")])
        assert process.stdout.readline() == b"seen\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=20) in (130, -signal.SIGINT)
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
