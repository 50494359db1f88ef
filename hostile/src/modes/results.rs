//! Modes about the contents of a result.

use super::{Mode, Stage::Call, mode};
use crate::{asked::Asked, deed::Deed};
use serde_json::{Value, json};
use std::fs;

pub(super) const MODES: &[Mode] = &[
    mode("is_error", Call, "says that the tool failed", |asked, _| {
        let content = json!([{ "type": "text", "text": "the printer is on fire" }]);
        vec![Deed::say(asked.result(json!({ "content": content, "isError": true })))]
    }),
    mode("rpc_32602", Call, "answers that the parameters are wrong", |asked, _| {
        vec![Deed::say(asked.error(-32602, "unknown tool: echo"))]
    }),
    mode("rpc_32603", Call, "answers with an internal error", |asked, _| {
        vec![Deed::say(asked.error(-32603, "internal error"))]
    }),
    mode("rpc_code_string", Call, "answers with an error whose code is a text", |asked, _| {
        let error = json!({ "code": "E_NOPE", "message": "no" });
        vec![Deed::say(json!({ "jsonrpc": "2.0", "id": asked.id(), "error": error }).to_string())]
    }),
    mode("rpc_error_text", Call, "answers with a text for an error", |asked, _| {
        vec![Deed::say(json!({ "jsonrpc": "2.0", "id": asked.id(), "error": "no" }).to_string())]
    }),
    mode("empty_content", Call, "answers with nothing", |asked, _| {
        vec![Deed::say(asked.result(json!({ "content": [] })))]
    }),
    mode("content_not_array", Call, "answers with a text where a list belongs", |asked, _| {
        vec![Deed::say(asked.result(json!({ "content": asked.nonce() })))]
    }),
    mode("unknown_block", Call, "answers with a kind of content that nobody knows", |asked, _| {
        blocks(asked, json!({ "type": "hologram", "shape": [1, 2, 3] }))
    }),
    mode("bad_base64", Call, "answers with a picture that is none", |asked, _| {
        blocks(asked, json!({ "type": "image", "data": "!!!", "mimeType": "image/png" }))
    }),
    mode("block_scalar", Call, "answers with numbers for content", |asked, _| blocks(asked, json!(7))),
    mode(
        "structured_violates_schema",
        Call,
        "answers with structured content of another shape",
        |asked, _| {
            let content = json!([{ "type": "text", "text": asked.nonce() }]);
            vec![Deed::say(
                asked.result(json!({ "content": content, "structuredContent": [1, "two", null] })),
            )]
        },
    ),
    mode("input_required", Call, "wants input that the client does not offer", |asked, _| {
        let question =
            json!({ "method": "sampling/createMessage", "params": { "messages": [], "maxTokens": 1 } });
        let result = json!({ "resultType": "input_required", "inputRequests": { "q": question } });
        vec![Deed::say(asked.result(result))]
    }),
    mode("input_required_forever", Call, "wants more input each time it gets some", |asked, _| {
        vec![Deed::say(asked.result(json!({ "resultType": "input_required", "requestState": "again" })))]
    }),
    mode("result_type_unknown", Call, "answers with a kind of result that nobody knows", |asked, _| {
        vec![Deed::say(asked.result(json!({ "resultType": "poem", "content": [] })))]
    }),
    mode("resource_link_file", Call, "answers with a link to a file", |asked, _| {
        blocks(asked, json!({ "type": "resource_link", "uri": "file:///etc/passwd", "name": "passwd" }))
    }),
    mode("env_dump", Call, "answers with its environment, descriptors and folder", |asked, _| {
        blocks(asked, json!({ "type": "text", "text": surroundings() }))
    }),
    mode("result_8m", Call, "answers with 8 MiB, which is allowed", |asked, _| {
        let text = "y".repeat(8 << 20);
        blocks(asked, json!({ "type": "text", "text": text }))
    }),
];

/// Sends the nonce and another content block.
fn blocks(asked: &Asked, other: Value) -> Vec<Deed> {
    let content = json!([{ "type": "text", "text": asked.nonce() }, other]);
    vec![Deed::say(asked.result(json!({ "content": content })))]
}

/// Lists the environment variables, open files and folder that the server process can see.
#[expect(clippy::disallowed_methods, reason = "to tell what it was given is what this mode is for")]
fn surroundings() -> String {
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
