//! Compares the examples in docs/json.md with the output of the program.

use super::TODO;
use crate::serve::server::{Server, wharf};
use serde_json::Value;
use std::fs;
use tempfile::TempDir;

const DOCS: &str = include_str!("../../../../../docs/json.md");

const BROKEN: &str =
    "tools:\n  - name: a\n    description: d\n    type: mcp\n    server: x\n    command: bash\n";
const DOWN: &str = "tools:\n  - {name: down, description: d, type: mcp, server: x, transport: http, url: 'http://127.0.0.1:1/mcp'}\n";
const MANIFEST: &str = r#"{"name":"io.example/files","description":"Files","version":"1.0.0","packages":[{
    "registryType":"npm","identifier":"@modelcontextprotocol/server-filesystem","version":"1.0.0",
    "transport":{"type":"stdio"},"environmentVariables":[{"name":"KEY","isRequired":true},{"name":"MODE"}]}]}"#;

const CLIENT: &str = r#"{"mcpServers": {"search": {"command": "uvx", "args": ["x", "${SEARCH_REGION}"]},
    "local": {"command": "node", "args": ["x.js"]}}}"#;

/// A command line, its exit code, and the documented output.
struct Example {
    typed: String,
    code: i32,
    document: Value,
}

fn examples() -> Vec<Example> {
    let mut examples = Vec::new();
    let mut commands = DOCS.split("```sh\n").skip(1);
    for block in &mut commands {
        let (line, rest) = block.split_once("\n```\n").expect("the end of a block");
        let (typed, code) = line.split_once("    # ").expect("an exit code");
        let document = rest.split("```json\n").nth(1).and_then(|it| it.split("\n```").next());
        let document = document.unwrap_or_else(|| panic!("`{typed}` has no document"));
        examples.push(Example {
            typed: typed.to_owned(),
            code: code.parse().expect("an exit code"),
            document: serde_json::from_str(document).unwrap_or_else(|error| panic!("`{typed}`: {error}")),
        });
    }
    examples
}

/// Returns the differences in keys and types. A documented empty object or list matches any, and null may replace a
/// value.
fn differences(at: &str, documented: &Value, printed: &Value) -> Vec<String> {
    match (documented, printed) {
        (Value::Object(documented), Value::Object(_)) if documented.is_empty() => Vec::new(),
        (Value::Object(documented), Value::Object(printed)) => {
            let missing = documented.keys().filter(|it| !printed.contains_key(*it));
            let extra = printed.keys().filter(|it| !documented.contains_key(*it));
            let named = missing.map(|it| format!("{at}.{it} is documented and not printed"));
            let named = named.chain(extra.map(|it| format!("{at}.{it} is printed and not documented")));
            let inner = documented
                .iter()
                .filter_map(|(key, value)| {
                    Some(differences(&format!("{at}.{key}"), value, printed.get(key)?))
                })
                .flatten();
            named.chain(inner).collect()
        }
        (Value::Array(documented), Value::Array(printed)) => match (documented.first(), printed.first()) {
            (Some(documented), Some(printed)) => differences(&format!("{at}[0]"), documented, printed),
            (Some(_), None) => vec![format!("{at} is empty")],
            (None, _) => Vec::new(),
        },
        (Value::Null, _) | (_, Value::Null) => Vec::new(),
        _ if std::mem::discriminant(documented) == std::mem::discriminant(printed) => Vec::new(),
        _ => vec![format!("{at} is {documented} in the documentation, and {printed}")],
    }
}

#[test]
fn documented_json_matches_the_output() {
    let folder = TempDir::new().expect("a folder");
    let files = [
        ("agent.yaml", TODO),
        ("broken.yaml", BROKEN),
        ("down.yaml", DOWN),
        ("server.json", MANIFEST),
        ("mcp.json", CLIENT),
    ];
    for (name, text) in files {
        fs::write(folder.path().join(name), text).expect("the file can be written");
    }
    let server = Server::start_in(folder, &[]);
    let address = format!("http://{}", server.address);
    let examples = examples();
    assert!(examples.len() > 18, "{}", examples.len());
    for Example { typed, code, document } in examples {
        let mut command = wharf(&server.folder);
        command.args(typed.split_whitespace().skip(1));
        if typed.starts_with("wharf sources") {
            command.args(["--server", &address]);
        }
        let output = command.output().expect("it runs");
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(output.status.code(), Some(code), "`{typed}`: {said}");
        let printed: Value =
            serde_json::from_str(&said).unwrap_or_else(|error| panic!("`{typed}`: {error}: {said}"));
        let differences = differences("", &document, &printed);
        assert!(differences.is_empty(), "`{typed}`:\n{}", differences.join("\n"));
    }
}
