use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::group::command::JoinRequest;
use crate::group::offer::PROTOCOL_BYTES;

/// What a group does to its members.
#[derive(Clone, Debug)]
enum Act {
    Add(usize, Vec<usize>),
    Remove(usize),
    Offer(usize, Vec<usize>, usize),
    OfferAgain(usize, usize),
    Park(usize),
    TakeJoin(usize),
    TakeParked(usize),
}

fn act() -> impl Strategy<Value = Act> {
    let offer = || vec(0..5_usize, 0..6);
    prop_oneof![
        3 => (0..6_usize, offer()).prop_map(|(id, offer)| Act::Add(id, offer)),
        1 => (0..6_usize).prop_map(Act::Remove),
        2 => (0..6_usize, offer(), 0..3_usize).prop_map(|(id, offer, more)| Act::Offer(id, offer, more)),
        2 => (0..6_usize, 0..3_usize).prop_map(|(id, more)| Act::OfferAgain(id, more)),
        2 => (0..6_usize).prop_map(Act::Park),
        1 => (0..6_usize).prop_map(Act::TakeJoin),
        1 => (0..6_usize).prop_map(Act::TakeParked),
    ]
}

/// Protocols of these numbers, each with metadata whose length is the number and `more`.
fn offer(numbers: &[usize], more: usize) -> Offer {
    let protocols: Vec<_> =
        numbers.iter().map(|number| (format!("p{number}"), vec![0; number + more])).collect();
    let protocols: Vec<_> = protocols.iter().map(|(name, more)| (&**name, &**more)).collect();
    Offer::new(&protocols)
}

fn member(id: &str, names: &[usize]) -> Member {
    let request = JoinRequest {
        group: Arc::from("g"),
        member: Arc::default(),
        instance: None,
        new_member: Arc::from(id),
        client_id: Arc::default(),
        client_host: Arc::default(),
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 10_000,
        protocol_type: Arc::from("consumer"),
        offer: offer(names, 0),
        requires_member_id: false,
        may_skip_assignment: false,
        reason: Arc::default(),
    };
    Member::joining(Arc::from(id), &request, ReplyToken(0))
}

fn apply(members: &mut Members, act: &Act) {
    let id = |number: &usize| format!("m{number}");
    match act {
        Act::Add(number, names) if !members.contains(&id(number)) => {
            members.insert(member(&id(number), names));
        }
        Act::Add(number, names) => members.offer(&id(number), offer(names, 0)),
        Act::Offer(number, names, more) => members.offer(&id(number), offer(names, *more)),
        Act::OfferAgain(number, more) => {
            if let Some(member) = members.get(&id(number)) {
                let same: Vec<usize> =
                    member.offer.names().map(|name| name[1..].parse().unwrap()).collect();
                members.offer(&id(number), offer(&same, *more));
            }
        }
        Act::Remove(number) => drop(members.remove(&id(number))),
        Act::Park(number) => drop(members.park_join(&id(number), ReplyToken(1))),
        Act::TakeJoin(number) => drop(members.take_join(&id(number))),
        Act::TakeParked(number) => drop(members.take_parked(&id(number))),
    }
}

fn speaks(member: &Member, name: &str) -> bool {
    member.offer.names().any(|own| own == name)
}

/// The rule of [`Members::favourite`], by walking all members for each protocol.
fn favourite_by_walking(members: &Members, leader: Option<&str>) -> Option<Arc<str>> {
    let first = members.iter().next()?;
    let is_common = |name: &str| members.iter().all(|member| speaks(member, name));
    let mut votes: BTreeMap<&str, usize> = BTreeMap::new();
    for member in members.iter() {
        let vote = member.offer.names().find(|name| is_common(name))?;
        *votes.entry(vote).or_default() += 1;
    }
    let most = votes.values().max().copied()?;
    let leader = leader.and_then(|id| members.get(id)).unwrap_or(first);
    let liked = leader.offer.names().find(|name| votes.get(name) == Some(&most));
    liked
        .or_else(|| votes.into_iter().find(|(_, count)| *count == most).map(|(name, _)| name))
        .map(Arc::from)
}

proptest! {
    #[test]
    fn what_is_counted_is_what_a_recount_finds(acts in vec(act(), 0..60), leader in 0..6_usize) {
        let mut members = Members::default();
        for act in &acts {
            apply(&mut members, act);
            let mut recounted: BTreeMap<Arc<str>, usize> = BTreeMap::new();
            for member in members.iter() {
                for name in distinct(&member.offer) {
                    *recounted.entry(Arc::from(name)).or_default() += 1;
                }
            }
            prop_assert_eq!(&members.offering, &recounted);
            let bytes: usize = members.iter().map(|member| member.offer.bytes()).sum();
            prop_assert_eq!(members.offer_bytes, bytes);
            let joined = members.iter().filter(|member| member.has_joined()).count();
            prop_assert_eq!(members.joined_count(), joined);
            for number in 0..6_usize {
                let name = format!("p{number}");
                let is_common = members.iter().all(|member| speaks(member, &name));
                prop_assert_eq!(members.all_offer(&name), is_common);
                for likely in [None, Some("p0"), Some("p3")] {
                    let has_in_common = members.have_in_common(&offer(&[number], 0), likely);
                    prop_assert_eq!(has_in_common, is_common);
                }
            }
            let leader = format!("m{leader}");
            for leader in [None, Some(&*leader)] {
                prop_assert_eq!(members.favourite(leader), favourite_by_walking(&members, leader));
            }
        }
    }
}

#[test]
fn a_new_offer_takes_the_place_of_the_old_one_in_what_all_take() {
    let mut members = Members::default();
    members.insert(member("m0", &[1, 2]));
    let before = members.offer_bytes;
    let after = members.offer_bytes_with(members.get("m0"), &offer(&[3], 0));
    assert_eq!(after, before - offer(&[1, 2], 0).bytes() + offer(&[3], 0).bytes());
    members.offer("m0", offer(&[3], 0));
    assert_eq!(members.offer_bytes, after);
    assert_eq!(members.offer_bytes_with(None, &offer(&[4], 0)), after + PROTOCOL_BYTES + 2 + 4);
}
