//! What is there beside what metadata says: a table of all cases, and what holds for any.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use strandline_model::{PartitionId, PartitionIndex, Timestamp, TopicId};
use strandline_partition::reconcile::{
    Claim, Claims, Comparison, Inventory, compare, confirmed, purge_at,
};

fn id(topic: u8, index: u32) -> PartitionId {
    PartitionId::new(TopicId::from_bytes([topic; 16]), PartitionIndex::new(index))
}

const SINCE: Timestamp = Timestamp::from_millis(1_000);

/// Each class with what it holds.
fn classes(comparison: &Comparison) -> [(&'static str, Vec<PartitionId>); 8] {
    let Comparison { known, missing, damaged, unreadable, returned, pending, unknown, quarantined } =
        comparison;
    [
        ("known", known.clone()),
        ("missing", missing.iter().map(|one| one.id).collect()),
        ("damaged", damaged.iter().map(|one| one.id).collect()),
        ("unreadable", unreadable.iter().map(|one| one.id).collect()),
        ("returned", returned.clone()),
        ("pending", pending.clone()),
        ("unknown", unknown.clone()),
        ("quarantined", quarantined.clone()),
    ]
}

#[test]
fn each_case_has_one_class() {
    let topic = Some(Claim::Topic { partition_count: 2 });
    let deletion = Some(Claim::Deletion { partition_count: 2 });
    // claim, index, in quarantine, lost → class
    #[rustfmt::skip]
    let cases = [
        (topic,    0, false, false, "known"),
        (topic,    1, false, true,  "missing"),
        (topic,    1, true,  false, "returned"),
        (topic,    0, true,  true,  "returned"),
        // Beyond the count of its topic: nobody made it.
        (topic,    2, false, false, "unknown"),
        (topic,    2, false, true,  "unknown"),
        (topic,    2, true,  false, "quarantined"),
        (topic,    2, true,  true,  "quarantined"),
        // It goes anyway, whatever it has lost.
        (deletion, 0, false, false, "pending"),
        (deletion, 0, false, true,  "pending"),
        (deletion, 1, true,  false, "pending"),
        (deletion, 1, true,  true,  "pending"),
        (deletion, 2, false, false, "unknown"),
        (deletion, 2, true,  false, "quarantined"),
        (None,     0, false, false, "unknown"),
        (None,     0, false, true,  "unknown"),
        (None,     0, true,  false, "quarantined"),
        (None,     0, true,  true,  "quarantined"),
    ];
    for (claim, index, in_quarantine, lost, class) in cases {
        let id = id(7, index);
        let inventory = Inventory {
            listed: BTreeSet::from([id]),
            quarantined: in_quarantine.then_some((id, SINCE)).into_iter().collect(),
            lost: lost.then(|| (id, "gone".to_owned())).into_iter().collect(),
            ..Inventory::default()
        };
        let claims: Claims = claim.map(|claim| (id.topic_id, claim)).into_iter().collect();
        let comparison = compare(&inventory, &claims);
        let found = classes(&comparison).into_iter().filter(|(_, ids)| ids.contains(&id));
        let found: Vec<_> = found.map(|(name, _)| name).collect();
        assert_eq!(found, [class], "{claim:?} {index} {in_quarantine} {lost}");
        if class == "missing" {
            assert_eq!(comparison.missing[0].what, "gone");
        }
    }
}

#[test]
fn what_could_not_be_looked_at_is_neither_whole_nor_lost_and_no_stranger_for_it() {
    let claims = Claims::from([(id(7, 0).topic_id, Claim::Topic { partition_count: 1 })]);
    let inventory = |index, in_quarantine: bool, lost: bool| Inventory {
        listed: BTreeSet::from([id(7, index)]),
        quarantined: in_quarantine.then_some((id(7, index), SINCE)).into_iter().collect(),
        lost: lost.then(|| (id(7, index), "gone".to_owned())).into_iter().collect(),
        damaged: BTreeMap::new(),
        unreadable: BTreeMap::from([(id(7, index), "i/o error".to_owned())]),
    };
    let cases = [
        (0, false, false, "unreadable"),
        // What is known to be gone matters more.
        (0, false, true, "missing"),
        (0, true, false, "returned"),
        (1, false, false, "unknown"),
        (1, true, false, "quarantined"),
    ];
    for (index, in_quarantine, lost, class) in cases {
        let comparison = compare(&inventory(index, in_quarantine, lost), &claims);
        let found = classes(&comparison).into_iter().filter(|(_, ids)| !ids.is_empty());
        let found: Vec<_> = found.map(|(name, _)| name).collect();
        assert_eq!(found, [class], "{index} {in_quarantine} {lost}");
        assert!(class != "unreadable" || comparison.unreadable[0].what == "i/o error");
    }
}

#[test]
fn what_has_lost_a_part_is_told_of_and_served() {
    let claims = Claims::from([(id(7, 0).topic_id, Claim::Topic { partition_count: 1 })]);
    let all = |id: PartitionId, what: &str| BTreeMap::from([(id, what.to_owned())]);
    // index, in quarantine, lost as a whole, could not be looked at → class
    let cases = [
        (0, false, false, false, "damaged"),
        (0, false, false, true, "damaged"),
        (0, false, true, false, "missing"),
        (0, true, false, false, "returned"),
        (1, false, false, false, "unknown"),
        (1, true, false, false, "quarantined"),
    ];
    for (index, in_quarantine, is_lost, is_hidden, class) in cases {
        let id = id(7, index);
        let inventory = Inventory {
            listed: BTreeSet::from([id]),
            quarantined: in_quarantine.then_some((id, SINCE)).into_iter().collect(),
            lost: if is_lost { all(id, "gone") } else { BTreeMap::new() },
            damaged: all(id, "shorter"),
            unreadable: if is_hidden { all(id, "i/o error") } else { BTreeMap::new() },
        };
        let comparison = compare(&inventory, &claims);
        let found = classes(&comparison).into_iter().filter(|(_, ids)| !ids.is_empty());
        let found: Vec<_> = found.map(|(name, _)| name).collect();
        assert_eq!(found, [class], "{index} {in_quarantine} {is_lost} {is_hidden}");
        assert!(class != "damaged" || comparison.damaged[0].what == "shorter");
    }
}

#[test]
fn a_topic_that_nothing_was_written_to_has_lost_nothing() {
    let claims = Claims::from([(id(1, 0).topic_id, Claim::Topic { partition_count: 5 })]);
    assert_eq!(compare(&Inventory::default(), &claims), Comparison::default());
}

#[test]
fn what_one_look_takes_for_unknown_is_not_enough() {
    let look =
        |unknown: &[PartitionId]| Comparison { unknown: unknown.to_vec(), ..Comparison::default() };
    let (first, second) = (look(&[id(1, 0), id(2, 0)]), look(&[id(2, 0), id(3, 0)]));
    assert_eq!(confirmed(&first, &second), [id(2, 0)]);
    assert_eq!(confirmed(&look(&[]), &second), []);
}

#[test]
fn a_purge_comes_after_its_time_or_never() {
    let cases = [
        (0, Some(0), Some(0)),
        (1_000, Some(5), Some(1_005)),
        (1_000, None, None),
        (i64::MAX - 1, Some(2), None),
        (1_000, Some(u64::MAX), None),
    ];
    for (since, kept_ms, expected) in cases {
        let at = purge_at(Timestamp::from_millis(since), kept_ms);
        assert_eq!(at.map(Timestamp::as_millis), expected, "{since} {kept_ms:?}");
    }
}

fn any_claims() -> impl Strategy<Value = Claims> {
    let claim = (any::<bool>(), 0..4_u32).prop_map(|(exists, partition_count)| {
        if exists { Claim::Topic { partition_count } } else { Claim::Deletion { partition_count } }
    });
    prop::collection::btree_map((0..6_u8).prop_map(|topic| id(topic, 0).topic_id), claim, 0..6)
}

fn any_id() -> impl Strategy<Value = PartitionId> {
    (0..6_u8, 0..5_u32).prop_map(|(topic, index)| id(topic, index))
}

fn any_inventory() -> impl Strategy<Value = Inventory> {
    let ids = || prop::collection::btree_set(any_id(), 0..12);
    let told = |ids: BTreeSet<PartitionId>, what: &str| {
        ids.into_iter().map(|id| (id, what.to_owned())).collect()
    };
    (ids(), ids(), ids(), ids(), ids()).prop_map(
        move |(listed, quarantined, lost, damaged, unreadable)| Inventory {
            listed,
            quarantined: quarantined.into_iter().map(|id| (id, SINCE)).collect(),
            lost: told(lost, "gone"),
            damaged: told(damaged, "shorter"),
            unreadable: told(unreadable, "i/o error"),
        },
    )
}

/// Whether metadata speaks of a log.
fn is_claimed(claims: &Claims, id: PartitionId) -> bool {
    claims.get(&id.topic_id).is_some_and(|claim| {
        let (Claim::Topic { partition_count } | Claim::Deletion { partition_count }) = claim;
        id.index.get() < *partition_count
    })
}

proptest! {
    #[test]
    fn every_log_that_is_there_is_in_one_class_and_no_other_is_in_any(
        inventory in any_inventory(), claims in any_claims(),
    ) {
        let mut counts: BTreeMap<PartitionId, usize> = BTreeMap::new();
        for (_, ids) in classes(&compare(&inventory, &claims)) {
            prop_assert!(ids.is_sorted());
            for id in ids {
                *counts.entry(id).or_default() += 1;
            }
        }
        let there = inventory.listed.iter().chain(inventory.quarantined.keys()).copied();
        let there: BTreeMap<_, _> = there.map(|id| (id, 1)).collect();
        prop_assert_eq!(counts, there);
    }

    #[test]
    fn only_what_nobody_claims_is_set_aside(inventory in any_inventory(), claims in any_claims()) {
        let comparison = compare(&inventory, &claims);
        for (class, ids) in classes(&comparison) {
            let expected = !matches!(class, "unknown" | "quarantined");
            for id in ids {
                prop_assert_eq!(is_claimed(&claims, id), expected, "{} {}", class, id);
            }
        }
        for id in &comparison.unknown {
            prop_assert!(!inventory.quarantined.contains_key(id));
        }
    }

    #[test]
    fn a_further_topic_never_makes_another_log_unknown(
        inventory in any_inventory(), claims in any_claims(), further in any_claims(),
    ) {
        let before = compare(&inventory, &claims);
        let mut more = claims.clone();
        for (topic, claim) in further {
            more.entry(topic).or_insert(claim);
        }
        let after = compare(&inventory, &more);
        prop_assert!(after.unknown.iter().all(|id| before.unknown.contains(id)));
        prop_assert!(before.missing.iter().all(|one| after.missing.contains(one)));
    }

    #[test]
    fn what_two_looks_agree_on_is_unknown_in_both(
        first in any_inventory(), second in any_inventory(), claims in any_claims(), later in any_claims(),
    ) {
        let (first, second) = (compare(&first, &claims), compare(&second, &later));
        for id in confirmed(&first, &second) {
            prop_assert!(first.unknown.contains(&id) && second.unknown.contains(&id));
            prop_assert!(!is_claimed(&claims, id) && !is_claimed(&later, id));
        }
    }
}
