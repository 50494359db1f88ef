//! The route table of the API: path, method, required role and description of every operation.
//!
//! The router and `/openapi.json` both use it, so that they always agree.

mod table;

use http::Method;
use percent_encoding::percent_decode_str;
pub(super) use table::ROUTES;
use wharf_config::Role;

/// The handler of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
    Console,
    ConsoleAsset,
    OpenSession,
    Session,
    EndSession,
    IssueTicket,
    Health,
    Ready,
    Metrics,
    OpenApi,
    Docs,
    DocsScript,
    DocsStyle,
    Mcp,
    Sse,
    WebSocket,
    Tools,
    Tool,
    SwitchTool,
    WhyTool,
    LockItems,
    LockFile,
    AcceptDefinition,
    WithdrawDefinition,
    Definitions,
    Results,
    Result,
    QueryResult,
    DeleteResult,
    ExplainSource,
    AgentFile,
    CheckAgentFile,
    Tokens,
    Import,
    CallTool,
    Stats,
    Logs,
    Clients,
    Running,
    CancelCall,
    Calls,
    Call,
    Connections,
    Restart,
    Breakers,
    Reset,
    Prompts,
    FillIn,
    Sources,
    Source,
    Register,
    ChangeSource,
    RemoveSource,
    RefreshSource,
    Events,
    Chat,
    Conversations,
    CreateConversation,
    Conversation,
    RenameConversation,
    DeleteConversation,
    Entries,
    ConversationResult,
    ConversationStream,
    CancelRun,
    Approvals,
    Decide,
    ChatUi,
    ChatAgUi,
    Completions,
    Models,
    Model,
}

/// One method of one path.
#[derive(Debug)]
pub(super) struct Operation {
    pub(super) route: Route,
    pub(super) method: Method,
    /// A segment in braces matches any one segment.
    pub(super) path: &'static str,
    /// Required role; `None` needs no token.
    pub(super) role: Option<Role>,
    pub(super) about: About,
}

/// Description of an operation. The names of schemas and parameters refer to `openapi/components.json`.
#[derive(Debug)]
pub(super) struct About {
    pub(super) id: &'static str,
    pub(super) summary: &'static str,
    pub(super) parameters: &'static [&'static str],
    /// Schema of the request body.
    pub(super) body: Option<&'static str>,
    /// Successful responses: status, media type, schema.
    pub(super) answers: &'static [(u16, &'static str, &'static str)],
    /// Error statuses that are specific to this operation.
    pub(super) problems: &'static [u16],
}

/// Result of a route lookup.
#[derive(Debug)]
pub(super) enum RouteMatch {
    Operation(&'static Operation, PathSegment),
    /// The path exists, but not with this method: the allowed methods.
    OtherMethods(String),
    Nothing,
}

/// The decoded segment that the braces matched; `None` if it is not UTF-8.
pub(super) type PathSegment = Option<String>;

/// Finds the operation for a method and path.
pub(super) fn find(method: &Method, path: &str) -> RouteMatch {
    let mut others = String::new();
    for operation in ROUTES {
        let Some(segment) = match_path(operation.path, path) else { continue };
        if operation.method == *method {
            return RouteMatch::Operation(
                operation,
                percent_decode_str(segment).decode_utf8().ok().map(Into::into),
            );
        }
        let comma = if others.is_empty() { "" } else { ", " };
        others = others + comma + operation.method.as_str();
    }
    if others.is_empty() { RouteMatch::Nothing } else { RouteMatch::OtherMethods(others) }
}

/// Returns the segment that the braces of `pattern` match, or an empty string if it has none. With two pairs of braces,
/// returns everything from the first segment to the second. Returns `None` if `path` does not match.
fn match_path<'a>(pattern: &str, path: &'a str) -> Option<&'a str> {
    let Some((before, after)) = pattern.split_once('{') else { return (pattern == path).then_some("") };
    let after = after.split_once('}').map_or("", |(_, after)| after);
    let path = path.strip_prefix(before)?;
    let is_segment = |it: &str| !it.is_empty() && !it.contains('/');
    if let Some((between, _)) = after.split_once('{') {
        let (first, second) = path.split_once(between)?;
        return (is_segment(first) && is_segment(second)).then_some(path);
    }
    path.strip_suffix(after).filter(|it| is_segment(it))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_map_to_operations() {
        for (method, path, expected) in [
            (Method::GET, "/health", "Health"),
            (Method::POST, "/health", "GET"),
            (Method::GET, "/api/v1/tools", "Tools"),
            (Method::GET, "/api/v1/tools/", ""),
            (Method::GET, "/api/v1/tools/a%2Fb", "Tool a/b"),
            (Method::POST, "/api/v1/tools/a:b/call", "CallTool a:b"),
            (Method::GET, "/api/v1/tools/a:b/call", "POST"),
            (Method::PUT, "/api/v1/tools/call", "GET, PATCH"),
            (Method::POST, "/api/v1/tools//call", ""),
            (Method::GET, "/api/v1/tools/a/b", ""),
            (Method::GET, "/api/v1/tools/..", "Tool .."),
            (Method::GET, "/api/v1/conversations/c/results/r-1", "ConversationResult c/results/r-1"),
            (Method::GET, "/api/v1/conversations/c/results/", ""),
            (Method::GET, "/api/v1/conversations//results/r-1", ""),
            (Method::GET, "/api/v1/conversations/c/results/r/1", ""),
            (Method::PUT, "/mcp", "POST, GET, DELETE"),
            (Method::GET, "//evil.example", ""),
            (Method::GET, "/health;/admin", ""),
        ] {
            let found = match find(&method, path) {
                RouteMatch::Operation(it, segment) => {
                    format!("{:?} {}", it.route, segment.unwrap_or_default()).trim_end().to_owned()
                }
                RouteMatch::OtherMethods(others) => others,
                RouteMatch::Nothing => String::new(),
            };
            assert_eq!(found, expected, "{method} {path}");
        }
    }
}
