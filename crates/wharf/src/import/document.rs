//! Reads the files of other clients: finds the servers in them and the syntax of their variables.

mod sections;
mod toml;

pub(crate) use toml::parse as parse_toml;

use super::{
    client::Client, import_error::ImportError, inputs::Inputs, note::Note, template::VariableSyntax,
};
use serde_json::{Map, Value};
use std::path::PathBuf;

/// Maximum number of servers in an import. A longer list is not a plausible client file.
const MAX_SERVERS: usize = 500;

/// The text and path of one file.
pub(crate) struct ClientFile {
    pub(crate) text: String,
    pub(crate) path: PathBuf,
    /// The client that wrote the file. `None` to guess it from the path.
    pub(crate) client: Option<Client>,
}

/// The servers of a file, in order, and the inputs that they refer to.
pub(super) struct ClientDocument {
    /// The client's display name.
    pub(super) title: &'static str,
    /// The name of the file.
    pub(super) file: String,
    pub(super) syntax: VariableSyntax,
    pub(super) servers: Map<String, Value>,
    pub(super) inputs: Inputs,
    pub(super) notes: Vec<Note>,
}

impl ClientDocument {
    /// Reads all files of one client. A server that is in several of them is imported once.
    pub(super) fn read_all(files: &[ClientFile]) -> Result<ClientDocument, ImportError> {
        let is_empty = |it: &Result<ClientDocument, ImportError>| matches!(it, Err(ImportError::NoServers));
        let mut documents = files.iter().map(ClientDocument::read).filter(|it| !is_empty(it));
        let mut all = documents.next().unwrap_or(Err(ImportError::NoServers))?;
        for more in documents {
            let ClientDocument { servers, notes, .. } = more?;
            all.notes.extend(notes);
            for (name, server) in servers {
                sections::add(&mut all.servers, &name, server, None, &mut all.notes);
            }
        }
        match all.servers.len() {
            0 => Err(ImportError::NoServers),
            found if found > MAX_SERVERS => Err(ImportError::TooManyServers(found, MAX_SERVERS)),
            _ => Ok(all),
        }
    }

    fn read(file: &ClientFile) -> Result<ClientDocument, ImportError> {
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
        Ok(ClientDocument {
            title: found.client.map_or("an MCP client", Client::title),
            file: name.into_owned(),
            syntax: syntax(found.client),
            servers,
            inputs: Inputs::read(found.inputs, &mut notes),
            notes,
        })
    }
}

fn syntax(client: Option<Client>) -> VariableSyntax {
    match client {
        Some(Client::Claude | Client::Codex | Client::Zed) => VariableSyntax::Literal,
        Some(Client::Gemini) => VariableSyntax::Shell,
        _ => VariableSyntax::Substituting,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn check(text: &str, from: &str, expected: Result<(&str, VariableSyntax, usize), &str>) {
        let file = ClientFile { text: text.to_owned(), path: from.into(), client: None };
        let found = ClientDocument::read_all(&[file]);
        let found = found.as_ref().map(|it| (it.title, it.syntax, it.servers.len()));
        let found = found.map_err(ToString::to_string);
        assert_eq!(found, expected.map_err(str::to_owned), "{text}");
    }

    #[test]
    fn client_is_recognised_by_its_file() {
        let one = r#"{"mcpServers": {"a": {}}}"#;
        check(one, "claude_desktop_config.json", Ok(("Claude Desktop", VariableSyntax::Literal, 1)));
        check(one, ".cursor/mcp.json", Ok(("Cursor", VariableSyntax::Substituting, 1)));
        check(one, ".mcp.json", Ok(("Claude Code", VariableSyntax::Substituting, 1)));
        check(one, ".gemini/settings.json", Ok(("Gemini CLI", VariableSyntax::Shell, 1)));
        check(one, "windsurf/mcp_config.json", Ok(("Windsurf", VariableSyntax::Substituting, 1)));
        check(one, "x.json", Ok(("an MCP client", VariableSyntax::Substituting, 1)));
        let vscode = Ok(("VS Code", VariableSyntax::Substituting, 2));
        check(r#"{"servers": {"a": {}, "b": 1}}"#, "x.json", vscode);
        check(r#"{"x": 1, "mcp": {"servers": {"a": {}, "b": {}}}}"#, "settings.json", vscode);
        check(r#"{"context_servers": {"a": {}}}"#, "settings.json", Ok(("Zed", VariableSyntax::Literal, 1)));
        check("[mcp_servers.a]\n[mcp_servers.b]\n", "config.toml", Ok(("Codex", VariableSyntax::Literal, 2)));
    }

    #[test]
    fn servers_of_several_projects_are_merged() {
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
        let document = ClientDocument::read_all(&files).unwrap_or_else(|error| panic!("{error}"));
        let names: Vec<&str> = document.servers.keys().map(String::as_str).collect();
        assert_eq!(names, ["c", "a", "b", "b-two"]);
        let notes: Vec<String> = document.notes.iter().map(ToString::to_string).collect();
        assert_eq!(
            notes,
            ["`b`: from the project /w/one", "`b-two`: from the project /w/two, where it is called `b`"]
        );
    }

    #[test]
    fn invalid_files_are_refused() {
        let wrong = "is not a list of MCP servers: ";
        for (text, why) in [
            ("[]", "it is not an object"),
            ("{}", "it has neither `mcpServers` nor `servers`"),
            (r#"{"mcp": 1}"#, "it has neither `mcpServers` nor `servers`"),
            (r#"{"mcpServers": []}"#, "its servers are not an object of names and servers"),
            (r#"{"servers": null}"#, "its servers are not an object of names and servers"),
        ] {
            check(text, "x.json", Err(&format!("{wrong}{why}")));
        }
        check(r#"{"servers": {}}"#, "x.json", Err("contains no servers"));
        check("model = \"x\"\n", ".codex/config.toml", Err("contains no servers"));
        check(
            "model = ",
            ".codex/config.toml",
            Err("is not TOML: string values must be quoted, expected literal string"),
        );
        let many: Vec<String> = (0..501).map(|it| format!("\"s{it}\": {{}}")).collect();
        let many = format!("{{\"servers\": {{{}}}}}", many.join(","));
        check(&many, "x", Err("contains 501 servers; at most 500 are imported at once"));
    }
}
