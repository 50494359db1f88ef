//! Tests the output of `wharf tools`.

use super::{CliWorkspace, TODO, json, stderr, stdout};

#[test]
fn a_server_is_shown_with_signatures() {
    let workspace = CliWorkspace::with(TODO);
    let output = workspace.wharf(&["tools", "todo"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let shown = stdout(&output);
    let signature = "  todo__create_todo(title: string, description?: string, priority?: 1..5, tags?: string[], due_date?: string)\n";
    assert!(shown.starts_with("todo (5)\n") && shown.contains(signature), "{shown}");
    assert!(!shown.contains("What is to be done"), "{shown}");
    let long = stdout(&workspace.wharf(&["tools", "todo", "--long"]));
    assert!(long.contains(signature) && long.contains("      - title: What is to be done\n"), "{long}");
}

#[test]
fn one_tool_is_shown_in_full_by_each_of_its_names() {
    let workspace = CliWorkspace::with(TODO);
    let by_shown_name = stdout(&workspace.wharf(&["tools", "todo__create_todo"]));
    for part in [
        "todo__create_todo\n  tool `create_todo` of the server `todo`\n",
        "  title         string    What is to be done\n",
        "  priority?     1..5      From 1, the most urgent, to 5\n",
        "\nExample\n  wharf call todo__create_todo title=text\n",
    ] {
        assert!(by_shown_name.contains(part), "{part:?} is missing from:\n{by_shown_name}");
    }
    assert_eq!(stdout(&workspace.wharf(&["tools", "todo:create_todo"])), by_shown_name);
    assert_eq!(stdout(&workspace.wharf(&["tools", "create_todo"])), by_shown_name);
    let report = json(&workspace.wharf(&["tools", "create_todo", "--json"]));
    assert_eq!(report["tools"].as_array().map(Vec::len), Some(1), "{report}");
    let (tool, source) = (&report["tools"][0]["name"], &report["sources"][0]["name"]);
    assert_eq!((tool, source), (&"todo__create_todo".into(), &"todo".into()));
    // The cached list is enough for this.
    workspace.wharf(&["tools"]);
    assert_eq!(stdout(&workspace.wharf(&["tools", "create_todo", "--cached"])), by_shown_name);
    assert!(stdout(&workspace.wharf(&["tools", "todo", "--cached"])).contains("(title: string, "));
}

#[test]
fn unknown_name_gets_a_hint() {
    let workspace = CliWorkspace::with(TODO);
    for (name, code, help) in [
        ("tood", 2, "help: did you mean `todo`?\n"),
        ("create_tod", 2, "help: did you mean `create_todo`?\n"),
        ("todo:nope", 66, "help: the servers are todo; `wharf tools` lists all tools\n"),
    ] {
        for words in [&["tools", name][..], &["tools", name, "--cached"]] {
            workspace.wharf(&["tools"]);
            let output = workspace.wharf(words);
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(code), "{said}");
            assert!(said.contains(&format!("error: there is no server or tool '{name}'\n{help}")), "{said}");
        }
        let report = json(&workspace.wharf(&["tools", name, "--json"]));
        assert_eq!(
            (&report["tools"], &report["error"]["type"]),
            (&serde_json::json!([]), &"MCPToolNotFoundError".into())
        );
    }
}

#[test]
fn colour_follows_the_color_option() {
    let workspace = CliWorkspace::with(TODO);
    let coloured = stdout(&workspace.wharf(&["doctor", "--color", "always"]));
    assert!(coloured.starts_with("\x1b[32mok \x1b[0m   todo  "), "{coloured:?}");
    for words in [&["doctor"][..], &["doctor", "--color", "never"]] {
        assert!(stdout(&workspace.wharf(words)).starts_with("ok    todo  "));
    }
    let failed = stderr(&workspace.wharf(&["tools", "nope", "--color", "always"]));
    assert!(
        failed.contains("\x1b[1;31merror:\x1b[0m there is no") && failed.contains("\x1b[1;36mhelp:"),
        "{failed:?}"
    );
}

#[test]
#[cfg(unix)]
fn json_result_is_pretty_printed_on_a_terminal() {
    let workspace = super::scripted_server::workspace_with_server();
    let plain = workspace.wharf(&["call", "own__json"]);
    assert_eq!(stdout(&plain), "{\"b\": [1, 2], \"a\": 12345678901234567890123}\n");
    let shown = super::terminal::run(&workspace, &["call", "own__json"]);
    let pretty = "{\n  \"b\": [\n    1,\n    2\n  ],\n  \"a\": 12345678901234567890123\n}\n";
    assert!(shown.replace('\r', "").ends_with(pretty), "{shown:?}");
}

#[test]
#[cfg(unix)]
fn no_color_is_honoured_on_a_terminal() {
    let workspace = CliWorkspace::with(TODO);
    assert!(super::terminal::run(&workspace, &["-q", "doctor"]).contains("\x1b[32mok "));
    let workspace = workspace.set("NO_COLOR", "1");
    assert!(!super::terminal::run(&workspace, &["-q", "doctor"]).contains("\x1b[32mok "));
}
