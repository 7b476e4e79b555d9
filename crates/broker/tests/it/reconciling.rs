//! What the engine holds beside what metadata says: nothing unknown is served, nothing lost is hidden.

use std::time::Duration;

use strandline_broker::{AdoptError, Adoption, EngineReconciliation, StrangerState, adopt};
use strandline_model::{PartitionId, PartitionIndex};
use strandline_storage::testkit::{Recorder, Subject, open_request, partition};
use strandline_storage::{ErrorKind, MetaBatch, Table};
use strandline_wire::ErrorCode;

use crate::deletion::delete;
use crate::harness::{Client, TestBroker, batch};

const LATEST: i64 = -1;
const WEEK_MS: i64 = 7 * 24 * 3_600_000;
const STORAGE_ERROR: i16 = ErrorCode::KAFKA_STORAGE_ERROR.get();

async fn check(house: &TestBroker) -> EngineReconciliation {
    house.broker.check_storage().await;
    let mut found = house.broker.reconciliation();
    found.retain(|one| one.engine == "file");
    found.pop().expect("it was looked at")
}

/// Partition 0 of the only topic.
fn only_topic(house: &TestBroker) -> PartitionId {
    PartitionId::new(house.broker.topics()[0].id, PartitionIndex::new(0))
}

/// A log that no topic knows.
async fn plant(house: &TestBroker) {
    Subject::open(house.engine(), 0).await.append_some(5).await;
}

async fn open_fails(house: &TestBroker) -> ErrorKind {
    let request = open_request(0, &std::sync::Arc::new(Recorder::default()));
    house.engine().logs.open(request).await.expect_err("it is served to nobody").kind()
}

#[tokio::test(start_paused = true)]
async fn a_log_that_no_topic_knows_is_set_aside_told_of_and_gone_after_a_week() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic("t", 1).await;
    assert_eq!(client.produce("t", batch(&["a"])).await, (0, 0));
    plant(&house).await;

    let found = check(&house).await;
    assert_eq!((found.known_count, found.pending_count), (1, 0));
    assert_eq!(found.missing, []);
    let [stranger] = found.strangers[..] else { panic!("{found:?}") };
    assert_eq!(stranger.id, partition(0));
    let StrangerState::Quarantined { since, bytes, purge_at } = stranger.state else {
        panic!("{stranger:?}")
    };
    assert!(bytes.get() > 0);
    assert_eq!(purge_at, Some(since.plus_millis(WEEK_MS)));
    assert_eq!(open_fails(&house).await, ErrorKind::Invalid);

    house.environment.advance_ms(WEEK_MS - 60_000);
    assert_eq!(check(&house).await.strangers.len(), 1, "not yet");
    house.environment.advance_ms(60_000);
    assert_eq!(check(&house).await.strangers, []);
    assert_eq!(house.engine().logs.list().await.unwrap(), [only_topic(&house)]);
    assert_eq!(client.produce("t", batch(&["b"])).await, (0, 1), "the topic is as it was");
    assert_eq!(house.broker.metrics().reconciliation_failures.get(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_start_looks_by_itself_and_then_every_hour() {
    let house = TestBroker::start().await;
    let strangers = || {
        let found = house.broker.reconciliation();
        found.iter().map(|one| one.strangers.len()).sum::<usize>()
    };
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(house.broker.reconciliation().len(), 2, "each engine was looked at");
    plant(&house).await;
    tokio::time::sleep(Duration::from_mins(57)).await;
    assert_eq!(strangers(), 0);
    tokio::time::sleep(Duration::from_mins(3)).await;
    assert_eq!(strangers(), 1);
}

async fn codes(client: &mut Client) -> [i16; 3] {
    let produced = client.produce("t", batch(&["x"])).await.0;
    let fetched = client.fetch("t", 0, 0).await.error_code;
    [produced, fetched, client.offset("t", LATEST).await.0]
}

#[tokio::test(start_paused = true)]
async fn a_partition_that_has_lost_data_is_served_to_nobody_until_it_has_it_again() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic("t", 1).await;
    assert_eq!(client.produce("t", batch(&["a"])).await, (0, 0));
    let id = only_topic(&house);
    let mut reader = house.connect();
    let waiting = tokio::spawn(async move { reader.fetch("t", 1, 3_600_000).await.error_code });
    tokio::task::yield_now().await;

    house.faults.lose(id, Some("segment is missing"));
    let found = check(&house).await;
    assert_eq!(found.missing.len(), 1);
    assert_eq!((found.missing[0].id, &found.missing[0].topic[..]), (id, "t"));
    assert_eq!(found.missing[0].what, "segment is missing");
    assert_eq!(waiting.await.unwrap(), STORAGE_ERROR, "who waits is told");
    assert_eq!(codes(&mut client).await, [STORAGE_ERROR; 3]);
    check(&house).await;
    assert_eq!(codes(&mut client).await, [STORAGE_ERROR; 3], "for as long as it lasts");

    house.faults.lose(id, None);
    assert_eq!(check(&house).await.missing, []);
    assert_eq!(codes(&mut client).await, [0; 3]);
    assert_eq!(client.offset("t", LATEST).await, (0, 2));
}

#[tokio::test(start_paused = true)]
async fn a_topic_that_lost_data_can_be_deleted() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic("t", 1).await;
    client.produce("t", batch(&["a"])).await;
    house.faults.lose(only_topic(&house), Some("gone"));
    check(&house).await;
    assert_eq!(delete(&mut client, "t").await, 0);
    let found = check(&house).await;
    assert_eq!((found.pending_count, found.missing.len(), found.strangers.len()), (1, 0, 0));
    client.create_topic("t", 1).await;
    assert_eq!(client.produce("t", batch(&["a"])).await, (0, 0), "another topic of that name");
}

