//! Errors of uv when it cannot run a tool.

use super::{
    Case, check,
    fake_servers::{FakeServers, response},
    workspace,
};
use crate::servers::{background::free_port, workspace::Workspace};

/// Cases with a test server as the package index.
pub(super) const CASES: &[Case] = &[
    Case { row: "uv-unknown-package", cause: "nothing-here", entry: "command: uvx, args: [nothing-here]" },
    Case {
        row: "slow-download",
        cause: "`never` was not downloaded within 2 s",
        entry: "command: uvx, args: [never], install_timeout: 2",
    },
    Case { row: "uv-no-solution", cause: "harbour==99", entry: "command: uvx, args: [harbour==99]" },
];

/// Cases with a package that needs a future Python version.
pub(super) const NEWER: &[Case] = &[Case {
    row: "uv-newer-python",
    cause: "does not satisfy Python>=3.99",
    entry: "command: uvx, args: [lighthouse]",
}];

/// Cases in which everything comes from the cache.
pub(super) const CACHED: &[Case] = &[
    Case {
        row: "uv-no-tool",
        cause: "is not provided by package",
        entry: "command: uvx, args: [--from, mcp-server-time, nothing]",
    },
    Case {
        row: "uv-no-python",
        cause: "No interpreter found for Python 3.99",
        entry: "command: uvx, args: [--python, '3.99', mcp-server-time]",
    },
    Case {
        row: "uv-unreachable",
        cause: "network was disabled",
        entry: "command: uvx, args: [nothing-here]",
    },
];

/// Cases with an unreachable package index.
pub(super) const UNREACHABLE: &[Case] =
    &[Case { row: "uv-unreachable", cause: "Failed to fetch", entry: "command: uvx, args: [nothing-here]" }];

const NEWER_INDEX: &[u8] = b"<!doctype html><a href='lighthouse-1.0-py3-none-any.whl' data-requires-python='&gt;=3.99'>lighthouse-1.0-py3-none-any.whl</a>";

const INDEX: &[u8] =
    b"<!doctype html><a href='harbour-1.0-py3-none-any.whl'>harbour-1.0-py3-none-any.whl</a>";

#[tokio::test]
async fn uv_errors_have_hints() {
    let mut far = FakeServers::default();
    let index = response("200 OK", "Content-Type: text/html\r\n", INDEX);
    let port = far.respond_with(vec![
        ("/simple/harbour/".to_owned(), index),
        ("/simple/never/".to_owned(), Vec::new()),
    ]);
    let port = port.await;
    check(&with_index(port, workspace(CASES, &[], &[])), CASES).await;
}

#[tokio::test]
async fn newer_python_hint_names_the_version() {
    let mut far = FakeServers::default();
    let index = response("200 OK", "Content-Type: text/html\r\n", NEWER_INDEX);
    let port = far.respond_with(vec![("/simple/lighthouse/".to_owned(), index)]).await;
    let report = check(&with_index(port, workspace(NEWER, &[], &[])), NEWER).await;
    let hint = &report["sources"][0]["error"]["hint"];
    assert_eq!(
        hint,
        "the package needs Python 3.99 or newer; write `args: [--python, \"3.99\", lighthouse]` in the entry `case-0-uv-newer-python`: uv finds that Python, or downloads it"
    );
}

#[tokio::test]
async fn cached_package_errors_have_hints() {
    check(&workspace(CACHED, &[], &[]), CACHED).await;
}

#[tokio::test]
async fn unreachable_index_has_a_hint() {
    check(&with_index(free_port(), workspace(UNREACHABLE, &[], &[])), UNREACHABLE).await;
}

fn with_index(port: u16, workspace: Workspace) -> Workspace {
    let cache = workspace.path("uv").display().to_string();
    workspace
        .set("UV_DEFAULT_INDEX", &format!("http://127.0.0.1:{port}/simple"))
        .set("UV_CACHE_DIR", &cache)
        .set("UV_OFFLINE", "0")
        .set("UV_HTTP_RETRIES", "0")
}
