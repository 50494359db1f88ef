//! Tests the first steps on the front page, for a user with nothing but a Rust toolchain.
//!
//! It is a separate binary, because cargo runs those one after the other, and this one makes a release build.
#![cfg(unix)]
#![expect(clippy::disallowed_methods, reason = "a newcomer's environment is made from ours")]

use serde_json::{Value, json};
use std::{
    env, fs,
    fs::File,
    io::{BufRead, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::Duration,
};
use tempfile::TempDir;
use wharf_mcp::{
    Request, Session,
    http::{HttpClient, HttpEndpoint},
    session::{ClientInfo, Options},
};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Path of the program, two folders below cargo's target folder.
const PROGRAM: &str = env!("CARGO_BIN_EXE_wharf");

/// Command from the front page.
const TYPED: &str = "cargo run --release -- serve";

/// A user with an empty home folder, in this checkout: a clone in the target folder would leave its build where cargo
/// takes it for the build of the checkout.
struct Newcomer {
    home: TempDir,
    target: PathBuf,
}

struct Serving {
    child: Child,
    output: BufReader<std::process::ChildStdout>,
}

#[tokio::test]
async fn readme_quick_start_works() {
    let page = fs::read_to_string(Path::new(ROOT).join("README.md")).expect("the front page");
    assert!(page.contains(TYPED), "the front page no longer says `{TYPED}`");
    let newcomer = Newcomer::new();
    newcomer.build();
    let (mut serving, address) = newcomer.serve();
    let token = fs::read_to_string(newcomer.token()).expect("a token");

    let created = create(&address, &token, "Buy milk").await;
    assert_eq!(
        (&created["success"], &created["structured_content"]["title"]),
        (&json!(true), &json!("Buy milk"))
    );
    let listed = list(&address, &token).await;
    assert_eq!(listed["structuredContent"]["todos"][0]["title"], "Buy milk");

    let pid = rustix::process::Pid::from_child(&serving.child);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
    let status = serving.child.wait().expect("it ends");
    assert_eq!(status.code(), Some(0), "{status}");
}

impl Newcomer {
    fn new() -> Newcomer {
        let target = Path::new(PROGRAM).ancestors().nth(2).expect("a target folder").to_owned();
        Newcomer { home: TempDir::new().expect("a folder"), target }
    }

    /// Builds a cargo command with its own home folder and without the variables of the cargo that runs this test.
    fn cargo(&self, words: &[&str]) -> Command {
        let mut command = Command::new("cargo");
        let ours = env::vars_os().map(|(name, _)| name).filter(|name| {
            let name = name.to_string_lossy();
            let by_cargo = ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_", "CARGO_CRATE_", "CARGO_PRIMARY_"];
            name == "CARGO"
                || name == "CARGO_TARGET_TMPDIR"
                || by_cargo.iter().any(|it| name.starts_with(it))
                || name.starts_with("WHARF_")
                || name.starts_with("XDG_")
        });
        ours.for_each(|name| _ = command.env_remove(name));
        let home = env::home_dir().expect("a home");
        for (name, usual) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
            command.env(name, env::var_os(name).map_or_else(|| home.join(usual), PathBuf::from));
        }
        command.args(words).current_dir(ROOT).stdin(Stdio::null());
        command.env("HOME", self.home.path()).env("CARGO_TARGET_DIR", &self.target);
        command
    }

    /// Builds the program, which takes minutes.
    fn build(&self) {
        let status = self.cargo(&["build", "--release"]).status().expect("cargo runs");
        assert!(status.success(), "`cargo build --release` failed: {status}");
    }

    /// Starts the gateway on the default port, or, if that is taken, on another one, as the program's message advises.
    fn serve(&self) -> (Serving, String) {
        let words: Vec<&str> = TYPED.split(' ').skip(1).collect();
        let mut serving = self.run(&words);
        if let Some(address) = serving.address() {
            return (serving, address);
        }
        let (code, error) = (serving.child.wait().expect("it ends").code(), self.stderr());
        let is_taken = code == Some(2) && error.contains("cannot listen on `127.0.0.1:7373`");
        let advice = "--listen 127.0.0.1:0";
        assert!(is_taken && error.contains(advice), "it ended with {code:?}: {error}");
        let mut serving = self.run(&[&words[..], &advice.split(' ').collect::<Vec<_>>()].concat());
        let address = serving.address();
        (serving, address.unwrap_or_else(|| panic!("it does not serve: {}", self.stderr())))
    }

    fn run(&self, words: &[&str]) -> Serving {
        let log = File::create(self.home.path().join("log")).expect("a file");
        let child = self.cargo(words).stdout(Stdio::piped()).stderr(log).spawn();
        let mut child = child.expect("cargo runs");
        let output = BufReader::new(child.stdout.take().expect("its stdout"));
        Serving { child, output }
    }

    /// Returns the path of the token file from the program's output.
    fn token(&self) -> PathBuf {
        let output = self.stderr();
        let place =
            output.lines().find_map(|it| it.split_once("the token is in ")).map(|(_, place)| place.trim());
        let place =
            PathBuf::from(place.unwrap_or_else(|| panic!("it does not say where its token is: {output}")));
        assert!(place.starts_with(self.home.path()), "{} is not at home", place.display());
        place
    }

    fn stderr(&self) -> String {
        fs::read_to_string(self.home.path().join("log")).unwrap_or_default()
    }
}

impl Serving {
    /// Returns the address from the program's output, if it prints one.
    fn address(&mut self) -> Option<String> {
        let lines = (&mut self.output).lines().map_while(Result::ok);
        lines.filter_map(|it| Some(it.strip_prefix("MCP   http://")?.strip_suffix("/mcp")?.to_owned())).next()
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

async fn create(address: &str, token: &str, title: &str) -> Value {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let body = json!({ "arguments": { "title": title } }).to_string();
    let request = format!(
        "POST /api/v1/tools/todo:create_todo/call HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
        body.len()
    );
    let mut stream = tokio::net::TcpStream::connect(address).await.expect("somebody listens");
    stream.write_all(request.as_bytes()).await.expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("it answers");
    let body = answer.split_once("\r\n\r\n").map(|(_, body)| body).unwrap_or_default();
    serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {answer}"))
}

async fn list(address: &str, token: &str) -> Value {
    let url = format!("http://{address}/mcp").parse().expect("a URL");
    let mut endpoint = HttpEndpoint::new(url, HttpClient::new(Duration::from_secs(30)).expect("a client"));
    endpoint.headers.insert("authorization", format!("Bearer {token}").parse().expect("a header"));
    let options = Options::new(ClientInfo { name: "a newcomer".into(), version: "1".into() });
    let connected = Session::connect(&endpoint, &options).await.expect("a session");
    let listed = connected.session.request(Request::call_tool("todo__list_todos", None)).await;
    drop(connected.session);
    connected.task.join().await;
    listed.expect("an answer").decode().expect("JSON")
}
