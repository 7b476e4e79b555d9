//! A listener that writes down what it hears.

use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use strandline_model::Offset;
use tokio::sync::Notify;

use crate::{CommitLog, ErrorKind, LogListener, StorageError};

/// What a listener was told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// Everything before this is durable.
    Durable(Offset),
    /// The handle died of this.
    Died(ErrorKind),
}

/// Writes down what it is told. Asks the log a few questions each time: an engine that calls its
/// listener with a lock held hangs.
#[derive(Debug, Default)]
pub struct Recorder {
    events: Mutex<Vec<Event>>,
    complaints: Mutex<Vec<String>>,
    heard: Notify,
    log: Mutex<Option<Weak<dyn CommitLog>>>,
}

impl Recorder {
    /// From now on, asks `log` at each event.
    pub fn watch(&self, log: &Arc<dyn CommitLog>) {
        *self.log.lock() = Some(Arc::downgrade(log));
    }

    /// What was heard so far.
    pub fn events(&self) -> Vec<Event> {
        self.events.lock().clone()
    }

    /// What was wrong with the calls themselves.
    pub fn complaints(&self) -> Vec<String> {
        self.complaints.lock().clone()
    }

    /// The highest end that was reported durable.
    pub fn durable_end(&self) -> Option<Offset> {
        let ends = self.events();
        ends.iter()
            .filter_map(|event| match event {
                Event::Durable(end) => Some(*end),
                Event::Died(_) => None,
            })
            .max()
    }

    /// Waits until the handle has died.
    pub async fn death(&self) -> ErrorKind {
        loop {
            let heard = self.heard.notified();
            let death = self.events.lock().iter().find_map(|event| match event {
                Event::Died(kind) => Some(*kind),
                Event::Durable(_) => None,
            });
            match death {
                Some(kind) => return kind,
                None => heard.await,
            }
        }
    }

    fn hear(&self, event: Event) {
        let log = self.log.lock().as_ref().and_then(Weak::upgrade);
        if let Some(log) = log {
            let bounds = log.bounds();
            if let Event::Durable(end) = event
                && bounds.durable_end < end
            {
                // Not a panic: it would end a task of the engine and tell nobody why.
                self.complaints.lock().push(format!("{bounds:?} lag behind {event:?}"));
            }
            drop(log.durable(bounds.durable_end));
            drop(log.chunks());
        }
        self.events.lock().push(event);
        self.heard.notify_waiters();
    }
}

impl LogListener for Recorder {
    fn durable_end_moved(&self, end: Offset) {
        self.hear(Event::Durable(end));
    }

    fn died(&self, error: &StorageError) {
        self.hear(Event::Died(error.kind()));
    }
}
