//! Moves messages between a link and the pipes of a child process.
//!
//! A single task does this, because it also decides when the connection is over: the session closed the link, the
//! process exited (even if a grandchild keeps its stdout open), stdout closed, or the server violated the protocol.

use super::{Charset, process::Process};
use crate::{
    Exit, Goodbye, Inbound,
    link::FarEnd,
    outbox::Outbox,
    reader::{Reader, Stop},
};
use std::{io, time::Duration};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    time,
};

/// Maximum number of queued messages taken at once.
const TAKEN: usize = 64;

/// Time limit for reading the remaining output of a dead server, and for flushing messages before a stop.
const LEFTOVERS: Duration = Duration::from_millis(200);

/// How long to wait for the exit code of a process that closed a pipe.
const EXIT_GRACE: Duration = Duration::from_millis(300);

/// State of the I/O task.
struct Pump {
    process: Process,
    far_end: FarEnd,
    reader: Reader,
    outbox: Outbox,
}

/// Event in the loop of the I/O task.
enum Event {
    Queued(usize),
    Read(io::Result<usize>),
    /// The session's channel has capacity again for a held message.
    Room,
    Wrote(io::Result<usize>),
    Talked(io::Result<usize>),
    Ended(Option<Exit>),
}

/// Reason for the end of the connection.
enum End {
    HungUp,
    Ended(Option<Exit>),
    OutputClosed,
    InputClosed,
    Breach(String),
}

pub(super) async fn run(process: Process, charset: Charset, limit: usize, far_end: FarEnd) -> Goodbye {
    let reader = Reader::new(charset, limit);
    let outbox = Outbox::new(charset, far_end.written.clone());
    let mut pump = Pump { process, far_end, reader, outbox };
    let end = pump.until_over().await;
    pump.say_goodbye(end).await
}

impl Pump {
    /// Moves messages until the connection ends; returns the reason.
    async fn until_over(&mut self) -> End {
        let mut queued = Vec::with_capacity(TAKEN);
        let mut talk = vec![0; 16 << 10];
        let mut talking = true;
        loop {
            let Process { leash, stdin, stdout, stderr, tail, .. } = &mut self.process;
            let (waiting, held) = (self.outbox.is_waiting(), self.reader.is_held());
            let event = tokio::select! {
                count = self.far_end.outbound.recv_many(&mut queued, TAKEN), if self.outbox.has_room() => {
                    Event::Queued(count)
                }
                wrote = write(stdin, self.outbox.bytes()), if waiting => Event::Wrote(wrote),
                Ok(_) = self.far_end.inbound.reserve(), if held => Event::Room,
                read = self.reader.fill(stdout), if !held => Event::Read(read),
                talked = stderr.read(&mut talk), if talking => Event::Talked(talked),
                exit = leash.ended() => Event::Ended(exit),
                // Needed while the outbox is full, because the outbound channel is not polled then.
                () = self.far_end.inbound.closed() => return End::HungUp,
            };
            match event {
                Event::Queued(0) => return End::HungUp,
                Event::Queued(_) => queued.drain(..).for_each(|message| self.outbox.push(&message)),
                Event::Wrote(Ok(count @ 1..)) => self.outbox.advance(count),
                Event::Wrote(_) => return End::InputClosed,
                Event::Read(Ok(1..)) | Event::Room => match self.reader.deliver(&self.far_end) {
                    Ok(()) => {}
                    Err(Stop::HungUp) => return End::HungUp,
                    Err(Stop::Breach(why)) => return End::Breach(why),
                },
                Event::Read(_) => return End::OutputClosed,
                Event::Talked(Ok(count @ 1..)) => tail.push(&talk[..count]),
                Event::Talked(_) => talking = false,
                Event::Ended(exit) => return End::Ended(exit),
            }
        }
    }

    /// Reports the end to the session at once, then stops the process if it still runs.
    async fn say_goodbye(mut self, end: End) -> Goodbye {
        let mut goodbye = match end {
            End::HungUp => {
                self.far_end.part(self.goodbye("we hung up"));
                let exit = self.stop().await;
                return Goodbye { exit, ..self.goodbye("we hung up") };
            }
            End::Ended(exit) => self.last_words(exit, "the server ended").await,
            End::OutputClosed => self.close_to_the_end("the server closed its output").await,
            End::InputClosed => self.close_to_the_end("the server closed its input").await,
            End::Breach(why) => Goodbye { protocol: true, ..self.goodbye(why) },
        };
        let _ = self.far_end.inbound.send(Inbound::Gone(goodbye.clone())).await;
        goodbye.exit = goodbye.exit.or(self.process.stop().await);
        goodbye
    }

    /// Waits briefly for the exit: a server that closes a pipe is usually about to exit, and the exit explains more.
    async fn close_to_the_end(&mut self, otherwise: &str) -> Goodbye {
        let ended = time::timeout(EXIT_GRACE, self.process.leash.ended()).await;
        let cause = if ended.is_ok() { "the server ended" } else { otherwise };
        self.last_words(ended.ok().flatten(), cause).await
    }

    /// Reads the remaining output and stderr, then describes the end.
    async fn last_words(&mut self, exit: Option<Exit>, cause: &str) -> Goodbye {
        self.read_leftovers().await;
        self.process.hear_last_words().await;
        Goodbye { exit, ..self.goodbye(cause) }
    }

    fn goodbye(&self, cause: impl Into<String>) -> Goodbye {
        let stderr = self.process.tail.text();
        Goodbye { stderr, noise: self.reader.noise, ..Goodbye::because(cause) }
    }

    /// Flushes messages that were queued before the link was closed, then stops the process.
    async fn stop(&mut self) -> Option<Exit> {
        while self.outbox.has_room()
            && let Ok(message) = self.far_end.outbound.try_recv()
        {
            self.outbox.push(&message);
        }
        let flush = async {
            while self.outbox.is_waiting() {
                match write(&mut self.process.stdin, self.outbox.bytes()).await {
                    Ok(count @ 1..) => self.outbox.advance(count),
                    _ => break,
                }
            }
        };
        let _ = time::timeout(LEFTOVERS, flush).await;
        self.process.stop().await
    }

    /// Reads the remaining output: the pipe of a dead server may still contain a response.
    async fn read_leftovers(&mut self) {
        let rest = async {
            // Deliver the held message first.
            if self.reader.is_held() && self.reader.deliver_all(&self.far_end).await.is_err() {
                return;
            }
            while let Ok(1..) = self.reader.fill(&mut self.process.stdout).await {
                if self.reader.deliver_all(&self.far_end).await.is_err() {
                    return;
                }
            }
            let _ = self.reader.finish(&self.far_end).await;
        };
        let _ = time::timeout(LEFTOVERS, rest).await;
    }
}

async fn write(stdin: &mut Option<tokio::process::ChildStdin>, bytes: &[u8]) -> io::Result<usize> {
    match stdin {
        Some(stdin) => stdin.write(bytes).await,
        None => std::future::pending().await,
    }
}
