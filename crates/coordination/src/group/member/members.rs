//! The members of a classic group, with what is counted over them: so a request of one member costs
//! what that member says, however many others there are.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Index;
use std::sync::Arc;

use super::Member;
use crate::group::command::MemberId;
use crate::group::offer::Offer;
use crate::machine::ReplyToken;

/// Members by id.
///
/// # Invariants
/// The counts are those of the members: a protocol that a member offers twice counts once.
#[derive(Clone, Debug, Default)]
pub(in crate::group) struct Members {
    by_id: BTreeMap<MemberId, Member>,
    /// How many offer each protocol; none that nobody offers.
    offering: BTreeMap<Arc<str>, usize>,
    /// What all offers take together.
    offer_bytes: usize,
    /// How many wait for the next generation.
    joined: usize,
}

impl Members {
    pub(in crate::group) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(in crate::group) fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    pub(in crate::group) fn contains(&self, id: &str) -> bool {
        self.by_id.contains_key(id)
    }

    pub(in crate::group) fn get(&self, id: &str) -> Option<&Member> {
        self.by_id.get(id)
    }

    pub(in crate::group) fn get_mut(&mut self, id: &str) -> Option<&mut Member> {
        self.by_id.get_mut(id)
    }

    pub(in crate::group) fn ids(&self) -> impl Iterator<Item = &MemberId> {
        self.by_id.keys()
    }

    pub(in crate::group) fn iter(&self) -> impl Iterator<Item = &Member> {
        self.by_id.values()
    }

    pub(in crate::group) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Member> {
        self.by_id.values_mut()
    }

    /// Adds a member, in place of one with its id: a row may name a member twice.
    pub(in crate::group) fn insert(&mut self, member: Member) {
        self.remove(&member.id);
        self.joined += usize::from(member.has_joined());
        self.count(&member.offer);
        self.by_id.insert(Arc::clone(&member.id), member);
    }

    pub(in crate::group) fn remove(&mut self, id: &str) -> Option<Member> {
        let removed = self.by_id.remove(id)?;
        self.joined -= usize::from(removed.has_joined());
        self.discount(&removed.offer);
        Some(removed)
    }

    /// The member offers this from now on. Mostly that is what it offered before, or the same
    /// protocols with other metadata: then there is nothing to count.
    pub(in crate::group) fn offer(&mut self, id: &str, offer: Offer) {
        let Some(member) = self.by_id.get_mut(id) else { return };
        let old = std::mem::replace(&mut member.offer, offer.clone());
        if old.has_names_of(&offer) {
            self.offer_bytes = self.offer_bytes - old.bytes() + offer.bytes();
        } else {
            self.count(&offer);
            self.discount(&old);
        }
    }

    /// The member waits for the next generation. Returns what it waited with before.
    pub(in crate::group) fn park_join(
        &mut self,
        id: &str,
        token: ReplyToken,
    ) -> Option<ReplyToken> {
        let old = self.by_id.get_mut(id)?.awaiting_join.replace(token);
        self.joined += usize::from(old.is_none());
        old
    }

    /// The member waits for no generation any more.
    pub(in crate::group) fn take_join(&mut self, id: &str) -> Option<ReplyToken> {
        let taken = self.by_id.get_mut(id)?.awaiting_join.take();
        self.joined -= usize::from(taken.is_some());
        taken
    }

    /// The member waits for nothing any more: its parked join and sync.
    pub(in crate::group) fn take_parked(
        &mut self,
        id: &str,
    ) -> (Option<ReplyToken>, Option<ReplyToken>) {
        let join = self.take_join(id);
        (join, self.by_id.get_mut(id).and_then(|member| member.awaiting_sync.take()))
    }

    /// How many wait for the next generation.
    pub(in crate::group) const fn joined_count(&self) -> usize {
        self.joined
    }

    pub(in crate::group) fn all_joined(&self) -> bool {
        self.joined == self.by_id.len()
    }

    pub(in crate::group) fn all_offer(&self, protocol: &str) -> bool {
        self.offering.get(protocol).copied().unwrap_or(0) == self.by_id.len()
    }

    /// Whether all members offer one of these protocols. `likely` is the one that is looked for first.
    pub(in crate::group) fn have_in_common(&self, offer: &Offer, likely: Option<&str>) -> bool {
        likely.is_some_and(|likely| self.all_offer(likely) && offer.contains(likely))
            || offer.names().any(|name| self.all_offer(name))
    }

    /// What all offers take once `replaced` offers this, or a new member does.
    pub(in crate::group) fn offer_bytes_with(
        &self,
        replaced: Option<&Member>,
        offer: &Offer,
    ) -> usize {
        let less = replaced.map_or(0, |member| member.offer.bytes());
        self.offer_bytes - less + offer.bytes()
    }

    /// The protocol that most members like best among those that all can speak. Of several, the one
    /// that the leader likes best.
    pub(in crate::group) fn favourite(&self, leader: Option<&str>) -> Option<Arc<str>> {
        let first = self.by_id.values().next()?;
        let candidates: BTreeSet<&str> =
            first.offer.names().filter(|name| self.all_offer(name)).collect();
        if candidates.len() == 1 {
            return candidates.first().map(|&name| Arc::from(name));
        }
        let mut votes: BTreeMap<&str, usize> = BTreeMap::new();
        for member in self.by_id.values() {
            let vote = member.offer.names().find(|name| candidates.contains(name))?;
            *votes.entry(vote).or_default() += 1;
        }
        let most = votes.values().max().copied()?;
        let leader = leader.and_then(|id| self.by_id.get(id)).unwrap_or(first);
        (leader.offer.names().find(|name| votes.get(name) == Some(&most)))
            .or_else(|| votes.iter().find(|(_, count)| **count == most).map(|(name, _)| *name))
            .map(Arc::from)
    }

    fn count(&mut self, offer: &Offer) {
        self.offer_bytes += offer.bytes();
        for name in distinct(offer) {
            if let Some(count) = self.offering.get_mut(name) {
                *count += 1;
            } else {
                self.offering.insert(Arc::from(name), 1);
            }
        }
    }

    fn discount(&mut self, offer: &Offer) {
        self.offer_bytes -= offer.bytes();
        for name in distinct(offer) {
            if let Some(count) = self.offering.get_mut(name) {
                *count -= 1;
                if *count == 0 {
                    self.offering.remove(name);
                }
            }
        }
    }
}

impl Index<&str> for Members {
    type Output = Member;

    /// # Panics
    /// When there is no such member.
    fn index(&self, id: &str) -> &Member {
        &self.by_id[id]
    }
}

/// Each name once.
fn distinct(offer: &Offer) -> BTreeSet<&str> {
    offer.names().collect()
}

#[cfg(test)]
mod tests;
