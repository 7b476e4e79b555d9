"""The commands of Kafka's tools that are compared, section by section: the same words to both brokers."""

import json
import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from broker import Broker
from clients import QUIET, Record, consumer, produce
from confluent_kafka import Consumer, TopicPartition
from deadline import wait_until

HOUR = 3_600_000
# All times of records and commands are meant from here.
BEGUN = int(time.time() * 1000)


class Stage:
    """One of the two brokers, with the folder of files for it and the members of its groups."""

    def __init__(self, broker: Broker, files: Path):
        self.broker = broker
        self.files = files
        self.members: dict[str, Consumer] = {}
        files.mkdir(parents=True, exist_ok=True)

    def close(self) -> None:
        for member in self.members.values():
            member.close()
        self.members.clear()


@dataclass(frozen=True)
class Command:
    """A tool with its words. One that only reads may be asked again while a change settles."""

    line: str
    reads: bool
    stdin: str = ""
    unordered: bool = False

    @property
    def tool(self) -> str:
        return self.line.split()[0]

    def words(self, stage: Stage) -> list[str]:
        words = [word.replace("FILES/", f"{stage.files}/") for word in shlex.split(self.line)[1:]]
        server = ["--bootstrap-server", stage.broker.bootstrap]
        return [*server, *words] if self.tool in ("features", "metadata-quorum") else [*words, *server]


@dataclass(frozen=True)
class Act:
    """What happens to each broker between commands."""

    does: Callable[[Stage], None]


def reads(line: str) -> Command:
    return Command(line, reads=True)


def lists(line: str) -> Command:
    """One whose lines Kafka takes from a hash map."""
    return Command(line, reads=True, unordered=True)


def changes(line: str, stdin: str = "") -> Command:
    return Command(line, reads=False, stdin=stdin)


def records(topic: str, count: int, partition: int = 0, age: int = 0) -> Act:
    """One batch of records of 100 bytes, a second apart; the first is this many milliseconds old."""
    made = [Record(b"%0100d" % i, partition=partition, timestamp=BEGUN - age + i * 1000) for i in range(count)]
    return Act(lambda stage: produce(stage.broker.bootstrap, topic, made, together=True) and None)


def file(name: str, content: object) -> Act:
    text = content if isinstance(content, str) else json.dumps(content)
    return Act(lambda stage: (stage.files / name).write_text(text) and None)


def positions(group: str, topic: str, offsets: dict[int, int]) -> Act:
    """Committed without a membership."""

    def commit(stage: Stage) -> None:
        simple = consumer(stage.broker.bootstrap, group_id=group)
        try:
            places = [TopicPartition(topic, partition, offset) for partition, offset in offsets.items()]
            simple.commit(offsets=places, asynchronous=False)
        finally:
            simple.close()

    return Act(commit)


def joins(client: str, group: str, topic: str, share: int, **config: object) -> Act:
    """A member that stays until it `leaves`; all members are there when each has its share."""

    def join(stage: Stage) -> None:
        settings = {
            "bootstrap.servers": stage.broker.bootstrap, "group.id": group, "client.id": client,
            "enable.auto.commit": False, "heartbeat.interval.ms": 500, **QUIET,
            **{key.replace("_", "."): value for key, value in config.items()},
        }
        stage.members[client] = Consumer(settings)
        stage.members[client].subscribe([topic])
        wait_until(f"{client} and the others have their share", lambda: shared(stage, share), seconds=60)

    return Act(join)


def shared(stage: Stage, share: int) -> bool:
    for member in stage.members.values():
        member.poll(0.1)
    return all(len(member.assignment()) == share for member in stage.members.values())


def leaves(client: str) -> Act:
    return Act(lambda stage: stage.members.pop(client).close())


