//! Tests servers that are programs on this machine: rejected without a grant, and imported unchanged with one.

use crate::terminal::{self, TerminalOutput};
use serde_json::{Value, json};
use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Output},
};
use tempfile::TempDir;

/// A home folder with some programs, and a client's configuration that names them.
struct Machine {
    folder: TempDir,
}

#[test]
fn no_grant_without_a_terminal() {
    let machine = Machine::new();
    let output = machine.wharf(&["init", "--from", "mcp.json"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(!machine.settings().exists());
    let agent_file = machine.read("agent.yaml");
    assert_eq!(agent_file.matches("\n  - name: ").count(), 0, "{agent_file}");
    for program in ["bin/node", "bin/python", "bin/uv", "bin/own"] {
        let line = format!(
            "help: an operator can allow it in {}: [grants] commands = [\"{}\"]",
            machine.settings().display(),
            machine.path(program).display()
        );
        // `uv` is similar to the launcher `uvx`, so the message begins with that suggestion.
        assert!(agent_file.contains(&line[6..]), "{line}\n{agent_file}");
    }
    let package = format!(
        "an operator can allow it in {}: [grants] packages = [\"git+https://git.example/x/tool\"]",
        machine.settings().display()
    );
    assert!(agent_file.contains(&package), "{agent_file}");
}

#[test]
fn confirmed_grant_is_written_and_the_server_is_added() {
    let machine = Machine::new();
    let TerminalOutput { text, code } =
        machine.at_terminal(&["init", "--from", "mcp.json"], "y\nyes\nY\ny\ny\n");
    assert_eq!(code, Some(0), "{text}");
    let question = format!("allow {} for this server? [y/N]", machine.path("bin/node").display());
    assert!(text.contains(&question), "{text}");
    let grants = machine.read("state/wharf.toml");
    for program in ["bin/node", "bin/python", "bin/uv", "bin/own"] {
        assert!(grants.contains(&*machine.path(program).to_string_lossy()), "{grants}");
    }
    assert!(grants.contains("packages = [\"git+https://git.example/x/tool\"]"), "{grants}");
    let mode = fs::metadata(machine.settings()).expect("it is written").permissions().mode();
    assert_eq!(mode & 0o777, 0o600);

    let check = machine.wharf(&["check", "--strict"]);
    assert_eq!(check.status.code(), Some(0), "{check:?}");
    let agent_file = machine.read("agent.yaml");
    assert_eq!(agent_file.matches("\n  - name: ").count(), 5, "{agent_file}");
    // A relative script path refers to the folder in which the client would look, and not to the server's working
    // directory.
    assert!(agent_file.contains("command: node\n    args:\n      - ./x.js\n"), "{agent_file}");
    assert!(agent_file.contains("- \"--directory\"\n      - /srv/project\n      - run\n"), "{agent_file}");
    let explained = machine.wharf(&["explain", "script"]);
    let explained = String::from_utf8_lossy(&explained.stdout).into_owned();
    assert!(explained.contains(&*machine.path("bin/node").to_string_lossy()), "{explained}");
    assert!(explained.contains(&*machine.path("x.js").to_string_lossy()), "{explained}");
}

#[test]
fn declined_grant_writes_nothing() {
    let machine = Machine::new();
    let TerminalOutput { text, code } =
        machine.at_terminal(&["init", "--from", "mcp.json"], "n\n\nyess\n \nno\n");
    assert_eq!(code, Some(0), "{text}");
    assert_eq!(text.matches("? [y/N]").count(), 5, "{text}");
    assert!(!machine.settings().exists());
    assert!(!machine.read("agent.yaml").contains("\n  - name: "));

    let machine = Machine::new();
    let TerminalOutput { text, code } =
        machine.at_terminal(&["init", "--from", "mcp.json", "--json"], "y\ny\ny\ny\ny\n");
    assert_eq!((code, text.contains("[y/N]")), (Some(0), false), "{text}");
    assert!(!machine.settings().exists());
}

#[test]
fn a_granted_local_server_runs() {
    let machine = Machine::new();
    let own =
        json!({ "mcpServers": { "own": { "command": env!("CARGO_BIN_EXE_wharf"), "args": ["todo"] } } });
    machine.write("mcp.json", &own.to_string());
    let TerminalOutput { text, code } = machine.at_terminal(&["init", "--from", "mcp.json"], "y\n");
    assert_eq!(code, Some(0), "{text}");
    let tools = machine.wharf(&["tools", "--json"]);
    let tools: Value = serde_json::from_slice(&tools.stdout).unwrap_or_else(|_| panic!("{tools:?}"));
    let names: Vec<&str> =
        tools["tools"].as_array().into_iter().flatten().filter_map(|it| it["name"].as_str()).collect();
    assert!(names.contains(&"own__create_todo"), "{names:?}");
}

#[test]
fn add_asks_for_the_grant() {
    let machine = Machine::new();
    let block = r#"{"script": {"command": "node", "args": ["x.js"]}}"#;
    let refused = machine.wharf(&["add", block]);
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
    let TerminalOutput { text, code } = machine.at_terminal(&["add", block], "n\n");
    assert_eq!(code, Some(2), "{text}");
    assert!(!machine.settings().exists() && !machine.path("agent.yaml").exists(), "{text}");
    let TerminalOutput { text, code } = machine.at_terminal(&["add", block], "y\n");
    assert_eq!(code, Some(0), "{text}");
    assert!(machine.read("state/wharf.toml").contains("bin/node\"]"), "{text}");
    assert!(machine.read("agent.yaml").contains("    command: node\n"), "{text}");
    assert_eq!(machine.wharf(&["check", "--strict"]).status.code(), Some(0));
}

#[test]
fn grant_is_written_to_the_named_settings_file() {
    let machine = Machine::new();
    machine.write("mine.toml", "# Mine.\n[server]\nno_auth = true\n");
    let args = ["init", "--from", "mcp.json", "--settings", "mine.toml"];
    let TerminalOutput { text, code } = machine.at_terminal(&args, "y\nn\nn\nn\nn\n");
    assert_eq!(code, Some(0), "{text}");
    let node = machine.path("bin/node");
    let expected =
        format!("# Mine.\n[server]\nno_auth = true\n\n[grants]\ncommands = [\"{}\"]\n", node.display());
    assert_eq!(machine.read("mine.toml"), expected);
    assert!(!machine.settings().exists());
}

impl Machine {
    fn new() -> Machine {
        let machine = Machine { folder: TempDir::new().expect("a folder") };
        fs::create_dir(machine.path("bin")).expect("a folder");
        for program in ["node", "python", "uv", "own"] {
            let path = machine.path("bin").join(program);
            fs::write(&path, "#!/bin/sh\n").expect("a program");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it is ours");
        }
        let servers = json!({ "mcpServers": {
            "script": { "command": "node", "args": ["x.js"] },
            "module": { "command": "python", "args": ["-m", "pkg"] },
            "project": { "command": "uv", "args": ["run", "server.py"], "cwd": "/srv/project" },
            "absolute": { "command": machine.path("bin/own"), "args": [] },
            "source": { "command": "uvx", "args": ["--from", "git+https://git.example/x/tool", "tool"] },
        }});
        machine.write("mcp.json", &servers.to_string());
        machine
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().canonicalize().expect("the folder").join(name)
    }

    fn settings(&self) -> PathBuf {
        self.path("state/wharf.toml")
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).expect("it can be written");
    }

    fn variables(&self) -> [(String, String); 3] {
        let text = |path: PathBuf| path.to_string_lossy().into_owned();
        let path = format!("{}:/usr/bin:/bin", text(self.path("bin")));
        [
            ("PATH".into(), path),
            ("HOME".into(), text(self.path(""))),
            ("WHARF_HOME".into(), text(self.path("state"))),
        ]
    }

    fn wharf(&self, args: &[&str]) -> Output {
        let mut command = Command::new(Path::new(env!("CARGO_BIN_EXE_wharf")));
        command.args(args).current_dir(self.path("")).env_clear().envs(self.variables());
        command.output().expect("wharf runs")
    }

    fn at_terminal(&self, args: &[&str], typed: &str) -> TerminalOutput {
        let variables = self.variables();
        let variables: Vec<(&str, &str)> = variables.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        terminal::run(&self.path(""), &variables, args, typed)
    }
}
