//! Tests calls whose callers disconnected: each is in the journal and in the metrics.

use super::{metric, wait_until};
use crate::serve::server::Server;
use serde_json::json;
use std::{fs, io::Write, net::TcpStream};
use tempfile::TempDir;

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/orphans/server.sh");

const CALLERS: u64 = 50;

#[test]
fn calls_of_disconnected_callers_are_recorded_and_counted() {
    let folder = TempDir::new().expect("a folder");
    let agent_file = format!(
        "tools:\n  - {{name: it, description: d, type: mcp, server: x, command: /bin/sh, args: ['{SERVER}', direct]}}\n"
    );
    fs::write(folder.path().join("agent.yaml"), agent_file).expect("an agent file");
    fs::write(folder.path().join("wharf.toml"), "[grants]\ncommands = [\"/bin/sh\"]\n").expect("settings");
    let server = Server::start_in(folder, &["--settings", "wharf.toml"]);
    wait_until("the server is there", || server.ask("GET", "/api/v1/tools/it:silence", None).0 == 200);
    let body = json!({ "arguments": {} }).to_string();
    let (address, token, length) = (&server.address, &server.token, body.len());
    let request = format!(
        "POST /api/v1/tools/it:silence/call HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    let callers: Vec<TcpStream> = (0..CALLERS)
        .map(|_| {
            let mut stream = TcpStream::connect(address).expect("somebody listens");
            stream.write_all(request.as_bytes()).expect("it listens");
            stream
        })
        .collect();
    wait_until("all calls are out", || metric(&server, "wharf_calls_in_flight") == CALLERS);
    drop(callers);
    let counted = "wharf_call_duration_seconds_count{source=\"it\",tool=\"silence\",status=\"failure\"}";
    wait_until("all are counted", || server.text("/metrics").contains(&format!("{counted} {CALLERS}\n")));
    let (_, page) = server.ask("GET", "/api/v1/calls?limit=500", None);
    let calls = page["items"].as_array().expect("a list");
    let gone = calls.iter().filter(|it| it["via"] == "gone" && it["tool_name"] == "silence").count();
    assert_eq!(gone as u64, CALLERS, "{page}");
}
