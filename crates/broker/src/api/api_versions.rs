//! ApiVersions: v0–v4. What is served, from the one table of it.
//!
//! An unknown version is answered with v0 and `UNSUPPORTED_VERSION` (KIP-511). Features are absent
//! until what they stand for is served; the epoch says that this is known, not unknown.

use strandline_wire::api_versions::{ApiVersion, Request, Response};
use strandline_wire::{ApiKey, ErrorCode, served};

/// Answers with everything that is served.
pub(crate) fn handle(request: &Request, version: i16) -> Response {
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
    Response {
        api_keys: served().iter().map(|api| row(api.key)).collect(),
        finalized_features_epoch: 0,
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
