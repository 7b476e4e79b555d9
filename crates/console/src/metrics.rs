//! Metrics: their names, and the text that scrapers read.
//!
//! Names are part of what we promise. Ours begin with `strandline_`; beside them stand the names
//! that dashboards for Kafka ask for, with the same values (`kafka.rs`).

mod family;
mod kafka;
mod ours;

use std::fmt;
use std::sync::Arc;

use axum::http::HeaderMap;
use axum::http::header::ACCEPT;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, prometheus_text, text};
use prometheus_client::registry::Registry;

use crate::Status;
use crate::process::Process;
use family::Families;

/// Partitions up to which each gets series of its own; above, topics have to do.
pub(crate) const LABELLED_PARTITIONS_MAX: usize = 2000;

/// The two text formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    OpenMetrics,
    Prometheus,
}

impl Format {
    /// `OpenMetrics` for whoever asks for it, else what every scraper reads.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let mut accepted = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok());
        if accepted.any(|value| value.contains("application/openmetrics-text")) {
            Self::OpenMetrics
        } else {
            Self::Prometheus
        }
    }

    pub(crate) const fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Prometheus => prometheus_text::CONTENT_TYPE,
        }
    }
}

/// All metrics, now.
pub(crate) fn text(status: Arc<dyn Status>, format: Format) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(All(status)));
    let mut text = String::new();
    let written = match format {
        Format::OpenMetrics => text::encode(&mut text, &registry),
        Format::Prometheus => prometheus_text::encode(&mut text, &registry),
    };
    written.expect("writing to a string does not fail");
    text
}

#[derive(Debug)]
struct All(Arc<dyn Status>);

impl Collector for All {
    fn encode(&self, encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let snapshot = self.0.snapshot();
        let mut families = Families(encoder);
        ours::encode(&mut families, &snapshot, &self.0.readiness())?;
        kafka::encode(&mut families, &snapshot)?;
        ours::encode_process(&mut families, &Process::now())
    }
}
