//! The states of a classic group.

/// Where a group is between two rebalances. A group that is gone is in none of them: Kafka calls it
/// `Dead`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum GroupState {
    /// No members.
    Empty,
    /// Waits for members to join.
    PreparingRebalance,
    /// Waits for the leader to assign.
    CompletingRebalance,
    /// Every member may have its assignment.
    Stable,
}

impl GroupState {
    /// Kafka's name of it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::PreparingRebalance => "PreparingRebalance",
            Self::CompletingRebalance => "CompletingRebalance",
            Self::Stable => "Stable",
        }
    }
}
