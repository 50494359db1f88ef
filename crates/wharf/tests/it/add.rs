//! Tests `wharf add`: the changed agent file, and the output of `wharf check` for it.

use serde_json::Value;
use std::{
    fs,
    path::Path,
    process::{Command, Output},
};
use tempfile::TempDir;

const MANIFEST: &str = r#"{
    "name": "io.example/weather", "description": "Weather: now, and ${later}",
    "packages": [{
        "registryType": "npm", "identifier": "@example/weather", "version": "1.2.3",
        "packageArguments": [{ "type": "named", "name": "--unit", "value": "{unit}",
            "variables": { "unit": { "default": "celsius", "choices": ["celsius", "kelvin"] } } }],
        "environmentVariables": [
            { "name": "WEATHER_KEY", "isRequired": true, "isSecret": true }, { "name": "WEATHER_CITY" }]
    }]
}"#;

const ENTRY: &str = r#"  - name: weather
    description: "Weather: now, and $${later}"
    type: mcp
    server: "@example/weather"
    command: npx
    args:
      - "-y"
      - "@example/weather@1.2.3"
      - "--unit"
      - celsius
    env:
      WEATHER_KEY: "${WEATHER_KEY}"
"#;

fn wharf(folder: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wharf"));
    command.args(args).current_dir(folder).env_clear().env("HOME", folder).env("WEATHER_KEY", "k");
    command.output().expect("wharf runs")
}

/// Runs `wharf add` on this agent file. Returns the folder, the new file and the output.
fn add(before: Option<&str>, args: &[&str]) -> (TempDir, Option<String>, Output) {
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join("server.json"), MANIFEST).expect("a manifest");
    if let Some(before) = before {
        fs::write(folder.path().join("agent.yaml"), before).expect("an agent file");
    }
    let output = wharf(folder.path(), args);
    let after = fs::read_to_string(folder.path().join("agent.yaml")).ok();
    (folder, after, output)
}

#[test]
fn adding_an_entry_keeps_all_other_text() {
    let head = "# Mine.\nname:   'a'   # kept\n\ntools:\n  - {name: todo, description: x, type: mcp, server: builtin:todo}\n";
    let tail = "\n# The end.\nauthor: me\n";
    for (before, manifest, expected) in [
        (None, "server.json", format!("tools:\n{ENTRY}")),
        (None, ".", format!("tools:\n{ENTRY}")),
        (None, MANIFEST, format!("tools:\n{ENTRY}")),
        (Some(format!("{head}{tail}")), "server.json", format!("{head}{ENTRY}{tail}")),
    ] {
        let (folder, after, output) = add(before.as_deref(), &["add", manifest]);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        assert_eq!(after.as_deref(), Some(expected.as_str()));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("set these variables: WEATHER_KEY\n"), "{said}");
        assert!(said.contains("WEATHER_CITY"), "{said}");
        let check = wharf(folder.path(), &["check", "--strict"]);
        assert_eq!(check.status.code(), Some(0), "{check:?}");
    }
}

#[test]
fn add_accepts_a_name_and_prints_json() {
    let (_folder, after, output) = add(None, &["add", "server.json", "--name", "sky", "--json"]);
    let printed: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(
        printed,
        serde_json::json!({
            "file": "agent.yaml", "name": "sky", "names": ["sky"], "variables": ["WEATHER_KEY"],
            "optional": ["WEATHER_CITY"], "files": [], "imported": [], "needs_value": [], "refused": [],
            "notes": [],
        })
    );
    assert!(after.is_some_and(|it| it.starts_with("tools:\n  - name: sky\n")));
}

#[test]
fn failed_add_changes_nothing() {
    let evil = r#"{"name": "x", "packages": [{"registryType": "npm", "identifier": "x",
        "runtimeArguments": [{"type": "named", "name": "-c", "value": "touch owned"}]}]}"#;
    let there = format!("tools:\n{ENTRY}");
    for (before, manifest, expected) in [
        (Some(there.as_str()), "server.json", "has a tool called 'weather' already"),
        (
            Some("tools: [{name: a, description: d, type: mcp, server: \"builtin:todo\"}]\n"),
            "server.json",
            "is not a block list",
        ),
        (Some("tools:\n  - name: 7\n"), "server.json", "is already invalid"),
        (None, "nowhere.json", "does not exist"),
        (None, "some-package", "choose one: `wharf add npm:some-package` or `wharf add pypi:some-package`"),
        (
            None,
            r#"{"x": {"command": "node", "args": ["x.js"]}}"#,
            "error: `x`: MCPConfigError: Invalid command 'node'",
        ),
        (None, "http://far.example/mcp", "'url' must use https://"),
        (
            Some(there.as_str()),
            r#"{"weather": {"command": "uvx", "args": ["x"]}}"#,
            "`--name NAME` gives it another name",
        ),
        (None, "{\"packages\": 7}", "'packages' is not a list"),
        (None, "{}", "neither 'packages' nor 'remotes'"),
        (None, evil, "npx argument not allowed: '-c'"),
    ] {
        let (_folder, after, output) = add(before, &["add", manifest]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains(expected), "{manifest}: {said}");
        assert_eq!(output.status.code(), Some(2), "{manifest}");
        assert_eq!(after.as_deref(), before, "{manifest}");
    }
}

