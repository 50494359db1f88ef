//! Polls a future only if something has woken it.
//!
//! A connection is polled whenever its request or its stream makes progress. What ends it is polled only when it may have
//! happened.

use futures_util::task::AtomicWaker;
use pin_project_lite::pin_project;
use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

/// Records that a future was woken, and wakes the task that polls it.
#[derive(Debug)]
struct WakeFlag {
    is_woken: AtomicBool,
    task: AtomicWaker,
}

pin_project! {
    /// A future that is polled only if something has woken it.
    pub(super) struct WokenFuture<F> {
        flag: Arc<WakeFlag>,
        waker: Waker,
        #[pin]
        future: F,
    }
}

impl<F> WokenFuture<F> {
    pub(super) fn new(future: F) -> WokenFuture<F> {
        // The first poll starts it.
        let flag = Arc::new(WakeFlag { is_woken: AtomicBool::new(true), task: AtomicWaker::new() });
        WokenFuture { waker: flag.clone().into(), flag, future }
    }
}

impl Wake for WakeFlag {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_woken.store(true, Ordering::Release);
        self.task.wake();
    }
}

impl<F: Future> Future for WokenFuture<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        // Before the flag is read, so that a wake after that finds the task.
        this.flag.task.register(context.waker());
        if !this.flag.is_woken.swap(false, Ordering::AcqRel) {
            return Poll::Pending;
        }
        this.future.poll(&mut Context::from_waker(this.waker))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{future::poll_fn, sync::atomic::AtomicUsize, time::Duration};
    use tokio::{sync::oneshot, time::timeout};

    #[tokio::test]
    async fn future_is_polled_only_when_woken() {
        let polls = AtomicUsize::new(0);
        let (sender, mut receiver) = oneshot::channel::<u8>();
        let future = poll_fn(|context| {
            polls.fetch_add(1, Ordering::Relaxed);
            Pin::new(&mut receiver).poll(context)
        });
        let mut future = std::pin::pin!(WokenFuture::new(future));
        // Polled for other reasons.
        for _ in 0..3 {
            let polled = poll_fn(|context| Poll::Ready(future.as_mut().poll(context).is_pending())).await;
            assert!(polled);
        }
        assert_eq!(polls.load(Ordering::Relaxed), 1);
        sender.send(7).expect("it waits");
        let answered = timeout(Duration::from_secs(10), future).await.expect("it is woken");
        assert_eq!((answered, polls.load(Ordering::Relaxed)), (Ok(7), 2));
    }

    #[tokio::test]
    async fn wakes_from_other_threads_are_not_lost() {
        for _ in 0..2_000 {
            let (sender, receiver) = oneshot::channel::<()>();
            let other = std::thread::spawn(move || sender.send(()));
            let answered =
                timeout(Duration::from_secs(10), WokenFuture::new(receiver)).await.expect("it is woken");
            assert_eq!(answered, Ok(()));
            other.join().expect("no panic").expect("it waits");
        }
    }
}
