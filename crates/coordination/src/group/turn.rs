//! What a step works with beside the group that it is about.

use std::time::Duration;

use super::cause::GroupEvent;
use super::command::{GroupId, MemberId};
use super::config::GroupConfig;
use super::error::GroupError;
use super::member::Member;
use super::reply::{GroupReply, JoinRefused};
use super::row::GroupRow;
use crate::machine::{Effects, Now, ReplyToken};
use crate::timers::Timers;

/// What a deadline is for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum TimerKey {
    /// Offsets that are not used any more are looked for.
    Retention,
    /// A member, or an id that was given out, was silent for too long.
    Session(GroupId, MemberId),
    /// A rebalance has waited long enough for members to join.
    Join(GroupId),
    /// Members had long enough to fetch their assignment.
    Sync(GroupId),
}

/// See the [module](self).
pub(super) struct Turn<'a> {
    pub(super) now: Now,
    pub(super) config: &'a GroupConfig,
    pub(super) timers: &'a mut Timers<TimerKey>,
    pub(super) out: &'a mut Effects<GroupReply, GroupRow, GroupEvent>,
}

impl Turn<'_> {
    pub(super) fn set_timer(&mut self, key: TimerKey, after_ms: u64) {
        let at = self.now.elapsed.saturating_add(Duration::from_millis(after_ms));
        self.timers.set(key, at);
    }

    pub(super) fn refuse_join(&mut self, token: ReplyToken, member: &MemberId, error: GroupError) {
        let refused = JoinRefused { member: MemberId::clone(member), error };
        self.out.reply(token, GroupReply::Join(Err(refused)));
    }

    pub(super) fn refuse_sync(&mut self, token: ReplyToken, error: GroupError) {
        self.out.reply(token, GroupReply::Sync(Err(error)));
    }

    /// Parks a sync. One of the same member that is parked already ends: its client has sent another.
    pub(super) fn park_sync(&mut self, member: &mut Member, token: ReplyToken) {
        if let Some(old) = member.awaiting_sync.replace(token) {
            self.refuse_sync(old, GroupError::RebalanceInProgress);
        }
    }

    /// Answers what a member waits for that is about to go.
    pub(super) fn drop_parked(&mut self, (join, sync): (Option<ReplyToken>, Option<ReplyToken>)) {
        if let Some(token) = join {
            self.refuse_join(token, &MemberId::default(), GroupError::UnknownMember);
        }
        if let Some(token) = sync {
            self.refuse_sync(token, GroupError::UnknownMember);
        }
    }
}
