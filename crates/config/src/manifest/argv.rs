//! Converts a manifest to the fields of a `tools:` entry: a command with its arguments, or a URL.

use super::{Manifest, ManifestFiller, Package, Remote};
use crate::{
    masked_string::MaskedString,
    plan::{PortEndpoint, PortTransport},
};

/// The package or remote of a manifest that was selected.
pub(crate) enum Selection<'a> {
    /// A package to run, with its transport if it listens on a port.
    Package(&'a Package, Option<PortTransport>),
    Remote(&'a Remote),
}

/// Fields of the resulting entry: either a command or a URL.
#[derive(Debug, Default)]
pub(crate) struct EntryFields {
    pub(crate) command: Option<String>,
    pub(crate) args: Vec<MaskedString>,
    pub(crate) env: Vec<(String, MaskedString)>,
    /// `http` or `sse`.
    pub(crate) transport: Option<&'static str>,
    pub(crate) url: Option<MaskedString>,
    pub(crate) headers: Vec<(String, MaskedString)>,
    /// Endpoint of a process that listens on a port.
    pub(crate) port: Option<PortEndpoint>,
}

impl Manifest {
    /// Selects the first package that fits the requested runtime and transport, or else a remote. The error names
    /// what the manifest offers instead.
    pub(crate) fn selection(
        &self,
        runtime: Option<&str>,
        transport: Option<&str>,
    ) -> Result<Selection<'_>, String> {
        let fits = |it: &&Package| {
            let own = it.runtime();
            let fits_runtime =
                runtime.is_none_or(|requested| own.as_deref().is_none_or(|own| own == requested));
            fits_runtime && it.unsupported_reason(runtime).is_none()
        };
        let wanted = [None, Some(PortTransport::Sse), Some(PortTransport::Http)];
        let wanted =
            wanted.into_iter().filter(|it| transport.is_none_or(|requested| is_named(*it, requested)));
        let find = |is_declared: bool| {
            wanted.clone().find_map(|word| {
                let fits_transport = |it: &&Package| match it.transport.as_deref() {
                    Some(own) => is_named(word, own),
                    None => !is_declared,
                };
                self.packages.iter().filter(fits).find(fits_transport).map(|it| Selection::Package(it, word))
            })
        };
        let allows_remote = runtime.is_none() && transport.is_none_or(|it| it == REMOTE);
        let place = || self.remotes.first().filter(|_| allows_remote).map(Selection::Remote);
        // If streamable HTTP is requested, a package that does not declare it is the last choice.
        let selected = match transport {
            Some(REMOTE) => find(true).or_else(place).or_else(|| find(false)),
            _ => find(false).or_else(place),
        };
        selected.ok_or_else(|| match self.packages.first() {
            None if transport == Some(REMOTE) => "it has no 'remotes'".to_owned(),
            Some(first) => {
                first.unsupported_reason(runtime).unwrap_or_else(|| first.mismatch_reason(runtime))
            }
            None => "it has no 'packages'".to_owned(),
        })
    }
}

impl Package {
    /// Returns the error for a package that differs from the requested runtime or transport.
    fn mismatch_reason(&self, runtime: Option<&str>) -> String {
        let own = self.runtime().or_else(|| self.runtime.clone()).unwrap_or_default();
        match runtime.filter(|requested| *requested != own) {
            Some(requested) => {
                format!("it has no package for '{requested}', but one for '{}'", for_message(&own))
            }
            None => {
                let transport = self.transport.as_deref().unwrap_or("stdio");
                format!(
                    "its package uses the transport '{}', which is not the requested one",
                    for_message(transport)
                )
            }
        }
    }

