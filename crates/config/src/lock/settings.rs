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
    /// Basis of the comparison.
    pub basis: LockBasis,
}

/// Basis of the comparison of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockBasis {
    /// `wharf.lock`.
    File,
    /// The definitions that were accepted when a registered server was listed for the first time, and since.
    FirstUse,
}

/// `[lock] registered` of wharf.toml: treatment of servers that were registered at run time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RegisteredLock {
    /// Accept the first listing, and block what differs from it later.
    FirstUse,
    /// Accept everything.
    #[default]
    Off,
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
        LockSettings {
            mode: LockMode::Off,
            pin: true,
            dependencies: DependencyCheck::Warn,
            basis: LockBasis::File,
        }
    }
}

impl RegisteredLock {
    /// Returns the settings of a registered server.
    pub fn settings(self) -> LockSettings {
        match self {
            RegisteredLock::FirstUse => LockSettings {
                mode: LockMode::Enforce,
                basis: LockBasis::FirstUse,
                ..LockSettings::default()
            },
            RegisteredLock::Off => LockSettings::default(),
        }
    }
}

keywords!(LockMode { Enforce = "enforce", Warn = "warn", Off = "off" });
keywords!(DependencyCheck { Warn = "warn", Enforce = "enforce" });
keywords!(RegisteredLock { FirstUse = "first-use", Off = "off" });
