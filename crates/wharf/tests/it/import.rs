//! Tests `wharf init --from` with configuration files of other clients. The result passes `wharf check`.
//!
//! Each folder of `import/` contains a client's file at its usual path, and `expected.txt` with every written file
//! and every note. `UPDATE=1` rewrites `expected.txt`; review the diff.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};
use tempfile::TempDir;

/// Words that occur in every secret of the fixtures, and only there.
const SECRETS: [&str; 3] = ["battery", "staple", "ghp_"];

#[test]
fn imports_claude_desktop() {
    let folder = check("claude/claude_desktop_config.json");
    let agent_file = read(&folder, "agent.yaml");
    assert_eq!(agent_file.matches("\n  - name: ").count(), 5, "{agent_file}");
    assert!(read(&folder, ".env.github").contains("ghp_"));
    assert!(read(&folder, ".env.postgres").contains("correct-horse-battery"));
}

#[test]
fn imports_vscode() {
    let folder = check("vscode/.vscode/mcp.json");
    assert!(read(&folder, ".env.Perplexity").contains("\nPERPLEXITY_KEY=\n"));
}

#[test]
fn imports_vscode_settings() {
    check("settings/settings.json");
}

#[test]
fn imports_cursor() {
    let folder = check("cursor/.cursor/mcp.json");
    assert!(read(&folder, ".env.search").contains("header-battery-staple"));
}

#[test]
fn imports_a_file_full_of_edge_cases() {
    check("nasty/mcp.json");
}

#[test]
fn a_client_is_found_by_name() {
    let home = TempDir::new().expect("a folder");
    for (client, place, key) in [
        ("claude", "home/.config/Claude/claude_desktop_config.json", "mcpServers"),
        ("claude-code", "home/.claude.json", "mcpServers"),
        ("vscode", ".vscode/mcp.json", "servers"),
        ("cursor", "home/.cursor/mcp.json", "mcpServers"),
        ("windsurf", "home/.codeium/windsurf/mcp_config.json", "mcpServers"),
        ("codex", "home/.codex/config.toml", ""),
        ("zed", "home/.config/zed/settings.json", "context_servers"),
        ("gemini", ".gemini/settings.json", "mcpServers"),
    ] {
        let missing = wharf(&home, &["init", "--from", client]);
        assert_eq!(missing.status.code(), Some(2), "{client}");
        assert!(stderr(&missing).contains(place.rsplit('/').next().expect("a name")), "{}", stderr(&missing));
        let path = home.path().join(place);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        let text = match key {
            "" => "[mcp_servers.a]\ncommand = \"uvx\"\nargs = [\"x\"]\n".to_owned(),
            key => format!("{{\"{key}\": {{\"a\": {{\"command\": \"uvx\", \"args\": [\"x\"]}}}}}}"),
        };
        fs::write(path, text).expect("the file can be written");
        let file = format!("{client}.yaml");
        let found = wharf(&home, &["init", "--from", client, "-f", &file]);
        assert_eq!(found.status.code(), Some(0), "{}", stderr(&found));
        assert_eq!(wharf(&home, &["check", "-f", &file]).status.code(), Some(0));
    }
}

#[test]
fn import_errors_are_explained() {
    let folder = TempDir::new().expect("a folder");
    for (text, expected) in [
        ("", "is not JSON: it is empty"),
        ("tools: []", "is not JSON: expected"),
        ("{\"mcpServers\": {}}", "contains no servers"),
        ("{\"name\": \"x\"}", "it has neither `mcpServers` nor `servers`"),
        ("[]", "it is not an object"),
    ] {
        fs::write(folder.path().join("mcp.json"), text).expect("the file can be written");
        let output = wharf(&folder, &["init", "--from", "mcp.json"]);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(stderr(&output).contains(expected), "{text}: {}", stderr(&output));
        assert!(!folder.path().join("agent.yaml").exists());
    }
}

#[test]
fn imports_codex() {
    check("codex/.codex/config.toml");
}

#[test]
fn imports_claude_code_with_its_projects() {
    check("claude-code/.claude.json");
}

#[test]
fn imports_zed() {
    check("zed/.zed/settings.json");
}

#[test]
fn imports_gemini() {
    check("gemini/.gemini/settings.json");
}

