//! Features: levels that say what a cluster as a whole may use, raised and lowered by whoever looks
//! after it (KIP-584).
//!
//! Clients see which levels a broker supports and which one is in force. `metadata.version` counts
//! the forms of Kafka's own records of metadata, of which there are none here: tools read a release
//! of Kafka from it, and nothing else depends on it.

use std::collections::BTreeMap;
use std::fmt;

use crate::NodeId;

/// The feature that counts Kafka's metadata.
const METADATA_VERSION: &str = "metadata.version";

/// A feature that has levels here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Feature {
    /// Kafka's name of it.
    pub name: &'static str,
    /// The lowest level.
    pub min_level: i16,
    /// The highest level.
    pub max_level: i16,
    /// The level in a new folder.
    pub default_level: i16,
}

/// Every feature that has levels here. The numbers are Kafka 4.4's: 3.3-IV3 to 4.4-IV2.
pub static SUPPORTED_FEATURES: [Feature; 1] =
    [Feature { name: METADATA_VERSION, min_level: 7, max_level: 33, default_level: 33 }];

/// Levels of `metadata.version` that brought other forms of metadata than the level below them had:
/// Kafka does not go back behind one.
const METADATA_CHANGES: [i16; 11] = [7, 8, 11, 13, 14, 15, 17, 23, 30, 32, 33];

/// Which direction a change means to take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UpgradeType {
    /// Up.
    Upgrade,
    /// Down, unless metadata would be lost.
    SafeDowngrade,
    /// Down, whatever is lost.
    UnsafeDowngrade,
    /// None that there is.
    Unknown,
}

/// A wanted change of one feature.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeatureUpdate {
    /// Which feature.
    pub feature: String,
    /// The new level; 0 puts the feature out of force.
    pub level: i16,
    /// How it is meant.
    pub upgrade_type: UpgradeType,
}

/// Why a level was not changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeatureError {
    update: FeatureUpdate,
    reason: Reason,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Reason {
    UpgradeType,
    Negative,
    Unsupported(NodeId),
    Range(NodeId, Feature),
    NotFound,
    DowngradeUnasked,
    Newer,
    LosesMetadata { from: i16 },
    Unsafe { from: i16 },
}

impl fmt::Display for FeatureError {
    /// In Kafka's words: tools show them.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let FeatureUpdate { feature, level, .. } = &self.update;
        if let Reason::LosesMetadata { from } | Reason::Unsafe { from } = self.reason {
            write!(f, "Unsupported metadata.version downgrade from {from} to {level}. ")?;
        } else {
            write!(f, "Invalid update version {level} for feature {feature}. ")?;
        }
        match self.reason {
            Reason::UpgradeType => {
                f.write_str("The controller does not support the given upgrade type.")
            }
            Reason::Negative => f.write_str("A feature version cannot be less than 0."),
            Reason::Unsupported(node) => {
                write!(f, "Local controller {node} does not support this feature.")
            }
            Reason::Range(node, Feature { min_level, max_level, .. }) => {
                write!(f, "Local controller {node} only supports versions {min_level}-{max_level}")
            }
            Reason::NotFound => write!(f, "Feature {feature} not found."),
            Reason::DowngradeUnasked => f.write_str(
                "Can't downgrade the version of this feature without setting the upgrade type to \
                 either safe or unsafe downgrade.",
            ),
            Reason::Newer => f.write_str("Can't downgrade to a newer version."),
            Reason::LosesMetadata { .. } => f.write_str(
                "Refusing to perform the requested downgrade because it might delete metadata \
                 information.",
            ),
            Reason::Unsafe { .. } => {
                f.write_str("Unsafe metadata downgrade is not supported in this version.")
            }
        }
    }
}

impl std::error::Error for FeatureError {}

/// The levels in force, and how often they have changed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FeatureLevels {
    levels: BTreeMap<String, i16>,
    epoch: i64,
}

