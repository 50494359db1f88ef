//! `lock:` of agent.yaml: what wharf does if a server differs from `wharf.lock`.

use crate::keywords::keywords;

/// Settings for a server that differs from the lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockSettings {
    /// Treatment of changed tools and packages.
    pub mode: LockMode,
    /// Whether servers start with the locked version.
    pub pin: bool,
    /// Treatment of changed dependencies.
    pub dependencies: DependencyCheck,
}

/// Treatment of a tool or package that differs from the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockMode {
    /// Block it.
    Enforce,
    /// Use it, and report it.
    Warn,
    /// Ignore the lock.
    Off,
}

/// Treatment of dependencies that differ from the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DependencyCheck {
    /// Report it.
    Warn,
    /// Treat it like a changed package.
    Enforce,
}

impl Default for LockSettings {
    fn default() -> LockSettings {
        LockSettings { mode: LockMode::Off, pin: true, dependencies: DependencyCheck::Warn }
    }
}

keywords!(LockMode { Enforce = "enforce", Warn = "warn", Off = "off" });
keywords!(DependencyCheck { Warn = "warn", Enforce = "enforce" });
