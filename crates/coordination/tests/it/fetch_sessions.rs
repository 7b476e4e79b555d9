//! KIP-227 as a client sees it.

use std::sync::Arc;

use strandline_coordination::{
    FetchPartition, FetchSessions, Fetched, SessionContext, SessionError, SessionKey,
    SessionLimits, SessionRequest, TopicKey,
};
use strandline_model::{Timestamp, TopicId};

const LIMITS: SessionLimits = SessionLimits {
    sessions_max: 2,
    partitions_per_session_max: 3,
    bytes_max: usize::MAX,
    eviction_ms: 120_000,
};

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(millis)
}

fn key(name: &str, index: i32) -> SessionKey {
    SessionKey { topic: TopicKey::Name(Arc::from(name)), index }
}

fn from(fetch_offset: i64) -> FetchPartition {
    FetchPartition {
        fetch_offset,
        max_bytes: 1024,
        current_leader_epoch: -1,
        last_fetched_epoch: -1,
    }
}

fn fetched(high_watermark: i64, has_records: bool) -> Fetched {
    Fetched { high_watermark, log_start_offset: 0, has_records, must_tell: false }
}

fn failed() -> Fetched {
    Fetched { high_watermark: -1, log_start_offset: -1, has_records: false, must_tell: true }
}

fn request(id: i32, epoch: i32, partitions: Vec<(SessionKey, FetchPartition)>) -> SessionRequest {
    SessionRequest { id, epoch, uses_ids: false, partitions, forgotten: Vec::new() }
}

/// A cache with session 9 over `a-0` (told: 10) and `a-1` (told: 20).
fn open_session() -> FetchSessions {
    let mut sessions = FetchSessions::new(LIMITS);
    let wants = vec![(key("a", 0), from(10)), (key("a", 1), from(20))];
    let told = [(key("a", 0), fetched(10, false)), (key("a", 1), fetched(20, false))];
    let context = sessions.begin(at(0), request(0, 0, wants.clone())).unwrap();
    assert_eq!(context, SessionContext::Full(wants.clone()));
    assert_eq!(sessions.open(at(0), 9, false, wants, &told), Some(9));
    sessions
}

fn next(sessions: &mut FetchSessions, epoch: i32) -> (i32, Vec<SessionKey>) {
    match sessions.begin(at(1), request(9, epoch, Vec::new())) {
        Ok(SessionContext::Incremental { id: 9, next_epoch, partitions }) => {
            (next_epoch, partitions.into_iter().map(|(key, _)| key).collect())
        }
        other => panic!("not incremental: {other:?}"),
    }
}

#[test]
fn only_news_is_told() {
    let mut sessions = open_session();
    let (epoch, keys) = next(&mut sessions, 1);
    assert_eq!((epoch, keys), (2, vec![key("a", 0), key("a", 1)]));
    let answers = [(key("a", 0), fetched(10, false)), (key("a", 1), fetched(21, true))];
    assert_eq!(sessions.tell(9, 2, &answers), Ok(vec![false, true]));
    // The partition that had data comes last now, and its new high watermark is no news any more.
    let (epoch, keys) = next(&mut sessions, 2);
    assert_eq!((epoch, keys), (3, vec![key("a", 0), key("a", 1)]));
    let answers = [(key("a", 0), fetched(11, true)), (key("a", 1), fetched(21, false))];
    assert_eq!(sessions.tell(9, 3, &answers), Ok(vec![true, false]));
    let (_, keys) = next(&mut sessions, 3);
    assert_eq!(keys, vec![key("a", 1), key("a", 0)]);
}

#[test]
fn an_error_is_told_each_time_and_so_is_its_end() {
    let mut sessions = open_session();
    for epoch in 1..4 {
        next(&mut sessions, epoch);
        assert_eq!(sessions.tell(9, epoch + 1, &[(key("a", 0), failed())]), Ok(vec![true]));
    }
    next(&mut sessions, 4);
    assert_eq!(sessions.tell(9, 5, &[(key("a", 0), fetched(10, false))]), Ok(vec![true]));
}

#[test]
fn partitions_are_added_changed_and_forgotten() {
    let mut sessions = open_session();
    let mut change = request(9, 1, vec![(key("b", 0), from(5)), (key("a", 1), from(99))]);
    change.forgotten = vec![key("a", 0)];
    let Ok(SessionContext::Incremental { partitions, .. }) = sessions.begin(at(1), change) else {
        panic!("the session goes on")
    };
    assert_eq!(partitions, vec![(key("a", 1), from(99)), (key("b", 0), from(5))]);
}

