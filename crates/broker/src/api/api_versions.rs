//! ApiVersions: v0–v4. What is served, from the one table of it.
//!
//! An unknown version is answered with v0 and `UNSUPPORTED_VERSION` (KIP-511). Features are absent
//! until what they stand for is served.

use strandline_model::SUPPORTED_FEATURES;
use strandline_wire::api_versions::{
    ApiVersion, FinalizedFeatureKey, Request, Response, SupportedFeatureKey,
};
use strandline_wire::{ApiKey, ErrorCode, served};

use super::text;
use crate::Broker;

/// The first version whose clients understand a feature that may be at level 0.
const ZERO_LEVELS_FROM: i16 = 4;

/// Answers with everything that is served.
pub(crate) fn handle(broker: &Broker, request: &Request, version: i16) -> Response {
    // KIP-511: libraries name themselves, with Kafka's own rule for what a name may be.
    let named = |text: &str| {
        let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
        let edge = |c: char| c.is_ascii_alphanumeric();
        !text.is_empty()
            && text.starts_with(edge)
            && text.ends_with(edge)
            && text.chars().all(inner)
    };
    let well_named = named(request.client_software_name.as_str())
        && named(request.client_software_version.as_str());
    if version >= 3 && !well_named {
        return Response { error_code: ErrorCode::INVALID_REQUEST.get(), ..Response::default() };
    }
    let levels = broker.features().now();
    let told = |min_level| min_level > 0 || version >= ZERO_LEVELS_FROM;
    let supported = SUPPORTED_FEATURES.iter().filter(|feature| told(feature.min_level));
    Response {
        api_keys: served().iter().map(|api| row(api.key)).collect(),
        supported_features: supported
            .map(|feature| SupportedFeatureKey {
                name: text(feature.name),
                min_version: feature.min_level,
                max_version: feature.max_level,
                ..SupportedFeatureKey::default()
            })
            .collect(),
        finalized_features_epoch: levels.epoch(),
        finalized_features: levels
            .finalized()
            .map(|(name, level)| FinalizedFeatureKey {
                name: text(name),
                min_version_level: level,
                max_version_level: level,
                ..FinalizedFeatureKey::default()
            })
            .collect(),
        ..Response::default()
    }
}

/// Answers a version that is not served, in v0.
pub(crate) fn unsupported() -> Response {
    Response {
        error_code: ErrorCode::UNSUPPORTED_VERSION.get(),
        api_keys: vec![row(ApiKey::ApiVersions)],
        ..Response::default()
    }
}

fn row(key: ApiKey) -> ApiVersion {
    let api = key.served();
    ApiVersion {
        api_key: key.number(),
        min_version: api.advertised_from,
        max_version: api.max_version,
        ..ApiVersion::default()
    }
}
