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

pub(crate) use client::{Client, candidates};
pub(crate) use failure::ImportError;
pub(crate) use note::{Note, printable};
pub(crate) use suggested::entry;

use document::Document;
use draft::Draft;
use std::path::Path;
use trial::{Reason, Trial};
use wharf_runtime::config::{Env, MissingGrant};

/// What an agent file holds at most.
const MOST_TOOLS: usize = 50;

/// What was made of another client's file.
pub(crate) struct Imported {
    /// The agent file.
    pub(crate) agent_yaml: String,
    /// The files to put beside it. They hold secrets.
    pub(crate) env_files: Vec<EnvFile>,
    /// What the user should know: what was changed, left out, or needs filling in.
    pub(crate) notes: Vec<Note>,
    /// The servers that a grant would let in, each with the grants it lacks.
    pub(crate) ungranted: Vec<(String, Vec<MissingGrant>)>,
}

impl Imported {
    /// An agent file and nothing else.
    pub(crate) fn text(agent_yaml: &str) -> Imported {
        Imported {
            agent_yaml: agent_yaml.to_owned(),
            env_files: Vec::new(),
            notes: Vec::new(),
            ungranted: Vec::new(),
        }
    }
}

/// A file of variables, to be written beside the agent file. No `Debug`: its text holds secrets.
pub(crate) struct EnvFile {
    pub(crate) name: String,
    pub(crate) text: String,
}

/// Imports the text of the file at `from`, whose name tells which client wrote it.
///
/// `env` is what the agent file to be written will be loaded with.
pub(crate) fn import(text: &str, from: &Path, env: Env) -> Result<Imported, ImportError> {
    let document = Document::read(text, from)?;
    let mut drafts = draft::all(&document, &env);
    let env_files: Vec<EnvFile> = drafts.iter_mut().filter_map(|it| it.env_file.take()).collect();
    let trial = Trial::new(env, &env_files);
    judge(&mut drafts, &trial);
    let agent_yaml = page::write(&document, from, &drafts, &env_files);
    trial.whole(&agent_yaml)?;
    let ungranted = drafts.iter().map(|it| (it.name.clone(), it.missing_grants()));
    let ungranted = ungranted.filter(|(_, missing)| !missing.is_empty()).collect();
    let mut notes = document.notes;
    notes.extend(drafts.into_iter().flat_map(Draft::into_notes));
    Ok(Imported { agent_yaml, env_files, notes, ungranted })
}

/// Tries each draft. One without any is an entry of the agent file.
fn judge(drafts: &mut [Draft], trial: &Trial) {
    let mut accepted = 0;
    for draft in drafts {
        draft.judge(trial);
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
