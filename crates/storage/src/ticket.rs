//! The promise that an append will be durable.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::sync::oneshot;

use crate::{ErrorKind, StorageError};

/// Resolves when what it stands for is durable, or can't become so any more.
///
/// Dropping a ticket cancels nothing: the append goes on.
#[derive(Debug)]
pub struct Ticket(State);

#[derive(Debug)]
enum State {
    Settled(Option<Result<(), StorageError>>),
    Waiting(oneshot::Receiver<Result<(), StorageError>>),
}

/// The engine's end of a [`Ticket`].
#[derive(Debug)]
pub struct Completion(oneshot::Sender<Result<(), StorageError>>);

impl Ticket {
    /// A ticket and the end that settles it.
    pub fn pair() -> (Completion, Self) {
        let (sender, receiver) = oneshot::channel();
        (Completion(sender), Self(State::Waiting(receiver)))
    }

    /// A ticket that is settled already.
    pub const fn settled(outcome: Result<(), StorageError>) -> Self {
        Self(State::Settled(Some(outcome)))
    }
}

impl Completion {
    /// Settles the ticket. Wakes whoever waits for it.
    pub fn settle(self, outcome: Result<(), StorageError>) {
        // The waiter may have gone away with its connection: nobody is left to tell.
        drop(self.0.send(outcome));
    }
}

/// # Panics
/// When polled again after it was ready.
impl Future for Ticket {
    type Output = Result<(), StorageError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            State::Settled(outcome) => {
                Poll::Ready(outcome.take().expect("a ticket is not polled after it was ready"))
            }
            State::Waiting(receiver) => Pin::new(receiver).poll(cx).map(|received| {
                received.unwrap_or_else(|_| {
                    let message = "engine dropped the append without an answer";
                    Err(StorageError::new(ErrorKind::Closed, message))
                })
            }),
        }
    }
}
