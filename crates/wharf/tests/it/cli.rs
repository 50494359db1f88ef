//! Tests the command line: stdout, stderr and exit codes.

mod agent_file;
mod call;
#[cfg(unix)]
mod chat;
mod help;
#[cfg(unix)]
mod interrupts;
mod json;
#[cfg(unix)]
mod json_docs;
#[cfg(unix)]
mod kept_runs;
#[cfg(unix)]
mod run;
#[cfg(unix)]
mod scripted_server;
#[cfg(unix)]
mod terminal;
#[cfg(unix)]
mod through_gateway;
mod tools;

use serde_json::Value;
use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};
use tempfile::TempDir;

/// A temporary folder in which the program runs, with only the environment that the test sets.
struct CliWorkspace {
    folder: TempDir,
    variables: Vec<(String, String)>,
}

impl CliWorkspace {
    fn new() -> CliWorkspace {
        CliWorkspace { folder: TempDir::new().expect("a folder"), variables: Vec::new() }
    }

    fn with(agent_file: &str) -> CliWorkspace {
        let workspace = CliWorkspace::new();
        workspace.write("agent.yaml", agent_file);
        workspace
    }

    fn set(mut self, name: &str, value: &str) -> CliWorkspace {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        fs::write(self.path(name), text).expect("the file can be written");
    }

    fn wharf(&self, args: &[&str]) -> Output {
        self.command(Path::new(env!("CARGO_BIN_EXE_wharf"))).args(args).output().expect("wharf runs")
    }

    /// Builds a command that runs in the folder.
    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.folder.path()).env_clear().env("HOME", self.path("home"));
        command.envs(self.variables.iter().cloned());
        command
    }
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {}", stdout(output)))
}

fn case(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/config").join(path)
}

const TODO: &str = "tools:\n  - {name: todo, description: Things to do, type: mcp, server: builtin:todo}\n";

#[test]
fn check_accepts_a_valid_file() {
    let output = CliWorkspace::with(TODO).wharf(&["check"]);
    assert_eq!((output.status.code(), stdout(&output).as_str()), (Some(0), ""));
    assert_eq!(stderr(&output), "agent.yaml: valid, 1 server\n");
}

#[test]
fn check_reports_every_mistake_in_order() {
    let workspace =
        CliWorkspace::with(&fs::read_to_string(case("bad/seven-mistakes.yaml")).expect("the case"));
    let output = workspace.wharf(&["check"]);
    assert_eq!(output.status.code(), Some(2));
    let lines: Vec<usize> = stderr(&output)
        .lines()
        .filter_map(|it| it.trim_start().strip_prefix("--> agent.yaml:")?.split(':').next()?.parse().ok())
        .collect();
    assert_eq!(lines.len(), 7, "{}", stderr(&output));
    assert!(lines.is_sorted(), "{lines:?}");
}

#[test]
fn check_json_has_one_object_per_diagnostic() {
    let output = CliWorkspace::with("tools:\n  - name: a\n    type: mcp\n    server: x\n    command: bash\n")
        .wharf(&["check", "--json"]);
    assert_eq!(output.status.code(), Some(2));
    let report = json(&output);
    assert_eq!(report["ok"], false);
    let error = &report["diagnostics"][1];
    assert_eq!(error["severity"], "error");
    assert_eq!(error["code"], "V-05");
    assert_eq!(
        error["message"],
        "MCPConfigError: Invalid command 'bash'. Supported commands: npx, uvx, docker"
    );
    assert_eq!(
        (&error["file"], &error["line"], &error["column"]),
        (&"agent.yaml".into(), &5.into(), &14.into())
    );
    assert_eq!(report["diagnostics"][0]["severity"], "warning");
}

#[test]
fn strict_raises_missing_descriptions_and_nothing_else() {
    let workspace = CliWorkspace::with("tools:\n  - {name: a, type: mcp, server: '@s/x'}\n");
    assert_eq!(workspace.wharf(&["check"]).status.code(), Some(0));
    let strict = workspace.wharf(&["check", "--strict", "--json"]);
    assert_eq!(strict.status.code(), Some(2));
    let report = json(&strict);
    let found: Vec<_> = report["diagnostics"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|it| (&it["code"], &it["severity"]))
        .collect();
    assert_eq!(found, [(&"V-14".into(), &"error".into()), (&"V-15".into(), &"warning".into())]);
}

