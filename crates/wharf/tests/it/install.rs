//! Tests downloads: npx, uvx and docker download a server in a separate step before it starts, with a separate
//! timeout. An interrupted download leaves no partial cache behind.
//!
//! Most launchers here are scripts that record their arguments and take as long as the test wants. One test uses
//! the real npm with a slow registry.

#![expect(
    clippy::disallowed_methods,
    reason = "the program under test is started and signalled like any other"
)]

use crate::{
    hints::{
        fake_servers::{FakeServers, json},
        npm::{address, tarball, with_registry},
    },
    serve::server::Server,
    servers::workspace::Workspace,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use rustix::process::{Pid, Signal, kill_process};
use sha2::{Digest, Sha512};
use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::{Duration, Instant},
};
use tempfile::TempDir;

const WHARF: &str = env!("CARGO_BIN_EXE_wharf");
const ODD_SERVER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/it/hints/odd.sh");

/// Timeout for each step on a busy machine.
const STEP_TIMEOUT: Duration = Duration::from_secs(60);

/// npx with a package `slow`, whose download takes longer than `connect_timeout`.
const SLOW_NPX: &str = "
tools:
  - {name: slow, description: d, type: mcp, server: slow, command: npx, args: [slow, --verbose], connect_timeout: 6}
";

/// Folder in npm's cache for `slow`: the beginning of the SHA-512 of that word.
const SLOW_FOLDER: &str = "npm/_npx/0f3bf168cd88eab7";

/// Creates a launcher script of this name. It records its arguments in the file `calls` of `here`, runs `download`
/// if the arguments match `is_download`, and is a server otherwise.
fn launcher(here: &Path, name: &str, is_download: &str, download: &str) -> PathBuf {
    let bin = here.join("launchers");
    fs::create_dir(&bin).expect("a folder");
    let script = format!(
        "#!/bin/sh\nhere='{}'\necho \"$*\" >> \"$here/calls\"\ncase \" $* \" in\n{is_download})\n{download}\n;;\n\
         *) exec /bin/sh '{ODD_SERVER}' ;;\nesac\n",
        here.display(),
    );
    fs::write(bin.join(name), script).expect("a file");
    fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755)).expect("it can be run");
    bin
}

fn workspace(agent_file: &str, name: &str, is_download: &str, download: &str) -> Workspace {
    let workspace = Workspace::with(agent_file);
    let bin = launcher(&workspace.path(""), name, is_download, download);
    let cache = workspace.path("npm").display().to_string();
    workspace.first_on_path([bin]).set("NPM_CONFIG_CACHE", &cache)
}

/// Shell pattern for a call as `npx -y --package=… -c true`.
const NPX_DOWNLOADS: &str = "*' -c true '*";

fn npx(agent_file: &str, download: &str) -> Workspace {
    workspace(agent_file, "npx", NPX_DOWNLOADS, download)
}

/// Returns the recorded arguments of the launcher, in order.
fn calls(workspace: &Workspace) -> Vec<String> {
    let calls = fs::read_to_string(workspace.path("calls")).unwrap_or_default();
    calls.lines().map(str::to_owned).collect()
}

const DOWNLOAD: &str = "-y --package=slow -c true";
const SERVER: &str = "-y slow --verbose";

/// npm's actions in short: unpacks the package, and writes `package.json` last.
const UNPACK: &str = "mkdir -p \"$here/npm/_npx/0f3bf168cd88eab7/node_modules/slow\"";
const FINISH: &str = "echo '{}' > \"$here/npm/_npx/0f3bf168cd88eab7/package.json\"";

#[tokio::test]
async fn a_download_longer_than_connect_timeout_succeeds() {
    let workspace = npx(SLOW_NPX, &format!("{UNPACK}; sleep 7; {FINISH}"));
    let said = workspace.wharf("doctor --json").await;
    said.check(0, "");
    assert_eq!(said.json()["sources"][0]["tools"], 5);
    // The download must not get the server's own arguments.
    assert_eq!(calls(&workspace)[0], DOWNLOAD);
    assert!(calls(&workspace)[1..].iter().all(|it| it == SERVER), "{:?}", calls(&workspace));

    // The next start finds the package in npm's cache, even with another state folder.
    fs::remove_dir_all(workspace.path("state")).expect("it is ours");
    fs::remove_file(workspace.path("calls")).expect("a file");
    workspace.wharf("doctor").await.check(0, "ok    slow");
    assert!(calls(&workspace).iter().all(|it| it == SERVER), "{:?}", calls(&workspace));
    workspace.assert_nothing_left();
}

