//! A member of a classic group.

use std::sync::Arc;

use bytes::Bytes;

use super::command::{JoinRequest, MemberId, Protocol};
use super::reply::{DescribedMember, JoinedMember};
use crate::machine::ReplyToken;

/// A member.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) id: MemberId,
    pub(super) instance: Option<Arc<str>>,
    pub(super) client_id: Arc<str>,
    pub(super) client_host: Arc<str>,
    pub(super) session_timeout_ms: i32,
    pub(super) rebalance_timeout_ms: i32,
    /// Best first. After a restart only the one that was chosen.
    pub(super) protocols: Vec<Protocol>,
    pub(super) assignment: Bytes,
    /// It never was in a generation: its first join is parked.
    pub(super) is_new: bool,
    pub(super) awaiting_join: Option<ReplyToken>,
    pub(super) awaiting_sync: Option<ReplyToken>,
}

impl Member {
    pub(super) fn new(id: MemberId, request: &JoinRequest) -> Self {
        Self {
            id,
            instance: request.instance.clone(),
            client_id: Arc::clone(&request.client_id),
            client_host: Arc::clone(&request.client_host),
            session_timeout_ms: request.session_timeout_ms,
            rebalance_timeout_ms: request.rebalance_timeout_ms,
            protocols: request.protocols.clone(),
            assignment: Bytes::new(),
            is_new: true,
            awaiting_join: None,
            awaiting_sync: None,
        }
    }

    /// Whether it needs no heartbeat now: it waits for us.
    pub(super) const fn is_waiting_for_us(&self) -> bool {
        // A new member may be gone without our noticing, so it expires even while it waits.
        !self.is_new && (self.awaiting_join.is_some() || self.awaiting_sync.is_some())
    }

    pub(super) fn speaks(&self, protocol: &str) -> bool {
        self.protocols.iter().any(|own| &*own.name == protocol)
    }

    /// What it said under `protocol`; empty when it does not speak it.
    pub(super) fn metadata(&self, protocol: &str) -> Bytes {
        let found = self.protocols.iter().find(|own| &*own.name == protocol);
        found.map(|own| own.metadata.clone()).unwrap_or_default()
    }

    pub(super) fn joined(&self, protocol: &str) -> JoinedMember {
        JoinedMember {
            member: Arc::clone(&self.id),
            instance: self.instance.clone(),
            metadata: self.metadata(protocol),
        }
    }

    /// `protocol` is that of a stable group; metadata is told only then.
    pub(super) fn described(&self, protocol: Option<&str>) -> DescribedMember {
        DescribedMember {
            member: Arc::clone(&self.id),
            instance: self.instance.clone(),
            client_id: Arc::clone(&self.client_id),
            client_host: Arc::clone(&self.client_host),
            metadata: protocol.map(|protocol| self.metadata(protocol)).unwrap_or_default(),
            assignment: self.assignment.clone(),
        }
    }
}
