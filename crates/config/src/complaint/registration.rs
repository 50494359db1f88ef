//! Diagnostics about sources that are registered at run time.

use crate::{complaint::echo, diagnostic::Diagnostics, place::Place};

/// Diagnostics about the body of a registration.
impl Diagnostics {
    pub(crate) fn json_syntax(&mut self, at: Place, what: &str) {
        self.error("Y-01", at, format!("ConfigError: this is not JSON: {what}"));
    }

    pub(crate) fn stdio_registration_disabled(&mut self, at: Place) {
        let message = "MCPConfigError: a server that is a process cannot be registered here";
        self.error("stdio_registration_disabled", at, message).hint(
            "the operator can allow it in wharf.toml: [grants] processes_over_rest = true, or put the server into agent.yaml",
        );
    }

    pub(crate) fn not_registrable(&mut self, at: Place, key: &str) {
        self.error("R-01", at, format!("MCPConfigError: '{key}' cannot be registered")).hint(match key {
            "inherit_env" => "what is registered sees no variable of this machine; give the value in `env`",
            _ => "what is registered sees no file of this machine; give the values in `env`",
        });
    }

    pub(crate) fn variable_not_filled_in(&mut self, at: Place) {
        self.error("R-01", at, "ConfigError: variables are not filled in here: `${…}` would stay as it is")
            .hint("write the value itself; those of `env`, `headers` and `mcp_env_vars` are kept encrypted");
    }

    pub(crate) fn source_name(&mut self, at: Place, longest: usize) {
        self.error("V-01", at, "ValidationError: 'name' is too long or contains a control character")
            .hint(format!("a name has at most {longest} characters"));
    }

    pub(crate) fn unknown_source_type(&mut self, at: Place, found: &str) {
        let found = echo(found);
        self.error("R-02", at, format!("ConfigError: Invalid source_type '{found}'. Supported types: mcp"));
    }

    pub(crate) fn plugin_or_remote(&mut self, at: Place, both: bool) {
        let message = match both {
            true => "MCPConfigError: 'mcp_plugin_dir' and 'mcp_server_url' exclude each other",
            false => "MCPConfigError: one of 'mcp_plugin_dir' and 'mcp_server_url' is required",
        };
        self.error("R-02", at, message)
            .hint("a plugin is started from its folder; a remote server is reached at its address");
    }

    pub(crate) fn not_for_a_remote(&mut self, at: Place, key: &str) {
        self.error("R-02", at, format!("MCPConfigError: '{key}' is not used by a remote server"))
            .hint("it says how a plugin is started; remove it");
    }

    pub(crate) fn transport_of_a_remote(&mut self, at: Place, found: &str) {
        let message = format!(
            "MCPConfigError: 'mcp_transport_type' of a remote server is 'streamable_http', not '{}'",
            echo(found)
        );
        self.error("R-02", at, message).hint(
            "for other transports, register the server as an entry of agent.yaml: name, type, server, transport, url",
        );
    }

    pub(crate) fn plugin_folder(&mut self, at: Place, why: &str) {
        self.error("R-04", at, format!("MCPConfigError: 'mcp_plugin_dir' {why}")).hint(
            "a plugin lies in a folder under one of the roots in wharf.toml ([grants] plugin_roots), and nobody else may write to it",
        );
    }

    pub(crate) fn secrets_file(&mut self, at: Place, why: &str) {
        self.error("R-07", at, format!("ConfigError: the operator's secrets file {why}"))
            .hint("wharf.toml names it: [grants] secrets_file; it holds NAME=value lines, and `chmod 600` makes it private");
    }

    pub(crate) fn unusable_manifest(&mut self, at: Place, why: &str) {
        self.error("R-05", at, format!("MCPConfigError: the plugin's manifest cannot be used: {why}"));
    }

    /// Names the variable, never its value.
    pub(crate) fn unfit_variable(&mut self, at: Place, name: &str, why: &str) {
        self.error("R-05", at, format!("MCPConfigError: the value of '{}' {}", echo(name), echo(why)));
    }

    pub(crate) fn not_a_script(&mut self, at: Place, why: &str) {
        self.error("R-06", at, format!("MCPConfigError: a plugin's script {why}"))
            .hint("python and node run one file of the plugin's folder, which nobody else may write to; flags before it are not taken");
    }

    pub(crate) fn not_a_header(&mut self, at: Place, name: &str) {
        let message =
            format!("MCPConfigError: '{}' of 'mcp_env_vars' is not sent to a remote server", echo(name));
        self.error("R-03", at, message).hint(
            "`Authorization` and `API_KEY` (sent as X-API-Key) are, and `MCP_HEADER_X_Y`, which is sent as X-Y",
        );
    }
}