#[tokio::test]
async fn two_sources_of_one_package_download_once() {
    let entry = "description: d, type: mcp, server: slow, command: npx, args: [slow, --verbose]";
    let workspace = npx(&format!("tools:\n  - {{name: a, {entry}}}\n  - {{name: b, {entry}}}\n"), "sleep 1");
    workspace.wharf("doctor").await.check(0, "ok    b");
    let downloads = calls(&workspace).iter().filter(|it| *it == DOWNLOAD).count();
    assert_eq!(downloads, 1, "{:?}", calls(&workspace));
}

#[tokio::test]
async fn four_packages_are_downloaded_at_once_and_the_others_wait() {
    let entry = |number: usize| {
        format!("  - {{name: s{number}, description: d, type: mcp, server: p{number}, command: npx}}\n")
    };
    let agent_file = format!("tools:\n{}", (0..10).map(entry).collect::<String>());
    let workspace =
        npx(&agent_file, "echo begun >> \"$here/downloads\"; sleep 1; echo ended >> \"$here/downloads\"");
    workspace.wharf("doctor").await.check(0, "ok    s9");
    let downloads = fs::read_to_string(workspace.path("downloads")).expect("downloads");
    let running = downloads.lines().scan(0, |running, line| {
        *running += if line == "begun" { 1 } else { -1 };
        Some(*running)
    });
    assert_eq!(downloads.lines().count(), 20, "{downloads}");
    assert!(running.max() <= Some(4), "{downloads}");
}

#[tokio::test]
async fn download_timeout_leaves_no_partial_folder() {
    let agent_file = SLOW_NPX.replace("connect_timeout: 6", "install_timeout: 2");
    let workspace = npx(&agent_file, &format!("{UNPACK}; echo npm http fetch slow >&2; sleep 985"));
    let other = workspace.make_folder("npm/_npx/other/node_modules");
    let said = workspace.wharf("doctor --json").await;
    said.check(69, "");
    let error = &said.json()["sources"][0]["error"];
    assert_eq!(error["type"], "MCPTimeoutError");
    assert_eq!(error["stderr"], "npm http fetch slow");
    let (message, hint) = (error["message"].as_str().unwrap(), error["hint"].as_str().unwrap());
    assert!(message.ends_with("`slow` was not downloaded within 2 s"), "{message}");
    assert!(hint.contains("`install_timeout`"), "{hint}");
    assert!(hint.contains(&workspace.path(SLOW_FOLDER).display().to_string()), "{hint}");
    assert!(!workspace.path(SLOW_FOLDER).exists() && other.exists());
    assert_eq!(calls(&workspace), [DOWNLOAD], "the server was not started");
    workspace.assert_nothing_left();
}

