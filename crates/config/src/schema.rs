//! Generates the JSON Schema of an agent file for editors: completion, descriptions and early validation.
//!
//! It uses draft-07, which editors support best. It is never stricter than the loader, so it accepts every file that
//! `wharf check` accepts. It is looser where a schema cannot express a rule, such as for variables, URLs and
//! arguments.

use super::{
    agent_settings::{ClientTools, Decision},
    lock::{DependencyCheck, LockMode},
    model::{ModelApi, Provider, ReasoningEffort},
    oauth::{GrantType, SigningAlgorithm},
    plan::{Builtin, EraChoice, Launcher, Lifecycle},
    read::MAX_TIMEOUT_SECONDS,
    result_settings::PassRule,
    transport::TRANSPORTS,
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
            "name": text("Name of the agent."),
            "description": text("Purpose of the agent."),
            "author": text("Author of the agent."),
            "model": nullable(model()),
            "instructions": nullable(instructions()),
            "limits": nullable(limits()),
            "approval": nullable(approval()),
            "context": nullable(context()),
            "sampling": {
                "description": "Which servers may use the model during a call; none by default. One decision, or decisions by server.",
                "anyOf": [
                    keyword("Decision about all servers.", Decision::KEYWORDS, Some("deny")),
                    { "type": "object", "additionalProperties": keyword("Decision about this server.", Decision::KEYWORDS, None) },
                ],
            },
            "lock": lock(),
            "results": results(),
            "record": nullable(record()),
            "response_format": {
                "description": "JSON Schema of the agent's final answer: inline, or a JSON file in this folder.",
                "type": ["object", "string", "null"],
            },
            "tools": {
                "description": "MCP servers, at most 50.",
                "type": ["array", "null"],
                "maxItems": 50,
                "items": tool(),
            },
        },
    })
}

fn model() -> Value {
    json!({
        "description": "Model for `run` and `chat`. All other commands work without it.",
        "type": "object",
        "additionalProperties": false,
        "required": ["provider", "name"],
        "properties": {
            "provider": keyword("Provider of the model.", Provider::KEYWORDS, None),
            "name": text("Name of the model, as the provider spells it."),
            "temperature": number("Sampling temperature.", json!({ "minimum": 0, "maximum": 2 })),
            "max_tokens": integer("Maximum number of tokens in an answer.", json!({ "minimum": 1 })),
            "top_p": number("Nucleus sampling threshold.", json!({ "minimum": 0, "maximum": 1 })),
            "endpoint": text("Base URL of the provider's API, if it is not the default."),
            "api_key": text("API key. Use a variable, such as ${OPENAI_API_KEY}."),
            "api_version": text("Version of the provider's API."),
            "api": keyword("Which of OpenAI's APIs to use (openai, azure_openai).", ModelApi::KEYWORDS, None),
            "reasoning": keyword("How much the model reasons before it answers.", ReasoningEffort::KEYWORDS, None),
            "context_window": integer("Context window in tokens, if it is not the provider's default.", json!({ "minimum": 2048, "maximum": 10_000_000 })),
            "images": { "description": "Whether the model is shown images.", "anyOf": [{ "type": ["boolean", "null"] }, variable()] },
            "timeout": number("Seconds until the first byte of an answer; 120 by default.", json!({ "exclusiveMinimum": 0, "maximum": 3600 })),
            "idle_timeout": number("Seconds between two parts of an answer; 60 by default.", json!({ "exclusiveMinimum": 0, "maximum": 3600 })),
            "headers": text_map("Additional headers of every request, at most 32. Values may use ${VAR}."),
            "extra": { "description": "Additional keys of every request.", "type": ["object", "null"] },
        },
    })
}

fn limits() -> Value {
    let range = |description: &str, min: u64, max: u64| {
        integer(description, json!({ "minimum": min, "maximum": max }))
    };
    json!({
        "description": "Limits of one run of the agent.",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "max_turns": range("Maximum number of answers with tools; 25 by default.", 1, 1000),
            "max_tool_calls": range("Maximum number of tool calls; 100 by default.", 0, 10_000),
            "max_repeats": range("Maximum number of identical calls with the same result; 3 by default.", 1, 100),
            "max_parallel": range("Maximum number of calls at the same time; 8 by default.", 1, 64),
            "run_timeout": range("Maximum duration in seconds; 600 by default.", 1, MAX_TIMEOUT_SECONDS),
            "max_total_tokens": integer("Maximum number of tokens of all requests and answers; 500000 by default.", json!({ "minimum": 1000 })),
            "max_cost": number("Maximum cost of all requests and answers, in the currency of the prices in wharf.toml; none by default.", json!({ "exclusiveMinimum": 0 })),
            "approval_timeout": range("Seconds that a person has to decide about a call; 600 by default.", 1, MAX_TIMEOUT_SECONDS),
        },
    })
}

