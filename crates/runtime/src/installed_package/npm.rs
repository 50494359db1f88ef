//! Reads what npx has installed: `package-lock.json` in the folder of npm's cache from which the server runs.

use crate::npx_cache;
use serde_json::Value;
use std::path::Path;
use wharf_config::{Launch, LockedDependencies, LockedPackage, PackageKind, read_regular, sha256};

/// Maximum size of a `package-lock.json`, in bytes.
const MAX_LOCK_BYTES: u64 = 64 * 1024 * 1024;

/// Returns the installed package. `None` if npm's cache does not have it, for example because it is installed globally.
pub(super) fn find(launch: &Launch, spec: &str) -> Option<LockedPackage> {
    let folder = npx_cache::folder(launch)?;
    let planned = read(&folder.join("package-lock.json"))?;
    let installed = read(&folder.join("node_modules/.package-lock.json"))?;
    let key = format!("node_modules/{}", name(spec));
    let text = |lock: &Value, member: &str| lock["packages"][&key][member].as_str().map(str::to_owned);
    let version = text(&planned, "version").filter(|it| Some(it) == text(&installed, "version").as_ref())?;
    let integrity =
        text(&planned, "integrity").filter(|it| Some(it) == text(&installed, "integrity").as_ref())?;
    let mut package = LockedPackage::new(PackageKind::Npm, spec);
    package.version = Some(version);
    package.integrity.insert(String::new(), integrity);
    package.dependencies = dependencies(&planned, &key);
    Some(package)
}

fn read(path: &Path) -> Option<Value> {
    serde_json::from_slice(&read_regular(path, MAX_LOCK_BYTES).ok()?).ok()
}

/// Returns the name of a package without its version.
fn name(spec: &str) -> &str {
    let version = spec.char_indices().skip(1).find(|(_, c)| *c == '@');
    version.map_or(spec, |(at, _)| &spec[..at])
}

/// Counts and hashes the dependencies: sorted lines of path, version and integrity.
fn dependencies(lock: &Value, own: &str) -> LockedDependencies {
    let packages = lock["packages"].as_object().into_iter().flatten();
    let mut lines: Vec<String> = packages
        .filter(|(path, _)| !path.is_empty() && *path != own)
        .map(|(path, it)| {
            let text = |member: &str| it[member].as_str().unwrap_or_default();
            format!("{path} {} {}\n", text("version"), text("integrity"))
        })
        .collect();
    lines.sort();
    let hash = Some((lines.len() as u64, sha256(lines.concat().as_bytes())));
    LockedDependencies { hash, ..LockedDependencies::default() }
}
