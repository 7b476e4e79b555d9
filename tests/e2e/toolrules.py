"""How outputs of Kafka's tools are compared: what brokers make up is named, what is meant to differ is a rule."""

import json
import re
from dataclasses import dataclass
from pathlib import Path

from storage import STORAGE
from toolscript import Command, Stage
from toolserver import Output

# What a broker, a client or a clock makes up anew each time: by what it is instead.
MADE_UP = [
    (r"(127\.0\.0\.1|localhost)(:|\s+)\d+", "ADDRESS"),
    (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "UUID"),
    (r"(TopicId: )\S{22}", r"\1ID"),
    (r"(Cluster ID: )\S{22}", r"\1ID"),
    (r'("timestamp":)\d+', r"\1TIME"),
    (r'("avg_throughput":)[0-9.E]+', r"\1RATE"),
    (r"\[\d{4}-\d\d-\d\d [0-9:,]+\]", "[TIME]"),
    (r"(TimeoutException: ).*", r"\1..."),
    # Where in Kafka's code it was thrown.
    (r"^stderr:\s+(at |\.\.\. \d+ more).*", ""),
]


@dataclass
class Rule:
    """A difference that is meant: what it makes of a line of either broker, so that they are alike.

    A line of which nothing is left is no line.
    """

    name: str
    because: str
    tool: str
    line: str
    instead: str = ""
    used: bool = False

    def apply(self, command: Command, line: str) -> str:
        if re.match(self.tool, command.line) is None:
            return line
        changed = re.sub(self.line, self.instead, line)
        self.used |= changed != line
        return changed


def own_keys() -> list[str]:
    """The keys of brokers that Apache Kafka does not have, as the generated reference has them."""
    reference = (Path(__file__).parents[2] / "docs" / "configuration.md").read_text()
    section = reference.split("\n## Broker configs: Strandline's own\n")[1].split("\n## ")[0]
    return re.findall(r"^### `([^`]+)`$", section, flags=re.MULTILINE)


ONE_REPLICA = "design §5: single-node leader semantics; no home-made replication, ever"
# Ours of topics with their defaults, and every key that the reference tells among our own of brokers.
OWN_KEYS = "|".join(
    [r"(log\.)?(retention\.bytes\.floor|retention\.records|validate\.compressed)", r"storage\.engine", *map(re.escape, own_keys())]
)
PEERS_KEYS = (
    r"advertised\.listeners|listeners|listener\.security\.protocol\.map|controller\.listener\.names|"
    r"controller\.quorum\.bootstrap\.servers|process\.roles|node\.id|log\.dirs?|authorizer\.class\.name|super\.users|"
    r"allow\.everyone\.if\.no\.acl\.found"
)
NOT_SERVED = (
    "SaslHandshake|SaslAuthenticate|AddPartitionsToTxn|AddOffsetsToTxn|EndTxn|WriteTxnMarkers|TxnOffsetCommit|"
    "DescribeTransactions|ListTransactions|(Describe|Create|Delete)Acls|(Create|Renew|Expire|Describe)DelegationToken|"
    "(Describe|Alter)UserScramCredentials|UnregisterController|(Add|Remove)RaftVoter|"
    r"ConsumerGroup\w+|(Initialize|Read|Write|Delete|Describe|Alter)?Share\w+|StreamsGroup\w+"
)

