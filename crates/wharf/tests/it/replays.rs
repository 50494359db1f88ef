//! Tests `--replay` and `wharf replay`: without servers, keys or network, a recording gives the same outcome and the same
//! recording again.

use crate::{
    serve::server::{Server, wharf},
    servers::workspace::Workspace,
};
use scripted_model::{Reply, ScriptedModel, Wire};
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Command, Stdio},
};
use tempfile::TempDir;

/// A server that returns its arguments and the value of the variable TOKEN, fails on `broken`, and exits on `exit`.
pub(crate) const ECHO_SERVER: &str = r#"
import base64, json, os, sys
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    method = message["method"]
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    if method == "initialize":
        answer["result"] = {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}},
                            "serverInfo": {"name": "echo", "version": "1"}}
    elif method == "tools/list":
        schema = {"type": "object", "properties": {"path": {"type": "string"}, "request_id": {"type": "string"}}}
        answer["result"] = {"tools": [{"name": "echo", "description": "Says it.", "inputSchema": schema,
                                       "annotations": {"readOnlyHint": True}}]}
    elif method == "tools/call":
        arguments = message["params"].get("arguments") or {}
        token = os.environ.get("TOKEN", "")
        path = arguments.get("path")
        if path == "exit":
            sys.exit(3)
        elif path == "liar":
            answer["error"] = {"code": -32050, "message": "it lies", "data": {
                "wharf/not_recorded": "nothing", "wharf/recorded": {"type": "MCPTimeoutError", "message": "late"}}}
        elif path == "broken":
            answer["error"] = {"code": -32050, "message": "it is broken"}
        elif path == "picture":
            data = base64.b64encode(bytes(range(256)) * 32).decode()
            answer["result"] = {"content": [{"type": "image", "mimeType": "image/png", "data": data}]}
        elif path == "refused":
            answer["result"] = {"content": [{"type": "text", "text": "no"}], "isError": True}
        else:
            text = json.dumps([arguments, token, base64.b64encode(token.encode()).decode()])
            answer["result"] = {"content": [{"type": "text", "text": text}]}
    else:
        answer["error"] = {"code": -32601, "message": "no"}
    print(json.dumps(answer), flush=True)
"#;

/// Creates a workspace with the server, whose token is in the variable SECRET. `head` precedes `tools:`.
pub(crate) fn echo_workspace(head: &str) -> Workspace {
    Workspace::of_python_server(ECHO_SERVER, "hunter2-hunter2", head)
}

/// Runs wharf in a network namespace of its own, which has no network, and without the variable SECRET and any key.
pub(crate) fn isolated(workspace: &Workspace, words: &[&str]) -> (Option<i32>, String) {
    let output = Command::new("unshare")
        .args(["--map-root-user", "--net", env!("CARGO_BIN_EXE_wharf")])
        .args(words)
        .current_dir(workspace.path(""))
        .env_clear()
        .env("WHARF_HOME", workspace.path("state"))
        .env("TMPDIR", workspace.path("scratch"))
        .output()
        .expect("unshare runs");
    let text = [output.stdout, output.stderr].map(|it| String::from_utf8_lossy(&it).into_owned());
    (output.status.code(), text.concat())
}

fn read(workspace: &Workspace, name: &str) -> String {
    fs::read_to_string(workspace.path(name)).expect("a recording")
}

/// Removes the server, so that nothing can start it.
fn remove_server(workspace: &Workspace) {
    fs::remove_file(workspace.path("server.py")).expect("the server");
}

