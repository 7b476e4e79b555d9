//! All fetch sessions of a broker.

use std::collections::BTreeMap;

use strandline_model::Timestamp;

use super::session::Session;
use super::{FetchPartition, Fetched, SessionKey};

/// The epoch of a request that opens a session.
const INITIAL_EPOCH: i32 = 0;
/// The epoch of a request that wants no session, or closes the one that it names.
const FINAL_EPOCH: i32 = -1;

/// The bounds of the cache.
#[derive(Clone, Copy, Debug)]
pub struct SessionLimits {
    /// `max.incremental.fetch.session.cache.slots`. Reached: a stale or smaller session is
    /// evicted, else the client gets none and keeps sending full requests.
    pub sessions_max: usize,
    /// Reached: the client gets no session.
    pub partitions_per_session_max: usize,
    /// Bytes that all sessions together may take, about. Reached: a stale session is evicted, else
    /// the client gets none.
    pub bytes_max: usize,
    /// A session that was not used for so long may be evicted; one that is younger may not be
    /// evicted for being small.
    pub eviction_ms: i64,
}

/// The session part of a Fetch request.
#[derive(Clone, Debug)]
pub struct SessionRequest {
    /// The session, or 0.
    pub id: i32,
    /// The session's epoch; 0 opens a session, −1 wants none.
    pub epoch: i32,
    /// Whether topics are named by id (v13 and later).
    pub uses_ids: bool,
    /// Partitions to add or change.
    pub partitions: Vec<(SessionKey, FetchPartition)>,
    /// Partitions to drop.
    pub forgotten: Vec<SessionKey>,
}

/// What to fetch for a request, and what its response belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionContext {
    /// Answer everything; no session.
    Sessionless(Vec<(SessionKey, FetchPartition)>),
    /// Answer everything; then [`FetchSessions::open`] a session.
    Full(Vec<(SessionKey, FetchPartition)>),
    /// Answer what [`FetchSessions::tell`] says.
    Incremental {
        /// The session.
        id: i32,
        /// The epoch that it expects next, which proves at the end that nobody else used it.
        next_epoch: i32,
        /// Everything that the session reads.
        partitions: Vec<(SessionKey, FetchPartition)>,
    },
}

/// Why a session can't go on. The client opens a new one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SessionError {
    /// There is no such session (any more).
    #[error("fetch session is unknown")]
    UnknownId,
    /// The request is not the next one of its session.
    #[error("fetch session epoch is not the expected one")]
    WrongEpoch,
    /// The session began with names and goes on with ids, or the other way round.
    #[error("fetch session mixes topic names and ids")]
    MixedTopics,
}

/// All sessions, by id.
#[derive(Debug)]
pub struct FetchSessions {
    sessions: BTreeMap<i32, Session>,
    /// Of all sessions.
    bytes: usize,
    limits: SessionLimits,
}

impl FetchSessions {
    /// No session yet.
    pub const fn new(limits: SessionLimits) -> Self {
        Self { sessions: BTreeMap::new(), bytes: 0, limits }
    }