fn approval() -> Value {
    json!({
        "description": "Which tool calls of the model need approval. Rules are globs over server:tool.",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "default": keyword("Decision about calls that no rule and no trusted read-only hint decides.", Decision::KEYWORDS, Some("ask")),
            "allow": texts("Calls to allow."),
            "ask": texts("Calls to ask about."),
            "deny": texts("Calls to deny. The model is not offered these tools."),
            "after_untrusted": keyword("Decision about calls that may write, once the model has seen content of an open-world server.", &Decision::KEYWORDS[..2], Some("ask")),
        },
    })
}

fn context() -> Value {
    json!({
        "description": "What the model sees of a conversation.",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "preamble": flag("Whether the instructions begin with a few sentences about tool results.", true),
            "compact": flag("Whether the oldest part of a long conversation is summed up.", true),
            "tool_budget": integer("Maximum number of tokens of the offered tools; a fifth of the context window by default, at most 16000.", json!({ "minimum": 1_000, "maximum": 1_000_000 })),
            "server_instructions": flag("Whether the model is shown the instructions of the servers.", false),
            "pin": texts("Globs over source:tool; these tools are offered first."),
            "clients": keyword("Which tools clients of the gateway are shown.", ClientTools::KEYWORDS, Some("all")),
        },
    })
}

fn instructions() -> Value {
    json!({
        "description": "System prompt for the model: from a file beside this one, or inline.",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "file": text("Text file in this folder or below it."),
            "inline": text("Text of the instructions."),
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
                "server": { "enum": Builtin::KEYWORDS }, "transport": { "type": "null" }, "command": { "type": "null" },
            },
        },
        "else": {
            "if": { "properties": { "transport": { "enum": ["sse", "websocket", "http", "streamable_http", "streamable-http"] } }, "required": ["transport"] },
            "then": { "required": ["url"], "properties": { "command": { "type": "null" }, "args": { "type": "null" }, "env": { "type": "null" } } },
            "else": { "properties": { "url": { "type": "null" }, "headers": { "type": "null" }, "auth": { "type": "null" }, "timeout": { "type": "null" } } },
        },
    })
}

fn auth() -> Value {
    let idp = json!({
        "description": "Identity provider of the company (enterprise).",
        "type": "object",
        "additionalProperties": false,
        "required": ["token_endpoint"],
        "properties": {
            "token_endpoint": text("URL of its token endpoint."),
            "client_id": text("Client id at the identity provider."),
            "client_secret": text("Client secret at the identity provider. Use a variable."),
        },
    });
    json!({
        "description": "How to sign in to the server with OAuth (sse, http). Without it, `wharf login` signs in.",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "type": { "description": "Always oauth.", "anyOf": [{ "enum": ["oauth"] }, variable(), { "type": "null" }] },
            "grant": keyword("Who signs in: a user, wharf itself, its workload, or a user of a company.", GrantType::KEYWORDS, Some("authorization_code")),
            "scopes": texts("Scopes to request; those that the server names by default."),
            "issuer": text("The only authorization server to use."),
            "dpop": flag("Whether to accept only tokens that are bound to a key (DPoP). Servers that require it get them in any case.", false),
            "client_id": text("Client id. Without it, a user signs in with a client that wharf registers."),
            "client_secret": text("Client secret. Use a variable, such as ${CLIENT_SECRET}."),
            "private_key": text("Private key of the client in PEM, instead of a secret (client_credentials). Use a variable."),
            "signing_algorithm": keyword("Algorithm of the private key.", SigningAlgorithm::KEYWORDS, Some("ES256")),
            "token": text("Token of the workload (workload_identity). Use a variable."),
            "token_file": text("File with the token of the workload, read for each sign-in (workload_identity)."),
            "id_token": text("ID token of the user (enterprise). Use a variable."),
            "id_token_file": text("File with the ID token of the user, read for each sign-in (enterprise)."),
            "idp": nullable(idp),
        },
    })
}

