//! Performs [`Deed`]s on stdout or a socket, in the framing of the transport.

mod line;

use crate::{asked::Asked, deed::Deed, ledger::Ledger};
pub(crate) use line::Line;
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

pub(crate) struct Mouth {
    pub(crate) out: Out,
    pub(crate) framing: Framing,
    /// Connection of the POST to respond to, on a transport where messages travel on another connection.
    pub(crate) post: Option<Arc<Line>>,
}

#[derive(Clone)]
pub(crate) enum Out {
    Stdout(Arc<Mutex<Stdout>>, Arc<Mutex<()>>),
    Line(Arc<Line>),
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

impl Mouth {
    /// Performs actions in order. An error means that the connection is gone.
    pub(crate) async fn perform(
        &mut self,
        deeds: Vec<Deed>,
        asked: &Asked,
        ledger: &Ledger,
    ) -> io::Result<()> {
        for deed in deeds {
            match deed {
                Deed::Repeat(deed, times, pause) if pause.is_zero() => {
                    let unit = self.bytes(&deed);
                    let size = unit.len() as u64 * times;
                    self.perform_one(Deed::Endless(unit, size)).await?;
                }
                Deed::Repeat(deed, times, pause) => {
                    for _ in 0..times {
                        self.perform_one((*deed).clone()).await?;
                        time::sleep(pause).await;
                    }
                }
                Deed::Note(what) => ledger.note(what, asked.nonce()),
                deed => self.perform_one(deed).await?,
            }
        }
        Ok(())
    }

    async fn perform_one(&mut self, deed: Deed) -> io::Result<()> {
        // Serializes concurrent writes.
        let turn = self.out.turn();
        let _turn = if deed.speaks() { Some(turn.lock().await) } else { None };
        match deed {
            Deed::Say(text) => self.say(&text).await,
            Deed::Long { head, size, tail } => self.say_long(&head, size, &tail).await,
            Deed::Raw(bytes) => self.out.write(&bytes).await,
            Deed::Endless(unit, size) => self.out.repeat(&unit, size).await,
            Deed::Drip(bytes, pause) => {
                for byte in bytes {
                    self.out.write(&[byte]).await?;
                    time::sleep(pause).await;
                }
                Ok(())
            }
            Deed::Reply(bytes) => match &self.post {
                Some(post) => post.write(&bytes).await,
                None => self.out.write(&bytes).await,
            },
            Deed::Talk(unit, size) => talk(&unit, size),
            Deed::Wait(pause) => {
                time::sleep(pause).await;
                Ok(())
            }
            Deed::Hang | Deed::Freeze | Deed::Deafen => std::future::pending().await,
            Deed::Close => self.out.close().await,
            Deed::Reset => self.out.reset(),
            Deed::Exit(code) => self.out.exit(code).await,
            Deed::Signal(number) => end_by(number).await,
            Deed::Spawn(script) => spawn(script),
            Deed::IgnoreTerm => ignore_term(),
            // Handled in `perform`, which has the ledger.
            Deed::Note(_) | Deed::Repeat(..) => Ok(()),
        }
    }

    async fn say(&mut self, text: &[u8]) -> io::Result<()> {
        let framed = self.framed(text);
        self.out.write(&framed).await
    }

    fn framed(&mut self, text: &[u8]) -> Vec<u8> {
        let before = self.before(text.len() as u64);
        [&before[..], text, self.after()].concat()
    }

    /// Returns the bytes that an action writes once.
    fn bytes(&mut self, deed: &Deed) -> Vec<u8> {
        match deed {
            Deed::Say(text) => self.framed(text),
            Deed::Raw(bytes) => bytes.clone(),
            _ => Vec::new(),
        }
    }

    async fn say_long(&mut self, head: &[u8], size: u64, tail: &[u8]) -> io::Result<()> {
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

impl Out {
    pub(crate) fn stdout() -> Out {
        Out::Stdout(Arc::new(Mutex::new(stdout())), Arc::default())
    }

    fn turn(&self) -> Arc<Mutex<()>> {
        match self {
            Out::Stdout(_, turn) => turn.clone(),
            Out::Line(line) => line.turn.clone(),
        }
    }

    pub(crate) async fn write(&self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Out::Stdout(stdout, _) => {
                let mut stdout = stdout.lock().await;
                stdout.write_all(bytes).await?;
                stdout.flush().await
            }
            Out::Line(line) => line.write(bytes).await,
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
            Out::Stdout(..) => {
                // Replaces the descriptor itself, so that the client sees the end of the pipe.
                let null = std::fs::OpenOptions::new().write(true).open("/dev/null")?;
                rustix::stdio::dup2_stdout(null)?;
                Ok(())
            }
            Out::Line(line) => line.close_output(),
        }
    }

    fn reset(&self) -> io::Result<()> {
        match self {
            Out::Stdout(..) => Ok(()),
            Out::Line(line) => line.reset(),
        }
    }

    #[expect(clippy::disallowed_methods, reason = "a server that dies does not tidy up")]
    async fn exit(&self, code: i32) -> io::Result<()> {
        std::process::exit(code)
    }
}

fn talk(unit: &[u8], size: u64) -> io::Result<()> {
    let chunk = unit.repeat(CHUNK.div_ceil(unit.len().max(1)));
    let (mut stderr, mut left) = (io::stderr().lock(), size);
    while left > 0 {
        let count = left.min(chunk.len() as u64);
        stderr.write_all(&chunk[..count as usize])?;
        left -= count;
    }
    Ok(())
}

async fn end_by(number: i32) -> io::Result<()> {
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
