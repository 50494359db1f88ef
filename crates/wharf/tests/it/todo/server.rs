//! Runs the program as a Todo server, and connects to it.

use serde_json::{Value, json};
use std::{
    io::{BufRead, BufReader},
    process::{Child, Command, Stdio},
    time::Duration,
};
use wharf_mcp::{
    Opener, Raw, Request, Session,
    model::{Block, CallResult, Item},
    session::{ClientInfo, Connected, Era, EraHint, NewsFeed, Options},
    {http, sse, stdio, ws},
};

const WHARF: &str = env!("CARGO_BIN_EXE_wharf");

/// A server that listens on a port, stopped on drop.
pub(super) struct Listening {
    child: Child,
    pub(super) url: String,
}

/// A session with a server.
pub(super) struct Todos {
    pub(super) session: Session,
    pub(super) news: NewsFeed,
    task: wharf_mcp::SessionTask,
}

impl Listening {
    pub(super) fn start(database: &str, transport: &str) -> Listening {
        let child = Command::new(WHARF)
            .args(["todo", "--database", database, "--transport", transport, "--listen", "127.0.0.1:0"])
            .stdout(Stdio::piped())
            .spawn();
        let mut child = child.expect("the server starts");
        let mut url = String::new();
        let stdout = child.stdout.take().expect("a pipe");
        BufReader::new(stdout).read_line(&mut url).expect("the server says where it is");
        Listening { child, url: url.trim().to_owned() }
    }

    /// Sends SIGTERM and returns the exit code.
    pub(super) fn terminate(mut self) -> Option<i32> {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it is there");
        self.child.wait().expect("it ends").code()
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

impl Todos {
    /// Starts a server over stdio and connects to it.
    pub(super) async fn start(database: &str) -> Todos {
        Todos::connect(&process(database), Era::Modern).await
    }

    /// Connects to a URL. The transport is explicit, because `sse` and `http` URLs look alike.
    pub(super) async fn connect_url(transport: &str, url: &str, era: Era) -> Todos {
        let url = url.parse().expect("an address");
        let client = || http::HttpClient::new(Duration::from_secs(10)).expect("a client");
        let opener: Box<dyn Opener> = match transport {
            "http" => Box::new(http::HttpEndpoint::new(url, client())),
            "sse" => Box::new(sse::SseEndpoint::new(url, client())),
            _ => Box::new(ws::WsEndpoint::new(url)),
        };
        Todos::connect(&*opener, era).await
    }

    pub(super) async fn connect(opener: &dyn Opener, era: Era) -> Todos {
        let client = ClientInfo { name: "test".into(), version: "1".into() };
        let options = Options { era: EraHint::Only(era), ..Options::new(client) };
        let Connected { session, task, news } =
            Session::connect(opener, &options).await.expect("the server answers");
        Todos { session, news, task }
    }

    /// Calls a tool. Returns its structured result, or its error text.
    pub(super) async fn call(&self, tool: &str, arguments: Value) -> Result<Value, String> {
        let request = Request::call_tool(tool, Some(&Raw::from(arguments)));
        let raw = self.session.request(request).await.expect("an answer");
        let result = CallResult::read(&raw);
        let [Item::Valid(Block::Text(text))] = &result.content[..] else { panic!("{raw:?}") };
        if result.is_error {
            return Err(text.clone());
        }
        let structured: Value = result.structured.expect("a structured result").decode().expect("JSON");
        // The text result and the structured result are the same.
        assert_eq!(serde_json::from_str::<Value>(text).expect("JSON"), structured);
        Ok(structured)
    }

    pub(super) async fn create(&self, title: &str) -> Value {
        self.call("create_todo", json!({ "title": title })).await.expect("a todo")
    }

    /// Returns the titles of the todos that a tool finds.
    pub(super) async fn titles(&self, tool: &str, arguments: Value) -> Vec<String> {
        let found = self.call(tool, arguments.clone()).await.expect("a list");
        let todos = found["todos"].as_array().expect("a list");
        assert_eq!(
            (&found["count"], &found["truncated"]),
            (&json!(todos.len()), &json!(false)),
            "{arguments}"
        );
        todos.iter().map(|it| it["title"].as_str().expect("a title").to_owned()).collect()
    }

    /// Sends any other request.
    pub(super) async fn ask(&self, method: &'static str, params: Value) -> Result<Value, String> {
        let answer = self.session.request(Request::new(method).params(params.into())).await;
        answer.map(|raw| raw.decode().expect("JSON")).map_err(|failure| {
            let error = failure.rpc.clone().expect("an answer");
            error.message.to_string()
        })
    }

    pub(super) async fn close(self) {
        drop(self.session);
        self.task.join().await;
    }
}

/// Builds the command of a server over stdio.
pub(super) fn process(database: &str) -> stdio::Command {
    let mut command = stdio::Command::new(WHARF, "/");
    command.args = ["todo", "--database", database].into_iter().map(Into::into).collect();
    command
}
