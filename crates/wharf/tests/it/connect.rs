//! Tests `wharf connect`: the changed configuration files of other clients, and that `wharf init --from` reads them.

use serde_json::{Value, json};
use std::{
    fs,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Command, Output, Stdio},
};
use tempfile::TempDir;

const PROGRAM: &str = env!("CARGO_BIN_EXE_wharf");

/// All clients, and the path of their user configuration below the home folder.
const CLIENTS: [(&str, &str); 8] = [
    ("claude", ".config/Claude/claude_desktop_config.json"),
    ("claude-code", ".claude.json"),
    ("vscode", ".config/Code/User/mcp.json"),
    ("cursor", ".cursor/mcp.json"),
    ("windsurf", ".codeium/windsurf/mcp_config.json"),
    ("codex", ".codex/config.toml"),
    ("zed", ".config/zed/settings.json"),
    ("gemini", ".gemini/settings.json"),
];

/// A home folder with an agent file in a folder below it.
struct Home {
    folder: TempDir,
}

#[cfg(target_os = "linux")]
#[test]
fn init_imports_what_connect_wrote() {
    for (client, place) in CLIENTS {
        let home = Home::new();
        let connected = home.wharf(&["connect", client, "--json"]);
        assert_eq!(connected.status.code(), Some(0), "{client}: {connected:?}");
        let document: Value = serde_json::from_slice(&connected.stdout).expect("JSON");
        assert_eq!(document["file"], json!(home.path(place)), "{client}");
        assert_eq!((&document["changed"], &document["backup"]), (&json!(true), &Value::Null), "{client}");

        // A second run changes nothing.
        let before = home.read(place);
        let again = home.wharf(&["connect", client]);
        assert!(stderr(&again).contains("is connected already"), "{client}: {}", stderr(&again));
        assert_eq!(home.read(place), before, "{client}");

        home.write("state/wharf.toml", &format!("[grants]\ncommands = [\"{PROGRAM}\"]\n"));
        let imported = home.wharf(&["init", "--from", client, "-f", "imported.yaml"]);
        assert_eq!(imported.status.code(), Some(0), "{client}: {}", stderr(&imported));
        assert!(stderr(&imported).contains("1 imported, 0 need a value, 0 refused"), "{}", stderr(&imported));
        let agent_file = home.path("work/agent.yaml");
        let yaml = home.read("work/imported.yaml");
        let command = format!(
            "    command: {PROGRAM}\n    args:\n      - \"-f\"\n      - {}\n      - stdio\n",
            agent_file.display()
        );
        assert!(yaml.contains(&command), "{client}: {yaml}");
        let checked = home.wharf(&["check", "-f", "imported.yaml"]);
        assert_eq!(checked.status.code(), Some(0), "{client}: {}", stderr(&checked));

        let removed = home.wharf(&["connect", client, "--remove"]);
        assert_eq!(removed.status.code(), Some(0), "{client}: {}", stderr(&removed));
        assert!(!home.read(place).contains("stdio"), "{client}: {}", home.read(place));
        let backup = home.read(&format!("{place}.bak"));
        assert_eq!(backup, before, "{client}");
    }
}

