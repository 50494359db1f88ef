//! Diagnostics about `overrides` of an entry.

use crate::{diagnostic::Diagnostics, echo::echo, place::Place};

/// Diagnostics about overrides.
impl Diagnostics {
    pub(crate) fn duplicate_shown_name(&mut self, at: Place, name: &str, first: Place) {
        let message = format!("ConfigError: two overrides show a tool as '{}'", echo(name));
        self.error("O-02", at, message).related(first, "first here");
    }

    pub(crate) fn duplicate_argument_name(&mut self, at: Place, name: &str, first: Place) {
        let message = format!("ConfigError: two arguments are shown as '{}'", echo(name));
        self.error("O-02", at, message).related(first, "first here");
    }

    /// Reports a key of an argument that `fixed` or `hidden` makes useless.
    pub(crate) fn useless_argument_key(&mut self, at: Place, key: &str, because: &str) {
        let message = format!("ConfigError: '{key}' has no effect beside '{because}'");
        self.error("O-03", at, message).hint("clients do not see such an argument; remove one of the two");
    }

    /// Reports a key that an override for several tools must not set.
    pub(crate) fn key_not_for_glob(&mut self, at: Place, key: &str, glob: &str) {
        let message = format!(
            "ConfigError: the override '{}' matches several tools and cannot set '{key}'",
            echo(glob)
        );
        self.error("O-03", at, message).hint(
            "a glob may set `enabled` and `annotations`; write the other keys under the name of one tool",
        );
    }

    pub(crate) fn too_many_overrides(&mut self, at: Place, found: usize, max: usize) {
        self.error("O-04", at, format!("ConfigError: too many overrides: {found}, at most {max}"));
    }
}
