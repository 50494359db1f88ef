//! A gateway process, and a test client for it in one era over one transport.

use super::test_server::TestServer;
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    time::Duration,
};
use tempfile::TempDir;
use tokio::time;
use wharf_mcp::{
    Host, News, Opener, Raw, Request, Session, SessionTask,
    http::{self, HttpClient},
    model::LogLevel,
    session::{ClientInfo, Connected, Era, EraHint, HostFuture, NewsFeed, NoHost, Options},
    sse, ws,
};

/// Timeout that is long enough for a busy machine.
const STEP_TIMEOUT: Duration = Duration::from_secs(20);

/// A gateway in front of test servers, stopped on drop.
pub(super) struct Gateway {
    child: Child,
    address: String,
    folder: TempDir,
}

/// Name of a source, its server, and more keys of its entry, such as `required: true`.
pub(super) type AgentEntry<'a> = (&'a str, &'a TestServer, &'a str);

/// Transports of the gateway.
#[derive(Clone, Copy, Debug)]
pub(super) enum Transport {
    Http,
    Ws,
    Sse,
}

/// A client of the gateway that answers every server question.
pub(super) struct TestClient {
    pub(super) session: Session,
    news: NewsFeed,
    pub(super) name: &'static str,
    _task: SessionTask,
}

