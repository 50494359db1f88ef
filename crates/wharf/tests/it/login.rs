//! Tests the complete sign-in with a user at the browser, from the 401 response to the stored grant and the sign-out.

use base64::prelude::{BASE64_URL_SAFE_NO_PAD, Engine};
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Command, Stdio},
    thread,
    time::Duration,
};
use tempfile::TempDir;

/// Timeout for each step.
const STEP_TIMEOUT: Duration = Duration::from_secs(30);
const TOKEN: &str = "token-of-the-person";

#[test]
fn login_and_logout_work_end_to_end() {
    let (folder, address) = (TempDir::new().expect("a folder"), serve());
    let agent_file = format!(
        "tools:\n  - {{name: wiki, description: d, type: mcp, server: x, transport: http, url: 'http://{address}/mcp'}}\n"
    );
    fs::write(folder.path().join("agent.yaml"), agent_file).expect("the file can be written");

    let refused = wharf(folder.path(), &["tools"]).output().expect("wharf runs");
    assert_eq!(refused.status.code(), Some(69));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("run `wharf login wiki`"), "{said}");

    let mut login =
        wharf(folder.path(), &["login", "wiki"]).stderr(Stdio::piped()).spawn().expect("wharf runs");
    let mut lines = BufReader::new(login.stderr.take().expect("a pipe")).lines().map(|it| it.expect("text"));
    let page = lines.find(|it| it.trim().starts_with("http://")).expect("an address to open");
    let back = get(page.trim()).lines().find_map(|it| it.strip_prefix("location: ").map(str::to_owned));
    assert!(get(&back.expect("the way back")).contains("You can close this page"));
    let rest: String = lines.collect::<Vec<_>>().join("\n");
    assert!(login.wait().expect("wharf ends").success(), "{rest}");
    assert!(rest.contains("signed in to `wiki`"), "{rest}");
    assert_stored_privately(&folder.path().join("state/credentials"));

    let welcome = wharf(folder.path(), &["tools"]).output().expect("wharf runs");
    assert_eq!(welcome.status.code(), Some(0), "{}", String::from_utf8_lossy(&welcome.stderr));
    assert!(wharf(folder.path(), &["login", "wiki", "--logout"]).status().expect("wharf runs").success());
    assert_eq!(wharf(folder.path(), &["tools"]).status().expect("wharf runs").code(), Some(69));
}

#[test]
fn a_workload_signs_in_without_a_user_and_stores_nothing() {
    let (folder, address) = (TempDir::new().expect("a folder"), serve());
    let entry = "name: wiki, description: d, type: mcp, server: x, transport: http";
    let auth = "grant: workload_identity, client_id: wharf, token_file: token.jwt";
    let agent_file = format!("tools:\n  - {{{entry}, url: 'http://{address}/mcp', auth: {{{auth}}}}}\n");
    fs::write(folder.path().join("agent.yaml"), agent_file).expect("the file can be written");
    let write_token = |audience: &str| {
        let claims = BASE64_URL_SAFE_NO_PAD.encode(json!({ "aud": audience }).to_string());
        fs::write(folder.path().join("token.jwt"), format!("e30.{claims}.x")).expect("a token");
        claims
    };

    let claims = write_token("https://other.example");
    let refused = wharf(folder.path(), &["tools"]).output().expect("wharf runs");
    assert_eq!(refused.status.code(), Some(69));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains("the workload's token is for `https://other.example`"), "{said}");
    assert!(said.contains("check `auth`") && !said.contains(&claims), "{said}");

    write_token(&format!("http://{address}"));
    let welcome = wharf(folder.path(), &["tools"]).output().expect("wharf runs");
    assert_eq!(welcome.status.code(), Some(0), "{}", String::from_utf8_lossy(&welcome.stderr));
    let login = wharf(folder.path(), &["login", "wiki"]).output().expect("wharf runs");
    assert_eq!(login.status.code(), Some(0), "{}", String::from_utf8_lossy(&login.stderr));
    assert!(!folder.path().join("state/credentials").exists());

    let explained = wharf(folder.path(), &["explain", "wiki", "--json"]).output().expect("wharf runs");
    let explained: Value = serde_json::from_slice(&explained.stdout).expect("JSON");
    let auth = &explained["sources"][0]["auth"];
    assert_eq!((&auth["grant"], &auth["client_id"]), (&json!("workload_identity"), &json!("wharf")));
}

fn wharf(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wharf"));
    command.args(args).current_dir(folder).env("WHARF_HOME", folder.join("state")).stdin(Stdio::null());
    command
}

