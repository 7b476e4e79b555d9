//! Groups behind the driver: durability, shared commits, failures, and who waits for whom.

use strandline_storage::testkit::faults::CommitFault;
use strandline_wire::{
    ErrorCode, delete_topics, describe_groups, heartbeat, join_group, offset_commit, offset_fetch,
    sync_group,
};
use tokio::time::{Duration, timeout};

use crate::harness::{Client, TestBroker, text};

const UNAVAILABLE: i16 = ErrorCode::COORDINATOR_NOT_AVAILABLE.get();

fn commit_request(group: &str, offset: i64) -> offset_commit::Request {
    let partition = offset_commit::OffsetCommitRequestPartition {
        committed_offset: offset,
        ..Default::default()
    };
    let topic = offset_commit::OffsetCommitRequestTopic {
        name: text("t"),
        partitions: vec![partition],
        ..Default::default()
    };
    offset_commit::Request {
        group_id: text(group),
        generation_id_or_member_epoch: -1,
        topics: vec![topic],
        ..Default::default()
    }
}

/// Commits a position as who is in no group: the error code.
pub(crate) async fn commit(client: &mut Client, group: &str, offset: i64) -> i16 {
    client.ask(9, &commit_request(group, offset)).await.topics[0].partitions[0].error_code
}

/// All positions of a group.
pub(crate) async fn positions(client: &mut Client, group: &str) -> Vec<i64> {
    let asked = offset_fetch::OffsetFetchRequestGroup {
        group_id: text(group),
        topics: None,
        ..Default::default()
    };
    let request = offset_fetch::Request { groups: vec![asked], ..Default::default() };
    let response = client.ask(8, &request).await;
    assert_eq!(response.groups[0].error_code, 0);
    let topics = response.groups[0].topics.iter();
    topics.flat_map(|topic| &topic.partitions).map(|one| one.committed_offset).collect()
}

fn join_request(group: &str, member: &str) -> join_group::Request {
    let protocol =
        join_group::JoinGroupRequestProtocol { name: text("range"), ..Default::default() };
    join_group::Request {
        group_id: text(group),
        session_timeout_ms: 10_000,
        rebalance_timeout_ms: 60_000,
        member_id: text(member),
        protocol_type: text("consumer"),
        protocols: vec![protocol],
        ..Default::default()
    }
}

#[tokio::test]
async fn a_position_is_durable_before_its_answer_and_many_share_a_commit() {
    const CLIENTS: i64 = 200;
    let house = TestBroker::start().await;
    house.connect().create_topic("t", 1).await;
    house.faults.hold();
    let asked = house.faults.commits_asked();
    let committing: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let mut client = house.connect();
            tokio::spawn(async move { commit(&mut client, &format!("g{number}"), number).await })
        })
        .collect();
    for _ in 0..1_000 {
        tokio::task::yield_now().await;
    }
    assert!(committing.iter().all(|one| !one.is_finished()), "answered before it was durable");
    house.faults.release();
    for one in committing {
        assert_eq!(one.await.unwrap(), 0);
    }
    let commits = house.faults.commits_asked() - asked;
    assert!(commits <= 24, "{commits} commits for {CLIENTS} positions");
    let mut client = house.connect();
    for number in 0..CLIENTS {
        assert_eq!(positions(&mut client, &format!("g{number}")).await, [number]);
    }
}

#[tokio::test]
async fn who_commits_reads_its_position() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic("t", 1).await;
    for offset in 0..100 {
        assert_eq!(commit(&mut client, "g", offset).await, 0);
        assert_eq!(positions(&mut client, "g").await, [offset]);
    }
}

#[tokio::test]
async fn a_failed_commit_is_retriable_and_the_coordinator_comes_back_with_what_was_kept() {
    for (fault, kept) in [(CommitFault::Lose, 1), (CommitFault::Keep, 2)] {
        let house = TestBroker::start().await;
        let mut client = house.connect();
        client.create_topic("t", 1).await;
        assert_eq!(commit(&mut client, "g", 1).await, 0);
        house.faults.on_commit(0, fault);
        assert_eq!(commit(&mut client, "g", 2).await, UNAVAILABLE, "{fault:?}");
        assert!(ErrorCode::COORDINATOR_NOT_AVAILABLE.is_retriable());
        let found = timeout(Duration::from_secs(10), async {
            loop {
                let request = offset_fetch::Request {
                    group_id: text("g"),
                    topics: None,
                    ..Default::default()
                };
                let response = client.ask(7, &request).await;
                if response.error_code != UNAVAILABLE {
                    return response.topics[0].partitions[0].committed_offset;
                }
                tokio::task::yield_now().await;
            }
        });
        assert_eq!(found.await.unwrap(), kept, "{fault:?}");
        assert_eq!(commit(&mut client, "g", 3).await, 0, "{fault:?}");
        assert_eq!(positions(&mut client, "g").await, [3], "{fault:?}");
    }
}