fn tool_properties() -> Value {
    let transports: Vec<&str> =
        TRANSPORTS.into_iter().chain(["streamable_http", "streamable-http"]).collect();
    json!({
        "name": text("Unique name of the server. Its tools are named name__tool."),
        "description": text("Purpose of the server, for people and models."),
        "type": { "description": "Always mcp.", "enum": ["mcp"] },
        "server": text("Package or image to run, a label for a remote server, or builtin:todo."),
        "transport": keyword("Transport of the server.", &transports, Some("stdio")),
        "command": {
            "description": "Program that starts a stdio server: npx (npm), uvx (PyPI), docker, or a program that the operator granted.",
            "type": ["string", "null"], "examples": Launcher::KEYWORDS,
        },
        "args": texts("Arguments of the command. The default is derived from `server`."),
        "env": text_map("Environment variables for a stdio server. Values may use ${VAR}."),
        "envFile": text("File with NAME=value lines in this folder. Provides values for ${VAR} and for the environment of a stdio server."),
        "env_file": text("Alias of envFile."),
        "inherit_env": texts("Names of your environment variables that a stdio server inherits."),
        "encoding": text("Text encoding of a stdio server's pipes; utf-8 by default."),
        "url": text("URL of a remote server: https://, wss://, or http:// on this machine."),
        "headers": text_map("HTTP headers for sse and http. Values may use ${VAR}."),
        "auth": nullable(auth()),
        "timeout": seconds("Timeout for an HTTP connection, in seconds (sse, http)."),
        "sse_read_timeout": seconds("Timeout for the next event of a stream, in seconds (sse, http)."),
        "terminate_on_close": flag("Whether to end the session on the server when closing (http).", true),
        "config": { "description": "Passed to the server: as MCP_CONFIG, in the handshake, and allowed_directories as MCP roots.", "type": ["object", "null"] },
        "load_tools": flag("Whether to list tools at startup.", true),
        "load_prompts": flag("Whether to list prompts at startup.", true),
        "instructions": flag("Whether clients of the gateway receive the server's instructions.", true),
        "request_timeout": integer("Timeout for one call, in seconds; 60 by default.", json!({ "minimum": 1, "maximum": MAX_TIMEOUT_SECONDS })),
        "max_total_timeout": seconds("Maximum duration of one call in seconds, regardless of progress; five times request_timeout by default."),
        "connect_timeout": seconds("Timeout for the server to become ready, in seconds; 60 by default."),
        "install_timeout": seconds("Timeout for npx, uvx or docker to download the server before its first start, in seconds (stdio); 600 by default."),
        "prefix": text("Prefix of its tools' names, instead of `name`; \"\" for no prefix."),
        "lifecycle": keyword("singleton: started at first use and kept. transient: started for each call.", Lifecycle::KEYWORDS, Some("singleton")),
        "required": flag("Whether a failure of this server makes the whole command fail.", false),
        "era": keyword("Protocol era to use.", EraChoice::KEYWORDS, Some("auto")),
        "max_result_bytes": integer("Maximum size of a result in bytes; longer results are truncated.", json!({ "minimum": 1 })),
        "allow": texts("Globs of the tools to offer to models; all by default."),
        "deny": texts("Globs of the tools never to offer to models."),
        "trust": flag("Whether the server's read-only hints count, so that such calls need no approval.", true),
        "defer_loading": defer_loading(),
        "lock": lock(),
        "results": results(),
        "overrides": overrides(),
    })
}

fn results() -> Value {
    json!({
        "description": "Which results are stored, and who receives a preview and a handle instead.",
        "type": ["object", "null"],
        "additionalProperties": false,
        "properties": {
            "inline_limit": integer("Size in bytes above which a result is stored; 32768 by default.", json!({ "minimum": 512, "maximum": 16_777_216 })),
            "keep": integer("How many seconds a stored result is kept; 3600 by default.", json!({ "minimum": 60, "maximum": 86_400 })),
            "for": texts("Who receives handles: agent, mcp, rest. Only the agent by default."),
            "pass": keyword("Which stored results may be passed to its tools.", PassRule::KEYWORDS, Some("any")),
        },
    })
}

fn lock() -> Value {
    let mode = json!({ "enum": LockMode::KEYWORDS });
    json!({
        "description": "What happens if a server differs from wharf.lock. Enforced if the file exists.",
        "anyOf": [
            mode,
            variable(),
            { "type": "null" },
            {
                "type": "object",
                "additionalProperties": false,
                "properties": {
                    "mode": keyword("What happens to changed tools and packages.", LockMode::KEYWORDS, None),
                    "pin": flag("Whether servers start with the locked version.", true),
                    "dependencies": keyword("What happens if dependencies of a package change.", DependencyCheck::KEYWORDS, Some("warn")),
                },
            },
        ],
    })
}

