//! What the broker's configuration says about groups.

/// The settings of the group coordinator, from the configuration keys that each field names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GroupConfig {
    /// `group.initial.rebalance.delay.ms`
    pub initial_rebalance_delay_ms: u64,
    /// `group.min.session.timeout.ms`
    pub min_session_timeout_ms: i64,
    /// `group.max.session.timeout.ms`
    pub max_session_timeout_ms: i64,
    /// `group.max.size`
    pub max_size: usize,
    /// How long a member that has just been added may wait in its first JoinGroup. Kafka's is not
    /// configurable either.
    pub new_member_join_timeout_ms: u64,
    /// Protocols that a member may offer.
    pub member_protocols_max: usize,
    /// Bytes that members may say and be assigned together.
    pub group_bytes_max: usize,
    /// Bytes of the protocols that members may offer together: a generation walks them all.
    pub offer_bytes_max: usize,
    /// `offset.metadata.max.bytes`: like Kafka's, in UTF-16 units.
    pub offset_metadata_max: usize,
    /// `offsets.retention.minutes`
    pub offsets_retention_ms: i64,
    /// `offsets.retention.check.interval.ms`
    pub offsets_retention_check_interval_ms: u64,
}

impl Default for GroupConfig {
    /// Kafka's defaults.
    fn default() -> Self {
        Self {
            initial_rebalance_delay_ms: 3_000,
            min_session_timeout_ms: 6_000,
            max_session_timeout_ms: 1_800_000,
            max_size: i32::MAX as usize,
            new_member_join_timeout_ms: 5 * 60 * 1_000,
            member_protocols_max: 100,
            group_bytes_max: 8 * 1024 * 1024,
            offer_bytes_max: 64 * 1024 * 1024,
            offset_metadata_max: 4_096,
            offsets_retention_ms: 7 * 24 * 60 * 60 * 1_000,
            offsets_retention_check_interval_ms: 600_000,
        }
    }
}