#[tokio::test]
async fn interrupt_leaves_no_partial_folder() {
    for signal in [Signal::INT, Signal::KILL] {
        let workspace = npx(SLOW_NPX, &format!("{UNPACK}; sleep 985"));
        let mut wharf = Command::new(WHARF)
            .arg("tools")
            .current_dir(workspace.path(""))
            .env_clear()
            .env("PATH", format!("{}:/usr/bin:/bin", workspace.path("launchers").display()))
            .env("WHARF_HOME", workspace.path("state"))
            .env("NPM_CONFIG_CACHE", workspace.path("npm"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("wharf runs");
        wait_until("the package is being unpacked", || {
            workspace.path(SLOW_FOLDER).join("node_modules").exists()
        });
        kill_process(Pid::from_child(&wharf), signal).expect("it runs");
        wharf.wait().expect("it ends");
        wait_until("the folder is removed", || !workspace.path(SLOW_FOLDER).exists());
        assert_eq!(calls(&workspace), [DOWNLOAD]);
    }
}

#[test]
fn a_gateway_shows_what_it_downloads() {
    let folder = TempDir::new().expect("a folder");
    let here = folder.path().to_owned();
    fs::write(here.join("agent.yaml"), SLOW_NPX).expect("a file");
    let wait = "until [ -e \"$here/go\" ]; do sleep 0.1; done";
    let bin = launcher(&here, "npx", NPX_DOWNLOADS, wait);
    let path = format!("{}:/usr/bin:/bin", bin.display());
    let cache = here.join("npm").display().to_string();
    let server = Server::start_with(folder, &["-v"], &[("PATH", &path), ("NPM_CONFIG_CACHE", &cache)]);
    let shown = |path: &str| server.ask("GET", path, None).1["items"][0].clone();
    for path in ["/api/v1/sources", "/api/v1/connections"] {
        wait_until("the download is shown", || shown(path)["downloading"] == "slow");
        assert_eq!(shown(path)["connection_state"], "connecting");
    }
    fs::write(here.join("go"), "").expect("a file");
    wait_until("the server is connected", || shown("/api/v1/sources")["connection_state"] == "connected");
    assert!(shown("/api/v1/sources").get("downloading").is_none());
    let log = server.log_with("downloaded `slow` in");
    assert!(log.contains("downloading `slow` with npx"), "{log}");
}

fn wait_until(what: &str, mut happened: impl FnMut() -> bool) {
    let deadline = Instant::now() + STEP_TIMEOUT;
    while !happened() {
        assert!(Instant::now() < deadline, "{what}: not within {STEP_TIMEOUT:?}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[tokio::test]
async fn partial_folder_of_a_killed_host_is_reinstalled() {
    let workspace = npx(
        SLOW_NPX,
        &format!("[ ! -e \"$here/{SLOW_FOLDER}/node_modules/old\" ] || exit 9; {UNPACK}; {FINISH}"),
    );
    let folder: PathBuf = workspace.make_folder(SLOW_FOLDER);
    fs::create_dir_all(folder.join("node_modules/old")).expect("a folder");
    fs::write(folder.join("wharf-install.lock"), "installing\n").expect("a file");
    workspace.wharf("doctor").await.check(0, "ok    slow");
    assert_eq!(calls(&workspace)[0], DOWNLOAD);
    assert!(folder.join("package.json").exists() && !folder.join("wharf-install.lock").exists());
}

#[tokio::test]
async fn failed_download_is_explained_and_starts_nothing() {
    let workspace = npx(SLOW_NPX, "echo npm error code E404 >&2; exit 1");
    let said = workspace.wharf("doctor").await;
    said.check(69, "could not download `slow`: npx ended (exit code 1)");
    said.check(69, "| npm error code E404");
    said.check(69, "help: npm does not know this package");
    assert_eq!(calls(&workspace), [DOWNLOAD]);
}

#[tokio::test]
async fn uvx_downloads_without_running_the_tool() {
    let entry = "name: clock, description: d, type: mcp, server: clock, command: uvx, connect_timeout: 6";
    let agent_file = format!("tools:\n  - {{{entry}, args: [--with, tzdata, clock@1.2, --local]}}\n");
    let workspace = workspace(&agent_file, "uvx", "*' -c pass '*", "sleep 7");
    workspace.wharf("doctor").await.check(0, "ok    clock");
    assert_eq!(calls(&workspace)[0], "--with tzdata --from clock@1.2 python -I -S -c pass");
    assert!(
        calls(&workspace)[1..].iter().all(|it| it == "--with tzdata clock@1.2 --local"),
        "{:?}",
        calls(&workspace)
    );
}

#[tokio::test]
async fn docker_pulls_an_image_that_is_absent_and_asks_once() {
    let entry = |more: &str| {
        format!(
            "tools:\n  - {{name: box, description: d, type: mcp, server: box, command: docker, args: [run, {more} box:1]}}\n"
        )
    };
    let script = "[ \"$1\" = pull ] && touch \"$here/pulled\"; [ -e \"$here/pulled\" ]";
    let docker = |more: &str| workspace(&entry(more), "docker", "' image inspect '*|' pull '*", script);
    let there = docker("--platform, linux/arm64,");
    there.wharf("doctor").await.check(0, "ok    box");
    assert_eq!(calls(&there)[..2], ["image inspect box:1", "pull --platform linux/arm64 box:1"]);
    assert!(calls(&there)[2].starts_with("run --name "), "{:?}", calls(&there));
    // Later starts do not check for the image again.
    fs::remove_file(there.path("calls")).expect("a file");
    there.wharf("doctor").await.check(0, "ok    box");
    assert!(
        calls(&there).iter().all(|it| it.starts_with("run ") || it.starts_with("rm ")),
        "{:?}",
        calls(&there)
    );

    let never = docker("--pull, never,");
    never.wharf("doctor").await.check(0, "ok    box");
    assert!(calls(&never)[0].starts_with("run "), "{:?}", calls(&never));
}

/// A server in one file, packed as an npm package.
const TINY_SERVER: &str = r#"#!/usr/bin/env node
const answer = (id, rest) => console.log(JSON.stringify({ jsonrpc: "2.0", id, ...rest }))
require("readline").createInterface({ input: process.stdin }).on("line", line => {
  const { id, method } = JSON.parse(line)
  if (method === "initialize") {
    answer(id, { result: { protocolVersion: "2025-11-25", capabilities: { tools: {} }, serverInfo: { name: "tiny", version: "1" } } })
  } else if (method === "tools/list") {
    answer(id, { result: { tools: [{ name: "wave", inputSchema: { type: "object" } }] } })
  } else if (id !== undefined) {
    answer(id, { error: { code: -32601, message: "no" } })
  }
})
"#;

/// The real npm with an empty cache: fetching the package takes longer than the connect timeout.
#[tokio::test]
async fn npm_installs_into_an_empty_cache_from_a_slow_registry() {
    let mut far = FakeServers::default();
    let manifest = r#"{"name":"tiny","version":"1.0.0","bin":"tiny.js"}"#;
    let packed = tarball(manifest, Some(("tiny.js", TINY_SERVER)));
    let integrity = integrity(&packed);
    let shelf = far.respond_after(Duration::from_secs(26), vec![("/tiny.tgz".to_owned(), packed)]).await;
    let about = format!(
        r#"{{"name":"tiny","dist-tags":{{"latest":"1.0.0"}},"versions":{{"1.0.0":{{"name":"tiny","version":"1.0.0","bin":{{"tiny":"tiny.js"}},"dist":{{"integrity":"{integrity}","tarball":"{}tiny.tgz"}}}}}}}}"#,
        address(shelf)
    );
    let registry = address(far.respond_with(vec![("/tiny".to_owned(), json(&about))]).await);
    let entry = "name: tiny, description: d, type: mcp, server: tiny, command: npx, connect_timeout: 25";
    let workspace = with_registry(&registry, Workspace::with(&format!("tools:\n  - {{{entry}}}\n")));
    let said = workspace.wharf("doctor --json").await;
    said.check(0, "");
    assert_eq!((&said.json()["ok"], &said.json()["sources"][0]["tools"]), (&true.into(), &1.into()));
    let installed: Vec<PathBuf> = fs::read_dir(workspace.path("npm/_npx"))
        .expect("a folder")
        .map(|it| it.expect("an entry").path())
        .collect();
    assert_eq!(installed.len(), 1, "the server is run from where it was installed: {installed:?}");
    assert!(is_installed(&installed[0]), "{installed:?}");
    workspace.assert_nothing_left();
}

/// Returns the hash of a packed package. Without a hash in the registry, npm fetches the package on every run.
fn integrity(response: &[u8]) -> String {
    let head = response.windows(4).position(|it| it == b"\r\n\r\n").expect("an empty line");
    format!("sha512-{}", STANDARD.encode(Sha512::digest(&response[head + 4..])))
}

fn is_installed(folder: &Path) -> bool {
    folder.join("package.json").is_file() && folder.join("node_modules/tiny/tiny.js").is_file()
}
