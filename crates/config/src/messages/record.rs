//! Diagnostics about `record:`.

use crate::{diagnostic::Diagnostics, echo::echo, place::Place};

/// Diagnostics about recordings.
impl Diagnostics {
    pub(crate) fn not_a_pointer(&mut self, at: Place, found: &str) {
        self.error("P-01", at, format!("ConfigError: '{}' is not a JSON pointer", echo(found)))
            .hint("a pointer begins with a slash, for example /request_id");
    }

    pub(crate) fn not_a_redaction_name(&mut self, at: Place, found: &str) {
        let message = format!("ConfigError: '{}' cannot be the name of a replacement", echo(found));
        self.error("P-02", at, message).hint("use letters, digits, - and _");
    }

    pub(crate) fn not_a_pattern(&mut self, at: Place, why: &str) {
        self.error("P-03", at, format!("ConfigError: invalid pattern: {}", echo(why)))
            .hint("patterns are regular expressions without look-around and back-references");
    }
}