#[test]
fn a_session_that_reads_nothing_is_closed() {
    let mut sessions = open_session();
    let mut empty = request(9, 1, Vec::new());
    empty.forgotten = vec![key("a", 0), key("a", 1)];
    assert_eq!(sessions.begin(at(1), empty), Ok(SessionContext::Sessionless(Vec::new())));
    assert!(sessions.is_empty());
}

#[test]
fn wrong_requests_are_named() {
    let mut sessions = open_session();
    assert_eq!(sessions.begin(at(1), request(8, 1, vec![])), Err(SessionError::UnknownId));
    assert_eq!(sessions.begin(at(1), request(9, 2, vec![])), Err(SessionError::WrongEpoch));
    let by_id = SessionKey { topic: TopicKey::Id(TopicId::from_bytes([1; 16])), index: 0 };
    let mut mixed = request(9, 1, vec![(by_id, from(0))]);
    assert_eq!(sessions.begin(at(1), mixed.clone()), Err(SessionError::MixedTopics));
    mixed.uses_ids = true;
    assert_eq!(sessions.begin(at(1), mixed), Err(SessionError::MixedTopics));
    // None of these used up the epoch.
    next(&mut sessions, 1);
    assert_eq!(sessions.tell(9, 1, &[]), Err(SessionError::WrongEpoch));
}

#[test]
fn the_final_epoch_closes_and_the_initial_one_replaces() {
    let mut sessions = open_session();
    assert_eq!(
        sessions.begin(at(1), request(9, -1, vec![])),
        Ok(SessionContext::Sessionless(vec![]))
    );
    assert!(sessions.is_empty());
    let mut sessions = open_session();
    assert_eq!(sessions.begin(at(1), request(9, 0, vec![])), Ok(SessionContext::Full(vec![])));
    assert!(sessions.is_empty());
}

#[test]
fn a_full_cache_gives_way_to_the_newer_only_when_the_old_is_stale_or_small() {
    let open = |sessions: &mut FetchSessions, now, id, count| {
        let wants = (0..count).map(|index| (key("t", index), from(0))).collect();
        sessions.open(at(now), id, false, wants, &[])
    };
    let mut sessions = FetchSessions::new(LIMITS);
    assert_eq!(open(&mut sessions, 0, 1, 1), Some(1));
    assert_eq!(open(&mut sessions, 0, 2, 2), Some(2));
    assert_eq!(open(&mut sessions, 1_000, 3, 3), None, "both are young");
    assert_eq!(open(&mut sessions, 1_000, 3, 4), None, "more partitions than a session may have");
    sessions.begin(at(100_000), request(1, 1, vec![])).unwrap();
    sessions.begin(at(100_000), request(2, 1, vec![])).unwrap();
    assert_eq!(open(&mut sessions, 130_000, 3, 1), None, "in use, and not smaller");
    assert_eq!(open(&mut sessions, 130_000, 3, 2), Some(3), "session 1 is old and smaller");
    assert_eq!(sessions.begin(at(130_000), request(1, 2, vec![])), Err(SessionError::UnknownId));
    assert_eq!(open(&mut sessions, 230_000, 4, 1), Some(4), "session 2 is stale");
    assert_eq!(sessions.len(), 2);
}

#[test]
fn sessions_take_no_more_memory_together_than_they_may() {
    // Room for three partitions with short names, or one with a long one.
    let limits = SessionLimits { bytes_max: 600, sessions_max: 9, ..LIMITS };
    let mut sessions = FetchSessions::new(limits);
    let open = |sessions: &mut FetchSessions, now, id, names: &[&str]| {
        let wants: Vec<_> = names.iter().map(|name| (key(name, 0), from(0))).collect();
        sessions.open(at(now), id, false, wants, &[])
    };
    assert_eq!(open(&mut sessions, 0, 1, &["a", "b"]), Some(1));
    assert_eq!(open(&mut sessions, 0, 2, &["c", "d"]), None, "the room is used");
    assert_eq!(open(&mut sessions, 0, 3, &["e"]), Some(3));

    // One that grows beyond it goes on without a session.
    let grown = request(3, 1, vec![(key("f", 0), from(0))]);
    let context = sessions.begin(at(1), grown).unwrap();
    assert!(matches!(context, SessionContext::Sessionless(all) if all.len() == 2));
    assert_eq!(sessions.len(), 1);

    // What it had is there for others, and so is what nobody used for long.
    assert_eq!(open(&mut sessions, 1, 4, &["g"]), Some(4));
    assert_eq!(open(&mut sessions, 120_001, 5, &["h", "i", "j"]), None, "one is in use");
    assert_eq!(open(&mut sessions, 120_002, 6, &["h", "i", "j"]), Some(6));
    assert_eq!(sessions.len(), 1);
    let long = "x".repeat(600);
    assert_eq!(open(&mut sessions, 400_000, 7, &[&long]), None, "a name counts too");
}
