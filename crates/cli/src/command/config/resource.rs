//! What has configuration, as people write it: `topic:orders`, `broker:1`, `cluster`.

use strandline_client::ConfigResource;

/// For arguments.
pub(super) fn resource(text: &str) -> Result<ConfigResource, String> {
    let wrong = || {
        format!(
            "\"{text}\" is no resource; write topic:NAME, broker:ID, cluster, group:NAME or \
             client-metrics:NAME"
        )
    };
    if text == "cluster" {
        return Ok(ConfigResource::Cluster);
    }
    let (kind, name) = text.split_once(':').ok_or_else(wrong)?;
    let named = || if name.is_empty() { Err(wrong()) } else { Ok(name.to_owned()) };
    match kind {
        "topic" => named().map(ConfigResource::Topic),
        "group" => named().map(ConfigResource::Group),
        "client-metrics" => named().map(ConfigResource::ClientMetrics),
        "broker" => name
            .parse()
            .ok()
            .filter(|id: &i32| *id >= 0)
            .map(ConfigResource::Broker)
            .ok_or_else(wrong),
        _ => Err(wrong()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_are_a_kind_and_a_name() {
        for (text, expected) in [
            ("topic:orders", ConfigResource::Topic("orders".to_owned())),
            // Kafka lets a group have any name.
            ("group:a:b/c", ConfigResource::Group("a:b/c".to_owned())),
            ("broker:1", ConfigResource::Broker(1)),
            ("cluster", ConfigResource::Cluster),
            ("client-metrics:m", ConfigResource::ClientMetrics("m".to_owned())),
        ] {
            assert_eq!(resource(text), Ok(expected));
        }
        for wrong in ["orders", "topic:", "broker:x", "broker:-1", "broker", "cluster:1", "x:y"] {
            assert!(resource(wrong).is_err(), "{wrong}");
        }
    }
}
