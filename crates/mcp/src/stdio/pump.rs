//! Moves messages between a link and a child's pipes.
//!
//! One task does all of it, because it also decides when the conversation is over: the session hung up, the process
//! ended (even if a grandchild keeps its stdout open), stdout closed, or the server broke the protocol.

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

/// How many queued messages are taken at once.
const TAKEN: usize = 64;

/// How long output that a dead server left in its pipe is read.
const LEFTOVERS: Duration = Duration::from_millis(200);

/// How long a process that closed its stdout gets to end, so that we can tell its exit code.
const EXIT_GRACE: Duration = Duration::from_millis(300);

struct Pump {
    process: Process,
    far_end: FarEnd,
    reader: Reader,
    outbox: Outbox,
}

enum Event {
    Queued(usize),
    Read(io::Result<usize>),
    /// The session has room for what it had none for.
    Room,
    Wrote(io::Result<usize>),
    Talked(io::Result<usize>),
    Ended(Option<Exit>),
}

/// Why the pump stopped.
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
                // Also while the outbox is full and nothing more is taken from the session.
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

    /// Tells the session at once what is known, then ends the process if it has not ended yet.
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

    /// A server that closes a pipe is usually about to end; then its exit says more.
    async fn close_to_the_end(&mut self, otherwise: &str) -> Goodbye {
        let ended = time::timeout(EXIT_GRACE, self.process.leash.ended()).await;
        let cause = if ended.is_ok() { "the server ended" } else { otherwise };
        self.last_words(ended.ok().flatten(), cause).await
    }

    async fn last_words(&mut self, exit: Option<Exit>, cause: &str) -> Goodbye {
        self.read_leftovers().await;
        self.process.hear_last_words().await;
        Goodbye { exit, ..self.goodbye(cause) }
    }

    fn goodbye(&self, cause: impl Into<String>) -> Goodbye {
        let stderr = self.process.tail.text();
        Goodbye { stderr, noise: self.reader.noise, ..Goodbye::because(cause) }
    }

    /// Stops the process. What was queued before the session hung up is still written first.
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

    /// An answer may still be in the pipe of a server that has ended.
    async fn read_leftovers(&mut self) {
        let rest = async {
            // What was held when it ended comes first.
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
