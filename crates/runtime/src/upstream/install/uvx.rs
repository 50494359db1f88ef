//! Inspects uv's cache for installed packages: `environments-v2/INTERPRETER/HASH` is a complete environment, because
//! uv moves it into place as a whole.

use std::{
    fs,
    path::{Path, PathBuf},
};
use wharf_config::ChildEnv;

/// Maximum number of environments to check.
const MAX_ENVIRONMENTS: usize = 512;

/// Returns whether an environment in the cache contains this package, or `None` if its name cannot be determined.
pub(super) fn is_cached(package: &str, env: &ChildEnv) -> Option<bool> {
    let (name, version) = name_and_version(package)?;
    let environments = environments(&folder(env)?);
    Some(environments.take(MAX_ENVIRONMENTS).any(|it| has_package(&it, &name, version.as_deref())))
}

/// Returns `UV_CACHE_DIR` or the default location. The child's environment does not contain `XDG_CACHE_HOME`.
fn folder(env: &ChildEnv) -> Option<PathBuf> {
    let variable = |name: &str| env.0.get(name).map(|it| it.value.expose()).filter(|it| !it.is_empty());
    let named = variable("UV_CACHE_DIR").map(PathBuf::from).filter(|it| it.is_absolute());
    named.or_else(|| Some(Path::new(variable("HOME")?).join(".cache/uv")))
}

fn environments(cache: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    let kinds = entries(cache)
        .filter(|it| it.file_name().is_some_and(|name| name.to_string_lossy().starts_with("environments-v")));
    kinds.flat_map(|it| entries(&it)).flat_map(|it| entries(&it))
}

fn has_package(environment: &Path, name: &str, version: Option<&str>) -> bool {
    let libraries = entries(&environment.join("lib")).map(|it| it.join("site-packages"));
    libraries.flat_map(|it| entries(&it)).any(|it| {
        let file = it.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let installed = file.strip_suffix(".dist-info").and_then(|it| it.split_once('-'));
        installed.is_some_and(|(its_name, its_version)| {
            normalized(its_name) == name && version.is_none_or(|it| it == its_version)
        })
    })
}

fn entries(folder: &Path) -> impl Iterator<Item = PathBuf> + use<> {
    fs::read_dir(folder).into_iter().flatten().flatten().map(|it| it.path())
}

/// Returns the normalized name, and the version if the package is pinned to exactly one.
fn name_and_version(package: &str) -> Option<(String, Option<String>)> {
    if package.contains([':', '/', '\\']) {
        return None;
    }
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let end = package.find(|c| !is_name(c)).unwrap_or(package.len());
    let (name, rest) = package.split_at(end);
    let exact = rest.strip_prefix("==").or_else(|| rest.strip_prefix('@'));
    let exact = exact.map(str::trim).filter(|it| it.starts_with(|c: char| c.is_ascii_digit()));
    let exact = exact.filter(|it| it.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '+')));
    (!name.is_empty()).then(|| (normalized(name), exact.map(str::to_owned)))
}

/// Normalizes a name: lower case, and one `-` for any run of separators.
fn normalized(name: &str) -> String {
    let parts = name.split(['-', '_', '.']).filter(|it| !it.is_empty());
    parts.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("-")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MaskedString;
    use std::collections::BTreeMap;
    use tempfile::TempDir;
    use wharf_config::{EnvOrigin, EnvVar};

    #[test]
    fn a_package_is_cached_when_a_finished_environment_has_it() {
        let cache = TempDir::new().unwrap();
        let site = cache.path().join("environments-v2/8b0c/706a/lib/python3.11/site-packages");
        fs::create_dir_all(site.join("awslabs.docs_server-1.2.0.dist-info")).unwrap();
        fs::create_dir_all(cache.path().join("wheels-v7/pypi/other")).unwrap();
        let value = MaskedString::plain(cache.path().to_string_lossy());
        let variable = EnvVar { value, origin: EnvOrigin::Always };
        let env = ChildEnv(BTreeMap::from([("UV_CACHE_DIR".to_owned(), variable)]));
        for (package, expected) in [
            ("awslabs.docs-server", Some(true)),
            ("Awslabs-Docs_Server@latest", Some(true)),
            ("awslabs.docs-server==1.2.0", Some(true)),
            ("awslabs.docs-server@1.3", Some(false)),
            ("awslabs.docs-server[x]>=1,<2", Some(true)),
            ("other", Some(false)),
            ("git+https://example.com/docs-server", None),
        ] {
            assert_eq!(is_cached(package, &env), expected, "{package}");
        }
        assert_eq!(is_cached("other", &ChildEnv::default()), None);
    }
}
