//! A secret of the configuration reaches neither a client of `/api/v1/chat`, nor the model, the journal or the log.

use super::{CANARY, TODO, agent_file, events, send};
use crate::{serve::server::Server, servers::workspace::program};
use scripted_model::{Finish, Reply, ScriptedModel, Step, Wire, text};
use serde_json::json;
use std::{fs, path::Path};
use tempfile::TempDir;

/// A server that repeats its token in results and errors.
const SERVER: &str = include_str!("../cli/run/web.py");

/// The token of the server.
const TOKEN: &str = "canary-token-51c2";

fn serve(model: &ScriptedModel) -> Server {
    let python = program("python3").canonicalize().expect("a path").display().to_string();
    let folder = TempDir::new().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    let web = format!(
        "  - name: web\n    description: Pages\n    type: mcp\n    server: web\n    command: {python}\n    \
         args: [{}]\n    env: {{PAGE: {}, LOG: {}, TOKEN: '${{TOKEN}}'}}\n",
        path("web.py"),
        path("page"),
        path("calls"),
    );
    let rules = "approval: {default: allow}\n";
    for (name, text) in [
        ("agent.yaml", agent_file(model, rules) + TODO + &web),
        ("wharf.toml", format!("[grants]\ncommands = [\"{python}\"]\n")),
        ("web.py", SERVER.to_owned()),
        ("page", String::new()),
    ] {
        fs::write(path(name), text).expect("a file");
    }
    let settings = path("wharf.toml");
    Server::start_with(folder, &["--settings", &settings], &[("MODEL_KEY", CANARY), ("TOKEN", TOKEN)])
}

#[test]
fn a_secret_reaches_no_client_no_model_and_no_file() {
    let echo = [text("Your key is sk-can"), text("ary-7f3e9a"), text(", and canary-token-51c2.")];
    let echo: Vec<Step> = echo.into_iter().chain([Step::End(Finish::Stop), Step::Usage]).collect();
    let arguments = json!({ "like": CANARY }).to_string();
    let model = ScriptedModel::start(vec![
        Reply::calls(Wire::Chat, &[("c1", "web__leak", "{}"), ("c2", "web__fail", "{}")]),
        Reply::calls(Wire::Chat, &[("c3", "web__leak", &arguments)]),
        Reply::answer(Wire::Chat, &echo).in_chunks(3),
    ]);
    let mut server = serve(&model);
    let response = send(&server, &json!({ "message": "Hi" }));
    check(&response, "the stream");
    let events = events(&response);
    let deltas: String = events.iter().filter_map(|(.., data)| data["delta"].as_str()).collect();
    assert_eq!(deltas, "Your key is ***, and ***.");
    let (_, _, done) = events.last().expect("the end");
    assert_eq!((&done["final_output"], &done["turns"]), (&json!(deltas), &json!(3)), "{response}");
    // The third request contains what the model itself said.
    for request in model.requests().iter().take(2) {
        check(&request.body.to_string(), "a request");
    }
    let conversation = done["conversation_id"].as_str().expect("an id");
    for path in
        [format!("/api/v1/calls?thread_id={conversation}"), format!("/api/v1/conversations/{conversation}")]
    {
        check(&server.ask("GET", &path, None).1.to_string(), &path);
    }
    check(&server.log(), "the log");
    server.child.kill().expect("it runs");
    let folder = server.into_folder();
    check_files(&folder.path().join("home"));
}

#[track_caller]
fn check(text: &str, what: &str) {
    for secret in [CANARY, TOKEN] {
        assert!(!text.contains(secret), "{what} contains {secret}: {text}");
    }
}

/// Checks every file below a folder.
fn check_files(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        match path.is_dir() {
            true => check_files(&path),
            false => {
                let bytes = fs::read(&path).unwrap_or_default();
                check(&String::from_utf8_lossy(&bytes), &path.display().to_string());
            }
        }
    }
}
