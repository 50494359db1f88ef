//! Resources and prompts of servers in `POST /api/v1/chat`.

use super::{TODO, agent_file, ask, serve, todos};
use crate::serve::server::Server;
use scripted_model::{Reply, ScriptedModel, Wire};
use serde_json::{Value, json};

/// A second server of the same kind, which has a resource of the same URI.
const HOME: &str =
    "  - name: home\n    description: Another list of todos\n    type: mcp\n    server: builtin:todo\n";

/// Sends a message without a stream. Returns status and body.
fn chat(server: &Server, mut body: Value) -> (u16, Value) {
    body["stream"] = json!(false);
    server.ask("POST", "/api/v1/chat", Some(&body))
}

/// Returns the text of the last message that the model was sent.
fn sent(model: &ScriptedModel) -> String {
    let requests = model.requests();
    let messages = requests.last().expect("a request").body["messages"].clone();
    let message = messages.as_array().and_then(|it| it.last()).expect("a message");
    message["content"].as_str().expect("a text").to_owned()
}

fn create_todo(server: &Server, title: &str) {
    let (status, created) = server.ask(
        "POST",
        "/api/v1/tools/todo:create_todo/call",
        Some(&json!({ "arguments": { "title": title } })),
    );
    assert_eq!(status, 200, "{created}");
}

#[test]
fn resources_follow_the_message_and_name_their_server() {
    let model = ScriptedModel::start(vec![Reply::text(Wire::Chat, "ok")]);
    let server = serve(&agent_file(&model, &format!("{TODO}{HOME}")));
    create_todo(&server, "Buy eggs");
    let attached = json!([{ "uri": "todo://1", "source": "home" }, { "uri": "todo://1", "source": null }]);
    let (status, done) = chat(&server, json!({ "message": "What is this?", "attachments": attached }));
    assert_eq!((status, &done["final_output"]), (200, &json!("ok")), "{done}");
    let text = sent(&model);
    let (first, second) =
        ("Resource todo://1 of the server home:\n```\n", "Resource todo://1 of the server todo:\n```\n");
    assert!(text.starts_with(&format!("What is this?\n{first}")), "{text}");
    assert!(text.split_once(second).is_some_and(|(_, it)| it.contains("Buy eggs")), "{text}");
    let id = done["conversation_id"].as_str().expect("an id");
    let (_, kept) = server.ask("GET", &format!("/api/v1/conversations/{id}"), None);
    assert_eq!(kept["title"], "What is this?", "the title has no attachment");
    let again = json!({ "message": "And now?", "conversation_id": id });
    assert_eq!(chat(&server, again).0, 200);
    let request = model.requests()[1].body.to_string();
    assert!(request.contains("Resource todo://1 of the server todo"), "attachments are kept: {request}");
}

#[test]
fn a_prompt_takes_the_place_of_the_message_over_http() {
    let model = ScriptedModel::start(vec![Reply::text(Wire::Chat, "ok")]);
    let server = serve(&agent_file(&model, TODO));
    create_todo(&server, "Buy eggs");
    let prompt = json!({ "name": "todo:plan_my_day", "arguments": { "date": "2026-11-18" } });
    let attached = json!([{ "uri": "todo://1" }]);
    let (status, done) = chat(&server, json!({ "prompt": prompt, "attachments": attached, "keep": false }));
    assert_eq!(status, 200, "{done}");
    let texts = sent(&model);
    for expected in
        ["[Prompt todo:plan_my_day]", "2026-11-18", "Buy eggs", "Resource todo://1 of the server todo"]
    {
        assert!(texts.contains(expected), "{expected} is not in {texts}");
    }
}

#[test]
fn what_cannot_be_attached_has_a_status_and_the_model_is_not_asked() {
    let model = ScriptedModel::start(vec![Reply::text(Wire::Chat, "ok")]);
    let down = "  - name: notes\n    description: Notes\n    type: mcp\n    server: notes\n    transport: http\n    \
        url: http://127.0.0.1:9/mcp\n";
    let server = serve(&agent_file(&model, &format!("{TODO}{down}")));
    let nine = vec![json!({ "uri": "todo://1" }); 9];
    let attached = |uri: &str, source: Value| json!({ "message": "Hi", "attachments": [{ "uri": uri, "source": source }] });
    let prompt = |name: &str, arguments: Value| json!({ "prompt": { "name": name, "arguments": arguments } });
    for (body, status, detail) in [
        (attached("todo://99", json!("todo")), 404, "`todo://99` cannot be read: "),
        (attached("todo://1", json!("nowhere")), 404, "there is no resource 'todo://1'"),
        (attached("todo://1", json!("notes")), 502, "notes"),
        (json!({ "message": "Hi", "attachments": nine }), 413, "a message can have 8 attachments, not 9"),
        (
            json!({ "message": "Hi", "attachments": "todo://1" }),
            400,
            "`attachments` has to be a list of objects",
        ),
        (
            json!({ "message": "Hi", "attachments": [{ "source": "todo" }] }),
            422,
            "`uri` of an attachment is missing",
        ),
        (json!({ "message": "Hi", "attachments": [{ "uri": "a", "file": "b" }] }), 400, "unknown key `file`"),
        (json!({ "attachments": [{ "uri": "todo://1" }] }), 422, "`message` is missing"),
        (prompt("todo:nope", Value::Null), 404, "there is no prompt 'todo:nope'"),
        (prompt("todo:plan_my_day", json!({ "date": "soon" })), 422, "the prompt cannot be used: "),
        (prompt("todo:plan_my_day", json!([])), 400, "`prompt.arguments` has to be an object"),
        (json!({ "prompt": {} }), 422, "`prompt.name` is missing"),
        (
            json!({ "prompt": { "name": "x" }, "message": "Hi" }),
            422,
            "`message` and `prompt` exclude each other",
        ),
        (
            json!({ "approvals": [{ "approval_id": "a", "decision": "deny", "digest": "d" }],
                "attachments": [{ "uri": "todo://1" }], "conversation_id": "c" }),
            422,
            "a message and `approvals` exclude each other",
        ),
    ] {
        let (found, problem) = chat(&server, body.clone());
        assert_eq!(found, status, "{body}: {problem}");
        assert!(problem["detail"].as_str().is_some_and(|it| it.contains(detail)), "{body}: {problem}");
    }
    assert_eq!(model.requests().len(), 0);
    let (_, kept) = server.ask("GET", "/api/v1/conversations", None);
    assert_eq!(kept["items"], json!([]), "nothing is begun");
}

