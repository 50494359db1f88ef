//! Converts a manifest to the fields of a `tools:` entry: a command with its arguments, or a URL.

use super::{Filler, Manifest, Package, Remote};
use crate::text::Text;

/// The package or remote of a manifest that was selected.
pub(crate) enum Offer<'a> {
    /// A package to run, with its transport: `stdio` or `sse`.
    Package(&'a Package, &'static str),
    Remote(&'a Remote),
}

/// Fields of the resulting entry: either a command or a URL.
#[derive(Debug, Default)]
pub(crate) struct Run {
    pub(crate) command: Option<String>,
    pub(crate) args: Vec<Text>,
    pub(crate) env: Vec<(String, Text)>,
    /// `http` or `sse`.
    pub(crate) transport: Option<&'static str>,
    pub(crate) url: Option<Text>,
    pub(crate) headers: Vec<(String, Text)>,
    /// Path of the SSE endpoint, for a process that listens on a port.
    pub(crate) serves: Option<String>,
}

impl Manifest {
    /// Selects the first package that fits the requested runtime and transport, or else a remote. The error names
    /// what the manifest offers instead.
    pub(crate) fn offer(&self, runtime: Option<&str>, transport: Option<&str>) -> Result<Offer<'_>, String> {
        let fits = |it: &&Package| {
            let own = it.runtime();
            let asked = runtime.is_none_or(|asked| own.as_deref().is_none_or(|own| own == asked));
            asked && it.cannot_run(runtime).is_none()
        };
        let wanted = ["stdio", "sse"].into_iter().filter(|it| transport.is_none_or(|asked| asked == *it));
        let package = wanted.into_iter().find_map(|word| {
            let speaks = |it: &&Package| it.transport.as_deref().is_none_or(|own| own == word);
            self.packages.iter().filter(fits).find(speaks).map(|it| Offer::Package(it, word))
        });
        let elsewhere = runtime.is_none() && transport.is_none_or(|it| it == REMOTE);
        let place = self.remotes.first().filter(|_| elsewhere).map(Offer::Remote);
        package.or(place).ok_or_else(|| match self.packages.first() {
            _ if transport == Some(REMOTE) => "it has no 'remotes'".to_owned(),
            Some(first) => first.cannot_run(runtime).unwrap_or_else(|| first.instead(runtime)),
            None => "it has no 'packages'".to_owned(),
        })
    }
}

impl Package {
    /// Returns the error for a package that differs from the requested runtime or transport.
    fn instead(&self, runtime: Option<&str>) -> String {
        let own = self.runtime().or_else(|| self.runtime.clone()).unwrap_or_default();
        match runtime.filter(|asked| *asked != own) {
            Some(asked) => format!("it has no package for '{asked}', but one for '{}'", short(&own)),
            None => {
                let transport = self.transport.as_deref().unwrap_or("stdio");
                format!("its package speaks '{}', which is not what it was asked for", short(transport))
            }
        }
    }

    /// Returns the path of the SSE endpoint. Containers are not supported, because their port would have to be
    /// published.
    pub(crate) fn path_of_stream(&self, run: &Run) -> Result<String, String> {
        if run.command.as_deref() == Some("docker") {
            return Err("a container that serves 'sse' is not supported".to_owned());
        }
        let url = self.transport_url.as_deref().unwrap_or_default();
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
        let path = rest.find('/').map_or("/sse", |at| &rest[at..]);
        Ok(path.to_owned())
    }

    /// Returns the launcher for the package's registry, or `None` if the registry is missing or unknown.
    pub(crate) fn runtime(&self) -> Option<String> {
        let known = match self.registry.as_deref()? {
            "npm" => Some("npx"),
            "pypi" => Some("uvx"),
            "oci" | "docker" => Some("docker"),
            _ => None,
        };
        known.map(str::to_owned)
    }

    /// Returns the reason why wharf cannot run the package, if any.
    fn cannot_run(&self, asked: Option<&str>) -> Option<String> {
        let runtime = self.started_by(asked);
        let registry = self.registry.as_deref();
        match (registry, runtime.as_deref()) {
            (Some(other), _) if self.runtime().is_none() => {
                Some(format!("packages of '{}' are not supported; npm, pypi and oci are", short(other)))
            }
            (_, Some("npx" | "uvx" | "docker" | "python" | "node")) => self.foreign_registry(),
            (_, Some(other)) => Some(format!(
                "the runtime '{}' is not supported; npx, uvx, docker, python and node are",
                short(other)
            )),
            (_, None) => Some("it does not say what runs the package".to_owned()),
        }
    }

    fn started_by(&self, asked: Option<&str>) -> Option<String> {
        self.runtime().or_else(|| asked.map(str::to_owned)).or_else(|| self.runtime.clone())
    }