#[tokio::test(start_paused = true)]
async fn topics_that_come_go_and_come_back_are_never_set_aside() {
    let house = TestBroker::start().await;
    let broker = std::sync::Arc::clone(&house.broker);
    let checking = tokio::spawn(async move {
        for _ in 0..200 {
            broker.check_storage().await;
            tokio::time::sleep(Duration::from_millis(137)).await;
            for found in broker.reconciliation() {
                assert_eq!(found.strangers, []);
                assert_eq!(found.missing, []);
            }
        }
    });
    let mut client = house.connect();
    let mut round = 0;
    while !checking.is_finished() {
        round += 1;
        client.create_topic("t", 3).await;
        assert_eq!(client.produce("t", batch(&["a"])).await, (0, 0));
        let id = only_topic(&house).topic_id;
        assert_eq!(delete(&mut client, "t").await, 0);
        tokio::time::sleep(Duration::from_millis(round * 53 % 700)).await;
        house.broker.undelete_topic(id, None).await.unwrap();
        assert_eq!(client.produce("t", batch(&["b"])).await, (0, 1));
        tokio::time::sleep(Duration::from_millis(round * 71 % 900)).await;
        assert_eq!(delete(&mut client, "t").await, 0);
        house.environment.advance_ms(1_000);
    }
    checking.await.unwrap();
    assert!(round > 20, "{round}");
}

#[tokio::test(start_paused = true)]
async fn one_look_is_not_enough_to_set_a_log_aside() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic("t", 1).await;
    assert_eq!(client.produce("t", batch(&["a"])).await, (0, 0));
    let rows = &house.engine().rows;
    let row = rows.scan(Table::Topics, None, 9).await.unwrap().rows.remove(0);
    // As for the moment in which a deletion is taken back.
    let absent = MetaBatch::new().delete(Table::Topics, row.key.clone());
    rows.commit(absent).await.unwrap();
    let back = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        rows.commit(MetaBatch::new().put(Table::Topics, row.key.clone(), row.value.clone()))
            .await
            .unwrap();
    };
    let (found, ()) = tokio::join!(check(&house), back);
    assert_eq!(found.strangers, []);
    assert_eq!(client.produce("t", batch(&["b"])).await, (0, 1));
}

