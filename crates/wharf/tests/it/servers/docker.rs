//! Tests a server in a container, with podman in place of docker. Nothing is pulled: the image is built here from a
//! single program. Images and containers are in the test's folder, separate from those of the machine.

use super::workspace::{Workspace, program};
use std::{
    env::consts::ARCH,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Command,
};

/// The documented example.
const AGENT_FILE: &str = include_str!("../config/good/s2-example-5-docker.yaml");

const SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/servers/fixtures/container.rs");

const IMAGE: &str = "FROM scratch\nCOPY server /server\nENTRYPOINT [\"/server\"]\n";

/// Settings for running a container inside a container that cannot change its own limits, beside others that do.
const SETTINGS: &str = r#"
[containers]
default_ulimits = ["nofile=20000:20000", "nproc=4096:4096"]
[engine]
runtime = "runc"
events_logger = "file"
cgroup_manager = "cgroupfs"
lock_type = "file"
"#;

#[tokio::test]
async fn container_receives_its_environment() {
    let workspace = Workspace::with(AGENT_FILE).set("API_KEY", "ahoy-4711");
    let bin = docker(&workspace);
    build_image(&workspace, &bin.join("docker"));
    let workspace = workspace.first_on_path([bin.clone()]);
    workspace.wharf("tools").await.check(0, "docker_mcp (1)\n  docker_mcp__key  ");
    // Process 1 is an init program, which handles signals and reaps zombies.
    workspace.wharf("call key").await.check(0, "the child of 1 has the key ahoy-4711\n");
    workspace.assert_nothing_left();
    let left =
        Command::new(bin.join("docker")).args(["ps", "--all", "--quiet"]).output().expect("docker runs");
    assert_eq!(String::from_utf8_lossy(&left.stdout), "", "containers that are left");
}

#[tokio::test]
async fn locked_image_is_started_by_its_id_and_another_one_is_not_used() {
    let workspace = Workspace::with(AGENT_FILE).set("API_KEY", "ahoy-4711");
    let bin = docker(&workspace);
    build_image(&workspace, &bin.join("docker"));
    let workspace = workspace.first_on_path([bin.clone()]);
    workspace.wharf("lock").await.check(0, "docker_mcp   new server");
    let lock = fs::read_to_string(workspace.path("wharf.lock")).expect("a lock");
    assert!(lock.contains("\"integrity\": \"sha256:") && lock.contains("\"local\": true"), "{lock}");
    workspace.wharf("lock --check").await.check(0, "nothing has changed");
    workspace.wharf("explain docker_mcp").await.check(0, "the version in wharf.lock");
    workspace.wharf("call key").await.check(0, "the key ahoy-4711");
    let other = lock.replacen("\"integrity\": \"sha256:", "\"integrity\": \"sha256:0", 1);
    fs::write(workspace.path("wharf.lock"), other).expect("a file");
    let refused = workspace.wharf("call key").await;
    assert_ne!(refused.code, Some(0), "{}", refused.stdout);
    workspace.assert_nothing_left();
}

/// Creates a folder with a `docker` script that uses separate storage. It must come first on `PATH`, because a
/// Docker without a daemon may be installed.
pub(crate) fn docker(workspace: &Workspace) -> PathBuf {
    let bin = workspace.make_folder("bin");
    let (settings, store, running) =
        (workspace.path("containers.conf"), workspace.path("store"), workspace.path("running"));
    fs::write(&settings, SETTINGS).expect("the file can be written");
    let script = format!(
        "#!/bin/sh\nCONTAINERS_CONF='{}' exec '{}' --root '{}' --runroot '{}' --tmpdir '{}' \
         --storage-driver vfs \"$@\"\n",
        settings.display(),
        program("podman").display(),
        store.display(),
        running.display(),
        workspace.path("libpod").display(),
    );
    fs::write(bin.join("docker"), script).expect("the file can be written");
    fs::set_permissions(bin.join("docker"), fs::Permissions::from_mode(0o755)).expect("it can be run");
    bin
}

fn build_image(workspace: &Workspace, docker: &Path) {
    let folder = workspace.make_folder("image");
    fs::write(folder.join("Containerfile"), IMAGE).expect("the file can be written");
    let target = format!("{ARCH}-unknown-linux-musl");
    let mut rustc = Command::new("rustc");
    rustc.args(["--edition", "2024", "--target", &target, SERVER, "-o"]).arg(folder.join("server"));
    run_checked(
        &mut rustc,
        &format!("`rustup target add {target}`, or `cargo xtask provision`, adds the target"),
    );
    let mut build = Command::new(docker);
    build.args(["build", "--quiet", "--tag", "mcp-server:latest"]).arg(&folder);
    run_checked(&mut build, "`cargo xtask provision` sets up podman");
}

fn run_checked(command: &mut Command, remedy: &str) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}; {remedy}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} failed; {remedy}\n{said}");
}
