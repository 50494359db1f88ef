//! Generates `docs/servers.md`: the agent.yaml entry of each server, and its requirements.

use super::known::{KNOWN, KnownServer, TestCoverage};
use serde_json::Value;

const INTRODUCTION: &str = "# Popular servers

These servers of npm and PyPI work behind wharf. `wharf init --from` wrote the entries below, from one configuration file of
Claude Desktop that has them all; `wharf check` accepts them unchanged. The tests start the servers that need no account
and no other service, in these versions, and count their tools. The tests check and explain the others (`wharf check`,
`wharf explain`), but never start them.

The variables of a server are in the file that `envFile` names. Below an entry you see that file, with placeholders for
secrets. If your shell has a variable, write `inherit_env: [NAME]` instead. Leave the version out to get the newest one. A
server that lacks something fails in `wharf doctor` with a hint that names it.

A Python package that needs a newer Python than you have takes `--python`, `\"3.12\"` at the beginning of `args`; uv downloads
that Python. Servers that report to their authors when they start have the switch for that in their env file or arguments.

| server | package | tools | what it needs |
| --- | --- | --- | --- |
";

/// Generates the page from the agent file, its env files and the output of `wharf explain`.
pub(super) fn page(agent_file: &str, env_file: impl Fn(&str) -> String, sources: &Value) -> String {
    let sources = sources.as_array().map(Vec::as_slice).unwrap_or_default();
    let rows: String = KNOWN.iter().zip(sources).map(|(known, source)| row(known, source)).collect();
    let section = |(known, entry): (&KnownServer, String)| section(known, &entry, &env_file);
    let sections: String = KNOWN.iter().zip(entries(agent_file)).map(section).collect();
    format!("{INTRODUCTION}{rows}{sections}")
}

fn row(known: &KnownServer, source: &Value) -> String {
    let KnownServer { name, needs, coverage, .. } = known;
    let package = source["server"].as_str().unwrap_or_default();
    let tools = match coverage {
        TestCoverage::Started { tools } => tools.to_string(),
        TestCoverage::Checked { .. } => "–".to_owned(),
    };
    format!("| [{name}](#{name}) | `{package}` | {tools} | {needs} |\n")
}

fn section(known: &KnownServer, entry: &str, env_file: impl Fn(&str) -> String) -> String {
    let KnownServer { name, about, coverage, .. } = known;
    let coverage = match coverage {
        TestCoverage::Started { .. } => String::new(),
        TestCoverage::Checked { why } => format!(" Not started by the tests: {why}."),
    };
    let (first, rest) = about.split_at(1);
    let about = first.to_uppercase() + rest;
    let named = entry.lines().find_map(|it| it.trim().strip_prefix("envFile: "));
    let values =
        named.map_or_else(String::new, |it| format!("\n```sh\n# {it}\n{}```\n", values(&env_file(it))));
    format!("\n## {name}\n\n{about}.{coverage}\n\n```yaml\n{entry}```\n{values}")
}

/// Returns the lines of an env file without its comments.
fn values(env_file: &str) -> String {
    env_file.lines().filter(|it| !it.starts_with('#')).map(|it| format!("{it}\n")).collect()
}

/// Splits the `tools` section into its entries.
fn entries(agent_file: &str) -> Vec<String> {
    let tools = agent_file.split_once("\ntools:\n").map(|(_, tools)| tools).unwrap_or_default();
    let mut entries: Vec<String> = Vec::new();
    for line in tools.lines().filter(|it| !it.is_empty()) {
        match entries.last_mut() {
            Some(entry) if !line.starts_with("  - ") => *entry += &format!("{line}\n"),
            _ => entries.push(format!("{line}\n")),
        }
    }
    entries
}
