//! Reads the description of one server in another client's format. Does not know how wharf converts it.

use serde_json::Value;

/// Maximum number of arguments, variables or headers. A longer list is not a plausible server description.
const MAX_VALUES: usize = 1000;

/// A server's description. Keeps unknown keys and errors separately.
#[derive(Default)]
pub(super) struct ClientServer {
    pub(super) description: Option<String>,
    pub(super) transport: Option<String>,
    pub(super) command: Option<String>,
    pub(super) args: Vec<String>,
    /// The working directory in which the client starts it.
    pub(super) cwd: Option<String>,
    pub(super) env: Vec<(String, String)>,
    pub(super) env_file: Option<String>,
    pub(super) url: Option<String>,
    pub(super) headers: Vec<(String, String)>,
    /// Variables of the environment that the server inherits.
    pub(super) inherited_env: Vec<String>,
    /// Headers whose value comes from a variable: the header's name, the text before the value, and the variable.
    pub(super) header_variables: Vec<(String, &'static str, String)>,
    /// Start timeout in seconds.
    pub(super) start_timeout: Option<f64>,
    /// Timeout as written: some clients use seconds, others milliseconds.
    pub(super) timeout: Option<f64>,
    pub(super) is_disabled: bool,
    /// Keys that wharf does not support.
    pub(super) unknown: Vec<String>,
    /// Errors in the description, each a sentence.
    pub(super) errors: Vec<String>,
}

impl ClientServer {
    pub(super) fn read(value: &Value) -> ClientServer {
        let mut client_server = ClientServer::default();
        let Value::Object(pairs) = value else {
            client_server.errors.push("its description is not an object".to_owned());
            return client_server;
        };
        for (key, value) in pairs.iter().filter(|(_, value)| !value.is_null()) {
            client_server.read_key(key, value);
        }
        client_server.unwrap_env();
        client_server
    }

    /// Splits the command `env NAME=value program …` into variables, command and arguments.
    fn unwrap_env(&mut self) {
        let is_env = matches!(self.command.as_deref(), Some("env" | "/usr/bin/env"));
        let assignments: Vec<_> = self.args.iter().map_while(|it| assignment(it)).collect();
        if !is_env || assignments.is_empty() || assignments.len() == self.args.len() {
            return;
        }
        let program = self.args.drain(..=assignments.len()).next_back();
        self.command = program;
        self.env.retain(|(name, _)| !assignments.iter().any(|it| it.0 == *name));
        self.env.extend(assignments);
    }

    fn read_key(&mut self, key: &str, value: &Value) {
        match key {
            "description" => self.description = self.text(key, value),
            "type" | "transport" | "transportType" => {
                self.transport = self.text(key, value).map(|it| transport(&it).to_owned());
            }
            // Zed's older format has the command and its arguments in a nested object.
            "command" if value.is_object() => self.read_command(value),
            "command" => self.command = self.text(key, value),
            "source" if value == "custom" => {}
            "source" if value == "extension" => {
                self.errors.push("it is an extension of Zed, which only Zed can start".to_owned());
            }
            "args" => self.args = self.texts(key, value),
            "cwd" => self.cwd = self.text(key, value),
            "env" => self.env = self.map(key, value),
            "envFile" => self.env_file = self.text(key, value),
            "url" | "serverUrl" => self.url = self.text(key, value),
            "httpUrl" => {
                self.url = self.text(key, value);
                self.transport = Some("http".to_owned());
            }
            "headers" | "http_headers" => self.headers = self.map(key, value),
            "bearer_token_env_var" => {
                let variable = self.text(key, value);
                let header = |it| ("Authorization".to_owned(), "Bearer ", it);
                self.header_variables.extend(variable.map(header));
            }
            "env_http_headers" => {
                let headers = self.map(key, value).into_iter();
                self.header_variables.extend(headers.map(|(name, variable)| (name, "", variable)));
            }
            "env_vars" => self.inherited_env = self.texts(key, value),
            "startup_timeout_sec" => self.start_timeout = value.as_f64().filter(|it| *it > 0.0),
            "timeout" | "tool_timeout_sec" => match value.as_f64().filter(|it| *it > 0.0) {
                Some(timeout) => self.timeout = Some(timeout),
                None => self.unknown.push(key.to_owned()),
            },
            "disabled" => self.is_disabled |= value == &Value::Bool(true),
            "enabled" | "isActive" => self.is_disabled |= value == &Value::Bool(false),
            _ => self.unknown.push(key.to_owned()),
        }
    }

    fn read_command(&mut self, value: &Value) {
        for (key, value) in value.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null()) {
            match key.as_str() {
                "path" => self.read_key("command", value),
                "args" | "env" => self.read_key(key, value),
                _ => self.unknown.push(format!("command.{key}")),
            }
        }
    }

    fn text(&mut self, key: &str, value: &Value) -> Option<String> {
        let text = value.as_str().map(str::to_owned);
        if text.is_none() {
            self.errors.push(format!("`{key}` is not a string"));
        }
        text
    }

    fn texts(&mut self, key: &str, value: &Value) -> Vec<String> {
        let items = value.as_array().filter(|it| it.len() <= MAX_VALUES);
        let texts = items.and_then(|it| it.iter().map(scalar_text).collect::<Option<Vec<_>>>());
        texts.unwrap_or_else(|| {
            self.errors.push(format!("`{key}` is not a list of at most {MAX_VALUES} strings"));
            Vec::new()
        })
    }

