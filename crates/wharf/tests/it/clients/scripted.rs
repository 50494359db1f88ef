//! Clients that are libraries. A script beside this file uses each as its documentation shows.

use super::{
    ClientKind, Transport,
    steps::{Step, StepRunner},
    test_gateway::Target,
};
use crate::servers::workspace::tool;
use serde_json::{Value, json};
use std::{
    fs,
    io::Write,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

pub(super) fn run_steps<'a>(kind: ClientKind, target: &'a Target, era: &'a str) -> Box<StepRunner<'a>> {
    let transport = match target.transport {
        Transport::Http => "http",
        Transport::Sse => "sse",
        Transport::WebSocket => "ws",
        Transport::Stdio => "stdio",
    };
    Box::new(move |steps| {
        let mut command = program(kind, target);
        let answers = run(command.arg(transport).arg(era).args(&target.words), steps);
        answers.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    })
}

/// Builds the command: interpreter and script.
fn program(kind: ClientKind, target: &Target) -> Command {
    let (interpreter, script) = match kind {
        ClientKind::Python1 => (tool("python/bin/python"), beside("python_1.py")),
        ClientKind::Python2 => (tool("python-2/bin/python"), beside("python_2.py")),
        ClientKind::TypeScript1 => (node(), installed("typescript_1.mjs", "typescript-1", target)),
        ClientKind::TypeScript2 => (node(), installed("typescript_2.mjs", "typescript-2", target)),
        ClientKind::Inspector | ClientKind::Rust => unreachable!("no script"),
    };
    let mut command = target.client(interpreter);
    command.arg(script);
    command
}

pub(super) fn node() -> PathBuf {
    tool("node/node_modules/.bin/node")
}

fn beside(script: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/clients").join(script)
}

/// Copies the script into a project folder of its own.
fn installed(script: &str, packages: &str, target: &Target) -> PathBuf {
    let copy = beside_packages(script, packages, target);
    fs::copy(beside(script), &copy).expect("a copy");
    copy
}

/// Returns the path at which a script finds the packages it imports.
pub(super) fn beside_packages(script: &str, packages: &str, target: &Target) -> PathBuf {
    symlink(tool(packages).join("node_modules"), target.home.path().join("node_modules")).expect("a link");
    target.home.path().join(script)
}

/// Passes the steps to the client and returns its output.
fn run(command: &mut Command, steps: &[Step]) -> String {
    let step = |it: &Step| json!({ "method": it.method, "params": it.params, "until": it.until });
    let steps: Vec<Value> = steps.iter().map(step).collect();
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().expect("the client starts");
    let mut stdin = child.stdin.take().expect("its stdin");
    stdin.write_all(Value::from(steps).to_string().as_bytes()).expect("it reads");
    drop(stdin);
    let output = child.wait_with_output().expect("the client ends");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let complaints = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} ended with {}:\n{said}{complaints}", output.status);
    said
}
