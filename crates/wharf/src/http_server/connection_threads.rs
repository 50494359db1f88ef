//! The threads that serve connections, each with a single-threaded async runtime.
//!
//! A connection stays on its thread, so the tasks of a small call wake each other without a system call. A runtime that
//! shares all tasks between its threads wakes another core for most calls, which costs more than the calls.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};
use tokio::{
    net::TcpStream,
    runtime::{Builder, Handle},
    sync::oneshot,
};

/// The threads beside the main one. Dropping them stops them.
#[derive(Debug, Default)]
pub(crate) struct ConnectionThreads(Vec<ConnectionThread>);

#[derive(Debug)]
struct ConnectionThread {
    runtime: Handle,
    stop: oneshot::Sender<()>,
    thread: thread::JoinHandle<()>,
}

/// Assigns connections to threads.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionPlacement(Arc<[ThreadLoad]>);

/// A thread and the number of its open connections.
#[derive(Debug)]
struct ThreadLoad {
    runtime: Handle,
    connections: AtomicUsize,
}

/// A connection's place on a thread, until it is dropped.
#[derive(Debug)]
pub(super) struct PlacedConnection {
    placement: ConnectionPlacement,
    index: usize,
}

impl ConnectionThreads {
    /// Starts `count` threads. Each waits at most `exit_timeout` for its blocking work when it stops.
    pub(crate) fn start(count: usize, exit_timeout: Duration) -> io::Result<ConnectionThreads> {
        (0..count)
            .map(|index| ConnectionThread::start(index, exit_timeout))
            .collect::<io::Result<_>>()
            .map(Self)
    }

    /// Returns a placement on these threads and on the one of the runtime `main`.
    pub(crate) fn placement(&self, main: &Handle) -> ConnectionPlacement {
        let others = self.0.iter().map(|it| it.runtime.clone());
        ConnectionPlacement::on(std::iter::once(main.clone()).chain(others))
    }

    /// Stops the threads and waits for them.
    pub(crate) fn stop(self) {
        let (stops, threads): (Vec<_>, Vec<_>) = self.0.into_iter().map(|it| (it.stop, it.thread)).unzip();
        drop(stops);
        for thread in threads {
            // A panic of the thread has been printed.
            let _ = thread.join();
        }
    }
}

impl ConnectionThread {
    fn start(index: usize, exit_timeout: Duration) -> io::Result<ConnectionThread> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = thread::Builder::new().name(format!("connections-{}", index + 1)).spawn(move || {
            // The error is the signal: the sender was dropped.
            let _ = runtime.block_on(stopped);
            runtime.shutdown_timeout(exit_timeout);
        })?;
        Ok(ConnectionThread { runtime: handle, stop, thread })
    }
}

impl ConnectionPlacement {
    /// Places all connections on the current runtime.
    pub(crate) fn current() -> ConnectionPlacement {
        ConnectionPlacement::on(std::iter::once(Handle::current()))
    }

    fn on(runtimes: impl Iterator<Item = Handle>) -> ConnectionPlacement {
        let load = |runtime| ThreadLoad { runtime, connections: AtomicUsize::new(0) };
        ConnectionPlacement(runtimes.map(load).collect())
    }

    /// Places a connection on the thread with the fewest connections.
    pub(super) fn place(&self) -> PlacedConnection {
        let loads = self.0.iter().map(|it| it.connections.load(Ordering::Relaxed)).enumerate();
        let (index, _) = loads.min_by_key(|(_, connections)| *connections).unwrap_or_default();
        self.0[index].connections.fetch_add(1, Ordering::Relaxed);
        PlacedConnection { placement: self.clone(), index }
    }
}

impl PlacedConnection {
    /// The runtime of the thread.
    pub(super) fn runtime(&self) -> &Handle {
        &self.placement.0[self.index].runtime
    }

    /// Moves a connection that the current runtime has accepted to the thread.
    pub(super) fn adopt(&self, stream: TcpStream) -> io::Result<TcpStream> {
        if self.runtime().id() == Handle::current().id() {
            return Ok(stream);
        }
        let stream = stream.into_std()?;
        let _entered = self.runtime().enter();
        TcpStream::from_std(stream)
    }
}

impl Drop for PlacedConnection {
    fn drop(&mut self) {
        self.placement.0[self.index].connections.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::{ConnectionPlacement, ConnectionThreads};
    use crate::{exit::Exit, http_server::accept};
    use std::{thread, time::Duration};
    use tokio::{
        io::AsyncReadExt,
        net::{TcpListener, TcpStream},
        runtime::{Builder, Handle},
        sync::{mpsc, oneshot},
    };

    #[test]
    fn connections_are_spread_over_the_threads() {
        let threads = ConnectionThreads::start(2, Duration::ZERO).expect("threads");
        let main = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let placement = threads.placement(main.handle());
        main.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
            let address = listener.local_addr().expect("an address");
            let (name, mut names) = mpsc::unbounded_channel();
            let (stop, stopped) = oneshot::channel::<()>();
            let serving = accept(
                (listener, &placement),
                async { stopped.await.map_or(Exit::Success, |()| Exit::ToolError) },
                move |mut stream: TcpStream, _| {
                    let name = name.clone();
                    async move {
                        name.send(thread::current().name().map(str::to_owned)).expect("the test waits");
                        // Ends with the client.
                        let _ = stream.read(&mut [0]).await;
                    }
                },
            );
            let connecting = async {
                let (mut open, mut found) = (Vec::new(), Vec::new());
                for _ in 0..6 {
                    open.push(TcpStream::connect(address).await.expect("a connection"));
                    found.push(names.recv().await.expect("a name"));
                }
                // Its thread gets the next connection.
                drop(open.remove(1));
                while placement.open_connections() > 5 {
                    tokio::task::yield_now().await;
                }
                open.push(TcpStream::connect(address).await.expect("a connection"));
                assert_eq!(names.recv().await.expect("a name"), found[1]);
                drop((open, stop));
                found
            };
            let (_, found) = tokio::join!(serving, connecting);
            let main = thread::current().name().map(str::to_owned);
            let [first, second] = ["connections-1", "connections-2"].map(|it| Some(it.to_owned()));
            assert_eq!(found, [&main, &first, &second, &main, &first, &second].map(Clone::clone));
        });
        threads.stop();
    }

    #[tokio::test]
    async fn one_runtime_keeps_all_connections() {
        let placement = ConnectionPlacement::current();
        let places = [placement.place(), placement.place()];
        assert!(places.iter().all(|it| it.runtime().id() == Handle::current().id()));
    }

    impl ConnectionPlacement {
        fn open_connections(&self) -> usize {
            self.0.iter().map(|it| it.connections.load(std::sync::atomic::Ordering::Relaxed)).sum()
        }
    }
}