def at(milliseconds: int) -> str:
    """An instant as `--to-datetime` takes it."""
    seconds, left = divmod(milliseconds, 1000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{left:03}+00:00"


def partitions(*entries: dict) -> dict:
    return {"version": 1, "partitions": list(entries)}


TOPICS = [
    reads("topics --list"),
    changes("topics --create --topic plain --partitions 2"),
    changes("topics --create --topic orders --partitions 3 --replication-factor 1 --config retention.ms=60000 --config cleanup.policy=compact,delete"),
    changes("topics --create --topic assigned --replica-assignment 1,1"),
    changes("topics --create --topic by.default"),
    changes("topics --create --topic by_default"),
    reads("topics --describe"),
    changes("topics --create --topic plain"),
    changes("topics --create --topic plain --if-not-exists"),
    changes("topics --create --topic 'a b'"),
    changes("topics --create --topic .."),
    changes("topics --create --topic many --replication-factor 3"),
    changes("topics --create --topic none --partitions 0"),
    changes("topics --create --topic elsewhere --replica-assignment 7"),
    changes("topics --create --topic twice --replica-assignment 1:1"),
    changes("topics --create --topic odd --config no.such.key=1"),
    changes("topics --create --topic odd --config retention.ms=soon"),
    changes("topics --create --topic odd --config retention.ms=-2"),
    changes("topics --create --topic odd --config cleanup.policy=shred"),
    reads("topics --list"),
    reads("topics --list --topic 'o.*'"),
    reads("topics --list --exclude-internal"),
    reads("topics --describe --topic orders"),
    reads("topics --describe --topics-with-overrides"),
    reads("topics --describe --under-replicated-partitions"),
    reads("topics --describe --unavailable-partitions"),
    reads("topics --describe --at-min-isr-partitions"),
    reads("topics --describe --under-min-isr-partitions"),
    reads("topics --describe --topic plain --partition-size-limit-per-response 1"),
    reads("topics --describe --topic nowhere"),
    reads("topics --describe --topic nowhere --if-exists"),
    changes("topics --alter --topic plain --partitions 4"),
    reads("topics --describe --topic plain"),
    changes("topics --alter --topic plain --partitions 4"),
    changes("topics --alter --topic plain --partitions 3"),
    changes("topics --alter --topic plain --partitions 5 --replica-assignment 1,1,1,1,1"),
    changes("topics --alter --topic plain --partitions 6 --replica-assignment 1,1,1,1,1,9"),
    changes("topics --alter --topic nowhere --partitions 3"),
    changes("topics --alter --topic nowhere --partitions 3 --if-exists"),
    changes("topics --alter --topic 'by.default' --partitions 2"),
    reads("topics --describe --topic 'by.*'"),
    changes("topics --delete --topic nowhere"),
    changes("topics --delete --topic nowhere --if-exists"),
    changes("topics --delete --topic 'by.*'"),
    reads("topics --list"),
]

CONFIGS = [
    changes("topics --create --topic tuned --partitions 1 --config max.message.bytes=5000"),
    reads("configs --describe --entity-type topics --entity-name tuned"),
    reads("configs --describe --entity-type topics --entity-name tuned --all"),
    lists("configs --describe --entity-type topics"),
    changes("configs --alter --entity-type topics --entity-name tuned --add-config retention.ms=60000,cleanup.policy=[compact,delete]"),
    reads("configs --describe --entity-type topics --entity-name tuned"),
    changes("configs --alter --entity-type topics --entity-name tuned --delete-config max.message.bytes"),
    reads("configs --describe --entity-type topics --entity-name tuned"),
    changes("configs --alter --entity-type topics --entity-name tuned --delete-config max.message.bytes"),
    changes("configs --alter --entity-type topics --entity-name tuned --add-config no.such.key=1"),
    changes("configs --alter --entity-type topics --entity-name tuned --add-config retention.ms=soon"),
    changes("configs --alter --entity-type topics --entity-name tuned --add-config segment.bytes=3"),
    changes("configs --alter --entity-type topics --entity-name tuned --add-config cleanup.policy=shred"),
    changes("configs --alter --entity-type topics --entity-name tuned --add-config compression.type=zip"),
    changes("configs --alter --entity-type topics --entity-name tuned --add-config min.insync.replicas=0"),
    changes("configs --alter --entity-type topics --entity-name nowhere --add-config retention.ms=1"),
    reads("configs --describe --entity-type topics --entity-name nowhere"),
    file("more.properties", "retention.bytes=1000000\nsegment.ms=70000\n"),
    changes("configs --alter --entity-type topics --entity-name tuned --add-config-file FILES/more.properties"),
    reads("configs --describe --entity-type topics --entity-name tuned"),
    reads("configs --describe --entity-type brokers --entity-name 1"),
    reads("configs --describe --entity-type brokers --entity-name 1 --all"),
    reads("configs --describe --entity-type brokers --entity-default"),
    reads("configs --describe --entity-type brokers"),
    changes("configs --alter --entity-type brokers --entity-default --add-config log.cleaner.backoff.ms=16000"),
    changes("configs --alter --entity-type brokers --entity-name 1 --add-config log.cleaner.backoff.ms=17000,log.retention.ms=90000000"),
    reads("configs --describe --entity-type brokers --entity-name 1"),
    reads("configs --describe --entity-type brokers --entity-default"),
    changes("configs --alter --entity-type brokers --entity-name 1 --delete-config log.cleaner.backoff.ms,log.retention.ms"),
    changes("configs --alter --entity-type brokers --entity-default --delete-config log.cleaner.backoff.ms"),
    reads("configs --describe --entity-type brokers --entity-name 1"),
    changes("configs --alter --entity-type brokers --entity-name 1 --add-config num.io.threads=17"),
    changes("configs --alter --entity-type brokers --entity-name 1 --add-config num.io.threads=3"),
    changes("configs --alter --entity-type brokers --entity-default --add-config num.io.threads=16"),
    changes("configs --alter --entity-type brokers --entity-name 1 --add-config log.cleaner.threads=3"),
    changes("configs --alter --entity-type brokers --entity-default --delete-config num.io.threads"),
    changes("configs --alter --entity-type brokers --entity-name 1 --add-config log.dirs=/tmp"),
    changes("configs --alter --entity-type brokers --entity-name 1 --add-config message.max.bytes=-1"),
    reads("configs --describe --entity-type brokers --entity-name 9"),
    reads("configs --describe --entity-type broker-loggers --entity-name 9"),
    changes("configs --alter --entity-type broker-loggers --entity-name 1 --add-config root=loud"),
    changes("configs --alter --entity-type broker-loggers --entity-name 1 --add-config no.such=INFO"),
    changes("configs --alter --entity-type broker-loggers --entity-name 1 --delete-config root"),
    changes("configs --alter --entity-type groups --entity-name workers --add-config consumer.session.timeout.ms=50000"),
    reads("configs --describe --entity-type groups --entity-name workers"),
    reads("configs --describe --entity-type groups --entity-name workers --all"),
    reads("configs --describe --entity-type groups"),
    changes("configs --alter --entity-type groups --entity-name workers --add-config consumer.session.timeout.ms=1"),
    changes("configs --alter --entity-type groups --entity-name workers --add-config no.such.key=1"),
    changes("configs --alter --entity-type groups --entity-name workers --delete-config consumer.session.timeout.ms"),
    reads("configs --describe --entity-type groups --entity-name workers"),
    changes("configs --alter --entity-type clients --entity-name greedy --add-config producer_byte_rate=1024,request_percentage=50"),
    changes("configs --alter --entity-type users --entity-name ann --entity-type clients --entity-default --add-config consumer_byte_rate=2048"),
    reads("configs --describe --entity-type clients --entity-name greedy"),
    reads("configs --describe --entity-type clients"),
    reads("configs --describe --entity-type users --entity-name ann --entity-type clients --entity-default"),
    changes("configs --alter --entity-type clients --entity-name greedy --add-config no_such_rate=1"),
    changes("configs --alter --entity-type clients --entity-name greedy --add-config producer_byte_rate=-1"),
    changes("configs --alter --entity-type clients --entity-name greedy --delete-config producer_byte_rate,request_percentage"),
    changes("configs --alter --entity-type users --entity-name ann --entity-type clients --entity-default --delete-config consumer_byte_rate"),
    reads("configs --describe --entity-type clients"),
    changes("configs --alter --entity-type ips --entity-name 10.1.2.3 --add-config connection_creation_rate=10"),
    reads("configs --describe --entity-type ips"),
    changes("configs --alter --entity-type ips --entity-name 10.1.2.3 --delete-config connection_creation_rate"),
    changes("configs --alter --entity-type client-metrics --entity-name probe --add-config interval.ms=10000,metrics=org.apache"),
    reads("configs --describe --entity-type client-metrics --entity-name probe"),
    reads("configs --describe --entity-type client-metrics"),
    changes("configs --alter --entity-type client-metrics --entity-name probe --add-config interval.ms=1"),
    changes("configs --alter --entity-type client-metrics --entity-name probe --delete-config interval.ms,metrics"),
    changes("topics --delete --topic tuned"),
]

RESET = "consumer-groups --reset-offsets --group workers"
GROUPS = [
    changes("topics --create --topic work --partitions 2"),
    changes("topics --create --topic other --partitions 1"),
    records("work", 20, age=2 * HOUR),
    records("work", 10, age=HOUR // 2),
    records("work", 5, partition=1, age=HOUR // 2),
    records("other", 3),
    reads("consumer-groups --list"),
    reads("consumer-groups --describe --group nobody"),
    reads("consumer-groups --describe --group nobody --state"),
    reads("consumer-groups --describe --group nobody --members"),
    positions("workers", "work", {0: 25, 1: 5}),
    positions("workers", "other", {0: 1}),
    reads("consumer-groups --list"),
    reads("consumer-groups --list --state"),
    reads("consumer-groups --list --state empty"),
    reads("consumer-groups --list --type classic"),
    reads("consumer-groups --list --state nonsense"),
    reads("consumer-groups --describe --group workers"),
    reads("consumer-groups --describe --group workers --offsets --verbose"),
    reads("consumer-groups --describe --group workers --state"),
    reads("consumer-groups --describe --group workers --state --verbose"),
    reads("consumer-groups --describe --group workers --members"),
    reads("consumer-groups --describe --all-groups"),
    reads("consumer-groups --validate-regex 'w.*'"),
    reads(f"{RESET} --all-topics --to-earliest --dry-run"),
    reads(f"{RESET} --all-topics --to-latest --export"),
    changes(f"{RESET} --topic work --to-earliest --execute"),
    reads("consumer-groups --describe --group workers"),
    changes(f"{RESET} --topic work --to-latest --execute"),
    changes(f"{RESET} --topic work:0 --to-offset 7 --execute"),
    changes(f"{RESET} --topic work:0 --to-offset 999 --execute"),
    changes(f"{RESET} --topic work:0 --shift-by -3 --execute"),
    changes(f"{RESET} --topic work --shift-by 100 --execute"),
    changes(f"{RESET} --topic work --shift-by -100 --execute"),
    changes(f"{RESET} --topic work --by-duration PT1H --execute"),
    changes(f"{RESET} --topic work --by-duration PT9H --execute"),
    changes(f"{RESET} --topic work --to-datetime {at(BEGUN - 2 * HOUR + 5500)} --execute"),
    changes(f"{RESET} --topic work --to-datetime {at(BEGUN + HOUR)} --execute"),
    changes(f"{RESET} --all-topics --to-current --execute"),
    changes(f"{RESET} --topic nowhere --to-earliest --execute"),
    changes(f"{RESET} --topic work:9 --to-earliest --execute"),
    changes(f"{RESET} --topic work:x --to-earliest --execute"),
    file("plan.csv", "work,0,11\nwork,1,2\nother,0,2\n"),
    reads(f"{RESET} --all-topics --from-file FILES/plan.csv --dry-run"),
    changes(f"{RESET} --all-topics --from-file FILES/plan.csv --execute"),
    reads("consumer-groups --describe --group workers"),
    changes("consumer-groups --reset-offsets --group fresh --topic work --to-earliest --execute"),
    reads(f"{RESET} --topic work --to-offset 3 --dry-run --export"),
    changes("consumer-groups --reset-offsets --all-groups --topic other --to-latest --execute"),
    reads("consumer-groups --describe --all-groups --state --verbose"),
    reads("consumer-groups --describe --all-groups --offsets"),
    joins("app-1", "live", "work", 2),
    reads("consumer-groups --describe --group live --members --verbose"),
    joins("app-2", "live", "work", 1),
    Act(lambda stage: stage.members["app-1"].commit(
        offsets=[TopicPartition("work", 0, 4)], asynchronous=False) and None),
    lists("consumer-groups --list --state"),
    lists("consumer-groups --list --state stable,empty"),
    lists("consumer-groups --describe --group live"),
    lists("consumer-groups --describe --group live --offsets --verbose"),
    lists("consumer-groups --describe --group live --members"),
    lists("consumer-groups --describe --group live --members --verbose"),
    lists("consumer-groups --describe --group live --state"),
    lists("consumer-groups --describe --group live --state --verbose"),
    lists("consumer-groups --describe --all-groups --state"),
    lists("consumer-groups --describe --all-groups --members"),
    changes("consumer-groups --reset-offsets --group live --topic work --to-earliest --execute"),
    changes("consumer-groups --delete-offsets --group live --topic work"),
    changes("consumer-groups --delete-offsets --group live --topic other"),
    changes("consumer-groups --delete --group live"),
    leaves("app-2"),
    leaves("app-1"),
    joins("steady", "static", "other", 1, group_instance_id="the-one"),
    reads("consumer-groups --describe --group static --members --verbose"),
    reads("consumer-groups --describe --group static"),
    leaves("steady"),
    changes("consumer-groups --delete-offsets --group workers --topic work:1"),
    changes("consumer-groups --delete-offsets --group workers --topic work:9"),
    changes("consumer-groups --delete-offsets --group workers --topic nowhere"),
    changes("consumer-groups --delete-offsets --group nobody --topic work"),
    reads("consumer-groups --describe --group workers"),
    changes("consumer-groups --delete --group workers --group nobody"),
    changes("consumer-groups --delete --group nobody"),
    reads("consumer-groups --list"),
    changes("consumer-groups --delete --group live --group static"),
    changes("consumer-groups --delete --all-groups"),
    reads("consumer-groups --list"),
    reads("topics --list"),
    reads("topics --describe --topic __consumer_offsets"),
    reads("configs --describe --entity-type topics --entity-name __consumer_offsets"),
    changes("topics --alter --topic __consumer_offsets --partitions 9"),
    changes("topics --create --topic __consumer_offsets"),
    positions("workers", "work", {0: 1}),
    reads("groups --list"),
    reads("groups --list --group-type classic"),
    reads("groups --list --group-type consumer"),
    reads("groups --list --consumer"),
    reads("groups --list --share"),
    reads("groups --list --protocol consumer"),
    reads("groups --list --group-type nonsense"),
]

TIMES = [
    "-1", "-2", "-3", "-4", "-5", "-6", "latest", "earliest", "max-timestamp", "earliest-local", "latest-tiered",
    "earliest-pending-upload", BEGUN - 2 * HOUR + 3000, BEGUN + HOUR, "-9", "soon",
]
DATA = [
    changes("topics --create --topic data --partitions 3"),
    records("data", 20, age=2 * HOUR),
    records("data", 5, partition=1, age=HOUR),
    *[reads(f"get-offsets --topic data --time {time}") for time in TIMES],
    reads("get-offsets --topic data --partitions 0,2"),
    reads("get-offsets --topic '.*a' --partitions 0-2 --time -2"),
    reads("get-offsets --topic-partitions data:1-3"),
    reads("get-offsets --topic 'da.*' --exclude-internal-topics"),
    reads("get-offsets --topic nowhere"),
    reads("get-offsets --topic data --partitions 9"),
    reads("log-dirs --describe --topic-list data"),
    reads("log-dirs --describe --topic-list data,nowhere"),
    reads("log-dirs --describe --broker-list 1 --topic-list data"),
    reads("log-dirs --describe --broker-list 7"),
    file("good.json", partitions({"topic": "data", "partition": 0, "offset": 7}, {"topic": "data", "partition": 1, "offset": -1})),
    changes("delete-records --offset-json-file FILES/good.json"),
    reads("get-offsets --topic data --time earliest"),
    changes("delete-records --offset-json-file FILES/good.json"),
    file("far.json", partitions({"topic": "data", "partition": 0, "offset": 999})),
    changes("delete-records --offset-json-file FILES/far.json"),
    file("less.json", partitions({"topic": "data", "partition": 0, "offset": 3})),
    changes("delete-records --offset-json-file FILES/less.json"),
    file("minus.json", partitions({"topic": "data", "partition": 0, "offset": -5})),
    changes("delete-records --offset-json-file FILES/minus.json"),
    file("nowhere.json", partitions({"topic": "nowhere", "partition": 0, "offset": 1})),
    # A client asks for a topic that is not there again and again until its time is up.
    file("patience.properties", "default.api.timeout.ms=2000\nrequest.timeout.ms=1000\n"),
    changes("delete-records --offset-json-file FILES/nowhere.json --command-config FILES/patience.properties"),
    file("twice.json", partitions({"topic": "data", "partition": 0, "offset": 8}, {"topic": "data", "partition": 0, "offset": 9})),
    changes("delete-records --offset-json-file FILES/twice.json"),
    changes("verifiable-producer --topic verified --max-messages 200 --acks -1 --value-prefix 7"),
    changes("verifiable-producer --topic verified --max-messages 20 --acks 1 --repeating-keys 5 --message-create-time 1000"),
    changes("verifiable-consumer --topic verified --group-id verifiers --max-messages 220 --session-timeout 6000 --reset-policy earliest --verbose"),
    changes("verifiable-consumer --topic data --group-id verifiers2 --max-messages 13 --session-timeout 6000 --reset-policy earliest --enable-autocommit"),
    reads("consumer-groups --describe --group verifiers"),
    changes("console-producer --topic data --reader-property parse.key=true --reader-property key.separator=:", stdin="k:v\nk2:v2\n"),
    changes("console-consumer --topic data --partition 0 --offset 18 --max-messages 2 --timeout-ms 20000 --formatter-property print.key=true --formatter-property print.offset=true"),
]

CLUSTER = [
    changes("topics --create --topic placed --partitions 2"),
    reads("cluster cluster-id"),
    reads("cluster list-endpoints"),
    changes("cluster unregister --id 7"),
    changes("cluster unregister --id -1"),
    reads("features describe"),
    changes("features upgrade --feature metadata.version=33"),
    changes("features upgrade --feature metadata.version=34"),
    changes("features upgrade --feature no.such=1"),
    changes("features downgrade --feature metadata.version=32"),
    changes("features downgrade --feature metadata.version=30 --unsafe"),
    changes("features downgrade --feature metadata.version=33 --dry-run"),
    changes("features disable --feature metadata.version"),
    changes("features disable --feature no.such"),
    reads("metadata-quorum describe --replication"),
    reads("broker-api-versions"),
    changes("leader-election --election-type preferred --topic placed --partition 0"),
    changes("leader-election --election-type unclean --topic placed --partition 1"),
    changes("leader-election --election-type preferred --topic nowhere --partition 0"),
    changes("leader-election --election-type preferred --topic placed --partition 9"),
    changes("leader-election --election-type preferred --all-topic-partitions"),
    file("elect.json", partitions({"topic": "placed", "partition": 0}, {"topic": "placed", "partition": 1})),
    changes("leader-election --election-type preferred --path-to-json-file FILES/elect.json"),
    file("topics.json", {"version": 1, "topics": [{"topic": "placed"}]}),
    reads("reassign-partitions --generate --topics-to-move-json-file FILES/topics.json --broker-list 1"),
    reads("reassign-partitions --generate --topics-to-move-json-file FILES/topics.json --broker-list 1,2"),
    file("stay.json", partitions(*({"topic": "placed", "partition": i, "replicas": [1]} for i in range(2)))),
    changes("reassign-partitions --reassignment-json-file FILES/stay.json --execute"),
    reads("reassign-partitions --reassignment-json-file FILES/stay.json --verify"),
    reads("reassign-partitions --list"),
    changes("reassign-partitions --reassignment-json-file FILES/stay.json --cancel"),
    changes("reassign-partitions --reassignment-json-file FILES/stay.json --execute --throttle 1000000"),
    reads("reassign-partitions --reassignment-json-file FILES/stay.json --verify --preserve-throttles"),
    reads("reassign-partitions --reassignment-json-file FILES/stay.json --verify"),
    file("away.json", partitions({"topic": "placed", "partition": 0, "replicas": [7]})),
    changes("reassign-partitions --reassignment-json-file FILES/away.json --execute"),
    file("both.json", partitions({"topic": "placed", "partition": 0, "replicas": [1, 1]})),
    changes("reassign-partitions --reassignment-json-file FILES/both.json --execute"),
    file("nowhere.json", partitions({"topic": "nowhere", "partition": 0, "replicas": [1]})),
    changes("reassign-partitions --reassignment-json-file FILES/nowhere.json --execute"),
]

SECTIONS = {"topics": TOPICS, "configs": CONFIGS, "groups": GROUPS, "data": DATA, "cluster": CLUSTER}
