//! What settings amount to, in a few words: for `config check` and `serve --dry-run`.

use strandline_model::ByteCount;
use strandline_model::config::{Listener, Overrides};

use super::Plan;

impl Plan {
    /// What the settings amount to.
    pub(crate) fn meaning(&self) -> Vec<(&'static str, String)> {
        let listed = |listeners: &[Listener]| {
            let texts: Vec<String> = listeners.iter().map(ToString::to_string).collect();
            texts.join(",")
        };
        let topic = self.layers().topic_config(&Overrides::default());
        let advertised = match self.config.advertised_listeners.as_slice() {
            [] => "auto: the address that each client used".to_owned(),
            some => listed(some),
        };
        let limit = |limit: Option<u64>| limit.map_or("no limit".to_owned(), |n| n.to_string());
        vec![
            ("node", self.config.node_id.to_string()),
            ("listeners", listed(&self.config.listeners)),
            ("advertised", advertised),
            ("http", listed(&self.config.http_listeners)),
            ("data", self.storage.to_string()),
            ("fsync", self.config.storage_file_fsync.to_string()),
            (
                "retention",
                format!(
                    "{} ms, {} bytes",
                    limit(topic.retention_ms),
                    limit(topic.retention_bytes.map(ByteCount::get)),
                ),
            ),
        ]
    }
}
