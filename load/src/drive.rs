//! Load generator: many clients at one address, each with its own connection and session, each sending the next
//! request when it has the response. A wrong response fails the measurement, because a fast error must not count as
//! speed.

use crate::{
    command_line::CommandLine,
    machine::Gateway,
    post::{Address, Answer, HttpConnection, SESSION},
};
use bytes::Bytes;
use serde::Serialize;
use std::{
    sync::Arc,
    time::{Duration, Instant},
};
use tokio::{task::JoinSet, time};

/// Warm-up time that is not measured.
const WARM_UP: Duration = Duration::from_millis(300);

/// Timeout of one response.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(20);

const VERSION: &str = "mcp-protocol-version";
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"load","version":"1"}}}"#;
const MODERN_LIST: &str = r#","method":"tools/list","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"load","version":"1"}}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// A gateway to measure.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) address: Address,
    /// `Authorization` header, if the gateway needs one.
    pub(crate) bearer: Option<String>,
    /// Template for tool names; `{}` is the name on the server.
    pub(crate) tool: String,
    pub(crate) gateway: Option<Gateway>,
}

/// The load to apply.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) what: RequestKind,
    pub(crate) clients: usize,
    pub(crate) time: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestKind {
    /// A call that sends this many bytes and receives them back.
    Echo(usize),
    /// A call that receives this many bytes.
    Payload(usize),
    /// `tools/list` of the handshake era.
    List,
    /// `tools/list` of 2026-07-28, without a session.
    ModernList,
}

/// Results of one measurement. Times are in microseconds.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Measurement {
    pub(crate) calls: usize,
    pub(crate) calls_per_second: f64,
    pub(crate) median: f64,
    pub(crate) p99: f64,
    /// CPU time of the gateway per call.
    pub(crate) cpu_per_call: f64,
    /// Memory of the gateway at the end, in MiB.
    pub(crate) mib: f64,
}

impl Target {
    pub(crate) fn of(command_line: &CommandLine) -> Result<Target, String> {
        let url = command_line.text("url").ok_or("missing `--url`")?;
        Ok(Target {
            address: Address::of(url),
            bearer: command_line.text("token").map(|it| format!("Bearer {it}")),
            tool: command_line.text("tool").unwrap_or("{}").to_owned(),
            gateway: command_line.text("pid").and_then(|it| it.parse().ok()).map(Gateway),
        })
    }
}

impl Load {
    pub(crate) fn of(command_line: &CommandLine) -> Load {
        let bytes = command_line.number("bytes", 100);
        let what = match (command_line.is_given("list"), command_line.is_given("payload")) {
            (true, _) => RequestKind::List,
            (false, true) => RequestKind::Payload(bytes),
            (false, false) => RequestKind::Echo(bytes),
        };
        let time = Duration::from_secs_f64(command_line.seconds(3.0));
        Load { what, clients: command_line.number("clients", 64), time }
    }
}

