//! The differences that are meant: at most twenty-five, each with the sentence of the design behind it.

use crate::run::{ABSENT, Difference};

/// A difference that is meant.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    /// What differs, in a few words.
    pub(crate) name: &'static str,
    /// The sentence behind it, with the place where it stands.
    pub(crate) because: &'static str,
    /// Whether it explains a difference.
    pub(crate) covers: fn(&Difference) -> bool,
}

/// The rules. More than this many would be a different protocol.
const RULES_MAX: usize = 25;
const _: () = assert!(RULES.len() <= RULES_MAX);

pub(crate) static RULES: [Rule; 15] = [
    Rule {
        name: "only what is served is advertised",
        because: "design §5: an API that is not served is not advertised; versions go up to what \
                  the codec generated from Kafka 4.3.0 has",
        covers: |d| {
            d.api == "ApiVersions"
                && (d.path == "api_keys.len"
                    || d.path.starts_with("api_keys[") && d.ours == ABSENT
                    || d.path.ends_with(".max_version") && at_least(&d.kafka, &d.ours))
        },
    },
    Rule {
        name: "features stay at zero or absent",
        because: "design §5: features in ApiVersions stay at 0 or absent until the thing is served",
        covers: |d| {
            d.api == "ApiVersions"
                && (d.path.starts_with("supported_features")
                    || d.path.starts_with("finalized_features"))
                && (d.ours == ABSENT || d.path.ends_with("features.len"))
        },
    },
    Rule {
        name: "the quorum has no log",
        because: "design §5: single-node leader semantics (metadata is rows, which nobody fetches)",
        covers: |d| {
            let of_a_log = ["leader_epoch", "high_watermark", "log_end_offset"];
            let of_a_controller = ["replica_directory_id", "listeners.len"];
            d.api == "DescribeQuorum"
                && (of_a_log.iter().chain(&of_a_controller).any(|field| d.path.ends_with(field))
                    || d.path.contains(".listeners[") && d.ours == ABSENT)
        },
    },
    Rule {
        name: "topics have keys of our own",
        because: "design §5: own keys and defaults (retention.records, retention.bytes.floor, \
                  storage.default, validate.compressed)",
        covers: |d| {
            let own = |key: &&str| d.path.contains(&format!("configs[{key}]"));
            d.kafka == ABSENT && OWN_KEYS.iter().any(own)
                || d.path.ends_with(".configs.len") && at_least(&d.ours, &d.kafka)
        },
    },
    Rule {
        name: "one replica needs no cluster-wide minimum of them",
        because: "design §5: single-node leader semantics; no home-made replication, ever",
        covers: |d| {
            d.path.contains("configs[min.insync.replicas]")
                && (d.path.ends_with(".config_source") || d.path.contains(".synonyms"))
        },
    },
    Rule {
        name: "unknown keys of brokers are refused",
        because: "design §5: unknown keys are an error with a suggestion (Kafka keeps them for \
                  plug-ins, and shows no value of them)",
        covers: |d| {
            ["my.own.key", "listener.name.plaintext.max.connections"]
                .iter()
                .any(|key| d.case.starts_with("4 ") && d.case.contains(key))
        },
    },
    Rule {
        name: "min.insync.replicas of a broker is bound by no feature",
        because: "design §5: features stay at 0 or absent until the thing is served (Kafka's \
                  refusals come with eligible.leader.replicas.version)",
        covers: |d| d.case.starts_with("4 ") && d.case.contains("min.insync.replicas"),
    },
    Rule {
        name: "an error says why where Kafka is silent",
        because: "design §6: reference/ux.md says how errors read (§3.4: what to do about it)",
        covers: |d| {
            d.path.ends_with("error_message")
                && matches!(d.kafka.as_str(), "None" | "")
                && d.ours == "<words>"
        },
    },
    Rule {
        name: "compressed batches are not looked into",
        because: "design §5: compressed ones are stored as they came and trusted beyond their \
                  header and CRC",
        covers: |d| {
            d.api == "Produce"
                && matches!(d.case.as_str(), "plain records called gzip" | "an unknown codec")
        },
    },
    Rule {
        name: "transactions are refused",
        because: "design §5: features stay at 0 or absent until the thing is served",
        covers: |d| {
            d.api == "InitProducerId" && d.case == "a transactional id"
                || d.api == "Produce" && d.case == "a transactional batch without an id"
        },
    },
    Rule {
        name: "a null array is read as an empty one",
        because: "design §5: the codec is generated from Kafka 4.3.0 (it does not tell them apart)",
        covers: |d| {
            // The second begins an array of ListOffsets with a negative length.
            matches!((d.case.as_str(), d.api), ("all ones", _) | ("alternating", "ListOffsets"))
                && d.kafka == "closed"
                && d.ours == "answer"
        },
    },
    Rule {
        name: "no batch is cut short",
        because: "design §3: read gives whole batches",
        covers: |d| {
            d.api == "Fetch"
                && d.path.starts_with("records[")
                && d.kafka == "cut short"
                && d.ours == ABSENT
        },
    },
    Rule {
        name: "null records are answered",
        because: "design §4: replies in request order (Kafka leaves this request without one)",
        covers: |d| {
            d.api == "Produce" && d.case == "null" && d.kafka == "silence" && d.ours == "answer"
        },
    },
    Rule {
        name: "old clients are told at once of a topic that their first use created",
        because: "design §4: create: one metadata commit, then logs open lazily (a client of before \
                  Metadata v10 that is told \"unknown\", as by Kafka, may not look again)",
        covers: |d| {
            d.api == "Metadata"
                && d.version < 10
                && d.case == "an unknown topic that is created"
                && d.path.starts_with("topics[created-by-metadata-")
        },
    },
    Rule {
        name: "what is named again is told once",
        because: "design §5: queues between tasks are bounded (so is what an answer holds: a group or a \
                  position may be large, and a small request may name it a hundred thousand times)",
        covers: |d| {
            let counts = ["groups.len", "topics.len", "partitions.len"];
            let is_count = counts.iter().any(|count| d.path.ends_with(count));
            (d.api == "DescribeGroups" || d.api == "OffsetFetch")
                && matches!(d.case.as_str(), "a group twice" | "a topic twice")
                && (d.ours == ABSENT || is_count && at_least(&d.kafka, &d.ours))
        },
    },
];

/// Topic configuration that Kafka does not have.
const OWN_KEYS: [&str; 4] =
    ["storage.engine", "retention.records", "retention.bytes.floor", "validate.compressed"];

fn at_least(larger: &str, smaller: &str) -> bool {
    matches!((larger.parse::<i64>(), smaller.parse::<i64>()), (Ok(a), Ok(b)) if a >= b)
}
