//! Moves messages between a link and the pipes of a child process.
//!
//! A single task does this, because it also decides when the connection is over: the session closed the link, the
//! process exited (even if a grandchild keeps its stdout open), stdout closed, or the server violated the protocol.

use super::{Charset, process::Process};
use crate::{
    Disconnect, Exit, Inbound,
    link::LinkIo,
    outbox::Outbox,
    reader::{Reader, Stop},
};
use std::{io, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    task::yield_now,
    time,
};

/// Maximum number of queued messages taken at once.
const MAX_TAKEN: usize = 64;

/// How often messages may still join a write.
const MAX_GATHER_YIELDS: usize = 8;

/// Time limit for reading the remaining output of a dead server, and for flushing messages before a stop.
const DRAIN_TIMEOUT: Duration = Duration::from_millis(200);

/// How long to wait for the exit code of a process that closed a pipe.
const EXIT_GRACE: Duration = Duration::from_millis(300);

/// State of the I/O task.
struct Pump {
    process: Process,
    link_io: LinkIo,
    reader: Reader,
    outbox: Outbox,
}

/// Event in the loop of the I/O task.
enum PumpEvent {
    Queued(usize),
    Read(io::Result<usize>),
    /// The session's channel has capacity again for a held message.
    Capacity,
    Wrote(io::Result<usize>),
    Stderr(io::Result<usize>),
    Exited(Option<Exit>),
}

/// Reason for the end of the connection.
enum PumpEnd {
    Closed,
    Exited(Option<Exit>),
    StdoutClosed,
    StdinClosed,
    Violation(String),
}

pub(super) async fn run(process: Process, charset: Charset, limit: usize, link_io: LinkIo) -> Disconnect {
    let reader = Reader::new(charset, limit);
    let outbox = Outbox::new(charset, link_io.written.clone());
    let mut pump = Pump { process, link_io, reader, outbox };
    let end = pump.run_until_end().await;
    pump.finish(end).await
}

impl Pump {
    /// Moves messages until the connection ends; returns the reason.
    async fn run_until_end(&mut self) -> PumpEnd {
        let mut queued = Vec::with_capacity(MAX_TAKEN);
        let mut stderr_chunk = vec![0; 16 << 10];
        let mut is_stderr_open = true;
        loop {
            let Process { leash, stdin, stdout, stderr, tail, .. } = &mut self.process;
            let (waiting, held) = (self.outbox.has_data(), self.reader.is_held());
            let event = tokio::select! {
                count = self.link_io.outbound.recv_many(&mut queued, MAX_TAKEN), if self.outbox.has_room() => {
                    PumpEvent::Queued(count)
                }
                wrote = write(stdin, self.outbox.bytes()), if waiting => PumpEvent::Wrote(wrote),
                Ok(_) = self.link_io.inbound.reserve(), if held => PumpEvent::Capacity,
                read = self.reader.fill(stdout), if !held => PumpEvent::Read(read),
                stderr_read = stderr.read(&mut stderr_chunk), if is_stderr_open => PumpEvent::Stderr(stderr_read),
                exit = leash.wait_for_exit() => PumpEvent::Exited(exit),
                // Needed while the outbox is full, because the outbound channel is not polled then.
                () = self.link_io.inbound.closed() => return PumpEnd::Closed,
            };
            match event {
                PumpEvent::Queued(0) => return PumpEnd::Closed,
                PumpEvent::Queued(_) => {
                    queued.drain(..).for_each(|message| self.outbox.push(&message));
                    // Several callers had their responses together, so they send their next requests together.
                    if self.reader.completed > 1 {
                        self.gather().await;
                    }
                }
                PumpEvent::Wrote(Ok(count @ 1..)) => self.outbox.advance(count),
                PumpEvent::Wrote(_) => return PumpEnd::StdinClosed,
                PumpEvent::Read(Ok(1..)) | PumpEvent::Capacity => match self.reader.deliver(&self.link_io) {
                    Ok(()) => {}
                    Err(Stop::Closed) => return PumpEnd::Closed,
                    Err(Stop::Violation(why)) => return PumpEnd::Violation(why),
                },
                PumpEvent::Read(_) => return PumpEnd::StdoutClosed,
                PumpEvent::Stderr(Ok(count @ 1..)) => tail.push(&stderr_chunk[..count]),
                PumpEvent::Stderr(_) => is_stderr_open = false,
                PumpEvent::Exited(exit) => return PumpEnd::Exited(exit),
            }
        }
    }

