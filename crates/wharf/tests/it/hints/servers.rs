//! Errors of popular servers that lack something. The servers are real, from the folders that
//! `cargo xtask provision` fills.

use super::{Case, check, workspace};
use crate::servers::{popular::cached, workspace::Workspace};

/// A variable that is set for wharf and that a server needs.
const SET_VARIABLE: (&str, &str) = ("BRAVE_API_KEY", "not-a-key");

pub(super) const CASES: &[Case] = &[
    Case {
        row: "variable-not-passed-on",
        cause: "BRAVE_API_KEY environment variable is required",
        entry: "command: npx, args: ['@modelcontextprotocol/server-brave-search@0.6.2']",
    },
    Case {
        row: "variable-missing",
        cause: "Please set SLACK_BOT_TOKEN and SLACK_TEAM_ID",
        entry: "command: npx, args: ['@modelcontextprotocol/server-slack@2025.4.25']",
    },
    Case {
        row: "variable-missing",
        cause: "No access token was provided",
        entry: "command: npx, args: ['@sentry/mcp-server@0.39.0']",
    },
    Case {
        row: "variable-missing",
        cause: "Either FIGMA_API_KEY or FIGMA_OAUTH_TOKEN is required",
        entry: "command: npx, args: [figma-developer-mcp@0.13.2, --stdio], env: {FRAMELINK_TELEMETRY: 'off'}",
    },
    Case {
        row: "variable-missing",
        cause: "ValueError: OBSIDIAN_API_KEY environment variable required",
        entry: "command: uvx, args: [mcp-obsidian==0.2.3]",
    },
    Case {
        row: "variable-missing",
        cause: "ValueError: ELEVENLABS_API_KEY environment variable is required",
        entry: "command: uvx, args: [elevenlabs-mcp==0.12.2]",
    },
    Case {
        row: "argument-missing",
        cause: "Please provide a database URL as a command-line argument",
        entry: "command: npx, args: ['@modelcontextprotocol/server-postgres@0.6.2']",
    },
    Case {
        row: "no-kubeconfig",
        cause: "no contexts are defined in kubeconfig",
        entry: "command: npx, args: [kubernetes-mcp-server@0.0.67]",
    },
    Case {
        row: "python-sdk",
        cause: "AttributeError: 'Server' object has no attribute",
        entry: "command: uvx, args: [mcp-server-sqlite==2025.4.25]",
    },
    Case {
        row: "listens-elsewhere",
        cause: "no answer in time",
        entry: "command: npx, args: [figma-developer-mcp@0.13.2, --port, '0'], env: {FRAMELINK_TELEMETRY: 'off'}, connect_timeout: 20",
    },
];

/// Complete hints where they depend on more than the row. Names refer to the entry `case-NUMBER-ROW`.
const FULL_HINTS: &[(usize, &str)] = &[
    (
        0,
        "the server needs `BRAVE_API_KEY`, which is set here but not passed on; add `inherit_env: [BRAVE_API_KEY]` in the entry `case-0-variable-not-passed-on`",
    ),
    (
        1,
        "the server needs `SLACK_BOT_TOKEN` and `SLACK_TEAM_ID`; add `env: {SLACK_BOT_TOKEN: \"${SLACK_BOT_TOKEN}\", SLACK_TEAM_ID: \"${SLACK_TEAM_ID}\"}` to the entry `case-1-variable-missing`, and set it where wharf runs",
    ),
    (
        3,
        "the server needs `FIGMA_API_KEY` or `FIGMA_OAUTH_TOKEN`; add `FIGMA_API_KEY: \"${FIGMA_API_KEY}\"` to `env` in the entry `case-3-variable-missing`, and set it where wharf runs",
    ),
    (
        8,
        "the server was written for version 1 of the MCP SDK; write `args: [--with, \"mcp<2\", mcp-server-sqlite==2025.4.25]` in the entry `case-8-python-sdk`",
    ),
];

#[tokio::test]
async fn missing_requirements_have_hints() {
    let workspace = cached(workspace(CASES, &[], &[])).set(SET_VARIABLE.0, SET_VARIABLE.1);
    let home = workspace.make_folder("home").display().to_string();
    let workspace = workspace.set("HOME", &home);
    let report = check(&workspace, CASES).await;
    for (number, hint) in FULL_HINTS {
        assert_eq!(report["sources"][number]["error"]["hint"], *hint);
    }
    assert!(!report.to_string().contains(SET_VARIABLE.1), "{report:#}");
}

/// Following the hint literally works.
#[tokio::test]
async fn following_the_variable_hint_works() {
    let entry = "  - {name: brave, description: d, type: mcp, server: x, command: npx, args: ['@modelcontextprotocol/server-brave-search@0.6.2'], inherit_env: [BRAVE_API_KEY]}\n";
    let workspace = cached(Workspace::with(&format!("tools:\n{entry}"))).set(SET_VARIABLE.0, SET_VARIABLE.1);
    workspace.wharf("doctor").await.check(0, "ok    brave");
}
