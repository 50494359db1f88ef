//! Performs [`Action`]s on stdout or a socket, in the framing of the transport.

mod line;

use crate::{action::Action, action_log::ActionLog, received::ReceivedMessage};
pub(crate) use line::SharedConnection;
use rustix::process::{Signal, getpid, kill_process};
use std::{
    io::{self, Write},
    process::{Command, Stdio},
    sync::Arc,
    time::Duration,
};
use tokio::{
    io::{AsyncWriteExt, Stdout, stdout},
    signal::unix::{SignalKind, signal},
    sync::Mutex,
    time,
};

/// Chunk size for repeated data.
const CHUNK: usize = 64 << 10;

pub(crate) struct Performer {
    pub(crate) out: Output,
    pub(crate) framing: Framing,
    /// Connection of the POST to respond to, on a transport where messages travel on another connection.
    pub(crate) post: Option<Arc<SharedConnection>>,
}

#[derive(Clone)]
pub(crate) enum Output {
    Stdout(Arc<Mutex<Stdout>>, Arc<Mutex<()>>),
    SharedConnection(Arc<SharedConnection>),
}

pub(crate) enum Framing {
    /// One message per line.
    Lines,
    /// The only message of an HTTP response, with these additional headers.
    Json(String),
    /// Messages as SSE events of an HTTP response, whose head is sent before the first.
    Events(Option<String>),
    /// One WebSocket frame per message.
    Frames,
}

impl Performer {
    /// Performs actions in order. An error means that the connection is gone.
    pub(crate) async fn perform(
        &mut self,
        actions: Vec<Action>,
        received: &ReceivedMessage,
        action_log: &ActionLog,
    ) -> io::Result<()> {
        for action in actions {
            match action {
                Action::Repeat(action, times, pause) if pause.is_zero() => {
                    let unit = self.bytes(&action);
                    let size = unit.len() as u64 * times;
                    self.perform_one(Action::Endless(unit, size)).await?;
                }
                Action::Repeat(action, times, pause) => {
                    for _ in 0..times {
                        self.perform_one((*action).clone()).await?;
                        time::sleep(pause).await;
                    }
                }
                Action::Note(what) => action_log.note(what, received.nonce()),
                action => self.perform_one(action).await?,
            }
        }
        Ok(())
    }

    async fn perform_one(&mut self, action: Action) -> io::Result<()> {
        // Serializes concurrent writes.
        let write_lock = self.out.write_lock();
        let _write_lock = if action.writes_to_client() { Some(write_lock.lock().await) } else { None };
        match action {
            Action::Send(text) => self.send(&text).await,
            Action::Long { head, size, tail } => self.send_long(&head, size, &tail).await,
            Action::Raw(bytes) => self.out.write(&bytes).await,
            Action::Endless(unit, size) => self.out.repeat(&unit, size).await,
            Action::Drip(bytes, pause) => {
                for byte in bytes {
                    self.out.write(&[byte]).await?;
                    time::sleep(pause).await;
                }
                Ok(())
            }
            Action::Reply(bytes) => match &self.post {
                Some(post) => post.write(&bytes).await,
                None => self.out.write(&bytes).await,
            },
            Action::Stderr(unit, size) => write_stderr(&unit, size),
            Action::Wait(pause) => {
                time::sleep(pause).await;
                Ok(())
            }
            Action::Hang | Action::Freeze | Action::CloseInput => std::future::pending().await,
            Action::Close => self.out.close().await,
            Action::Reset => self.out.reset(),
            Action::Exit(code) => self.out.exit(code).await,
            Action::Signal(number) => raise_signal(number).await,
            Action::Spawn(script) => spawn(script),
            Action::IgnoreTerm => ignore_term(),
            // Handled in `perform`, which has the action log.
            Action::Note(_) | Action::Repeat(..) => Ok(()),
        }
    }

    async fn send(&mut self, text: &[u8]) -> io::Result<()> {
        let framed = self.framed(text);
        self.out.write(&framed).await
    }

    fn framed(&mut self, text: &[u8]) -> Vec<u8> {
        let before = self.before(text.len() as u64);
        [&before[..], text, self.after()].concat()
    }

    /// Returns the bytes that an action writes once.
    fn bytes(&mut self, action: &Action) -> Vec<u8> {
        match action {
            Action::Send(text) => self.framed(text),
            Action::Raw(bytes) => bytes.clone(),
            _ => Vec::new(),
        }
    }

