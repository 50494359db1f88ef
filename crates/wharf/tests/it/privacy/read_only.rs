//! Tests a read-only home folder, as in a container with a read-only file system: a temporary folder replaces it.

use super::{environment::unprivileged, expose};
use std::{fs, path::Path, process::Stdio};
use tempfile::TempDir;

const AGENT_FILE: &str = "tools:\n  - {name: todo, description: d, type: mcp, server: 'builtin:todo'}\n";

/// Creates a folder with an agent file, a read-only home, and a folder for temporary files.
fn place() -> TempDir {
    let folder = TempDir::new().expect("a folder");
    fs::write(folder.path().join("agent.yaml"), AGENT_FILE).expect("a file");
    for name in ["home", "temporary"] {
        fs::create_dir(folder.path().join(name)).expect("a folder");
    }
    expose(&folder.path().join("temporary"), 0o777);
    folder
}

/// Runs a command that must succeed, and returns its stderr.
fn run(folder: &Path, home: (&str, &Path), words: &[&str]) -> String {
    let mut command = unprivileged(folder);
    expose(&folder.join("home"), 0o555);
    command.env_remove("WHARF_HOME").env("TMPDIR", folder.join("temporary")).env(home.0, home.1).args(words);
    let ended = command.stdin(Stdio::null()).output().expect("it runs");
    let said = String::from_utf8_lossy(&ended.stderr).into_owned();
    assert!(ended.status.success(), "{words:?}: {said}");
    said
}

#[test]
fn a_home_that_cannot_be_written_to_is_replaced_with_a_warning() {
    let folder = place();
    let home = folder.path().join("home");
    for home in [("HOME", home.as_path()), ("WHARF_HOME", &home), ("WHARF_HOME", &home.join("below"))] {
        let create = ["call", "todo:create_todo", "title=milk"];
        let said = run(folder.path(), home, &create);
        assert!(said.contains("warning: `") && said.contains("is not writable (Permission denied"), "{said}");
        assert!(said.contains("temporary/wharf-") && said.contains("help: set WHARF_HOME"), "{said}");
        run(folder.path(), home, &["todo"]);
        run(folder.path(), home, &["stdio"]);
    }
    let kept: Vec<_> = fs::read_dir(folder.path().join("temporary")).expect("a folder").flatten().collect();
    assert_eq!(kept.len(), 1, "all commands keep things in the same folder: {kept:?}");
    assert!(kept[0].path().join("wharf.db").exists());
    assert_eq!(super::exposed(&kept[0].path()), []);
}

#[test]
fn settings_in_a_home_that_cannot_be_written_to_are_read() {
    let folder = place();
    let home = folder.path().join("home");
    fs::write(home.join("wharf.toml"), "[unknown]\n").expect("a file");
    let mut command = unprivileged(folder.path());
    expose(&home, 0o555);
    command.env("WHARF_HOME", &home).env("TMPDIR", folder.path().join("temporary")).arg("tools");
    let ended = command.output().expect("it runs");
    assert_eq!(ended.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&ended.stderr).contains("wharf.toml"), "{ended:?}");
}

/// Commands without state print no warning.
#[test]
fn a_command_that_keeps_nothing_does_not_warn() {
    let folder = place();
    let home = folder.path().join("home");
    let said = run(folder.path(), ("WHARF_HOME", &home), &["check"]);
    assert!(!said.contains("warning"), "{said}");
    assert_eq!(fs::read_dir(folder.path().join("temporary")).expect("a folder").count(), 0);
}
