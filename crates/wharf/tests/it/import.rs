//! Other clients' files as data: what `wharf init --from` makes of them passes `wharf check`.
//!
//! Each folder of `import/` holds a client's file where the client would keep it, and `expected.txt`: every file that
//! was written and every note. `UPDATE=1` writes `expected.txt` anew; read the difference before you
//! believe it.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};
use tempfile::TempDir;

/// In the fixtures, and only there, these are in everything that is secret.
const SECRETS: [&str; 3] = ["battery", "staple", "ghp_"];

#[test]
fn claude_desktop() {
    let folder = check("claude/claude_desktop_config.json");
    let agent_file = read(&folder, "agent.yaml");
    assert_eq!(agent_file.matches("\n  - name: ").count(), 5, "{agent_file}");
    assert!(read(&folder, ".env.github").contains("ghp_"));
    assert!(read(&folder, ".env.postgres").contains("correct-horse-battery"));
}

#[test]
fn vscode() {
    let folder = check("vscode/.vscode/mcp.json");
    assert!(read(&folder, ".env.Perplexity").contains("\nPERPLEXITY_KEY=\n"));
}

#[test]
fn vscode_settings() {
    check("settings/settings.json");
}

#[test]
fn cursor() {
    let folder = check("cursor/.cursor/mcp.json");
    assert!(read(&folder, ".env.search").contains("header-battery-staple"));
}

#[test]
fn nasty() {
    check("nasty/mcp.json");
}

#[test]
fn a_client_is_found_by_name() {
    let home = TempDir::new().expect("a folder");
    for (client, place) in [
        ("claude", "home/.config/Claude/claude_desktop_config.json"),
        ("vscode", ".vscode/mcp.json"),
        ("cursor", "home/.cursor/mcp.json"),
    ] {
        let missing = wharf(&home, &["init", "--from", client]);
        assert_eq!(missing.status.code(), Some(2), "{client}");
        assert!(stderr(&missing).contains(place.rsplit('/').next().expect("a name")), "{}", stderr(&missing));
        let path = home.path().join(place);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        let key = if client == "vscode" { "servers" } else { "mcpServers" };
        fs::write(path, format!("{{\"{key}\": {{\"a\": {{\"command\": \"uvx\", \"args\": [\"x\"]}}}}}}"))
            .expect("the file can be written");
        let file = format!("{client}.yaml");
        let found = wharf(&home, &["init", "--from", client, "-f", &file]);
        assert_eq!(found.status.code(), Some(0), "{}", stderr(&found));
        assert_eq!(wharf(&home, &["check", "-f", &file]).status.code(), Some(0));
    }
}

#[test]
fn what_cannot_be_imported_gets_a_sentence() {
    let folder = TempDir::new().expect("a folder");
    for (text, expected) in [
        ("", "is not JSON: it is empty"),
        ("tools: []", "is not JSON: expected"),
        ("{\"mcpServers\": {}}", "names no servers"),
        ("{\"name\": \"x\"}", "there is neither `mcpServers` nor `servers` in it"),
        ("[]", "it is not an object"),
    ] {
        fs::write(folder.path().join("mcp.json"), text).expect("the file can be written");
        let output = wharf(&folder, &["init", "--from", "mcp.json"]);
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(stderr(&output).contains(expected), "{text}: {}", stderr(&output));
        assert!(!folder.path().join("agent.yaml").exists());
    }
}

/// Imports a fixture into a new folder, compares all that came of it, and checks it without a single variable set.
fn check(fixture: &str) -> TempDir {
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/import").join(fixture);
    let folder = TempDir::new().expect("a folder");
    let imported = wharf(&folder, &["init", "--from", &fixture.to_string_lossy()]);
    assert_eq!(imported.status.code(), Some(0), "{}", stderr(&imported));
    let checked = wharf(&folder, &["check", "--strict"]);
    assert_eq!(checked.status.code(), Some(0), "{}", stderr(&checked));
    assert!(!stderr(&checked).contains("warning"), "{}", stderr(&checked));

    let said = stderr(&imported);
    for secret in SECRETS {
        assert!(!read(&folder, "agent.yaml").contains(secret), "{}", read(&folder, "agent.yaml"));
        assert!(!said.contains(secret), "{said}");
    }
    let case = fixture.ancestors().find(|it| it.parent().is_some_and(|it| it.ends_with("it/import")));
    expect(&case.expect("a folder of its own").join("expected.txt"), &everything(&folder, &said));
    folder
}

/// The files that were written, in the order of their names, and the notes.
fn everything(folder: &TempDir, said: &str) -> String {
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
        said.lines().filter(|it| it.starts_with("note: ")).map(|it| format!("{it}\n")).collect();
    format!("{text}==== said\n{notes}").replace(&*place.to_string_lossy(), "FOLDER")
}

/// Compares with the file, or writes it under `UPDATE=1`.
#[expect(clippy::disallowed_methods, reason = "whoever runs the tests says whether to write")]
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
