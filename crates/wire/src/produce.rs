//! Produce: appends record batches.
//!
//! Versions 3 to 13. 5: log start offset in the response. 8: record errors and a message. 9:
//! flexible. 10: the current leader beside an error. 13: topics by id instead of by name.
//!
//! The broker's side is written here, because the records must stay where they arrived; the
//! generated messages are for clients and tests.

mod request;
mod response;

pub use request::{PartitionRequest, Request, TopicRequest};
pub use response::{PartitionResponse, RecordError, Response, TopicResponse};

/// The generated messages, whose records are copied when they are written.
pub mod message {
    pub use kacrab_protocol::generated::produce_request::{
        PartitionProduceData, ProduceRequestData as Request, TopicProduceData,
    };
    pub use kacrab_protocol::generated::produce_response::{
        BatchIndexAndErrorMessage, LeaderIdAndEpoch, NodeEndpoint, PartitionProduceResponse,
        ProduceResponseData as Response, TopicProduceResponse,
    };
}

/// The first version that names topics by id.
const BY_ID_FROM: i16 = 13;
