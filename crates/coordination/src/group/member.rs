//! A member of a classic group. What its group counts over all members is changed only through
//! [`Members`].

mod members;

use std::sync::Arc;

use bytes::Bytes;

use super::command::{JoinRequest, MemberId};
use super::offer::Offer;
use super::reply::{DescribedMember, JoinedMember};
use super::row::MemberSnapshot;
use crate::machine::ReplyToken;

pub(super) use members::Members;

/// A member.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) id: MemberId,
    pub(super) instance: Option<Arc<str>>,
    pub(super) client_id: Arc<str>,
    pub(super) client_host: Arc<str>,
    pub(super) session_timeout_ms: i32,
    pub(super) rebalance_timeout_ms: i32,
    /// After a restart only the protocol that was chosen.
    offer: Offer,
    pub(super) assignment: Bytes,
    /// It never was in a generation: its first join is parked.
    pub(super) is_new: bool,
    awaiting_join: Option<ReplyToken>,
    pub(super) awaiting_sync: Option<ReplyToken>,
}

impl Member {
    /// A member whose first join is parked.
    pub(super) fn joining(id: MemberId, request: &JoinRequest, token: ReplyToken) -> Self {
        Self {
            id,
            instance: request.instance.clone(),
            client_id: Arc::clone(&request.client_id),
            client_host: Arc::clone(&request.client_host),
            session_timeout_ms: request.session_timeout_ms,
            rebalance_timeout_ms: request.rebalance_timeout_ms,
            offer: request.offer.clone(),
            assignment: Bytes::new(),
            is_new: true,
            awaiting_join: Some(token),
            awaiting_sync: None,
        }
    }

    /// A member of the generation that was kept, with what it said under the chosen `protocol`.
    pub(super) fn restored(snapshot: MemberSnapshot, protocol: &str) -> Self {
        Self {
            id: snapshot.id,
            instance: snapshot.instance,
            client_id: snapshot.client_id,
            client_host: snapshot.client_host,
            session_timeout_ms: snapshot.session_timeout_ms,
            rebalance_timeout_ms: snapshot.rebalance_timeout_ms,
            offer: Offer::one(protocol, snapshot.subscription),
            assignment: snapshot.assignment,
            is_new: false,
            awaiting_join: None,
            awaiting_sync: None,
        }
    }

    pub(super) const fn offer(&self) -> &Offer {
        &self.offer
    }

    /// Whether it waits for the next generation.
    pub(super) const fn has_joined(&self) -> bool {
        self.awaiting_join.is_some()
    }

    /// Whether it needs no heartbeat now: it waits for us.
    pub(super) const fn is_waiting_for_us(&self) -> bool {
        // A new member may be gone without our noticing, so it expires even while it waits.
        !self.is_new && (self.awaiting_join.is_some() || self.awaiting_sync.is_some())
    }

    /// What it said under `protocol`; empty when it does not speak it.
    pub(super) fn metadata(&self, protocol: &str) -> Bytes {
        self.offer.metadata(protocol).unwrap_or_default()
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
