//! Generates the JSON Schema of an agent file for editors: completion, descriptions and early validation.
//!
//! It uses draft-07, which editors support best. It is never stricter than the loader, so it accepts every file that
//! `wharf check` accepts. It is looser where a schema cannot express a rule, such as for variables, URLs and
//! arguments.

use super::{
    lower::TRANSPORTS,
    plan::{Builtin, EraChoice, Launcher, Lifecycle, Provider},
    read::LONGEST_SECONDS,
};
use serde_json::{Value, json};

/// Pattern of a string that is wholly one variable, which may replace any value.
const VARIABLE: &str = r"^\$\{[^{}]+\}$";

/// Returns the schema of agent.yaml.
pub fn schema() -> Value {
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "wharf agent file",
        "description": "An agent: its model, its instructions, and the MCP servers whose tools it uses.",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "name": text("What the agent is called."),
            "description": text("What the agent is for."),
            "author": text("Who wrote it."),
            "model": nullable(model()),
            "instructions": nullable(instructions()),
            "tools": {
                "description": "The MCP servers, at most 50.",
                "type": ["array", "null"],
                "maxItems": 50,
                "items": tool(),
            },
        },
    })
}

fn model() -> Value {
    json!({
        "description": "The model behind `run` and `chat`. Every other command works without it.",
        "type": "object",
        "additionalProperties": false,
        "required": ["provider", "name"],
        "properties": {
            "provider": word("Who serves the model.", Provider::WORDS, None),
            "name": text("The provider's name for the model."),
            "temperature": number("How freely it answers.", json!({ "minimum": 0, "maximum": 2 })),
            "max_tokens": integer("The longest answer.", json!({ "minimum": 1 })),
            "top_p": number("How much of the distribution it draws from.", json!({ "minimum": 0, "maximum": 1 })),
            "endpoint": text("Where the provider listens, if not at its usual address."),
            "api_key": text("The key. Use a variable, as in ${OPENAI_API_KEY}."),
            "api_version": text("The revision of the provider's interface."),
        },
    })
}

fn instructions() -> Value {
    json!({
        "description": "What the model is told first: from a file beside this one, or inline.",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "file": text("A text file in this folder or below it."),
            "inline": text("The text itself."),
        },
        "oneOf": [given("file"), given("inline"), { "type": "null" }],
    })
}

/// Matches an object in which `key` is a string. A key with a null value counts as absent.
fn given(key: &str) -> Value {
    json!({ "type": "object", "required": [key], "properties": { key: { "type": "string" } } })
}

fn tool() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["name", "type", "server"],
        "properties": tool_properties(),
        "if": { "properties": { "server": { "pattern": "^builtin:" } }, "required": ["server"] },
        "then": {
            "properties": {
                "server": { "enum": Builtin::WORDS }, "transport": { "type": "null" }, "command": { "type": "null" },
            },
        },
        "else": {
            "if": { "properties": { "transport": { "enum": ["sse", "websocket", "http", "streamable_http", "streamable-http"] } }, "required": ["transport"] },
            "then": { "required": ["url"], "properties": { "command": { "type": "null" }, "args": { "type": "null" }, "env": { "type": "null" } } },
            "else": { "properties": { "url": { "type": "null" }, "headers": { "type": "null" }, "timeout": { "type": "null" } } },
        },
    })
}