/// Checks the arguments, the resulting entry and the printed message.
#[test]
fn packages_urls_and_json_blocks_are_added() {
    let npx = |name: &str, package: &str, more: &str| {
        format!(
            "tools:\n  - name: {name}\n    description: The {name} server ({package})\n    type: mcp\n    server: \"{package}\"\n    command: npx\n    args:\n      - \"-y\"\n      - \"{package}\"\n{more}"
        )
    };
    let block = r#"{"mcpServers": {"playwright": {"command": "npx", "args": ["-y", "@playwright/mcp"]}}}"#;
    let filesystem = "@modelcontextprotocol/server-filesystem";
    for (typed, expected) in [
        (&["@playwright/mcp"][..], npx("playwright", "@playwright/mcp", "")),
        (&["npm:@playwright/mcp"], npx("playwright", "@playwright/mcp", "")),
        (&["@playwright/mcp", "--name", "web"], npx("web", "@playwright/mcp", "")),
        (&["@playwright/mcp", "--", "--headless"], npx("playwright", "@playwright/mcp", "      - \"--headless\"\n")),
        (&[filesystem], npx("filesystem", filesystem, "      - \".\"\n")),
        (&[filesystem, "--", "./data"], npx("filesystem", filesystem, "      - ./data\n")),
        (&[block], npx("playwright", "@playwright/mcp", "")),
        (&[r#""playwright": {"command": "npx", "args": ["-y", "@playwright/mcp"]}"#], npx("playwright", "@playwright/mcp", "")),
        (&[r#"{"command": "npx", "args": ["-y", "@playwright/mcp"]}"#], npx("playwright", "@playwright/mcp", "")),
        (
            &["pypi:mcp-server-time"],
            "tools:\n  - name: time\n    description: The time server (mcp-server-time)\n    type: mcp\n    server: mcp-server-time\n    command: uvx\n    args:\n      - mcp-server-time\n".to_owned(),
        ),
        (
            &["https://mcp.linear.app/mcp"],
            "tools:\n  - name: linear\n    description: The linear server at mcp.linear.app\n    type: mcp\n    server: linear\n    transport: http\n    url: https://mcp.linear.app/mcp\n".to_owned(),
        ),
        (
            &["wss://h.example/ws"],
            "tools:\n  - name: h\n    description: The h server at h.example\n    type: mcp\n    server: h\n    transport: websocket\n    url: wss://h.example/ws\n".to_owned(),
        ),
    ] {
        let args: Vec<&str> = ["add"].into_iter().chain(typed.iter().copied()).collect();
        let (folder, after, output) = add(None, &args);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{typed:?}: {said}");
        assert_eq!(after.as_deref(), Some(expected.as_str()), "{typed:?}");
        assert!(said.contains(" is added to agent.yaml\n"), "{said}");
        let check = wharf(folder.path(), &["check", "--strict"]);
        assert_eq!(check.status.code(), Some(0), "{typed:?}: {check:?}");
    }
}

#[test]
fn block_from_stdin_moves_secrets_to_an_env_file() {
    use std::{io::Write, process::Stdio};
    let folder = TempDir::new().expect("a folder");
    let block = r#"{
        // as a page shows it
        "mcpServers": {
            "github": {"command": "npx", "args": ["-y", "gh-mcp"], "env": {"GITHUB_TOKEN": "ghp_0123456789abcdefABCDEF0123456789abcd"}},
            "local": {"command": "node", "args": ["x.js"]},
        },
    }"#;
    let mut command = Command::new(env!("CARGO_BIN_EXE_wharf"));
    command.args(["add", "-", "--json"]).current_dir(folder.path()).env_clear().env("HOME", folder.path());
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("wharf runs");
    child.stdin.take().expect("its stdin").write_all(block.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    assert_eq!(
        (&printed["names"], &printed["imported"]),
        (&serde_json::json!(["github"]), &serde_json::json!(["github"]))
    );
    assert_eq!(printed["refused"][0]["server"], "local");
    let read = |name: &str| fs::read_to_string(folder.path().join(name)).expect(name);
    assert!(
        !read("agent.yaml").contains("ghp_") && !read("agent.yaml").contains("node"),
        "{}",
        read("agent.yaml")
    );
    assert!(read(".env.github").contains("ghp_"));
    assert_eq!(read(".gitignore"), ".env.*\n");
    assert_eq!(wharf(folder.path(), &["check", "--strict"]).status.code(), Some(0));
}

#[test]
fn key_in_a_url_moves_to_an_env_file() {
    let (folder, after, output) =
        add(None, &["add", "https://mcp.example.com/mcp?apiKey=battery-staple-1234567890"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(after.is_some_and(|it| !it.contains("battery")));
    assert!(!String::from_utf8_lossy(&output.stderr).contains("battery"));
    assert!(
        fs::read_to_string(folder.path().join(".env.example-server")).is_ok_and(|it| it.contains("battery"))
    );
}

#[cfg(unix)]
#[test]
fn symlink_and_permissions_are_preserved() {
    use std::os::unix::fs::{PermissionsExt, symlink};
    let folder = TempDir::new().expect("a folder");
    let file = folder.path().join("mine.yaml");
    fs::write(&file, "name: a\n").expect("an agent file");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("it is ours");
    symlink("mine.yaml", folder.path().join("agent.yaml")).expect("a link");
    let output = wharf(folder.path(), &["add", MANIFEST]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(folder.path().join("agent.yaml").is_symlink());
    let text = fs::read_to_string(&file).expect("it is there");
    assert_eq!(text, format!("name: a\n\ntools:\n{ENTRY}"));
    assert_eq!(fs::metadata(&file).expect("it is there").permissions().mode() & 0o777, 0o600);
}
