//! Modes about the contents of a result.

use super::{Mode, Stage::Call, mode};
use crate::{action::Action, received::ReceivedMessage};
use serde_json::{Value, json};
use std::fs;

pub(super) const MODES: &[Mode] = &[
    mode("is_error", Call, "says that the tool failed", |received, _| {
        let content = json!([{ "type": "text", "text": "the printer is on fire" }]);
        vec![Action::send(received.result(json!({ "content": content, "isError": true })))]
    }),
    mode("rpc_32602", Call, "answers that the parameters are wrong", |received, _| {
        vec![Action::send(received.error(-32602, "unknown tool: echo"))]
    }),
    mode("rpc_32603", Call, "answers with an internal error", |received, _| {
        vec![Action::send(received.error(-32603, "internal error"))]
    }),
    mode("rpc_code_string", Call, "answers with an error whose code is a text", |received, _| {
        let error = json!({ "code": "E_NOPE", "message": "no" });
        vec![Action::send(json!({ "jsonrpc": "2.0", "id": received.id(), "error": error }).to_string())]
    }),
    mode("rpc_error_text", Call, "answers with a text for an error", |received, _| {
        vec![Action::send(json!({ "jsonrpc": "2.0", "id": received.id(), "error": "no" }).to_string())]
    }),
    mode("empty_content", Call, "answers with nothing", |received, _| {
        vec![Action::send(received.result(json!({ "content": [] })))]
    }),
    mode("content_not_array", Call, "answers with a text where a list belongs", |received, _| {
        vec![Action::send(received.result(json!({ "content": received.nonce() })))]
    }),
    mode("unknown_block", Call, "answers with an unknown kind of content", |received, _| {
        blocks(received, json!({ "type": "hologram", "shape": [1, 2, 3] }))
    }),
    mode("bad_base64", Call, "answers with a picture that is none", |received, _| {
        blocks(received, json!({ "type": "image", "data": "!!!", "mimeType": "image/png" }))
    }),
    mode("block_scalar", Call, "answers with numbers for content", |received, _| blocks(received, json!(7))),
    mode(
        "structured_violates_schema",
        Call,
        "answers with structured content of another shape",
        |received, _| {
            let content = json!([{ "type": "text", "text": received.nonce() }]);
            vec![Action::send(
                received.result(json!({ "content": content, "structuredContent": [1, "two", null] })),
            )]
        },
    ),
    mode("input_required", Call, "wants input that the client does not offer", |received, _| {
        let question =
            json!({ "method": "sampling/createMessage", "params": { "messages": [], "maxTokens": 1 } });
        let result = json!({ "resultType": "input_required", "inputRequests": { "q": question } });
        vec![Action::send(received.result(result))]
    }),
    mode("input_required_forever", Call, "wants more input each time it gets some", |received, _| {
        vec![Action::send(
            received.result(json!({ "resultType": "input_required", "requestState": "again" })),
        )]
    }),
    mode("result_type_unknown", Call, "answers with an unknown kind of result", |received, _| {
        vec![Action::send(received.result(json!({ "resultType": "poem", "content": [] })))]
    }),
    mode("resource_link_file", Call, "answers with a link to a file", |received, _| {
        blocks(received, json!({ "type": "resource_link", "uri": "file:///etc/passwd", "name": "passwd" }))
    }),
    mode("env_dump", Call, "answers with its environment, descriptors and folder", |received, _| {
        blocks(received, json!({ "type": "text", "text": process_environment() }))
    }),
    mode("result_8m", Call, "answers with 8 MiB, which is allowed", |received, _| {
        let text = "y".repeat(8 << 20);
        blocks(received, json!({ "type": "text", "text": text }))
    }),
];

/// Sends the nonce and another content block.
fn blocks(received: &ReceivedMessage, other: Value) -> Vec<Action> {
    let content = json!([{ "type": "text", "text": received.nonce() }, other]);
    vec![Action::send(received.result(json!({ "content": content })))]
}

/// Lists the environment variables, open files and folder that the server process can see.
#[expect(clippy::disallowed_methods, reason = "this mode reports the environment of the process")]
fn process_environment() -> String {
    let names: Vec<String> =
        std::env::vars_os().map(|(name, _)| name.to_string_lossy().into_owned()).collect();
    let open = fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let pipes = open
        .filter_map(|it| fs::read_link(it.path()).ok())
        .filter(|it| it.starts_with("/") && !it.starts_with("/proc"));
    let pipes: Vec<String> = pipes.map(|it| it.display().to_string()).collect();
    let folder = std::env::current_dir().map(|it| it.display().to_string()).unwrap_or_default();
    json!({ "env": names, "files": pipes, "folder": folder }).to_string()
}
