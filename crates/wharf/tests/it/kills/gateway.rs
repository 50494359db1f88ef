//! A gateway process that the test can kill.

use serde_json::Value;
use std::{path::Path, process::Stdio, time::Duration};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    process::{Child, Command},
    time::timeout,
};

pub(crate) const TOKEN: &str = "a-token-that-survives";

/// Timeout for each step, long enough for a busy machine.
const STEP_TIMEOUT: Duration = Duration::from_secs(60);

/// Number of calls per journal page.
const PAGE: usize = 500;

pub(crate) struct Gateway {
    child: Child,
    pub(crate) address: String,
}

/// The pages of the journal, newest first.
pub(crate) struct Pages<'a> {
    gateway: &'a Gateway,
    /// Query of the next page; `None` after the last.
    query: Option<String>,
}

impl Gateway {
    pub(crate) async fn start(home: &Path, database: &str) -> Gateway {
        Gateway::start_with(home, database, &[], &[]).await
    }

    pub(crate) async fn start_with(
        home: &Path,
        database: &str,
        args: &[&str],
        variables: &[(&str, &str)],
    ) -> Gateway {
        let mut child = Command::new(env!("CARGO_BIN_EXE_wharf"))
            .args(["serve", "--listen", "127.0.0.1:0", "--database", database])
            .args(args)
            .envs(variables.iter().copied())
            .current_dir(home)
            .env("WHARF_HOME", home)
            .env("WHARF_TOKEN", TOKEN)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            // The log has a line for every call.
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("the program starts");
        let mut lines = BufReader::new(child.stdout.take().expect("its stdout")).lines();
        let address = async {
            while let Some(line) = lines.next_line().await.expect("a line") {
                let address = line.strip_prefix("MCP   http://").and_then(|it| it.strip_suffix("/mcp"));
                if let Some(address) = address {
                    return address.to_owned();
                }
            }
            panic!("the gateway does not say where it is");
        };
        let address = timeout(STEP_TIMEOUT, address).await.expect("it starts in time");
        Gateway { child, address }
    }

    /// Sends SIGKILL without a warning.
    pub(crate) async fn kill(mut self) {
        timeout(STEP_TIMEOUT, self.child.kill()).await.expect("it ends").expect("it was alive");
    }

    pub(crate) fn journal(&self) -> Pages<'_> {
        Pages { gateway: self, query: Some(format!("limit={PAGE}")) }
    }
}

impl Pages<'_> {
    pub(crate) async fn next(&mut self) -> Option<Vec<Value>> {
        let path = format!("/api/v1/calls?{}", self.query.take()?);
        let page = ask(&self.gateway.address, "GET", &path, "").await.expect("a page");
        self.query = page["next_cursor"].as_str().map(|it| format!("limit={PAGE}&cursor={it}"));
        Some(page["items"].as_array().expect("a list").clone())
    }
}

/// Sends one request and returns its JSON response, if it is complete and successful.
pub(crate) async fn ask(address: &str, method: &str, path: &str, body: &str) -> Result<Value, String> {
    let length = body.len();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {TOKEN}\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    let exchange = async {
        let mut stream = TcpStream::connect(address).await?;
        stream.write_all(request.as_bytes()).await?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await?;
        Ok::<String, std::io::Error>(answer)
    };
    let answer = timeout(STEP_TIMEOUT, exchange).await.expect("nobody is kept waiting");
    let answer = answer.map_err(|it| it.to_string())?;
    match answer.split_once("\r\n\r\n") {
        Some((head, body)) if head.starts_with("HTTP/1.1 200") => {
            serde_json::from_str(body).map_err(|it| it.to_string())
        }
        _ => Err(format!("answered with {answer:?}")),
    }
}
