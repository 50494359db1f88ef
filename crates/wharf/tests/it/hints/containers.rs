//! Errors of docker when it cannot run an image. The tests use podman in place of docker, as in `servers::docker`.

use super::{
    Case, check,
    far::{Far, Routes, json, response},
    place,
};
use crate::servers::{docker::docker, place::Place, place::program};
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
async fn images() {
    let mut far = Far::default();
    let port = far.answering(routes()).await.to_string();
    let place = place(CASES, &[("registry", port.clone())], &[]);
    let trust = format!("[[registry]]\nlocation = \"127.0.0.1:{port}\"\ninsecure = true\n");
    fs::write(place.path("registries.conf"), trust).expect("a file");
    let behind = docker(&place).join("docker");
    let trusting = format!(
        "CONTAINERS_REGISTRIES_CONF='{}' exec '{}' \"$@\"",
        place.path("registries.conf").display(),
        behind.display()
    );
    let place = with_docker(place, &trusting);
    check(&place, CASES).await;
}

#[tokio::test]
async fn no_init() {
    let place = place(NO_INIT, &[], &[]);
    let behind = docker(&place).join("docker").display().to_string();
    let import = format!("tar -c --files-from=/dev/null | '{behind}' import --quiet - localhost/harbour");
    let imported = Command::new("/bin/sh").args(["-c", &import]).output().expect("a shell");
    assert!(imported.status.success(), "{imported:?}");
    let without = format!(
        "verb=$1; shift; [ $verb != run ] || set -- --init-path=/no/init \"$@\"; exec '{behind}' $verb \"$@\""
    );
    check(&with_docker(place, &without), NO_INIT).await;
}

#[tokio::test]
async fn no_daemon() {
    let podman = program("podman");
    let remote = format!("exec '{}' --remote --url unix:///nowhere/podman.sock \"$@\"", podman.display());
    check(&with_docker(place(NO_DAEMON, &[], &[]), &remote), NO_DAEMON).await;
}

/// Puts a `docker` with this script first on `PATH`.
fn with_docker(place: Place, script: &str) -> Place {
    let folder = place.make_folder("first");
    let docker = folder.join("docker");
    fs::write(&docker, format!("#!/bin/sh\n{script}\n")).expect("a file");
    fs::set_permissions(docker, fs::Permissions::from_mode(0o755)).expect("it can be run");
    place.first_on_path([folder])
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
