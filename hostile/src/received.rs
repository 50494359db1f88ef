//! One client message, and the response of a good server to it.

use crate::options::{Era, ServerOptions};
use serde_json::{Value, json};

pub(crate) const MODERN: &str = "2026-07-28";
const LEGACY: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];

/// A message from the client.
#[derive(Clone, Debug)]
pub(crate) struct ReceivedMessage {
    pub(crate) options: ServerOptions,
    pub(crate) message: Value,
    /// Address that the client connected to; empty over stdio.
    pub(crate) host: String,
}

impl ReceivedMessage {
    pub(crate) fn read(options: &ServerOptions, host: &str, text: &[u8]) -> Option<ReceivedMessage> {
        let message: Value = serde_json::from_slice(text).ok()?;
        message.is_object().then(|| ReceivedMessage {
            options: options.clone(),
            message,
            host: host.to_owned(),
        })
    }

    /// A placeholder for actions that happen before the first message.
    pub(crate) fn nothing(options: &ServerOptions, host: &str) -> ReceivedMessage {
        ReceivedMessage { options: options.clone(), message: Value::Null, host: host.to_owned() }
    }

    pub(crate) fn id(&self) -> &Value {
        &self.message["id"]
    }

    pub(crate) fn is_request(&self) -> bool {
        self.message.get("method").is_some() && self.message.get("id").is_some()
    }

    pub(crate) fn method(&self) -> &str {
        self.message["method"].as_str().unwrap_or_default()
    }

    pub(crate) fn nonce(&self) -> &str {
        self.message["params"]["arguments"]["nonce"].as_str().unwrap_or_default()
    }

    fn is_modern(&self) -> bool {
        self.message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] == MODERN
    }

    /// Encodes a response with this result.
    pub(crate) fn result(&self, result: Value) -> String {
        json!({ "jsonrpc": "2.0", "id": self.id(), "result": self.add_modern_members(result) }).to_string()
    }

    pub(crate) fn error(&self, code: i64, message: &str) -> String {
        json!({ "jsonrpc": "2.0", "id": self.id(), "error": { "code": code, "message": message } })
            .to_string()
    }

    /// Encodes a response whose result is the nonce of the request.
    pub(crate) fn echo(&self) -> String {
        self.result(text(self.nonce()))
    }

    /// Encodes the response of a good server.
    pub(crate) fn answer(&self) -> String {
        match self.method() {
            "server/discover" => self.discovery(),
            "initialize" => self.initialization(),
            "tools/list" => self.result(json!({ "tools": [tool("echo")] })),
            "tools/call" if self.message["params"]["name"] == "echo" => self.echo(),
            "tools/call" => self.error(-32602, "unknown tool"),
            "ping" => self.result(json!({})),
            _ => self.error(-32601, "method not found"),
        }
    }

    /// Adds the fields that every result must have in the 2026-07-28 era.
    fn add_modern_members(&self, mut result: Value) -> Value {
        if self.is_modern() && result.is_object() && result.get("resultType").is_none() {
            result["resultType"] = json!("complete");
            result["ttlMs"] = json!(0);
            result["cacheScope"] = json!("private");
        }
        result
    }

    pub(crate) fn discovery(&self) -> String {
        let versions = match self.options.era {
            Era::Legacy => return self.error(-32601, "method not found"),
            Era::Modern => vec![MODERN],
            Era::Dual => [MODERN].into_iter().chain(LEGACY).collect(),
        };
        self.result(json!({
            "supportedVersions": versions,
            "capabilities": { "tools": {} },
            "_meta": { "io.modelcontextprotocol/serverInfo": server() },
        }))
    }

    pub(crate) fn initialization(&self) -> String {
        if self.options.era == Era::Modern {
            let data =
                json!({ "supported": [MODERN], "requested": self.message["params"]["protocolVersion"] });
            let error = json!({ "code": -32022, "message": "unsupported protocol version", "data": data });
            return json!({ "jsonrpc": "2.0", "id": self.id(), "error": error }).to_string();
        }
        let wanted = self.message["params"]["protocolVersion"].as_str().unwrap_or_default();
        let known = LEGACY.into_iter().find(|version| *version == wanted).unwrap_or(LEGACY[0]);
        let version = self.options.version.as_deref().unwrap_or(known);
        self.result(json!({
            "protocolVersion": version,
            "capabilities": { "tools": { "listChanged": true } },
            "serverInfo": server(),
        }))
    }
}

/// Builds a tool result with one text block.
pub(crate) fn text(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

/// Builds a valid tool definition.
pub(crate) fn tool(name: &str) -> Value {
    json!({
        "name": name,
        "description": "echoes its nonce",
        "inputSchema": { "type": "object", "properties": { "nonce": { "type": "string" } } },
    })
}

fn server() -> Value {
    json!({ "name": "hostile", "version": "1" })
}