    /// Collects the messages that other tasks queue meanwhile, until none does. One write, and one wakeup of the server,
    /// costs about the same for one message as for ten.
    async fn gather(&mut self) {
        for _ in 0..MAX_GATHER_YIELDS {
            let before = self.outbox.bytes().len();
            yield_now().await;
            while self.outbox.has_room()
                && let Ok(message) = self.link_io.outbound.try_recv()
            {
                self.outbox.push(&message);
            }
            if self.outbox.bytes().len() == before {
                return;
            }
        }
    }

    /// Reports the end to the session at once, then stops the process if it still runs.
    async fn finish(mut self, end: PumpEnd) -> Disconnect {
        let mut disconnect = match end {
            PumpEnd::Closed => {
                self.link_io
                    .set_provisional_disconnect(self.describe_end("the client closed the connection"));
                let exit = self.stop().await;
                return Disconnect { exit, ..self.describe_end("the client closed the connection") };
            }
            PumpEnd::Exited(exit) => self.drain_and_describe(exit, "the server ended").await,
            PumpEnd::StdoutClosed => self.describe_close("the server closed its stdout").await,
            PumpEnd::StdinClosed => self.describe_close("the server closed its stdin").await,
            PumpEnd::Violation(why) => Disconnect { protocol: true, ..self.describe_end(why) },
        };
        let _ = self.link_io.inbound.send(Inbound::Disconnected(disconnect.clone())).await;
        disconnect.exit = disconnect.exit.or(self.process.stop().await);
        disconnect
    }

    /// Waits briefly for the exit: a server that closes a pipe is usually about to exit, and the exit explains more.
    async fn describe_close(&mut self, otherwise: &str) -> Disconnect {
        let exited = time::timeout(EXIT_GRACE, self.process.leash.wait_for_exit()).await;
        let cause = if exited.is_ok() { "the server ended" } else { otherwise };
        self.drain_and_describe(exited.ok().flatten(), cause).await
    }

    /// Reads the remaining output and stderr, then describes the end.
    async fn drain_and_describe(&mut self, exit: Option<Exit>, cause: &str) -> Disconnect {
        self.drain_stdout().await;
        self.process.drain_stderr().await;
        Disconnect { exit, ..self.describe_end(cause) }
    }

    fn describe_end(&self, cause: impl Into<String>) -> Disconnect {
        let stderr = self.process.tail.text();
        Disconnect { stderr, noise: self.reader.noise, ..Disconnect::because(cause) }
    }

    /// Flushes messages that were queued before the link was closed, then stops the process.
    async fn stop(&mut self) -> Option<Exit> {
        while self.outbox.has_room()
            && let Ok(message) = self.link_io.outbound.try_recv()
        {
            self.outbox.push(&message);
        }
        let flush = async {
            while self.outbox.has_data() {
                match write(&mut self.process.stdin, self.outbox.bytes()).await {
                    Ok(count @ 1..) => self.outbox.advance(count),
                    _ => break,
                }
            }
        };
        let _ = time::timeout(DRAIN_TIMEOUT, flush).await;
        self.process.stop().await
    }

    /// Reads the remaining output: the pipe of a dead server may still contain a response.
    async fn drain_stdout(&mut self) {
        let rest = async {
            // Deliver the held message first.
            if self.reader.is_held() && self.reader.deliver_all(&self.link_io).await.is_err() {
                return;
            }
            while let Ok(1..) = self.reader.fill(&mut self.process.stdout).await {
                if self.reader.deliver_all(&self.link_io).await.is_err() {
                    return;
                }
            }
            let _ = self.reader.finish(&self.link_io).await;
        };
        let _ = time::timeout(DRAIN_TIMEOUT, rest).await;
    }
}

async fn write(stdin: &mut Option<tokio::process::ChildStdin>, bytes: &[u8]) -> io::Result<usize> {
    match stdin {
        Some(stdin) => stdin.write(bytes).await,
        None => std::future::pending().await,
    }
}