    /// How many sessions there are.
    pub fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
    }

    /// Takes a request: says what to fetch for it.
    pub fn begin(
        &mut self,
        now: Timestamp,
        request: SessionRequest,
    ) -> Result<SessionContext, SessionError> {
        match request.epoch {
            FINAL_EPOCH => {
                self.close(request.id);
                Ok(SessionContext::Sessionless(request.partitions))
            }
            INITIAL_EPOCH => {
                self.close(request.id);
                Ok(SessionContext::Full(request.partitions))
            }
            _ => self.go_on(now, request),
        }
    }

    fn go_on(
        &mut self,
        now: Timestamp,
        request: SessionRequest,
    ) -> Result<SessionContext, SessionError> {
        let session = self.sessions.get_mut(&request.id).ok_or(SessionError::UnknownId)?;
        if session.epoch != request.epoch {
            return Err(SessionError::WrongEpoch);
        }
        let mentioned = request.partitions.iter().map(|(key, _)| key).chain(&request.forgotten);
        if request.uses_ids != session.uses_ids
            || mentioned.into_iter().any(|key| session.mixes_names_and_ids(&key.topic))
        {
            return Err(SessionError::MixedTopics);
        }
        self.bytes -= session.bytes();
        for (key, wants) in request.partitions {
            session.want(key, wants);
        }
        for key in &request.forgotten {
            session.forget(key);
        }
        self.bytes += session.bytes();
        let too_large = session.len() > self.limits.partitions_per_session_max
            || self.bytes > self.limits.bytes_max;
        if session.len() == 0 || too_large {
            let partitions = session.wants();
            self.close(request.id);
            return Ok(SessionContext::Sessionless(partitions));
        }
        session.last_used_at = now;
        session.epoch = following(session.epoch);
        Ok(SessionContext::Incremental {
            id: request.id,
            next_epoch: session.epoch,
            partitions: session.wants(),
        })
    }

    /// Which of the fetched partitions the response of an incremental request carries.
    ///
    /// Fails when the session went on or away while the data was read.
    pub fn tell(
        &mut self,
        id: i32,
        next_epoch: i32,
        fetched: &[(SessionKey, Fetched)],
    ) -> Result<Vec<bool>, SessionError> {
        let session = self.sessions.get_mut(&id).ok_or(SessionError::UnknownId)?;
        if session.epoch != next_epoch {
            return Err(SessionError::WrongEpoch);
        }
        Ok(fetched.iter().map(|(key, fetched)| session.tell(key, *fetched)).collect())
    }

    /// Opens a session for a full request that was answered with `fetched`, under the id
    /// `candidate`, which the caller draws at random above 0.
    ///
    /// `None` when the cache is full of sessions that are worth more, or the id is taken.
    pub fn open(
        &mut self,
        now: Timestamp,
        candidate: i32,
        uses_ids: bool,
        partitions: Vec<(SessionKey, FetchPartition)>,
        fetched: &[(SessionKey, Fetched)],
    ) -> Option<i32> {
        if partitions.len() > self.limits.partitions_per_session_max
            || candidate <= 0
            || self.sessions.contains_key(&candidate)
        {
            return None;
        }
        let bytes = partitions.iter().map(|(key, _)| key.weight()).sum();
        if !self.make_room(now, partitions.len()) || !self.make_bytes(now, bytes) {
            return None;
        }
        let mut session = Session::new(now, uses_ids);
        for (key, wants) in partitions {
            session.want(key, wants);
        }
        for (key, fetched) in fetched {
            session.tell(key, *fetched);
        }
        self.bytes += session.bytes();
        self.sessions.insert(candidate, session);
        Some(candidate)
    }

    fn close(&mut self, id: i32) {
        if let Some(closed) = self.sessions.remove(&id) {
            self.bytes -= closed.bytes();
        }
    }

    /// Makes room for so many bytes: stale sessions go, the longest unused one first.
    fn make_bytes(&mut self, now: Timestamp, bytes: usize) -> bool {
        while self.bytes + bytes > self.limits.bytes_max {
            let Some(stale) = self.stalest(now) else { return false };
            self.close(stale);
        }
        true
    }

    /// The session that was not used for longest, if that is long enough.
    fn stalest(&self, now: Timestamp) -> Option<i32> {
        let (id, session) = self.sessions.iter().min_by_key(|(_, session)| session.last_used_at)?;
        (now.millis_since(session.last_used_at) > self.limits.eviction_ms).then_some(*id)
    }

    /// Makes room for a session of `size` partitions: the longest unused one goes if it is stale,
    /// else the smallest of those that are old enough, if it is smaller.
    fn make_room(&mut self, now: Timestamp, size: usize) -> bool {
        if self.sessions.len() < self.limits.sessions_max {
            return true;
        }
        let eviction_ms = self.limits.eviction_ms;
        let smallest = self
            .sessions
            .iter()
            .filter(|(_, s)| now.millis_since(s.created_at) > eviction_ms && s.len() < size)
            .min_by_key(|(_, session)| session.len());
        let Some(victim) = self.stalest(now).or(smallest.map(|(id, _)| *id)) else { return false };
        self.close(victim);
        true
    }
}

/// The epoch after `epoch`: 0 and −1 mean something else, so it wraps to 1.
const fn following(epoch: i32) -> i32 {
    if epoch == i32::MAX { 1 } else { epoch + 1 }
}
