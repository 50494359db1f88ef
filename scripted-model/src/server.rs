//! The HTTP server: one thread per connection, blocking, with keep-alive.

use crate::{Action, Reply};
use serde_json::{Value, json};
use std::{
    io::{self, BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::Duration,
};

/// Longest wait of a test for something that the client does.
const WAIT_TIMEOUT: Duration = Duration::from_secs(60);

/// Request that the scripted model received.
#[derive(Clone, Debug)]
pub struct Request {
    /// Path and query.
    pub path: String,
    /// Headers, with lower-case names.
    pub headers: Vec<(String, String)>,
    /// Body.
    pub body: Value,
}

impl Request {
    /// Returns the value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

type Script = Box<dyn FnMut(usize, &Request) -> Reply + Send>;

#[derive(Default)]
struct ServerLog {
    requests: Vec<Request>,
    /// Number of connections that the client closed while a reply hung.
    abandoned: usize,
}

struct Shared {
    script: Mutex<Script>,
    log: Mutex<ServerLog>,
    changed: Condvar,
}

/// Running scripted model.
pub struct ScriptedModel {
    address: SocketAddr,
    shared: Arc<Shared>,
}

impl ScriptedModel {
    /// Starts a model that sends these replies in order. The last one repeats.
    pub fn start(replies: Vec<Reply>) -> ScriptedModel {
        ScriptedModel::with(move |number, _| {
            let over = Reply::error(500, &json!({ "error": { "message": "the script is empty" } }));
            replies.get(number).or(replies.last()).cloned().unwrap_or(over)
        })
    }

    /// Starts a model that computes each reply from the number of the request, from 0, and the request.
    #[expect(clippy::expect_used, reason = "a test without a port cannot run")]
    pub fn with(script: impl FnMut(usize, &Request) -> Reply + Send + 'static) -> ScriptedModel {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new(Shared {
            script: Mutex::new(Box::new(script)),
            log: Mutex::default(),
            changed: Condvar::new(),
        });
        let accepting = shared.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = accepting.clone();
                thread::spawn(move || serve(stream, &shared));
            }
        });
        ScriptedModel { address, shared }
    }

    /// Returns the base URL.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Returns the requests so far.
    pub fn requests(&self) -> Vec<Request> {
        self.shared.log().requests.clone()
    }

    /// Waits until this many requests have arrived.
    pub fn wait_for_requests(&self, count: usize) {
        self.wait("requests", |log| log.requests.len() >= count);
    }

    /// Waits until the client has closed this many connections in the middle of a reply.
    pub fn wait_for_abandoned(&self, count: usize) {
        self.wait("closed connections", |log| log.abandoned >= count);
    }

    fn wait(&self, what: &str, is_met: impl Fn(&ServerLog) -> bool) {
        let log = self.shared.log();
        let waited = self.shared.changed.wait_timeout_while(log, WAIT_TIMEOUT, |log| !is_met(log));
        let (log, result) = waited.unwrap_or_else(PoisonError::into_inner);
        drop(log);
        assert!(!result.timed_out(), "there were not enough {what} in time");
    }
}

impl Shared {
    fn log(&self) -> MutexGuard<'_, ServerLog> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn reply(&self, request: Request) -> Reply {
        let mut script = self.script.lock().unwrap_or_else(PoisonError::into_inner);
        let number = self.log().requests.len();
        let reply = script(number, &request);
        self.log().requests.push(request);
        self.changed.notify_all();
        reply
    }

    fn note_abandoned(&self) {
        self.log().abandoned += 1;
        self.changed.notify_all();
    }
}

fn serve(stream: TcpStream, shared: &Shared) {
    // Small writes must not be joined: their boundaries are part of the test.
    let _ = stream.set_nodelay(true);
    let Ok(mut writer) = stream.try_clone() else { return };
    let mut reader = BufReader::new(stream);
    while let Ok(Some(request)) = read_request(&mut reader) {
        let reply = shared.reply(request);
        match send(&reply, &mut reader, &mut writer) {
            Ok(Sent::Whole) => {}
            Ok(Sent::Closed) => return,
            // The client may close the connection before the reply begins.
            Ok(Sent::Abandoned) | Err(_) => return shared.note_abandoned(),
        }
    }
}

fn read_request(reader: &mut impl BufRead) -> io::Result<Option<Request>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let path = line.split_whitespace().nth(1).unwrap_or_default().to_owned();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let length: usize = length.and_then(|(_, value)| value.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    Ok(Some(Request { path, headers, body }))
}

/// End of a reply.
enum Sent {
    /// The connection can be used again.
    Whole,
    /// The server closed the connection.
    Closed,
    /// The client closed the connection.
    Abandoned,
}

#[expect(clippy::disallowed_methods, reason = "the server has threads, not tasks")]
fn send(reply: &Reply, reader: &mut impl Read, writer: &mut impl Write) -> io::Result<Sent> {
    if let Some(Action::HangBeforeHead) = reply.actions.first() {
        wait_for_close(reader);
        return Ok(Sent::Abandoned);
    }
    let headers: String = reply.headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    write!(writer, "HTTP/1.1 {} Scripted\r\n{headers}transfer-encoding: chunked\r\n\r\n", reply.status)?;
    for action in &reply.actions {
        match action {
            Action::Send(bytes) => send_chunks(bytes, reply.chunk, writer)?,
            Action::SendForever(bytes) => loop {
                send_chunks(bytes, reply.chunk, writer)?;
            },
            Action::Pause(time) => thread::sleep(*time),
            Action::Hang | Action::HangBeforeHead => {
                wait_for_close(reader);
                return Ok(Sent::Abandoned);
            }
            Action::Cut => return Ok(Sent::Closed),
        }
    }
    writer.write_all(b"0\r\n\r\n")?;
    Ok(Sent::Whole)
}

fn send_chunks(bytes: &[u8], size: usize, writer: &mut impl Write) -> io::Result<()> {
    for chunk in bytes.chunks(size) {
        let mut frame = format!("{:x}\r\n", chunk.len()).into_bytes();
        frame.extend_from_slice(chunk);
        frame.extend_from_slice(b"\r\n");
        writer.write_all(&frame)?;
    }
    Ok(())
}

fn wait_for_close(reader: &mut impl Read) {
    let mut byte = [0];
    while matches!(reader.read(&mut byte), Ok(1)) {}
}