    /// Reads a map. In some clients null unsets an inherited variable; wharf inherits none, so it reports the key as
    /// unknown.
    fn map(&mut self, key: &str, value: &Value) -> Vec<(String, String)> {
        let Some(pairs) = value.as_object().filter(|it| it.len() <= MAX_VALUES) else {
            return self.not_a_map(key);
        };
        let (nulls, pairs): (Vec<_>, Vec<_>) = pairs.iter().partition(|(_, value)| value.is_null());
        self.unknown.extend(nulls.into_iter().map(|(name, _)| format!("{key}.{name}")));
        let read = |(name, value): (&String, &Value)| Some((name.clone(), scalar_text(value)?));
        let read: Option<Vec<_>> = pairs.into_iter().map(read).collect();
        read.unwrap_or_else(|| self.not_a_map(key))
    }

    fn not_a_map(&mut self, key: &str) -> Vec<(String, String)> {
        self.errors.push(format!("`{key}` is not an object of at most {MAX_VALUES} strings"));
        Vec::new()
    }
}

/// Splits `NAME=value`.
fn assignment(arg: &str) -> Option<(String, String)> {
    let (name, value) = arg.split_once('=')?;
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    is_name.then(|| (name.to_owned(), value.to_owned()))
}

/// Converts a scalar to a string, as clients do.
fn scalar_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// Returns wharf's name for a transport. An unknown one stays as written, and the loader refuses it.
fn transport(written: &str) -> &str {
    match written.to_ascii_lowercase().as_str() {
        "stdio" | "local" => "stdio",
        "sse" => "sse",
        "http" | "streamable-http" | "streamable_http" | "streamablehttp" => "http",
        "ws" | "websocket" => "websocket",
        _ => written,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn supported_keys_are_read() {
        let client_server = ClientServer::read(&json!({
            "command": "npx", "args": ["-y", 8080, true], "env": {"A": 1, "B": null, "C": "x"}, "cwd": "/x",
            "disabled": false, "type": "streamableHttp", "timeout": 30, "autoApprove": [], "url": null,
        }));
        assert_eq!(client_server.args, ["-y", "8080", "true"]);
        assert_eq!(client_server.env, [("A".into(), "1".into()), ("C".into(), "x".into())]);
        assert_eq!(client_server.transport.as_deref(), Some("http"));
        assert_eq!(client_server.timeout, Some(30.0));
        assert_eq!(client_server.unknown, ["env.B", "autoApprove"]);
        assert_eq!(client_server.cwd.as_deref(), Some("/x"));
        assert!(client_server.errors.is_empty() && !client_server.is_disabled && client_server.url.is_none());
        assert!(ClientServer::read(&json!({"enabled": false})).is_disabled);
    }

    #[test]
    fn variables_before_the_program_become_its_environment() {
        let client_server = ClientServer::read(&json!({
            "command": "env", "args": ["KEY=a=b", "LOG=1", "npx", "-y", "x", "MODE=2"], "env": {"LOG": "0", "C": "x"},
        }));
        assert_eq!(client_server.command.as_deref(), Some("npx"));
        assert_eq!(client_server.args, ["-y", "x", "MODE=2"]);
        let env = [("C", "x"), ("KEY", "a=b"), ("LOG", "1")].map(|(name, value)| (name.into(), value.into()));
        assert_eq!(client_server.env, env);
        for args in [json!(["npx", "x"]), json!(["KEY=1"]), json!(["-i", "npx"])] {
            let client_server = ClientServer::read(&json!({"command": "env", "args": args}));
            assert_eq!(client_server.command.as_deref(), Some("env"), "{args}");
        }
    }

    #[test]
    fn keys_of_codex_and_zed() {
        let codex = ClientServer::read(&json!({
            "url": "https://h.example/mcp", "bearer_token_env_var": "T", "env_http_headers": {"X-Org": "ORG"},
            "http_headers": {"X-A": "b"}, "env_vars": ["A"], "startup_timeout_sec": 20, "tool_timeout_sec": 90.0,
        }));
        let bearer = ("Authorization".to_owned(), "Bearer ", "T".to_owned());
        assert_eq!(codex.header_variables, [bearer, ("X-Org".to_owned(), "", "ORG".to_owned())]);
        assert_eq!((codex.start_timeout, codex.timeout), (Some(20.0), Some(90.0)));
        assert_eq!(
            (codex.inherited_env, codex.headers),
            (vec!["A".to_owned()], vec![("X-A".into(), "b".into())])
        );
        let zed = ClientServer::read(&json!({
            "source": "custom", "command": {"path": "npx", "args": ["x"], "env": {"A": "b"}, "x": 1},
        }));
        assert_eq!((zed.command.as_deref(), zed.args), (Some("npx"), vec!["x".to_owned()]));
        assert_eq!((zed.env, zed.unknown), (vec![("A".into(), "b".into())], vec!["command.x".to_owned()]));
        assert_eq!(ClientServer::read(&json!({"source": "extension"})).errors.len(), 1);
    }

    #[test]
    fn invalid_descriptions_are_reported() {
        for (value, error) in [
            (json!("npx x"), "its description is not an object"),
            (json!({"command": ["npx"]}), "`command` is not a string"),
            (json!({"command": {"path": 1}}), "`command` is not a string"),
            (json!({"args": "x"}), "`args` is not a list of at most 1000 strings"),
            (json!({"args": [["x"]]}), "`args` is not a list of at most 1000 strings"),
            (json!({"env": []}), "`env` is not an object of at most 1000 strings"),
            (json!({"headers": {"A": {}}}), "`headers` is not an object of at most 1000 strings"),
        ] {
            assert_eq!(ClientServer::read(&value).errors, [error], "{value}");
        }
    }
}