struct Answers(&'static str);

/// Answers questions, and opens URLs.
pub(super) struct OpensUrls(pub(super) &'static str);

impl Gateway {
    pub(super) fn in_front_of(test_server: &TestServer) -> Gateway {
        Gateway::in_front_of_all(&[test_server])
    }

    /// Starts a gateway in front of these servers. The sources are named `island`, `island1` and so on.
    pub(super) fn in_front_of_all(test_servers: &[&TestServer]) -> Gateway {
        let names = ["island", "island1", "island2"];
        let entries: Vec<_> =
            names.into_iter().zip(test_servers.iter().copied()).map(|(name, it)| (name, it, "")).collect();
        Gateway::start(&entries)
    }

    /// Starts a gateway in front of these servers, each with the name of its source and more keys of its entry.
    pub(super) fn start(entries: &[AgentEntry<'_>]) -> Gateway {
        Gateway::start_with(&agent_file(entries), "")
    }

    /// Starts a gateway with this agent file and this wharf.toml.
    pub(super) fn start_with(agent_file: &str, wharf_toml: &str) -> Gateway {
        let folder = TempDir::new().expect("a folder");
        fs::write(folder.path().join("agent.yaml"), agent_file).expect("the file can be written");
        fs::create_dir(folder.path().join("home")).expect("a folder");
        fs::write(folder.path().join("home/wharf.toml"), wharf_toml).expect("the file can be written");
        let mut command = Command::new(env!("CARGO_BIN_EXE_wharf"));
        command.current_dir(folder.path()).env("WHARF_HOME", folder.path().join("home"));
        command.args(["serve", "--no-auth", "--listen", "127.0.0.1:0"]).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::null()).spawn().expect("the program starts");
        let said = BufReader::new(child.stdout.take().expect("its stdout"));
        let mut lines = said.lines().map_while(Result::ok);
        let address = lines.find_map(|line| {
            line.strip_prefix("MCP   http://").and_then(|it| it.strip_suffix("/mcp")).map(str::to_owned)
        });
        Gateway { child, address: address.expect("an address"), folder }
    }

    /// Replaces the agent file. The gateway notices it within seconds.
    pub(super) fn rewrite(&self, entries: &[AgentEntry<'_>]) {
        fs::write(self.folder.path().join("agent.yaml"), agent_file(entries))
            .expect("the file can be written");
    }

    /// Restarts the session of the source through the REST API.
    pub(super) fn restart(&self) {
        assert_eq!(self.rest("POST /api/v1/connections/island/restart", "{}").0, 200);
    }

    /// Sends a request to the REST API and returns status and body.
    pub(super) fn rest(&self, line: &str, body: &str) -> (u16, Value) {
        let mut stream = TcpStream::connect(&self.address).expect("somebody listens");
        let (host, length) = (&self.address, body.len());
        let headers = format!("Host: {host}\r\nConnection: close\r\nContent-Length: {length}");
        let request = format!("{line} HTTP/1.1\r\n{headers}\r\nContent-Type: application/json\r\n\r\n{body}");
        stream.write_all(request.as_bytes()).expect("it listens");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        let status = head.split(' ').nth(1).and_then(|it| it.parse().ok()).expect("a status");
        (status, serde_json::from_str(body).unwrap_or_default())
    }

    /// Sends SIGTERM and returns the exit code.
    pub(super) fn terminate(mut self) -> Option<i32> {
        let pid = rustix::process::Pid::from_raw(self.child.id().cast_signed()).expect("a process");
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
        self.child.wait().expect("it ends").code()
    }

    fn opener(&self, transport: Transport) -> Box<dyn Opener> {
        let client = HttpClient::new(STEP_TIMEOUT).expect("a client");
        let url =
            |scheme: &str, path: &str| format!("{scheme}://{}{path}", self.address).parse().expect("a URL");
        match transport {
            Transport::Http => Box::new(http::HttpEndpoint::new(url("http", "/mcp"), client)),
            Transport::Ws => Box::new(ws::WsEndpoint::new(url("ws", "/ws"))),
            Transport::Sse => Box::new(sse::SseEndpoint::new(url("http", "/sse"), client)),
        }
    }

    pub(super) async fn connect(&self, transport: Transport, era: Era, name: &'static str) -> TestClient {
        self.connect_with(transport, era, name, Arc::new(Answers(name))).await
    }

    pub(super) async fn connect_with(
        &self,
        transport: Transport,
        era: Era,
        name: &'static str,
        host: Arc<dyn Host>,
    ) -> TestClient {
        let client = ClientInfo { name: name.into(), version: "1".into() };
        let options = Options { host, era: EraHint::Only(era), ..Options::new(client) };
        let connected = Session::connect(&*self.opener(transport), &options).await;
        let Connected { session, news, task } =
            connected.unwrap_or_else(|it| panic!("{transport:?} {era:?}: {it}"));
        TestClient { session, news, name, _task: task }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl TestClient {
    /// Calls a tool and returns its text, or the error.
    pub(super) async fn call(&self, tool: &str, arguments: Value) -> String {
        said(self.session.request(Request::call_tool(tool, Some(&arguments.into()))).await)
    }

    /// Sends a request and returns the complete result.
    pub(super) async fn result(&self, request: Request) -> Value {
        self.session.request(request).await.expect("a result").decode_or_default()
    }

    pub(super) async fn ask(&self, request: Request) -> String {
        said(self.session.request(request).await)
    }

    /// Makes a call and returns its log messages of this level and above.
    pub(super) async fn collect_logs(&self, level: LogLevel) -> Vec<String> {
        let heard = Arc::new(Mutex::new(Vec::new()));
        let received = heard.clone();
        let request = Request::call_tool("speak", None).logs(
            level,
            true,
            Arc::new(move |line: &Raw| {
                let line: Value = line.decode_or_default();
                received.lock().expect("a lock").push(line["data"].as_str().unwrap_or("?").to_owned());
            }),
        );
        assert_eq!(self.ask(request).await, "speak", "{}", self.name);
        heard.lock().expect("a lock").clone()
    }

    pub(super) fn watch(&self, uris: &[&str]) {
        self.session.watch(uris.iter().map(|it| (*it).to_owned()).collect());
    }

    /// Waits for a notification that matches.
    pub(super) async fn news(&mut self, wanted: impl Fn(&News) -> bool) -> News {
        let waiting = async {
            loop {
                let news = self.news.next().await.expect("the session lives");
                if wanted(&news) {
                    return news;
                }
            }
        };
        time::timeout(STEP_TIMEOUT, waiting)
            .await
            .unwrap_or_else(|_| panic!("no such news for {}", self.name))
    }

    /// Returns the notifications that have already arrived.
    pub(super) fn received_news(&mut self) -> Vec<News> {
        std::iter::from_fn(|| self.news.try_next()).collect()
    }
}

fn agent_file(entries: &[AgentEntry<'_>]) -> String {
    let entry = "type: mcp, server: i, description: d, prefix: \"\", transport: http";
    let entries = entries.iter().map(|(name, test_server, keys)| {
        format!("  - {{ name: {name}, {entry}, url: \"{}\", {keys} }}\n", test_server.url)
    });
    format!("tools:\n{}", entries.collect::<String>())
}

fn said(answer: Result<Raw, wharf_mcp::Failure>) -> String {
    match answer {
        Ok(result) => {
            let result: Value = result.decode_or_default();
            let places = ["/content/0/text", "/messages/0/content/text", "/contents/0/text"];
            let text = places.iter().find_map(|it| result.pointer(it)?.as_str().map(str::to_owned));
            let completed = result.pointer("/completion/values").map(Value::to_string);
            text.or(completed).unwrap_or_else(|| result.to_string())
        }
        Err(failure) => format!("{} {failure}", failure.rpc_code().unwrap_or_default()),
    }
}

impl Host for Answers {
    fn capabilities(&self) -> Raw {
        json!({ "elicitation": { "form": {} }, "sampling": {}, "roots": {} }).into()
    }

    fn answer(&self, method: &str, params: Option<Raw>) -> HostFuture {
        let answer = match method {
            "elicitation/create" => json!({ "action": "accept", "content": { "name": self.0 } }),
            "sampling/createMessage" => {
                json!({ "role": "assistant", "model": "m", "content": { "type": "text", "text": self.0 } })
            }
            "roots/list" => json!({ "roots": [{ "uri": format!("file:///{}", self.0), "name": self.0 }] }),
            _ => return NoHost.answer(method, params),
        };
        Box::pin(async move { Ok(answer.into()) })
    }
}

impl Host for OpensUrls {
    fn capabilities(&self) -> Raw {
        Answers(self.0).capabilities().with("elicitation", &json!({ "form": {}, "url": {} }).into())
    }

    fn reports_roots(&self) -> bool {
        true
    }

    fn answer(&self, method: &str, params: Option<Raw>) -> HostFuture {
        Answers(self.0).answer(method, params)
    }
}
