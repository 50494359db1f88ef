//! Converts another client's list of servers into an agent file, and reports what could not be converted.
//!
//! Writes no file, and reads only through `Env`. Each server is drafted separately, its values move to an
//! env file, and the configuration loader checks the draft. A draft that the loader refuses stays in the agent file
//! as a comment with the loader's reasons. So nothing is lost, and `check` accepts the result.

mod agent_yaml;
mod checker;
mod client;
mod client_server;
mod document;
mod draft;
mod env_file;
mod import_error;
mod inputs;
mod jsonc;
mod launcher;
mod manifest_entry;
mod note;
mod package;
mod pasted_text;
mod rewriter;
mod secret;
mod split_values;
mod template;
mod yaml;

pub(crate) use checker::Reason;
pub(crate) use client::{Client, ClientLocations};
pub(crate) use document::{ClientFile, parse_toml};
pub(crate) use import_error::ImportError;
pub(crate) use jsonc::{parse as parse_json, plain as plain_json, without_comments};
pub(crate) use manifest_entry::{render_suggestion, suggestion_json};
pub(crate) use note::{Note, printable};
pub(crate) use package::Package;
pub(crate) use pasted_text::{PastedText, name_of_address};
pub(crate) use secret::looks_like_key;

use checker::EntryChecker;
use document::ClientDocument;
use draft::ServerDraft;
use serde_json::Value;
use std::collections::BTreeSet;
use wharf_config::{Env, MissingGrant};

/// Maximum number of tools in an agent file.
const MAX_TOOLS: usize = 50;

/// The agent file to import the servers into.
#[derive(Clone)]
pub(crate) struct Target {
    /// The environment that the file will be loaded with.
    pub(crate) env: Env,
    /// The names of its existing servers.
    pub(crate) names: BTreeSet<String>,
    /// The names of the existing env files beside it.
    pub(crate) env_files: BTreeSet<String>,
}

/// The result of an import.
pub(crate) struct Imported {
    /// The text of a new agent file.
    pub(crate) agent_yaml: String,
    /// Entries for an existing agent file: all servers that it does not have yet, refused ones as comments.
    /// `accepted_entries` holds only the accepted servers.
    pub(crate) entries: String,
    pub(crate) accepted_entries: String,
    /// The env files to write beside it. They may contain secrets.
    pub(crate) env_files: Vec<EnvFile>,
    /// Notes for the user: what was changed or left out, and which values are missing.
    pub(crate) notes: Vec<Note>,
    /// The result for each server, in the order of the file.
    pub(crate) servers: Vec<ImportedServer>,
    /// The environment for loading the entries, with the new env files.
    pub(crate) env: Env,
}

impl Imported {
    /// Drops the env files of all other servers.
    pub(crate) fn keep_files_of(&mut self, keeps: impl Fn(&ImportedServer) -> bool) {
        let kept: BTreeSet<&str> =
            self.servers.iter().filter(|it| keeps(it)).filter_map(|it| it.env_file.as_deref()).collect();
        self.env_files.retain(|it| kept.contains(it.name.as_str()));
    }
}

/// The result for one server.
pub(crate) struct ImportedServer {
    pub(crate) name: String,
    /// The name of its env file, if it has one.
    pub(crate) env_file: Option<String>,
    /// Variables that have no value yet.
    pub(crate) needs: Vec<String>,
    /// Variables of its env file, with and without a value.
    pub(crate) variables: Vec<String>,
    /// The entry without its env file, as YAML and as JSON. Values of variables are not in it.
    pub(crate) yaml: String,
    pub(crate) entry: Value,
    /// Reasons why the server was refused. Empty if it was accepted.
    pub(crate) refused: Vec<Reason>,
    /// Whether the agent file already has a server with this name.
    pub(crate) is_present: bool,
    /// Grants that would make the server acceptable.
    pub(crate) missing_grants: Vec<MissingGrant>,
}

/// An env file to write beside the agent file. Has no `Debug`, because its text may contain secrets.
pub(crate) struct EnvFile {
    pub(crate) name: String,
    pub(crate) text: String,
}

/// Imports the servers from one client's files.
pub(crate) fn import(files: &[ClientFile], target: Target) -> Result<Imported, ImportError> {
    let Target { env, names, env_files: taken } = target;
    let document = ClientDocument::read_all(files)?;
    let mut drafts = draft::draft_all(&document, &env, &taken);
    let servers_env_files: Vec<Option<String>> =
        drafts.iter().map(|it| Some(it.env_file.as_ref()?.name.clone())).collect();
    let env_files: Vec<EnvFile> = drafts.iter_mut().filter_map(|it| it.env_file.take()).collect();
    let checker = EntryChecker::new(env, &env_files);
    check_drafts(&mut drafts, &checker, &names);
    let agent_yaml = agent_yaml::write(&document, &drafts, &env_files);
    if names.is_empty() {
        checker.check_file(&agent_yaml)?;
    }
    let mut notes = document.notes;
    notes.extend(drafts.iter_mut().flat_map(|it| std::mem::take(&mut it.notes)));
    Ok(Imported {
        agent_yaml,
        entries: agent_yaml::entries(drafts.iter().filter(|it| !names.contains(&it.name))),
        accepted_entries: agent_yaml::entries(drafts.iter().filter(|it| it.reasons.is_empty())),
        env_files,
        notes,
        servers: drafts
            .into_iter()
            .zip(servers_env_files)
            .map(|(it, file)| it.into_server(file, &names))
            .collect(),
        env: checker.env,
    })
}

/// Checks each draft. A draft without reasons for refusal becomes an entry of the agent file.
fn check_drafts(drafts: &mut [ServerDraft], checker: &EntryChecker, names: &BTreeSet<String>) {
    let mut accepted = names.len();
    for draft in drafts {
        draft.check(checker);
        if names.contains(&draft.name) {
            let message = format!("the agent file has a server called `{}` already", printable(&draft.name));
            draft.reasons = vec![Reason::new(message)];
        }
        if draft.reasons.is_empty() && accepted == MAX_TOOLS {
            draft.reasons.push(Reason::new(format!("an agent file can have at most {MAX_TOOLS} tools")));
        }
        accepted += usize::from(draft.reasons.is_empty());
    }
}

#[cfg(test)]
mod tests;