/// Parks a join of version 3, which waits for others for the initial delay of three seconds.
async fn park(house: &TestBroker, group: &str) -> tokio::task::JoinHandle<join_group::Response> {
    let mut client = house.connect();
    let request = join_request(group, "");
    let parked = tokio::spawn(async move { client.ask(3, &request).await });
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert!(!parked.is_finished(), "it waits for others");
    parked
}

async fn describe(client: &mut Client, group: &str) -> describe_groups::DescribedGroup {
    let request = describe_groups::Request { groups: vec![text(group)], ..Default::default() };
    client.ask(5, &request).await.groups.remove(0)
}

#[tokio::test]
async fn a_parked_join_holds_up_nobody() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic("t", 1).await;
    let parked = park(&house, "g").await;
    let group = describe(&mut client, "g").await;
    assert_eq!(group.group_state, text("PreparingRebalance"));
    for number in 0..50 {
        assert_eq!(commit(&mut client, &format!("other-{number}"), 1).await, 0);
    }
    // In the same group too.
    let stranger = ErrorCode::UNKNOWN_MEMBER_ID.get();
    assert_eq!(commit(&mut client, "g", 1).await, stranger);
    assert!(!parked.is_finished());
    parked.abort();
}

/// Time passes for the broker and for tokio's timers alike, in small steps.
async fn pass_seconds(house: &TestBroker, seconds: u32) {
    for _ in 0..seconds * 10 {
        house.environment.advance_ms(100);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_group_forms_when_its_delay_is_over_and_a_member_that_hangs_up_expires() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    let parked = park(&house, "g").await;
    let gone = park(&house, "g").await;
    gone.abort();
    // Somebody came during the delay, so it is put off once.
    pass_seconds(&house, 2).await;
    assert!(!parked.is_finished());
    pass_seconds(&house, 7).await;
    assert!(parked.is_finished());
    let joined = parked.await.unwrap();
    assert_eq!((joined.error_code, joined.generation_id), (0, 1));
    assert_eq!(describe(&mut client, "g").await.members.len(), 2);
    let mut asked = sync_group::Request {
        group_id: text("g"),
        generation_id: 1,
        member_id: joined.member_id.clone(),
        ..Default::default()
    };
    asked.assignments.push(sync_group::SyncGroupRequestAssignment {
        member_id: joined.member_id.clone(),
        ..Default::default()
    });
    assert_eq!(client.ask(3, &asked).await.error_code, 0);
    let beat = heartbeat::Request {
        group_id: text("g"),
        generation_id: 1,
        member_id: joined.member_id,
        ..Default::default()
    };
    for _ in 0..4 {
        pass_seconds(&house, 4).await;
        client.ask(3, &beat).await;
    }
    assert_eq!(describe(&mut client, "g").await.members.len(), 1, "nobody keeps it alive");
}

#[tokio::test]
async fn a_broker_that_drains_sends_who_waits_away() {
    let house = TestBroker::start().await;
    let parked = park(&house, "g").await;
    house.broker.drain();
    assert_eq!(parked.await.unwrap().error_code, UNAVAILABLE);
}

#[tokio::test]
async fn a_member_id_is_given_first_where_clients_know_of_it() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    let asked = client.ask(4, &join_request("g", "")).await;
    assert_eq!(asked.error_code, ErrorCode::MEMBER_ID_REQUIRED.get());
    assert!(!asked.member_id.is_empty());
    let group = describe(&mut client, "g").await;
    assert_eq!((group.group_state, group.members.len()), (text("Empty"), 0));
}

#[tokio::test(start_paused = true)]
async fn positions_are_hidden_with_their_topic_and_go_with_its_bytes() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic("t", 1).await;
    assert_eq!(commit(&mut client, "g", 5).await, 0);
    let state = delete_topics::DeleteTopicState { name: Some(text("t")), ..Default::default() };
    let request = delete_topics::Request { topics: vec![state], ..Default::default() };
    assert_eq!(client.ask(6, &request).await.responses[0].error_code, 0);
    assert_eq!(positions(&mut client, "g").await, []);
    client.create_topic("t", 1).await;
    assert_eq!(positions(&mut client, "g").await, [], "a new topic begins without positions");
    assert_eq!(house.broker.metrics().offsets_removed.get(), 0);
    house.environment.advance_ms(61_000);
    tokio::time::sleep(Duration::from_hours(2)).await;
    assert_eq!(house.broker.pending_deletion_count(), 0);
    assert_eq!(house.broker.metrics().offsets_removed.get(), 1);
}