    /// Returns the endpoint of a package that listens on a port. Containers are not supported, because their port
    /// would have to be published.
    pub(crate) fn port(
        &self,
        transport: PortTransport,
        entry_fields: &EntryFields,
    ) -> Result<PortEndpoint, String> {
        if entry_fields.command.as_deref() == Some("docker") {
            return Err(format!("a container that serves '{}' is not supported", transport.as_str()));
        }
        let url = self.transport_url.as_deref().unwrap_or_default();
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
        let path = rest.find('/').map_or(transport.default_path(), |at| &rest[at..]);
        Ok(PortEndpoint { transport, path: path.to_owned() })
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
    fn unsupported_reason(&self, requested: Option<&str>) -> Option<String> {
        let runtime = self.launcher(requested);
        let registry = self.registry.as_deref();
        match (registry, runtime.as_deref()) {
            (Some("mcpb"), _) => Some("it is a bundle: download it and run `wharf add FILE.mcpb`".to_owned()),
            (Some(other), _) if self.runtime().is_none() => {
                Some(format!("packages of '{}' are not supported; npm, pypi and oci are", for_message(other)))
            }
            (_, Some("npx" | "uvx" | "docker" | "python" | "node")) => self.custom_registry_reason(),
            (_, Some(other)) => Some(format!(
                "the runtime '{}' is not supported; npx, uvx, docker, python and node are",
                for_message(other)
            )),
            (_, None) => Some("it names no runtime for the package".to_owned()),
        }
    }

    fn launcher(&self, requested: Option<&str>) -> Option<String> {
        self.runtime().or_else(|| requested.map(str::to_owned)).or_else(|| self.runtime.clone())
    }

    /// Rejects a package of a custom registry, because the operator's launcher could find a different package of that
    /// name.
    fn custom_registry_reason(&self) -> Option<String> {
        let usual = match self.registry.as_deref()? {
            "npm" => "npmjs",
            "pypi" => "pypi",
            _ => return None,
        };
        let url = self.registry_url.as_deref().filter(|it| !it.is_empty())?;
        let host = url.split_once("://").map_or(url, |(_, rest)| rest).split(['/', ':']).next()?;
        (!host.split('.').any(|it| it == usual))
            .then(|| "its package comes from a custom registry, which is not supported".to_owned())
    }

    /// Builds the command, its arguments (`more` comes after the package's own) and the environment.
    pub(crate) fn entry_fields(
        &self,
        requested: Option<&str>,
        filler: &mut ManifestFiller<'_>,
        more: Vec<MaskedString>,
    ) -> Result<EntryFields, String> {
        let command = self.launcher(requested).ok_or("it names no runtime for the package")?;
        let mut args: Vec<MaskedString> = Vec::new();
        let runtime: Vec<MaskedString> =
            self.runtime_arguments.iter().flat_map(|it| filler.argument(it)).collect();
        if command == "docker" {
            let first = self.command.iter().find(|it| *it != "docker").map(String::as_str);
            let says_run = first == Some("run") || runtime.first().is_some_and(|it| it.expose() == "run");
            let usual: &[&str] = if says_run { &[] } else { &["run", "-i", "--rm"] };
            args.extend(usual.iter().map(|it| MaskedString::plain(*it)));
        }
        let from = runtime.iter().any(|it| it.expose() == "--from");
        args.extend(runtime);
        match &self.identifier {
            Some(identifier) => args.push(MaskedString::plain(self.package_spec(identifier, &command, from))),
            None if self.command.is_empty() => return Err("its package has no 'identifier'".to_owned()),
            None => {}
        }
        let command_line = self.command.iter().skip(usize::from(self.command.first() == Some(&command)));
        args.extend(command_line.map(MaskedString::plain));
        args.extend(self.package_arguments.iter().flat_map(|it| filler.argument(it)));
        args.extend(more);
        Ok(EntryFields {
            command: Some(command),
            args,
            env: self.environment(filler),
            ..EntryFields::default()
        })
    }

    /// Returns the declared variables that have a value.
    pub(crate) fn environment(&self, filler: &mut ManifestFiller<'_>) -> Vec<(String, MaskedString)> {
        let variables = self.variables.iter();
        variables.filter_map(|it| Some((it.name.clone(), filler.variable(&it.name, &it.input)?))).collect()
    }

    /// Returns the package in its launcher's syntax, with its version. The version is omitted if `--from` names the
    /// package.
    fn package_spec(&self, identifier: &str, command: &str, from: bool) -> String {
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
    pub(crate) fn entry_fields(&self, filler: &mut ManifestFiller<'_>) -> Result<EntryFields, String> {
        let transport = match self.transport.as_deref() {
            Some("sse") => "sse",
            None => "http",
            Some(own) if STREAMABLE_HTTP.contains(&own) => "http",
            Some(other) => {
                return Err(format!("the transport '{}' of a remote is not supported", for_message(other)));
            }
        };
        let url = filler.value("url", &self.url);
        let mut headers = Vec::new();
        for header in &self.headers {
            if let Some(value) = filler.value(&header.name, &header.input) {
                headers.push((header.name.clone(), value));
            }
        }
        Ok(EntryFields { transport: Some(transport), url, headers, ..EntryFields::default() })
    }
}

/// Name of the transport that prefers a server that already runs elsewhere.
pub(super) const REMOTE: &str = "streamable_http";

/// Names of streamable HTTP in manifests and registrations.
const STREAMABLE_HTTP: [&str; 4] = ["streamable-http", REMOTE, "streamable", "http"];

/// Returns whether a manifest or registration uses this name for the transport. `None` is stdio.
fn is_named(transport: Option<PortTransport>, name: &str) -> bool {
    match transport {
        None => name == "stdio",
        Some(PortTransport::Sse) => name == "sse",
        Some(PortTransport::Http) => STREAMABLE_HTTP.contains(&name),
    }
}

/// Formats a word of a manifest for a message.
fn for_message(word: &str) -> String {
    crate::echo::echo(word)
}
