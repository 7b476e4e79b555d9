//! Every bound of the broker that is not a Kafka config key, in one place.

use crate::ByteCount;

/// The bounds that keep memory and work finite whatever a peer does.
///
/// Each field says what happens when it is reached. Kafka's own limits (`socket.request.max.bytes`,
/// `max.message.bytes`, …) are configuration, not limits in this sense.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Produce requests of one connection that wait for durability. Reached: the connection is not
    /// read until the oldest is answered.
    pub connection_pending_replies_max: usize,
    /// The largest frame of any API but Produce. Reached: the connection is closed.
    pub frame_bytes_max_except_produce: ByteCount,
    /// A request of any API but Produce that is larger than this is heavy: what it is decoded to,
    /// and its answer, are many times as large.
    pub heavy_request_bytes_min: ByteCount,
    /// Heavy requests at a time, counted until their answers are sent. Reached: the next one waits.
    pub heavy_requests_max: usize,
    /// Partitions that one fetch session may hold. Reached: the client gets no session and keeps
    /// sending full requests.
    pub fetch_session_partitions_max: usize,
    /// Bytes that all fetch sessions together may take, about 200 a partition. Reached: sessions that
    /// nobody uses are evicted, else the client gets none and keeps sending full requests.
    pub fetch_sessions_bytes_max: usize,
    /// Producers that one partition remembers. Reached: the one that was silent longest is forgotten
    /// and may begin with any sequence again.
    pub producers_per_partition_max: usize,
    /// Bytes that all connections together hold in request frames under way. Reached: connections
    /// are not read until others have been served.
    pub request_bytes_in_flight_max: ByteCount,
    /// Bytes of receive buffers that all workers together keep for the next frames, beside those of
    /// frames under way, for at most a second. Reached: a buffer goes back to the allocator.
    pub receive_buffer_bytes_kept_max: ByteCount,
    /// Bytes of memory in replies that all connections together owe their peers. Reached: few
    /// requests run at a time, and a peer that does not take its reply soon is hung up on.
    pub reply_bytes_owed_max: ByteCount,
    /// Members of one group, and ids that were given out for it and not used yet, however high
    /// `group.max.size` is. Reached: nobody is let in.
    pub group_members_max: usize,
    /// Protocols that a member of a group may offer. Reached: its join is refused.
    pub member_protocols_max: usize,
    /// Bytes that members of a group may say and be assigned together. Reached: the generation
    /// fails, and begins again.
    pub group_bytes_max: ByteCount,
    /// Bytes of the protocols that members of a group offer together. Reached: the join that offers
    /// more is refused.
    pub group_offer_bytes_max: ByteCount,
    /// Bytes that the records of one batch may decompress to where the broker has to read them.
    /// Reached: a produced batch is refused, a lookup in a stored one fails.
    pub batch_decompressed_bytes_max: ByteCount,
}

impl Limits {
    /// The bounds that `serve` runs with.
    pub const fn production() -> Self {
        Self {
            connection_pending_replies_max: 1024,
            frame_bytes_max_except_produce: ByteCount::mib(2),
            heavy_request_bytes_min: ByteCount::kib(64),
            heavy_requests_max: 4,
            fetch_session_partitions_max: 100_000,
            fetch_sessions_bytes_max: 64 << 20,
            producers_per_partition_max: 100_000,
            request_bytes_in_flight_max: ByteCount::mib(128),
            receive_buffer_bytes_kept_max: ByteCount::mib(48),
            reply_bytes_owed_max: ByteCount::mib(64),
            group_members_max: 100_000,
            member_protocols_max: 100,
            group_bytes_max: ByteCount::mib(8),
            group_offer_bytes_max: ByteCount::mib(64),
            batch_decompressed_bytes_max: ByteCount::mib(64),
        }
    }
}
