//! Tests the schema with the YAML language server, as editors use it: completion works, every good file is
//! accepted, and mistakes are reported.

use serde_json::{Value, json};
use std::{
    env, fs,
    io::{BufRead, BufReader, Read, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    sync::mpsc,
    thread,
    time::Duration,
};

/// Timeout for the next message of the server.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(60);

#[test]
fn an_editor_completes_and_validates() {
    let mut editor = Editor::start();
    for case in good_files() {
        let text = fs::read_to_string(&case).expect("the case can be read");
        let name = case.file_name().and_then(|it| it.to_str()).expect("a name").to_owned();
        assert_eq!(
            editor.open(&name, &text),
            Vec::<String>::new(),
            "{name} is valid, but the schema rejects it"
        );
    }
    for (name, text) in [
        ("key", "tools:\n  - {name: a, type: mcp, server: x, comand: npx}\n"),
        ("word", "tools:\n  - {name: a, type: mcp, server: x, transport: htp, url: https://h/}\n"),
        ("number", "tools:\n  - {name: a, type: mcp, server: x, request_timeout: 0}\n"),
        ("missing", "tools:\n  - {name: a, type: mcp, server: x, transport: sse}\n"),
        ("string", "tools:\n  - {name: a, type: mcp, server: x, command: npx, args: [1]}\n"),
    ] {
        assert!(
            !editor.open(&format!("{name}.yaml"), text).is_empty(),
            "{name}: nothing is underlined in {text}"
        );
    }
    editor.open("half.yaml", "tools:\n  - name: a\n    type: mcp\n    server: x\n    lifec");
    let labels = editor.complete("half.yaml", 4, 9);
    assert!(labels.contains(&"lifecycle".to_owned()), "{labels:?}");
}

/// Returns the agent files that must load, except those that need a grant.
fn good_files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/config/good");
    let entries = fs::read_dir(folder).expect("the good cases").map(|it| it.expect("an entry").path());
    let mut files: Vec<PathBuf> =
        entries.filter(|it| it.extension().is_some_and(|it| it == "yaml")).collect();
    files.sort();
    assert!(files.len() > 20);
    files
}

/// A minimal client of the language server protocol.
struct Editor {
    server: Child,
    to_server: ChildStdin,
    from_server: mpsc::Receiver<Value>,
    next_id: u64,
}

impl Editor {
    #[expect(clippy::disallowed_methods, reason = "WHARF_TOOLS names the folder of the tools")]
    fn start() -> Editor {
        let tools = env::var_os("WHARF_TOOLS").map(PathBuf::from);
        let server = tools.map(|it| {
            it.join("yaml-language-server/node_modules/yaml-language-server/bin/yaml-language-server")
        });
        let server = server
            .filter(|it| it.is_file())
            .expect("the YAML language server: run `cargo xtask test`, which installs it");
        let mut server = Command::new("node")
            .arg(server)
            .arg("--stdio")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("node runs");
        let (sender, from_server) = mpsc::channel();
        let stdout = server.stdout.take().expect("a pipe");
        // The thread ends with the server, which ends with the editor.
        thread::spawn(move || listen(BufReader::new(stdout), &sender));
        let to_server = server.stdin.take().expect("a pipe");
        let mut editor = Editor { server, to_server, from_server, next_id: 0 };
        editor.request("initialize", json!({ "processId": null, "rootUri": null, "capabilities": { "workspace": { "configuration": true } } }));
        editor.send(json!({ "jsonrpc": "2.0", "method": "initialized", "params": {} }));
        editor
    }

    /// Opens a document and returns its diagnostics.
    fn open(&mut self, name: &str, text: &str) -> Vec<String> {
        let uri = format!("file:///agents/{name}");
        let document = json!({ "uri": uri, "languageId": "yaml", "version": 1, "text": text });
        self.send(json!({ "jsonrpc": "2.0", "method": "textDocument/didOpen", "params": { "textDocument": document } }));
        let received = self
            .wait_for(|it| it["method"] == "textDocument/publishDiagnostics" && it["params"]["uri"] == uri);
        let found = received["params"]["diagnostics"].as_array().cloned().unwrap_or_default();
        let messages = found.iter().map(|it| it["message"].as_str().unwrap_or_default().to_owned());
        // The language server does not know some standard YAML tags, which is unrelated to our schema.
        messages.filter(|it| !it.starts_with("Unresolved tag")).collect()
    }

    fn complete(&mut self, name: &str, line: u64, character: u64) -> Vec<String> {
        let params = json!({
            "textDocument": { "uri": format!("file:///agents/{name}") },
            "position": { "line": line, "character": character },
        });
        let answer = self.request("textDocument/completion", params);
        let items =
            answer["result"]["items"].as_array().or(answer["result"].as_array()).cloned().unwrap_or_default();
        items.iter().map(|it| it["label"].as_str().unwrap_or_default().to_owned()).collect()
    }

    fn request(&mut self, method: &str, params: Value) -> Value {
        self.next_id += 1;
        let id = self.next_id;
        self.send(json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        self.wait_for(|it| it["id"] == id && it.get("method").is_none())
    }

    fn send(&mut self, message: Value) {
        let body = message.to_string();
        write!(self.to_server, "Content-Length: {}\r\n\r\n{body}", body.len()).expect("the server listens");
        self.to_server.flush().expect("the server listens");
    }

    /// Waits for a message and responds to the server's requests meanwhile.
    fn wait_for(&mut self, is_expected: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.from_server.recv_timeout(MESSAGE_TIMEOUT).expect("the server sends a message");
            if is_expected(&message) {
                return message;
            }
            if message.get("method").is_some() && message.get("id").is_some() {
                let result = match message["method"].as_str() {
                    Some("workspace/configuration") => settings(&message["params"]["items"]),
                    _ => Value::Null,
                };
                self.send(json!({ "jsonrpc": "2.0", "id": message["id"], "result": result }));
            }
        }
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// Returns the settings that the server requests: our schema for every document.
fn settings(items: &Value) -> Value {
    let schema = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schema/agent.schema.json");
    let schema = format!("file://{}", schema.canonicalize().expect("the schema").display());
    let yaml = json!({ "validate": true, "completion": true, "schemas": { schema: "*" } });
    let sections = items.as_array().into_iter().flatten();
    sections.map(|it| if it["section"] == "yaml" { yaml.clone() } else { json!({}) }).collect()
}

fn listen(mut from: BufReader<ChildStdout>, sender: &mpsc::Sender<Value>) {
    while let Some(message) = read_message(&mut from) {
        if sender.send(message).is_err() {
            return;
        }
    }
}

fn read_message(from: &mut BufReader<ChildStdout>) -> Option<Value> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        from.read_line(&mut line).ok().filter(|count| *count > 0)?;
        match line.trim().split_once(':') {
            None => break,
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.trim().parse().ok()?
            }
            Some(_) => {}
        }
    }
    let mut body = vec![0; length];
    from.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}
