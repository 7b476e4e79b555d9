//! Rows: scans in order and in pages, commits that happen whole or not at all.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use super::{Engine, Factory, Stop};
use crate::{CommitError, Key, MetaBatch, MetaStore, Page, Table, Value};

type Rows = BTreeMap<Key, Value>;

async fn scan(rows: &Arc<dyn MetaStore>, table: Table, after: Option<&Key>, limit: usize) -> Page {
    rows.scan(table, after.cloned(), limit).await.expect("a healthy store is scanned")
}

async fn all(engine: &Engine, table: Table) -> Rows {
    let page = scan(&engine.rows, table, None, usize::MAX).await;
    assert!(!page.more);
    page.rows.into_iter().map(|row| (row.key, row.value)).collect()
}

async fn commit(engine: &Engine, batch: MetaBatch) {
    engine.rows.commit(batch).await.expect("a healthy store commits");
}

fn unexpected(outcome: Result<(), CommitError>) -> usize {
    match outcome {
        Err(CommitError::Unexpected { index }) => index,
        other => panic!("{other:?}"),
    }
}

/// Every table is empty at first, and keeps its rows apart from all others.
pub async fn every_table_keeps_its_own_rows(factory: &mut impl Factory) {
    let engine = factory.make().await;
    for table in Table::ALL {
        assert_eq!(all(&engine, table).await, Rows::new(), "{table:?}");
    }
    for table in Table::ALL {
        commit(&engine, MetaBatch::new().put(table, "key", vec![table.number()])).await;
    }
    for table in Table::ALL {
        let expected = Rows::from([("key".into(), vec![table.number()].into())]);
        assert_eq!(all(&engine, table).await, expected, "{table:?}");
    }
}

/// Rows come in the order of their keys' bytes, whatever those are, and as they went in.
pub async fn rows_come_in_byte_order(factory: &mut impl Factory) {
    let engine = factory.make().await;
    let keys: [&[u8]; 9] =
        [b"b", b"a", b"", b"\xff\xff", b"a\0", b"\0", b"aa", "ß".as_bytes(), b"\x80"];
    let mut batch = MetaBatch::new();
    for (number, key) in (0_u8..).zip(keys) {
        batch = batch.put(Table::Topics, key, vec![0, number, 0xff]);
    }
    batch = batch.put(Table::Topics, "empty", Bytes::new());
    commit(&engine, batch).await;
    let page = scan(&engine.rows, Table::Topics, None, 100).await;
    let got = page.rows.iter().map(|row| row.key.clone()).collect::<Vec<_>>();
    let mut expected = keys.map(Bytes::from_static).to_vec();
    expected.push("empty".into());
    expected.sort();
    assert_eq!(got, expected);
    for row in page.rows.iter().filter(|row| row.key != "empty") {
        let number = keys.iter().position(|&key| key == row.key).expect("one of them");
        assert_eq!(row.value, [0, u8::try_from(number).expect("few"), 0xff].as_slice());
    }
}

/// A row is read by its key, in its table only; no row is no failure.
pub async fn a_row_is_read_by_its_key(factory: &mut impl Factory) {
    let engine = factory.make().await;
    let get = async |table, key: &'static str| {
        engine.rows.get(table, key.into()).await.expect("a healthy store is read")
    };
    assert_eq!(get(Table::Topics, "a").await, None);
    let batch = MetaBatch::new().put(Table::Topics, "a", "1").put(Table::Topics, "", "empty key");
    commit(&engine, batch.put(Table::Topics, "ab", Bytes::new())).await;
    assert_eq!(get(Table::Topics, "a").await, Some("1".into()));
    assert_eq!(get(Table::Topics, "").await, Some("empty key".into()));
    assert_eq!(get(Table::Topics, "ab").await, Some(Bytes::new()));
    assert_eq!(get(Table::Topics, "abc").await, None);
    assert_eq!(get(Table::TopicNames, "a").await, None);
    commit(&engine, MetaBatch::new().put(Table::Topics, "a", "2").delete(Table::Topics, "")).await;
    assert_eq!(get(Table::Topics, "a").await, Some("2".into()));
    assert_eq!(get(Table::Topics, "").await, None);
}

