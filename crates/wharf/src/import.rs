//! Turns another client's list of servers into an agent file, and says what could not be carried over.
//!
//! Text in, texts out: nothing here reads or writes a file. Each server is drafted on its own, its secrets set aside
//! into an env file, and the draft is tried at the loader's own door. What the loader refuses stays in the agent file
//! as a comment under the loader's reasons, so that nothing gets lost and nothing is let in that `check` would refuse.

mod client;
mod conceal;
mod document;
mod draft;
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
mod vault;
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
use wharf_runtime::config::{Env, MissingGrant};

/// What an agent file holds at most.
const MOST_TOOLS: usize = 50;

/// The agent file that servers are imported into.
#[derive(Clone)]
pub(crate) struct Target {
    /// What it will be loaded with.
    pub(crate) env: Env,
    /// The names that its servers have already.
    pub(crate) names: BTreeSet<String>,
    /// The env files that are beside it already.
    pub(crate) env_files: BTreeSet<String>,
}

/// What was made of another client's file.
pub(crate) struct Imported {
    /// The agent file, if there is none yet.
    pub(crate) agent_yaml: String,
    /// The same servers as lines for a list that is there already: all that it does not have, and those alone that are
    /// let in.
    pub(crate) entries: String,
    pub(crate) accepted_entries: String,
    /// The files to put beside it. They hold secrets.
    pub(crate) env_files: Vec<EnvFile>,
    /// What the user should know: what was changed, left out, or needs filling in.
    pub(crate) notes: Vec<Note>,
    /// What became of each server, in the order of the file.
    pub(crate) servers: Vec<ImportedServer>,
    /// What the entries are loaded with once the env files are written.
    pub(crate) env: Env,
}

impl Imported {
    /// Leaves out the servers that are not let in, and their secrets.
    pub(crate) fn keep_accepted(&mut self) {
        self.keep_files_of(|it| it.refused.is_empty());
    }

    /// Leaves out the secrets of servers that the agent file has already.
    pub(crate) fn keep_new(&mut self) {
        self.keep_files_of(|it| !it.is_there);
    }

    fn keep_files_of(&mut self, keeps: impl Fn(&ImportedServer) -> bool) {
        let kept: BTreeSet<&str> =
            self.servers.iter().filter(|it| keeps(it)).filter_map(|it| it.env_file.as_deref()).collect();
        self.env_files.retain(|it| kept.contains(it.name.as_str()));
    }
}

/// What became of one server.
pub(crate) struct ImportedServer {
    pub(crate) name: String,
    /// Its env file, if it has secrets.
    pub(crate) env_file: Option<String>,
    /// The variables that have no value yet.
    pub(crate) needs: Vec<String>,
    /// Why it is not let in. Empty: it is.
    pub(crate) refused: Vec<Reason>,
    /// Whether the agent file has one by its name already.
    pub(crate) is_there: bool,
    /// The grants that would let it in.
    pub(crate) missing_grants: Vec<MissingGrant>,
}

/// A file of variables, to be written beside the agent file. No `Debug`: its text holds secrets.
pub(crate) struct EnvFile {
    pub(crate) name: String,
    pub(crate) text: String,
}

/// Imports the servers of one client's files.
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

/// Tries each draft. One without a reason against it is an entry of the agent file.
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
