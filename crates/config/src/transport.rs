//! The transports of an entry: their names in `transport:`, and the keys that each of them uses.

use crate::{
    launch::spec::is_scoped_npm,
    node::{Node, Value},
};

/// Names of the transports.
pub(crate) const TRANSPORTS: [&str; 4] = ["stdio", "sse", "websocket", "http"];

/// Keys that belong to specific transports.
const TRANSPORT_KEYS: [&str; 12] = [
    "command",
    "args",
    "env",
    "inherit_env",
    "encoding",
    "url",
    "headers",
    "auth",
    "timeout",
    "sse_read_timeout",
    "terminate_on_close",
    "install_timeout",
];

/// Transport of an entry.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    Builtin,
    Stdio,
    Sse,
    WebSocket,
    Http,
}

impl Transport {
    /// Returns the transport with this name in `transport:`.
    pub(crate) fn named(name: &str) -> Option<Transport> {
        match name {
            "stdio" => Some(Transport::Stdio),
            "sse" => Some(Transport::Sse),
            "websocket" => Some(Transport::WebSocket),
            "http" | "streamable_http" | "streamable-http" => Some(Transport::Http),
            _ => None,
        }
    }

    /// Returns the transport-specific keys that this transport uses.
    pub(crate) fn used_keys(self) -> &'static [&'static str] {
        match self {
            Transport::Builtin => &["command"],
            Transport::Stdio => &["command", "args", "env", "inherit_env", "encoding", "install_timeout"],
            Transport::Sse => &["url", "headers", "auth", "timeout", "sse_read_timeout"],
            Transport::WebSocket => &["url"],
            Transport::Http => {
                &["url", "headers", "auth", "timeout", "sse_read_timeout", "terminate_on_close"]
            }
        }
    }
}

/// Returns the keys that this entry's transport does not use. Returns none if the transport is not clear yet.
pub(crate) fn unused_keys(node: &Node) -> Vec<&'static str> {
    let text = |key: &str| match node.child(key).map(|it| &it.value) {
        Some(Value::Str(it)) => it.text.expose(),
        _ => "",
    };
    let transport = match (text("transport"), text("command"), text("server")) {
        ("", "", server) if !is_scoped_npm(server) => None,
        ("", ..) => Some(Transport::Stdio),
        (name, ..) => Transport::named(name),
    };
    let Some(transport) = transport else { return Vec::new() };
    TRANSPORT_KEYS.into_iter().filter(|it| !transport.used_keys().contains(it)).collect()
}
