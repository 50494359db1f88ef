//! Finds the list of servers in a client's file.

use crate::import::{client::Client, import_error::ImportError, note::Note};
use serde_json::{Map, Value};
use std::path::Path;

/// The parts of a file that concern servers.
pub(super) struct ServerSection {
    pub(super) client: Option<Client>,
    pub(super) servers: Value,
    pub(super) inputs: Option<Value>,
}

/// Finds the list of servers. If the client is unknown, guesses it from the keys.
pub(super) fn find(
    mut root: Map<String, Value>,
    client: Option<Client>,
    notes: &mut Vec<Note>,
) -> Result<ServerSection, ImportError> {
    let projects = root.remove("projects").filter(|_| matches!(client, None | Some(Client::ClaudeCode)));
    if client == Some(Client::ClaudeCode) || projects.as_ref().is_some_and(has_servers) {
        let own = root.remove("mcpServers").unwrap_or_else(|| Value::Object(Map::new()));
        let servers = with_projects(own, projects, notes);
        return Ok(ServerSection { client: Some(Client::ClaudeCode), servers, inputs: None });
    }
    let known = [Client::Zed, Client::Codex].into_iter().find(|it| root.contains_key(it.section()));
    if let Some(known) = known.or(client.filter(|it| *it == Client::Codex)) {
        let servers = root.remove(known.section()).unwrap_or_else(|| Value::Object(Map::new()));
        return Ok(ServerSection { client: Some(known), servers, inputs: None });
    }
    if let Some(servers) = root.remove("mcpServers") {
        return Ok(ServerSection { client, servers, inputs: root.remove("inputs") });
    }
    // VS Code: its `mcp.json`, or the older `mcp` section of its settings.
    let mut home = match root.remove("mcp") {
        Some(Value::Object(section)) if !root.contains_key("servers") => section,
        _ => root,
    };
    let Some(servers) = home.remove("servers") else {
        return Err(ImportError::WrongShape("it has neither `mcpServers` nor `servers`".to_owned()));
    };
    Ok(ServerSection { client: Some(Client::VsCode), servers, inputs: home.remove("inputs") })
}

fn has_servers(projects: &Value) -> bool {
    projects.as_object().is_some_and(|it| it.values().any(|it| it.get("mcpServers").is_some()))
}

/// Merges the user's servers of Claude Code with those of each project.
fn with_projects(own: Value, projects: Option<Value>, notes: &mut Vec<Note>) -> Value {
    let Value::Object(mut servers) = own else { return own };
    let Some(Value::Object(projects)) = projects else { return Value::Object(servers) };
    for (path, mut project) in projects {
        let Some(Value::Object(more)) = project.get_mut("mcpServers").map(Value::take) else { continue };
        for (name, server) in more {
            add(&mut servers, &name, server, Some(&path), notes);
        }
    }
    Value::Object(servers)
}

/// Adds a server. Skips an identical one, and renames a different one with the same name.
pub(super) fn add(
    servers: &mut Map<String, Value>,
    name: &str,
    server: Value,
    project: Option<&str>,
    notes: &mut Vec<Note>,
) {
    let folder = project.and_then(|it| Path::new(it).file_name()?.to_str()).unwrap_or("2");
    let named = [name.to_owned(), format!("{name}-{folder}")];
    let numbered = (3..).map(|number| format!("{name}-{folder}-{number}"));
    for free in named.into_iter().chain(numbered) {
        match servers.get(&free) {
            Some(there) if *there == server => return,
            Some(_) => {}
            None => {
                if let Some(project) = project {
                    let before =
                        if free == name { String::new() } else { format!(", where it is called `{name}`") };
                    notes.push(Note::about(&free, format!("from the project {project}{before}")));
                }
                servers.insert(free, server);
                return;
            }
        }
    }
}
