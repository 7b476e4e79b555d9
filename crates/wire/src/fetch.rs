//! Fetch: reads record batches.
//!
//! Versions 4 to 18. 5: log start offset. 7: sessions. 9: leader epochs. 11: racks. 12: flexible,
//! diverging epochs. 13: topics by id instead of by name. 15: the replica's state moves to a tagged
//! field. 16: endpoints of leaders. 17 and 18: fields of followers only.
//!
//! The broker's side is written here, because a response is encoded around records that lie
//! elsewhere; the generated messages are for clients and tests.

mod request;
mod response;
mod segments;

pub use request::{ForgottenTopic, PartitionRequest, ReplicaState, Request, TopicRequest};
pub use response::{AbortedTransaction, EpochEnd, PartitionResponse, Response, TopicResponse};
pub use segments::{Piece, Segments};

/// The generated messages, whose records are copied when they are written.
pub mod message {
    pub use kacrab_protocol::generated::fetch_request::{
        FetchPartition, FetchRequestData as Request, FetchTopic, ForgottenTopic, ReplicaState,
    };
    pub use kacrab_protocol::generated::fetch_response::{
        AbortedTransaction, EpochEndOffset, FetchResponseData as Response, FetchableTopicResponse,
        LeaderIdAndEpoch, NodeEndpoint, PartitionData, SnapshotId,
    };
}

/// The first version that names topics by id.
const BY_ID_FROM: i16 = 13;
