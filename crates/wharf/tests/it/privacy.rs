//! Tests privacy: other users cannot read the state folder, and servers cannot read the environment of the program
//! that starts them.

#![expect(clippy::disallowed_methods, reason = "the program under test is found and started like any other")]

#[cfg(target_os = "linux")]
mod environment;
#[cfg(target_os = "linux")]
mod read_only;

use crate::serve::server::{Server, wharf};
use serde_json::json;
use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Stdio,
};
use tempfile::TempDir;

/// Returns everything in a folder, including itself, that other users can access.
fn exposed(folder: &Path) -> Vec<(PathBuf, String)> {
    let mode = fs::metadata(folder).expect("it is there").permissions().mode();
    let own = (mode & 0o077 != 0).then(|| (folder.to_owned(), format!("{mode:o}")));
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|it| it.path());
    // Excluded: servers need the file below `scratch`, and the operator writes wharf.toml.
    let entries = entries.filter(|it| !it.ends_with("scratch/package.json") && !it.ends_with("wharf.toml"));
    own.into_iter().chain(entries.flat_map(|it| exposed(&it))).collect()
}

#[track_caller]
fn expose(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
}

/// Builds a source with a secret, so that an encryption key is created.
fn source() -> serde_json::Value {
    let url = "http://127.0.0.1:9/mcp";
    json!({ "name": "far", "source_type": "mcp", "url": url, "mcp_server_url": url,
            "mcp_transport_type": "streamable_http", "mcp_env_vars": { "API_KEY": "hunter2" } })
}

#[test]
fn state_made_by_any_command_is_private() {
    let agent_file =
        "tools:\n  - {name: todo, description: d, type: mcp, server: 'builtin:todo'}\n".to_owned();
    for command in [&["tools"][..], &["todo"], &["call", "todo:list_todos"]] {
        let folder = TempDir::new().expect("a folder");
        fs::write(folder.path().join("agent.yaml"), &agent_file).expect("a file");
        let ended = wharf(&folder).args(command).stdin(Stdio::null()).output().expect("it runs");
        let said = String::from_utf8_lossy(&ended.stderr).into_owned();
        assert!(ended.status.success(), "{command:?}: {said}");
        let home = folder.path().join("home");
        assert!(home.is_dir(), "{command:?} keeps nothing");
        assert_eq!(exposed(&home), [], "{command:?}");
    }
}

#[test]
fn state_of_a_gateway_is_private_and_repaired() {
    let server = Server::start(&[]);
    let home = server.folder.path().join("home");
    let call = |server: &Server| {
        let body = json!({ "arguments": { "title": "milk" } });
        assert_eq!(server.ask("POST", "/api/v1/tools/todo:create_todo/call", Some(&body)).0, 200);
    };
    call(&server);
    let (status, added) = server.ask("POST", "/api/v1/sources", Some(&source()));
    assert!(status < 300, "{added}");
    for name in ["token", "secrets.key", "wharf.db", "wharf.db-wal", "wharf.db-shm"] {
        assert!(home.join(name).exists(), "no {name}");
    }
    assert_eq!(exposed(&home), []);

    // Simulates the files of an earlier version that was killed, with the database log still there.
    let mut server = server;
    server.child.kill().expect("it runs");
    let folder = server.into_folder();
    let home = folder.path().join("home");
    expose(&home, 0o755);
    for name in ["wharf.db", "wharf.db-wal", "wharf.db-shm"] {
        expose(&home.join(name), 0o644);
    }
    let server = Server::start_in(folder, &[]);
    call(&server);
    assert_eq!(exposed(&server.folder.path().join("home")), []);
}

#[test]
fn a_database_elsewhere_is_private_and_its_folder_is_left_alone() {
    let folder = TempDir::new().expect("a folder");
    expose(folder.path(), 0o755);
    let server = Server::start_in(folder, &["--database", "sqlite:named.db"]);
    let mode = |path: &Path| fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
    assert_eq!(mode(server.folder.path()), 0o755);
    let entries = fs::read_dir(server.folder.path()).expect("a folder").flatten();
    let made: Vec<PathBuf> =
        entries.map(|it| it.path()).filter(|it| it.to_string_lossy().contains("named.db")).collect();
    assert!(made.len() > 1, "{made:?}");
    assert!(made.iter().all(|it| mode(it) == 0o600), "{made:?}");
}

/// A state folder that also serves another purpose keeps its permissions.
#[test]
fn a_shared_folder_named_as_the_state_folder_is_left_alone() {
    let folder = TempDir::new().expect("a folder");
    expose(folder.path(), 0o755);
    let ended = wharf(&folder).env("WHARF_HOME", ".").arg("schema").output().expect("it runs");
    assert!(ended.status.success());
    let mode = fs::metadata(folder.path()).expect("a folder").permissions().mode() & 0o777;
    assert_eq!(mode, 0o755);
}
