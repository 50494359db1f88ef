//! Finds out which package a server runs from: its version, the hash of its content, and its dependencies.
//!
//! wharf asks no registry. It reads what the launchers have installed on this machine.

mod docker;
mod npm;
mod pypi;

use std::path::Path;
use url::Url;
use wharf_config::{
    Download, Endpoint, Launch, Launcher, LockedDependencies, LockedPackage, MaskedString, PackageKind,
    Program, Source, sha256,
};

/// Maximum size of a granted program that is hashed, in bytes.
const MAX_PROGRAM_BYTES: u64 = 1024 * 1024 * 1024;

/// Returns the package of a source, or `None` for a built-in server. What cannot be found stays empty. `process` is the
/// process of the running server.
pub async fn installed_package(source: &Source, process: Option<u32>) -> Option<LockedPackage> {
    match &source.endpoint {
        Endpoint::Builtin(_) => None,
        Endpoint::Stdio(launch) => Some(launched_package(launch, process).await),
        Endpoint::Sse(remote) | Endpoint::Http { remote, .. } => {
            Some(remote_package(&remote.url, &remote.shown_url))
        }
        Endpoint::WebSocket(url, shown) => Some(remote_package(url, shown)),
    }
}

async fn launched_package(launch: &Launch, process: Option<u32>) -> LockedPackage {
    match (&launch.download, &launch.program) {
        (Some(Download::Npm { packages, .. }), _) => {
            let spec = launch.written_package().or(packages.first());
            let spec = spec.map_or("", |it| it.shown());
            npm::find(launch, spec).unwrap_or_else(|| LockedPackage::new(PackageKind::Npm, spec))
        }
        (Some(Download::PyPi { package, .. }), _) => {
            let spec = launch.written_package().unwrap_or(package).shown();
            let found = process.and_then(|it| pypi::find(it, spec));
            found.unwrap_or_else(|| LockedPackage::new(PackageKind::PyPi, spec))
        }
        (Some(Download::Image { image, .. }), _) => {
            let spec = launch.written_package().unwrap_or(image).shown();
            let found = docker::find(launch, spec, image.expose()).await;
            found.unwrap_or_else(|| LockedPackage::new(PackageKind::Docker, spec))
        }
        // A locked image that only this machine knows is started by its id and never downloaded.
        (None, Program::Launcher(Launcher::Docker)) if launch.pinned_package().is_some() => {
            let spec = launch.written_package().map_or("", |it| it.shown());
            let image = launch.pinned_package().map_or("", |it| it.expose());
            let found = docker::find(launch, spec, image).await;
            found.unwrap_or_else(|| LockedPackage::new(PackageKind::Docker, spec))
        }
        (None, Program::Granted(path)) => granted_program(path),
        (None, Program::Launcher(launcher)) => LockedPackage::new(PackageKind::Program, launcher.as_str()),
        (None, Program::Interpreter(interpreter)) => {
            LockedPackage::new(PackageKind::Program, interpreter.as_str())
        }
    }
}

/// Returns the address without its query, which may contain secrets. A variable stays as the agent file has it, because
/// its value is a secret.
fn remote_package(url: &Url, shown: &MaskedString) -> LockedPackage {
    if shown.is_secret() {
        let address = shown.shown().split(['?', '#']).next().unwrap_or_default();
        return LockedPackage::new(PackageKind::Remote, address);
    }
    let mut url = url.clone();
    url.set_query(None);
    url.set_fragment(None);
    LockedPackage::new(PackageKind::Remote, url.as_str())
}

/// Hashes a program that the operator granted. Its path differs between machines, so only its name is kept.
fn granted_program(path: &Path) -> LockedPackage {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut package = LockedPackage::new(PackageKind::Program, name);
    if let Ok(bytes) = wharf_config::read_regular(path, MAX_PROGRAM_BYTES) {
        package.integrity.insert(String::new(), sha256(&bytes));
    }
    package
}

/// Returns why a package is not the locked one. `None` if it is, or if that cannot be known.
pub(crate) fn integrity_mismatch(locked: &LockedPackage, found: &LockedPackage) -> Option<String> {
    let differing = found.integrity.iter().find_map(|(tag, hash)| {
        let expected = locked.integrity.get(tag)?;
        (expected != hash).then(|| format!("its content is {hash}, wharf.lock has {expected}"))
    });
    if differing.is_some() {
        return differing;
    }
    match (&locked.version, &found.version) {
        (Some(locked), Some(found)) if locked != found => {
            Some(format!("its version is {found}, wharf.lock has {locked}"))
        }
        _ => None,
    }
}

/// Returns whether a package has other dependencies than the locked ones.
pub(crate) fn has_other_dependencies(locked: &LockedPackage, found: &LockedPackage) -> bool {
    let is_known = found.version.is_some() && locked.dependencies != LockedDependencies::default();
    is_known && locked.dependencies != found.dependencies
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::secret_in_lock;
    use wharf_config::{Env, LockedServer, load};

    #[test]
    fn address_of_a_remote_server_is_locked_without_query_and_secrets() {
        let mut env = Env::bare();
        env.variables.insert("KEY".to_owned(), "hunter2hunter2".to_owned());
        for (transport, url, locked) in [
            ("http", "https://h/mcp?a=b#c", "https://h/mcp"),
            ("http", "https://h", "https://h/"),
            ("http", "https://h/${KEY}/mcp?b=${KEY}", "https://h/${KEY}/mcp"),
            ("sse", "https://h/${KEY}", "https://h/${KEY}"),
            ("websocket", "wss://h/${KEY}/mcp?key=${KEY}", "wss://h/${KEY}/mcp"),
            ("http", "https://h/mcp?key=${KEY}", "https://h/mcp"),
        ] {
            let text = format!(
                "tools: [{{name: a, description: b, type: mcp, server: x, transport: {transport}, url: '{url}'}}]"
            );
            let (plan, diagnostics) = load(&text, &env);
            let plan = plan.unwrap_or_else(|| panic!("{}", diagnostics.render(false)));
            let package = match &plan.sources[0].endpoint {
                Endpoint::Sse(remote) | Endpoint::Http { remote, .. } => {
                    remote_package(&remote.url, &remote.shown_url)
                }
                Endpoint::WebSocket(url, shown) => remote_package(url, shown),
                other => panic!("{other:?}"),
            };
            assert_eq!((package.spec.as_str(), package.kind), (locked, PackageKind::Remote), "{url}");
            let server = LockedServer { package: Some(package), ..LockedServer::default() };
            assert_eq!(secret_in_lock(&plan, &server), None, "{url}");
        }
    }

    #[test]
    fn dependencies_are_compared_if_both_are_known() {
        let package = |version: Option<&str>, hash: Option<&str>| LockedPackage {
            kind: PackageKind::Npm,
            spec: "a".to_owned(),
            integrity: Default::default(),
            is_local: false,
            version: version.map(str::to_owned),
            dependencies: LockedDependencies {
                hash: hash.map(|it| (1, it.to_owned())),
                ..LockedDependencies::default()
            },
        };
        for (locked, found, is_other) in [
            (package(Some("1"), Some("a")), package(Some("1"), Some("b")), true),
            (package(Some("1"), Some("a")), package(Some("1"), Some("a")), false),
            (package(Some("1"), None), package(Some("1"), Some("b")), false),
            (package(Some("1"), Some("a")), package(None, None), false),
        ] {
            assert_eq!(has_other_dependencies(&locked, &found), is_other, "{locked:?} {found:?}");
        }
    }
}
