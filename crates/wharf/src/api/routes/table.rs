//! The table of routes.

use super::{About, Operation, Route};
use http::Method;
use wharf_config::Role;

const JSON: &str = "application/json";
const RECORD: &str = crate::api::CALL_RECORD;
const EVENTS: &str = "text/event-stream";
const PLAIN: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Statuses of calls that end without a result.
const CALL: &[u16] = &[404, 408, 409, 413, 415, 422, 429, 502, 503, 504];

/// An operation that requires a role.
macro_rules! needs {
    ($role:ident, $route:ident $method:ident $path:literal, $id:literal: $summary:literal,
     $parameters:expr, $body:expr, $answers:expr, $problems:expr) => {
        operation!(Some(Role::$role), $route $method $path, $id: $summary, $parameters, $body, $answers, $problems)
    };
}

/// An operation that needs no token.
macro_rules! open {
    ($route:ident $method:ident $path:literal, $id:literal: $summary:literal, $answers:expr) => {
        operation!(None, $route $method $path, $id: $summary, &[], None, $answers, &[])
    };
}

macro_rules! operation {
    ($role:expr, $route:ident $method:ident $path:literal, $id:literal: $summary:literal,
     $parameters:expr, $body:expr, $answers:expr, $problems:expr) => {
        Operation {
            route: Route::$route,
            method: Method::$method,
            path: $path,
            role: $role,
            about: About {
                id: $id,
                summary: $summary,
                parameters: $parameters,
                body: $body,
                answers: $answers,
                problems: $problems,
            },
        }
    };
}

