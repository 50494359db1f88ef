//! The table of routes.

use super::{About, Operation, Route};
use http::Method;
use wharf_config::Role;

const JSON: &str = "application/json";
const RECORD: &str = crate::api::CALL_RECORD;
const TEXT: &str = "text/plain; charset=utf-8";
const EVENTS: &str = "text/event-stream";
const PLAIN: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Statuses of calls that end without a result.
const CALL: &[u16] = &[404, 408, 409, 413, 415, 422, 429, 502, 503, 504];

/// Responses of a chat completion.
const OPENAI_ANSWERS: &[(u16, &str, &str)] = &[
    (200, EVENTS, "EventStream"),
    (200, JSON, "Completion"),
    (400, JSON, "OpenAiError"),
    (401, JSON, "OpenAiError"),
    (403, JSON, "OpenAiError"),
    (404, JSON, "OpenAiError"),
    (408, JSON, "OpenAiError"),
    (409, JSON, "OpenAiError"),
    (413, JSON, "OpenAiError"),
    (415, JSON, "OpenAiError"),
    (422, JSON, "OpenAiError"),
    (429, JSON, "OpenAiError"),
    (502, JSON, "OpenAiError"),
    (503, JSON, "OpenAiError"),
    (504, JSON, "OpenAiError"),
];

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
        open!($route $method $path, $id: $summary, &[], $answers, &[])
    };
    ($route:ident $method:ident $path:literal, $id:literal: $summary:literal, $parameters:expr, $answers:expr,
     $problems:expr) => {
        operation!(None, $route $method $path, $id: $summary, $parameters, None, $answers, $problems)
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
    needs!(Viewer, WhyTool GET "/api/v1/tools/{tool_id}/why", "whyTool": "Explains whether a tool can be called",
        &["tool_id", "for", "whose"], None, &[(200, JSON, "ToolExplanation")], &[404]),
    needs!(Viewer, Definitions GET "/api/v1/tools/{tool_id}/definitions", "listDefinitions":
        "Lists the latest 20 editions of a tool's definition, newest first",
        &["tool_id"], None, &[(200, JSON, "Definitions")], &[404, 503]),
    needs!(Operator, SwitchTool PATCH "/api/v1/tools/{tool_id}", "switchTool": "Enables or disables a tool",
        &["tool_id"], Some("ToolChange"), &[(200, JSON, "Tool")], &[404, 408, 413, 415, 503]),
    needs!(Caller, Results GET "/api/v1/results", "listResults": "Lists your stored results, the latest first",
        &["source", "limit", "cursor"], None, &[(200, JSON, "StoredResults")], &[503]),
    needs!(Caller, Result GET "/api/v1/results/{result_id}", "getResult": "Returns a stored result, or a range of its bytes",
        &["result_id", "Range"], None,
        &[(200, JSON, "Anything"), (200, TEXT, "Text"), (206, JSON, "Text"), (206, TEXT, "Text")], &[404, 416, 503]),
    needs!(Caller, QueryResult POST "/api/v1/results/{result_id}/query", "queryResult": "Runs a jq expression over a stored result",
        &["result_id"], Some("ResultQuery"), &[(200, JSON, "QueryOutput")], &[404, 408, 413, 415, 422, 503]),
    needs!(Caller, DeleteResult DELETE "/api/v1/results/{result_id}", "deleteResult": "Deletes a stored result",
        &["result_id"], None, &[(204, "", "")], &[404, 503]),
    needs!(Viewer, LockItems GET "/api/v1/lock", "listLock": "Lists what locked servers offer, and how it differs from the lock",
        &["source", "lock_kind", "lock_state", "limit", "cursor"], None, &[(200, JSON, "LockItems")], &[503]),
    needs!(Viewer, LockFile GET "/api/v1/lock/file", "getLockFile": "Returns the lock with the accepted definitions",
        &[], None, &[(200, JSON, "Anything")], &[404]),
    needs!(Admin, AcceptDefinition POST "/api/v1/lock/accepted", "acceptDefinition": "Accepts the current definition of a tool, prompt or template, or instructions",
        &[], Some("Acceptance"), &[(201, JSON, "LockItem")], &[404, 408, 409, 413, 415, 503]),
    needs!(Admin, WithdrawDefinition DELETE "/api/v1/lock/accepted/{tool_id}", "withdrawDefinition": "Withdraws an accepted definition",
        &["accepted_id", "lock_kind"], None, &[(200, JSON, "Done")], &[404, 409, 503]),
    needs!(Viewer, Calls GET "/api/v1/calls", "listCalls": "Lists the recorded calls, newest first",
        &["source", "tool", "tool_name", "thread_id", "status", "words", "since", "until", "via", "principal", "error_type", "min_ms",
          "limit", "cursor"], None, &[(200, JSON, "Calls")], &[503]),
    needs!(Viewer, Call GET "/api/v1/calls/{request_id}", "getCall": "Shows one call",
        &["request_id"], None, &[(200, JSON, "Call")], &[404, 503]),
    needs!(Viewer, Running GET "/api/v1/running", "listRunning": "Lists the calls in flight, the oldest first",
        &["source", "limit", "cursor"], None, &[(200, JSON, "RunningCalls")], &[]),
    needs!(Operator, CancelCall DELETE "/api/v1/running/{request_id}", "cancelCall": "Cancels a call in flight",
        &["request_id"], None, &[(204, "", "")], &[404]),
    needs!(Viewer, Stats GET "/api/v1/stats", "getStats": "Shows calls, failures and durations over time",
        &["window", "step", "source", "by"], None, &[(200, JSON, "Stats")], &[]),
    needs!(Viewer, Logs GET "/api/v1/logs", "listLogs":
        "Lists the latest log lines of the servers and of wharf itself, newest first",
        &["source", "level", "line_kind", "line_words", "since", "limit", "line_cursor"], None, &[(200, JSON, "LogLines")], &[]),
    needs!(Viewer, Clients GET "/api/v1/clients", "listClients": "Lists the MCP clients of the last 10 minutes",
        &["limit", "cursor"], None, &[(200, JSON, "Clients")], &[]),
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
    needs!(Operator, ExplainSource GET "/api/v1/sources/{id}/explain", "explainSource":
        "Shows the resolved configuration of a source, with names of variables and never values",
        &["id"], None, &[(200, JSON, "Explanation")], &[404, 503]),
    needs!(Admin, AgentFile GET "/api/v1/agent", "getAgentFile": "Shows the agent file, without secrets, and its diagnostics",
        &[], None, &[(200, JSON, "AgentFile")], &[]),
    needs!(Admin, CheckAgentFile POST "/api/v1/check", "checkAgentFile":
        "Checks the text of an agent file; reads no file and no variable, and changes nothing",
        &[], Some("CheckRequest"), &[(200, JSON, "CheckReport")], &[408, 413, 415]),
    needs!(Admin, Import POST "/api/v1/import", "importText":
        "Finds servers in a manifest or in another client's configuration; changes nothing",
        &[], Some("ImportRequest"), &[(200, JSON, "ImportReport")], &[408, 413, 415]),
    needs!(Admin, Tokens GET "/api/v1/tokens", "listTokens": "Lists the tokens by name, without their values",
        &["limit", "cursor"], None, &[(200, JSON, "Tokens")], &[503]),
    needs!(Operator, RefreshSource POST "/api/v1/sources/{id}/refresh", "refreshSource":
        "Reads the lists of a source again",
        &["id"], None, &[(200, JSON, "Inventory")], &[404, 415, 502, 503, 504]),
    needs!(Viewer, Events GET "/api/v1/events", "events": "Streams events as they happen",
        &["source", "kind", "pace"], None, &[(200, EVENTS, "EventStream")], &[503]),
    needs!(Caller, Chat POST "/api/v1/chat", "chat": "Sends a message to the agent",
        &["IdempotencyKey"], Some("ChatRequest"), &[(200, EVENTS, "ChatEvent"), (200, JSON, "ChatResult"), (409, JSON, "ChatResult"),
            (422, JSON, "ChatResult"), (429, JSON, "ChatResult"), (502, JSON, "ChatResult"), (503, JSON, "ChatResult"),
            (504, JSON, "ChatResult")],
        &[404, 408, 409, 413, 415, 422, 429, 502, 503, 504]),
    needs!(Caller, Conversations GET "/api/v1/conversations", "listConversations": "Lists your conversations, the latest first; operators see all",
        &["q", "limit", "cursor"], None, &[(200, JSON, "Conversations")], &[503]),
    needs!(Caller, CreateConversation POST "/api/v1/conversations", "createConversation": "Creates a conversation",
        &[], Some("NewConversation"), &[(201, JSON, "Conversation")], &[408, 413, 415, 503]),
    needs!(Caller, Conversation GET "/api/v1/conversations/{conversation_id}", "getConversation": "Shows one conversation",
        &["conversation_id"], None, &[(200, JSON, "Conversation")], &[404, 503]),
    needs!(Caller, RenameConversation PATCH "/api/v1/conversations/{conversation_id}", "renameConversation": "Renames a conversation",
        &["conversation_id"], Some("ConversationChange"), &[(200, JSON, "Conversation")], &[404, 408, 413, 415, 503]),
    needs!(Caller, DeleteConversation DELETE "/api/v1/conversations/{conversation_id}", "deleteConversation":
        "Deletes a conversation and everything that is kept of it, except the calls in the journal",
        &["conversation_id"], None, &[(204, "", "")], &[404, 409, 503]),
    needs!(Caller, Entries GET "/api/v1/conversations/{conversation_id}/entries", "listEntries": "Lists the entries of a conversation",
        &["conversation_id", "limit", "cursor"], None, &[(200, JSON, "Entries")], &[404, 503]),
    needs!(Caller, ConversationResult GET "/api/v1/conversations/{conversation_id}/results/{handle}", "getConversationResult":
        "Returns a stored result of a conversation, or a range of its bytes",
        &["conversation_id", "handle", "Range"], None,
        &[(200, JSON, "Anything"), (200, TEXT, "Text"), (206, JSON, "Text"), (206, TEXT, "Text")], &[404, 416, 503]),
    needs!(Caller, ConversationStream GET "/api/v1/conversations/{conversation_id}/stream", "streamConversation":
        "Streams the run under way, after the event in `Last-Event-ID`",
        &["conversation_id", "LastEventId"], None, &[(200, EVENTS, "ChatEvent"), (204, "", "")], &[404, 503]),
    needs!(Caller, CancelRun POST "/api/v1/conversations/{conversation_id}/cancel", "cancelRun": "Cancels the run under way",
        &["conversation_id"], None, &[(202, JSON, "Done")], &[404, 409, 415, 503]),
    needs!(Caller, Approvals GET "/api/v1/approvals", "listApprovals": "Lists the calls that wait for your decision, and questions of servers; operators see all",
        &["limit", "cursor"], None, &[(200, JSON, "Approvals")], &[503]),
    needs!(Caller, Decide POST "/api/v1/approvals/{approval_id}", "decideApproval": "Allows or denies a call, or answers a server",
        &["approval_id"], Some("ApprovalAnswer"), &[(200, JSON, "Approval")], &[404, 408, 409, 413, 415, 422, 503]),
    needs!(Caller, ChatUi POST "/api/v1/chat/ui", "chatUi": "Sends a message to the agent, in the AI SDK's UI message stream",
        &[], Some("UiChatRequest"), &[(200, EVENTS, "EventStream")], &[404, 408, 409, 413, 415, 422, 429, 503]),
    needs!(Caller, ChatAgUi POST "/api/v1/chat/ag-ui", "chatAgUi": "Sends a message to the agent, in the protocol AG-UI",
        &[], Some("AgUiRequest"), &[(200, EVENTS, "EventStream")], &[404, 408, 409, 413, 415, 422, 429, 503]),
    needs!(Caller, Completions POST "/v1/chat/completions", "createChatCompletion": "Sends messages to the agent, in OpenAI's protocol",
        &[], Some("CompletionRequest"), OPENAI_ANSWERS, &[]),
    needs!(Caller, Models GET "/v1/models", "listModels": "Lists the names of the agent, in OpenAI's protocol",
        &[], None, &[(200, JSON, "Models"), (400, JSON, "OpenAiError"), (401, JSON, "OpenAiError"), (403, JSON, "OpenAiError")], &[]),
    needs!(Caller, Model GET "/v1/models/{model}", "retrieveModel": "Returns one name of the agent, in OpenAI's protocol",
        &["model"], None,
        &[(200, JSON, "Model"), (400, JSON, "OpenAiError"), (401, JSON, "OpenAiError"), (403, JSON, "OpenAiError"), (404, JSON, "OpenAiError")],
        &[]),
    needs!(Viewer, Metrics GET "/metrics", "metrics": "Returns metrics for Prometheus",
        &[], None, &[(200, PLAIN, "Text")], &[]),
    needs!(Viewer, OpenApi GET "/openapi.json", "openApi": "Returns this OpenAPI document",
        &[], None, &[(200, JSON, "Anything")], &[]),
    needs!(Viewer, OpenSession POST "/api/v1/session", "openSession":
        "Trades a ticket or a token for a session of the console",
        &[], None, &[(201, JSON, "NewSession")], &[409, 415, 503]),
    needs!(Viewer, Session GET "/api/v1/session", "getSession": "Shows who is signed in, and to what",
        &[], None, &[(200, JSON, "Session")], &[503]),
    needs!(Viewer, EndSession DELETE "/api/v1/session", "endSession": "Ends the session",
        &[], None, &[(204, "", "")], &[409, 503]),
    needs!(Viewer, IssueTicket POST "/api/v1/tickets", "issueTicket":
        "Issues a ticket, which buys one session within 5 minutes",
        &[], None, &[(201, JSON, "Ticket")], &[409, 415, 429, 503]),
    open!(Console GET "/", "console": "Returns the console, a web page",
        &[(200, "text/html; charset=utf-8", "Text"), (304, "", "")]),
    open!(ConsoleAsset GET "/assets/{file}", "consoleAsset": "Returns a file of the console",
        &["file"], &[(200, "*/*", "Text"), (304, "", "")], &[404]),
    open!(Docs GET "/docs", "docs": "Shows this document as a web page", &[(200, "text/html; charset=utf-8", "Text")]),
    open!(DocsScript GET "/docs/page.js", "docsScript": "The script of the web page",
        &[(200, "text/javascript; charset=utf-8", "Text")]),
    open!(DocsStyle GET "/docs/page.css", "docsStyle": "The style sheet of the web page",
        &[(200, "text/css; charset=utf-8", "Text")]),
];