#[test]
fn unreadable_agent_file_gets_one_error() {
    let workspace = CliWorkspace::new();
    fs::create_dir(workspace.path("folder")).expect("a folder");
    let huge = fs::File::create(workspace.path("huge.yaml")).expect("a file");
    huge.set_len(100 * 1024 * 1024).expect("a sparse file");
    workspace.write("nul.yaml", b"name: a\0b\n");
    workspace.write("latin.yaml", b"name: caf\xe9\n");
    workspace.write("utf16.yaml", b"\xff\xfen\0a\0m\0e\0");
    for (file, expected) in [
        ("missing.yaml", "'missing.yaml' does not exist"),
        ("folder", "'folder' is a folder"),
        ("huge.yaml", "'huge.yaml' is larger than 16 MiB"),
        ("nul.yaml", "control character (U+0000)"),
        ("latin.yaml", "is not UTF-8 text"),
        ("utf16.yaml", "is not UTF-8 text"),
        #[cfg(unix)]
        ("/dev/zero", "'/dev/zero' is a device"),
    ] {
        let output = workspace.wharf(&["check", "-f", file]);
        assert_eq!(output.status.code(), Some(2), "{file}");
        assert!(stderr(&output).contains(expected), "{file}: {}", stderr(&output));
        assert_eq!(stderr(&output).matches("error:").count(), 1, "{file}: {}", stderr(&output));
    }
}

#[test]
#[cfg(unix)]
fn named_pipe_is_refused_without_blocking() {
    let workspace = CliWorkspace::with(
        "tools:\n  - {name: a, description: b, type: mcp, server: '@s/x', command: npx, envFile: pipe}\n",
    );
    let made = Command::new("mkfifo").arg(workspace.path("pipe")).status().expect("mkfifo runs");
    assert!(made.success());
    for args in [["check", "-f", "pipe"], ["check", "-f", "agent.yaml"]] {
        let output = workspace.wharf(&args);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains("is a pipe, not a regular file"), "{}", stderr(&output));
    }
}

