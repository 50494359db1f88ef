//! The streams of all protocols, byte for byte. Clients depend on names, order and spelling, which their published
//! readers do not check. `UPDATE=1` rewrites the files; review the diff.

use crate::{
    chat::{TODO, agent_file, serve, unchunked},
    serve::server::Server,
};
use scripted_model::{Finish, Reply, ScriptedModel, Step, Wire, call, text};
use serde_json::{Value, json};
use std::{env, fs, path::Path};

/// Name of the file, path and body of the request.
fn protocols() -> [(&'static str, &'static str, Value); 4] {
    let message = json!({ "role": "user", "content": "Buy eggs" });
    let part = json!({ "type": "text", "text": "Buy eggs" });
    [
        ("chat", "/api/v1/chat", json!({ "message": "Buy eggs", "request_id": "req_001" })),
        (
            "openai",
            "/v1/chat/completions",
            json!({ "model": "wharf", "stream": true, "messages": [message],
                "stream_options": { "include_usage": true } }),
        ),
        (
            "ui",
            "/api/v1/chat/ui",
            json!({ "id": "ui-1", "trigger": "submit-message",
                "messages": [{ "id": "m1", "role": "user", "parts": [part] }] }),
        ),
        (
            "ag-ui",
            "/api/v1/chat/ag-ui",
            json!({ "threadId": "ag-1", "runId": "run-1", "tools": [], "context": [], "state": {},
                "forwardedProps": {}, "messages": [{ "id": "m1", "role": "user", "content": "Buy eggs" }] }),
        ),
    ]
}

/// A model that thinks, calls a tool that works and one that fails, and answers.
fn model() -> ScriptedModel {
    let first = [
        Step::Think("They want a todo.".into()),
        call("c1", "todo__create_todo", r#"{"title":"eggs"}"#),
        call("c2", "todo__nothing", "{}"),
        Step::End(Finish::ToolCalls),
        Step::Usage,
    ];
    let last = [text("I've created it."), Step::End(Finish::Stop), Step::Usage];
    ScriptedModel::start(vec![Reply::answer(Wire::Chat, &first), Reply::answer(Wire::Chat, &last)])
}

#[test]
fn streams_have_the_documented_bytes() {
    let mut wrong = Vec::new();
    for (name, path, body) in protocols() {
        let model = model();
        let server = serve(&agent_file(&model, TODO));
        let stream = masked(&unchunked(&post(&server, path, &body)));
        let file =
            Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/it/protocols/streams/{name}.txt"));
        if !is_expected(&file, &stream) {
            wrong.push(format!("{}:\n{stream}", file.display()));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn post(server: &Server, path: &str, body: &Value) -> String {
    let token = format!("Authorization: Bearer {}", server.token);
    server.raw("POST", path, &[&token, "Content-Type: application/json"], Some(body))
}

#[expect(clippy::disallowed_methods, reason = "the UPDATE variable decides whether to write")]
fn is_expected(file: &Path, stream: &str) -> bool {
    if env::var_os("UPDATE").is_some() {
        fs::write(file, stream).expect("a file");
    }
    fs::read_to_string(file).unwrap_or_default() == stream
}

/// Replaces ids, times and durations, which differ from run to run.
fn masked(stream: &str) -> String {
    let mut out = String::new();
    let mut word = String::new();
    for character in stream.chars().chain(['\0']) {
        if character.is_ascii_alphanumeric() || "-.:_".contains(character) {
            word.push(character);
            continue;
        }
        out.push_str(&masked_word(&std::mem::take(&mut word)));
        out.push(character);
    }
    out.pop();
    out.split_inclusive("← ").map(masked_duration).collect()
}

/// Replaces the number of milliseconds at the beginning of a text.
fn masked_duration(text: &str) -> String {
    let digits = text.find(|it: char| !it.is_ascii_digit()).unwrap_or(0);
    if digits > 0 && text[digits..].starts_with(" ms") {
        return format!("N{}", &text[digits..]);
    }
    text.to_owned()
}

/// Replaces a word that has an id, a time or a fraction in it.
fn masked_word(word: &str) -> String {
    let is_uuid = |it: &str| it.len() == 36 && it.split('-').map(str::len).eq([8, 4, 4, 4, 12]);
    let uuid = word.char_indices().find_map(|(at, _)| word.get(at..at + 36).filter(|it| is_uuid(it)));
    let digits = word.trim_start_matches(':');
    let is_time = digits.len() >= 10 && digits.bytes().all(|it| it.is_ascii_digit());
    let is_fraction = digits.contains('.') && digits.parse::<f64>().is_ok();
    let is_date = digits.len() >= 20 && digits.ends_with('Z') && digits.starts_with("20");
    match uuid {
        Some(uuid) => word.replace(uuid, "ID"),
        None if is_time || is_fraction => word.replace(digits, "N"),
        None if is_date => word.replace(digits, "TIME"),
        None => word.to_owned(),
    }
}
