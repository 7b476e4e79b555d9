//! What a broker speaks: versions of APIs, and features of the cluster.

use std::collections::BTreeMap;

use strandline_wire::api_versions;

use crate::{Client, ClientError};

/// What a broker speaks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeVersions {
    /// The APIs that it serves, by their number.
    pub apis: Vec<ApiRange>,
    /// The features that it knows or that are in force, by name.
    pub features: Vec<Feature>,
}

/// The versions of an API that a broker serves; both ends are included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ApiRange {
    /// Kafka's number of the API.
    pub key: i16,
    /// The first version.
    pub min_version: i16,
    /// The last version.
    pub max_version: i16,
}

/// A feature of a cluster (KIP-584).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Feature {
    /// Kafka's name: `group.version`.
    pub name: String,
    /// The levels that this broker knows, both ends included.
    pub supported: Option<(i16, i16)>,
    /// The level that is in force in the cluster.
    pub finalized: Option<i16>,
}

impl NodeVersions {
    pub(crate) fn from_wire(response: &api_versions::Response) -> Self {
        let api = |api: &api_versions::ApiVersion| ApiRange {
            key: api.api_key,
            min_version: api.min_version,
            max_version: api.max_version,
        };
        let mut apis: Vec<ApiRange> = response.api_keys.iter().map(api).collect();
        apis.sort_by_key(|api| api.key);
        let mut features: BTreeMap<String, Feature> = BTreeMap::new();
        let entry = |name: String| Feature { name, supported: None, finalized: None };
        for supported in &response.supported_features {
            let name = supported.name.to_string();
            let feature = features.entry(name.clone()).or_insert_with(|| entry(name));
            feature.supported = Some((supported.min_version, supported.max_version));
        }
        for finalized in &response.finalized_features {
            let name = finalized.name.to_string();
            let feature = features.entry(name.clone()).or_insert_with(|| entry(name));
            feature.finalized = Some(finalized.max_version_level);
        }
        Self { apis, features: features.into_values().collect() }
    }
}

impl Client {
    /// What one broker of the cluster speaks, as it said when the connection to it was made.
    pub async fn versions_of(&mut self, node_id: i32) -> Result<NodeVersions, ClientError> {
        if !self.knows_broker(node_id) {
            self.cluster(Some(&[])).await?;
        }
        Ok(NodeVersions::from_wire(self.broker(node_id).await?.said()))
    }
}
