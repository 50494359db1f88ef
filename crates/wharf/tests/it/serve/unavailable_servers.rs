//! Tests servers that are down when the gateway starts, or later.

use super::{
    options,
    server::{Server, wharf},
};
use std::{
    fs,
    io::{BufRead, BufReader},
    net::TcpListener,
    process::{Child, Stdio},
    time::Duration,
};
use tempfile::TempDir;
use tokio::{net::TcpStream, time};
use wharf_mcp::{News, Request, Session, ws::WsEndpoint};

/// Timeout for each step on a busy machine.
pub(super) const STEP_TIMEOUT: Duration = Duration::from_secs(120);

/// How long a server may be up before it is in the lists.
const APPEARANCE_TIMEOUT: Duration = Duration::from_secs(10);

/// A process, killed on drop.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns an address without a listener.
pub(super) fn free_address() -> String {
    TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr()).expect("a port").to_string()
}

/// Creates a folder whose agent file has one server, `late`, at this address.
fn folder_with_late(address: &str) -> TempDir {
    let folder = TempDir::new().expect("a folder");
    let entry = format!(
        "tools:\n  - {{name: late, description: d, type: mcp, server: x, transport: http, url: 'http://{address}/mcp'}}\n"
    );
    fs::write(folder.path().join("agent.yaml"), entry).expect("the file can be written");
    folder
}

async fn tools(session: &Session) -> usize {
    let listed = session.request(Request::new("tools/list")).await.expect("an answer");
    let listed: serde_json::Value = listed.decode().expect("JSON");
    listed["tools"].as_array().expect("a list").len()
}

/// The server is in the lists within ten seconds of coming up, with one warning in the log and one notification.
#[tokio::test]
async fn server_appears_when_it_becomes_available() {
    let address = free_address();
    let server = Server::start_in(folder_with_late(&address), &["--no-auth"]);
    // Over a WebSocket, notifications and responses have an order.
    let url = format!("ws://{}/ws", server.address).parse().expect("a URL");
    let mut connected = Session::connect(&WsEndpoint::new(url), &options()).await.expect("a session");
    assert_eq!(tools(&connected.session).await, 0);

    let database = format!("sqlite:{}", server.folder.path().join("todos.db").display());
    let todo = wharf(&server.folder)
        .args(["todo", "--transport", "http", "--listen", &address, "--database", &database])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let _todo = Running(todo.expect("it starts"));
    let is_up = async {
        while TcpStream::connect(&address).await.is_err() {
            time::sleep(Duration::from_millis(10)).await;
        }
    };
    time::timeout(STEP_TIMEOUT, is_up).await.expect("it listens");
    let notified = async {
        while let Some(news) = connected.news.next().await {
            if news == News::ToolsChanged {
                return true;
            }
        }
        false
    };
    let notified = time::timeout(APPEARANCE_TIMEOUT, notified).await;
    assert!(notified.expect("clients are notified in time"), "{}", server.log());
    assert_eq!(tools(&connected.session).await, 5);
    let log = server.log_with("`late` is available");
    assert_eq!(log.matches(" WARN ").count(), 1, "{log}");
    assert_eq!(log.matches("retrying in the background").count(), 1, "{log}");
    assert_eq!(log.matches("`late` is available").count(), 1, "{log}");
    // All notifications up to this response have been read.
    assert_eq!(tools(&connected.session).await, 5);
    let more = std::iter::from_fn(|| connected.news.try_next()).filter(|it| *it == News::ToolsChanged);
    assert_eq!(more.count(), 0);
    drop(connected.session);
    connected.task.join().await;
    assert_eq!(server.terminate(), Some(0));
}

/// Checks `wharf stdio`, because MCP clients keep the logs of the servers they start.
#[test]
fn over_stdio_a_server_that_is_down_is_logged_once() {
    let folder = folder_with_late(&free_address());
    let mut command = wharf(&folder);
    command.arg("stdio").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = Running(command.spawn().expect("it starts"));
    let mut said = BufReader::new(child.0.stderr.take().expect("a pipe")).lines();
    let warning = said.find_map(|it| it.ok().filter(|it| it.contains("retrying in the background")));
    assert!(warning.expect("it is logged").contains("`late`"));
    drop(child.0.stdin.take());
    let rest: Vec<String> = said.map_while(Result::ok).collect();
    assert_eq!(rest, [""; 0]);
}