#[test]
fn connect_keeps_other_text_and_makes_a_backup() {
    for (client, place, before, kept) in [
        (
            "zed",
            ".config/zed/settings.json",
            "// Zed's settings\n{\n  \"theme\": \"One Dark\", // dark\n  \"context_servers\": {\n    // mine\n    \"a\": {\"command\": \"x\"},\n  },\n}\n",
            &[
                "// Zed's settings\n{",
                "\"One Dark\", // dark\n",
                "    // mine\n    \"a\": {\"command\": \"x\"},\n",
            ][..],
        ),
        (
            "codex",
            ".codex/config.toml",
            "# Mine.\nmodel = \"m\"\n\n[mcp_servers.a] # a\ncommand = \"x\"\n\n[tui]\ntheme = \"t\"\n",
            &["# Mine.\nmodel = \"m\"\n", "[mcp_servers.a] # a\ncommand = \"x\"\n", "[tui]\ntheme = \"t\"\n"],
        ),
        (
            "claude-code",
            ".claude.json",
            "{\"numStartups\": 12345678901234567890, \"projects\": {\"/w\": {\"mcpServers\": {}}}}",
            &["\"numStartups\": 12345678901234567890, \"projects\": {\"/w\": {\"mcpServers\": {}}}"],
        ),
    ] {
        let home = Home::new();
        home.write(place, before);
        let connected = home.wharf(&["connect", client]);
        assert_eq!(connected.status.code(), Some(0), "{client}: {}", stderr(&connected));
        let after = home.read(place);
        for part in kept {
            assert!(after.contains(part), "{client}: {part} is not in\n{after}");
        }
        assert!(after.contains(PROGRAM), "{client}: {after}");
        assert_eq!(home.read(&format!("{place}.bak")), before, "{client}");
        let removed = home.wharf(&["connect", client, "--remove", "--json"]);
        let document: Value = serde_json::from_slice(&removed.stdout).expect("JSON");
        let second = format!("{}.bak-2", home.path(place).display());
        assert_eq!(document["backup"], json!(second), "{client}");
        for part in kept {
            assert!(home.read(place).contains(part), "{client}");
        }
    }
}

#[test]
fn print_writes_nothing() {
    for (client, place) in CLIENTS {
        let home = Home::new();
        let printed = home.wharf(&["connect", client, "--print"]);
        assert_eq!(printed.status.code(), Some(0), "{client}: {}", stderr(&printed));
        assert!(!home.path(place).exists(), "{client}");
        let text = String::from_utf8_lossy(&printed.stdout).into_owned();
        assert!(text.contains(PROGRAM) && text.contains("stdio"), "{client}: {text}");
        // The printed text is a complete configuration file.
        home.write(place, &text);
        let again = home.wharf(&["connect", client]);
        assert!(stderr(&again).contains("is connected already"), "{client}: {}", stderr(&again));
    }
}

#[test]
fn http_entry_does_not_contain_the_token() {
    for (client, place) in CLIENTS {
        let home = Home::new();
        let connected = home.wharf(&["connect", client, "--http"]);
        if matches!(client, "claude" | "zed") {
            assert_eq!(connected.status.code(), Some(2), "{client}");
            assert!(stderr(&connected).contains("leave `--http` out"), "{}", stderr(&connected));
            assert!(!home.path(place).exists(), "{client}");
            continue;
        }
        assert_eq!(connected.status.code(), Some(0), "{client}: {}", stderr(&connected));
        assert!(home.read(place).contains("http://127.0.0.1:7373/mcp"), "{client}: {}", home.read(place));
        let imported = home.wharf(&["init", "--from", client, "-f", "imported.yaml"]);
        assert_eq!(imported.status.code(), Some(0), "{client}: {}", stderr(&imported));
        let yaml = home.read("work/imported.yaml");
        assert!(
            yaml.contains("    transport: http\n    url: http://127.0.0.1:7373/mcp\n"),
            "{client}: {yaml}"
        );
        assert!(yaml.contains("Authorization: \"Bearer ${WHARF_TOKEN:-}\""), "{client}: {yaml}");
    }
}

#[test]
fn project_option_writes_the_project_file() {
    let home = Home::new();
    let connected = home.wharf(&["connect", "claude-code", "--project", "--name", "tools"]);
    assert_eq!(connected.status.code(), Some(0), "{}", stderr(&connected));
    let file: Value = serde_json::from_str(&home.read("work/.mcp.json")).expect("JSON");
    assert_eq!(file["mcpServers"]["tools"]["type"], "stdio");
    let connected = home.wharf(&["connect", "windsurf", "--project"]);
    assert_eq!(connected.status.code(), Some(2));
    assert!(stderr(&connected).contains("has no project configuration"), "{}", stderr(&connected));
}

