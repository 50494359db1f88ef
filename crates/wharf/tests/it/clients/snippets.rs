//! Runs the examples of docs/clients.md unchanged, except for the address.

use super::{
    Transport,
    inspector::INSPECTOR,
    scripted::{beside_packages, node},
    test_gateway::{TOKEN, Target, TestGateway},
};
use crate::servers::workspace::tool;
use serde_json::Value;
use std::{fs, path::Path, process::Command};

const PAGE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/clients.md");
const ADDRESS: &str = "127.0.0.1:7373";
const AGENT_FILE: &str = "/srv/tools/agent.yaml";

/// Texts that every example must print.
const SHOWN: [&str; 2] = ["todo__create_todo", "Buy milk"];

#[test]
fn client_page_examples_work() {
    let test_gateway = TestGateway::open();
    let page = fs::read_to_string(PAGE).expect("the page");
    let mut run = 0;
    for snippet in snippets(&page) {
        let target = test_gateway.target(Transport::Http);
        let text = snippet
            .text
            .replace(ADDRESS, test_gateway.address())
            .replace(AGENT_FILE, &test_gateway.agent_file());
        let said = match (snippet.heading, snippet.language) {
            ("Claude Desktop" | "Cursor", "json") => inspect(&text, &target),
            ("VS Code", "json") => import(&text, &target),
            ("MCP Inspector", "sh") => shell(&text, &target),
            ("Python", "python") => python(&text, &target),
            ("TypeScript", "js") => javascript(&text, &target),
            ("Over HTTP", "sh") => continue,
            ("Quick start" | "Claude Code" | "Codex" | "Windsurf" | "Zed" | "Gemini CLI", _) => {
                connect(&snippet, &test_gateway, &target);
                run += 1;
                continue;
            }
            (heading, language) => panic!("nobody knows how to run {language} of `{heading}`"),
        };
        assert!(SHOWN.iter().any(|it| said.contains(it)), "{}: {}\n{said}", snippet.heading, snippet.text);
        run += 1;
    }
    assert_eq!(run, 20, "a snippet came or went");
}

struct Snippet<'a> {
    heading: &'a str,
    language: &'a str,
    text: String,
}

/// Returns the code blocks of a page, each with its heading.
fn snippets(page: &str) -> Vec<Snippet<'_>> {
    let (mut heading, mut found, mut open) = ("", Vec::new(), None::<Snippet<'_>>);
    for line in page.lines() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(language)) => open = Some(Snippet { heading, language, text: String::new() }),
            (Some(_), Some(_)) => found.extend(open.take()),
            (Some(snippet), None) => snippet.text.extend([line, "\n"]),
            (None, None) if line.starts_with('#') => heading = line.trim_start_matches(['#', ' ']),
            (None, None) => {}
        }
    }
    found
}

/// Checks a client that `wharf connect` supports: runs the command and compares its output with the next block.
fn connect(snippet: &Snippet<'_>, test_gateway: &TestGateway, target: &Target) {
    let agent_file = Path::new(&test_gateway.agent_file()).canonicalize().expect("the agent file");
    let run = |line: &str| {
        let mut command = target.client("sh");
        command.args(["-euc", line]).env("HOME", target.home.path());
        for name in ["WHARF_HOME", "XDG_CONFIG_HOME", "CODEX_HOME", "CLAUDE_CONFIG_DIR", "APPDATA"] {
            command.env_remove(name);
        }
        output(command.current_dir(agent_file.parent().expect("a folder")))
    };
    if snippet.language == "sh" {
        run(&snippet.text);
        let word = snippet.text.split_whitespace().nth(2).expect("a client");
        assert!(run(&format!("wharf connect {word} --json")).contains("\"changed\": false"), "{word}");
        return;
    }
    let word = match snippet.heading {
        "Gemini CLI" => "gemini".to_owned(),
        heading => heading.to_lowercase().replace(' ', "-"),
    };
    let printed = run(&format!("wharf connect {word} --print"));
    let program = Path::new(env!("CARGO_BIN_EXE_wharf")).display().to_string();
    let printed = printed.replace(&program, "/usr/local/bin/wharf");
    assert_eq!(printed.replace(&*agent_file.to_string_lossy(), AGENT_FILE), snippet.text, "{word}");
}

/// Tests a client configuration with the Inspector, which reads the same format but does not detect the transport.
fn inspect(text: &str, target: &Target) -> String {
    let file = target.home.path().join("mcp.json");
    let mut written: Value = serde_json::from_str(&text.replace("${env:WHARF_TOKEN}", TOKEN)).expect("JSON");
    let entry = &mut written["mcpServers"]["wharf"];
    match entry["url"].is_string() {
        true => entry["type"] = "streamable-http".into(),
        // The Inspector passes only explicitly listed variables to its server.
        false => entry["env"] = target.variables().into(),
    }
    fs::write(&file, written.to_string()).expect("a file");
    let mut command = target.client(node());
    command.env("MCP_INSPECTOR_SECRET_STORE", "memory");
    command.arg(tool(INSPECTOR)).args(["--cli", "--config"]).arg(file).args(["--server", "wharf"]);
    output(command.args(["--method", "tools/list"]))
}

/// Tests a configuration in a format of its own with `wharf import`.
fn import(text: &str, target: &Target) -> String {
    let folder = target.home.path().join(".vscode");
    fs::create_dir(&folder).expect("a folder");
    fs::write(folder.join("mcp.json"), text).expect("a file");
    let mut command = target.client(env!("CARGO_BIN_EXE_wharf"));
    command.current_dir(target.home.path());
    output(command.args(["init", "--from", ".vscode/mcp.json"]));
    let variable = fs::read_to_string(target.home.path().join("agent.yaml")).expect("the agent file");
    let variable = variable.split("Bearer ${").nth(1).and_then(|it| it.split('}').next());
    let mut command = target.client(env!("CARGO_BIN_EXE_wharf"));
    command.current_dir(target.home.path()).env(variable.expect("a variable for the token"), TOKEN);
    let listed: Value = serde_json::from_str(&output(command.args(["tools", "--json"]))).expect("JSON");
    listed["tools"].to_string()
}

fn shell(text: &str, target: &Target) -> String {
    let inspector = format!("{} {}", node().display(), tool(INSPECTOR).display());
    let text = text.replace("npx @modelcontextprotocol/inspector", &inspector);
    output(target.client("sh").args(["-euc", &text]))
}

fn python(text: &str, target: &Target) -> String {
    let version = if text.contains("httpx2") { "python-2" } else { "python" };
    output(target.client(tool(version).join("bin/python")).args(["-c", text]))
}

fn javascript(text: &str, target: &Target) -> String {
    let version = if text.contains("protocol/sdk/") { "typescript-1" } else { "typescript-2" };
    let script = beside_packages("example.mjs", version, target);
    fs::write(&script, text).expect("a file");
    output(target.client(node()).arg(&script as &Path))
}

fn output(command: &mut Command) -> String {
    let output = command.output().expect("it runs");
    let (said, complaints) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?} ended with {}:\n{said}{complaints}", output.status);
    said.into_owned()
}