#[test]
fn servers_are_merged_into_an_agent_file() {
    let folder = TempDir::new().expect("a folder");
    let before = "# Mine.\ntools:\n  - name: mine   # kept\n    description: d\n    type: mcp\n    server: builtin:todo\n\n# The end.\n";
    fs::write(folder.path().join("agent.yaml"), before).expect("an agent file");
    fs::write(folder.path().join(".env.search"), "MINE=1\n").expect("an env file");
    fs::write(folder.path().join(".gitignore"), "/target").expect("a file");
    let servers = r#"{"mcpServers": {
        "mine": {"command": "uvx", "args": ["x"]},
        "time": {"command": "uvx", "args": ["mcp-server-time"]},
        "local": {"command": "node", "args": ["x.js"]},
        "search": {"command": "npx", "args": ["-y", "s"], "env": {"API_KEY": "header-battery-staple"}},
        "asks": {"command": "npx", "args": ["-y", "s", "${UNSET_NAME}"]}}}"#;
    fs::write(folder.path().join("mcp.json"), servers).expect("a file");

    let refused = wharf(&folder, &["init", "--from", "mcp.json"]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("`--merge` adds the servers to it"), "{}", stderr(&refused));
    assert_eq!(read(&folder, "agent.yaml"), before);

    let merged = wharf(&folder, &["init", "--from", "mcp.json", "--merge"]);
    let said = stderr(&merged);
    assert_eq!(merged.status.code(), Some(0), "{said}");
    assert!(said.contains("3 imported, 1 needs a value, 2 refused"), "{said}");
    assert!(said.contains("refused: `mine`: the agent file has a server called `mine` already"), "{said}");
    assert!(said.contains("refused: `local`: MCPConfigError: Invalid command 'node'"), "{said}");
    assert!(said.contains("needs a value: `asks`: UNSET_NAME"), "{said}");
    let after = read(&folder, "agent.yaml");
    assert!(after.starts_with("# Mine.\ntools:\n  - name: mine   # kept\n"), "{after}");
    assert!(after.ends_with("\n\n# The end.\n"), "{after}");
    assert!(after.contains("\n  # `local` is not in use:\n"), "{after}");
    // An existing env file stays unchanged.
    assert_eq!(read(&folder, ".env.search"), "MINE=1\n");
    assert!(read(&folder, ".env.search-2").contains("battery"));
    assert_eq!(read(&folder, ".gitignore"), "/target\n.env.*\n");
    let checked = wharf(&folder, &["check", "--strict"]);
    assert_eq!(checked.status.code(), Some(0), "{}", stderr(&checked));

    let again = wharf(&folder, &["init", "--from", "mcp.json", "--merge", "--json"]);
    assert_eq!(again.status.code(), Some(0), "{}", stderr(&again));
    let document: serde_json::Value = serde_json::from_slice(&again.stdout).expect("JSON");
    assert_eq!(document["imported"], serde_json::json!([]));
    assert_eq!(document["refused"].as_array().map(Vec::len), Some(5));
    assert_eq!(read(&folder, ".gitignore"), "/target\n.env.*\n");
}

#[test]
fn lines_of_the_clients_env_file_are_copied() {
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join("own.env"), "# Mine.\nMODE=old\nTOKEN='battery staple'").expect("a file");
    let servers = r#"{"mcpServers": {"a": {"command": "uvx", "args": ["x"],
        "envFile": "${workspaceFolder}/own.env", "env": {"MODE": "new"}}}}"#;
    fs::write(folder.path().join("mcp.json"), servers).expect("a file");
    let imported = wharf(&folder, &["init", "--from", "mcp.json"]);
    assert_eq!(imported.status.code(), Some(0), "{}", stderr(&imported));
    assert!(stderr(&imported).contains("holds its values; its lines are copied"), "{}", stderr(&imported));
    let values = "\n# Mine.\nMODE=old\nTOKEN='battery staple'\n\nMODE=new\n";
    assert!(read(&folder, ".env.a").ends_with(values), "{}", read(&folder, ".env.a"));
    assert!(read(&folder, "agent.yaml").contains("    envFile: .env.a\n"));
    let checked = wharf(&folder, &["check", "--strict"]);
    assert_eq!(checked.status.code(), Some(0), "{}", stderr(&checked));
}

/// Imports a fixture into a new folder, compares all results, and checks them without any variables set.
fn check(fixture: &str) -> TempDir {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/import").join(fixture);
    let folder = TempDir::new().expect("a folder");
    let imported = wharf(&folder, &["init", "--from", &fixture.to_string_lossy()]);
    assert_eq!(imported.status.code(), Some(0), "{}", stderr(&imported));
    let checked = wharf(&folder, &["check", "--strict"]);
    assert_eq!(checked.status.code(), Some(0), "{}", stderr(&checked));
    // Values that the other client asks its user for are still empty, which causes a warning.
    let odd = |it: &&str| it.starts_with("warning") && !it.ends_with("is set, but empty");
    assert_eq!(stderr(&checked).lines().find(odd), None, "{}", stderr(&checked));

    let said = stderr(&imported);
    for secret in SECRETS {
        assert!(!read(&folder, "agent.yaml").contains(secret), "{}", read(&folder, "agent.yaml"));
        assert!(!said.contains(secret), "{said}");
    }
    let case = fixture.ancestors().find(|it| it.parent().is_some_and(|it| it.ends_with("it/import")));
    expect(&case.expect("a folder of its own").join("expected.txt"), &all_results(&folder, &said));
    folder
}

/// Returns the written files, sorted by name, and the notes.
fn all_results(folder: &TempDir, said: &str) -> String {
    let mut names: Vec<PathBuf> =
        fs::read_dir(folder.path()).expect("the folder").map(|it| it.expect("an entry").path()).collect();
    names.sort();
    let mut text = String::new();
    for path in names {
        let name = path.file_name().expect("a name").to_string_lossy().into_owned();
        text.push_str(&format!("==== {name}\n{}", read(folder, &name)));
    }
    let place = folder.path().canonicalize().expect("the folder");
    let notes: String =
        said.lines().filter(|it| !it.ends_with(" is written")).map(|it| format!("{it}\n")).collect();
    format!("{text}==== said\n{notes}").replace(&*place.to_string_lossy(), "FOLDER")
}

/// Compares the text with the file, or writes the file if `UPDATE=1` is set.
#[expect(clippy::disallowed_methods, reason = "the UPDATE variable decides whether to write")]
fn expect(file: &Path, text: &str) {
    if env::var_os("UPDATE").is_some() {
        fs::write(file, text).expect("the expectation can be written");
    }
    let expected = fs::read_to_string(file).unwrap_or_default();
    assert!(expected == text, "{} says:\n{expected}\nbut this came out:\n{text}", file.display());
}

fn wharf(folder: &TempDir, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_wharf"))
        .args(args)
        .current_dir(folder.path())
        .env_clear()
        .env("HOME", folder.path().join("home"))
        .env("WHARF_HOME", folder.path().join("state"))
        .output()
        .expect("wharf runs")
}

fn read(folder: &TempDir, name: &str) -> String {
    fs::read_to_string(folder.path().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
