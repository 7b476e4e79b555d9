//! One group with its positions, and when they are not used any more.

use std::sync::Arc;

use strandline_model::{Timestamp, TopicId};

use super::classic::ClassicGroup;
use super::command::GroupId;
use super::error::GroupError;
use super::offsets::{CommittedOffset, Offsets};
use super::row::GroupRow;
use super::state::GroupState;
use super::turn::Turn;

/// A group. One that was never joined, and only has positions, is what Kafka calls a simple group.
#[derive(Clone, Debug)]
pub(super) struct Group {
    pub(super) classic: ClassicGroup,
    pub(super) offsets: Offsets,
}

/// From when the retention of a position counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Base {
    /// The position is in use.
    Never,
    /// Since the group is empty.
    Empty(Timestamp),
    /// Since it was committed.
    Commit,
}

impl Group {
    pub(super) fn new(id: GroupId, now: Timestamp) -> Self {
        Self { classic: ClassicGroup::new(id, now), offsets: Offsets::default() }
    }

    pub(super) const fn of(classic: ClassicGroup, offsets: Offsets) -> Self {
        Self { classic, offsets }
    }

    /// Forgets positions that are not used any more. Says whether the group is of no use either.
    pub(super) fn expire(&mut self, turn: &mut Turn<'_>) -> bool {
        let base = self.retention_base();
        let retention_ms = turn.config.offsets_retention_ms;
        let now = turn.now.time;
        let mut expired: Vec<(TopicId, i32)> = Vec::new();
        for (topic_id, topic) in self.offsets.topics() {
            let name = topic.name.as_deref();
            if name.is_some_and(|name| self.classic.is_subscribed_to(name)) {
                continue;
            }
            let of_topic = topic.partitions.iter();
            let of_topic =
                of_topic.filter(|(_, offset)| is_expired(offset, base, now, retention_ms));
            expired.extend(of_topic.map(|(partition, _)| (topic_id, *partition)));
        }
        for (topic_id, partition) in expired {
            turn.out.rows.extend(self.offsets.remove(&self.classic.id, topic_id, partition));
        }
        // Somebody whom an id was given to is about to join.
        let is_unused = self.classic.is_empty() && self.classic.pending_joins.is_empty();
        self.offsets.is_empty() && is_unused
    }

    fn retention_base(&self) -> Base {
        let group = &self.classic;
        if group.protocol_type.is_none() {
            return Base::Commit;
        }
        match group.state {
            GroupState::Empty => Base::Empty(group.since),
            GroupState::Stable if group.uses_consumer_protocol() && group.subscribed.is_some() => {
                Base::Commit
            }
            GroupState::Stable
            | GroupState::PreparingRebalance
            | GroupState::CompletingRebalance => Base::Never,
        }
    }

    /// Forgets the whole group, if nobody is in it.
    pub(super) fn delete(&mut self, turn: &mut Turn<'_>) -> Result<(), GroupError> {
        if !self.classic.is_empty() {
            return Err(GroupError::NonEmptyGroup);
        }
        self.remove_rows(turn);
        Ok(())
    }

    pub(super) fn remove_rows(&mut self, turn: &mut Turn<'_>) {
        turn.out.rows.extend(self.offsets.remove_all(&self.classic.id));
        turn.out.rows.push(GroupRow::Group(Arc::clone(&self.classic.id), None));
        for member in &self.classic.pending_joins {
            turn.timers.cancel(&self.classic.session_key(member));
        }
    }
}

fn is_expired(offset: &CommittedOffset, base: Base, now: Timestamp, retention_ms: i64) -> bool {
    if base == Base::Never {
        return false;
    }
    if let Some(expires_at) = offset.expires_at {
        return now >= expires_at;
    }
    let from = match base {
        Base::Never => return false,
        Base::Empty(since) => since,
        Base::Commit => offset.committed_at,
    };
    now.millis_since(from) >= retention_ms
}
