//! Polls the handler of a request only if something has woken it.
//!
//! A connection is polled for several reasons, for example because the client has sent more bytes. Each time the HTTP library also
//! polls the handler, which goes down through all layers of a call to find out that nothing has happened.

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

/// Records that the handler of a connection was woken, and wakes the connection. Requests of one connection follow each
/// other, so they share it.
#[derive(Debug, Default)]
struct WakeFlag {
    is_woken: AtomicBool,
    connection: AtomicWaker,
}

/// Makes handlers of one connection poll only when woken.
#[derive(Debug)]
pub(super) struct WakeFilter {
    flag: Arc<WakeFlag>,
    waker: Waker,
}

pin_project! {
    /// A handler that is polled only if something has woken it.
    pub(super) struct WokenFuture<F> {
        flag: Arc<WakeFlag>,
        waker: Waker,
        #[pin]
        handler: F,
    }
}

impl WakeFilter {
    pub(super) fn new() -> WakeFilter {
        let flag = Arc::<WakeFlag>::default();
        WakeFilter { waker: flag.clone().into(), flag }
    }

    /// Wraps the handler of the next request.
    pub(super) fn filter<F>(&self, handler: F) -> WokenFuture<F> {
        // The first poll starts it.
        self.flag.is_woken.store(true, Ordering::Release);
        WokenFuture { flag: self.flag.clone(), waker: self.waker.clone(), handler }
    }
}

impl Wake for WakeFlag {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_woken.store(true, Ordering::Release);
        self.connection.wake();
    }
}

impl<F: Future> Future for WokenFuture<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        // Before the flag is read, so that a wake after that finds the connection.
        this.flag.connection.register(context.waker());
        if !this.flag.is_woken.swap(false, Ordering::AcqRel) {
            return Poll::Pending;
        }
        this.handler.poll(&mut Context::from_waker(this.waker))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{future::poll_fn, sync::atomic::AtomicUsize, time::Duration};
    use tokio::{sync::oneshot, time::timeout};

    #[tokio::test]
    async fn handler_is_polled_only_when_woken() {
        let polls = AtomicUsize::new(0);
        let (sender, mut receiver) = oneshot::channel::<u8>();
        let filter = WakeFilter::new();
        let handler = poll_fn(|context| {
            polls.fetch_add(1, Ordering::Relaxed);
            Pin::new(&mut receiver).poll(context)
        });
        let mut handler = std::pin::pin!(filter.filter(handler));
        // Polled for other reasons.
        for _ in 0..3 {
            let polled = poll_fn(|context| Poll::Ready(handler.as_mut().poll(context).is_pending())).await;
            assert!(polled);
        }
        assert_eq!(polls.load(Ordering::Relaxed), 1);
        sender.send(7).expect("it waits");
        let answered = timeout(Duration::from_secs(10), handler).await.expect("it is woken");
        assert_eq!((answered, polls.load(Ordering::Relaxed)), (Ok(7), 2));
    }

    #[tokio::test]
    async fn wakes_from_other_threads_are_not_lost() {
        let filter = WakeFilter::new();
        for _ in 0..2_000 {
            let (sender, receiver) = oneshot::channel::<()>();
            let other = std::thread::spawn(move || sender.send(()));
            let answered =
                timeout(Duration::from_secs(10), filter.filter(receiver)).await.expect("it is woken");
            assert_eq!(answered, Ok(()));
            other.join().expect("no panic").expect("it waits");
        }
    }
}
