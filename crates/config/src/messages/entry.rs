//! Diagnostics about one entry of `tools:`.

use crate::{
    diagnostic::Diagnostics, echo::echo, env_file::InvalidLine, masked_string::MaskedString, place::Place,
    plan::Builtin, transport::TRANSPORTS, url::SchemeRule,
};

/// Diagnostics about a `tools:` entry.
impl Diagnostics {
    pub(crate) fn duplicate_names(&mut self, at: Place, names: &[&str], first: Place) {
        let message = format!(
            "Duplicate tool names found: {}. Each tool must have a unique name.",
            names.iter().map(|it| echo(it)).collect::<Vec<_>>().join(", ")
        );
        self.error("V-01", at, message).related(first, "first here");
    }

    pub(crate) fn empty_identifier(&mut self, at: Place, key: &str) {
        let code = if key == "name" { "V-01" } else { "V-02" };
        self.error(code, at, format!("ValidationError: '{key}' must be a non-empty identifier"));
    }

    pub(crate) fn missing_type(&mut self, at: Place) {
        self.error("V-13", at, "ConfigError: 'type' is required").hint("add `type: mcp`");
    }

    pub(crate) fn unknown_type(&mut self, at: Place, found: &MaskedString) {
        self.error(
            "V-13",
            at,
            format!("ConfigError: Invalid type '{}'. Supported types: mcp", echo(found.shown())),
        );
    }

    pub(crate) fn missing_description(&mut self, at: Place) {
        self.warning("V-14", at, "'description' is missing; a generated one is used")
            .hint("add a `description`: it tells people and models what the server is for");
    }

    pub(crate) fn unknown_transport(&mut self, at: Place, found: &MaskedString) {
        let transports = TRANSPORTS;
        let message = format!(
            "MCPConfigError: Invalid transport '{}'. Supported transports: {}",
            echo(found.shown()),
            transports.join(", ")
        );
        let guess = match found.expose().to_ascii_lowercase().as_str() {
            "ws" | "wss" => Some("websocket"),
            "https" | "streamable" | "streamablehttp" => Some("http"),
            other => self.closest(other, transports.into_iter()),
        };
        self.error("V-03", at, message).hint = guess.map(|it| format!("did you mean '{it}'?"));
    }

    pub(crate) fn missing_command(&mut self, at: Place, server: &str) {
        let known_python =
            ["mcp-server-fetch", "mcp-server-git", "mcp-server-time", "mcp-server-sqlite"].contains(&server);
        self.error("V-04", at, "MCPConfigError: 'command' is required for stdio transport").hint(match () {
            () if known_python => format!("`{server}` is on PyPI: add `command: uvx`"),
            () if server.starts_with('@') => "this is an npm package: add `command: npx`".to_owned(),
            () if server.contains("://") => {
                "for a remote server, add `transport: http` and put the address in `url`".to_owned()
            }
            () => "add `command: npx` for an npm package, `uvx` for a PyPI package, `docker` for an image"
                .to_owned(),
        });
    }

    pub(crate) fn missing_url(&mut self, at: Place, transport: &str) {
        self.error("V-06", at, format!("MCPConfigError: 'url' is required for {transport} transport"));
    }

    pub(crate) fn url_scheme(&mut self, at: Place, rule: SchemeRule, written: &str) {
        let scheme = written.split(':').next().unwrap_or_default().to_ascii_lowercase();
        let (code, message, hint) = match rule {
            SchemeRule::Http => (
                "V-07",
                "MCPConfigError: 'url' must use https:// (or http:// for localhost)",
                match scheme.as_str() {
                    "ws" | "wss" => "for this URL, use `transport: websocket`",
                    "http" => {
                        "use https://, or let the operator allow the host in wharf.toml: [grants] insecure_hosts = [\"host\"]"
                    }
                    _ => "write the full URL, such as https://mcp.example.com/mcp",
                },
            ),
            SchemeRule::WebSocket => (
                "V-08",
                "MCPConfigError: 'url' must use wss:// (or ws://)",
                match scheme.as_str() {
                    "http" | "https" => "for this URL, use `transport: http` or `transport: sse`",
                    _ => "write the full URL, such as wss://mcp.example.com/ws",
                },
            ),
        };
        self.error(code, at, message).hint(hint);
    }

    pub(crate) fn invalid_url(&mut self, at: Place, why: &str) {
        self.error("V-07", at, format!("MCPConfigError: 'url' is not a valid URL: {why}"));
    }

    /// Reports a URL without a host. `variable` is a variable in the host, as written, which is probably empty.
    pub(crate) fn url_without_host(&mut self, at: Place, rule: SchemeRule, variable: Option<&str>) {
        let example = match rule {
            SchemeRule::Http => "https://mcp.example.com/mcp",
            SchemeRule::WebSocket => "wss://mcp.example.com/ws",
        };
        let message = "MCPConfigError: 'url' has no host, or a host with an empty part";
        self.error("V-07", at, message).hint(match variable {
            Some(variable) => format!("is {} empty? set it, or write the host itself", echo(variable)),
            None => format!("write the host after `://`, such as {example}"),
        });
    }

    pub(crate) fn url_userinfo(&mut self, at: Place) {
        self.error("V-07", at, "MCPConfigError: 'url' must not contain a user name or a password")
            .hint("put credentials into a header: Authorization: \"Bearer ${TOKEN}\"");
    }

    pub(crate) fn url_host_denied(&mut self, at: Place, why: &str) {
        self.error("V-07", at, format!("MCPConfigError: 'url' is not allowed: {why}"));
    }

