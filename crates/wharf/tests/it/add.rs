//! `wharf add`: what becomes of an agent file, and what `wharf check` says of it afterwards.

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

/// Adds to this file, and gives back the file and what was printed.
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
fn an_entry_is_added_and_nothing_else_changes() {
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
fn a_name_can_be_given_and_json_is_for_programs() {
    let (_folder, after, output) = add(None, &["add", "server.json", "--name", "sky", "--json"]);
    let printed: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(
        printed,
        serde_json::json!({
            "file": "agent.yaml", "name": "sky", "variables": ["WEATHER_KEY"], "optional": ["WEATHER_CITY"],
        })
    );
    assert!(after.is_some_and(|it| it.starts_with("tools:\n  - name: sky\n")));
}

#[test]
fn what_cannot_be_added_changes_nothing() {
    let evil = r#"{"name": "x", "packages": [{"registryType": "npm", "identifier": "x",
        "runtimeArguments": [{"type": "named", "name": "-c", "value": "touch owned"}]}]}"#;
    let there = format!("tools:\n{ENTRY}");
    for (before, manifest, expected) in [
        (Some(there.as_str()), "server.json", "has a tool called 'weather' already"),
        (Some("tools: [{name: a}]\n"), "server.json", "is not one of lines"),
        (Some("tools:\n  - name: 7\n"), "server.json", "is wrong already"),
        (None, "nowhere.json", "does not exist"),
        (None, "{\"packages\": 7}", "'packages' is not a list"),
        (None, "{}", "neither 'packages' nor 'remotes'"),
        (None, evil, "npx may not be given '-c'"),
    ] {
        let (_folder, after, output) = add(before, &["add", manifest]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains(expected), "{manifest}: {said}");
        assert_eq!(output.status.code(), Some(2), "{manifest}");
        assert_eq!(after.as_deref(), before, "{manifest}");
    }
}

#[cfg(unix)]
#[test]
fn a_link_stays_a_link_and_permissions_stay_what_they_were() {
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