#[test]
fn written_entry_starts_a_working_server() {
    let home = Home::new();
    home.wharf(&["connect", "cursor"]);
    let file: Value = serde_json::from_str(&home.read(".cursor/mcp.json")).expect("JSON");
    let entry = &file["mcpServers"]["wharf"];
    let words = |value: &Value| value.as_str().expect("a string").to_owned();
    let mut command = Command::new(words(&entry["command"]));
    command.args(entry["args"].as_array().expect("arguments").iter().map(words)).env_clear();
    let env = entry["env"].as_object().expect("variables").iter();
    command.envs(env.map(|(name, value)| (name.clone(), words(value))));
    // A client may start its servers in any folder.
    command.current_dir("/").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().expect("wharf starts");
    let mut stdin = child.stdin.take().expect("its stdin");
    let mut answers = BufReader::new(child.stdout.take().expect("its stdout")).lines();
    let mut ask = |message: Value| writeln!(stdin, "{message}").expect("it reads");
    ask(json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}));
    ask(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    ask(json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}));
    let listed = answers.find_map(|line| {
        let answer: Value = serde_json::from_str(&line.expect("a line")).expect("JSON");
        (answer["id"] == 2).then_some(answer)
    });
    let listed = listed.expect("an answer");
    let tools = listed["result"]["tools"].as_array().expect("a list");
    assert!(tools.iter().any(|it| it["name"] == "mine__create_todo"), "{listed}");
    drop(stdin);
    child.wait().expect("it ends");
}

#[test]
fn connect_errors_are_explained() {
    let home = Home::new();
    let unknown = home.wharf(&["connect", "emacs"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(stderr(&unknown).contains("the clients are claude, claude-code"), "{}", stderr(&unknown));
    home.write(".cursor/mcp.json", "[1]");
    let odd = home.wharf(&["connect", "cursor"]);
    assert_eq!(odd.status.code(), Some(2));
    assert!(stderr(&odd).contains("add this by hand:\n{\n"), "{}", stderr(&odd));
    assert_eq!(home.read(".cursor/mcp.json"), "[1]");
    let missing = home.wharf(&["connect", "cursor", "-f", "other.yaml"]);
    assert_eq!(missing.status.code(), Some(2));
    assert!(stderr(&missing).contains("'other.yaml' does not exist"), "{}", stderr(&missing));
}

#[test]
fn note_names_the_shell_variables() {
    let home = Home::new();
    let entry = "tools:\n  - name: a\n    description: d\n    type: mcp\n    server: x\n    command: uvx\n    env:\n      A: ${SOME_KEY}\n";
    home.write("work/agent.yaml", entry);
    let connected = home.wharf(&["connect", "cursor"]);
    assert!(
        stderr(&connected).contains("note: SOME_KEY must be set where Cursor starts wharf"),
        "{}",
        stderr(&connected)
    );
}

impl Home {
    fn new() -> Home {
        let home = Home { folder: TempDir::new().expect("a folder") };
        home.write(
            "work/agent.yaml",
            "tools:\n  - name: mine\n    description: d\n    type: mcp\n    server: builtin:todo\n",
        );
        home
    }

    fn path(&self, place: &str) -> PathBuf {
        self.folder.path().canonicalize().expect("the folder").join(place)
    }

    fn write(&self, place: &str, text: &str) {
        let path = self.path(place);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("it can be written");
    }

    fn read(&self, place: &str) -> String {
        fs::read_to_string(self.path(place)).unwrap_or_else(|error| panic!("{place}: {error}"))
    }

    fn wharf(&self, args: &[&str]) -> Output {
        let mut command = Command::new(Path::new(PROGRAM));
        command.args(args).current_dir(self.path("work")).env_clear();
        command.env("HOME", self.path("")).env("WHARF_HOME", self.path("state")).env("SOME_KEY", "k");
        command.output().expect("wharf runs")
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}
