//! A bounded queue for the messages that are sent during one request.
//!
//! Most requests send nothing before their response, so an empty queue has to be cheap: it costs one allocation and
//! reserves no space for messages. A tokio channel allocates a block of 32 slots on its own cache lines, which suits
//! channels that live long.

use std::{
    collections::VecDeque,
    future::poll_fn,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

/// Sending half of a mailbox. Cheap to clone.
#[derive(Debug)]
pub struct Sender<T>(Arc<Mutex<State<T>>>);

/// Receiving half of a mailbox. Dropping it closes the mailbox.
#[derive(Debug)]
pub struct Receiver<T>(Arc<Mutex<State<T>>>);

#[derive(Debug)]
struct State<T> {
    waiting: VecDeque<T>,
    limit: usize,
    senders: usize,
    is_closed: bool,
    reader: Option<Waker>,
    /// Wakers of senders that wait for free space.
    writers: Vec<Waker>,
}

/// Creates a mailbox that holds up to `limit` messages.
pub fn channel<T>(limit: usize) -> (Sender<T>, Receiver<T>) {
    let (waiting, writers) = (VecDeque::new(), Vec::new());
    let state = State { waiting, limit, senders: 1, is_closed: false, reader: None, writers };
    let shared = Arc::new(Mutex::new(state));
    (Sender(shared.clone()), Receiver(shared))
}

impl<T> Sender<T> {
    /// Waits for free space and sends a message. Returns the message if the receiver has been dropped.
    pub async fn send(&self, message: T) -> Result<(), T> {
        let mut message = Some(message);
        poll_fn(|context| self.poll_send(&mut message, context)).await
    }

    /// Sends a message without waiting. Returns it if the mailbox is full or the receiver has been dropped.
    pub fn try_send(&self, message: T) -> Result<(), T> {
        let mut state = lock(&self.0);
        if state.is_closed || state.waiting.len() >= state.limit {
            return Err(message);
        }
        state.put(message);
        Ok(())
    }

    fn poll_send(&self, message: &mut Option<T>, context: &Context<'_>) -> Poll<Result<(), T>> {
        let mut state = lock(&self.0);
        if !state.is_closed && state.waiting.len() >= state.limit {
            if !state.writers.iter().any(|it| it.will_wake(context.waker())) {
                state.writers.push(context.waker().clone());
            }
            return Poll::Pending;
        }
        match message.take() {
            Some(message) if state.is_closed => return Poll::Ready(Err(message)),
            Some(message) => state.put(message),
            None => {}
        }
        Poll::Ready(Ok(()))
    }
}

impl<T> Receiver<T> {
    /// Waits for the next message. Returns `None` when the mailbox is empty and all senders have been dropped.
    /// Cancel-safe.
    pub async fn recv(&mut self) -> Option<T> {
        poll_fn(|context| self.poll_recv(context)).await
    }

    /// Returns the next message without waiting.
    pub fn try_recv(&mut self) -> Option<T> {
        lock(&self.0).take()
    }

    fn poll_recv(&self, context: &Context<'_>) -> Poll<Option<T>> {
        let mut state = lock(&self.0);
        if let Some(message) = state.take() {
            return Poll::Ready(Some(message));
        }
        if state.senders == 0 {
            return Poll::Ready(None);
        }
        match &mut state.reader {
            Some(reader) => reader.clone_from(context.waker()),
            none => *none = Some(context.waker().clone()),
        }
        Poll::Pending
    }
}

impl<T> State<T> {
    fn put(&mut self, message: T) {
        self.waiting.push_back(message);
        self.wake_reader();
    }

    fn take(&mut self) -> Option<T> {
        let message = self.waiting.pop_front()?;
        self.wake_writers();
        Some(message)
    }

    fn wake_reader(&mut self) {
        self.reader.take().into_iter().for_each(Waker::wake);
    }

    fn wake_writers(&mut self) {
        self.writers.drain(..).for_each(Waker::wake);
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Sender<T> {
        lock(&self.0).senders += 1;
        Sender(self.0.clone())
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        let mut state = lock(&self.0);
        state.senders -= 1;
        if state.senders == 0 {
            state.wake_reader();
        }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let mut state = lock(&self.0);
        state.is_closed = true;
        state.wake_writers();
        let unread = std::mem::take(&mut state.waiting);
        // Unlock first: dropping a message may drop a sender of this mailbox, which locks again.
        drop(state);
        drop(unread);
    }
}

fn lock<T>(shared: &Mutex<State<T>>) -> MutexGuard<'_, State<T>> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tokio::{task::JoinSet, time::timeout};

    #[tokio::test]
    async fn messages_arrive_in_order_until_all_senders_are_dropped() {
        let (sender, mut receiver) = channel(8);
        for number in 0..3 {
            assert_eq!(sender.send(number).await, Ok(()));
        }
        drop(sender);
        let all =
            [receiver.recv().await, receiver.recv().await, receiver.recv().await, receiver.recv().await];
        assert_eq!(all, [Some(0), Some(1), Some(2), None]);
    }

    #[tokio::test]
    async fn a_dropped_receiver_fails_waiting_senders() {
        let (sender, receiver) = channel(1);
        assert_eq!(sender.try_send("a"), Ok(()));
        assert_eq!(sender.try_send("b"), Err("b"), "it is full");
        let waiting = sender.send("c");
        let leaving = async {
            tokio::task::yield_now().await;
            drop(receiver);
        };
        assert_eq!(tokio::join!(waiting, leaving).0, Err("c"));
        assert_eq!(sender.try_send("d"), Err("d"));
    }

    /// Many senders share one slot: all messages arrive, in order per sender.
    #[tokio::test(flavor = "multi_thread")]
    async fn senders_wait_for_free_space() {
        let (sender, mut receiver) = channel(1);
        let mut writers = JoinSet::new();
        for writer in 0..16 {
            let sender = sender.clone();
            writers.spawn(async move {
                for number in 0..100 {
                    sender.send((writer, number)).await.expect("somebody reads");
                }
            });
        }
        drop(sender);
        let mut next = [0; 16];
        let reading = async {
            while let Some((writer, number)) = receiver.recv().await {
                assert_eq!(next[writer], number);
                next[writer] += 1;
            }
        };
        timeout(Duration::from_secs(30), reading).await.expect("nobody is forgotten");
        assert_eq!(next, [100; 16]);
    }
}
