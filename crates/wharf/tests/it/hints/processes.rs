//! Failures of child processes: they cannot be started, they exit, or they never respond.

use super::{Case, check, fake_servers::FakeServers, workspace};
use crate::servers::{background::free_port, workspace::tool};
use std::{fs, os::unix::fs::PermissionsExt};

const ODD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/hints/odd.sh");

/// Cases with an empty `PATH`.
pub(super) const EMPTY_PATH: &[Case] = &[
    Case { row: "no-npx", cause: "there is no `npx` on PATH (looked in ", entry: "command: npx, args: [it]" },
    Case { row: "no-uvx", cause: "there is no `uvx` on PATH (looked in ", entry: "command: uvx, args: [it]" },
    Case {
        row: "no-docker",
        cause: "there is no `docker` on PATH (looked in ",
        entry: "command: docker, args: [run, -i, it]",
    },
];

/// Cases in which no working directory can be created.
pub(super) const NO_SCRATCH: &[Case] =
    &[Case { row: "no-scratch", cause: "could not make a working directory", entry: "command: /bin/sh" }];

macro_rules! shell {
    ($row:literal, $cause:literal, $script:literal) => {
        Case { row: $row, cause: $cause, entry: concat!("command: /bin/sh, args: [-c, '", $script, "']") }
    };
}

pub(super) const CASES: &[Case] = &[
    Case { row: "no-program", cause: "there is no such program", entry: "command: /no/such/program" },
    Case { row: "not-executable", cause: "Permission denied", entry: "command: '{plain}'" },
    Case { row: "not-a-program", cause: "Exec format error", entry: "command: '{words}'" },
    Case {
        row: "python-module",
        cause: "No module named 'no_such_module'",
        entry: "command: '{python}', args: [-c, import no_such_module]",
    },
    Case {
        row: "node-module",
        cause: "Cannot find module",
        entry: "command: '{node}', args: [/no/such/server.js]",
    },
    Case {
        row: "port-taken",
        cause: "Address already in use",
        entry: "command: '{python}', args: [-c, 'import socket; socket.socket().bind((\"127.0.0.1\", {far}))']",
    },
    Case {
        row: "port-taken",
        cause: "EADDRINUSE",
        entry: "command: '{node}', args: [-e, 'require(\"net\").createServer().listen({far}, \"127.0.0.1\")']",
    },
    Case {
        row: "server-refused",
        cause: "ECONNREFUSED",
        entry: "command: '{node}', args: [-e, 'require(\"net\").connect({closed}, \"127.0.0.1\")']",
    },
    Case {
        row: "server-unresolved",
        cause: "nowhere.invalid",
        entry: "command: '{node}', args: [-e, 'require(\"net\").connect(80, \"nowhere.invalid\")']",
    },
    Case {
        row: "disk-full",
        cause: "No space left on device",
        entry: "command: '{python}', args: [-c, 'open(\"/dev/full\", \"w\", 1).write(\"x\\n\")']",
    },
    shell!("server-not-allowed", "Permission denied", "exec /dev/null"),
    shell!("killed", "signal 9", "kill -KILL $$"),
    shell!("crashed", "signal 11", "kill -SEGV $$"),
    shell!("crashed", "signal 6", "kill -ABRT $$"),
    shell!("ended-by-signal", "signal 1", "kill -HUP $$"),
    shell!("noise", "the server ended (exit code 0)", "echo Welcome to the harbour"),
    Case {
        row: "noise",
        cause: "no answer in time",
        entry: "command: /bin/sh, args: [-c, 'echo Listening; exec sleep 985'], connect_timeout: 1",
    },
    Case {
        row: "slow-start",
        cause: "no answer in time",
        entry: "command: /bin/sh, args: [-c, 'exec sleep 985'], connect_timeout: 1",
    },
    Case { row: "version", cause: "`1999-01-01`", entry: "command: /bin/sh, args: ['{odd}', old]" },
    shell!("ended-talking", "the harbour is closed", "echo the harbour is closed >&2; exit 3"),
    shell!("ended-silently", "the server ended (exit code 3)", "exit 3"),
];

#[tokio::test]
async fn failed_processes_have_hints() {
    let mut far = FakeServers::default();
    let files = tempfile::TempDir::new().expect("a folder");
    let file = |name: &str, mode: u32| {
        let path = files.path().join(name);
        fs::write(&path, "not a program\n").expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).expect("its mode");
        path.display().to_string()
    };
    let filled = [
        ("plain", file("plain", 0o644)),
        ("words", file("words", 0o755)),
        ("python", tool("python/bin/python").display().to_string()),
        ("node", tool("node/node_modules/.bin/node").display().to_string()),
        ("odd", ODD.to_owned()),
        ("far", far.close_connections().await.to_string()),
        ("closed", free_port().to_string()),
    ];
    let programs = filled.each_ref().map(|(_, value)| value.as_str());
    let granted: Vec<&str> = programs.into_iter().filter(|it| it.starts_with('/')).collect();
    let granted = [&granted[..], &["/no/such/program", "/bin/sh"]].concat();
    let workspace = workspace(CASES, &filled, &granted);
    check(&workspace, CASES).await;
    workspace.assert_nothing_left();
}

#[tokio::test]
async fn missing_launchers_have_hints() {
    let empty = tempfile::TempDir::new().expect("a folder");
    let workspace = workspace(EMPTY_PATH, &[], &[]).only_on_path(empty.path().to_owned());
    check(&workspace, EMPTY_PATH).await;
}

#[tokio::test]
async fn missing_scratch_folder_has_a_hint() {
    let workspace = workspace(NO_SCRATCH, &[], &["/bin/sh"]);
    fs::write(workspace.path("state/scratch"), "").expect("a file");
    check(&workspace, NO_SCRATCH).await;
}
