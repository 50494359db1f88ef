//! Reads the files of other clients: finds the servers in them and the syntax of their variables.

mod sections;
mod toml;

pub(crate) use toml::parse as parse_toml;

use super::{client::Client, failure::ImportError, inputs::Inputs, note::Note, template::Dialect};
use serde_json::{Map, Value};
use std::path::PathBuf;

/// Maximum number of servers in an import. A longer list is not a plausible client file.
const MOST_SERVERS: usize = 500;

/// The text and path of one file.
pub(crate) struct ClientFile {
    pub(crate) text: String,
    pub(crate) path: PathBuf,
    /// The client that wrote the file. `None` to guess it from the path.
    pub(crate) client: Option<Client>,
}

/// The servers of a file, in order, and the inputs that they refer to.
pub(super) struct Document {
    /// The client's display name.
    pub(super) title: &'static str,
    /// The name of the file.
    pub(super) file: String,
    pub(super) dialect: Dialect,
    pub(super) servers: Map<String, Value>,
    pub(super) inputs: Inputs,
    pub(super) notes: Vec<Note>,
}

impl Document {
    /// Reads all files of one client. A server that is in several of them is imported once.
    pub(super) fn read_all(files: &[ClientFile]) -> Result<Document, ImportError> {
        let is_empty = |it: &Result<Document, ImportError>| matches!(it, Err(ImportError::NoServers));
        let mut documents = files.iter().map(Document::read).filter(|it| !is_empty(it));
        let mut all = documents.next().unwrap_or(Err(ImportError::NoServers))?;
        for more in documents {
            let Document { servers, notes, .. } = more?;
            all.notes.extend(notes);
            for (name, server) in servers {
                sections::add(&mut all.servers, &name, server, None, &mut all.notes);
            }
        }
        match all.servers.len() {
            0 => Err(ImportError::NoServers),
            found if found > MOST_SERVERS => Err(ImportError::TooManyServers(found, MOST_SERVERS)),
            _ => Ok(all),
        }
    }

    fn read(file: &ClientFile) -> Result<Document, ImportError> {
        let client = file.client.or_else(|| Client::of(&file.path));
        let is_toml = client == Some(Client::Codex) || file.path.extension().is_some_and(|it| it == "toml");
        let root = if is_toml { toml::parse(&file.text)? } else { super::jsonc::parse(&file.text)? };
        let Value::Object(root) = root else {
            return Err(ImportError::WrongShape("it is not an object".to_owned()));
        };
        let mut notes = Vec::new();
        let found = sections::find(root, client, &mut notes)?;
        let Value::Object(servers) = found.servers else {
            return Err(ImportError::WrongShape(
                "its servers are not an object of names and servers".to_owned(),
            ));
        };
        if servers.is_empty() {
            return Err(ImportError::NoServers);
        }
        let name = file.path.file_name().map_or_else(|| "a file".into(), |it| it.to_string_lossy());
        Ok(Document {
            title: found.client.map_or("an MCP client", Client::title),
            file: name.into_owned(),
            dialect: dialect(found.client),
            servers,
            inputs: Inputs::read(found.inputs, &mut notes),
            notes,
        })
    }
}

fn dialect(client: Option<Client>) -> Dialect {
    match client {
        Some(Client::Claude | Client::Codex | Client::Zed) => Dialect::Literal,
        Some(Client::Gemini) => Dialect::Shell,
        _ => Dialect::Substituting,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(text: &str, from: &str, expected: Result<(&str, Dialect, usize), &str>) {
        let file = ClientFile { text: text.to_owned(), path: from.into(), client: None };
        let found = Document::read_all(&[file]);
        let found = found.as_ref().map(|it| (it.title, it.dialect, it.servers.len()));
        let found = found.map_err(ToString::to_string);
        assert_eq!(found, expected.map_err(str::to_owned), "{text}");
    }

    #[test]
    fn shapes() {
        let one = r#"{"mcpServers": {"a": {}}}"#;
        check(one, "claude_desktop_config.json", Ok(("Claude Desktop", Dialect::Literal, 1)));
        check(one, ".cursor/mcp.json", Ok(("Cursor", Dialect::Substituting, 1)));
        check(one, ".mcp.json", Ok(("Claude Code", Dialect::Substituting, 1)));
        check(one, ".gemini/settings.json", Ok(("Gemini CLI", Dialect::Shell, 1)));
        check(one, "windsurf/mcp_config.json", Ok(("Windsurf", Dialect::Substituting, 1)));
        check(one, "x.json", Ok(("an MCP client", Dialect::Substituting, 1)));
        let vscode = Ok(("VS Code", Dialect::Substituting, 2));
        check(r#"{"servers": {"a": {}, "b": 1}}"#, "x.json", vscode);
        check(r#"{"x": 1, "mcp": {"servers": {"a": {}, "b": {}}}}"#, "settings.json", vscode);
        check(r#"{"context_servers": {"a": {}}}"#, "settings.json", Ok(("Zed", Dialect::Literal, 1)));
        check("[mcp_servers.a]\n[mcp_servers.b]\n", "config.toml", Ok(("Codex", Dialect::Literal, 2)));
    }

    #[test]
    fn the_servers_of_all_projects_are_read_once() {
        let (npx, uvx) = (json!({"command": "npx"}), json!({"command": "uvx"}));
        let text = json!({
            "mcpServers": {"a": npx},
            "projects": {
                "/w/one": {"mcpServers": {"a": npx, "b": uvx}},
                "/w/two": {"mcpServers": {"b": npx}},
                "/w/three": {"history": []},
            },
        });
        let project = json!({"mcpServers": {"c": uvx, "a": npx}});
        let file =
            |text: &Value, path: &str| ClientFile { text: text.to_string(), path: path.into(), client: None };
        let files = [file(&project, ".mcp.json"), file(&text, ".claude.json")];
        let document = Document::read_all(&files).unwrap_or_else(|error| panic!("{error}"));
        let names: Vec<&str> = document.servers.keys().map(String::as_str).collect();
        assert_eq!(names, ["c", "a", "b", "b-two"]);
        let notes: Vec<String> = document.notes.iter().map(ToString::to_string).collect();
        assert_eq!(
            notes,
            ["`b`: from the project /w/one", "`b-two`: from the project /w/two, where it is called `b`"]
        );
    }

    #[test]
    fn refusals() {
        let wrong = "is not a list of MCP servers: ";
        for (text, why) in [
            ("[]", "it is not an object"),
            ("{}", "there is neither `mcpServers` nor `servers` in it"),
            (r#"{"mcp": 1}"#, "there is neither `mcpServers` nor `servers` in it"),
            (r#"{"mcpServers": []}"#, "its servers are not an object of names and servers"),
            (r#"{"servers": null}"#, "its servers are not an object of names and servers"),
        ] {
            check(text, "x.json", Err(&format!("{wrong}{why}")));
        }
        check(r#"{"servers": {}}"#, "x.json", Err("names no servers"));
        check("model = \"x\"\n", ".codex/config.toml", Err("names no servers"));
        check(
            "model = ",
            ".codex/config.toml",
            Err("is not TOML: string values must be quoted, expected literal string"),
        );
        let many: Vec<String> = (0..501).map(|it| format!("\"s{it}\": {{}}")).collect();
        let many = format!("{{\"servers\": {{{}}}}}", many.join(","));
        check(&many, "x", Err("names 501 servers; at most 500 are imported at once"));
    }
}