    async fn send_long(&mut self, head: &[u8], size: u64, tail: &[u8]) -> io::Result<()> {
        let between = size.saturating_sub((head.len() + tail.len()) as u64);
        let mut begin = self.before(head.len() as u64 + between + tail.len() as u64);
        begin.extend_from_slice(head);
        self.out.write(&begin).await?;
        self.out.repeat(b"x", between).await?;
        self.out.write(&[tail, self.after()].concat()).await
    }

    /// Returns the framing before a message of this length.
    fn before(&mut self, length: u64) -> Vec<u8> {
        match &mut self.framing {
            Framing::Lines => Vec::new(),
            Framing::Json(headers) => format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n{headers}content-length: {length}\r\n\r\n"
            )
            .into_bytes(),
            Framing::Events(head) => [head.take().unwrap_or_default().as_bytes(), b"data: "].concat(),
            Framing::Frames => frame_head(0x81, length),
        }
    }

    fn after(&self) -> &'static [u8] {
        match self.framing {
            Framing::Lines => b"\n",
            Framing::Events(_) => b"\n\n",
            Framing::Json(_) | Framing::Frames => b"",
        }
    }
}

/// Builds the header of an unmasked WebSocket frame.
pub(crate) fn frame_head(first: u8, length: u64) -> Vec<u8> {
    match length {
        0..=125 => vec![first, length as u8],
        126..=0xffff => [&[first, 126][..], &(length as u16).to_be_bytes()].concat(),
        _ => [&[first, 127][..], &length.to_be_bytes()].concat(),
    }
}

impl Output {
    pub(crate) fn stdout() -> Output {
        Output::Stdout(Arc::new(Mutex::new(stdout())), Arc::default())
    }

    fn write_lock(&self) -> Arc<Mutex<()>> {
        match self {
            Output::Stdout(_, write_lock) => write_lock.clone(),
            Output::SharedConnection(line) => line.write_lock.clone(),
        }
    }

    pub(crate) async fn write(&self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Output::Stdout(stdout, _) => {
                let mut stdout = stdout.lock().await;
                stdout.write_all(bytes).await?;
                stdout.flush().await
            }
            Output::SharedConnection(line) => line.write(bytes).await,
        }
    }

    async fn repeat(&self, unit: &[u8], size: u64) -> io::Result<()> {
        let chunk = unit.repeat(CHUNK.div_ceil(unit.len().max(1)));
        let mut left = size;
        while left > 0 {
            let count = left.min(chunk.len() as u64);
            self.write(&chunk[..count as usize]).await?;
            left -= count;
        }
        Ok(())
    }

    async fn close(&self) -> io::Result<()> {
        match self {
            Output::Stdout(..) => {
                // Replaces the descriptor itself, so that the client sees the end of the pipe.
                let null = std::fs::OpenOptions::new().write(true).open("/dev/null")?;
                rustix::stdio::dup2_stdout(null)?;
                Ok(())
            }
            Output::SharedConnection(line) => line.close_output(),
        }
    }

    fn reset(&self) -> io::Result<()> {
        match self {
            Output::Stdout(..) => Ok(()),
            Output::SharedConnection(line) => line.reset(),
        }
    }

    #[expect(clippy::disallowed_methods, reason = "a crashing server does not clean up")]
    async fn exit(&self, code: i32) -> io::Result<()> {
        std::process::exit(code)
    }
}

fn write_stderr(unit: &[u8], size: u64) -> io::Result<()> {
    let chunk = unit.repeat(CHUNK.div_ceil(unit.len().max(1)));
    let (mut stderr, mut left) = (io::stderr().lock(), size);
    while left > 0 {
        let count = left.min(chunk.len() as u64);
        stderr.write_all(&chunk[..count as usize])?;
        left -= count;
    }
    Ok(())
}

async fn raise_signal(number: i32) -> io::Result<()> {
    if let Some(signal) = Signal::from_named_raw(number) {
        kill_process(getpid(), signal)?;
    }
    // Delivery may take a moment. A stop signal does not end the process.
    time::sleep(Duration::from_millis(50)).await;
    Ok(())
}

fn spawn(script: &str) -> io::Result<()> {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", script]).stdin(Stdio::null()).stderr(Stdio::null());
    // Not reaped, on purpose.
    shell.spawn().map(drop)
}

fn ignore_term() -> io::Result<()> {
    // Tokio never removes a handler once it is installed, and this one does nothing.
    signal(SignalKind::terminate()).map(drop)
}
