//! The lower bound: a gateway that reads a request, changes its id and forwards it. It has no authentication,
//! policy, argument check, timeout, session or journal, so every gateway costs at least this much.

use crate::{
    command_line::CommandLine,
    echo::Message,
    post::{self, Address, HttpConnection},
};
use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, Full};
use hyper::{Request, Response, body::Incoming};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::{
    collections::HashMap,
    convert::Infallible,
    process::Stdio,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::{ChildStdin, ChildStdout, Command},
    sync::{mpsc, oneshot},
};

/// Buffer size for reads and writes, in bytes.
const CHUNK: usize = 64 << 10;

const INITIALIZE: &str =
    r#"{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"probe","version":"1"}}"#;

/// The server behind the probe.
enum Upstream {
    Stdio(Pipe),
    Http(Remote),
}

struct Pipe {
    lines: mpsc::UnboundedSender<Vec<u8>>,
    waiting: Arc<Mutex<HashMap<u64, oneshot::Sender<Bytes>>>>,
    next: AtomicU64,
}

struct Remote {
    address: Address,
    idle: Mutex<Vec<HttpConnection>>,
}

#[derive(Deserialize)]
struct ServerResponse<'a> {
    id: Option<u64>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
}

pub(crate) async fn serve(command_line: &CommandLine) -> Result<(), String> {
    let no_answer = || "the server did not respond".to_owned();
    let upstream = match command_line.text("http") {
        Some(address) => Upstream::Http(Remote { address: Address::of(address), idle: Mutex::default() }),
        None => Upstream::Stdio(Pipe::start(command_line.command())?),
    };
    upstream.ask("initialize", INITIALIZE).await.ok_or_else(no_answer)?;
    let tools = upstream.ask("tools/list", "{}").await.ok_or_else(no_answer)?;
    let state = Arc::new((upstream, tools));
    let listener = post::listen(command_line).await?;
    post::serve(listener, move |request| respond(request, state.clone())).await
}

async fn respond(
    request: Request<Incoming>,
    state: Arc<(Upstream, Bytes)>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    let (upstream, tools) = &*state;
    let body = request.into_body().collect().await.map(|it| it.to_bytes()).unwrap_or_default();
    let Ok(Message { id: Some(id), method: Some(method), params }) = serde_json::from_slice(&body) else {
        return Ok(post::json(202, Bytes::new()));
    };
    let result = match method {
        "initialize" => Some(Bytes::from_static(INITIALIZE.as_bytes())),
        "tools/list" => Some(tools.clone()),
        method => upstream.ask(method, params.map_or("{}", RawValue::get)).await,
    };
    let Some(result) = result else { return Ok(post::json(502, Bytes::new())) };
    let mut answer = Vec::with_capacity(result.len() + 64);
    answer.extend_from_slice(br#"{"jsonrpc":"2.0","id":"#);
    answer.extend_from_slice(id.get().as_bytes());
    answer.extend_from_slice(br#","result":"#);
    answer.extend_from_slice(&result);
    answer.push(b'}');
    Ok(post::json(200, answer.into()))
}

impl Upstream {
    async fn ask(&self, method: &str, params: &str) -> Option<Bytes> {
        match self {
            Upstream::Stdio(pipe) => pipe.ask(method, params).await,
            Upstream::Http(remote) => remote.ask(method, params).await,
        }
    }
}

impl Pipe {
    #[expect(clippy::disallowed_methods, reason = "both tasks end with the process")]
    fn start(command: &[String]) -> Result<Pipe, String> {
        let (program, args) = command.split_first().ok_or("missing command")?;
        let mut child = Command::new(program)
            .args(args)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|it| format!("{program}: {it}"))?;
        let (Some(to), Some(from)) = (child.stdin.take(), child.stdout.take()) else {
            return Err("the process has no pipes".to_owned());
        };
        let (lines, queued) = mpsc::unbounded_channel();
        let waiting = Arc::default();
        tokio::spawn(write(to, queued));
        tokio::spawn(read(from, Arc::clone(&waiting)));
        Ok(Pipe { lines, waiting, next: AtomicU64::new(1) })
    }

    async fn ask(&self, method: &str, params: &str) -> Option<Bytes> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (reply, answer) = oneshot::channel();
        lock(&self.waiting).insert(id, reply);
        let mut line = message(id, method, params);
        line.push(b'\n');
        self.lines.send(line).ok()?;
        answer.await.ok()
    }
}

/// Writes queued messages, coalescing them into one write.
async fn write(mut to: ChildStdin, mut queued: mpsc::UnboundedReceiver<Vec<u8>>) {
    while let Some(mut lines) = queued.recv().await {
        while lines.len() < CHUNK
            && let Ok(more) = queued.try_recv()
        {
            lines.extend_from_slice(&more);
        }
        if to.write_all(&lines).await.is_err() {
            return;
        }
    }
}

async fn read(mut from: ChildStdout, waiting: Arc<Mutex<HashMap<u64, oneshot::Sender<Bytes>>>>) {
    let mut buffer = BytesMut::with_capacity(CHUNK);
    let mut searched = 0;
    while let Ok(1..) = from.read_buf(&mut buffer).await {
        while let Some(end) = memchr::memchr(b'\n', &buffer[searched..]) {
            let line = buffer.split_to(searched + end + 1).freeze();
            searched = 0;
            let Ok(ServerResponse { id: Some(id), result: Some(result) }) = serde_json::from_slice(&line)
            else {
                continue;
            };
            let reply = lock(&waiting).remove(&id);
            reply.into_iter().for_each(|it| _ = it.send(line.slice_ref(result.get().as_bytes())));
        }
        searched = buffer.len();
        buffer.reserve(CHUNK);
    }
}

impl Remote {
    async fn ask(&self, method: &str, params: &str) -> Option<Bytes> {
        let line = lock(&self.idle).pop();
        let mut line = line.unwrap_or_else(|| HttpConnection::to(&self.address));
        let answer = line.post(&[(post::SESSION, "one")], message(1, method, params).into()).await.ok()?;
        lock(&self.idle).push(line);
        result(&answer.body)
    }
}

fn message(id: u64, method: &str, params: &str) -> Vec<u8> {
    format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#).into_bytes()
}

/// Returns the result of a response without copying it.
fn result(line: &Bytes) -> Option<Bytes> {
    let answered: ServerResponse<'_> = serde_json::from_slice(line).ok()?;
    Some(line.slice_ref(answered.result?.get().as_bytes()))
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
