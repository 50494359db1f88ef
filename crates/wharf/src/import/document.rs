//! Another client's file as a whole: where its servers stand, and by which rules it is written.

use super::{client::Client, failure::ImportError, inputs::Inputs, jsonc, note::Note, template::Dialect};
use serde_json::{Map, Value};
use std::path::Path;

/// More than this is not somebody's list of servers.
const MOST_SERVERS: usize = 500;

/// The servers of a file, in its order, and what they refer to.
pub(super) struct Document {
    /// The client's name for people.
    pub(super) title: &'static str,
    pub(super) dialect: Dialect,
    pub(super) servers: Map<String, Value>,
    pub(super) inputs: Inputs,
    pub(super) notes: Vec<Note>,
}

impl Document {
    pub(super) fn read(text: &str, from: &Path) -> Result<Document, ImportError> {
        let Value::Object(mut root) = jsonc::parse(text)? else {
            return Err(ImportError::WrongShape("it is not an object".to_owned()));
        };
        let client = Client::of(from);
        if let Some(servers) = root.remove("mcpServers") {
            let dialect = match client {
                Some(Client::Claude) => Dialect::Literal,
                _ => Dialect::Substituting,
            };
            let title = client.map_or("an MCP client", Client::title);
            return Document::new(title, dialect, servers, root.remove("inputs"));
        }
        // VS Code's own file, or the part of its settings that came before it.
        let mut home = match root.remove("mcp") {
            Some(Value::Object(section)) if !root.contains_key("servers") => section,
            _ => root,
        };
        let Some(servers) = home.remove("servers") else {
            return Err(ImportError::WrongShape(
                "there is neither `mcpServers` nor `servers` in it".to_owned(),
            ));
        };
        let title = Client::VsCode.title();
        Document::new(title, Dialect::Substituting, servers, home.remove("inputs"))
    }

    fn new(
        title: &'static str,
        dialect: Dialect,
        servers: Value,
        inputs: Option<Value>,
    ) -> Result<Document, ImportError> {
        let Value::Object(servers) = servers else {
            return Err(ImportError::WrongShape(
                "its servers are not an object of names and servers".to_owned(),
            ));
        };
        match servers.len() {
            0 => return Err(ImportError::NoServers),
            found if found > MOST_SERVERS => {
                return Err(ImportError::TooManyServers(found, MOST_SERVERS));
            }
            _ => {}
        }
        let mut notes = Vec::new();
        let inputs = Inputs::read(inputs, &mut notes);
        Ok(Document { title, dialect, servers, inputs, notes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, from: &str, expected: Result<(&str, Dialect, usize), &str>) {
        let found = Document::read(text, Path::new(from));
        let found = found.as_ref().map(|it| (it.title, it.dialect, it.servers.len()));
        let found = found.map_err(ToString::to_string);
        assert_eq!(found, expected.map_err(str::to_owned), "{text}");
    }

    #[test]
    fn shapes() {
        let one = r#"{"mcpServers": {"a": {}}}"#;
        check(one, "claude_desktop_config.json", Ok(("Claude Desktop", Dialect::Literal, 1)));
        check(one, ".cursor/mcp.json", Ok(("Cursor", Dialect::Substituting, 1)));
        check(one, "x.json", Ok(("an MCP client", Dialect::Substituting, 1)));
        let vscode = Ok(("VS Code", Dialect::Substituting, 2));
        check(r#"{"servers": {"a": {}, "b": 1}}"#, "x.json", vscode);
        check(r#"{"x": 1, "mcp": {"servers": {"a": {}, "b": {}}}}"#, "settings.json", vscode);
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
        let many: Vec<String> = (0..501).map(|it| format!("\"s{it}\": {{}}")).collect();
        let many = format!("{{\"servers\": {{{}}}}}", many.join(","));
        check(&many, "x", Err("names 501 servers; at most 500 are imported at once"));
    }
}
