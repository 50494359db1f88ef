//! Errors of docker when it cannot run an image. The tests use podman in place of docker, as in `servers::docker`.

use super::{
    Case, check,
    fake_servers::{FakeServers, Routes, json, response},
    workspace,
};
use crate::servers::{docker::docker, workspace::Workspace, workspace::program};
use std::{fs, os::unix::fs::PermissionsExt, process::Command};

/// Cases with a test server as the registry.
pub(super) const CASES: &[Case] = &[
    Case {
        row: "docker-no-tag",
        cause: "manifest unknown",
        entry: "command: docker, args: [run, --rm, -i, '127.0.0.1:{registry}/harbour:none']",
    },
    Case {
        row: "docker-credentials",
        cause: "denied",
        entry: "command: docker, args: [run, --rm, -i, '127.0.0.1:{registry}/closed:1']",
    },
    Case {
        row: "download-failed",
        cause: "500",
        entry: "command: docker, args: [run, --rm, -i, '127.0.0.1:{registry}/broken:1']",
    },
];

/// Cases without an init program for containers.
pub(super) const NO_INIT: &[Case] = &[Case {
    row: "docker-no-init",
    cause: "container-init binary not found",
    entry: "command: docker, args: [run, --rm, -i, 'localhost/harbour']",
}];

/// Cases without a running daemon.
pub(super) const NO_DAEMON: &[Case] = &[Case {
    row: "docker-no-daemon",
    cause: "unable to connect to Podman socket",
    entry: "command: docker, args: [run, --rm, -i, harbour]",
}];

#[tokio::test]
async fn image_errors_have_hints() {
    let mut far = FakeServers::default();
    let port = far.respond_with(routes()).await.to_string();
    let workspace = workspace(CASES, &[("registry", port.clone())], &[]);
    let trust = format!("[[registry]]\nlocation = \"127.0.0.1:{port}\"\ninsecure = true\n");
    fs::write(workspace.path("registries.conf"), trust).expect("a file");
    let behind = docker(&workspace).join("docker");
    let trusting = format!(
        "CONTAINERS_REGISTRIES_CONF='{}' exec '{}' \"$@\"",
        workspace.path("registries.conf").display(),
        behind.display()
    );
    let workspace = with_docker(workspace, &trusting);
    check(&workspace, CASES).await;
}

#[tokio::test]
async fn missing_init_program_has_a_hint() {
    let workspace = workspace(NO_INIT, &[], &[]);
    let behind = docker(&workspace).join("docker").display().to_string();
    let import = format!("tar -c --files-from=/dev/null | '{behind}' import --quiet - localhost/harbour");
    let imported = Command::new("/bin/sh").args(["-c", &import]).output().expect("a shell");
    assert!(imported.status.success(), "{imported:?}");
    let without = format!(
        "verb=$1; shift; [ $verb != run ] || set -- --init-path=/no/init \"$@\"; exec '{behind}' $verb \"$@\""
    );
    check(&with_docker(workspace, &without), NO_INIT).await;
}

#[tokio::test]
async fn missing_daemon_has_a_hint() {
    let podman = program("podman");
    let remote = format!("exec '{}' --remote --url unix:///nowhere/podman.sock \"$@\"", podman.display());
    check(&with_docker(workspace(NO_DAEMON, &[], &[]), &remote), NO_DAEMON).await;
}

/// Puts a `docker` with this script first on `PATH`.
fn with_docker(workspace: Workspace, script: &str) -> Workspace {
    let folder = workspace.make_folder("first");
    let docker = folder.join("docker");
    fs::write(&docker, format!("#!/bin/sh\n{script}\n")).expect("a file");
    fs::set_permissions(docker, fs::Permissions::from_mode(0o755)).expect("it can be run");
    workspace.first_on_path([folder])
}

fn routes() -> Routes {
    let unknown = br#"{"errors":[{"code":"MANIFEST_UNKNOWN","message":"manifest unknown"}]}"#;
    let denied = br#"{"errors":[{"code":"DENIED","message":"requested access to the resource is denied"}]}"#;
    let kind = "Content-Type: application/json\r\n";
    vec![
        ("/v2/harbour/".to_owned(), response("404 Not Found", kind, unknown)),
        ("/v2/closed/".to_owned(), response("403 Forbidden", kind, denied)),
        ("/v2/broken/".to_owned(), response("500 Oh No", kind, b"{}")),
        ("/v2/".to_owned(), json("{}")),
    ]
}
