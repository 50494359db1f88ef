//! Tests popular servers from npm and PyPI, imported from one Claude Desktop file: all of them are checked and
//! explained, and those that need no external service are started.
//!
//! The facts about them are data (`known`). `docs/servers.md` is generated from that data and the imported file;
//! `UPDATE=1` rewrites it.

mod known;
mod page;

use super::workspace::{Workspace, tool};
use known::{KNOWN, KnownServer, TestCoverage};
use serde_json::{Value, json};
use std::{env, fs, path::Path, process::Command};

const CLAUDE: &str = include_str!("fixtures/claude_desktop_config.json");

/// Home folder in the file, which a test replaces by its own.
const HOME: &str = "/home/alice";

/// Text that occurs in every secret of the file.
const PLACEHOLDER: &str = "placeholder";

/// Number of concurrent servers: keeps two processors busy and fits into the memory of a small machine.
const CONCURRENT_SERVERS: usize = 4;

const KUBECONFIG: &str = "apiVersion: v1
kind: Config
clusters: [{name: nowhere, cluster: {server: 'https://127.0.0.1:1'}}]
users: [{name: alice, user: {token: x}}]
contexts: [{name: nowhere, context: {cluster: nowhere, user: alice}}]
current-context: nowhere
";

#[tokio::test]
async fn client_file_with_all_servers_is_imported_checked_and_explained() {
    let workspace = Workspace::with("tools: []");
    let client_file = client_file(KNOWN, HOME);
    assert_eq!(client_file["mcpServers"], claude()["mcpServers"], "each server of the file is in the table");
    import(&workspace, &client_file).await;
    let checked = workspace.wharf("check --strict").await;
    checked.check(0, &format!("{} servers", KNOWN.len()));
    assert!(!checked.stderr.contains("warning"), "{}", checked.stderr);
    let explained = workspace.wharf("explain --json").await;
    explained.check(0, "");
    assert!(!explained.stdout.contains(PLACEHOLDER), "{}", explained.stdout);
    let sources = explained.json()["sources"].clone();
    for (source, known) in sources.as_array().expect("a list").iter().zip(KNOWN) {
        assert_eq!(source["name"], known.name);
    }
    let agent_file = fs::read_to_string(workspace.path("agent.yaml")).expect("the agent file");
    assert!(!agent_file.contains(PLACEHOLDER), "{agent_file}");
    let env_file = |name: &str| fs::read_to_string(workspace.path(name)).expect("an env file");
    check_page(&page::page(&agent_file, env_file, &sources));
}

#[tokio::test]
async fn self_contained_servers_list_their_tools() {
    let started: Vec<&KnownServer> = KNOWN.iter().filter(|it| it.tools().is_some()).collect();
    assert!(started.len() >= 25, "only {} servers are started", started.len());
    let workspace = home();
    let mut wrong = Vec::new();
    for some in started.chunks(CONCURRENT_SERVERS) {
        import(&workspace, &client_file(some.iter().copied(), &workspace.path("alice").to_string_lossy()))
            .await;
        let report = workspace.wharf("tools --json").await.json();
        let sources = report["sources"].as_array().expect("a list");
        assert_eq!(sources.len(), some.len(), "{report:#}");
        let differ = |(source, known): (&Value, &&KnownServer)| {
            let expected = (json!(known.name), json!("connected"), json!(known.tools()));
            let found = (source["name"].clone(), source["state"].clone(), source["tools"].clone());
            (found != expected).then(|| format!("{expected:?} was expected, not {source:#}"))
        };
        wrong.extend(sources.iter().zip(some).filter_map(differ));
    }
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), started.len(), wrong.join("\n"));
    workspace.assert_nothing_left();
}

/// Sets up a folder with the files that the servers expect in their owner's home, and with the caches.
pub(crate) fn home() -> Workspace {
    let workspace = Workspace::with("tools: []");
    workspace.make_folder("alice/Documents");
    workspace.make_folder("alice/.kube");
    fs::write(workspace.path("alice/.kube/config"), KUBECONFIG).expect("a file");
    let repository = workspace.make_folder("alice/project");
    let made =
        Command::new(super::workspace::program("git")).args(["init", "--quiet"]).arg(repository).status();
    assert!(made.expect("git runs").success());
    let alice = workspace.path("alice").display().to_string();
    cached(workspace).set("HOME", &alice)
}

/// Makes npx and uvx take the servers from the provisioned folders.
pub(crate) fn cached(workspace: Workspace) -> Workspace {
    let path = |name: &str| tool(name).display().to_string();
    workspace
        .set("NPM_CONFIG_CACHE", &path("npx-servers"))
        .set("UV_CACHE_DIR", &path("uvx-servers"))
        .set("UV_PYTHON", &path("python/bin/python"))
}

fn claude() -> Value {
    serde_json::from_str(CLAUDE).expect("the client's file is JSON")
}

/// Returns the client's file with these servers only, and with this home folder.
fn client_file<'a>(servers: impl IntoIterator<Item = &'a KnownServer>, home: &str) -> Value {
    let all = &claude()["mcpServers"];
    let entry = |it: &KnownServer| (it.name.to_owned(), all[it.name].clone());
    let some: serde_json::Map<String, Value> = servers.into_iter().map(entry).collect();
    let text = json!({ "mcpServers": some }).to_string().replace(HOME, home);
    serde_json::from_str(&text).expect("JSON")
}

async fn import(workspace: &Workspace, client_file: &Value) {
    fs::remove_file(workspace.path("agent.yaml")).expect("the agent file");
    for entry in fs::read_dir(workspace.path("")).expect("a folder").flatten() {
        if entry.file_name().to_string_lossy().starts_with(".env.") {
            fs::remove_file(entry.path()).expect("an env file");
        }
    }
    let file = workspace.path("claude_desktop_config.json");
    fs::write(&file, client_file.to_string()).expect("the client's file");
    workspace.wharf_with(&["init", "--from", &file.to_string_lossy()]).await.check(0, "");
}

/// Compares the text with the page, or writes the page if `UPDATE=1` is set.
#[expect(clippy::disallowed_methods, reason = "the UPDATE variable decides whether to write")]
fn check_page(text: &str) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/servers.md");
    if env::var_os("UPDATE").is_some() {
        fs::write(&file, text).expect("the page can be written");
    }
    let page = fs::read_to_string(&file).unwrap_or_default();
    assert!(page == text, "docs/servers.md is out of date; `UPDATE=1` writes it anew");
}

impl KnownServer {
    fn tools(&self) -> Option<usize> {
        match self.coverage {
            TestCoverage::Started { tools } => Some(tools),
            TestCoverage::Checked { .. } => None,
        }
    }
}
