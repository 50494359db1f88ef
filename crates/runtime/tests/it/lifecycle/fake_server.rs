//! Implements an in-memory MCP server for tests. The name of a tool determines how a call of it behaves.
//!
//! It uses no MCP library, counts its connections, and records every message with its time of arrival.

use serde_json::{Value, json};
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream},
    sync::{mpsc, watch},
    task::JoinSet,
    time::{self, Instant},
};
use wharf_config::Builtin;
use wharf_mcp::{Failure, Opener, Opening, link_over};
use wharf_runtime::upstream::Builtins;

/// The tools, one per behaviour. Names in backticks are arguments.
pub(crate) const TOOLS: [&str; 8] = [
    "echo",     // returns `nonce`
    "silent",   // never answers
    "die",      // disconnects without an answer
    "refuse",   // returns an error result
    "error",    // returns a JSON-RPC error
    "slow",     // returns `nonce` after `ms`
    "progress", // reports progress `times` times, every `ms`, then returns `nonce`
    "big",      // returns `bytes` bytes
];

#[derive(Clone, Debug, Default)]
pub(crate) struct FakeServer(Arc<FakeServerState>);

#[derive(Debug, Default)]
struct FakeServerState {
    opens: AtomicUsize,
    refusing: AtomicBool,
    list_fails: AtomicBool,
    list_hangs: AtomicBool,
    /// Time that it takes to start.
    start: Mutex<Duration>,
    tools: Mutex<Option<Vec<Value>>>,
    received: Mutex<Vec<(Instant, Value)>>,
    /// Number of messages in `received`, by method.
    counts: watch::Sender<HashMap<String, usize>>,
    lines: Mutex<Vec<mpsc::UnboundedSender<String>>>,
    connections: Mutex<JoinSet<()>>,
}

impl FakeServer {
    /// Returns the number of connect attempts.
    pub(crate) fn opens(&self) -> usize {
        self.0.opens.load(Relaxed)
    }

    /// Sets whether connect attempts fail.
    pub(crate) fn refuse(&self, refuse: bool) {
        self.0.refusing.store(refuse, Relaxed);
    }

    pub(crate) fn fail_lists(&self, fail: bool) {
        self.0.list_fails.store(fail, Relaxed);
    }

    /// Sets whether `tools/list` is never answered.
    pub(crate) fn hang_lists(&self, hang: bool) {
        self.0.list_hangs.store(hang, Relaxed);
    }

    pub(crate) fn start_slowly(&self, start: Duration) {
        *locked(&self.0.start) = start;
    }

    /// Sets the listed tools. Tools that are not in [`TOOLS`] echo.
    pub(crate) fn offer(&self, names: &[&str]) {
        *locked(&self.0.tools) = Some(names.iter().map(|it| tool(it)).collect());
    }

    /// Sends a notification on every connection.
    pub(crate) fn say(&self, method: &str, params: Value) {
        let line = json!({ "jsonrpc": "2.0", "method": method, "params": params }).to_string();
        locked(&self.0.lines).retain(|it| it.send(line.clone()).is_ok());
    }

    /// Returns all messages of this method, with their times of arrival.
    pub(crate) fn received(&self, method: &str) -> Vec<(Instant, Value)> {
        locked(&self.0.received).iter().filter(|(_, it)| it["method"] == method).cloned().collect()
    }

    /// Waits until `count` messages of this method have arrived.
    pub(crate) async fn wait_for(&self, method: &str, count: usize) {
        let arrived = |counts: &HashMap<String, usize>| counts.get(method).is_some_and(|it| *it >= count);
        self.0.counts.subscribe().wait_for(arrived).await.expect("the fake server runs");
    }

    async fn serve(self, stream: DuplexStream) {
        let (read, mut write) = tokio::io::split(stream);
        let mut requests = BufReader::new(read).lines();
        let (outgoing, mut responses) = mpsc::unbounded_channel();
        locked(&self.0.lines).push(outgoing.clone());
        let mut later = JoinSet::new();
        let started = Instant::now() + *locked(&self.0.start);
        loop {
            tokio::select! {
                line = requests.next_line() => {
                    let Ok(Some(line)) = line else { return };
                    let message: Value = serde_json::from_str(&line).expect("JSON");
                    self.record_message(&message);
                    if message["params"]["name"] == "die" {
                        return;
                    }
                    for (wait, answer) in self.answers(&message) {
                        let outgoing = outgoing.clone();
                        later.spawn(async move {
                            time::sleep_until(started.max(Instant::now()) + wait).await;
                            let _ = outgoing.send(answer.to_string());
                        });
                    }
                }
                Some(line) = responses.recv() => {
                    if write.write_all(format!("{line}\n").as_bytes()).await.is_err() {
                        return;
                    }
                }
                Some(_) = later.join_next() => {}
            }
        }
    }