impl RequestKind {
    /// Returns a request without its id, and the minimum size of its response.
    fn request(self, target: &Target) -> (String, usize) {
        let call = |tool: &str, arguments: String| {
            let tool = target.tool.replace("{}", tool);
            format!(r#","method":"tools/call","params":{{"name":"{tool}","arguments":{arguments}}}}}"#)
        };
        match self {
            RequestKind::Echo(bytes) => {
                (call("echo", format!(r#"{{"text":"{}"}}"#, "x".repeat(bytes))), bytes)
            }
            RequestKind::Payload(bytes) => (call("payload", format!(r#"{{"bytes":{bytes}}}"#)), bytes),
            RequestKind::List => (r#","method":"tools/list","params":{}}"#.to_owned(), 100),
            RequestKind::ModernList => (MODERN_LIST.to_owned(), 100),
        }
    }
}

/// One client with its connection and the headers of all its requests.
pub(crate) struct Client {
    line: HttpConnection,
    headers: Vec<(&'static str, String)>,
}

impl Client {
    pub(crate) async fn connect(target: &Target) -> Result<Client, String> {
        let mut client = Client::without_session(target);
        if let Some(session) = client.initialize().await? {
            client.headers.extend([(SESSION, session), (VERSION, "2025-06-18".to_owned())]);
        }
        client.post(Bytes::from_static(INITIALIZED.as_bytes())).await?;
        Ok(client)
    }

    /// Opens a session and returns its id, if it has one.
    pub(crate) async fn initialize(&mut self) -> Result<Option<String>, String> {
        let Answer { status, session, body } = self.post(Bytes::from_static(INITIALIZE.as_bytes())).await?;
        match status {
            200 => Ok(session),
            status => Err(format!("initialize: {status} {}", String::from_utf8_lossy(&body))),
        }
    }

    /// Makes a client for requests of this kind.
    async fn connect_for(target: &Target, what: RequestKind) -> Result<Client, String> {
        if what != RequestKind::ModernList {
            return Client::connect(target).await;
        }
        let mut client = Client::without_session(target);
        client.headers.extend([(VERSION, "2026-07-28".to_owned()), ("mcp-method", "tools/list".to_owned())]);
        Ok(client)
    }

    pub(crate) fn without_session(target: &Target) -> Client {
        let bearer = target.bearer.clone().map(|it| ("authorization", it));
        Client { line: HttpConnection::to(&target.address), headers: bearer.into_iter().collect() }
    }

    pub(crate) async fn post(&mut self, body: Bytes) -> Result<Answer, String> {
        let answer = time::timeout(RESPONSE_TIMEOUT, self.line.post(&self.headers, body)).await;
        answer.map_err(|_| "timed out waiting for the response".to_owned())?
    }

    /// Sends requests until the end of the measurement and returns the time of each response.
    async fn call_until(
        mut self,
        (rest, least): (Arc<str>, usize),
        (from, until): (Instant, Instant),
    ) -> Result<Vec<Duration>, String> {
        let mut took = Vec::with_capacity(1 << 14);
        for id in 1_u64.. {
            let begun = Instant::now();
            if begun >= until {
                break;
            }
            let answer = self.post(format!(r#"{{"jsonrpc":"2.0","id":{id}{rest}"#).into()).await?;
            check(&answer, least)?;
            if begun >= from {
                took.push(begun.elapsed());
            }
        }
        Ok(took)
    }
}

fn check(answer: &Answer, least: usize) -> Result<(), String> {
    let Answer { status, body, .. } = answer;
    let (start, end) = (&body[..body.len().min(4096)], &body[body.len().saturating_sub(256)..]);
    let is_result = [start, end].iter().any(|it| memchr::memmem::find(it, b"\"result\"").is_some());
    let is_wrong = [start, end].iter().any(|it| memchr::memmem::find(it, b"\"isError\":true").is_some());
    if *status == 200 && body.len() >= least && is_result && !is_wrong {
        return Ok(());
    }
    let start = String::from_utf8_lossy(&start[..start.len().min(300)]);
    Err(format!("{status}, {} bytes: {start}", body.len()))
}

/// Applies a load to a target and measures it.
pub(crate) async fn drive(target: &Arc<Target>, load: &Load) -> Result<Measurement, String> {
    let mut clients = Vec::new();
    for _ in 0..load.clients {
        clients.push(Client::connect_for(target, load.what).await?);
    }
    let (rest, least) = load.what.request(target);
    let rest: Arc<str> = rest.into();
    let from = Instant::now() + WARM_UP;
    let until = from + load.time;
    let mut work = JoinSet::new();
    clients.into_iter().for_each(|it| _ = work.spawn(it.call_until((rest.clone(), least), (from, until))));
    time::sleep_until(from.into()).await;
    let before = target.gateway.map_or(0, Gateway::micros);
    time::sleep_until(until.into()).await;
    let used = target.gateway.map_or(0, Gateway::micros).saturating_sub(before);
    let mib = target.gateway.map_or(0, Gateway::kib) as f64 / 1024.0;
    let mut took = Vec::new();
    while let Some(done) = work.join_next().await {
        took.extend(done.map_err(|it| it.to_string())??);
    }
    took.sort_unstable();
    let at = |part: f64| {
        let index = (took.len().saturating_sub(1) as f64 * part) as usize;
        took.get(index).map_or(0.0, |it| it.as_secs_f64() * 1e6)
    };
    Ok(Measurement {
        calls: took.len(),
        calls_per_second: took.len() as f64 / load.time.as_secs_f64(),
        median: at(0.5),
        p99: at(0.99),
        cpu_per_call: used as f64 / took.len().max(1) as f64,
        mib,
    })
}
