//! Tests popular servers from npm and PyPI, imported from one Claude Desktop file: all of them are checked and
//! explained, and those that need no external service are started.
//!
//! The facts about them are data (`known`). `docs/servers.md` is generated from that data and the imported file;
//! `UPDATE=1` rewrites it.

mod known;
mod page;

use super::place::{Place, tool};
use known::{KNOWN, Known, Tried};
use serde_json::{Value, json};
use std::{env, fs, path::Path, process::Command};

const CLAUDE: &str = include_str!("fixtures/claude_desktop_config.json");

/// Home folder in the file, which a test replaces by its own.
const HOME: &str = "/home/alice";

/// Text that occurs in every secret of the file.
const PLACEHOLDER: &str = "placeholder";

/// Number of concurrent servers: keeps two processors busy and fits into the memory of a small machine.
const AT_ONCE: usize = 4;

const KUBECONFIG: &str = "apiVersion: v1
kind: Config
clusters: [{name: nowhere, cluster: {server: 'https://127.0.0.1:1'}}]
users: [{name: alice, user: {token: x}}]
contexts: [{name: nowhere, context: {cluster: nowhere, user: alice}}]
current-context: nowhere
";

#[tokio::test]
async fn a_client_file_with_all_of_them_is_imported_checked_and_explained() {
    let place = Place::with("tools: []");
    let client_file = client_file(KNOWN, HOME);
    assert_eq!(client_file["mcpServers"], claude()["mcpServers"], "each server of the file is in the table");
    import(&place, &client_file).await;
    let checked = place.wharf("check --strict").await;
    checked.check(0, &format!("{} servers", KNOWN.len()));
    assert!(!checked.stderr.contains("warning"), "{}", checked.stderr);
    let explained = place.wharf("explain --json").await;
    explained.check(0, "");
    assert!(!explained.stdout.contains(PLACEHOLDER), "{}", explained.stdout);
    let sources = explained.json()["sources"].clone();
    for (source, known) in sources.as_array().expect("a list").iter().zip(KNOWN) {
        assert_eq!(source["name"], known.name);
    }
    let agent_file = fs::read_to_string(place.path("agent.yaml")).expect("the agent file");
    assert!(!agent_file.contains(PLACEHOLDER), "{agent_file}");
    let env_file = |name: &str| fs::read_to_string(place.path(name)).expect("an env file");
    check_page(&page::page(&agent_file, env_file, &sources));
}

#[tokio::test]
async fn those_that_need_nobody_else_list_their_tools() {
    let started: Vec<&Known> = KNOWN.iter().filter(|it| it.tools().is_some()).collect();
    assert!(started.len() >= 25, "only {} servers are started", started.len());
    let place = home();
    let mut wrong = Vec::new();
    for some in started.chunks(AT_ONCE) {
        import(&place, &client_file(some.iter().copied(), &place.path("alice").to_string_lossy())).await;
        let report = place.wharf("tools --json").await.json();
        let sources = report["sources"].as_array().expect("a list");
        assert_eq!(sources.len(), some.len(), "{report:#}");
        let differ = |(source, known): (&Value, &&Known)| {
            let expected = (json!(known.name), json!("connected"), json!(known.tools()));
            let found = (source["name"].clone(), source["state"].clone(), source["tools"].clone());
            (found != expected).then(|| format!("{expected:?} was expected, not {source:#}"))
        };
        wrong.extend(sources.iter().zip(some).filter_map(differ));
    }
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), started.len(), wrong.join("\n"));
    place.is_deserted();
}

/// Sets up a folder with the files that the servers expect in their owner's home, and with the caches.
pub(crate) fn home() -> Place {
    let place = Place::with("tools: []");
    place.make_folder("alice/Documents");
    place.make_folder("alice/.kube");
    fs::write(place.path("alice/.kube/config"), KUBECONFIG).expect("a file");
    let repository = place.make_folder("alice/project");
    let made = Command::new(super::place::program("git")).args(["init", "--quiet"]).arg(repository).status();
    assert!(made.expect("git runs").success());
    let alice = place.path("alice").display().to_string();
    cached(place).set("HOME", &alice)
}

/// Makes npx and uvx take the servers from the provisioned folders.
pub(crate) fn cached(place: Place) -> Place {
    let path = |name: &str| tool(name).display().to_string();
    place
        .set("NPM_CONFIG_CACHE", &path("npx-servers"))
        .set("UV_CACHE_DIR", &path("uvx-servers"))
        .set("UV_PYTHON", &path("python/bin/python"))
}

fn claude() -> Value {
    serde_json::from_str(CLAUDE).expect("the client's file is JSON")
}

/// Returns the client's file with these servers only, and with this home folder.
fn client_file<'a>(servers: impl IntoIterator<Item = &'a Known>, home: &str) -> Value {
    let all = &claude()["mcpServers"];
    let entry = |it: &Known| (it.name.to_owned(), all[it.name].clone());
    let some: serde_json::Map<String, Value> = servers.into_iter().map(entry).collect();
    let text = json!({ "mcpServers": some }).to_string().replace(HOME, home);
    serde_json::from_str(&text).expect("JSON")
}

async fn import(place: &Place, client_file: &Value) {
    fs::remove_file(place.path("agent.yaml")).expect("the agent file");
    for entry in fs::read_dir(place.path("")).expect("a folder").flatten() {
        if entry.file_name().to_string_lossy().starts_with(".env.") {
            fs::remove_file(entry.path()).expect("an env file");
        }
    }
    let file = place.path("claude_desktop_config.json");
    fs::write(&file, client_file.to_string()).expect("the client's file");
    place.wharf_with(&["init", "--from", &file.to_string_lossy()]).await.check(0, "");
}

/// Compares the text with the page, or writes the page if `UPDATE=1` is set.
#[expect(clippy::disallowed_methods, reason = "whoever runs the tests says whether to write")]
fn check_page(text: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/servers.md");
    if env::var_os("UPDATE").is_some() {
        fs::write(&file, text).expect("the page can be written");
    }
    let page = fs::read_to_string(&file).unwrap_or_default();
    assert!(page == text, "docs/servers.md is out of date; `UPDATE=1` writes it anew");
}

impl Known {
    fn tools(&self) -> Option<usize> {
        match self.tried {
            Tried::Started { tools } => Some(tools),
            Tried::Checked { .. } => None,
        }
    }
}
