//! Builds the entry for wharf in the format of each MCP client.

use super::toml;
use crate::import::Client;
use serde_json::{Map, Value, json};

/// An entry in a client's list of servers.
pub(super) struct ClientEntry {
    pub(super) value: Value,
}

impl ClientEntry {
    /// Builds an entry with which the client starts a program.
    pub(super) fn stdio(
        client: Client,
        program: &str,
        args: &[String],
        variable: Option<(String, String)>,
    ) -> ClientEntry {
        let mut entry = Map::new();
        if matches!(client, Client::ClaudeCode | Client::VsCode) {
            entry.insert("type".to_owned(), json!("stdio"));
        }
        entry.insert("command".to_owned(), json!(program));
        entry.insert("args".to_owned(), json!(args));
        let env: Map<String, Value> =
            variable.into_iter().map(|(name, value)| (name, json!(value))).collect();
        if !env.is_empty() || client == Client::Zed {
            entry.insert("env".to_owned(), Value::Object(env));
        }
        ClientEntry { value: Value::Object(entry) }
    }

    /// Builds an entry with which the client connects to a gateway. The file does not contain the token: it refers to
    /// an environment variable, in the syntax of each client.
    pub(super) fn http(client: Client, url: &str) -> Result<ClientEntry, String> {
        let bearer = |variable: &str| json!({ "Authorization": format!("Bearer {variable}") });
        let value = match client {
            Client::ClaudeCode => json!({ "type": "http", "url": url, "headers": bearer("${WHARF_TOKEN}") }),
            Client::VsCode => json!({ "type": "http", "url": url, "headers": bearer("${env:WHARF_TOKEN}") }),
            Client::Cursor => json!({ "url": url, "headers": bearer("${env:WHARF_TOKEN}") }),
            Client::Windsurf => json!({ "serverUrl": url, "headers": bearer("${env:WHARF_TOKEN}") }),
            Client::Codex => json!({ "url": url, "bearer_token_env_var": "WHARF_TOKEN" }),
            Client::Gemini => json!({ "httpUrl": url, "headers": bearer("$WHARF_TOKEN") }),
            Client::Claude => {
                return Err(no_http(client, "its file supports only servers that it starts itself"));
            }
            Client::Zed => {
                return Err(no_http(
                    client,
                    "its file cannot refer to a variable, so it would contain the token",
                ));
            }
        };
        Ok(ClientEntry { value })
    }

    /// Formats the entry as part of the client's file, for the user to copy.
    pub(super) fn snippet(&self, client: Client, name: &str) -> String {
        match client {
            Client::Codex => toml::table_text(client.section(), name, &self.value),
            _ => format!("{:#}\n", json!({ client.section(): { name: self.value } })),
        }
    }
}

fn no_http(client: Client, why: &str) -> String {
    format!("error: {} cannot be connected over HTTP: {why}\nhelp: leave `--http` out\n", client.title())
}