    /// Rejects a package of a custom registry, because the operator's launcher could find a different package of that
    /// name.
    fn foreign_registry(&self) -> Option<String> {
        let usual = match self.registry.as_deref()? {
            "npm" => "npmjs",
            "pypi" => "pypi",
            _ => return None,
        };
        let url = self.registry_url.as_deref().filter(|it| !it.is_empty())?;
        let host = url.split_once("://").map_or(url, |(_, rest)| rest).split(['/', ':']).next()?;
        (!host.split('.').any(|it| it == usual))
            .then(|| "its package comes from a registry of its own, which is not supported".to_owned())
    }

    /// Builds the command, its arguments (`more` comes after the package's own) and the environment.
    pub(crate) fn run(
        &self,
        asked: Option<&str>,
        filler: &mut Filler<'_>,
        more: Vec<Text>,
    ) -> Result<Run, String> {
        let command = self.started_by(asked).ok_or("it does not say what runs the package")?;
        let mut args: Vec<Text> = Vec::new();
        let runtime: Vec<Text> = self.runtime_arguments.iter().flat_map(|it| filler.argument(it)).collect();
        if command == "docker" {
            let first = self.command.iter().find(|it| *it != "docker").map(String::as_str);
            let says_run = first == Some("run") || runtime.first().is_some_and(|it| it.expose() == "run");
            let usual: &[&str] = if says_run { &[] } else { &["run", "-i", "--rm"] };
            args.extend(usual.iter().map(|it| Text::plain(*it)));
        }
        let from = runtime.iter().any(|it| it.expose() == "--from");
        args.extend(runtime);
        match &self.identifier {
            Some(identifier) => args.push(Text::plain(self.named(identifier, &command, from))),
            None if self.command.is_empty() => return Err("its package has no 'identifier'".to_owned()),
            None => {}
        }
        let command_line = self.command.iter().skip(usize::from(self.command.first() == Some(&command)));
        args.extend(command_line.map(Text::plain));
        args.extend(self.package_arguments.iter().flat_map(|it| filler.argument(it)));
        args.extend(more);
        Ok(Run { command: Some(command), args, env: self.environment(filler), ..Run::default() })
    }

    /// Returns the declared variables that have a value.
    pub(crate) fn environment(&self, filler: &mut Filler<'_>) -> Vec<(String, Text)> {
        let variables = self.variables.iter();
        variables.filter_map(|it| Some((it.name.clone(), filler.variable(&it.name, &it.input)?))).collect()
    }

    /// Returns the package in its launcher's syntax, with its version. The version is omitted if `--from` names the
    /// package.
    fn named(&self, identifier: &str, command: &str, from: bool) -> String {
        let between = match command {
            "npx" => "@",
            "uvx" => "==",
            "docker" => ":",
            _ => return identifier.to_owned(),
        };
        let identifier = match command {
            "docker" => self.with_registry(identifier),
            _ => identifier.to_owned(),
        };
        // An image may already have a tag or digest.
        let tagged = command == "docker"
            && identifier.rsplit('/').next().is_some_and(|name| name.contains([':', '@']));
        match &self.version {
            Some(version) if !from && !tagged => format!("{identifier}{between}{version}"),
            _ => identifier,
        }
    }

    /// Adds the registry's host to an image name, unless it is Docker's own registry.
    fn with_registry(&self, identifier: &str) -> String {
        let url = self.registry_url.as_deref().unwrap_or_default();
        let host = url.split_once("://").map_or(url, |(_, rest)| rest).trim_end_matches('/');
        let usual = host.is_empty() || host.split('.').any(|it| it == "docker");
        match usual || identifier.starts_with(&format!("{host}/")) {
            true => identifier.to_owned(),
            false => format!("{host}/{identifier}"),
        }
    }
}

impl Remote {
    pub(crate) fn run(&self, filler: &mut Filler<'_>) -> Result<Run, String> {
        let transport = match self.transport.as_deref() {
            Some("sse") => "sse",
            None | Some("streamable-http" | "streamable_http" | "streamable" | "http") => "http",
            Some(other) => return Err(format!("the transport '{}' of a remote is not known", short(other))),
        };
        let url = filler.value("url", &self.url);
        let mut headers = Vec::new();
        for header in &self.headers {
            if let Some(value) = filler.value(&header.name, &header.input) {
                headers.push((header.name.clone(), value));
            }
        }
        Ok(Run { transport: Some(transport), url, headers, ..Run::default() })
    }
}

/// Name of the transport for a server that already runs elsewhere.
pub(super) const REMOTE: &str = "streamable_http";

/// Formats a word of a manifest for a message.
fn short(word: &str) -> String {
    crate::complaint::echo(word)
}
