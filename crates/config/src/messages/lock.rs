//! Diagnostics about `wharf.lock` and `lock:`.

use crate::{
    diagnostic::{Diagnostics, Severity},
    echo::echo,
    lock::LockMode,
    lock_reader::LockError,
    place::Place,
};

/// Diagnostics about the lock.
impl Diagnostics {
    pub(crate) fn missing_lock(&mut self, at: Place) {
        self.error(
            "L-01",
            at,
            "ConfigError: 'lock' is enforced, but there is no wharf.lock beside this file",
        )
        .hint("run `wharf lock`, review the file and commit it");
    }

    pub(crate) fn unusable_lock(&mut self, error: &LockError) {
        let (code, hint) = match error {
            LockError::Unreadable(_) => ("L-02", "restore the file, or remove it and run `wharf lock`"),
            LockError::WrongHash(_) => {
                ("L-03", "somebody edited the file; restore it, or remove it and run `wharf lock`")
            }
        };
        self.push(Severity::Error, code, None, format!("ConfigError: wharf.lock cannot be used: {error}"))
            .hint = Some(hint.to_owned());
    }

    /// Reports an entry that the lock does not have. An error if the lock is enforced.
    pub(crate) fn entry_not_locked(&mut self, at: Place, name: &str, mode: LockMode) {
        let severity = if mode == LockMode::Enforce { Severity::Error } else { Severity::Warning };
        let name = echo(name);
        let message = match severity {
            Severity::Error => format!("ConfigError: '{name}' is not in wharf.lock"),
            Severity::Warning => format!("'{name}' is not in wharf.lock"),
        };
        self.push(severity, "L-04", Some(at), message).hint = Some(format!("run `wharf lock {name}`"));
    }

    pub(crate) fn locked_entry_gone(&mut self, name: &str) {
        let message = format!("wharf.lock has '{}', but this file does not", echo(name));
        self.push(Severity::Warning, "L-04", None, message).hint = Some("run `wharf lock`".to_owned());
    }

    pub(crate) fn other_version_locked(&mut self, at: Place, name: &str, asked: &str, locked: &str) {
        let message =
            format!("ConfigError: agent.yaml asks for {}, wharf.lock has {}", echo(asked), echo(locked));
        self.error("L-05", at, message).hint(format!("run `wharf lock {} --upgrade`", echo(name)));
    }
}
