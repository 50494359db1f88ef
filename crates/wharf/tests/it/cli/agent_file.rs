//! Tests where the agent file comes from: a file, standard input, or a file with the other extension.

use super::{Place, TODO, json, stderr, stdout};
use std::{
    io::Write,
    path::Path,
    process::{Output, Stdio},
};

/// Runs the program with this standard input.
fn with_input(place: &Place, args: &[&str], input: &str) -> Output {
    let mut command = place.command(Path::new(env!("CARGO_BIN_EXE_wharf")));
    command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("wharf runs");
    // The program may exit without reading its input.
    let _ = child.stdin.take().expect("a pipe").write_all(input.as_bytes());
    child.wait_with_output().expect("wharf ends")
}

#[test]
fn the_agent_file_can_come_from_standard_input() {
    let place = Place::new();
    let output = with_input(&place, &["check", "-f", "-"], TODO);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let called = with_input(&place, &["call", "-f", "-", "todo__create_todo", "title=Milk", "--json"], TODO);
    assert_eq!(called.status.code(), Some(0), "{}", stderr(&called));
    assert_eq!(json(&called)["metadata"]["structured_content"]["title"], "Milk");
}

#[test]
fn paths_in_standard_input_are_relative_to_the_current_folder() {
    let place = Place::new();
    place.write("my.env", "KEY=value\n");
    let entry = "{name: a, description: b, type: mcp, server: '@s/x', command: npx, envFile: my.env}";
    let output = with_input(&place, &["check", "-f", "-"], &format!("tools:\n  - {entry}\n"));
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let missing =
        with_input(&place, &["check", "-f", "-"], &format!("tools:\n  - {entry}\n").replace("my.", "no."));
    assert_eq!(missing.status.code(), Some(2));
    assert!(stderr(&missing).contains(" --> standard input:2:"), "{}", stderr(&missing));
}

#[test]
fn commands_that_need_standard_input_say_so() {
    let place = Place::new();
    for (args, expected) in [
        (&["init", "-f", "-"][..], "this command writes the agent file"),
        (&["add", "-f", "-", "server.json"], "this command writes the agent file"),
        (&["stdio", "-f", "-"], "`wharf stdio` hears its client there"),
        (
            &["call", "-f", "-", "todo__list_todos", "--args", "-"],
            "`-f -` and `--args -` both read standard input",
        ),
    ] {
        let output = with_input(&place, args, TODO);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{args:?}: {}", stderr(&output));
    }
}

#[test]
fn the_other_extension_is_pointed_at() {
    let place = Place::new();
    place.write("agent.yml", TODO);
    for args in [&["check"][..], &["explain"], &["tools"]] {
        let output = place.wharf(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        let said = stderr(&output);
        assert!(said.contains("there is 'agent.yml': rename it, or name it with `-f agent.yml`"), "{said}");
    }
    assert_eq!(place.wharf(&["check", "-f", "agent.yml"]).status.code(), Some(0));
}

#[test]
fn explain_shows_the_names_that_tools_really_have() {
    let entries = [
        "{name: Azure MCP Server, description: b, type: mcp, server: '@azure/mcp', command: npx}",
        "{name: b, description: b, type: mcp, server: '@s/x', command: npx, prefix: 'my.tools'}",
        "{name: c, description: b, type: mcp, server: '@s/x', command: npx, prefix: ''}",
    ];
    let place = Place::with(&format!("tools:\n  - {}\n", entries.join("\n  - ")));
    let shown = stdout(&place.wharf(&["explain"]));
    for expected in
        ["Azure-MCP-Server__NAME (default, from `name`)", "my-tools__NAME\n", "the server's own names"]
    {
        assert!(shown.contains(expected), "{expected:?} is missing from:\n{shown}");
    }
    let report = json(&place.wharf(&["explain", "--json"]));
    let prefix = |at: usize| report["sources"][at]["tool_names"].clone();
    assert_eq!([prefix(0), prefix(1), prefix(2)], ["Azure-MCP-Server", "my-tools", ""]);
}
