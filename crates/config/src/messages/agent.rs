//! Diagnostics about the agent: its model, instructions, limits and rules.

use crate::{diagnostic::Diagnostics, echo::echo, masked_string::MaskedString, node::Node, place::Place};

/// Diagnostics about the agent.
impl Diagnostics {
    pub(crate) fn too_many_tools(&mut self, at: Place, found: usize, max: usize) {
        self.error("A-01", at, format!("ConfigError: too many tools: {found}, at most {max}"));
    }

    pub(crate) fn instructions_file_or_inline(&mut self, at: Place) {
        self.error("A-02", at, "ConfigError: 'instructions' needs exactly one of 'file' and 'inline'");
    }

    pub(crate) fn limit_out_of_range(&mut self, node: &Node, key: &str, expected: &str) {
        self.error("A-08", node.at, format!("ConfigError: '{key}' must be {expected}"));
    }

    pub(crate) fn incomplete_price(&mut self, at: Place) {
        self.error("A-15", at, "ConfigError: a price needs 'input' and 'output', per million tokens");
    }

    pub(crate) fn unknown_decision(&mut self, at: Place, found: &MaskedString, supported: &[&str]) {
        let (found, supported) = (echo(found.shown()), supported.join(", "));
        let message = format!("ConfigError: Invalid decision '{found}'. Supported decisions: {supported}");
        self.error("A-09", at, message);
    }

    pub(crate) fn not_a_json_schema(&mut self, at: Place, why: &str, path: &str) {
        let message = format!("ConfigError: 'response_format' is not a JSON Schema: {why} at {path}");
        self.error("A-10", at, message);
    }

    pub(crate) fn reserved_prefix(&mut self, at: Place, prefix: &str) {
        self.error("A-11", at, format!("ConfigError: the prefix '{prefix}' is reserved"))
            .hint("set another `name` or `prefix`");
    }
}

/// Diagnostics about the model.
impl Diagnostics {
    pub(crate) fn missing_model_key(&mut self, at: Place, key: &str) {
        self.error("A-03", at, format!("ConfigError: 'model' needs '{key}'"));
    }

    pub(crate) fn model_endpoint(&mut self, at: Place) {
        self.error(
            "A-03",
            at,
            "ConfigError: 'model.endpoint' must be an http:// or https:// address with a host, and without a user name or a password",
        );
    }

    pub(crate) fn missing_azure_endpoint(&mut self, at: Place) {
        self.error("A-06", at, "ConfigError: 'endpoint' is required for azure_openai")
            .hint("write the address of your resource: https://NAME.openai.azure.com/");
    }

    pub(crate) fn api_not_for_provider(&mut self, at: Place) {
        self.error("A-07", at, "ConfigError: 'api' is for openai and azure_openai only");
    }

    /// Reports a header or a key of the request that wharf sets itself.
    pub(crate) fn key_set_by_wharf(&mut self, at: Place, key: &str, name: &str) {
        self.error("A-12", at, format!("ConfigError: '{key}' must not set '{}'", echo(name)));
    }

    pub(crate) fn insecure_model_endpoint(&mut self, at: Place) {
        self.error("A-13", at, "MCPConfigError: 'endpoint' must use https:// (or http:// for localhost)")
            .hint("add the host to `insecure_hosts` in [grants] of wharf.toml if the network is private");
    }
}