    fn record_message(&self, message: &Value) {
        let method = message["method"].as_str().unwrap_or_default().to_owned();
        locked(&self.0.received).push((Instant::now(), message.clone()));
        self.0.counts.send_modify(|it| *it.entry(method).or_default() += 1);
    }

    /// Returns the answers to a message, each with its delay.
    fn answers(&self, message: &Value) -> Vec<(Duration, Value)> {
        let id = &message["id"];
        let at_once = |it: Value| vec![(Duration::ZERO, it)];
        let result = |it: Value| json!({ "jsonrpc": "2.0", "id": id, "result": it });
        match message["method"].as_str().unwrap_or_default() {
            "initialize" => at_once(result(json!({
                "protocolVersion": "2025-11-25",
                "capabilities": { "tools": { "listChanged": true }, "prompts": {}, "logging": {} },
                "serverInfo": { "name": "fake", "version": "1" },
            }))),
            "tools/list" if self.0.list_fails.load(Relaxed) => at_once(error(id, -32603)),
            "tools/list" if self.0.list_hangs.load(Relaxed) => Vec::new(),
            "tools/list" => {
                let tools = locked(&self.0.tools).clone();
                let tools = tools.unwrap_or_else(|| TOOLS.iter().map(|it| tool(it)).collect());
                at_once(result(json!({ "tools": tools })))
            }
            "prompts/list" => at_once(result(json!({ "prompts": [{ "name": "greet" }] }))),
            "prompts/get" => at_once(result(json!({ "messages": [] }))),
            "tools/call" => called(message),
            _ if id.is_null() => Vec::new(),
            _ => at_once(error(id, -32601)),
        }
    }
}

/// Returns the answers to a `tools/call`, each with its delay.
fn called(message: &Value) -> Vec<(Duration, Value)> {
    let (id, params) = (&message["id"], &message["params"]);
    let number = |key: &str| params["arguments"][key].as_u64().unwrap_or_default();
    let pause = Duration::from_millis(number("ms"));
    let result = |it: Value| json!({ "jsonrpc": "2.0", "id": id, "result": it });
    let text = |it: &str| json!({ "content": [{ "type": "text", "text": it }] });
    let echo = result(text(params["arguments"]["nonce"].as_str().unwrap_or_default()));
    match params["name"].as_str().unwrap_or_default() {
        "silent" => Vec::new(),
        "error" => vec![(Duration::ZERO, error(id, -32000))],
        "refuse" => {
            vec![(Duration::ZERO, result(json!({ "content": text("no")["content"], "isError": true })))]
        }
        "slow" => vec![(pause, echo)],
        "big" => vec![(Duration::ZERO, result(text(&"x".repeat(number("bytes") as usize))))],
        "progress" => {
            let times = number("times") as u32;
            let step = |at: u32| {
                let params = json!({ "progressToken": params["_meta"]["progressToken"], "progress": at });
                (
                    pause * at,
                    json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params }),
                )
            };
            (1..=times).map(step).chain([(pause * (times + 1), echo)]).collect()
        }
        _ => vec![(Duration::ZERO, echo)],
    }
}

fn tool(name: &str) -> Value {
    json!({ "name": name, "inputSchema": { "type": "object", "properties": { "nonce": { "type": "string" } } } })
}

fn error(id: &Value, code: i64) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": "error by request" } })
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no panic while locked")
}

impl Opener for FakeServer {
    fn open(&self) -> Opening<'_> {
        self.0.opens.fetch_add(1, Relaxed);
        if self.0.refusing.load(Relaxed) {
            return Box::pin(async { Err(Failure::connect("connection refused by the test")) });
        }
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let mut connections = locked(&self.0.connections);
        while connections.try_join_next().is_some() {}
        connections.spawn(self.clone().serve(theirs));
        let (read, write) = tokio::io::split(ours);
        Box::pin(async { Ok(link_over(read, write)) })
    }
}

impl Builtins for FakeServer {
    fn opener(&self, _: Builtin) -> Box<dyn Opener> {
        Box::new(self.clone())
    }
}
