//! Errors of npm when it cannot run a package.

use super::{
    Case, check,
    fake_servers::{FakeServers, Routes, json, response},
    workspace,
};
use crate::servers::{
    background::free_port,
    workspace::{Workspace, program},
};
use std::{fs, process::Command};
use tempfile::TempDir;

/// Cases with a test server as the registry. It has a package without a program, and one with a program.
pub(super) const CASES: &[Case] = &[
    Case {
        row: "npm-unknown-package",
        cause: "npm error code E404",
        entry: "command: npx, args: [nothing-here]",
    },
    Case {
        row: "npm-unknown-version",
        cause: "npm error code ETARGET",
        entry: "command: npx, args: ['harbour@99']",
    },
    Case {
        row: "npm-credentials",
        cause: "npm error code E401",
        entry: "command: npx, args: ['@closed/harbour']",
    },
    Case {
        row: "npm-no-tool",
        cause: "could not determine executable",
        entry: "command: npx, args: [harbour]",
    },
    Case { row: "npm-failed", cause: "npm error code E500", entry: "command: npx, args: [broken]" },
    Case {
        row: "slow-npx-download",
        cause: "`never` was not downloaded within 2 s",
        entry: "command: npx, args: [never], install_timeout: 2",
    },
    Case { row: "npx-module", cause: "MODULE_NOT_FOUND", entry: "command: npx, args: [wreck]" },
    Case {
        row: "npx-asks",
        cause: "npx canceled due to missing packages",
        entry: "command: /bin/sh, args: [-c, 'npm_config_registry={registry} npm_config_cache={own} exec npx --no lighthouse']",
    },
    Case {
        row: "npm-cache",
        cause: "npm error code EACCES",
        entry: "command: /bin/sh, args: [-c, '{unprivileged} npm_config_registry={registry} npm_config_cache={locked} npx -y harbour']",
    },
];

/// Cases with an unreachable registry.
pub(super) const UNREACHABLE: &[Case] =
    &[Case { row: "npm-unreachable", cause: "npm error", entry: "command: npx, args: [harbour]" }];

/// A program that lacks one of its modules.
const WRECK: &str = "#!/usr/bin/env node\nrequire('ballast')\n";

#[tokio::test]
async fn npm_errors_have_hints() {
    let mut far = FakeServers::default();
    let folder = TempDir::new().expect("a folder");
    let locked = locked(&folder);
    // The packages are on a second server, because the registry's metadata must contain their URLs.
    let wreck = r#"{"name":"wreck","version":"1.0.0","bin":"wreck.js"}"#;
    let package_server = far.respond_with(vec![
        ("/harbour.tgz".to_owned(), tarball(r#"{"name":"harbour","version":"1.0.0"}"#, None)),
        ("/wreck.tgz".to_owned(), tarball(wreck, Some(("wreck.js", WRECK)))),
    ]);
    let package_server = package_server.await;
    let registry = address(far.respond_with(routes(package_server)).await);
    let filled = [
        ("registry", registry.clone()),
        ("own", folder.path().join("own").display().to_string()),
        ("locked", locked),
        ("unprivileged", unprivileged()),
    ];
    let workspace = with_registry(&registry, workspace(CASES, &filled, &["/bin/sh"]));
    check(&workspace, CASES).await;
    workspace.assert_nothing_left();
}

#[tokio::test]
async fn unreachable_registry_has_a_hint() {
    for registry in [address(free_port()), "http://registry.invalid/".to_owned()] {
        let workspace = with_registry(&registry, workspace(UNREACHABLE, &[], &[]));
        check(&workspace, UNREACHABLE).await;
    }
}

pub(crate) fn with_registry(registry: &str, workspace: Workspace) -> Workspace {
    let cache = workspace.path("npm").display().to_string();
    workspace
        .set("NPM_CONFIG_REGISTRY", registry)
        .set("NPM_CONFIG_CACHE", &cache)
        .set("NPM_CONFIG_FETCH_RETRIES", "0")
        .set("NPM_CONFIG_PREFER_OFFLINE", "false")
}

pub(crate) fn address(port: u16) -> String {
    format!("http://127.0.0.1:{port}/")
}

fn routes(package_server: u16) -> Routes {
    let dist = format!(r#"{{"tarball":"{}harbour.tgz"}}"#, address(package_server));
    let harbour = format!(
        r#"{{"name":"harbour","dist-tags":{{"latest":"1.0.0"}},"versions":{{"1.0.0":{{"name":"harbour","version":"1.0.0","dist":{dist}}}}}}}"#
    );
    let lighthouse = harbour
        .replace("harbour", "lighthouse")
        .replace(r#""dist":"#, r#""bin":{"lighthouse":"l.js"},"dist":"#);
    let wreck =
        harbour.replace("harbour", "wreck").replace(r#""dist":"#, r#""bin":{"wreck":"wreck.js"},"dist":"#);
    vec![
        ("/wreck".to_owned(), json(&wreck)),
        ("/lighthouse".to_owned(), json(&lighthouse)),
        ("/harbour".to_owned(), json(&harbour)),
        ("/@closed".to_owned(), response("401 Unauthorized", "", b"{}")),
        ("/broken".to_owned(), response("500 Oh No", "", b"{}")),
        ("/never".to_owned(), Vec::new()),
    ]
}

/// Packs a package as npm does: its manifest, and one more file.
pub(crate) fn tarball(manifest: &str, file: Option<(&str, &str)>) -> Vec<u8> {
    let folder = TempDir::new().expect("a folder");
    let package = folder.path().join("package");
    fs::create_dir(&package).expect("a folder");
    for (name, text) in [("package.json", manifest)].into_iter().chain(file) {
        fs::write(package.join(name), text).expect("a file");
    }
    let packed = Command::new(program("tar")).args(["-cz", "-C"]).arg(folder.path()).arg("package").output();
    let packed = packed.expect("tar runs");
    assert!(packed.status.success(), "{packed:?}");
    response("200 OK", "Content-Type: application/octet-stream\r\n", &packed.stdout)
}

/// Creates a cache folder that its owner cannot write to.
fn locked(folder: &TempDir) -> String {
    use std::os::unix::fs::PermissionsExt;
    let locked = folder.path().join("locked");
    fs::create_dir(&locked).expect("a folder");
    fs::set_permissions(&locked, fs::Permissions::from_mode(0o500)).expect("its mode");
    locked.display().to_string()
}

/// Returns a shell prefix that makes file permissions apply even to root.
fn unprivileged() -> String {
    if rustix::process::geteuid().is_root() {
        "exec setpriv --bounding-set=-dac_override,-dac_read_search --inh-caps=-dac_override,-dac_read_search env".to_owned()
    } else {
        "exec env".to_owned()
    }
}