fn tool_properties() -> Value {
    let transports: Vec<&str> =
        TRANSPORTS.into_iter().chain(["streamable_http", "streamable-http"]).collect();
    json!({
        "name": text("A unique name for the server. Its tools are called name__tool."),
        "description": text("What the server is for; people and models read it."),
        "type": { "description": "Always mcp.", "enum": ["mcp"] },
        "server": text("The package or image that is run, a label for a remote server, or builtin:todo."),
        "transport": word("How the server is reached.", &transports, Some("stdio")),
        "command": {
            "description": "What starts a stdio server: npx (npm), uvx (PyPI), docker, or a program that the operator granted.",
            "type": ["string", "null"], "examples": Launcher::WORDS,
        },
        "args": texts("Arguments for the command. Without them, they follow from `server`."),
        "env": text_map("Environment variables for a stdio server. Values may use ${VAR}."),
        "envFile": text("A file of NAME=value lines in this folder; feeds ${VAR}, and the environment of a stdio server."),
        "env_file": text("The same as envFile."),
        "inherit_env": texts("Names of your own environment variables that a stdio server gets."),
        "encoding": text("How the pipes of a stdio server are encoded; utf-8 by default."),
        "url": text("The address of a remote server: https://, wss://, or http:// on this machine."),
        "headers": text_map("HTTP headers for sse and http. Values may use ${VAR}."),
        "timeout": seconds("Seconds for an HTTP connection to stand (sse, http)."),
        "sse_read_timeout": seconds("Seconds to wait for the next event of a stream (sse, http)."),
        "terminate_on_close": flag("Whether the session is ended on the server too (http).", true),
        "config": { "description": "Passed to the server: as MCP_CONFIG, in the handshake, and allowed_directories as MCP roots.", "type": ["object", "null"] },
        "load_tools": flag("Whether tools are listed at the start.", true),
        "load_prompts": flag("Whether prompts are listed at the start.", true),
        "request_timeout": integer("Seconds for one call; 60 by default.", json!({ "minimum": 1, "maximum": LONGEST_SECONDS })),
        "max_total_timeout": seconds("Seconds for one call in all, however much progress it reports; five times request_timeout by default."),
        "connect_timeout": seconds("Seconds for the server to be ready, from when it is started; 60 by default."),
        "install_timeout": seconds("Seconds for npx, uvx or docker to download the server before its first start (stdio); 600 by default."),
        "prefix": text("What stands before the names of its tools instead of `name`; \"\" for nothing."),
        "lifecycle": word("singleton: started at first use and kept. transient: started for each call.", Lifecycle::WORDS, Some("singleton")),
        "required": flag("Whether nothing works without this server.", false),
        "era": word("Which era of the protocol to speak.", EraChoice::WORDS, Some("auto")),
        "max_result_bytes": integer("The longest result that is passed on whole.", json!({ "minimum": 1 })),
        "allow": texts("Globs: the tools that a model is offered; all by default."),
        "deny": texts("Globs: the tools that a model is never offered."),
    })
}

fn text(description: &str) -> Value {
    json!({ "description": description, "type": ["string", "null"] })
}

fn texts(description: &str) -> Value {
    json!({ "description": description, "type": ["array", "null"], "items": { "type": "string" } })
}

fn text_map(description: &str) -> Value {
    json!({ "description": description, "type": ["object", "null"], "additionalProperties": { "type": ["string", "null"] } })
}

fn word(description: &str, words: &[&str], default: Option<&str>) -> Value {
    let mut schema =
        json!({ "description": description, "anyOf": [{ "enum": words }, variable(), { "type": "null" }] });
    if let Some(default) = default {
        schema["default"] = json!(default);
    }
    schema
}

fn flag(description: &str, default: bool) -> Value {
    json!({ "description": description, "default": default, "anyOf": [{ "type": ["boolean", "null"] }, variable()] })
}

fn integer(description: &str, bounds: Value) -> Value {
    bounded(description, "integer", bounds)
}

fn number(description: &str, bounds: Value) -> Value {
    bounded(description, "number", bounds)
}

fn seconds(description: &str) -> Value {
    number(description, json!({ "exclusiveMinimum": 0, "maximum": LONGEST_SECONDS }))
}

fn bounded(description: &str, kind: &str, mut bounds: Value) -> Value {
    bounds["type"] = json!([kind, "null"]);
    json!({ "description": description, "anyOf": [bounds, variable()] })
}

fn variable() -> Value {
    json!({ "type": "string", "pattern": VARIABLE })
}

fn nullable(mut schema: Value) -> Value {
    schema["type"] = json!(["object", "null"]);
    schema
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::raw::{RawAgent, RawInstructions, RawModel, RawTool};

    #[test]
    fn has_every_key_and_no_other() {
        let schema = schema();
        for (pointer, keys) in [
            ("/properties", RawAgent::KEYS),
            ("/properties/model/properties", RawModel::KEYS),
            ("/properties/instructions/properties", RawInstructions::KEYS),
            ("/properties/tools/items/properties", RawTool::KEYS),
        ] {
            let properties = schema.pointer(pointer).and_then(Value::as_object).expect("properties");
            let mut found: Vec<&str> = properties.keys().map(String::as_str).collect();
            let mut expected = keys.to_vec();
            found.sort_unstable();
            expected.sort_unstable();
            assert_eq!(found, expected, "{pointer}");
        }
    }
}