fn record() -> Value {
    json!({
        "description": "Settings of recordings.",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "ignore": {
                "description": "JSON pointers into arguments that a replay ignores, by glob over server:tool.",
                "type": ["object", "null"],
                "additionalProperties": { "type": "array", "items": { "type": "string", "pattern": "^/" } },
            },
            "redact": {
                "description": "Regular expressions of text to replace in a recording, by the name of the replacement.",
                "type": ["object", "null"],
                "additionalProperties": { "type": "string" },
            },
        },
    })
}

fn tool_override() -> Value {
    let annotations = json!({
        "description": "Hints that replace those of the server.",
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "title": text("Display name."),
            "readOnlyHint": hint("Whether the tool changes nothing."),
            "destructiveHint": hint("Whether the tool may delete or overwrite."),
            "idempotentHint": hint("Whether a repeated call changes nothing more."),
            "openWorldHint": hint("Whether the tool talks to the outside world."),
        },
    });
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "enabled": flag("Whether the tool exists for clients.", true),
            "name": text("Name that replaces the name on the wire in the shown name."),
            "title": text("Title that clients see."),
            "description": text("Description that clients see."),
            "arguments": {
                "description": "Changes to its arguments, by the name that the server uses.",
                "type": ["object", "null"], "additionalProperties": argument_override(),
            },
            "annotations": nullable(annotations),
        },
    })
}

fn argument_override() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "fixed": { "description": "Value that is always sent. Clients do not see the argument." },
            "hidden": flag("Whether clients neither see nor send the argument.", false),
            "name": text("Name that clients use."),
            "description": text("Description that clients see."),
            "default": { "description": "Value to send if the client omits the argument." },
        },
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

fn overrides() -> Value {
    json!({
        "description": "Changes to its tools, by name on the wire or glob: what clients see, and which arguments wharf fills in.",
        "type": ["object", "null"], "maxProperties": 500, "additionalProperties": tool_override(),
    })
}

fn defer_loading() -> Value {
    json!({
        "description": "Whether models have to find its tools: auto if they do not fit context.tool_budget, true always, false never.",
        "default": "auto", "anyOf": [{ "enum": ["auto", true, false, null] }, variable()],
    })
}

fn keyword(description: &str, keywords: &[&str], default: Option<&str>) -> Value {
    let mut schema = json!({ "description": description, "anyOf": [{ "enum": keywords }, variable(), { "type": "null" }] });
    if let Some(default) = default {
        schema["default"] = json!(default);
    }
    schema
}

fn flag(description: &str, default: bool) -> Value {
    json!({ "description": description, "default": default, "anyOf": [{ "type": ["boolean", "null"] }, variable()] })
}

/// A flag without a default.
fn hint(description: &str) -> Value {
    json!({ "description": description, "anyOf": [{ "type": ["boolean", "null"] }, variable()] })
}

fn integer(description: &str, bounds: Value) -> Value {
    bounded(description, "integer", bounds)
}

fn number(description: &str, bounds: Value) -> Value {
    bounded(description, "number", bounds)
}

fn seconds(description: &str) -> Value {
    number(description, json!({ "exclusiveMinimum": 0, "maximum": MAX_TIMEOUT_SECONDS }))
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
    use crate::raw::{
        RawAgent, RawAnnotations, RawApproval, RawArgumentOverride, RawAuth, RawContext, RawIdp,
        RawInstructions, RawLimits, RawLock, RawModel, RawOverride, RawRecord, RawResults, RawTool,
    };

    const OVERRIDE: &str = "/properties/tools/items/properties/overrides/additionalProperties/properties";

    #[test]
    fn schema_has_exactly_the_known_keys() {
        let schema = schema();
        for (pointer, keys) in [
            ("/properties", RawAgent::KEYS),
            ("/properties/model/properties", RawModel::KEYS),
            ("/properties/instructions/properties", RawInstructions::KEYS),
            ("/properties/limits/properties", RawLimits::KEYS),
            ("/properties/approval/properties", RawApproval::KEYS),
            ("/properties/context/properties", RawContext::KEYS),
            ("/properties/tools/items/properties", RawTool::KEYS),
            ("/properties/lock/anyOf/3/properties", RawLock::KEYS),
            ("/properties/results/properties", RawResults::KEYS),
            ("/properties/record/properties", RawRecord::KEYS),
            (OVERRIDE, RawOverride::KEYS),
            (&format!("{OVERRIDE}/annotations/properties"), RawAnnotations::KEYS),
            (&format!("{OVERRIDE}/arguments/additionalProperties/properties"), RawArgumentOverride::KEYS),
            ("/properties/tools/items/properties/auth/properties", RawAuth::KEYS),
            ("/properties/tools/items/properties/auth/properties/idp/properties", RawIdp::KEYS),
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