#[test]
fn explain_shows_what_is_run_and_offered() {
    let workspace =
        CliWorkspace::with(&fs::read_to_string(case("good/s2-example-1-filesystem.yaml")).expect("the case"));
    let output = workspace.wharf(&["explain", "files"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let text = stdout(&output);
    let folder = workspace.folder.path().canonicalize().expect("a path");
    for expected in [
        "npx -y @modelcontextprotocol/server-filesystem\n",
        &format!("{}/data\n", folder.display()),
        &format!("{}/output\n", folder.display()),
        "MCP_CONFIG",
        "request_timeout 60 s (default)",
    ] {
        assert!(text.contains(expected), "{expected:?} is missing from:\n{text}");
    }
    let report = json(&workspace.wharf(&["explain", "--json"]));
    let source = &report["sources"][0];
    assert_eq!(source["runs"], serde_json::json!(["npx", "-y", "@modelcontextprotocol/server-filesystem"]));
    assert!(source["environment"].as_array().expect("a list").iter().any(|it| it["name"] == "MCP_CONFIG"));
}

#[test]
fn no_command_shows_a_secret() {
    let secret = "canary-90b1e4";
    let text = r#"
name: ${S}
description: ${S}
author: ${S}
model: { provider: openai, name: "${S}", api_key: "${S}", api_version: "${S}" }
instructions: { inline: "${S}" }
tools:
  - name: a-${S}
    description: ${S}
    type: mcp
    server: pkg
    command: npx
    args: [pkg, "--token=${S}", "${FROM_FILE}"]
    env: { KEY: "${S}", LITERAL_TOKEN: canary-90b1e4-literal }
    envFile: secrets.env
    config: { key: "${S}", allowed_directories: ["/srv/${S}"] }
    prefix: ${S}
    allow: ["${S}"]
  - name: b
    description: d
    type: mcp
    server: ${S}
    transport: http
    url: https://example.com/${S}?key=${S}
    headers: { Authorization: "Bearer ${S}", X-Literal: canary-90b1e4-literal }
"#;
    let workspace = CliWorkspace::with(text).set("S", secret);
    workspace.write("secrets.env", format!("FROM_FILE={secret}\nOTHER={secret}\n"));
    for args in [
        &["check"][..],
        &["check", "--json"],
        &["check", "--strict"],
        &["explain"],
        &["explain", "--json"],
        &["explain", "nope"],
        &["check", "--color", "always"],
    ] {
        let output = workspace.wharf(args);
        let printed = format!("{}{}", stdout(&output), stderr(&output));
        assert!(!printed.contains("canary"), "{args:?} shows a secret:\n{printed}");
    }
    assert_eq!(
        workspace.wharf(&["explain"]).status.code(),
        Some(0),
        "{}",
        stderr(&workspace.wharf(&["explain"]))
    );
}

#[test]
fn init_writes_a_valid_file_and_never_overwrites() {
    let workspace = CliWorkspace::new();
    assert_eq!(workspace.wharf(&["init"]).status.code(), Some(0));
    let checked = workspace.wharf(&["check", "--strict"]);
    assert_eq!(
        (checked.status.code(), stderr(&checked).as_str()),
        (Some(0), "agent.yaml: valid, 1 server\n")
    );
    let before = fs::read(workspace.path("agent.yaml")).expect("the file");
    let again = workspace.wharf(&["init"]);
    assert_eq!(again.status.code(), Some(2));
    assert!(stderr(&again).contains("not overwritten"), "{}", stderr(&again));
    assert_eq!(fs::read(workspace.path("agent.yaml")).expect("the file"), before);
}

#[test]
fn init_writes_a_model_that_is_used() {
    for (named, shown) in [
        ("ollama/qwen3:8b", "provider: ollama\n  name: \"qwen3:8b\"\n"),
        (
            "anthropic/claude-sonnet-4-5",
            "provider: anthropic  # the key is in the variable ANTHROPIC_API_KEY\n",
        ),
    ] {
        let workspace = CliWorkspace::new();
        let output = workspace.wharf(&["init", "--model", named]);
        assert_eq!(stderr(&output), "agent.yaml is written\nnext: wharf chat\n");
        let text = fs::read_to_string(workspace.path("agent.yaml")).expect("the file");
        assert!(text.contains(shown) && !text.contains("# model:"), "{text}");
        assert_eq!(stderr(&workspace.wharf(&["check", "--strict"])), "agent.yaml: valid, 1 server\n");
    }
    for named in ["qwen3", "nobody/x", "openai/", "openai/a b", "azure_openai/x"] {
        let workspace = CliWorkspace::new();
        assert_eq!(workspace.wharf(&["init", "--model", named]).status.code(), Some(2), "{named}");
        assert!(!workspace.path("agent.yaml").exists(), "{named}");
    }
}

#[test]
fn every_commented_example_of_init_is_valid() {
    let workspace =
        CliWorkspace::new().set("ANTHROPIC_API_KEY", "k").set("GITHUB_TOKEN", "t").set("WIKI_TOKEN", "t");
    workspace.wharf(&["init"]);
    let text = fs::read_to_string(workspace.path("agent.yaml")).expect("the file");
    // Below the header, `# ` before a key or a list item marks an example; before a sentence it is a comment.
    let uncommented: String = text
        .lines()
        .skip_while(|it| !it.starts_with("name:"))
        .map(|line| match line.trim_start().strip_prefix("# ") {
            Some(code)
                if code.starts_with("- ")
                    || code.split_once(':').is_some_and(|(key, _)| !key.trim().contains(' ')) =>
            {
                line.replacen("# ", "", 1) + "\n"
            }
            _ => format!("{line}\n"),
        })
        .collect();
    workspace.write("all.yaml", &uncommented);
    let checked = workspace.wharf(&["check", "--strict", "-f", "all.yaml"]);
    assert_eq!(stderr(&checked), "all.yaml: valid, 5 servers\n", "{uncommented}");
}

#[test]
fn grants_are_read_from_the_operators_file_only() {
    let file = "tools:\n  - {name: a, description: b, type: mcp, server: x, command: /opt/server, args: [--free, 'x y']}\n";
    let grant = "[grants]\ncommands = [\"/opt/server\"]\n";
    let workspace = CliWorkspace::with(file);
    workspace.write("wharf.toml", grant);
    assert_eq!(
        workspace.wharf(&["check"]).status.code(),
        Some(2),
        "wharf.toml beside agent.yaml is not read"
    );
    assert_eq!(workspace.wharf(&["check", "--settings", "wharf.toml"]).status.code(), Some(0));
    let missing = workspace.wharf(&["check", "--settings", "nope.toml"]);
    assert!(stderr(&missing).contains("'nope.toml' does not exist"), "{}", stderr(&missing));

    fs::create_dir(workspace.path("state")).expect("a folder");
    workspace.write("state/wharf.toml", grant);
    let state = workspace.path("state").display().to_string();
    let workspace = workspace.set("WHARF_HOME", &state);
    assert_eq!(workspace.wharf(&["check"]).status.code(), Some(0));
    workspace.write("state/wharf.toml", "[grant]\n");
    let broken = workspace.wharf(&["check"]);
    assert_eq!(broken.status.code(), Some(2));
    assert!(stderr(&broken).contains("did you mean 'grants'?"), "{}", stderr(&broken));
}

#[test]
fn completions_and_schema_go_to_stdout() {
    let workspace = CliWorkspace::new();
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let output = workspace.wharf(&["completions", shell]);
        assert!(output.status.success() && stdout(&output).contains("wharf"), "{shell}");
    }
    assert_eq!(json(&workspace.wharf(&["schema"]))["title"], "wharf agent file");
}

#[test]
fn invalid_arguments_are_usage_errors() {
    let workspace = CliWorkspace::new();
    for args in [&["chekc"][..], &["check", "--nope"], &[]] {
        assert_eq!(workspace.wharf(args).status.code(), Some(2), "{args:?}");
    }
}