#[tokio::test]
async fn recorded_outcomes_return_without_the_server_and_its_secrets() {
    let workspace = echo_workspace("");
    // Result, tool error, JSON-RPC error, a server that exits, and a large picture.
    let outcomes = [("a.txt", 0), ("refused", 1), ("broken", 76), ("exit", 69), ("picture", 0)];
    for (path, code) in outcomes {
        let call = format!("call own:echo path={path} --record {path}.jsonl --json");
        workspace.wharf(&call).await.check(code, "");
    }
    assert!(workspace.path("picture.jsonl.d").is_dir());
    assert!(read(&workspace, "picture.jsonl").len() < 2000);
    let live = workspace.wharf("call own:echo path=broken").await;
    remove_server(&workspace);
    for (path, code) in outcomes {
        let words = format!("call own:echo path={path} --replay {path}.jsonl --record again.jsonl");
        let (exit, text) = isolated(&workspace, &words.split(' ').collect::<Vec<_>>());
        assert_eq!(exit, Some(code), "{path}: {text}");
        assert_eq!(read(&workspace, "again.jsonl"), read(&workspace, &format!("{path}.jsonl")), "{path}");
        let (exit, text) = isolated(&workspace, &["replay", &format!("{path}.jsonl")]);
        assert_eq!((exit, text.as_str()), (Some(0), "equal: 1 call, 0 model turns\n"), "{path}");
    }
    let (_, replayed) =
        isolated(&workspace, &["call", "own:echo", "path=broken", "--replay", "broken.jsonl"]);
    assert_eq!(replayed.lines().next(), live.stderr.lines().next());
}

