//! Scripted server at the other end of an in-memory pipe. It uses no MCP library.
//!
//! A script has one rule per line, `METHOD: ACTION | ACTION`. `start` runs before anything is read. Actions:
//! `result JSON`, `error CODE [DATA]`, `line TEXT` (with `$id`), `big BYTES`, `progress COUNT`, `ask COUNT`, `wait MS`,
//! `exit`, and `alone`, which applies the rest of the rule to the first connection only.

use std::sync::{Arc, Mutex};
use std::{collections::HashMap, time::Duration};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};
use wharf_mcp::{Opener, Opening, link_over};

pub(crate) const INITIALIZED: &str = r#"initialize: result {"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"fake"}}"#;
pub(crate) const DISCOVERED: &str = r#"server/discover: result {"supportedVersions":["2026-07-28"],"capabilities":{"tools":{}},"ttlMs":0,"cacheScope":"public","resultType":"complete"}"#;
pub(crate) const NO_DISCOVERY: &str = "server/discover: error -32601";

#[derive(Clone, Default)]
pub(crate) struct Fake {
    rules: Arc<HashMap<String, Vec<String>>>,
    received: Arc<Mutex<Vec<String>>>,
    opens: Arc<Mutex<usize>>,
}

impl Fake {
    pub(crate) fn new(script: &str) -> Fake {
        let rules = script.lines().map(str::trim).filter(|line| !line.is_empty()).map(|line| {
            let (method, actions) = line.split_once(": ").unwrap();
            (method.to_owned(), actions.split(" | ").map(str::to_owned).collect())
        });
        Fake { rules: Arc::new(rules.collect()), ..Fake::default() }
    }

    /// Returns all received messages, one line each.
    pub(crate) fn received(&self) -> Vec<String> {
        self.received.lock().unwrap().clone()
    }

    /// Returns the methods of all received messages.
    pub(crate) fn methods(&self) -> String {
        let method = |line: &String| {
            let message: serde_json::Value = serde_json::from_str(line).unwrap();
            message["method"].as_str().unwrap_or("answer").to_owned()
        };
        self.received().iter().map(method).collect::<Vec<_>>().join(" ")
    }

    pub(crate) fn opens(&self) -> usize {
        *self.opens.lock().unwrap()
    }

    async fn serve(self, stream: DuplexStream, first: bool) {
        let (read, mut write) = tokio::io::split(stream);
        let mut lines = BufReader::new(read).lines();
        if !self.follow("start", "0", first, &mut write).await {
            return;
        }
        while let Ok(Some(line)) = lines.next_line().await {
            self.received.lock().unwrap().push(line.clone());
            let message: serde_json::Value = serde_json::from_str(&line).unwrap();
            let method = message["method"].as_str().unwrap_or("answer");
            if !self.follow(method, &message["id"].to_string(), first, &mut write).await {
                return;
            }
        }
    }

    /// Runs the actions for a method; returns whether the server keeps running.
    async fn follow(
        &self,
        method: &str,
        id: &str,
        first: bool,
        out: &mut (impl AsyncWriteExt + Unpin),
    ) -> bool {
        for action in self.rules.get(method).into_iter().flatten() {
            let (verb, rest) = action.split_once(' ').unwrap_or((action, ""));
            let line = match verb {
                "alone" if first => continue,
                "alone" => return true,
                "exit" => return false,
                "wait" => {
                    tokio::time::sleep(Duration::from_millis(rest.parse().unwrap())).await;
                    continue;
                }
                "result" => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{rest}}}"#),
                "error" => {
                    let (code, data) = rest.split_once(' ').unwrap_or((rest, "null"));
                    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"no","data":{data}}}}}"#)
                }
                "line" => rest.replace("$id", id),
                "big" => format!(r#"{{"result":"{}","jsonrpc":"2.0","id":{id}}}"#, "x".repeat(rest.parse().unwrap())),
                "progress" => (1..=rest.parse().unwrap()).map(|step: u32| format!(
                    r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{id},"progress":{step}}}}}"#,
                )).collect::<Vec<_>>().join("\n"),
                "ask" => vec![r#"{"jsonrpc":"2.0","id":"x","method":"sampling/createMessage"}"#; rest.parse().unwrap()].join("\n"),
                unknown => panic!("no action `{unknown}`"),
            };
            if out.write_all(format!("{line}\n").as_bytes()).await.is_err() {
                return false;
            }
        }
        true
    }
}

impl Opener for Fake {
    fn open(&self) -> Opening<'_> {
        let (ours, theirs) = tokio::io::duplex(1 << 20);
        let first = {
            let mut opens = self.opens.lock().unwrap();
            *opens += 1;
            *opens == 1
        };
        spawn(self.clone().serve(theirs, first));
        let (read, write) = tokio::io::split(ours);
        Box::pin(async { Ok(link_over(read, write)) })
    }
}

#[expect(clippy::disallowed_methods, reason = "the fake ends when its pipe closes")]
fn spawn(server: impl Future<Output = ()> + Send + 'static) {
    drop(tokio::spawn(server));
}