/// Checks that there is one file, that it contains the token, and that other users cannot read it.
fn assert_stored_privately(folder: &Path) {
    let files: Vec<_> =
        fs::read_dir(folder).expect("the grants").map(|it| it.expect("an entry").path()).collect();
    let [file] = &files[..] else { panic!("{files:?}") };
    assert!(fs::read_to_string(file).expect("the grant").contains(TOKEN));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(file.metadata().expect("a file").permissions().mode() & 0o777, 0o600);
    }
}

/// Sends a GET request as a browser does, and returns the complete response.
fn get(url: &str) -> String {
    let (address, path) = url.strip_prefix("http://").and_then(|it| it.split_once('/')).expect("an address");
    let mut stream = TcpStream::connect(address).expect("somebody listens");
    stream.set_read_timeout(Some(STEP_TIMEOUT)).expect("a limit");
    write!(stream, "GET /{path} HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n")
        .expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

/// Starts a server that requires a token, and its authorization server, at one address.
fn serve() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let base = format!("http://{address}");
    // The thread ends with the test process.
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let base = base.clone();
            thread::spawn(move || while answer(&stream, &base).is_some() {});
        }
    });
    address
}

/// Reads one request and responds. Returns `None` at the end of the connection.
fn answer(mut stream: &TcpStream, base: &str) -> Option<()> {
    stream.set_read_timeout(Some(STEP_TIMEOUT)).ok()?;
    let mut reader = BufReader::new(stream);
    let mut head = Vec::new();
    let (mut length, mut authorized, mut last) = (0, false, false);
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|count| *count > 0)?;
        let lower = line.trim().to_ascii_lowercase();
        match lower.split_once(": ") {
            _ if lower.is_empty() => break,
            Some(("content-length", value)) => length = value.parse().ok()?,
            Some(("authorization", value)) => authorized = value == format!("bearer {TOKEN}"),
            Some(("connection", value)) => last = value == "close",
            _ => head.push(line),
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    let target = head.first()?.split(' ').nth(1)?.to_owned();
    let (status, header, text) = respond(&target, authorized, &body, base);
    let response = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n{header}\r\n{text}",
        text.len()
    );
    stream.write_all(response.as_bytes()).ok().filter(|()| !last)
}

fn respond(target: &str, authorized: bool, body: &[u8], base: &str) -> (&'static str, String, String) {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let ok = |value: Value| ("200 OK", String::new(), value.to_string());
    match path {
        "/mcp" if !authorized => {
            let metadata = format!("{base}/.well-known/oauth-protected-resource/mcp");
            let challenge = format!("www-authenticate: Bearer resource_metadata=\"{metadata}\"\r\n");
            ("401 Unauthorized", challenge, String::new())
        }
        "/mcp" => {
            let message: Value = serde_json::from_slice(body).unwrap_or_default();
            let result = json!({ "supportedVersions": ["2026-07-28"], "capabilities": {}, "ttlMs": 0, "cacheScope": "private" });
            ok(json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }))
        }
        "/.well-known/oauth-protected-resource/mcp" => {
            ok(json!({ "resource": format!("{base}/mcp"), "authorization_servers": [base] }))
        }
        "/.well-known/oauth-authorization-server" => ok(json!({
            "issuer": base, "authorization_endpoint": format!("{base}/authorize"), "token_endpoint": format!("{base}/token"),
            "registration_endpoint": format!("{base}/register"), "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
        })),
        "/register" => ok(json!({ "client_id": "c", "redirect_uris": [] })),
        "/authorize" => {
            let parameters: Vec<(String, String)> =
                url::form_urlencoded::parse(query.as_bytes()).into_owned().collect();
            let value = |name: &str| {
                parameters.iter().find(|(it, _)| it == name).map_or("", |(_, value)| value.as_str())
            };
            let back = format!("location: {}?code=1&state={}\r\n", value("redirect_uri"), value("state"));
            ("302 Found", back, String::new())
        }
        "/token" if body.windows(10).any(|it| it == b"jwt-bearer") && !is_workload_grant(body) => {
            ("400 Bad Request", String::new(), json!({ "error": "invalid_request" }).to_string())
        }
        "/token" => ok(json!({ "access_token": TOKEN, "token_type": "Bearer", "expires_in": 3600 })),
        _ => ("404 Not Found", String::new(), String::new()),
    }
}

/// Checks the JWT bearer grant of a workload.
fn is_workload_grant(body: &[u8]) -> bool {
    let form: std::collections::HashMap<String, String> =
        url::form_urlencoded::parse(body).into_owned().collect();
    form["grant_type"].ends_with(":jwt-bearer")
        && form["assertion"].starts_with("e30.")
        && form["client_id"] == "wharf"
}