impl FeatureLevels {
    /// Levels as they were kept: also of features that this version does not know.
    pub const fn kept(levels: BTreeMap<String, i16>, epoch: i64) -> Self {
        Self { levels, epoch }
    }

    /// All levels that are to be kept.
    pub const fn levels(&self) -> &BTreeMap<String, i16> {
        &self.levels
    }

    /// How often levels have changed; clients take no levels of a lower epoch than they know.
    pub const fn epoch(&self) -> i64 {
        self.epoch
    }

    /// These with a level for each feature that has none yet: the one in `wanted`, or its default.
    /// The same when none is missing.
    #[must_use]
    pub fn complete(&self, wanted: &BTreeMap<String, i16>) -> Self {
        let mut levels = self.levels.clone();
        for feature in &SUPPORTED_FEATURES {
            let first = wanted.get(feature.name).copied().unwrap_or(feature.default_level);
            levels.entry(feature.name.to_owned()).or_insert(first);
        }
        self.followed_by(levels)
    }

    /// The features that are in force, each at its level; what this version can't do is not told.
    pub fn finalized(&self) -> impl Iterator<Item = (&'static str, i16)> {
        SUPPORTED_FEATURES.iter().filter_map(|feature| {
            let level = self.level(feature).min(feature.max_level);
            (level >= feature.min_level.max(1)).then_some((feature.name, level))
        })
    }

    /// These after all of `updates`, in the eyes of controller `node`; the same when nothing changes.
    pub fn updated(&self, updates: &[FeatureUpdate], node: NodeId) -> Result<Self, FeatureError> {
        let mut levels = self.levels.clone();
        for update in updates {
            let refused = |reason| FeatureError { update: update.clone(), reason };
            let feature = check(update, node).map_err(refused)?;
            self.check_step(feature, update).map_err(refused)?;
            levels.insert(feature.name.to_owned(), update.level);
        }
        Ok(self.followed_by(levels))
    }

    fn followed_by(&self, levels: BTreeMap<String, i16>) -> Self {
        let changes = i64::from(levels != self.levels);
        Self { levels, epoch: self.epoch + changes }
    }

    fn level(&self, feature: &Feature) -> i16 {
        self.levels.get(feature.name).copied().unwrap_or_default()
    }

    fn check_step(&self, feature: &Feature, update: &FeatureUpdate) -> Result<(), Reason> {
        let (from, to) = (self.level(feature), update.level);
        let is_upgrade = update.upgrade_type == UpgradeType::Upgrade;
        if to < from && is_upgrade {
            return Err(Reason::DowngradeUnasked);
        }
        if to > from && !is_upgrade {
            return Err(Reason::Newer);
        }
        let passed = |change: &i16| (to + 1..=from).contains(change);
        if feature.name == METADATA_VERSION && METADATA_CHANGES.iter().any(passed) {
            let is_unsafe = update.upgrade_type == UpgradeType::UnsafeDowngrade;
            return Err(if is_unsafe {
                Reason::Unsafe { from }
            } else {
                Reason::LosesMetadata { from }
            });
        }
        Ok(())
    }
}

