//! What the operator allows beyond the rules of agent.yaml: the `[grants]` of wharf.toml.

use super::plan::Launcher;
use crate::glob::Glob;
use std::path::PathBuf;

/// Exceptions, each named by the operator. By default there are none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Grants {
    /// Programs that may be a `command`, by absolute path; their arguments are free.
    pub commands: Vec<PathBuf>,
    /// Arguments of the three launchers: `--flag`, or `--flag=value`, where `*` stands for anything.
    pub arguments: Vec<(Launcher, Glob)>,
    /// Package specs that do not come from a registry, and tools that are interpreters.
    pub packages: Vec<Glob>,
    /// Environment names that are otherwise refused.
    pub environment: Vec<Glob>,
    /// Hosts that may be reached without TLS.
    pub insecure_hosts: Vec<String>,
    /// Hosts inside our network that a registered source may be at.
    pub private_hosts: Vec<String>,
    /// Where the folders of plugins may lie; absolute.
    pub plugin_roots: Vec<PathBuf>,
    /// Whether a server that is a process may be registered over REST.
    pub processes_over_rest: bool,
    /// Where the operator keeps values for plugins that are registered, if anywhere: an env file, by absolute path.
    pub secrets_file: Option<PathBuf>,
}

impl Grants {
    pub(crate) fn allow_argument(&self, launcher: Launcher, flag: &str, value: Option<&str>) -> bool {
        // `/srv/*` does not mean `/srv/../etc`.
        let climbs = value.is_some_and(|it| it.split(['/', ':', ',', '=']).any(|it| it == ".."));
        let with_value = value.filter(|_| !climbs).map(|value| format!("{flag}={value}"));
        self.arguments
            .iter()
            .filter(|(it, _)| *it == launcher)
            .any(|(_, glob)| glob.matches(flag) || with_value.as_deref().is_some_and(|it| glob.matches(it)))
    }

    /// Whether a grant knows the flag as one that takes a value, so that the next argument belongs to it.
    pub(crate) fn takes_value(&self, launcher: Launcher, flag: &str) -> bool {
        self.arguments.iter().any(|(it, glob)| {
            *it == launcher && glob.as_str().strip_prefix(flag).is_some_and(|rest| rest.starts_with('='))
        })
    }

    pub(crate) fn allow_package(&self, spec: &str) -> bool {
        self.packages.iter().any(|it| it.matches(spec))
    }

    pub(crate) fn allow_environment(&self, name: &str) -> bool {
        let name = name.to_ascii_uppercase();
        self.environment.iter().any(|it| Glob::new(it.as_str().to_ascii_uppercase()).matches(&name))
    }

    pub(crate) fn allow_insecure(&self, host: &str) -> bool {
        self.insecure_hosts.iter().any(|it| it.eq_ignore_ascii_case(host))
    }

    /// Whether a registered source may be at this host, wherever the host is.
    pub(crate) fn allow_private(&self, host: &str) -> bool {
        self.allow_insecure(host) || self.private_hosts.iter().any(|it| it.eq_ignore_ascii_case(host))
    }
}
