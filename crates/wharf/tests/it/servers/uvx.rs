//! Tests servers from PyPI, which use the newest protocol version.

use super::workspace::{Workspace, program};
use std::{path::Path, process::Command};

const CLOCK_AND_GIT: &str = "
tools:
  - {name: clock, description: The time, type: mcp, server: mcp-server-time, command: uvx}
  - name: git
    description: A repository
    type: mcp
    server: mcp-server-git
    command: uvx
    args: [mcp-server-git, --repository, ./repository]
";

#[tokio::test]
async fn time_and_git_servers_use_the_modern_era() {
    let workspace = Workspace::with(CLOCK_AND_GIT);
    let repository = workspace.make_folder("repository");
    commit(&repository, "the first of all commits");
    let repository = format!("repo_path={}", repository.display());
    let log = ["call", "git:git_log", &repository];
    let (tools, time, log, wrong) = tokio::join!(
        workspace.wharf("tools --json"),
        workspace.wharf("call clock:get_current_time timezone=Europe/Berlin"),
        workspace.wharf_with(&log),
        workspace.wharf("call clock:get_current_time timezone=Europe/Atlantis"),
    );
    for source in tools.json()["sources"].as_array().expect("a list") {
        assert_eq!((&source["state"], &source["era"]), (&"connected".into(), &"modern".into()), "{source:#}");
    }
    time.check(0, "\"timezone\": \"Europe/Berlin\"");
    log.check(0, "the first of all commits");
    wrong.check(1, "Atlantis");
    workspace.assert_nothing_left();
}

fn commit(repository: &Path, message: &str) {
    let author = ["-c", "user.name=Nobody", "-c", "user.email=nobody@example.com"];
    let first = ["commit", "--quiet", "--allow-empty", "--no-gpg-sign", "-m", message];
    for words in [&["init", "--quiet"][..], &[&author[..], &first].concat()] {
        let done = Command::new(program("git")).args(words).current_dir(repository).status();
        assert!(done.expect("git runs").success(), "git {words:?}");
    }
}
