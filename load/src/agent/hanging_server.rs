//! An MCP server over HTTP whose tool `hang` does not answer. It counts the messages that it receives.

use serde_json::{Value, json};
use std::{
    collections::HashMap,
    io::{BufRead, BufReader, Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    sync::{Arc, Condvar, Mutex, PoisonError},
    thread,
    time::Duration,
};

/// Number of messages by method.
type MessageCounts = HashMap<String, usize>;

/// A running server. Its threads end with the program.
pub(super) struct HangingServer {
    address: SocketAddr,
    received: Arc<(Mutex<MessageCounts>, Condvar)>,
}

impl HangingServer {
    pub(super) fn start() -> Result<HangingServer, String> {
        let listener = TcpListener::bind("127.0.0.1:0").map_err(|it| it.to_string())?;
        let address = listener.local_addr().map_err(|it| it.to_string())?;
        let received = Arc::<(Mutex<MessageCounts>, Condvar)>::default();
        let shared = received.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = shared.clone();
                thread::spawn(move || serve(stream, &shared));
            }
        });
        Ok(HangingServer { address, received })
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/mcp", self.address)
    }

    /// Waits until this many messages of a method have arrived.
    pub(super) fn wait_for(&self, method: &str, count: usize, timeout: Duration) -> Result<(), String> {
        let (received, changed) = &*self.received;
        let received = received.lock().unwrap_or_else(PoisonError::into_inner);
        let is_missing = |it: &mut MessageCounts| it.get(method).is_none_or(|found| *found < count);
        let waited = changed.wait_timeout_while(received, timeout, is_missing);
        let (_received, result) = waited.unwrap_or_else(PoisonError::into_inner);
        if result.timed_out() { Err(format!("`{method}` did not arrive")) } else { Ok(()) }
    }
}

fn serve(stream: TcpStream, (received, changed): &(Mutex<MessageCounts>, Condvar)) {
    let _ = stream.set_nodelay(true);
    let Ok(mut writer) = stream.try_clone() else { return };
    let mut reader = BufReader::new(stream);
    while let Some((line, message)) = read_message(&mut reader) {
        let method = message["method"].as_str().unwrap_or_default().to_owned();
        let is_call = method == "tools/call";
        *received.lock().unwrap_or_else(PoisonError::into_inner).entry(method.clone()).or_default() += 1;
        changed.notify_all();
        if is_call {
            // Until the client closes the connection.
            let _ = reader.read(&mut [0]);
            return;
        }
        let body = answer(&method, &message).map(|it| it.to_string()).unwrap_or_default();
        let status = match (line.starts_with("POST"), body.is_empty()) {
            (true, false) => "200 OK",
            (true, true) => "202 Accepted",
            (false, _) => "405 Method Not Allowed",
        };
        let response = format!(
            "HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        if writer.write_all(response.as_bytes()).is_err() {
            return;
        }
    }
}

fn answer(method: &str, message: &Value) -> Option<Value> {
    let id = message.get("id")?;
    let result = match method {
        "initialize" => json!({ "protocolVersion": "2025-06-18", "capabilities": { "tools": {} },
            "serverInfo": { "name": "hang", "version": "1" } }),
        "tools/list" => json!({ "tools": [{ "name": "hang", "inputSchema": { "type": "object" } }] }),
        "ping" => json!({}),
        _ => {
            let error = json!({ "code": -32601, "message": "method not found" });
            return Some(json!({ "jsonrpc": "2.0", "id": id, "error": error }));
        }
    };
    Some(json!({ "jsonrpc": "2.0", "id": id, "result": result }))
}

/// Reads a request: its first line and its message.
fn read_message(reader: &mut impl BufRead) -> Option<(String, Value)> {
    let mut first = String::new();
    if reader.read_line(&mut first).ok()? == 0 {
        return None;
    }
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        if name.eq_ignore_ascii_case("content-length") {
            length = value.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some((first, serde_json::from_slice(&body).unwrap_or(Value::Null)))
}