#[tokio::test]
async fn durations_are_recorded_on_request_and_never_compared() {
    let workspace = echo_workspace("");
    workspace.wharf("call own:echo path=a.txt --record a.jsonl --timings").await.check(0, "a.txt");
    assert!(read(&workspace, "a.jsonl").contains(r#","took_ms":"#), "{}", read(&workspace, "a.jsonl"));
    workspace.wharf("replay a.jsonl").await.check(0, "equal: 1 call");
    workspace.wharf("call own:echo path=a.txt --record b.jsonl").await.check(0, "a.txt");
    assert!(!read(&workspace, "b.jsonl").contains("took_ms"));
}

/// The data by which a recorded fault returns as itself means nothing in the answer of a real server.
#[tokio::test]
async fn recorded_faults_are_not_believed_from_a_real_server() {
    let workspace = echo_workspace("");
    workspace.wharf("call own:echo path=liar --record a.jsonl").await.check(76, "it lies");
    remove_server(&workspace);
    workspace.wharf("call own:echo path=liar --replay a.jsonl").await.check(76, "it lies");
}

#[tokio::test]
async fn changed_argument_fails_and_shows_the_nearest_call() {
    let workspace = echo_workspace("record: {ignore: {'own:*': [/request_id]}}\n");
    workspace.wharf("call own:echo path=a.txt request_id=1 --record a.jsonl").await.check(0, "a.txt");
    remove_server(&workspace);
    let replay = |words: &str| {
        let words: Vec<&str> = words.split(' ').chain(["--replay", "a.jsonl"]).collect();
        isolated(&workspace, &words)
    };
    assert_eq!(replay("call own:echo path=a.txt request_id=2").0, Some(0), "the field is ignored");
    let (code, text) = replay("call own:echo path=b.txt request_id=1");
    let expected = "error: MCPNotRecordedError: `own:echo` with these arguments is not in a.jsonl\n  \
                    nearest: line 3     /path \"b.txt\", recorded \"a.txt\"\n\
                    help: record again with --record, or ignore the field with `record.ignore` in agent.yaml\n";
    assert_eq!((code, text.as_str()), (Some(1), expected));
    let (code, text) = replay("call own:echo path=b.txt --json");
    assert_eq!(code, Some(1));
    assert!(text.contains(r#""type": "MCPNotRecordedError""#), "{text}");
}

#[tokio::test]
async fn replay_shows_what_a_live_server_answers_differently() {
    let workspace = echo_workspace("");
    workspace.wharf("call own:echo path=a.txt --record a.jsonl").await.check(0, "a.txt");
    workspace.wharf("replay a.jsonl --tools live").await.check(0, "equal: 1 call, 0 model turns");
    let changed = ECHO_SERVER.replace("json.dumps([arguments,", "json.dumps([1,");
    fs::write(workspace.path("server.py"), changed).expect("a file");
    workspace.wharf("replay a.jsonl --tools live").await.check(1, "line 3: /result/content/0/text \"[1, ");
    workspace.wharf("replay a.jsonl").await.check(0, "equal");
    workspace.wharf("replay nothing.jsonl").await.check(2, "nothing.jsonl cannot be used");
}

#[tokio::test]
async fn killed_recording_can_be_replayed() {
    let workspace = echo_workspace("");
    workspace.wharf("call own:echo path=a.txt --record a.jsonl").await.check(0, "a.txt");
    let whole = read(&workspace, "a.jsonl");
    fs::write(workspace.path("a.jsonl.part"), format!("{whole}{{\"call\":{{\"argu")).expect("a file");
    workspace.wharf("call own:echo path=a.txt --replay a.jsonl.part").await.check(0, "a.txt");
}

fn scripted(wire: Wire) -> ScriptedModel {
    ScriptedModel::start(vec![
        Reply::calls(
            wire,
            &[("x7", "own__echo", r#"{"path": "a.txt"}"#), ("x8", "own__echo", r#"{"path":"b.txt"}"#)],
        ),
        Reply::calls(wire, &[("x9", "own__echo", r#"{"path":"refused"}"#)]),
        Reply::text(wire, "It is done."),
    ])
}

#[tokio::test]
async fn recorded_run_has_equal_outcome_and_recording_without_network_keys_and_servers() {
    for (wire, provider) in [(Wire::Chat, "openai"), (Wire::Anthropic, "anthropic"), (Wire::Ollama, "ollama")]
    {
        let model = scripted(wire);
        let head = format!(
            "model: {{provider: {provider}, name: m, endpoint: '{}', api_key: '${{MODEL_KEY}}'}}\n",
            model.url()
        );
        let workspace = echo_workspace(&head).set("MODEL_KEY", "model-key-model-key");
        let live = workspace.wharf_with(&["run", "Read a.txt", "--record", "run.jsonl", "--yes"]).await;
        live.check(0, "It is done.");
        let recorded = read(&workspace, "run.jsonl");
        for secret in ["hunter2", "model-key"] {
            assert!(!recorded.contains(secret), "{recorded}");
        }
        assert_eq!(model.requests().len(), 3);
        drop(model);
        remove_server(&workspace);
        let words = ["run", "Read a.txt", "--yes", "--replay", "run.jsonl", "--record", "again.jsonl"];
        let (code, text) = isolated(&workspace, &words);
        assert_eq!(code, Some(0), "{provider}: {text}");
        assert!(text.contains("It is done."), "{text}");
        assert_eq!(read(&workspace, "again.jsonl"), recorded, "{provider}");
        let (code, text) = isolated(&workspace, &["replay", "run.jsonl", "--record", "again.jsonl"]);
        assert_eq!((code, text.as_str()), (Some(0), "equal: 3 calls, 3 model turns\n"), "{provider}");
        assert_eq!(read(&workspace, "again.jsonl"), recorded, "{provider}");

        let (code, text) = isolated(&workspace, &["run", "Read b.txt", "--yes", "--replay", "run.jsonl"]);
        assert_eq!(code, Some(1), "{text}");
        assert!(text.contains("\"Read b.txt\", recorded \"Read a.txt\""), "{text}");
    }
}

#[tokio::test]
async fn changed_argument_in_a_recorded_run_shows_the_nearest_call() {
    let model = scripted(Wire::Chat);
    let head = format!("model: {{provider: openai, name: m, endpoint: '{}', api_key: k}}\n", model.url());
    let workspace = echo_workspace(&head);
    workspace.wharf_with(&["run", "Hi", "--record", "run.jsonl", "--yes"]).await.check(0, "It is done.");
    let recorded = read(&workspace, "run.jsonl");
    // The model now asks for another file; everything else is as before.
    let changed = recorded.replacen(
        r#""calls":[{"arguments":{"path":"a.txt"}"#,
        r#""calls":[{"arguments":{"path":"c.txt"}"#,
        1,
    );
    assert_ne!(changed, recorded);
    fs::write(workspace.path("changed.jsonl"), changed).expect("a file");
    let (code, text) = isolated(&workspace, &["replay", "changed.jsonl"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.contains("`own:echo` with these arguments is not in changed.jsonl\n  nearest: line "),
        "{text}"
    );
    assert!(text.contains("/path \"c.txt\", recorded \"a.txt\""), "{text}");
}

#[test]
fn a_recording_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let workspace = echo_workspace("");
    let status = Command::new(env!("CARGO_BIN_EXE_wharf"))
        .args(["call", "own:echo", "path=a", "--record", "a.jsonl"])
        .current_dir(workspace.path(""))
        .env("WHARF_HOME", workspace.path("state"))
        .env("SECRET", "hunter2-hunter2")
        .output()
        .expect("wharf runs");
    assert!(status.status.success(), "{}", String::from_utf8_lossy(&status.stderr));
    let mode = fs::metadata(Path::new(&workspace.path("a.jsonl"))).expect("a file").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
}

const TODO_AGENT: &str =
    "tools:\n  - {name: todo, description: Things to do, type: mcp, server: 'builtin:todo'}\n";

fn search(server: &Server, query: &str) -> (u16, Value) {
    let body = json!({ "arguments": { "query": query } });
    server.ask("POST", "/api/v1/tools/todo:search_todos/call", Some(&body))
}

#[test]
fn gateway_records_its_calls_and_answers_from_the_recording() {
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join("agent.yaml"), TODO_AGENT).expect("a file");
    let recordings = TempDir::new().expect("a folder");
    let record = recordings.path().join("gateway.jsonl").display().to_string();
    let server = Server::start_in(folder, &["--record", &record]);
    let (status, live) = search(&server, "boat");
    assert_eq!(status, 200, "{live}");
    server.terminate();
    let recorded = fs::read_to_string(&record).expect("the recording");
    assert!(
        recorded.contains(r#""conversation":"c1""#) && recorded.contains(r#""name":"todo""#),
        "{recorded}"
    );

    let other = TempDir::new().expect("a folder");
    fs::write(other.path().join("agent.yaml"), TODO_AGENT).expect("a file");
    let server = Server::start_in(other, &["--replay", &record]);
    let (status, replayed) = search(&server, "boat");
    assert_eq!((status, &replayed["result"]), (200, &live["result"]), "{replayed}");
    let (status, missed) = search(&server, "ship");
    assert_eq!((status, &missed["type"]), (404, &json!("MCPNotRecordedError")), "{missed}");
    drop(server);
}

/// A killed gateway leaves `FILE.part`, which has its servers.
#[test]
fn recording_of_a_killed_gateway_is_replayed() {
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join("agent.yaml"), TODO_AGENT).expect("a file");
    let recordings = TempDir::new().expect("a folder");
    let record = recordings.path().join("gateway.jsonl").display().to_string();
    let mut server = Server::start_in(folder, &["--record", &record]);
    let (status, live) = search(&server, "boat");
    assert_eq!(status, 200, "{live}");
    server.child.kill().expect("it runs");
    let folder = server.into_folder();
    assert!(!Path::new(&record).exists(), "the recording is not finished");
    let part = format!("{record}.part");
    let replayed = wharf(&folder).args(["replay", &part]).output().expect("wharf runs");
    let text =
        [replayed.stdout, replayed.stderr].map(|it| String::from_utf8_lossy(&it).into_owned()).concat();
    assert_eq!((replayed.status.code(), text.as_str()), (Some(0), "equal: 1 call, 0 model turns\n"));
}

/// Runs wharf with input. The input ends after a line of output that contains `until`, or at once without it.
fn run_with_input(
    folder: &TempDir,
    words: &[&str],
    input: &str,
    until: Option<&str>,
) -> (Option<i32>, String) {
    let mut child = wharf(folder)
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("wharf runs");
    let mut stdin = child.stdin.take();
    stdin.as_mut().expect("a pipe").write_all(input.as_bytes()).expect("it reads");
    if until.is_none() {
        stdin = None;
    }
    let mut text = String::new();
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    while let Some(Ok(line)) = lines.next() {
        text.push_str(&line);
        text.push('\n');
        if until.is_some_and(|it| line.contains(it)) {
            break;
        }
    }
    drop(stdin);
    lines.map_while(Result::ok).for_each(|line| text.push_str(&(line + "\n")));
    (child.wait().expect("it ends").code(), text)
}

#[test]
fn stdio_server_records_its_calls_and_answers_from_the_recording() {
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join("agent.yaml"), TODO_AGENT).expect("a file");
    let client = json!({ "name": "c", "version": "1" });
    let begin = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
    let call = json!({ "name": "todo__search_todos", "arguments": { "query": "boat" } });
    let input = [
        json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": begin }),
        json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }),
        json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call }),
    ];
    let input: String = input.iter().map(|it| format!("{it}\n")).collect();
    let answer = |text: &str| {
        let line = text.lines().find(|it| it.contains("\"id\":2")).expect("an answer");
        serde_json::from_str::<Value>(line).expect("JSON")
    };
    let (code, live) =
        run_with_input(&folder, &["stdio", "--record", "stdio.jsonl"], &input, Some("\"id\":2"));
    assert_eq!(code, Some(0), "{live}");
    let recorded = fs::read_to_string(folder.path().join("stdio.jsonl")).expect("the recording");
    assert!(recorded.contains(r#""tool":"search_todos""#), "{recorded}");
    let words = ["stdio", "--replay", "stdio.jsonl", "--record", "again.jsonl"];
    let (code, replayed) = run_with_input(&folder, &words, &input, Some("\"id\":2"));
    assert_eq!((code, answer(&replayed)), (Some(0), answer(&live)), "{replayed}");
    let again = fs::read_to_string(folder.path().join("again.jsonl")).expect("the recording");
    assert_eq!(again, recorded);
}

#[test]
fn chat_records_several_messages_and_replays_them() {
    let model = ScriptedModel::start(vec![
        Reply::calls(Wire::Chat, &[("x", "todo__search_todos", r#"{"query":"boat"}"#)]),
        Reply::text(Wire::Chat, "There is none."),
        Reply::text(Wire::Chat, "You are welcome."),
    ]);
    let folder = TempDir::new().expect("a folder");
    let head = format!("model: {{provider: openai, name: m, endpoint: '{}', api_key: k}}\n", model.url());
    fs::write(folder.path().join("agent.yaml"), head + TODO_AGENT).expect("a file");
    let input = "Is there a boat?\nThanks\n";
    let words = ["chat", "--yes", "--record", "chat.jsonl"];
    let (code, live) = run_with_input(&folder, &words, input, None);
    assert_eq!(code, Some(0), "{live}");
    drop(model);
    let recorded = fs::read_to_string(folder.path().join("chat.jsonl")).expect("the recording");
    let words = ["chat", "--yes", "--replay", "chat.jsonl", "--record", "again.jsonl"];
    let (code, replayed) = run_with_input(&folder, &words, input, None);
    assert_eq!((code, &replayed), (Some(0), &live));
    let again = fs::read_to_string(folder.path().join("again.jsonl")).expect("the recording");
    assert_eq!(again, recorded);
    let output = wharf(&folder).args(["replay", "chat.jsonl"]).output().expect("wharf runs");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "equal: 1 call, 3 model turns\n");
}
