//! Parses the name of a package: finds its registry and chooses a name for its server.

/// The registry that a package comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PackageRegistry {
    Npm,
    PyPi,
    Docker,
}

/// A package of a registry, with an optional version.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Package<'a> {
    pub(crate) registry: PackageRegistry,
    pub(crate) spec: &'a str,
}

/// Well-known servers whose names do not reveal their registry.
const KNOWN_ON_PYPI: &str = "\
    basic-memory duckduckgo-mcp-server elevenlabs-mcp markitdown-mcp mcp-obsidian mcp-proxy \
    mcp-server-docker mcp-server-fetch mcp-server-git mcp-server-qdrant mcp-server-sqlite mcp-server-time";
const KNOWN_ON_NPM: &str = "\
    chrome-devtools-mcp exa-mcp-server figma-developer-mcp firecrawl-mcp kubernetes-mcp-server mcp-remote \
    mongodb-mcp-server n8n-mcp puppeteer-mcp-server tavily-mcp";

impl<'a> Package<'a> {
    /// Parses `npm:NAME`, `pypi:NAME`, `docker:IMAGE`, `@scope/name`, or a well-known name. `Err` holds a name that
    /// could be from npm or PyPI.
    pub(crate) fn read(typed: &'a str) -> Result<Option<Package<'a>>, &'a str> {
        let prefixes = [
            ("npm:", PackageRegistry::Npm),
            ("pypi:", PackageRegistry::PyPi),
            ("docker:", PackageRegistry::Docker),
        ];
        for (prefix, registry) in prefixes {
            if let Some(spec) = typed.strip_prefix(prefix) {
                return Ok(Some(Package { registry, spec }));
            }
        }
        let bare = bare_name(typed);
        let known = |registry| Ok(Some(Package { registry, spec: typed }));
        let is_listed = |names: &str| names.split(' ').any(|it| it == bare);
        match () {
            () if typed.starts_with('@') => known(PackageRegistry::Npm),
            () if is_listed(KNOWN_ON_NPM) => known(PackageRegistry::Npm),
            () if is_listed(KNOWN_ON_PYPI) || bare.starts_with("awslabs.") => known(PackageRegistry::PyPi),
            () if is_word(bare) && !typed.contains(' ') => Err(typed),
            () => Ok(None),
        }
    }

    /// Returns the command that runs the package with the user's arguments.
    pub(crate) fn command(&self, own: &[String]) -> (&'static str, Vec<String>) {
        let (command, before): (_, &[&str]) = match self.registry {
            PackageRegistry::Npm => ("npx", &["-y"]),
            PackageRegistry::PyPi => ("uvx", &[]),
            PackageRegistry::Docker => ("docker", &["run", "--rm", "-i"]),
        };
        let before = before.iter().map(|it| (*it).to_owned());
        (command, before.chain([self.spec.to_owned()]).chain(self.arguments(own)).collect())
    }

    /// Returns the server's arguments. The filesystem server needs a folder: it gets the agent file's if none is
    /// given.
    fn arguments(&self, own: &[String]) -> Vec<String> {
        match own {
            [] if self.takes_folders() => vec![".".to_owned()],
            own => own.to_vec(),
        }
    }

    /// Checks whether the arguments are folders that the server may read and write.
    pub(crate) fn takes_folders(&self) -> bool {
        bare_name(self.spec) == "@modelcontextprotocol/server-filesystem"
    }

    /// Derives the server's name: `@playwright/mcp` becomes `playwright`, `mcp-server-time` becomes `time`.
    pub(crate) fn server_name(&self) -> String {
        let bare = match self.registry {
            PackageRegistry::Docker => self.spec.split(['@', ':']).next().unwrap_or_default(),
            _ => bare_name(self.spec),
        };
        let (scope, last) = match bare.rsplit_once('/') {
            Some((scope, last)) => {
                (scope.rsplit('/').next().unwrap_or_default().trim_start_matches('@'), last)
            }
            None => ("", bare),
        };
        let last = last.rsplit_once('.').filter(|_| last.starts_with("awslabs.")).map_or(last, |(_, it)| it);
        let short = strip_affixes(last);
        let name = if matches!(short, "" | "mcp" | "server") && !scope.is_empty() { scope } else { short };
        to_server_name(name)
    }
}

/// Replaces every character that a server name may not contain.
pub(crate) fn to_server_name(name: &str) -> String {
    let fits = |c: char| if c.is_ascii_alphanumeric() || "_-".contains(c) { c } else { '-' };
    let name: String = name.chars().map(fits).collect();
    match name.trim_matches('-') {
        "" => "server".to_owned(),
        name => name.to_owned(),
    }
}

/// Removes affixes like `mcp-server-` that every server has.
fn strip_affixes(name: &str) -> &str {
    let prefixes = ["mcp-server-", "server-", "mcp-"];
    let suffixes = ["-mcp-server", "-mcp", "-server"];
    let name = prefixes.iter().find_map(|it| name.strip_prefix(it)).unwrap_or(name);
    suffixes.iter().find_map(|it| name.strip_suffix(it)).unwrap_or(name)
}

/// Removes the version and extras from a package name.
fn bare_name(spec: &str) -> &str {
    let end = spec.char_indices().skip(1).find(|(_, c)| "@=<>~![ ;".contains(*c)).map(|(at, _)| at);
    &spec[..end.unwrap_or(spec.len())]
}

fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn package_names_are_parsed() {
        for (typed, line, name) in [
            ("@playwright/mcp", "npx -y @playwright/mcp", "playwright"),
            ("@playwright/mcp@1.2", "npx -y @playwright/mcp@1.2", "playwright"),
            (
                "@modelcontextprotocol/server-filesystem",
                "npx -y @modelcontextprotocol/server-filesystem .",
                "filesystem",
            ),
            ("pypi:mcp-server-time", "uvx mcp-server-time", "time"),
            ("pypi:mcp-server-time==1.0", "uvx mcp-server-time==1.0", "time"),
            ("mcp-server-time", "uvx mcp-server-time", "time"),
            ("npm:some-thing", "npx -y some-thing", "some-thing"),
            ("tavily-mcp@latest", "npx -y tavily-mcp@latest", "tavily"),
            ("@upstash/context7-mcp", "npx -y @upstash/context7-mcp", "context7"),
            ("mongodb-mcp-server", "npx -y mongodb-mcp-server", "mongodb"),
            ("@azure/mcp", "npx -y @azure/mcp", "azure"),
            (
                "awslabs.aws-documentation-mcp-server",
                "uvx awslabs.aws-documentation-mcp-server",
                "aws-documentation",
            ),
            ("docker:mcp/fetch", "docker run --rm -i mcp/fetch", "fetch"),
            (
                "docker:ghcr.io/github/github-mcp-server:v1",
                "docker run --rm -i ghcr.io/github/github-mcp-server:v1",
                "github",
            ),
            ("npm:mcp", "npx -y mcp", "mcp"),
        ] {
            let package = Package::read(typed).ok().flatten().unwrap_or_else(|| panic!("{typed}"));
            let (command, args) = package.command(&[]);
            assert_eq!(
                (format!("{command} {}", args.join(" ")).as_str(), &*package.server_name()),
                (line, name)
            );
        }
        assert_eq!(Package::read("some-thing"), Err("some-thing"));
        assert_eq!(Package::read("no such thing"), Ok(None));
        assert_eq!(Package::read("a/b"), Ok(None));
    }
}