/// All operations. The most frequent ones are first, because the lookup is linear.
pub(in crate::api) static ROUTES: &[Operation] = &[
    needs!(Caller, Mcp POST "/mcp", "mcp": "Sends a message to the MCP endpoint, in either era",
        &[], Some("McpMessage"),
        &[(200, JSON, "McpMessage"), (200, EVENTS, "EventStream"), (202, "", "")],
        &[404, 406, 408, 413, 415, 503]),
    needs!(Caller, Mcp GET "/mcp", "mcpListen": "Opens the notification stream of an MCP session",
        &["McpSession"], None, &[(200, EVENTS, "EventStream")], &[404, 405, 406]),
    needs!(Caller, Mcp DELETE "/mcp", "mcpLeave": "Ends an MCP session",
        &["McpSession"], None, &[(204, "", "")], &[404, 405, 406]),
    needs!(Caller, CallTool POST "/api/v1/tools/{tool_id}/call", "callTool": "Calls a tool",
        &["tool_id", "IdempotencyKey"], Some("CallRequest"),
        &[(200, JSON, "CallReport"), (200, RECORD, "CallRecord")], CALL),
    needs!(Caller, Sse GET "/sse", "sse": "Opens MCP over HTTP with server-sent events, as of 2024-11-05",
        &[], None, &[(200, EVENTS, "EventStream")], &[503]),
    needs!(Caller, Sse POST "/messages", "messages": "Sends a message to a stream of `/sse`",
        &["sessionId"], Some("McpMessage"), &[(202, "", "")], &[404, 408, 413, 415]),
    needs!(Caller, WebSocket GET "/ws", "webSocket": "Upgrades the connection to MCP over a WebSocket",
        &[], None, &[(101, "", "")], &[426]),
    open!(Health GET "/health", "health": "Reports that the gateway is alive", &[(200, JSON, "Status")]),
    open!(Ready GET "/ready", "ready": "Reports whether the gateway accepts new work",
        &[(200, JSON, "Status"), (503, JSON, "Status")]),
    needs!(Viewer, Tools GET "/api/v1/tools", "listTools": "Lists the tools of all servers",
        &["source", "q", "enabled", "limit", "cursor"], None, &[(200, JSON, "Tools")], &[]),
    needs!(Viewer, Tool GET "/api/v1/tools/{tool_id}", "getTool": "Shows one tool",
        &["tool_id"], None, &[(200, JSON, "Tool")], &[404]),
    needs!(Operator, SwitchTool PATCH "/api/v1/tools/{tool_id}", "switchTool": "Enables or disables a tool",
        &["tool_id"], Some("ToolChange"), &[(200, JSON, "Tool")], &[404, 408, 413, 415, 503]),
    needs!(Viewer, Calls GET "/api/v1/calls", "listCalls": "Lists the recorded calls, newest first",
        &["source", "tool", "tool_name", "thread_id", "status", "limit", "cursor"], None, &[(200, JSON, "Calls")], &[503]),
    needs!(Viewer, Call GET "/api/v1/calls/{request_id}", "getCall": "Shows one call",
        &["request_id"], None, &[(200, JSON, "Call")], &[404, 503]),
    needs!(Viewer, Connections GET "/api/v1/connections", "listConnections": "Lists the connection status of each server",
        &["source", "limit", "cursor"], None, &[(200, JSON, "Connections")], &[]),
    needs!(Operator, Restart POST "/api/v1/connections/{name}/restart", "restartConnection":
        "Closes the session of a server; the next call opens a new one",
        &["name"], None, &[(200, JSON, "Done")], &[404, 415]),
    needs!(Viewer, Breakers GET "/api/v1/breakers", "listBreakers": "Lists the circuit breakers",
        &["source", "limit", "cursor"], None, &[(200, JSON, "Breakers")], &[]),
    needs!(Operator, Reset POST "/api/v1/breakers/{name}/reset", "resetBreaker": "Closes a circuit breaker",
        &["name"], None, &[(200, JSON, "Done")], &[404, 415]),
    needs!(Viewer, Prompts GET "/api/v1/prompts", "listPrompts": "Lists the prompts of all servers",
        &["source", "q", "limit", "cursor"], None, &[(200, JSON, "Prompts")], &[]),
    needs!(Caller, FillIn POST "/api/v1/prompts/{prompt}", "fillInPrompt": "Fills in a prompt",
        &["prompt"], Some("PromptRequest"), &[(200, JSON, "PromptResult")], &[404, 408, 413, 415, 429, 502, 503, 504]),
    needs!(Viewer, Sources GET "/api/v1/sources", "listSources": "Lists the sources",
        &["q", "limit", "cursor"], None, &[(200, JSON, "Sources")], &[]),
    needs!(Viewer, Source GET "/api/v1/sources/{id}", "getSource": "Shows one source",
        &["id"], None, &[(200, JSON, "Source")], &[404, 503]),
    needs!(Admin, Register POST "/api/v1/sources", "registerSource": "Registers a source",
        &[], Some("SourceRequest"), &[(201, JSON, "Source")], &[408, 409, 413, 415, 503]),
    needs!(Admin, ChangeSource PATCH "/api/v1/sources/{id}", "changeSource": "Changes a registered source",
        &["id", "IfMatch"], Some("SourceChange"), &[(200, JSON, "Source")], &[404, 408, 409, 413, 415, 503]),
    needs!(Admin, RemoveSource DELETE "/api/v1/sources/{id}", "removeSource": "Removes a registered source",
        &["id"], None, &[(204, "", "")], &[404, 409, 503]),
    needs!(Operator, RefreshSource POST "/api/v1/sources/{id}/refresh", "refreshSource":
        "Reads the lists of a source again",
        &["id"], None, &[(200, JSON, "Inventory")], &[404, 415, 502, 503, 504]),
    needs!(Viewer, Events GET "/api/v1/events", "events": "Streams events as they happen",
        &["source", "kind"], None, &[(200, EVENTS, "EventStream")], &[503]),
    needs!(Viewer, Metrics GET "/metrics", "metrics": "Returns metrics for Prometheus",
        &[], None, &[(200, PLAIN, "Text")], &[]),
    needs!(Viewer, OpenApi GET "/openapi.json", "openApi": "Returns this OpenAPI document",
        &[], None, &[(200, JSON, "Anything")], &[]),
    open!(Docs GET "/docs", "docs": "Shows this document as a web page", &[(200, "text/html; charset=utf-8", "Text")]),
    open!(DocsScript GET "/docs/page.js", "docsScript": "The script of the web page",
        &[(200, "text/javascript; charset=utf-8", "Text")]),
    open!(DocsStyle GET "/docs/page.css", "docsStyle": "The style sheet of the web page",
        &[(200, "text/css; charset=utf-8", "Text")]),
];
