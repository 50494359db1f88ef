//! Tests where the agent file comes from: a file, standard input, or a file with the other extension.

use super::{CliWorkspace, TODO, json, stderr, stdout};
use std::{
    io::Write,
    path::Path,
    process::{Output, Stdio},
};

/// Runs the program with this standard input.
fn with_input(workspace: &CliWorkspace, args: &[&str], input: &str) -> Output {
    let mut command = workspace.command(Path::new(env!("CARGO_BIN_EXE_wharf")));
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("wharf runs");
    // The program may exit without reading its input.
    let _ = child.stdin.take().expect("a pipe").write_all(input.as_bytes());
    child.wait_with_output().expect("wharf ends")
}

#[test]
fn the_agent_file_can_come_from_standard_input() {
    let workspace = CliWorkspace::new();
    let output = with_input(&workspace, &["check", "-f", "-"], TODO);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let called =
        with_input(&workspace, &["call", "-f", "-", "todo__create_todo", "title=Milk", "--json"], TODO);
    assert_eq!(called.status.code(), Some(0), "{}", stderr(&called));
    assert_eq!(json(&called)["metadata"]["structured_content"]["title"], "Milk");
}

#[test]
fn paths_in_standard_input_are_relative_to_the_current_folder() {
    let workspace = CliWorkspace::new();
    workspace.write("my.env", "KEY=value\n");
    let entry = "{name: a, description: b, type: mcp, server: '@s/x', command: npx, envFile: my.env}";
    let output = with_input(&workspace, &["check", "-f", "-"], &format!("tools:\n  - {entry}\n"));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let missing = with_input(
        &workspace,
        &["check", "-f", "-"],
        &format!("tools:\n  - {entry}\n").replace("my.", "no."),
    );
    assert_eq!(missing.status.code(), Some(2));
    assert!(stderr(&missing).contains(" --> standard input:2:"), "{}", stderr(&missing));
}

#[test]
fn commands_that_need_stdin_reject_it_as_agent_file() {
    let workspace = CliWorkspace::new();
    for (args, expected) in [
        (&["init", "-f", "-"][..], "this command writes the agent file"),
        (&["add", "-f", "-", "server.json"], "this command writes the agent file"),
        (&["stdio", "-f", "-"], "`wharf stdio` reads its client from there"),
        (
            &["call", "-f", "-", "todo__list_todos", "--args", "-"],
            "`-f -` and `--args -` both read standard input",
        ),
    ] {
        let output = with_input(&workspace, args, TODO);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{args:?}: {}", stderr(&output));
    }
}

#[test]
fn hint_names_the_file_with_the_other_extension() {
    let workspace = CliWorkspace::new();
    workspace.write("agent.yml", TODO);
    for args in [&["check"][..], &["explain"], &["tools"]] {
        let output = workspace.wharf(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let said = stderr(&output);
        assert!(said.contains("there is 'agent.yml': rename it, or use `-f agent.yml`"), "{said}");
    }
    assert_eq!(workspace.wharf(&["check", "-f", "agent.yml"]).status.code(), Some(0));
}

#[test]
fn explain_shows_the_final_tool_names() {
    let entries = [
        "{name: Azure MCP Server, description: b, type: mcp, server: '@azure/mcp', command: npx}",
        "{name: b, description: b, type: mcp, server: '@s/x', command: npx, prefix: 'my.tools'}",
        "{name: c, description: b, type: mcp, server: '@s/x', command: npx, prefix: ''}",
    ];
    let workspace = CliWorkspace::with(&format!("tools:\n  - {}\n", entries.join("\n  - ")));
    let shown = stdout(&workspace.wharf(&["explain"]));
    for expected in
        ["Azure-MCP-Server__NAME (default, from `name`)", "my-tools__NAME\n", "the server's own names"]
    {
        assert!(shown.contains(expected), "{expected:?} is missing from:\n{shown}");
    }
    let report = json(&workspace.wharf(&["explain", "--json"]));
    let prefix = |at: usize| report["sources"][at]["tool_names"].clone();
    assert_eq!([prefix(0), prefix(1), prefix(2)], ["Azure-MCP-Server", "my-tools", ""]);
}
