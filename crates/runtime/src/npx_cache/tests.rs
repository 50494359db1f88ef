//! Tests the states in which an install can leave a folder of npm's cache.

use super::*;
use crate::MaskedString;
use tempfile::TempDir;
use wharf_config::{EnvOrigin, EnvVar};

fn env(variables: &[(&str, &str)]) -> ChildEnv {
    let variable = |value: &str| EnvVar { value: MaskedString::plain(value), origin: EnvOrigin::Always };
    ChildEnv(variables.iter().map(|(name, value)| ((*name).to_owned(), variable(value))).collect())
}

fn unpack_package(folder: &Path, finished: bool) {
    fs::create_dir_all(folder.join("node_modules/server")).unwrap();
    if finished {
        fs::write(folder.join("package.json"), "{}").unwrap();
    }
}

#[test]
fn cache_folder_follows_npm_settings() {
    let home = TempDir::new().unwrap();
    let path = home.path().to_str().unwrap();
    assert_eq!(cache(&env(&[("HOME", path)])), Some(home.path().join(".npm")));
    fs::write(home.path().join(".npmrc"), "; x\nregistry=y\ncache = ~/elsewhere\n").unwrap();
    assert_eq!(cache(&env(&[("HOME", path)])), Some(home.path().join("elsewhere")));
    let set = env(&[("HOME", path), ("NPM_CONFIG_CACHE", "/srv/npm")]);
    assert_eq!(cache(&set), Some(PathBuf::from("/srv/npm")));
    assert_eq!(cache(&env(&[])), None);
}

#[test]
fn claim_is_exclusive_and_ends_with_its_release() {
    let cache = TempDir::new().unwrap();
    let folder = cache.path().join("0123");
    let Claim::Held(claimed) = claim(&folder) else { panic!("it is free") };
    assert!(matches!(claim(&folder), Claim::Taken));
    unpack_package(&folder, true);
    assert!(!is_complete(&folder), "while somebody installs");
    claimed.release();
    assert!(is_complete(&folder));
    assert!(matches!(claim(&folder), Claim::Complete));
    assert!(is_complete(&folder));
}

#[test]
fn claim_left_by_a_killed_host_empties_the_folder() {
    let cache = TempDir::new().unwrap();
    let folder = cache.path().join("0123");
    unpack_package(&folder, true);
    fs::write(folder.join(CLAIM_FILE), "installing\n").unwrap();
    let Claim::Held(claimed) = claim(&folder) else { panic!("nobody holds it") };
    assert!(!folder.join("node_modules").exists() && !folder.join("package.json").exists());
    claimed.release();
    assert!(!folder.exists());
}

#[test]
fn folder_that_npm_is_unpacking_is_not_emptied() {
    let cache = TempDir::new().unwrap();
    let folder = cache.path().join("0123");
    unpack_package(&folder, false);
    assert!(!is_complete(&folder));
    let Claim::Held(_claimed) = claim(&folder) else { panic!("nobody holds it") };
    assert!(folder.join("node_modules/server").exists());
}

#[test]
fn an_unfinished_or_half_updated_folder_is_removed() {
    let cache = TempDir::new().unwrap();
    for (left, interrupted) in [
        (&["node_modules/server"][..], true),
        (&["node_modules/server", "package.json"], false),
        (&["node_modules/.server-a1B2c3D4", "package.json"], true),
        (&["node_modules/@scope/.server-a1B2c3_4", "package.json"], true),
        (&["node_modules/.cache", "node_modules/.bin", "package.json"], false),
        (&["node_modules/server", CLAIM_FILE], false),
    ] {
        let folder = TempDir::new_in(cache.path()).unwrap();
        for name in left {
            match name.starts_with("node_modules") {
                true => fs::create_dir_all(folder.path().join(name)).unwrap(),
                false => fs::write(folder.path().join(name), "").unwrap(),
            }
        }
        assert_eq!(remove_if_interrupted(folder.path()), interrupted, "{left:?}");
        assert_eq!(folder.path().exists(), !interrupted, "{left:?}");
    }
}

#[test]
fn a_global_package_is_found_beside_the_prefix() {
    let prefix = TempDir::new().unwrap();
    let package = prefix.path().join("lib/node_modules/@scope/server");
    fs::create_dir_all(&package).unwrap();
    fs::write(package.join("package.json"), "{}").unwrap();
    let env = env(&[("npm_config_prefix", prefix.path().to_str().unwrap())]);
    assert!(is_global("@scope/server@latest", &env) && is_global("@scope/server", &env));
    assert!(!is_global("server", &env));
}
