//! A database that cannot be written ends a run before anything more is sent.

use super::{CANARY, TODO, agent_file, ask, serve, todos};
use crate::servers::workspace::program;
use scripted_model::{Reply, ScriptedModel, Wire};
use serde_json::json;
use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, OnceLock},
};
use tempfile::TempDir;

/// Makes the database refuse entries.
const REFUSE: &str = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).execute(\"CREATE TRIGGER refuse \
    BEFORE INSERT ON entries BEGIN SELECT RAISE(ABORT, 'disk full'); END\")";

/// Finds the database below a folder.
fn database(folder: &Path) -> Option<PathBuf> {
    fs::read_dir(folder).ok()?.flatten().map(|it| it.path()).find_map(|path| match path.is_dir() {
        true => database(&path),
        false => (path.file_name()? == "wharf.db").then_some(path),
    })
}

/// A model that wants a call. Before it answers, the database of the folder refuses entries.
fn model(folder: &Arc<OnceLock<PathBuf>>) -> ScriptedModel {
    let folder = folder.clone();
    ScriptedModel::with(move |_, _| {
        let database = database(folder.get().expect("a folder")).expect("a database");
        let refused = Command::new(program("python3")).args(["-c", REFUSE]).arg(database).status();
        assert!(refused.expect("python runs").success());
        Reply::calls(Wire::Chat, &[("c1", "todo__create_todo", r#"{"title":"eggs"}"#)])
    })
}

#[test]
fn a_run_that_cannot_be_written_makes_no_call() {
    let folder = Arc::default();
    let model = model(&folder);
    let server = serve(&agent_file(&model, TODO));
    folder.set(server.folder.path().to_owned()).expect("one folder");
    let (status, done) = ask(&server, "Buy eggs");
    assert_eq!((status, &done["error"]["error_type"]), (503, &json!("internal")), "{done}");
    assert_eq!((&done["status"], &done["tools_called"]), (&json!("failed"), &json!([])), "{done}");
    assert_eq!(todos(&server), Vec::<String>::new());
    assert_eq!(model.requests().len(), 1);
}

#[test]
fn a_command_whose_run_cannot_be_written_exits_with_70() {
    let folder = Arc::default();
    let model = model(&folder);
    let work = TempDir::new().expect("a folder");
    folder.set(work.path().to_owned()).expect("one folder");
    fs::write(work.path().join("agent.yaml"), agent_file(&model, TODO)).expect("an agent file");
    let wharf = Command::new(env!("CARGO_BIN_EXE_wharf"))
        .args(["run", "Buy eggs", "--save", "--yes"])
        .current_dir(work.path())
        .envs([("HOME", work.path()), ("WHARF_HOME", &work.path().join("state"))])
        .env("MODEL_KEY", CANARY)
        .output()
        .expect("wharf runs");
    let shown = String::from_utf8_lossy(&wharf.stderr);
    assert_eq!(wharf.status.code(), Some(70), "{shown}");
    assert!(shown.contains("the conversation could not be written"), "{shown}");
    assert!(!shown.contains('→'), "no call is made: {shown}");
}
