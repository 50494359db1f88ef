//! Exceptions from the rules of agent.yaml that the operator grants in `[grants]` of wharf.toml.

use super::plan::Launcher;
use crate::glob::Glob;
use std::{
    fmt,
    path::{Component, Path, PathBuf},
};

/// Exceptions that the operator grants. The default is none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Grants {
    /// Programs allowed as `command`, by absolute path. Their arguments are not restricted.
    pub commands: Vec<PathBuf>,
    /// Allowed arguments of the three launchers: `--flag` or `--flag=value`, where `*` matches anything.
    pub arguments: Vec<(Launcher, Glob)>,
    /// Allowed package specs that no registry resolves, and allowed interpreters.
    pub packages: Vec<Glob>,
    /// Environment names that are allowed although they are refused by default.
    pub environment: Vec<Glob>,
    /// Hosts that may be reached without TLS.
    pub insecure_hosts: Vec<String>,
    /// Hosts in private networks that a registered source may use.
    pub private_hosts: Vec<String>,
    /// Folders that may contain plugin folders, as absolute paths.
    pub plugin_roots: Vec<PathBuf>,
    /// Whether REST clients may register servers that run as processes.
    pub processes_over_rest: bool,
    /// Absolute path of the operator's env file with values for registered plugins, if any.
    pub secrets_file: Option<PathBuf>,
    /// Files that contain tokens which an agent file may send, and folders of such files, as absolute paths.
    pub token_files: Vec<PathBuf>,
    /// Path of the wharf.toml that holds these grants or would hold them. Messages name it.
    pub file: Option<PathBuf>,
}

/// The grant that an entry needs and the operator has not given.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MissingGrant {
    /// A program, by absolute path.
    Command(PathBuf),
    /// A package that no registry resolves, or an interpreter.
    Package(String),
}

impl MissingGrant {
    /// Returns the key of `[grants]` that lists grants of this kind.
    pub fn key(&self) -> &'static str {
        match self {
            MissingGrant::Command(_) => "commands",
            MissingGrant::Package(_) => "packages",
        }
    }

    /// Returns the value as a TOML string, quotes included.
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

    /// Returns the granted programs that match a `command`: the one at this path or, for a bare name, all with that
    /// file name.
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

    /// Returns the line of `[grants]` that adds `missing` to the values that are already allowed.
    pub(crate) fn toml_line_with(&self, missing: &MissingGrant) -> String {
        let mut allowed: Vec<String> = match missing {
            MissingGrant::Command(_) => {
                self.commands.iter().map(|it| toml_string(&it.to_string_lossy())).collect()
            }
            MissingGrant::Package(_) => self.packages.iter().map(|it| toml_string(it.as_str())).collect(),
        };
        allowed.push(missing.toml_string());
        format!("[grants] {} = [{}]", missing.key(), allowed.join(", "))
    }

    pub(crate) fn allows_argument(&self, launcher: Launcher, flag: &str, value: Option<&str>) -> bool {
        // `/srv/*` must not match `/srv/../etc`.
        let has_parent_dir = value.is_some_and(|it| it.split(['/', ':', ',', '=']).any(|it| it == ".."));
        let with_value = value.filter(|_| !has_parent_dir).map(|value| format!("{flag}={value}"));
        self.arguments
            .iter()
            .filter(|(it, _)| *it == launcher)
            .any(|(_, glob)| glob.matches(flag) || with_value.as_deref().is_some_and(|it| glob.matches(it)))
    }

    /// Returns whether a grant has the form `FLAG=…`, so that the next argument is the flag's value.
    pub(crate) fn takes_value(&self, launcher: Launcher, flag: &str) -> bool {
        self.arguments.iter().any(|(it, glob)| {
            *it == launcher && glob.as_str().strip_prefix(flag).is_some_and(|rest| rest.starts_with('='))
        })
    }

    pub(crate) fn allows_package(&self, spec: &str) -> bool {
        self.packages.iter().any(|it| it.matches(spec))
    }

    pub(crate) fn allows_environment(&self, name: &str) -> bool {
        let name = name.to_ascii_uppercase();
        self.environment.iter().any(|it| Glob::new(it.as_str().to_ascii_uppercase()).matches(&name))
    }

    pub(crate) fn allows_insecure(&self, host: &str) -> bool {
        self.insecure_hosts.iter().any(|it| it.eq_ignore_ascii_case(host))
    }

    /// Returns whether an agent file may send the token in this file, which is outside its folder.
    pub(crate) fn allows_token_file(&self, path: &Path) -> bool {
        let has_parent_dir = path.components().any(|it| it == Component::ParentDir);
        !has_parent_dir && path.is_absolute() && self.token_files.iter().any(|it| path.starts_with(it))
    }

    /// Returns whether a registered source may use this host even if it is in a private network.
    pub(crate) fn allows_private(&self, host: &str) -> bool {
        self.allows_insecure(host) || self.private_hosts.iter().any(|it| it.eq_ignore_ascii_case(host))
    }
}

/// Formats `text` as a basic TOML string.
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
    fn a_granted_folder_allows_its_files_and_no_others() {
        let token_files = ["/var/run/tokens", "/etc/token.jwt"].map(PathBuf::from).into();
        let grants = Grants { token_files, ..Grants::default() };
        for (path, allowed) in [
            ("/var/run/tokens/mcp", true),
            ("/etc/token.jwt", true),
            ("/var/run/tokens2/mcp", false),
            ("/var/run/tokens/../secret", false),
            ("/etc/shadow", false),
            ("etc/token.jwt", false),
        ] {
            assert_eq!(grants.allows_token_file(Path::new(path)), allowed, "{path}");
        }
    }

    #[test]
    fn grant_line_keeps_existing_grants() {
        let mut grants = Grants::default();
        let node = MissingGrant::Command("/usr/bin/node".into());
        assert_eq!(grants.toml_line_with(&node), r#"[grants] commands = ["/usr/bin/node"]"#);
        grants.add(node);
        let quoted = MissingGrant::Command("/opt/a \"b\"".into());
        assert_eq!(
            grants.toml_line_with(&quoted),
            r#"[grants] commands = ["/usr/bin/node", "/opt/a \"b\""]"#
        );
        let package = MissingGrant::Package("git+https://x.example/y".into());
        assert_eq!(grants.toml_line_with(&package), r#"[grants] packages = ["git+https://x.example/y"]"#);
    }
}