/// The feature of an update, if it has such a level.
fn check(update: &FeatureUpdate, node: NodeId) -> Result<&'static Feature, Reason> {
    if update.upgrade_type == UpgradeType::Unknown {
        return Err(Reason::UpgradeType);
    }
    if update.level < 0 {
        return Err(Reason::Negative);
    }
    match SUPPORTED_FEATURES.iter().find(|feature| feature.name == update.feature) {
        None if update.level == 0 => Err(Reason::NotFound),
        None => Err(Reason::Unsupported(node)),
        Some(feature) if !(feature.min_level..=feature.max_level).contains(&update.level) => {
            Err(Reason::Range(node, *feature))
        }
        Some(feature) => Ok(feature),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metadata(level: i16) -> FeatureLevels {
        FeatureLevels::default().complete(&BTreeMap::from([(METADATA_VERSION.to_owned(), level)]))
    }

    fn updated(
        from: &FeatureLevels,
        feature: &str,
        level: i16,
        upgrade_type: UpgradeType,
    ) -> Result<FeatureLevels, String> {
        let update = FeatureUpdate { feature: feature.to_owned(), level, upgrade_type };
        from.updated(&[update], NodeId::new(1)).map_err(|error| error.to_string())
    }

    #[test]
    fn a_new_folder_has_default_levels_at_epoch_one() {
        let new = FeatureLevels::default().complete(&BTreeMap::new());
        assert_eq!(new.finalized().collect::<Vec<_>>(), [(METADATA_VERSION, 33)]);
        assert_eq!(new.epoch(), 1);
        assert_eq!(new.complete(&BTreeMap::from([(METADATA_VERSION.to_owned(), 7)])), new);
    }

    #[test]
    fn levels_of_another_version_are_kept_and_not_told() {
        let kept = BTreeMap::from([(METADATA_VERSION.to_owned(), 99), ("later".to_owned(), 2)]);
        let levels = FeatureLevels::kept(kept.clone(), 5).complete(&BTreeMap::new());
        assert_eq!(levels.finalized().collect::<Vec<_>>(), [(METADATA_VERSION, 33)]);
        assert_eq!((levels.levels(), levels.epoch()), (&kept, 5));
    }

    #[test]
    fn levels_rise_and_fall_as_kafkas() {
        use UpgradeType::{SafeDowngrade, Unknown, UnsafeDowngrade, Upgrade};
        let name = METADATA_VERSION;
        for (from, feature, level, upgrade_type, refusal) in [
            (7, name, 10, Upgrade, None),
            (7, name, 7, Upgrade, None),
            (33, name, 33, SafeDowngrade, None),
            (29, name, 23, SafeDowngrade, None),
            (29, name, 24, UnsafeDowngrade, None),
            (24, name, 22, SafeDowngrade, Some("might delete metadata")),
            (33, name, 32, SafeDowngrade, Some("downgrade from 33 to 32. Refusing")),
            (33, name, 30, UnsafeDowngrade, Some("Unsafe metadata downgrade is not supported")),
            (33, name, 31, Upgrade, Some("without setting the upgrade type")),
            (30, name, 31, SafeDowngrade, Some("Can't downgrade to a newer version.")),
            (33, name, 34, Upgrade, Some("Local controller 1 only supports versions 7-33")),
            (33, name, 0, SafeDowngrade, Some("Local controller 1 only supports versions 7-33")),
            (33, name, -1, SafeDowngrade, Some("cannot be less than 0")),
            (33, name, 33, Unknown, Some("does not support the given upgrade type")),
            (33, "group.version", 1, Upgrade, Some("does not support this feature.")),
            (33, "group.version", 0, SafeDowngrade, Some("Feature group.version not found.")),
        ] {
            let before = metadata(from);
            let case = format!("{feature} from {from} to {level} by {upgrade_type:?}");
            match (updated(&before, feature, level, upgrade_type), refusal) {
                (Ok(after), None) => {
                    assert_eq!(after.finalized().next(), Some((name, level)), "{case}");
                    assert_eq!(after.epoch(), 1 + i64::from(level != from), "{case}");
                }
                (Err(told), Some(words)) => assert!(told.contains(words), "{case}: {told}"),
                (result, _) => panic!("{case}: {result:?}"),
            }
        }
    }

    #[test]
    fn one_refusal_refuses_all() {
        let update = |feature: &str, level| FeatureUpdate {
            feature: feature.to_owned(),
            level,
            upgrade_type: UpgradeType::Upgrade,
        };
        let updates = [update(METADATA_VERSION, 20), update("missing", 1)];
        assert!(metadata(7).updated(&updates, NodeId::new(1)).is_err());
    }
}
