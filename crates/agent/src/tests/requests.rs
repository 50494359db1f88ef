//! Bodies of requests.

mod options;

use crate::{
    dialect::Dialect,
    message::{AnswerMessage, AnswerPart, Content, Message, ToolCall, ToolResult},
    model::ModelOptions,
    tool_list::ToolSpec,
    view::{ToolChoice, View},
};
use serde_json::{Value, json};
use wharf_config::Provider;

fn model(dialect: Dialect) -> ModelOptions {
    let provider = match dialect {
        Dialect::Responses | Dialect::Chat => Provider::OpenAi,
        Dialect::Anthropic => Provider::Anthropic,
        Dialect::Gemini => Provider::Gemini,
        Dialect::Ollama => Provider::Ollama,
    };
    ModelOptions::new(provider, "m")
}

fn user(text: &str) -> Message {
    Message::User(vec![Content::Text(text.into())])
}

fn result(call_id: &str, text: &str, is_error: bool) -> Message {
    let content = vec![Content::Text(text.into())];
    Message::Result(ToolResult { call_id: call_id.into(), name: "get".into(), content, is_error })
}

fn tool_call(id: &str, arguments: &str, native: Option<Value>) -> AnswerPart {
    AnswerPart::Call(ToolCall { id: id.into(), name: "get".into(), arguments: arguments.into(), native })
}