#[tokio::test(start_paused = true)]
async fn a_log_whose_topic_is_there_again_comes_out_of_quarantine() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic("t", 1).await;
    assert_eq!(client.produce("t", batch(&["a"])).await, (0, 0));
    let (id, now) = (only_topic(&house), strandline_model::Timestamp::default());
    house.engine().logs.quarantine(id, now).await.unwrap();
    assert_eq!(client.produce("t", batch(&["b"])).await.0, STORAGE_ERROR, "never empty");
    let found = check(&house).await;
    assert_eq!((found.known_count, found.strangers.len()), (1, 0));
    house.environment.advance_ms(2_000);
    assert_eq!(client.produce("t", batch(&["b"])).await, (0, 1));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_set_aside_on_the_strength_of_rows_that_nobody_can_read() {
    let house = TestBroker::start().await;
    plant(&house).await;
    let key = vec![9; 16];
    let newer = MetaBatch::new().put(Table::Topics, key.clone(), vec![250]);
    house.engine().rows.commit(newer).await.unwrap();
    house.broker.check_storage().await;
    assert_eq!(house.engine().logs.quarantined().await.unwrap(), []);
    assert!(house.broker.metrics().reconciliation_failures.get() > 0);
    house.engine().rows.commit(MetaBatch::new().delete(Table::Topics, key)).await.unwrap();
    assert_eq!(check(&house).await.strangers.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn where_metadata_is_forgotten_strangers_are_told_of_and_left_alone() {
    let house = TestBroker::start_forgetful().await;
    plant(&house).await;
    let found = check(&house).await;
    assert_eq!(found.strangers.len(), 1);
    assert_eq!(found.strangers[0].state, StrangerState::Left);
    house.environment.advance_ms(2 * WEEK_MS);
    check(&house).await;
    assert_eq!(house.engine().logs.quarantined().await.unwrap(), []);
    assert_eq!(house.engine().logs.list().await.unwrap(), [partition(0)]);
}

#[tokio::test(start_paused = true)]
async fn a_log_that_cannot_be_looked_at_hides_no_other_and_is_served_as_it_was() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic("t", 1).await;
    assert_eq!(client.produce("t", batch(&["a"])).await, (0, 0));
    plant(&house).await;
    let id = only_topic(&house);
    house.faults.hide(id, "list folder: i/o error");
    let found = check(&house).await;
    assert_eq!((found.known_count, found.missing.len()), (0, 0));
    assert_eq!(found.unreadable.len(), 1);
    assert_eq!((found.unreadable[0].id, &found.unreadable[0].topic[..]), (id, "t"));
    assert_eq!(found.unreadable[0].what, "list folder: i/o error");
    assert!(matches!(found.strangers[0].state, StrangerState::Quarantined { .. }), "the others");
    assert_eq!(client.produce("t", batch(&["b"])).await, (0, 1), "nothing is known to be gone");

    // One that had lost something does not get it back by being unreadable.
    house.faults.lose(id, Some("gone"));
    check(&house).await;
    house.faults.hide(id, "list folder: i/o error");
    assert_eq!(check(&house).await.unreadable.len(), 1);
    assert_eq!(codes(&mut client).await, [STORAGE_ERROR; 3]);
    house.faults.lose(id, None);
    assert_eq!(check(&house).await.unreadable, []);
    assert_eq!(codes(&mut client).await, [0; 3]);
}

#[tokio::test(start_paused = true)]
async fn a_partition_that_has_lost_a_part_is_told_of_and_served() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic("t", 1).await;
    assert_eq!(client.produce("t", batch(&["a"])).await, (0, 0));
    let id = only_topic(&house);
    house.faults.damage(id, "segment is shorter than it was");
    let found = check(&house).await;
    assert_eq!((found.known_count, &found.missing[..]), (0, &[][..]));
    assert_eq!((found.damaged[0].id, &found.damaged[0].topic[..]), (id, "t"));
    assert_eq!(found.damaged[0].what, "segment is shorter than it was");
    assert_eq!(codes(&mut client).await, [0; 3]);
    house.faults.lose(id, None);
    assert_eq!(check(&house).await.damaged, []);
}

#[tokio::test(start_paused = true)]
async fn nothing_of_a_partition_that_is_served_to_nobody_is_promised_to_go() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic("t", 1).await;
    assert_eq!(client.produce("t", batch(&["a"])).await, (0, 0));
    let reasons = || {
        let found = house.broker.retention("t", &[]).unwrap().unwrap();
        let [partition] = &found.partitions[..] else { panic!("one partition") };
        let segments = partition.segments.iter();
        segments.map(|segment| (segment.reason, segment.goes_at.is_some())).collect::<Vec<_>>()
    };
    let before = reasons();
    assert!(before.iter().all(|(reason, _)| *reason != "withheld"), "{before:?}");
    house.faults.lose(only_topic(&house), Some("gone"));
    check(&house).await;
    assert_eq!(reasons(), [("withheld", false)]);
    house.faults.lose(only_topic(&house), None);
    check(&house).await;
    assert_eq!(reasons(), before);
}

