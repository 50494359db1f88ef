//! Every address that the gateway answers at, once: what it does, who may, and how it is described.
//!
//! The router looks requests up here and `/openapi.json` is written from here, so that neither can know an address that
//! the other does not.

mod table;

use http::Method;
use percent_encoding::percent_decode_str;
pub(super) use table::ROUTES;
use wharf_runtime::config::Role;

/// What is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Route {
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
    CallTool,
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
}

/// One address and method.
#[derive(Debug)]
pub(super) struct Operation {
    pub(super) route: Route,
    pub(super) method: Method,
    /// A word in braces stands for any word.
    pub(super) path: &'static str,
    /// Who may; without one, everybody.
    pub(super) role: Option<Role>,
    pub(super) about: About,
}

/// How an operation is described. Schemas and parameters are named as `openapi/components.json` has them.
#[derive(Debug)]
pub(super) struct About {
    pub(super) id: &'static str,
    pub(super) summary: &'static str,
    pub(super) parameters: &'static [&'static str],
    /// What is sent.
    pub(super) body: Option<&'static str>,
    /// What comes back when all is well: the status, the kind of document, its schema.
    pub(super) answers: &'static [(u16, &'static str, &'static str)],
    /// The statuses of problems that are this operation's own.
    pub(super) problems: &'static [u16],
}

/// What was found at an address.
#[derive(Debug)]
pub(super) enum Found {
    Operation(&'static Operation, Word),
    /// There is something, but not for this method.
    OtherMethods(String),
    Nothing,
}

/// The word of the path that the braces stand for, as it is meant; `None` if it is no text.
pub(super) type Word = Option<String>;

/// What is at this address.
pub(super) fn find(method: &Method, path: &str) -> Found {
    let mut others = String::new();
    for operation in ROUTES {
        let Some(word) = fits(operation.path, path) else { continue };
        if operation.method == *method {
            return Found::Operation(operation, percent_decode_str(word).decode_utf8().ok().map(Into::into));
        }
        let comma = if others.is_empty() { "" } else { ", " };
        others = others + comma + operation.method.as_str();
    }
    if others.is_empty() { Found::Nothing } else { Found::OtherMethods(others) }
}

/// The word of `path` that the braces of `pattern` stand for, or nothing where it has none; `None` if it does not fit.
fn fits<'a>(pattern: &str, path: &'a str) -> Option<&'a str> {
    let Some((before, after)) = pattern.split_once('{') else { return (pattern == path).then_some("") };
    let after = after.split_once('}').map_or("", |(_, after)| after);
    let word = path.strip_prefix(before)?.strip_suffix(after)?;
    (!word.is_empty() && !word.contains('/')).then_some(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_found() {
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
            (Method::PUT, "/mcp", "POST, GET, DELETE"),
            (Method::GET, "//evil.example", ""),
            (Method::GET, "/health;/admin", ""),
        ] {
            let found = match find(&method, path) {
                Found::Operation(it, word) => {
                    format!("{:?} {}", it.route, word.unwrap_or_default()).trim_end().to_owned()
                }
                Found::OtherMethods(others) => others,
                Found::Nothing => String::new(),
            };
            assert_eq!(found, expected, "{method} {path}");
        }
    }
}
