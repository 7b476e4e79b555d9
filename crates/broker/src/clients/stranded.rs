//! When a client counts as stranded: it asks where to connect and never arrives there.
//!
//! A client that was told an address which does not work where it is asks again. Some do on the
//! connection that they began with, about once a second (librdkafka before 2.6, `KafkaJS`); some begin
//! anew each time (librdkafka since); some give up, and are begun anew by whoever started them
//! (kafka-python). None of them asks for anything else. Counting connections would not do: where the
//! address works a healthy client may well use a single one for everything.
//!
//! A question is one about topics by name, or about brokers alone, that was answered well: who lists
//! all topics (`kcat -L`, a monitor) or waits for a topic to appear is not lost.

use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;

/// So many questions of one client...
const QUESTIONS: usize = 5;
/// ...within this time, in milliseconds, and nothing else: the client is stranded. A name server that
/// does not answer stretches a client's round to some five seconds.
const QUESTIONS_WITHIN_MS: u64 = 30_000;
/// So many connections of one client that ask and close...
const LOOKS: usize = 3;
/// ...within this time, in milliseconds: the client is stranded too.
const LOOKS_WITHIN_MS: u64 = 300_000;
/// How long a client is trusted that has just worked, or done what seekers don't, in milliseconds:
/// the connections that it began with are closed meanwhile.
const TRUSTED_MS: u64 = 20_000;
/// Clients that are remembered. Reached: the one that was heard of longest ago is forgotten.
const CLIENTS_MAX: usize = 1_000;

/// Which client: connections come and go.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ClientKey {
    pub(super) address: IpAddr,
    pub(super) client_id: String,
}

/// Clients that ask, and what came of it. Times are milliseconds of a clock that never goes back.
#[derive(Debug, Default)]
pub(super) struct Seekers(BTreeMap<ClientKey, Seeker>);

#[derive(Debug, Default)]
struct Seeker {
    /// When it asked: the newest, oldest first.
    questions: VecDeque<u64>,
    /// When it closed a connection on which it only asked: the newest, oldest first.
    looks: VecDeque<u64>,
    /// Until then nothing is held against it.
    trusted_until_ms: u64,
    heard_ms: u64,
}

impl Seekers {
    /// Notes a question; whether there were so many that nobody asks who has arrived.
    pub(super) fn asks(&mut self, key: &ClientKey, now_ms: u64) -> bool {
        let seeker = self.seeker(key, now_ms);
        if now_ms < seeker.trusted_until_ms {
            return false;
        }
        seeker.questions.push_back(now_ms);
        if seeker.questions.len() > QUESTIONS {
            seeker.questions.pop_front();
        }
        let first = seeker.questions.front().copied().unwrap_or(now_ms);
        seeker.questions.len() == QUESTIONS && now_ms.saturating_sub(first) <= QUESTIONS_WITHIN_MS
    }

    /// Notes that a connection was closed on which a client only asked; whether that came too often.
    pub(super) fn leaves(&mut self, key: &ClientKey, now_ms: u64) -> bool {
        let seeker = self.seeker(key, now_ms);
        if now_ms < seeker.trusted_until_ms {
            return false;
        }
        seeker.looks.push_back(now_ms);
        if seeker.looks.len() > LOOKS {
            seeker.looks.pop_front();
        }
        let first = seeker.looks.front().copied().unwrap_or(now_ms);
        seeker.looks.len() == LOOKS && now_ms.saturating_sub(first) <= LOOKS_WITHIN_MS
    }

    /// Notes that a client works, or does what seekers don't: what was thought of it is forgotten.
    pub(super) fn trust(&mut self, key: &ClientKey, now_ms: u64) {
        let trusted_until_ms = now_ms.saturating_add(TRUSTED_MS);
        *self.seeker(key, now_ms) =
            Seeker { trusted_until_ms, heard_ms: now_ms, ..Seeker::default() };
    }

    fn seeker(&mut self, key: &ClientKey, now_ms: u64) -> &mut Seeker {
        if !self.0.contains_key(key) && self.0.len() >= CLIENTS_MAX {
            let oldest = self.0.iter().min_by_key(|(_, seeker)| seeker.heard_ms);
            if let Some(oldest) = oldest.map(|(key, _)| key.clone()) {
                self.0.remove(&oldest);
            }
        }
        let seeker = self.0.entry(key.clone()).or_default();
        seeker.heard_ms = now_ms;
        seeker
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(id: usize) -> ClientKey {
        ClientKey { address: IpAddr::from([10, 0, 0, 7]), client_id: format!("app-{id}") }
    }

    #[test]
    fn five_questions_in_half_a_minute_are_too_many() {
        let mut seekers = Seekers::default();
        let asked = [0, 1_000, 2_000, 3_000, 30_000].map(|at| seekers.asks(&key(1), at));
        assert_eq!(asked, [false, false, false, false, true]);
        assert!(!seekers.asks(&key(1), 31_500), "the second was more than 30 s before");
        assert!((0..100).all(|n| !seekers.asks(&key(2), n * 7_501)), "that is no hurry");
    }

    #[test]
    fn three_looks_in_five_minutes_are_too_many() {
        let mut seekers = Seekers::default();
        assert!(!seekers.leaves(&key(1), 0));
        assert!(!seekers.leaves(&key(1), 100_000));
        assert!(!seekers.leaves(&key(2), 100_001), "another client");
        assert!(seekers.leaves(&key(1), 300_000));
        assert!(!seekers.leaves(&key(1), 900_000), "long ago");
    }

    #[test]
    fn who_arrives_is_innocent_again() {
        let mut seekers = Seekers::default();
        seekers.leaves(&key(1), 0);
        seekers.leaves(&key(1), 1);
        seekers.trust(&key(1), 2);
        assert!((3..100).all(|at| !seekers.leaves(&key(1), at)), "what it began with is closed");
        let later = [30_000, 30_001, 30_002].map(|at| seekers.leaves(&key(1), at));
        assert_eq!(later, [false, false, true]);
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut seekers = Seekers::default();
        for id in 0..CLIENTS_MAX + 10 {
            seekers.leaves(&key(id), id as u64);
        }
        assert_eq!(seekers.0.len(), CLIENTS_MAX);
        assert!(!seekers.0.contains_key(&key(0)), "the oldest is gone");
        for at in 0..100 {
            seekers.asks(&key(5), at);
            seekers.leaves(&key(5), at);
        }
        let seeker = &seekers.0[&key(5)];
        assert_eq!((seeker.questions.len(), seeker.looks.len()), (QUESTIONS, LOOKS));
    }
}
