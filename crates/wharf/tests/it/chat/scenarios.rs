//! The scenarios of a conversational agent, one test each.

use super::{
    CANARY, TODO, agent_file, ask, events, names, send, serve, serve_callers, serve_with_settings, wait_for,
};
use crate::servers::workspace::program;
use scripted_model::{Action, Reply, ScriptedModel, Wire};
use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// A server over HTTP as another process, so that it can be killed.
struct HttpServer {
    child: Child,
    port: String,
    _folder: TempDir,
}

impl HttpServer {
    fn start() -> HttpServer {
        let folder = TempDir::new().expect("a folder");
        let script = folder.path().join("server.py");
        fs::write(&script, include_str!("../cli/server.py")).expect("a file");
        let mut command = Command::new(program("python3"));
        command.arg(script).arg("http").env("LOG", folder.path().join("log")).stdout(Stdio::piped());
        let mut child = command.spawn().expect("python3 runs");
        let mut port = String::new();
        let mut stdout = BufReader::new(child.stdout.take().expect("its stdout"));
        stdout.read_line(&mut port).expect("its port");
        HttpServer { child, port: port.trim().to_owned(), _folder: folder }
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_todo_is_created_by_conversation() {
    let model = ScriptedModel::start(vec![
        Reply::calls(Wire::Chat, &[("c1", "todo__create_todo", r#"{"title":"buy eggs"}"#)]),
        Reply::text(Wire::Chat, "I've created it."),
    ]);
    let server = serve(&agent_file(&model, TODO));
    let response = send(&server, &json!({ "message": "Remind me to buy eggs", "request_id": "req_001" }));
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    let head = response.to_lowercase();
    assert!(head.contains("content-type: text/event-stream") && head.contains("x-run-id: "), "{response}");
    let events = events(&response);
    assert_eq!(
        names(&events),
        ["started", "usage", "tool_call", "tool_call", "response_delta", "usage", "done"]
    );
    let ids: Vec<u64> = events.iter().map(|(id, ..)| *id).collect();
    assert_eq!(ids, (1..=7).collect::<Vec<u64>>());
    let (begun, completed) = (&events[2].2, &events[3].2);
    assert_eq!((&begun["status"], &begun["source"]), (&json!("in_progress"), &json!("todo")));
    assert_eq!((&completed["status"], &completed["call_id"]), (&json!("completed"), &json!("c1")));
    assert!(completed["execution_duration"].as_f64().is_some(), "{completed}");
    let done = &events[6].2;
    assert_eq!((&done["final_output"], &done["success"]), (&json!("I've created it."), &json!(true)));
    assert_eq!((&done["request_id"], &done["turns"]), (&json!("req_001"), &json!(2)));
    let (_, todos) = server.ask("POST", "/api/v1/tools/todo:list_todos/call", Some(&json!({})));
    assert_eq!(todos["structured_content"]["todos"][0]["title"], "buy eggs");
    let thread = done["conversation_id"].as_str().expect("an id");
    let (_, calls) = server.ask("GET", &format!("/api/v1/calls?thread_id={thread}"), None);
    let call = &calls["items"][0];
    assert_eq!((&call["tool_name"], &call["via"]), (&json!("create_todo"), &json!("agent")));
    assert_eq!((&call["status"], &call["principal"]), (&json!("success"), &json!("operator")));
    let log = server.log_with("run ended");
    let ended = log.lines().find(|it| it.contains("run ended")).expect("it is there");
    for logged in [thread, "finished", "turns=2", "calls=1"] {
        assert!(ended.contains(logged), "{logged} is not in {ended}");
    }
    assert!(
        !log.contains("Remind me") && !log.contains("I've created"),
        "what was said is not logged: {log}"
    );
}

#[test]
fn an_answer_without_a_stream_is_one_document() {
    let model = ScriptedModel::start(vec![Reply::text(Wire::Chat, "Hello, sk-canary-7f3e9a.")]);
    let server = serve(&agent_file(&model, TODO));
    let (status, done) = ask(&server, "Hi \u{7}there");
    assert_eq!((status, &done["final_output"]), (200, &json!("Hello, ***.")));
    assert!(model.requests()[0].body.to_string().contains("Hi there"));
    let unkept = json!({ "message": "Hi", "stream": false, "keep": false });
    assert_eq!(server.ask("POST", "/api/v1/chat", Some(&unkept)).0, 200);
    let (_, kept) = server.ask("GET", "/api/v1/conversations", None);
    assert_eq!(kept["items"].as_array().map(Vec::len), Some(1), "only the first run is kept: {kept}");
    for (body, expected) in [
        (json!({ "message": "\u{1}" }), 422),
        (json!({}), 422),
        (json!({ "message": 1 }), 400),
        (json!({ "message": "x".repeat(70_000) }), 413),
        (json!({ "message": "x", "tools": [] }), 400),
        (json!({ "message": "x", "limits": { "max_turns": 0 } }), 422),
        (json!({ "message": "x", "limits": { "max_cost": 0 } }), 422),
        (json!({ "message": "x", "limits": { "max_cost": 0.5 } }), 422),
        (json!({ "message": "x", "on_disconnect": "wait" }), 422),
        (json!({ "message": "x", "response_format": [] }), 422),
        (json!({ "message": "x", "response_format": { "type": "text" } }), 422),
        (json!({ "message": "x", "response_format": { "type": "string" } }), 422),
        (json!({ "message": "x", "conversation_id": done["conversation_id"], "keep": false }), 422),
    ] {
        let (status, problem) = server.ask("POST", "/api/v1/chat", Some(&body));
        assert_eq!(status, expected, "{problem}");
    }
    assert!(!server.log().contains(CANARY));
}

#[test]
fn an_agent_without_a_model_says_what_to_add() {
    let server = serve(TODO);
    let (status, problem) = ask(&server, "Hi");
    assert_eq!(status, 503, "{problem}");
    assert_eq!(problem["detail"], "the agent needs 'model'");
    assert!(problem["hint"].as_str().is_some_and(|it| it.contains("provider: ollama")), "{problem}");
    let server = serve(&format!("model: {{provider: anthropic, name: m}}\n{TODO}"));
    let (status, problem) = ask(&server, "Hi");
    assert_eq!((status, &problem["type"]), (502, &json!("model_api_error")), "{problem}");
    let detail = problem["detail"].as_str().unwrap_or_default();
    assert_eq!(detail, "no key for 'anthropic': set ANTHROPIC_API_KEY, or 'model.api_key'");
}

#[test]
fn the_model_continues_without_a_server_that_is_down() {
    let model = ScriptedModel::start(vec![Reply::text(Wire::Chat, "I cannot reach the list.")]);
    let down = "tools:\n  - name: notes\n    description: Notes\n    type: mcp\n    server: notes\n    \
        transport: http\n    url: http://127.0.0.1:9/mcp\n";
    let server = serve(&agent_file(&model, down));
    let events = events(&send(&server, &json!({ "message": "Hi" })));
    assert_eq!(names(&events), ["started", "error", "response_delta", "usage", "done"]);
    assert_eq!(events[1].2["error_type"], "mcp_connection_error");
    assert!(events[1].2["hint"].is_string(), "{events:?}");
    assert_eq!(events[4].2["success"], true);
}

/// A server that is gone after its tools were listed.
#[test]
fn a_server_that_fails_opens_its_breaker_and_the_model_answers_without_it() {
    const CALLS: usize = 6;
    let call = |it: usize| (format!("c{it}"), format!(r#"{{"level":"low","size":{it}}}"#));
    let calls: Vec<(String, String)> = (1..=CALLS).map(call).collect();
    let calls: Vec<(&str, &str, &str)> =
        calls.iter().map(|(id, arguments)| (id.as_str(), "own__echo", arguments.as_str())).collect();
    let model = ScriptedModel::start(vec![
        Reply::calls(Wire::Chat, &calls),
        Reply::text(Wire::Chat, "I cannot reach the server."),
    ]);
    let mut upstream = HttpServer::start();
    let own = format!(
        "  - name: own\n    description: A server of ours\n    type: mcp\n    server: own\n    transport: http\n    \
         url: http://127.0.0.1:{}/mcp\n",
        upstream.port
    );
    let server = serve(&agent_file(&model, &format!("approval: {{default: allow}}\n{TODO}{own}")));
    wait_for("its tools", || {
        let (_, tools) = server.ask("GET", "/api/v1/tools?source=own", None);
        tools["items"].as_array().is_some_and(|it| !it.is_empty()).then_some(())
    });
    upstream.child.kill().expect("it runs");
    upstream.child.wait().expect("it ends");
    let (status, done) = ask(&server, "Hi");
    assert_eq!((status, &done["success"]), (200, &json!(true)), "{done}");
    assert_eq!(done["final_output"], "I cannot reach the server.");
    let (_, breakers) = server.ask("GET", "/api/v1/breakers?source=own", None);
    assert_eq!(breakers["items"][0]["state"], "OPEN", "{breakers}");
    assert_eq!(breakers["items"][0]["failure_threshold"], 5, "{breakers}");
    let messages = model.requests()[1].body["messages"].clone();
    let last = messages.as_array().and_then(|it| it.last()).expect("a result");
    let words = last["content"].as_str().expect("words");
    assert!(words.starts_with("not executed: own is unavailable for "), "{words}");
    assert_eq!(ask(&server, "And now?").0, 200, "the other tools work");
}

#[test]
fn records_of_calls_are_complete() {
    let model = ScriptedModel::start(vec![
        Reply::calls(
            Wire::Chat,
            &[
                ("c1", "todo__create_todo", r#"{"title":"eggs"}"#),
                ("c2", "todo__delete_todo", r#"{"todo_id":99}"#),
            ],
        ),
        Reply::text(Wire::Chat, "Done."),
    ]);
    let server = serve_callers(&agent_file(&model, TODO), &["--log-format", "json"]);
    let (_, done) = ask(&server, "Buy eggs");
    let thread = done["conversation_id"].as_str().expect("an id");
    let (_, listed) = server.ask("GET", &format!("/api/v1/calls?thread_id={thread}"), None);
    let calls = listed["items"].as_array().expect("calls");
    for (id, tool, status, (present, absent)) in [
        ("c1", "create_todo", "success", ("result", "error")),
        ("c2", "delete_todo", "failure", ("error", "result")),
    ] {
        // An id of a model is not unique, so the run's own id follows it.
        let is_meant = |it: &&Value| it["request_id"].as_str().is_some_and(|it| it.starts_with(id));
        let call = calls.iter().find(is_meant).unwrap_or_else(|| panic!("{listed}"));
        assert_eq!((&call["tool_name"], &call["status"]), (&json!(tool), &json!(status)), "{call}");
        assert_eq!((&call["thread_id"], &call["via"]), (&json!(thread), &json!("agent")), "{call}");
        assert!(call["parameters"].is_object() && call["execution_start"].is_string(), "{call}");
        assert!(call["execution_duration"].as_f64().is_some_and(|it| it >= 0.0), "{call}");
        assert!(!call[present].is_null() && call[absent].is_null(), "{call}");
        let request_id = call["request_id"].to_string();
        // The log is written asynchronously.
        let line = wait_for("the record in the log", || {
            let log = server.log();
            let mut lines = log.lines().filter_map(|it| serde_json::from_str::<Value>(it).ok());
            lines.find(|it| it["target"] == "wharf::call" && it.to_string().contains(&request_id))
        });
        let fields = if line["fields"].is_object() { &line["fields"] } else { &line };
        assert!(fields["tool_name"].as_str().is_some_and(|it| it.ends_with(tool)), "{line}");
        assert_eq!(fields["status"], status, "{line}");
        assert!(fields["duration"].is_number(), "{line}");
    }
}

#[test]
fn an_unavailable_model_opens_its_breaker_and_a_reset_closes_it() {
    let broken = || Reply::error(401, &json!({ "error": { "message": "no" } }));
    let down = || Reply::error(500, &json!({ "error": { "message": "down" } })).header("retry-after", "0");
    let model = ScriptedModel::with(move |number, _| match number {
        0 => broken(),
        1..=12 => down(),
        _ => Reply::text(Wire::Chat, "Back."),
    });
    let server = serve(&agent_file(&model, TODO));
    let (status, done) = ask(&server, "Hi");
    assert_eq!((status, &done["error"]["error_type"]), (502, &json!("model_api_error")), "{done}");
    for _ in 0..3 {
        let (status, done) = ask(&server, "Hi");
        assert_eq!((status, &done["status"]), (502, &json!("failed")), "{done}");
    }
    let breaker = |server: &crate::serve::server::Server| {
        let (_, breakers) = server.ask("GET", "/api/v1/breakers?source=openai", None);
        breakers["items"][0].clone()
    };
    let open = breaker(&server);
    assert_eq!((&open["service_name"], &open["state"]), (&json!("openai"), &json!("OPEN")), "{open}");
    assert_eq!(
        (&open["failure_threshold"], &open["recovery_timeout"]),
        (&json!(3), &json!("PT60S")),
        "{open}"
    );
    let refused = send(&server, &json!({ "message": "Hi" }));
    assert!(refused.starts_with("HTTP/1.1 503"), "{refused}");
    assert!(refused.to_lowercase().contains("\r\nretry-after: "), "{refused}");
    assert_eq!(model.requests().len(), 13, "an open breaker sends nothing");
    let (status, _) = server.ask("POST", "/api/v1/breakers/openai/reset", None);
    assert_eq!(status, 200);
    assert_eq!(ask(&server, "Hi").0, 200);
    assert_eq!(breaker(&server)["state"], "CLOSED");
}

/// The model is down, its breaker opens, and after the open time one probe decides. Only the operator's settings make
/// the open time short; nothing is reset.
#[test]
fn a_model_that_is_back_closes_its_breaker_by_one_probe() {
    const OPEN_SECONDS: u64 = 2;
    let down = || Reply::error(500, &json!({ "error": { "message": "down" } })).header("retry-after", "0");
    // Three questions of four requests open the breaker. The first probe fails, the second one succeeds.
    let model = ScriptedModel::with(move |number, _| match number {
        0..=15 => down(),
        _ => Reply::text(Wire::Chat, "Back."),
    });
    let settings = format!("[agent.breaker]\nrecovery_timeout = {OPEN_SECONDS}\n");
    let server = serve_with_settings(&agent_file(&model, TODO), &settings);
    let breaker = || {
        let (_, breakers) = server.ask("GET", "/api/v1/breakers?source=openai", None);
        breakers["items"][0].clone()
    };
    assert_eq!(breaker()["recovery_timeout"], "PT2S", "{}", breaker());
    for _ in 0..3 {
        assert_eq!(ask(&server, "Hi").0, 502);
    }
    for sent in [12, 16] {
        assert_eq!((&breaker()["state"], model.requests().len()), (&json!("OPEN"), sent), "{}", breaker());
        let refused = send(&server, &json!({ "message": "Hi" })).to_lowercase();
        assert!(refused.starts_with("http/1.1 503"), "{refused}");
        let wait = refused.lines().find_map(|it| it.strip_prefix("retry-after: ")).expect("a header");
        assert!((1..=OPEN_SECONDS).contains(&wait.trim().parse().expect("seconds")), "{wait}");
        assert_eq!(model.requests().len(), sent, "an open breaker sends nothing");
        // The open time is over when a request is admitted, which is the probe.
        let (status, done) =
            wait_for("the probe", || Some(ask(&server, "Hi")).filter(|(status, _)| *status != 503));
        let expected = if sent == 12 { 502 } else { 200 };
        assert_eq!(status, expected, "{done}");
    }
    assert_eq!(model.requests().len(), 17, "the second probe was one request");
    assert_eq!(breaker()["state"], "CLOSED", "{}", breaker());
    assert_eq!(ask(&server, "Hi").1["final_output"], "Back.");
}

#[test]
fn a_client_that_disconnects_cancels_its_run() {
    let model = ScriptedModel::start(vec![Reply::stream("").then(Action::Hang)]);
    let server = serve(&agent_file(&model, TODO));
    let mut stream = TcpStream::connect(&server.address).expect("a connection");
    let body = json!({ "message": "Hi" }).to_string();
    let head = format!(
        "POST /api/v1/chat HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        server.address,
        server.token,
        body.len()
    );
    stream.write_all(head.as_bytes()).expect("a request");
    model.wait_for_requests(1);
    let mut beginning = [0; 512];
    let read = stream.read(&mut beginning).expect("the first event");
    assert!(String::from_utf8_lossy(&beginning[..read]).starts_with("HTTP/1.1 200"));
    drop(stream);
    model.wait_for_abandoned(1);
    assert_eq!(server.terminate(), Some(0));
}

#[test]
fn a_changed_agent_file_changes_the_model_of_the_next_run() {
    let first = ScriptedModel::start(vec![Reply::text(Wire::Chat, "one")]);
    let second = ScriptedModel::start(vec![Reply::text(Wire::Chat, "two")]);
    let server = serve(&agent_file(&first, TODO));
    assert_eq!(ask(&server, "Hi").1["final_output"], "one");
    let file = server.folder.path().join("agent.yaml");
    fs::write(file, agent_file(&second, &format!("instructions:\n  inline: Be brief.\n{TODO}")))
        .expect("an agent file");
    let until = Instant::now() + Duration::from_secs(60);
    while ask(&server, "Hi").1["final_output"] != "two" {
        assert!(Instant::now() < until, "the change is not applied");
    }
    assert!(second.requests()[0].body.to_string().contains("Be brief."));
}