#[tokio::test(start_paused = true)]
async fn a_read_that_failed_is_told_of_until_nobody_meets_it_any_more() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic("t", 1).await;
    assert_eq!(client.produce("t", batch(&["a"])).await, (0, 0));
    let id = only_topic(&house);
    check(&house).await;
    house.faults.on_read(0, ErrorKind::Unavailable);
    let read = codes(&mut client).await;
    assert!(read.contains(&STORAGE_ERROR), "{read:?}");
    let found = house.broker.reconciliation().into_iter().flat_map(|one| one.damaged);
    let [damaged] = &found.collect::<Vec<_>>()[..] else { panic!("one is damaged") };
    assert_eq!((damaged.id, &damaged.topic[..]), (id, "t"));
    assert!(damaged.what.starts_with("records can't be read. offset=`0`"), "{}", damaged.what);
    assert_eq!(check(&house).await.damaged.len(), 1, "it is fresh");
    assert_eq!(check(&house).await.damaged, []);
}

/// A topic's row, as docs/format.md has it.
pub(crate) fn topic_row(name: &str, partitions: u32) -> Vec<u8> {
    let mut row = vec![1];
    for text in [name, "file"] {
        row.extend(u16::try_from(text.len()).unwrap().to_be_bytes());
        row.extend(text.as_bytes());
    }
    row.extend(partitions.to_be_bytes());
    row.extend([0; 8]);
    row.extend([0; 2]);
    row
}

#[tokio::test(start_paused = true)]
async fn what_a_topic_claims_while_a_purge_goes_on_is_not_removed() {
    // Slow enough that each log has a step of its own.
    let house = TestBroker::start_with(&[("deletion.max.bytes.per.sec", "16384")]).await;
    for index in 0..3 {
        Subject::open(house.engine(), index).await.append_some(5).await;
    }
    assert_eq!(check(&house).await.strangers.len(), 3);
    house.environment.advance_ms(WEEK_MS);
    let key = partition(0).topic_id.as_bytes().to_vec();
    let back = async {
        tokio::time::sleep(Duration::from_millis(100)).await;
        let row = MetaBatch::new().put(Table::Topics, key, topic_row("back", 3));
        house.engine().rows.commit(row).await.unwrap();
    };
    tokio::join!(check(&house), back);
    assert_eq!(house.engine().logs.list().await.unwrap(), [partition(1), partition(2)]);
    let found = check(&house).await;
    assert_eq!((found.known_count, found.strangers.len()), (2, 0), "they are brought back");
    assert_eq!(house.broker.metrics().reconciliation_failures.get(), 0);
}

#[tokio::test(start_paused = true)]
async fn logs_that_were_set_aside_come_back_under_another_name() {
    let house = TestBroker::start().await;
    let mut client = house.connect();
    client.create_topic("t", 2).await;
    client.create_topic("other", 1).await;
    assert_eq!(client.produce("t", batch(&["a", "b"])).await, (0, 0));
    let found = house.broker.topics().into_iter().find(|topic| &*topic.name == "t").unwrap();
    let rows = std::sync::Arc::clone(&house.engine().rows);
    let adoption = |name| Adoption {
        id: found.id,
        name,
        engine: "file",
        partition_count: 2,
        now: strandline_model::Timestamp::default(),
    };
    // While a topic has the id, none is made.
    let refused = adopt(&*rows, &adoption("again")).await.unwrap_err();
    assert!(matches!(refused, AdoptError::Known), "{refused}");
    let key = found.id.as_bytes().to_vec();
    rows.commit(MetaBatch::new().delete(Table::Topics, key).delete(Table::TopicNames, "t"))
        .await
        .unwrap();
    let house = house.restart().await;
    assert_eq!(check(&house).await.strangers.len(), 1, "partition 0 alone was written to");
    for (name, expected) in [
        ("other", "a topic named other, or one that differs in . and _ only, exists"),
        ("__consumer_offsets", "__consumer_offsets is a name of the broker's own topics"),
    ] {
        let refused = adopt(&*rows, &adoption(name)).await.unwrap_err();
        assert_eq!(refused.to_string(), expected);
    }
    let many = Adoption { partition_count: u32::MAX, ..adoption("again") };
    assert!(matches!(adopt(&*rows, &many).await, Err(AdoptError::Partitions(u32::MAX))));
    adopt(&*rows, &adoption("again")).await.unwrap();

    let house = house.restart().await;
    let found = check(&house).await;
    assert_eq!((found.known_count, found.strangers.len()), (1, 0));
    let mut client = house.connect();
    house.environment.advance_ms(30 * 24 * 3_600_000);
    house.broker.check_retention().await;
    assert_eq!(client.offset("again", LATEST).await, (0, 2), "no limit applies");
    assert_eq!(client.produce("again", batch(&["c"])).await, (0, 2));
    assert!(client.fetch("again", 0, 0).await.records.is_some());
}