/// A question, an answer with reasoning, text and two calls, and their results.
fn conversation(author: &str) -> Vec<Message> {
    let parts = vec![
        AnswerPart::Reasoning {
            text: "Hm.".into(),
            native: Some(json!({ "type": "thinking", "signature": "s" })),
        },
        AnswerPart::Text { text: "Wait.".into(), native: None },
        tool_call("a", r#"{"n":1}"#, Some(json!("sig"))),
        tool_call("b", "{broken", None),
    ];
    let answer = Message::Answer(AnswerMessage { parts, model: author.into() });
    vec![user("Hi"), answer, result("a", "one", false), result("b", "no", true)]
}

fn tools() -> Vec<ToolSpec> {
    let schema = json!({ "$schema": "x", "$id": "y", "properties": { "n": { "type": "integer" } } });
    vec![ToolSpec { name: "get".into(), description: "Gets.".into(), schema }]
}

fn body(dialect: Dialect, model: &ModelOptions, messages: &[Message], tool_choice: ToolChoice<'_>) -> Value {
    let tools = dialect.write_tools(&tools());
    let view =
        View { conversation_id: "conv", instructions: "Be kind.", tools: &tools, tool_choice, messages };
    serde_json::from_slice(&dialect.write(&view, model)).expect("JSON")
}

fn own_body(dialect: Dialect) -> Value {
    let model = model(dialect);
    body(dialect, &model, &conversation(&model.native_key()), ToolChoice::Auto)
}

fn schema() -> Value {
    json!({ "properties": { "n": { "type": "integer" } }, "type": "object" })
}

#[test]
fn responses_requests_are_complete() {
    let expected = json!({
        "model": "m",
        "instructions": "Be kind.",
        "tools": [{ "type": "function", "name": "get", "description": "Gets.", "parameters": schema(), "strict": false }],
        "input": [
            { "role": "user", "content": [{ "type": "input_text", "text": "Hi" }] },
            { "type": "thinking", "signature": "s" },
            { "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "Wait." }] },
            { "type": "function_call", "call_id": "a", "name": "get", "arguments": "{\"n\":1}" },
            { "type": "function_call", "call_id": "b", "name": "get", "arguments": "{}" },
            { "type": "function_call_output", "call_id": "a", "output": "one" },
            { "type": "function_call_output", "call_id": "b", "output": "no" },
        ],
        "stream": true,
        "store": false,
        "include": ["reasoning.encrypted_content"],
        "prompt_cache_key": "conv",
    });
    assert_eq!(own_body(Dialect::Responses), expected);
}

#[test]
fn chat_requests_are_complete() {
    let function = |arguments: &str| json!({ "name": "get", "arguments": arguments });
    let expected = json!({
        "model": "m",
        "messages": [
            { "role": "system", "content": "Be kind." },
            { "role": "user", "content": "Hi" },
            { "role": "assistant", "content": "Wait.", "tool_calls": [
                { "id": "a", "type": "function", "function": function("{\"n\":1}"), "extra_content": "sig" },
                { "id": "b", "type": "function", "function": function("{}") },
            ] },
            { "role": "tool", "tool_call_id": "a", "content": "one" },
            { "role": "tool", "tool_call_id": "b", "content": "no" },
        ],
        "tools": [{ "type": "function",
            "function": { "name": "get", "description": "Gets.", "parameters": schema() } }],
        "stream": true,
        "prompt_cache_key": "conv",
        "stream_options": { "include_usage": true },
    });
    assert_eq!(own_body(Dialect::Chat), expected);
}

#[test]
fn anthropic_requests_are_complete() {
    let cached = json!({ "type": "ephemeral" });
    let one = json!([{ "type": "text", "text": "one" }]);
    let no = json!([{ "type": "text", "text": "no" }]);
    let expected = json!({
        "model": "m",
        "max_tokens": 16384,
        "system": [{ "type": "text", "text": "Be kind.", "cache_control": cached }],
        "tools": [{ "name": "get", "description": "Gets.", "input_schema": schema(), "cache_control": cached }],
        "messages": [
            { "role": "user", "content": [{ "type": "text", "text": "Hi" }] },
            { "role": "assistant", "content": [
                { "type": "thinking", "signature": "s" },
                { "type": "text", "text": "Wait." },
                { "type": "tool_use", "id": "a", "name": "get", "input": { "n": 1 } },
                { "type": "tool_use", "id": "b", "name": "get", "input": {} },
            ] },
            { "role": "user", "content": [
                { "type": "tool_result", "tool_use_id": "a", "content": one },
                { "type": "tool_result", "tool_use_id": "b", "content": no, "is_error": true, "cache_control": cached },
            ] },
        ],
        "stream": true,
    });
    assert_eq!(own_body(Dialect::Anthropic), expected);
}

#[test]
fn gemini_requests_are_complete() {
    let response = |id: &str, response: Value| json!({ "functionResponse": { "id": id, "name": "get", "response": response } });
    let declaration = json!({ "name": "get", "description": "Gets.", "parametersJsonSchema": schema() });
    let expected = json!({
        "systemInstruction": { "parts": [{ "text": "Be kind." }] },
        "tools": [{ "functionDeclarations": [declaration] }],
        "contents": [
            { "role": "user", "parts": [{ "text": "Hi" }] },
            { "role": "model", "parts": [
                { "text": "Hm.", "thought": true, "thoughtSignature": { "type": "thinking", "signature": "s" } },
                { "text": "Wait." },
                { "functionCall": { "id": "a", "name": "get", "args": { "n": 1 } }, "thoughtSignature": "sig" },
                { "functionCall": { "id": "b", "name": "get", "args": {} } },
            ] },
            { "role": "user", "parts": [
                response("a", json!({ "output": "one" })),
                response("b", json!({ "error": "no" })),
            ] },
        ],
    });
    assert_eq!(own_body(Dialect::Gemini), expected);
}

#[test]
fn ollama_requests_are_complete() {
    let function = |arguments: Value| json!({ "name": "get", "arguments": arguments });
    let expected = json!({
        "model": "m",
        "messages": [
            { "role": "system", "content": "Be kind." },
            { "role": "user", "content": "Hi" },
            { "role": "assistant", "content": "Wait.", "thinking": "Hm.", "tool_calls": [
                { "id": "a", "function": function(json!({ "n": 1 })) },
                { "id": "b", "function": function(json!({})) },
            ] },
            { "role": "tool", "tool_name": "get", "tool_call_id": "a", "content": "one" },
            { "role": "tool", "tool_name": "get", "tool_call_id": "b", "content": "no" },
        ],
        "tools": [{ "type": "function",
            "function": { "name": "get", "description": "Gets.", "parameters": schema() } }],
        "stream": true,
        "options": { "num_ctx": 16384 },
    });
    assert_eq!(own_body(Dialect::Ollama), expected);
}