/// Pages of any size put together are the table, and each says whether rows follow.
pub async fn pages_put_together_are_the_table(factory: &mut impl Factory) {
    let engine = factory.make().await;
    let mut batch = MetaBatch::new().put(Table::Configs, "another", "table");
    for number in 0..23 {
        batch = batch.put(Table::Topics, format!("{number:02}"), format!("value {number}"));
    }
    commit(&engine, batch).await;
    let whole = all(&engine, Table::Topics).await;
    assert_eq!(whole.len(), 23);
    for limit in 1..=24 {
        let mut seen = Rows::new();
        let mut after = None;
        loop {
            let page = scan(&engine.rows, Table::Topics, after.as_ref(), limit).await;
            assert!(page.rows.len() <= limit);
            let following = 23 - seen.len();
            assert_eq!(page.rows.len(), limit.min(following));
            seen.extend(page.rows.into_iter().map(|row| (row.key, row.value)));
            assert_eq!(page.more, seen.len() < 23, "limit {limit}");
            if !page.more {
                break;
            }
            after = seen.last_key_value().map(|(key, _)| key.clone());
        }
        assert_eq!(seen, whole, "limit {limit}");
    }
    // A key that is in no row is a place all the same.
    let page = scan(&engine.rows, Table::Topics, Some(&"05x".into()), 1).await;
    assert_eq!(page.rows[0].key, "06");
    let page = scan(&engine.rows, Table::Topics, Some(&"99".into()), 1).await;
    assert_eq!(page, Page { rows: Vec::new(), more: false });
}

/// Puts insert and replace, deletes remove what there is; the last change of a row wins.
pub async fn changes_apply_in_order(factory: &mut impl Factory) {
    let engine = factory.make().await;
    let table = Table::Cluster;
    commit(&engine, MetaBatch::new().put(table, "a", "1").put(table, "b", "1")).await;
    let batch = MetaBatch::new()
        .put(table, "a", "2")
        .delete(table, "b")
        .delete(table, "never was")
        .put(table, "c", "1")
        .delete(table, "c")
        .delete(table, "d")
        .put(table, "d", "3")
        .put(table, "d", "4");
    commit(&engine, batch).await;
    let expected = Rows::from([("a".into(), "2".into()), ("d".into(), "4".into())]);
    assert_eq!(all(&engine, table).await, expected);
    commit(&engine, MetaBatch::new()).await;
    assert_eq!(all(&engine, table).await, expected);
}

/// A commit whose expectations don't all hold changes nothing and names the first that fails.
pub async fn expectations_guard_the_whole_commit(factory: &mut impl Factory) {
    let engine = factory.make().await;
    let (topics, names) = (Table::Topics, Table::TopicNames);
    let create = MetaBatch::new()
        .expect_absent(names, "orders")
        .put(names, "orders", "id")
        .put(topics, "id", "orders");
    commit(&engine, create.clone()).await;
    assert_eq!(unexpected(engine.rows.commit(create).await), 0);

    let doomed = |batch: MetaBatch| batch.put(names, "orders", "x").delete(topics, "id");
    let cases = [
        (MetaBatch::new().expect_equals(names, "orders", "other"), 0),
        (MetaBatch::new().expect_equals(names, "missing", ""), 0),
        (MetaBatch::new().expect_equals(names, "orders", "id").expect_absent(topics, "id"), 1),
        (MetaBatch::new().expect_absent(names, "orders").expect_absent(topics, "id"), 0),
        // The same key in another table is another row.
        (MetaBatch::new().expect_absent(Table::Cluster, "id").expect_absent(topics, "id"), 1),
    ];
    for (batch, index) in cases {
        assert_eq!(unexpected(engine.rows.commit(doomed(batch.clone())).await), index, "{batch:?}");
        let kept = Rows::from([("orders".into(), "id".into())]);
        assert_eq!(all(&engine, names).await, kept);
        assert_eq!(all(&engine, topics).await, Rows::from([("id".into(), "orders".into())]));
    }

    let delete = MetaBatch::new()
        .expect_equals(names, "orders", "id")
        .expect_absent(Table::Deletions, "id")
        .delete(names, "orders")
        .delete(topics, "id")
        .put(Table::Deletions, "id", "pending");
    commit(&engine, delete).await;
    assert_eq!(all(&engine, names).await, Rows::new());
    assert_eq!(all(&engine, Table::Deletions).await.len(), 1);
}

