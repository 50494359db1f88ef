//! Converts another client's list of servers into an agent file, and reports what could not be converted.
//!
//! Writes no file, and reads only through `Env`. Each server is drafted separately, its values move to an
//! env file, and the configuration loader checks the draft. A draft that the loader refuses stays in the agent file
//! as a comment with the loader's reasons. So nothing is lost, and `check` accepts the result.

mod client;
mod conceal;
mod document;
mod draft;
mod env_file;
mod failure;
mod foreign;
mod inputs;
mod jsonc;
mod launcher;
mod note;
mod page;
mod secret;
mod suggested;
mod template;
mod trial;
mod writer;
mod yaml;

pub(crate) use client::{Client, Whereabouts};
pub(crate) use document::{ClientFile, parse_toml};
pub(crate) use failure::ImportError;
pub(crate) use jsonc::{parse as parse_json, plain as plain_json, without_comments};
pub(crate) use note::{Note, printable};
pub(crate) use suggested::entry;
pub(crate) use trial::Reason;

use document::Document;
use draft::Draft;
use std::collections::BTreeSet;
use trial::Trial;
use wharf_config::{Env, MissingGrant};

/// Maximum number of tools in an agent file.
const MOST_TOOLS: usize = 50;

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
    /// Drops the env files of refused servers.
    pub(crate) fn keep_accepted(&mut self) {
        self.keep_files_of(|it| it.refused.is_empty());
    }

    /// Drops the env files of servers that the agent file already has.
    pub(crate) fn keep_new(&mut self) {
        self.keep_files_of(|it| !it.is_there);
    }

    fn keep_files_of(&mut self, keeps: impl Fn(&ImportedServer) -> bool) {
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
    /// Reasons why the server was refused. Empty if it was accepted.
    pub(crate) refused: Vec<Reason>,
    /// Whether the agent file already has a server with this name.
    pub(crate) is_there: bool,
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
    let document = Document::read_all(files)?;
    let mut drafts = draft::all(&document, &env, &taken);
    let servers_env_files: Vec<Option<String>> =
        drafts.iter().map(|it| Some(it.env_file.as_ref()?.name.clone())).collect();
    let env_files: Vec<EnvFile> = drafts.iter_mut().filter_map(|it| it.env_file.take()).collect();
    let trial = Trial::new(env, &env_files);
    judge(&mut drafts, &trial, &names);
    let agent_yaml = page::write(&document, &drafts, &env_files);
    if names.is_empty() {
        trial.whole(&agent_yaml)?;
    }
    let mut notes = document.notes;
    notes.extend(drafts.iter_mut().flat_map(Draft::take_notes));
    Ok(Imported {
        agent_yaml,
        entries: page::entries(drafts.iter().filter(|it| !names.contains(&it.name))),
        accepted_entries: page::entries(drafts.iter().filter(|it| it.reasons.is_empty())),
        env_files,
        notes,
        servers: drafts
            .into_iter()
            .zip(servers_env_files)
            .map(|(it, file)| it.into_server(file, &names))
            .collect(),
        env: trial.into_env(),
    })
}

/// Checks each draft. A draft without reasons for refusal becomes an entry of the agent file.
fn judge(drafts: &mut [Draft], trial: &Trial, names: &BTreeSet<String>) {
    let mut accepted = names.len();
    for draft in drafts {
        draft.judge(trial);
        if names.contains(&draft.name) {
            let message = format!("the agent file has a server called `{}` already", printable(&draft.name));
            draft.reasons = vec![Reason::new(message)];
        }
        if draft.reasons.is_empty() && accepted == MOST_TOOLS {
            draft.reasons.push(Reason::new(format!(
                "an agent file holds at most {MOST_TOOLS} tools, and there are as many above"
            )));
        }
        accepted += usize::from(draft.reasons.is_empty());
    }
}

#[cfg(test)]
mod tests;
