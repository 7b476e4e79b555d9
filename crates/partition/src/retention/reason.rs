//! Why a segment goes or stays, as codes that people and programs are told.

/// Which limit removes a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Cause {
    /// It lies below the log start: somebody deleted its records.
    LogStart,
    /// The log is larger than `retention.bytes` allows.
    Bytes,
    /// The log has more records than `retention.records`.
    Records,
    /// Its newest record is older than `retention.ms`.
    Age,
}

impl Cause {
    /// All of them, in the order in which they are looked at.
    pub const ALL: [Self; 4] = [Self::LogStart, Self::Bytes, Self::Records, Self::Age];

    /// The key that sets the limit, or what stands for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::LogStart => "log_start",
            Self::Bytes => "retention.bytes",
            Self::Records => "retention.records",
            Self::Age => "retention.ms",
        }
    }
}

/// Why a segment is still there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// Its newest record is not older than `retention.ms`.
    NotExpired,
    /// It is beyond its limit, but an older segment is not: segments go in order.
    BehindBlocker,
    /// Its times lie in the future of the broker's clock: its age counts from when it was first seen.
    FutureTimestamp,
    /// The log is over its limit, but this segment has the newest records.
    OpenSegment,
    /// It is beyond its limit, but not durable yet.
    AboveHighWatermark,
    /// The log is within `retention.bytes`.
    SizeWithinLimit,
    /// Without it the log would have less than `retention.bytes` (`retention.bytes.floor`).
    SizeFloor,
    /// The log is within `retention.records`.
    CountWithinLimit,
    /// Nothing limits the log.
    Unlimited,
    /// `cleanup.policy` is `compact`: records go when newer ones of their key come.
    CompactOnly,
    /// `cleanup.policy` is empty.
    PolicyEmpty,
}

impl Reason {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::NotExpired,
        Self::BehindBlocker,
        Self::FutureTimestamp,
        Self::OpenSegment,
        Self::AboveHighWatermark,
        Self::SizeWithinLimit,
        Self::SizeFloor,
        Self::CountWithinLimit,
        Self::Unlimited,
        Self::CompactOnly,
        Self::PolicyEmpty,
    ];

    /// What it means, in a sentence or two for people.
    pub const fn meaning(self) -> &'static str {
        match self {
            Self::NotExpired => {
                "Its newest record is not older than retention.ms; segments go as a whole."
            }
            Self::BehindBlocker => {
                "It is beyond a limit, but an older segment is not yet: segments go in order."
            }
            Self::FutureTimestamp => {
                "Its times lie in the future of the broker's clock: its age counts from when \
                 retention first saw it."
            }
            Self::OpenSegment => {
                "The log is over its limit, but a size or a count never takes the segment with the \
                 newest records. It goes when newer ones have come, or by age."
            }
            Self::AboveHighWatermark => "It is beyond a limit, but not durable yet.",
            Self::SizeWithinLimit => "The log is within retention.bytes.",
            Self::SizeFloor => {
                "Without it the log would have less than retention.bytes, which \
                 retention.bytes.floor makes a lower bound."
            }
            Self::CountWithinLimit => "The log is within retention.records.",
            Self::Unlimited => "Neither age, size nor count is limited.",
            Self::CompactOnly => {
                "cleanup.policy is compact: a record goes when a newer one of its key comes, never \
                 by a limit."
            }
            Self::PolicyEmpty => "cleanup.policy is empty: records stay for ever.",
        }
    }

    /// The code, as it is served and explained.
    pub const fn code(self) -> &'static str {
        match self {
            Self::NotExpired => "not_expired",
            Self::BehindBlocker => "behind_blocker",
            Self::FutureTimestamp => "future_timestamp",
            Self::OpenSegment => "open_segment",
            Self::AboveHighWatermark => "above_high_watermark",
            Self::SizeWithinLimit => "size_within_limit",
            Self::SizeFloor => "size_floor",
            Self::CountWithinLimit => "count_within_limit",
            Self::Unlimited => "unlimited",
            Self::CompactOnly => "compact_only",
            Self::PolicyEmpty => "policy_empty",
        }
    }
}
