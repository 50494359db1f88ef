//! Diagnostics about sources that are registered at run time.

use crate::{diagnostic::Diagnostics, echo::echo, place::Place};

/// Diagnostics about the body of a registration.
impl Diagnostics {
    pub(crate) fn json_syntax(&mut self, at: Place, what: &str) {
        self.error("Y-01", at, format!("ConfigError: invalid JSON: {what}"));
    }

    pub(crate) fn stdio_registration_disabled(&mut self, at: Place) {
        let message = "MCPConfigError: registering a server that runs as a process is not allowed";
        self.error("stdio_registration_disabled", at, message).hint(
            "the operator can allow it in wharf.toml: [grants] processes_over_rest = true; or add the server to agent.yaml",
        );
    }

    pub(crate) fn key_not_registrable(&mut self, at: Place, key: &str) {
        self.error("R-01", at, format!("MCPConfigError: '{key}' is not allowed in a registration")).hint(
            match key {
                "inherit_env" => {
                    "a registered source cannot use variables of this machine; set the value in `env`"
                }
                "auth" => {
                    "a registered source cannot sign in by itself; set an `Authorization` header, or add the server to agent.yaml"
                }
                _ => "a registered source cannot use files of this machine; set the values in `env`",
            },
        );
    }

    pub(crate) fn variable_in_registration(&mut self, at: Place) {
        self.error(
            "R-01",
            at,
            "ConfigError: variables are not supported in a registration: `${…}` would not be replaced",
        )
        .hint("write the value itself; values in `env`, `headers` and `mcp_env_vars` are stored encrypted");
    }

    pub(crate) fn invalid_source_name(&mut self, at: Place, max_chars: usize) {
        self.error("V-01", at, "ValidationError: 'name' is too long or contains a control character")
            .hint(format!("a name has at most {max_chars} characters"));
    }

    pub(crate) fn unknown_source_type(&mut self, at: Place, found: &str) {
        let found = echo(found);
        self.error("R-02", at, format!("ConfigError: Invalid source_type '{found}'. Supported types: mcp"));
    }

    pub(crate) fn plugin_or_remote(&mut self, at: Place, both: bool) {
        let message = match both {
            true => "MCPConfigError: 'mcp_plugin_dir' and 'mcp_server_url' cannot be combined",
            false => "MCPConfigError: one of 'mcp_plugin_dir' and 'mcp_server_url' is required",
        };
        self.error("R-02", at, message).hint("a plugin runs from its folder; a remote server has a URL");
    }

    pub(crate) fn unused_by_remote(&mut self, at: Place, key: &str) {
        self.error("R-02", at, format!("MCPConfigError: '{key}' is not used by a remote server"))
            .hint("it configures the start of a plugin; remove it");
    }

    pub(crate) fn unsupported_remote_transport(&mut self, at: Place, found: &str) {
        let message = format!(
            "MCPConfigError: 'mcp_transport_type' of a remote server is 'streamable_http', not '{}'",
            echo(found)
        );
        self.error("R-02", at, message).hint(
            "for other transports, register the server as an entry of agent.yaml: name, type, server, transport, url",
        );
    }

    pub(crate) fn invalid_plugin_folder(&mut self, at: Place, why: &str) {
        self.error("R-04", at, format!("MCPConfigError: 'mcp_plugin_dir' {why}")).hint(
            "a plugin folder must be under one of the roots in wharf.toml ([grants] plugin_roots) and must not be writable by others",
        );
    }

    pub(crate) fn secrets_file(&mut self, at: Place, why: &str) {
        self.error("R-07", at, format!("ConfigError: the operator's secrets file {why}"))
            .hint("wharf.toml sets it: [grants] secrets_file; it contains NAME=value lines and must be private (`chmod 600`)");
    }

    pub(crate) fn unusable_manifest(&mut self, at: Place, why: &str) {
        self.error("R-05", at, format!("MCPConfigError: the plugin's manifest cannot be used: {why}"));
    }

    /// Names the variable, never its value.
    pub(crate) fn invalid_variable_value(&mut self, at: Place, name: &str, why: &str) {
        self.error("R-05", at, format!("MCPConfigError: the value of '{}' {}", echo(name), echo(why)));
    }

    pub(crate) fn invalid_script(&mut self, at: Place, why: &str) {
        self.error("R-06", at, format!("MCPConfigError: a plugin's script {why}"))
            .hint("python and node run one file in the plugin's folder, which must not be writable by others; flags before it are not allowed");
    }

    pub(crate) fn variable_is_not_a_header(&mut self, at: Place, name: &str) {
        let message =
            format!("MCPConfigError: '{}' of 'mcp_env_vars' is not sent to a remote server", echo(name));
        self.error("R-03", at, message).hint(
            "a remote server receives `Authorization`, `API_KEY` (sent as X-API-Key) and `MCP_HEADER_X_Y` (sent as X-Y)",
        );
    }
}
