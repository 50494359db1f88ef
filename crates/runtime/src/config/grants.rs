//! What the operator allows beyond the rules of agent.yaml: the `[grants]` of wharf.toml.

use super::plan::Launcher;
use crate::glob::Glob;
use std::{
    fmt,
    path::{Path, PathBuf},
};

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
    /// The wharf.toml that holds these grants, or would hold them. Messages name it.
    pub file: Option<PathBuf>,
}

/// The grant without which an entry is refused.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MissingGrant {
    /// A program, by absolute path.
    Command(PathBuf),
    /// A package that does not come from a registry, or a tool that runs anything.
    Package(String),
}

impl MissingGrant {
    /// The key of `[grants]` that lists grants of this kind.
    pub fn key(&self) -> &'static str {
        match self {
            MissingGrant::Command(_) => "commands",
            MissingGrant::Package(_) => "packages",
        }
    }

    /// The granted value as a TOML string, quotes included.
    pub fn toml_string(&self) -> String {
        toml_string(&self.to_string())
    }
}

impl fmt::Display for MissingGrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MissingGrant::Command(path) => write!(f, "{}", path.display()),
            MissingGrant::Package(spec) => f.write_str(spec),
        }
    }
}

impl Grants {
    /// Adds a grant.
    pub fn add(&mut self, grant: MissingGrant) {
        match grant {
            MissingGrant::Command(path) => self.commands.push(path),
            MissingGrant::Package(spec) => self.packages.push(Glob::new(spec)),
        }
    }

    /// The granted programs that a `command` may mean: the one at this path, or for a bare name all by that name.
    pub(crate) fn matching_commands(&self, written: &str) -> Vec<&Path> {
        let is_bare = !written.is_empty() && !written.contains(['/', '\\']);
        let fits = |path: &Path| match is_bare {
            true => path.file_name().is_some_and(|it| it == written),
            false => path == Path::new(written),
        };
        let mut found: Vec<&Path> =
            self.commands.iter().map(PathBuf::as_path).filter(|it| fits(it)).collect();
        found.sort_unstable();
        found.dedup();
        found
    }

    /// The line of `[grants]` that allows one thing more, with everything that it allows already.
    pub(crate) fn line_with(&self, missing: &MissingGrant) -> String {
        let mut allowed: Vec<String> = match missing {
            MissingGrant::Command(_) => {
                self.commands.iter().map(|it| toml_string(&it.to_string_lossy())).collect()
            }
            MissingGrant::Package(_) => self.packages.iter().map(|it| toml_string(it.as_str())).collect(),
        };
        allowed.push(missing.toml_string());
        format!("[grants] {} = [{}]", missing.key(), allowed.join(", "))
    }

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

/// A text as a basic string of TOML.
fn toml_string(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_name_matches_granted_programs_by_file_name() {
        let commands = ["/usr/bin/node", "/opt/node/bin/node", "/usr/bin/uv", "/usr/bin/uv"];
        let grants = Grants { commands: commands.map(PathBuf::from).into(), ..Grants::default() };
        for (written, expected) in [
            ("node", &["/opt/node/bin/node", "/usr/bin/node"][..]),
            ("/usr/bin/node", &["/usr/bin/node"]),
            ("uv", &["/usr/bin/uv"]),
            ("Node", &[]),
            ("bin/node", &[]),
            ("./node", &[]),
            ("", &[]),
            ("/usr/bin/nod", &[]),
        ] {
            let expected: Vec<&Path> = expected.iter().map(Path::new).collect();
            assert_eq!(grants.matching_commands(written), expected, "{written}");
        }
    }

    #[test]
    fn the_line_keeps_what_is_granted_already() {
        let mut grants = Grants::default();
        let node = MissingGrant::Command("/usr/bin/node".into());
        assert_eq!(grants.line_with(&node), r#"[grants] commands = ["/usr/bin/node"]"#);
        grants.add(node);
        let quoted = MissingGrant::Command("/opt/a \"b\"".into());
        assert_eq!(grants.line_with(&quoted), r#"[grants] commands = ["/usr/bin/node", "/opt/a \"b\""]"#);
        let package = MissingGrant::Package("git+https://x.example/y".into());
        assert_eq!(grants.line_with(&package), r#"[grants] packages = ["git+https://x.example/y"]"#);
    }
}
