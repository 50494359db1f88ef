//! Diagnostics about `auth:` of an entry.

use crate::{
    diagnostic::Diagnostics, echo::echo, masked_string::MaskedString, oauth::GrantType, place::Place,
};

impl Diagnostics {
    pub(crate) fn unused_auth_key(&mut self, at: Place, key: &str, grant: GrantType) {
        let used = grant.used_keys().join(", ");
        let grant = grant.as_str();
        self.error("V-12", at, format!("MCPConfigError: 'auth.{key}' is not used by the grant '{grant}'"))
            .hint(format!("this grant uses {used}; `auth.grant` sets another"));
    }

    pub(crate) fn missing_auth_key(&mut self, at: Place, key: &str, grant: GrantType) {
        let grant = grant.as_str();
        self.error("V-13", at, format!("MCPConfigError: the grant '{grant}' requires 'auth.{key}'"));
    }

    pub(crate) fn needs_one_auth_key(&mut self, at: Place, keys: [&str; 2], both: bool, grant: GrantType) {
        let ([first, second], grant) = (keys, grant.as_str());
        let message = match both {
            true => format!("MCPConfigError: 'auth.{first}' and 'auth.{second}' cannot be combined"),
            false => {
                format!("MCPConfigError: the grant '{grant}' requires 'auth.{first}' or 'auth.{second}'")
            }
        };
        self.error("V-13", at, message);
    }

    pub(crate) fn empty_auth_value(&mut self, at: Place, key: &str) {
        self.error("V-13", at, format!("MCPConfigError: 'auth.{key}' must not be empty"));
    }

    pub(crate) fn algorithm_without_key(&mut self, at: Place) {
        self.error("V-13", at, "MCPConfigError: 'auth.signing_algorithm' is for 'auth.private_key' only")
            .hint("remove it");
    }

    pub(crate) fn invalid_auth_url(&mut self, at: Place, key: &str) {
        self.error("V-13", at, format!("MCPConfigError: '{key}' must be an https:// URL"))
            .hint("http:// is allowed for this machine only, and a URL must not contain credentials");
    }

    pub(crate) fn invalid_scope(&mut self, at: Place) {
        self.error("V-13", at, "MCPConfigError: 'auth.scopes' contains something that is not a scope")
            .hint("write one list item for each scope; a scope contains no spaces and no quotes");
    }

    pub(crate) fn auth_and_header(&mut self, at: Place) {
        self.error("V-13", at, "MCPConfigError: 'auth' and the header 'Authorization' cannot be combined")
            .hint("remove one of them");
    }

    pub(crate) fn token_file_not_granted(&mut self, at: Place, key: &str, path: &MaskedString) {
        let path = echo(path.shown());
        self.error("V-11", at, format!("MCPConfigError: '{key}' {path} is outside the agent file's folder"))
            .hint(
                "the operator can allow the file or its folder in wharf.toml: [grants] token_files = [\"/…\"]",
            );
    }
}