/// A resource that is longer than the context window of the model.
#[test]
fn a_resource_that_is_too_long_becomes_a_handle() {
    let model = ScriptedModel::start(vec![
        Reply::calls(Wire::Chat, &[("c1", "wharf__grep_result", r#"{"id":"r-1","pattern":"eggs"}"#)]),
        Reply::text(Wire::Chat, "ok"),
        Reply::calls(Wire::Chat, &[("c2", "wharf__read_result", r#"{"id":"r-1"}"#)]),
        Reply::text(Wire::Chat, "ok"),
    ]);
    let file = agent_file(&model, TODO).replace("  name: m\n", "  name: m\n  context_window: 8000\n");
    let server = serve(&file);
    let description = "Very long words about nothing. ".repeat(1200) + "At last, buy eggs.";
    let arguments = json!({ "arguments": { "title": "Long", "description": description } });
    let (status, created) = server.ask("POST", "/api/v1/tools/todo:create_todo/call", Some(&arguments));
    assert_eq!(status, 200, "{created}");
    assert_eq!(todos(&server), ["Long"]);
    let attached = json!([{ "uri": "todo://1" }]);
    let (status, done) = chat(&server, json!({ "message": "What should I buy?", "attachments": attached }));
    assert_eq!((status, &done["final_output"]), (200, &json!("ok")), "{done}");
    let first = model.requests()[0].body.to_string();
    assert!(first.contains("Resource todo://1 of the server todo, stored as result r-1: "), "{first}");
    assert!(first.len() < 20_000, "{} bytes", first.len());
    let result = sent(&model);
    assert!(result.contains("buy eggs"), "the model reads the handle: {result}");
    let id = done["conversation_id"].as_str().expect("an id");
    let path = format!("/api/v1/conversations/{id}/results/r-1");
    assert!(server.text(&path).contains("At last, buy eggs."), "the handle is read over HTTP");
    assert_eq!(server.ask("GET", &format!("{path}9"), None).0, 404);
    assert_eq!(ask(&server, "Another conversation").0, 200);
    let foreign = sent(&model);
    assert!(foreign.contains("r-1") && !foreign.contains("long words"), "a foreign handle: {foreign}");
}

/// The message is kept before the model is asked, so an image that the provider refuses would spoil the conversation.
#[test]
fn an_image_that_no_model_takes_is_refused_and_not_kept() {
    let model = ScriptedModel::start(vec![Reply::text(Wire::Chat, "ok")]);
    let server = serve(&agent_file(&model, TODO));
    let ui = |media_type: &str, data: &str| {
        let file = json!({ "type": "file", "mediaType": media_type, "url": format!("data:{media_type};base64,{data}") });
        json!({ "id": "ui-1", "trigger": "submit-message",
            "messages": [{ "id": "m", "role": "user", "parts": [{ "type": "text", "text": "Hi" }, file] }] })
    };
    let ag_ui = |media_type: &str, data: &str| {
        let image =
            json!({ "type": "image", "source": { "type": "data", "mimeType": media_type, "value": data } });
        json!({ "threadId": "ag-1", "runId": "r", "tools": [], "context": [], "state": {}, "forwardedProps": {},
            "messages": [{ "id": "m", "role": "user", "content": [{ "type": "text", "text": "Hi" }, image] }] })
    };
    for (media_type, data, detail) in [
        (
            "image/svg+xml",
            "QUJD",
            "'image/svg+xml'; the types are image/png, image/jpeg, image/gif, image/webp",
        ),
        ("text/plain", "QUJD", "'text/plain'; the types are image/png"),
        ("image/png", "a picture", "'image/png' has to be base64"),
    ] {
        for (path, body) in
            [("/api/v1/chat/ui", ui(media_type, data)), ("/api/v1/chat/ag-ui", ag_ui(media_type, data))]
        {
            let (status, problem) = server.ask("POST", path, Some(&body));
            assert_eq!(status, 422, "{path} {media_type}: {problem}");
            assert!(problem["detail"].as_str().is_some_and(|it| it.contains(detail)), "{path}: {problem}");
        }
    }
    let (_, listed) = server.ask("GET", "/api/v1/conversations", None);
    assert_eq!((&listed["items"], model.requests().len()), (&json!([]), 0));
}
