//! How the bytes of deleted topics go: after a grace, at a pace, again after failures, and never one in
//! the way of another.

use std::time::Duration;

use strandline_broker::{DeletionAction, DeletionError, DeletionStatus, Hold};
use strandline_model::TopicId;
use strandline_storage::ErrorKind;
use strandline_storage::testkit::faults::{CommitFault, RemoveFault};

use crate::deletion::delete;
use crate::groups::{commit, positions};
use crate::harness::{Client, TestBroker, batch};

const SET: i8 = 0;
const BROKER: i8 = 4;
const GRACE_MS: i64 = 60_000;

/// Lets time pass for the broker and for its timers.
pub(crate) async fn pass_ms(house: &TestBroker, millis: i64) {
    for _ in 0..millis / 100 {
        house.environment.advance_ms(100);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Topics of these names with a record each, deleted.
async fn deleted(house: &TestBroker, names: &[&str]) -> Vec<TopicId> {
    let mut client = house.connect();
    for name in names {
        client.create_topic(name, 1).await;
        assert_eq!(client.produce(name, batch(&["a record"])).await.0, 0);
        assert_eq!(delete(&mut client, name).await, 0);
    }
    let all = house.broker.deletions();
    names.iter().map(|name| all.iter().find(|one| one.topic == *name).unwrap().id).collect()
}

fn pending(house: &TestBroker) -> Vec<String> {
    house.broker.deletions().into_iter().map(|one| one.topic).collect()
}

fn of(house: &TestBroker, id: TopicId) -> DeletionStatus {
    house.broker.deletion(id).expect("it is pending")
}

async fn act(house: &TestBroker, id: TopicId, action: DeletionAction) {
    house.broker.change_deletion(id, action).await.unwrap();
}

async fn set(client: &mut Client, key: &str, value: &str) {
    assert_eq!(client.alter_config(BROKER, "", SET, (key, value)).await, 0);
}

#[tokio::test(start_paused = true)]
async fn what_waits_is_told_with_who_deleted_it_until_when_and_how_much_it_is() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.client_id = Some("admin-tool");
    client.create_topic("t", 3).await;
    client.produce("t", batch(&["a record"])).await;
    delete(&mut client, "t").await;
    let all = house.broker.deletions();
    let [one] = all.as_slice() else { panic!("one is pending: {all:?}") };
    assert_eq!((one.topic.as_str(), one.state, one.can_undelete), ("t", "grace", true));
    assert_eq!((one.client_id.as_str(), one.address.as_str()), ("admin-tool", "127.0.0.1:9092"));
    assert_eq!((one.partition_count, one.partitions_left), (3, 3));
    assert_eq!(one.grace_until.millis_since(one.deleted_at), GRACE_MS);
    assert_eq!(one.next_step_at, Some(one.grace_until));
    assert!(one.bytes.get() > 60, "a batch: {}", one.bytes);
    assert_eq!(one.left(), one.bytes);
    pass_ms(&house, GRACE_MS + 1_000).await;
    assert!(house.broker.deletions().is_empty());
    assert_eq!(house.broker.metrics().deletion_freed_bytes.get(), one.bytes.get());
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_jumps_neither_ends_a_grace_nor_prolongs_it() {
    for wrong_by_ms in [-86_400_000, 86_400_000] {
        let house = TestBroker::start().await;
        deleted(&house, &["t"]).await;
        house.environment.set_wrong_by_ms(wrong_by_ms);
        pass_ms(&house, GRACE_MS - 1_000).await;
        assert_eq!(pending(&house), ["t"], "{wrong_by_ms}");
        pass_ms(&house, 2_000).await;
        assert!(pending(&house).is_empty(), "{wrong_by_ms}");
    }
}

#[tokio::test(start_paused = true)]
async fn after_a_restart_the_rest_of_the_grace_is_left_and_never_more_than_all_of_it() {
    for deleted_in_the_future_ms in [0, 86_400_000] {
        let house = TestBroker::start().await;
        house.environment.set_wrong_by_ms(deleted_in_the_future_ms);
        deleted(&house, &["t"]).await;
        let house = house.restart().await;
        pass_ms(&house, GRACE_MS - 1_000).await;
        assert_eq!(pending(&house), ["t"], "{deleted_in_the_future_ms}");
        pass_ms(&house, 2_000).await;
        assert!(pending(&house).is_empty(), "{deleted_in_the_future_ms}");
    }
}

#[tokio::test(start_paused = true)]
async fn without_a_grace_bytes_go_at_once() {
    let house = TestBroker::start_with(&[("deletion.grace.ms", "0")]).await;
    let mut client = house.connect();
    client.create_topic("t", 1).await;
    client.produce("t", batch(&["a record"])).await;
    delete(&mut client, "t").await;
    pass_ms(&house, 1_000).await;
    assert!(pending(&house).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_removal_that_fails_is_told_and_tried_again_and_holds_up_nobody() {
    let house = TestBroker::start().await;
    let ids = deleted(&house, &["broken", "good"]).await;
    for _ in 0..5 {
        house.faults.on_remove(0, RemoveFault::Fail(ErrorKind::Unavailable));
    }
    // Whichever is first fails; the good one's turn comes while the other waits.
    pass_ms(&house, GRACE_MS + 500).await;
    let left = house.broker.deletions();
    assert!(!left.is_empty());
    for one in &left {
        assert_eq!((one.state, one.can_undelete), ("backing_off", false), "{one:?}");
        assert!(one.failures > 0 && one.next_step_at.is_some());
        assert!(one.last_error.as_ref().is_some_and(|error| error.contains("injected")));
    }
    assert!(house.broker.metrics().deletion_failures.get() >= 2);
    pass_ms(&house, 40_000).await;
    assert!(pending(&house).is_empty(), "{ids:?}");
}

#[tokio::test(start_paused = true)]
async fn a_pause_after_failures_ends_when_somebody_says_so() {
    let house = TestBroker::start().await;
    let id = deleted(&house, &["t"]).await[0];
    let refused = house.broker.change_deletion(id, DeletionAction::Retry).await;
    assert!(matches!(refused, Err(DeletionError::NotFailed)), "{refused:?}");
    for _ in 0..6 {
        house.faults.on_remove(0, RemoveFault::Fail(ErrorKind::Unavailable));
    }
    // After 1, 2, 4, 8 and 16 seconds; the next would come 32 later.
    pass_ms(&house, GRACE_MS + 32_000).await;
    assert_eq!((of(&house, id).failures, of(&house, id).state), (6, "backing_off"));
    act(&house, id, DeletionAction::Retry).await;
    pass_ms(&house, 500).await;
    assert!(pending(&house).is_empty());
}

#[tokio::test(start_paused = true)]
async fn removals_that_hang_hold_up_nobody() {
    let house = TestBroker::start().await;
    let names: Vec<String> = (0..20).map(|index| format!("t{index}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for _ in 0..12 {
        house.faults.on_remove(0, RemoveFault::Hang);
    }
    deleted(&house, &names).await;
    // Eight hang at first; when their patience is over four more do, and then the rest can go.
    pass_ms(&house, GRACE_MS + 30_000).await;
    assert_eq!(pending(&house).len(), 12);
    assert!(house.broker.deletions().iter().all(|one| one.state == "running"));
}

#[tokio::test(start_paused = true)]
async fn a_deletion_can_be_stopped_alone_and_stays_so_after_a_restart() {
    let house = TestBroker::start().await;
    let ids = deleted(&house, &["stopped", "other"]).await;
    act(&house, ids[0], DeletionAction::Pause).await;
    let house = house.restart().await;
    assert_eq!(of(&house, ids[0]).state, "paused");
    pass_ms(&house, GRACE_MS + 1_000).await;
    assert_eq!(pending(&house), ["stopped"]);
    assert!(of(&house, ids[0]).can_undelete, "nothing was removed");
    act(&house, ids[0], DeletionAction::Resume).await;
    pass_ms(&house, 500).await;
    assert!(pending(&house).is_empty());
}

#[tokio::test(start_paused = true)]
async fn all_deletions_can_be_stopped_and_stay_so_after_a_restart() {
    let house = TestBroker::start().await;
    house.broker.pause_deletions(Hold::Paused).await.unwrap();
    deleted(&house, &["a", "b"]).await;
    let house = house.restart().await;
    pass_ms(&house, GRACE_MS + 1_000).await;
    assert_eq!(
        house.broker.deletions().iter().map(|one| one.state).collect::<Vec<_>>(),
        ["paused"; 2]
    );
    let sums = house.broker.deletion_sums();
    let (paused, queued) = (sums.by_state["paused"], sums.by_state["queued"]);
    assert_eq!((paused.topics, queued.topics), (2, 0));
    assert!(paused.bytes > 0);
    assert_eq!(sums.oldest, Some(Duration::from_secs(61)));
    house.broker.pause_deletions(Hold::Free).await.unwrap();
    pass_ms(&house, 500).await;
    assert!(pending(&house).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_grace_can_be_cut_short() {
    let house = TestBroker::start().await;
    let ids = deleted(&house, &["now", "later"]).await;
    act(&house, ids[0], DeletionAction::Purge).await;
    pass_ms(&house, 500).await;
    assert_eq!(pending(&house), ["later"]);
    let gone = house.broker.change_deletion(ids[0], DeletionAction::Purge).await;
    assert!(matches!(gone, Err(DeletionError::Unknown)), "{gone:?}");
}

#[tokio::test(start_paused = true)]
async fn bytes_go_no_faster_than_they_may_and_another_rate_counts_at_once() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    let ids = deleted(&house, &["a", "b", "c"]).await;
    let bytes = of(&house, ids[0]).bytes.get();
    // Each takes twenty seconds.
    set(&mut client, "deletion.max.bytes.per.sec", &(bytes / 20).to_string()).await;
    // The first step sets aside what a block takes.
    pass_ms(&house, GRACE_MS + 1_000).await;
    assert_eq!(pending(&house).len(), 3, "its end is a step of its own");
    pass_ms(&house, 25_000).await;
    assert!(pending(&house).len() >= 2, "{:?}", pending(&house));
    set(&mut client, "deletion.max.bytes.per.sec", "-1").await;
    pass_ms(&house, 2_000).await;
    assert!(pending(&house).is_empty());
}

#[tokio::test(start_paused = true)]
async fn positions_of_groups_go_with_the_topic_and_the_row_goes_last() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic("t", 1).await;
    client.produce("t", batch(&["a record"])).await;
    assert_eq!(commit(&mut client, "g", 1).await, 0);
    delete(&mut client, "t").await;
    client.create_topic("t", 1).await;
    assert_eq!(positions(&mut client, "g").await, Vec::<i64>::new(), "the new one has none");
    pass_ms(&house, GRACE_MS - 500).await;
    // The mark that removal began, what was freed, the group's row; the deletion's row can't go.
    house.faults.on_commit(3, CommitFault::Lose);
    pass_ms(&house, 1_000).await;
    assert_eq!(pending(&house), ["t"]);
    assert_eq!(house.broker.metrics().offsets_removed.get(), 1);
    pass_ms(&house, 2_000).await;
    assert!(pending(&house).is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_deletion_whose_commit_failed_and_was_kept_is_found_by_the_next_try() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic("t", 1).await;
    house.faults.on_commit(0, CommitFault::Keep);
    assert_ne!(delete(&mut client, "t").await, 0);
    assert_eq!(delete(&mut client, "t").await, 0);
    assert_eq!(pending(&house), ["t"]);
    client.create_topic("t", 1).await;
}

#[tokio::test(start_paused = true)]
async fn a_change_whose_commit_failed_and_was_kept_is_seen_by_the_next() {
    let house = TestBroker::start().await;
    let id = deleted(&house, &["t"]).await[0];
    house.faults.on_commit(0, CommitFault::Keep);
    let failed = house.broker.change_deletion(id, DeletionAction::Pause).await;
    assert!(matches!(failed, Err(DeletionError::Storage(_))), "{failed:?}");
    let changed = house.broker.change_deletion(id, DeletionAction::Purge).await;
    assert!(matches!(changed, Err(DeletionError::Storage(_))), "it read what is kept: {changed:?}");
    assert_eq!(of(&house, id).state, "paused");
    act(&house, id, DeletionAction::Resume).await;
    act(&house, id, DeletionAction::Purge).await;
    pass_ms(&house, 500).await;
    assert!(pending(&house).is_empty());
}
