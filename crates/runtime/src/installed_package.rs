//! Finds out which package a server runs from: its version, the hash of its content, and its dependencies.
//!
//! wharf asks no registry. It reads what the launchers have installed on this machine.

mod docker;
mod npm;
mod pypi;

use std::path::Path;
use wharf_config::{
    DependencyCheck, Download, Endpoint, Launch, Launcher, LockSettings, LockedDependencies, LockedPackage,
    PackageKind, Program, Source, sha256,
};

/// Maximum size of a granted program that is hashed, in bytes.
const MAX_PROGRAM_BYTES: u64 = 1024 * 1024 * 1024;

/// Returns the package of a source, or `None` for a built-in server. What cannot be found stays empty. `process` is the
/// process of the running server.
pub async fn installed_package(source: &Source, process: Option<u32>) -> Option<LockedPackage> {
    match &source.endpoint {
        Endpoint::Builtin(_) => None,
        Endpoint::Stdio(launch) => Some(launched_package(launch, process).await),
        Endpoint::Sse(remote) | Endpoint::Http { remote, .. } => Some(remote_package(&remote.url)),
        Endpoint::WebSocket(url, _) => Some(remote_package(url)),
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

/// Returns the address without its query, which may contain secrets.
fn remote_package(url: &url::Url) -> LockedPackage {
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

/// Returns why the dependencies of a package are not the locked ones, if that has to be enforced. Otherwise only logs it.
pub(crate) fn dependency_mismatch(
    locked: &LockedPackage,
    found: &LockedPackage,
    settings: &LockSettings,
) -> Option<String> {
    let is_known = found.version.is_some() && locked.dependencies != LockedDependencies::default();
    if !is_known || locked.dependencies == found.dependencies {
        return None;
    }
    let why = "its dependencies are others".to_owned();
    if settings.dependencies == DependencyCheck::Enforce {
        return Some(why);
    }
    tracing::info!(target: "wharf::lock", package = locked.spec, "{why} than in wharf.lock");
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_dependencies_are_refused_only_if_that_is_enforced() {
        let package = |hash: Option<&str>| LockedPackage {
            kind: PackageKind::Npm,
            spec: "a".to_owned(),
            integrity: Default::default(),
            is_local: false,
            version: Some("1".to_owned()),
            dependencies: LockedDependencies {
                hash: hash.map(str::to_owned),
                ..LockedDependencies::default()
            },
        };
        let settings = |dependencies| LockSettings { dependencies, ..LockSettings::default() };
        for (locked, found, check, is_refused) in [
            (Some("a"), Some("b"), DependencyCheck::Enforce, true),
            (Some("a"), Some("b"), DependencyCheck::Warn, false),
            (Some("a"), Some("a"), DependencyCheck::Enforce, false),
            (None, Some("b"), DependencyCheck::Enforce, false),
        ] {
            let refused = dependency_mismatch(&package(locked), &package(found), &settings(check));
            assert_eq!(refused.is_some(), is_refused, "{locked:?} {found:?} {check:?}");
        }
    }
}
