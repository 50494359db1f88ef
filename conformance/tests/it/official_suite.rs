//! The official conformance suite as a program: starts it, and reads its verdicts.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Folders of the two versions of the suite.
pub(crate) const LATEST: &str = "conformance-0.2";
pub(crate) const EARLIER: &str = "conformance-0.1";

/// Returns a command that runs a version of the suite in this folder.
pub(crate) fn command(version: &str, folder: &Path) -> Command {
    let suite = tool(version).join("node_modules/@modelcontextprotocol/conformance/dist/index.js");
    let mut command = Command::new(node());
    command.arg(suite).current_dir(folder);
    command
}

/// Runs the command and returns everything it printed.
pub(crate) fn output(command: &mut Command) -> String {
    let output = command.output().expect("node starts");
    String::from_utf8_lossy(&[output.stderr, output.stdout].concat()).into_owned()
}

/// Parses the summary: each scenario and whether it passed.
pub(crate) fn verdicts(output: &str) -> BTreeMap<String, bool> {
    let summary = output.split_once("SUMMARY ===").map_or("", |(_, summary)| summary);
    let lines = summary.lines().take_while(|line| !line.starts_with("Total:"));
    lines
        .filter_map(|line| {
            let passed = line.starts_with('✓');
            let (name, _) = line.strip_prefix(['✓', '✗'])?.split_once(": ")?;
            Some((name.trim().to_owned(), passed))
        })
        .collect()
}

/// Returns the line with the number of passed and failed checks.
pub(crate) fn total(output: &str) -> &str {
    output.lines().find(|line| line.starts_with("Total:")).unwrap_or_default()
}

/// Returns whether a run of a single scenario passed.
pub(crate) fn has_passed(output: &str) -> bool {
    output.lines().any(|line| line.starts_with("Passed:") && line.contains(" 0 failed"))
}

pub(crate) fn node() -> PathBuf {
    tool("node").join("node_modules/node/bin/node")
}

/// Returns a folder that `cargo xtask` fills.
#[expect(clippy::disallowed_methods, reason = "the environment holds the path of the tools")]
pub(crate) fn tool(name: &str) -> PathBuf {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let cache = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")));
    let tools = set("WHARF_TOOLS").or_else(|| cache.map(|cache| cache.join("wharf-tools")));
    let folder = tools.unwrap_or_default().join(name);
    assert!(folder.is_dir(), "`{}` is missing: run `cargo xtask test`", folder.display());
    folder
}
