//! Tests `--json`: exactly one document in every case, in the format of docs/json.md.

use super::{CliWorkspace, TODO, json, stderr, stdout};

const BROKEN: &str = "tools:\n  - name: a\n    type: mcp\n    server: x\n    command: bash\n";
const DOWN: &str = "tools:\n  - {name: down, description: d, type: mcp, server: x, transport: http, url: 'http://127.0.0.1:1/mcp'}\n";

#[test]
fn every_error_of_every_command_is_one_document() {
    let workspace = CliWorkspace::with(TODO);
    workspace.write("broken.yaml", BROKEN);
    workspace.write("down.yaml", DOWN);
    let gone = "http://127.0.0.1:1";
    for (words, code) in [
        (&["call", "create_todo", "-f", "broken.yaml"][..], 2),
        (&["call", "create_todo", "-f", "missing.yaml"], 2),
        (&["call", "create_todo", "nope"], 2),
        (&["call", "nope"], 66),
        (&["call", "nope", "-f", "down.yaml"], 69),
        (&["call", "create_todo", "--timeout", "0"], 2),
        (&["tools", "-f", "broken.yaml"], 2),
        (&["tools", "nope"], 2),
        (&["tools", "nope", "--cached"], 69),
        (&["prompts", "nope"], 2),
        (&["resources", "nope"], 2),
        (&["prompt", "nope"], 66),
        (&["prompt", "plan_my_day", "x"], 2),
        (&["prompt", "nope", "-f", "broken.yaml"], 2),
        (&["read", "nope://1"], 66),
        (&["login", "nope"], 2),
        (&["login", "todo"], 2),
        (&["login", "todo", "-f", "broken.yaml"], 2),
        (&["doctor", "-f", "broken.yaml"], 2),
        (&["explain", "nope"], 2),
        (&["explain", "-f", "broken.yaml"], 2),
        (&["init"], 2),
        (&["init", "--from", "missing.json"], 2),
        (&["add", "missing.json"], 2),
        (&["sources", "list", "--server", gone], 69),
        (&["sources", "list", "--server", "nonsense"], 2),
        (&["sources", "add", "missing.json", "--server", gone], 2),
        (&["todo", "--database", "nonsense"], 2),
        (&["serve", "--database", "nonsense"], 2),
        (&["serve", "--listen", "nonsense"], 2),
        (&["serve", "-f", "broken.yaml"], 2),
        (&["stdio", "-f", "broken.yaml"], 2),
        (&["tools", "--settings", "missing.toml"], 2),
        (&["chekc"], 2),
        (&["tools", "--nope"], 2),
        (&["call"], 2),
    ] {
        let output = workspace.wharf(&[words, &["--json"]].concat());
        assert_eq!(output.status.code(), Some(code), "{words:?}: {}{}", stdout(&output), stderr(&output));
        let error = &json(&output)["error"];
        for key in ["type", "message"] {
            assert!(error[key].as_str().is_some_and(|it| !it.is_empty()), "{words:?}: {}", stdout(&output));
        }
        assert!(error.get("hint").is_some(), "{words:?}: {}", stdout(&output));
        assert!(!error["message"].to_string().starts_with("\"error: "), "{words:?}: {error}");
    }
}

#[test]
fn invalid_file_has_its_diagnostics_in_the_json() {
    let workspace = CliWorkspace::with(BROKEN);
    for (words, key) in [(&["call", "x"][..], "content"), (&["tools"], "tools"), (&["doctor"], "sources")] {
        let report = json(&workspace.wharf(&[words, &["--json"]].concat()));
        assert_eq!(report[key], serde_json::json!([]), "{report}");
        assert_eq!(report["error"]["type"], "MCPConfigError");
        assert_eq!(report["diagnostics"][1]["code"], "V-05", "{report}");
    }
}

#[test]
fn an_empty_folder_has_the_built_in_todo_server() {
    let workspace = CliWorkspace::new();
    for words in [
        &["tools"][..],
        &["call", "create_todo", "title=x"],
        &["prompts"],
        &["resources"],
        &["prompt", "plan_my_day"],
        &["read", "todo://1"],
        &["doctor"],
        &["explain"],
        &["explain", "todo"],
    ] {
        let output = workspace.wharf(words);
        assert_eq!(output.status.code(), Some(0), "{words:?}: {}", stderr(&output));
    }
    let noted = stderr(&workspace.wharf(&["tools"]));
    assert_eq!(noted, "note: there is no agent.yaml here; this is the built-in Todo server\n");
    assert_eq!(stderr(&workspace.wharf(&["tools", "-q"])), "");
    assert_eq!(workspace.wharf(&["tools", "--json"]).status.code(), Some(0));
    // A file named with `-f` must exist, and `check` needs a file.
    assert_eq!(workspace.wharf(&["tools", "-f", "other.yaml"]).status.code(), Some(2));
    assert_eq!(workspace.wharf(&["check"]).status.code(), Some(2));
    workspace.write("agent.yml", TODO);
    assert_eq!(workspace.wharf(&["tools"]).status.code(), Some(2));
}

#[test]
fn login_to_a_local_server_is_a_usage_error() {
    let output = CliWorkspace::with(TODO).wharf(&["login", "todo"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("'todo' is not a remote server"), "{}", stderr(&output));
}

#[test]
#[cfg(unix)]
fn missing_prompt_argument_is_a_usage_error() {
    let workspace = super::scripted_server::workspace_with_server();
    let output = workspace.wharf(&["prompt", "greet"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let said = "error: the prompt 'greet' requires who\nhelp: `wharf prompt greet who=…`\n";
    assert!(stderr(&output).contains(said), "{}", stderr(&output));
    let misspelt = workspace.wharf(&["prompt", "greet", "whoo=Ann"]);
    assert!(stderr(&misspelt).contains("did you mean `who`?"), "{}", stderr(&misspelt));
    let greeted = workspace.wharf(&["prompt", "greet", "who=2"]);
    assert!(stdout(&greeted).contains(r#"{"who": "2"}"#), "{}{}", stdout(&greeted), stderr(&greeted));
}

#[test]
#[cfg(target_os = "linux")]
fn full_disk_is_an_error_and_closed_pipe_is_not() {
    use std::{fs::File, process::Stdio};

    let workspace = CliWorkspace::with(TODO);
    let wharf = || workspace.command(env!("CARGO_BIN_EXE_wharf").as_ref());
    for words in [&["tools"][..], &["tools", "--json"], &["schema"], &["--help"], &["explain"]] {
        let full = File::options().write(true).open("/dev/full").expect("the device");
        let output = wharf().args(words).stdout(full).output().expect("wharf runs");
        assert_eq!(output.status.code(), Some(74), "{words:?}");
        assert!(
            stderr(&output).contains("error: standard output cannot be written: No space left"),
            "{words:?}"
        );
    }
    let mut child =
        wharf().arg("schema").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("wharf runs");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("wharf ends");
    assert_eq!((output.status.code(), stderr(&output).as_str()), (Some(0), ""));
}
