//! UpdateFeatures: v0–v2 (KIP-584, KIP-778). v1 kinds of downgrades, and checks only; v2 one result for
//! all features.

use std::collections::BTreeMap;
use std::sync::Arc;

use strandline_model::{FeatureUpdate, UpgradeType};
use strandline_wire::ErrorCode;
use strandline_wire::update_features::{
    FeatureUpdateKey, Request, Response, UpdatableFeatureResult,
};

use super::text;
use crate::{Broker, error_code};

/// The last version with a result for each feature.
const RESULTS_UNTIL: i16 = 1;

/// Changes levels, all or none.
pub(crate) async fn handle(broker: &Arc<Broker>, request: Request, version: i16) -> Response {
    // As Kafka: of several levels for one feature the last counts.
    let updates: BTreeMap<&str, FeatureUpdate> =
        request.feature_updates.iter().map(|key| (key.feature.as_str(), update(key))).collect();
    let features: Vec<String> = updates.keys().map(|&feature| feature.to_owned()).collect();
    let updates = updates.into_values().collect();
    if let Err(error) = broker.update_features(updates, request.validate_only).await {
        let message = format!(
            "The update failed for all features since the following feature had an error: {error}"
        );
        return Response {
            error_code: error_code::update_features(&error).get(),
            error_message: Some(text(message)),
            ..Response::default()
        };
    }
    let result = |feature: String| UpdatableFeatureResult {
        feature: text(feature),
        error_code: ErrorCode::NONE.get(),
        // Kafka's words for it.
        error_message: Some(text("NONE")),
        ..UpdatableFeatureResult::default()
    };
    let told = version <= RESULTS_UNTIL;
    Response {
        results: features.into_iter().filter(|_| told).map(result).collect(),
        ..Response::default()
    }
}

fn update(update: &FeatureUpdateKey) -> FeatureUpdate {
    FeatureUpdate {
        feature: update.feature.as_str().to_owned(),
        level: update.max_version_level,
        upgrade_type: match update.upgrade_type {
            1 => UpgradeType::Upgrade,
            2 => UpgradeType::SafeDowngrade,
            3 => UpgradeType::UnsafeDowngrade,
            _ => UpgradeType::Unknown,
        },
    }
}
