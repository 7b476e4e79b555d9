//! What to do about errors and keys: one table for `explain` and for the errors of all commands.

/// What to do about the words that people ask for most.
pub(super) fn advice(name: &str) -> &'static [&'static str] {
    match name {
        "OFFSET_OUT_OF_RANGE" => &[
            "the records were removed (retention, trim), or the topic was made anew",
            "see: strandline topic offsets TOPIC   move on: strandline group seek GROUP --to start",
        ],
        "UNKNOWN_TOPIC_OR_PARTITION" => {
            &["list: strandline topic list   create: strandline topic create NAME"]
        }
        "MESSAGE_TOO_LARGE" | "RECORD_LIST_TOO_LARGE" => {
            &["raise the limit: strandline topic alter TOPIC -c max.message.bytes=2MiB"]
        }
        "INVALID_PARTITIONS" => &["partitions can only be added, and there must be one at least"],
        "INVALID_REPLICATION_FACTOR" => &["no more replicas than brokers: strandline cluster info"],
        "INVALID_CONFIG" => {
            &["the keys: strandline config reference   one: strandline explain KEY"]
        }
        "UNSUPPORTED_VERSION" => &["what each node serves: strandline cluster apis"],
        "NON_EMPTY_GROUP" => &["its members: strandline group describe GROUP   stop them first"],
        "GROUP_ID_NOT_FOUND" => &["list: strandline group list"],
        "GROUP_SUBSCRIBED_TO_TOPIC" => {
            &["members of the group read the topic: strandline group describe GROUP"]
        }
        "advertised.listeners" | "LEADER_NOT_AVAILABLE" | "BROKER_NOT_AVAILABLE" => &[
            "clients connect to the address that they were told, not to the one they began with",
            "who was told what, and who never arrived: strandline client list",
            "tell all clients a name that works for them: \
             strandline serve -c advertised.listeners=PLAINTEXT://HOST:PORT",
        ],
        _ => &[],
    }
}