    /// Reports a URL in a network that the source may not reach. `host` is `None` if it came from a variable and must
    /// not be shown.
    pub(crate) fn url_network_denied(&mut self, at: Place, what: &str, host: Option<&str>) {
        let host = echo(host.unwrap_or("host"));
        self.error("V-07", at, format!("MCPConfigError: 'url' is not allowed: its host is {what}")).hint(
            format!("the operator can allow the host in wharf.toml: [grants] private_hosts = [\"{host}\"]"),
        );
    }

    pub(crate) fn unencrypted_websocket(&mut self, at: Place) {
        self.warning("V-08", at, "'url' uses ws:// to another machine: the connection is not encrypted")
            .hint("use wss://");
    }

    pub(crate) fn foreign_field(&mut self, at: Place, key: &str, transport: &str) {
        let hint = match (key, transport) {
            ("url" | "headers" | "auth" | "sse_read_timeout" | "terminate_on_close", "stdio transport") => {
                Some("for a remote server, add `transport: http`, `sse` or `websocket`")
            }
            ("timeout", "stdio transport" | "websocket transport") => {
                Some("use `connect_timeout` for the start and `request_timeout` for calls")
            }
            ("env" | "inherit_env", _) => Some(
                "a remote server has its own environment; `envFile` provides values for ${VAR} on every transport",
            ),
            ("auth", "websocket transport") => {
                Some("websocket does not support sign-in; use `transport: http` if the server supports it")
            }
            ("headers", "websocket transport") => {
                Some("websocket does not support headers; use `transport: http` if the server supports it")
            }
            ("install_timeout", _) => Some(
                "only npx, uvx and docker download packages; `connect_timeout` limits the start of the server",
            ),
            ("command" | "args" | "encoding", _) => {
                Some("only stdio starts a program; remove it, or remove `transport`")
            }
            _ => None,
        };
        self.error("V-12", at, format!("MCPConfigError: '{key}' is not used by {transport}")).hint =
            hint.map(str::to_owned);
    }

    pub(crate) fn unknown_builtin(&mut self, at: Place, found: &MaskedString) {
        let guess = self.closest(found.expose(), Builtin::KEYWORDS.iter().copied());
        let message = format!("MCPConfigError: unknown built-in server '{}'", echo(found.shown()));
        self.error("V-16", at, message).hint(match guess {
            Some(guess) => format!("did you mean '{guess}'?"),
            None => format!("available: {}", Builtin::KEYWORDS.join(", ")),
        });
    }

    pub(crate) fn builtin_takes_no(&mut self, at: Place, key: &str) {
        self.error("V-16", at, format!("MCPConfigError: 'builtin:todo' takes no '{key}'")).hint("remove it");
    }

    pub(crate) fn legacy_entry(&mut self, at: Place, server: &MaskedString) {
        self.warning("V-15", at, "an entry without 'command' is deprecated; it is started with npx").hint(
            format!("add `command: npx` to make it explicit that `npx -y {}` is run", echo(server.shown())),
        );
    }

    pub(crate) fn conflicting_env_files(&mut self, at: Place, first: Place) {
        self.error("V-11", at, "MCPConfigError: 'envFile' and 'env_file' name different files")
            .related(first, "and here");
    }

    pub(crate) fn invalid_env_line(&mut self, at: Place, path: &MaskedString, bad: &InvalidLine) {
        let InvalidLine { number, why } = bad;
        self.error(
            "V-11",
            at,
            format!("MCPConfigError: 'envFile' {} cannot be read: line {number}: {why}", echo(path.shown())),
        );
    }

    pub(crate) fn empty_env_file_values(&mut self, at: Place, file: &str, names: &[String]) {
        let names = names.iter().map(|it| echo(it)).collect::<Vec<_>>().join(", ");
        self.warning("V-11", at, format!("'envFile' {} has no value for {names}", echo(file)))
            .hint("set a value or remove the line; otherwise the server gets an empty value");
    }

    pub(crate) fn invalid_env_name(&mut self, at: Place, name: &str) {
        let shown = echo(name);
        self.error("V-13", at, format!("MCPConfigError: '{shown}' is not a valid environment variable name"))
            .hint("a name must not be empty or contain `=` or NUL");
    }

    pub(crate) fn invalid_header_name(&mut self, at: Place, name: &str) {
        let shown = echo(name);
        self.error("V-13", at, format!("MCPConfigError: '{shown}' is not a valid header name"));
    }

    pub(crate) fn reserved_header(&mut self, at: Place, name: &str) {
        let name = echo(name);
        self.error("V-13", at, format!("MCPConfigError: the header '{name}' is reserved by the protocol"))
            .hint("remove it");
    }

    pub(crate) fn duplicate_header(&mut self, at: Place, name: &str) {
        let name = echo(name);
        self.error("V-13", at, format!("MCPConfigError: duplicate header '{name}'"))
            .hint("header names are case-insensitive");
    }

    pub(crate) fn invalid_header_value(&mut self, at: Place, name: &str) {
        let name = echo(name);
        self.error(
            "V-13",
            at,
            format!(
                "MCPConfigError: the value of the header '{name}' contains a line break or control character"
            ),
        )
        .hint("remove the line break; variables set from a file often end with one");
    }

    pub(crate) fn unknown_encoding(&mut self, at: Place, label: &MaskedString) {
        let utf16 = label.expose().to_ascii_lowercase().contains("16");
        self.error("V-13", at, format!("MCPConfigError: Unknown encoding '{}'", echo(label.shown()))).hint(
            if utf16 {
                "UTF-16 is not supported, because messages are separated by line breaks; use utf-8"
            } else {
                "use a name such as utf-8, latin-1, cp1252, shift_jis, gb18030"
            },
        );
    }

    pub(crate) fn invalid_allowed_directories(&mut self, at: Place) {
        self.error("V-13", at, "MCPConfigError: 'config.allowed_directories' must be a list of paths");
    }
}