/// Commits that overlap are applied one after another: of those that expect the same, one wins.
pub async fn overlapping_commits_are_applied_one_by_one(factory: &mut impl Factory) {
    const RIVALS: u32 = 8;
    let engine = factory.make().await;
    let table = Table::Cluster;
    commit(&engine, MetaBatch::new().put(table, "count", "0")).await;
    for round in 0..10_u32 {
        let rivals = (0..RIVALS).map(|rival| {
            let rows = Arc::clone(&engine.rows);
            tokio::spawn(async move {
                let batch = MetaBatch::new()
                    .expect_equals(table, "count", round.to_string())
                    .put(table, "count", (round + 1).to_string())
                    .put(table, format!("winner {round:02}"), rival.to_string());
                match rows.commit(batch).await {
                    Ok(()) => Some(rival),
                    outcome => {
                        assert_eq!(unexpected(outcome), 0);
                        None
                    }
                }
            })
        });
        let mut winners = Vec::new();
        for rival in rivals.collect::<Vec<_>>() {
            winners.extend(rival.await.expect("no rival panics"));
        }
        let [winner] = winners.as_slice() else { panic!("round {round}: {winners:?}") };
        let rows = all(&engine, table).await;
        let recorded = rows.get(format!("winner {round:02}").as_bytes()).expect("a winner");
        assert_eq!(*recorded, winner.to_string());
        assert_eq!(rows.get("count".as_bytes()).expect("a count"), &(round + 1).to_string());
    }
}

/// A commit of many rows, and one of a large row, are whole.
pub async fn large_commits_are_whole(factory: &mut impl Factory) {
    let engine = factory.make().await;
    let mut batch = MetaBatch::new();
    for number in 0..5000_u32 {
        batch = batch.put(Table::Topics, number.to_be_bytes().to_vec(), vec![7; 100]);
    }
    commit(&engine, batch).await;
    let large = Bytes::from(vec![9; 1 << 20]);
    commit(&engine, MetaBatch::new().put(Table::Cluster, "large", large.clone())).await;
    let topics = all(&engine, Table::Topics).await;
    assert_eq!(topics.len(), 5000);
    assert!(topics.values().all(|value| *value == vec![7; 100]));
    assert_eq!(all(&engine, Table::Cluster).await, Rows::from([("large".into(), large)]));
}

/// A commit that returned is there after any stop; a deleted row stays away.
pub async fn rows_survive_a_restart(factory: &mut impl Factory) {
    for stop in [Stop::Clean, Stop::Crash] {
        let mut engine = factory.make().await;
        let mut expected = BTreeMap::from(Table::ALL.map(|table| (table, Rows::new())));
        for round in 0..4_u32 {
            for (table, rows) in &mut expected {
                let mut batch = MetaBatch::new();
                for number in 0..20 {
                    let key = Bytes::from(format!("{}", (number + round * 7) % 40));
                    let value = Bytes::from(format!("round {round}"));
                    batch = batch.put(*table, key.clone(), value.clone());
                    rows.insert(key, value);
                }
                let doomed = Bytes::from(format!("{}", round * 7));
                rows.remove(&doomed);
                commit(&engine, batch.delete(*table, doomed)).await;
            }
            let Some(next) = engine.restarted(factory, stop).await else { return };
            engine = next;
            for (table, rows) in &expected {
                assert_eq!(all(&engine, *table).await, *rows, "{table:?} after {stop:?}");
            }
        }
    }
}

/// Rows and records don't disturb each other.
pub async fn rows_and_records_live_side_by_side(factory: &mut impl Factory) {
    let mut engine = factory.make().await;
    let mut appended = Vec::new();
    for round in 0..3_u8 {
        let subject = super::Subject::open(&engine, 0).await;
        for number in 0..5_u8 {
            let (batch, ticket) = subject.submit(super::TestBatch::of(2)).await;
            let row = MetaBatch::new().put(Table::Topics, vec![round, number], vec![number]);
            commit(&engine, row).await;
            ticket.await.expect("durable");
            appended.push(batch);
        }
        subject.assert_holds(&appended).await;
        assert_eq!(all(&engine, Table::Topics).await.len(), usize::from(round + 1) * 5);
        drop(subject);
        let Some(next) = engine.restarted(factory, Stop::Crash).await else { return };
        engine = next;
    }
}