RULES = [
    Rule(
        "that minimum is an override of every topic",
        ONE_REPLICA,
        "topics --describe --topics-with-overrides",
        r".*Configs: min\.insync\.replicas=1$",
    ),
    Rule(
        "a cluster-wide minimum of replicas is needless", ONE_REPLICA, "topics", r"(Configs: .*?)min\.insync\.replicas=1(,|$)", r"\1"
    ),
    Rule("a synonym of that minimum", ONE_REPLICA, "configs", r"DYNAMIC_DEFAULT_BROKER_CONFIG:min\.insync\.replicas=1(, )?"),
    Rule("that minimum for all brokers", ONE_REPLICA, "configs", r"^\s*min\.insync\.replicas=1 sensitive=false synonyms=\{\}$"),
    Rule(
        "several replicas are refused with the reason",
        "reference/ux.md §3.4: an error says what to do about it",
        "topics --create --topic many",
        r"(: )(Unable to replicate the partition 3 time|replication factor must be 1: this broker keeps one replica).*",
        r"\1one replica",
    ),
    Rule(
        "keys of our own",
        "design §5: own keys and defaults (retention.records, retention.bytes.floor, storage.default, validate.compressed)",
        "configs --describe .* --all",
        rf"^\s*({OWN_KEYS})=.*",
    ),
    Rule(
        "what the peer alone is told",
        "tests/peers/kafka/server.properties: its controller, its authorizer, its folder",
        "configs --describe --entity-type brokers .*--all",
        rf"^\s*({PEERS_KEYS})=.*",
    ),
    Rule(
        "limits of a quota have no order",
        "Kafka keeps them in a hash map",
        "configs --describe --entity-type clients",
        r"request_percentage=50\.0, producer_byte_rate=1024\.0",
        "producer_byte_rate=1024.0, request_percentage=50.0",
    ),
    Rule(
        "features stay at zero or absent",
        "design §5: features in ApiVersions stay at 0 or absent until the thing is served",
        "features describe",
        r"^Feature: (?!metadata\.version).*",
    ),
    Rule(
        "epochs of features count from 1",
        "Kafka counts all records of its metadata",
        "features describe",
        r"Epoch: \d+$",
        "Epoch: N",
    ),
    Rule(
        "the quorum has no log",
        "design §5: single-node leader semantics (metadata is rows, which nobody fetches)",
        "metadata-quorum",
        r"^1\s+\S{22}\s+\d+\s+0\s+\d+\s+\d+\s+Leader\s*$",
        "1 FOLDER OFFSET 0 TIME TIME Leader",
    ),
    Rule(
        "only what is served is advertised",
        "design §5: an API that is not served is not advertised",
        "broker-api-versions",
        rf"^\s*({NOT_SERVED})\(\d+\): .*",
    ),
    Rule(
        "versions go up to the codec's",
        "design §5: versions go up to what the codec generated from Kafka 4.3.0 has",
        "broker-api-versions",
        r"^\s*(ApiVersions|DeleteGroups)\(\d+\): .*",
    ),
    Rule(
        "how often a client asks for the topic that its first use creates",
        "Kafka's answer leaves before its controller has committed, ours when the topic is durable",
        "verifiable-producer",
        r"^stderr: .*reported a recoverable issue .*=UNKNOWN_TOPIC_OR_PARTITION.*",
    ),
]

if STORAGE != "file":
    BROKERS_CHOICE = "Kafka tells what server.properties sets among a topic's settings, and storage.default is set there"
    RULES += [
        Rule(
            "the broker's choice of an engine is told of every topic",
            BROKERS_CHOICE,
            "topics --describe --topics-with-overrides",
            rf".*Configs: storage\.engine={STORAGE}$",
        ),
        Rule(
            "the broker's choice of an engine is told of a topic",
            BROKERS_CHOICE,
            "topics",
            rf",storage\.engine={STORAGE}$|(?<=Configs: )storage\.engine={STORAGE}(,|$)|storage\.engine={STORAGE},",
        ),
    ]


def normal(command: Command, stage: Stage, output: Output) -> list[str]:
    """The lines of an output as they are compared."""
    lines = [f"code {output.code}", *output.out.splitlines(), *(f"stderr: {line}" for line in output.err.splitlines())]
    kept = [line for line in (plain(command, stage, line) for line in lines) if line]
    return sorted(kept) if command.unordered else kept


def in_order(line: str) -> str:
    """An object of JSON with its fields by name: a JVM tells them in the order in which reflection found them."""
    if not line.startswith("{"):
        return line
    try:
        return json.dumps(json.loads(line), sort_keys=True, separators=(",", ":"))
    except ValueError:
        return line


def plain(command: Command, stage: Stage, line: str) -> str:
    line = in_order(line).replace(str(stage.files), "FILES").replace(str(stage.broker.folder), "FOLDER").rstrip()
    for pattern, instead in MADE_UP:
        line = re.sub(pattern, instead, line)
    line = re.sub(r"\s{2,}", "  ", line)  # columns are as wide as what was made up
    for rule in RULES:
        line = rule.apply(command, line)
    return line.rstrip()
